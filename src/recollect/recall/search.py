"""A question in words → hits: analysed, scoped, scored, one hit a turn or summary; the only way in to recall."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recollect.answers import SearchResult
from recollect.checks import checked_count, checked_text
from recollect.code.contents import Contents
from recollect.errors import ModelError
from recollect.limits import CANDIDATES_MAX, SEARCH_LIMIT_MAX
from recollect.recall.asking import asked_of
from recollect.recall.weights import CHOSEN, Weights
from recollect.store.shapes import Elsewhere, Probe, SearchScope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from recollect.answers import Hit
    from recollect.distill.embedders import Embedder
    from recollect.model import Passage
    from recollect.recall.ranking import Sums
    from recollect.recall.signals import Signals
    from recollect.recall.times import Period
    from recollect.store import Store
    from recollect.store.shapes import Candidates, Found

_NOTHING: frozenset[str] = frozenset()
_SPARE = 5  # so many more than asked for are read whole, for what only the whole turn tells


class Meaning(NamedTuple):
    """How to search by meaning: with an embedder, or the reason why not."""

    embedder: Callable[[], Embedder] | None
    reason: str = "ran"


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched for, where, and how much of it; `candidates_max` is raised by what has to be exhaustive.

    What is found `elsewhere` is scored among its own, and stands in the same list.
    """

    query: str
    scope: SearchScope
    limit: int
    elsewhere: Elsewhere | None = None
    minimum_score: float = 0.0
    per_conversation: int | None = None
    weights: Weights = CHOSEN
    candidates_max: int = CANDIDATES_MAX


async def search(store: Store, workspace: str, ask: Ask, meaning: Meaning, now: datetime, contents: Contents | None = None) -> SearchResult:
    """Return the turns and summaries that answer a question, best first; any string at all is a legal one.

    `contents` remembers the files that were looked at, for whether they have changed.
    """
    checked_text("query", ask.query)
    checked_count("limit", ask.limit, SEARCH_LIMIT_MAX)
    return await _Search(store, workspace, ask, now, contents or Contents()).result(meaning)


class _Scored(NamedTuple):
    """One owner of those found in a scope, and its row among them."""

    found: Candidates
    signals: Signals
    sums: Sums
    row: int

    @property
    def owner(self) -> Found:
        return self.signals.owners[self.row]

    @property
    def passage(self) -> Passage:
        """The passage that speaks most for it."""
        return self.found.passages[self.signals.best[self.row]].passage


class _Search:
    """One search: the question, and what is known of the answer so far."""

    def __init__(self, store: Store, workspace: str, ask: Ask, now: datetime, contents: Contents) -> None:
        self._contents = contents
        self._store = store
        self._workspace = workspace
        self._ask = ask
        self._now = now
        self._asked = asked_of(ask.query, now)
        self._only_when = bool(self._asked.periods) and not self._asked.terms
        self._retrievers = {"terms": "ran"}

    async def result(self, meaning: Meaning) -> SearchResult:
        started = time.perf_counter()
        model, vector = await self._vector(meaning)
        limit = max(self._ask.candidates_max, self._ask.limit * 2)
        probe = Probe(
            terms=self._asked.terms, model=model, vector=vector, limit=limit, hits=self._ask.limit,
            per_conversation=self._ask.per_conversation,
        )  # fmt: skip
        found = await self._candidates(self._ask.scope, probe)
        self._tell(found, model)
        looked = [(found, _NOTHING)]
        if self._ask.elsewhere is not None:
            looked.append((await self._candidates(self._ask.elsewhere.scope, probe), self._ask.elsewhere.without))
        hits = await self._hits([(one, without) for one, without in looked if one.passages], probe)
        elapsed_ms = round((time.perf_counter() - started) * 1_000, 3)
        return SearchResult(hits=hits, retrievers=self._retrievers, searched_turns=found.turn_count, elapsed_ms=elapsed_ms)

    async def _candidates(self, scope: SearchScope, probe: Probe) -> Candidates:
        narrowed = _narrowed(scope, self._asked.periods) if self._only_when else scope
        return await self._store.search.candidates(self._workspace, narrowed, probe)

    async def _vector(self, meaning: Meaning) -> tuple[str | None, tuple[float, ...]]:
        """Return the model and the vector of the question, or neither, with the reason told."""
        self._retrievers["meaning"] = meaning.reason
        if meaning.embedder is None:
            return None, ()
        embedder = meaning.embedder()
        try:
            row = (await embedder.embed([self._asked.text]))[0]
        except ModelError as error:
            self._retrievers["meaning"] = f"not run: {error}"
            return None, ()
        if not row.any():
            self._retrievers["meaning"] = "not run: the query has no word that means anything"
            return None, ()
        return embedder.name, tuple(row.tolist())

    def _tell(self, found: Candidates, model: str | None) -> None:
        """Say which retrievers ran, and why one did not."""
        if not self._asked.terms:
            self._retrievers["terms"] = "not run: the query has no word to search for; the commonest words are not indexed"
        elif not found.passage_count:
            levels = self._ask.scope.levels
            self._retrievers["terms"] = f"not run: there is nothing {'here' if levels is None else 'of that level'} yet"
        waiting = found.passage_count - found.embedded_count
        if model is not None and waiting and found.embedded_count:
            self._retrievers["meaning"] = f"ran, without {waiting:,} of {found.passage_count:,} passages whose vectors are not made yet"
        elif model is not None and not found.embedded_count:
            self._retrievers["meaning"] = "not run: there are no vectors here yet; `recollect distill` makes them"

    async def _hits(self, looked: list[tuple[Candidates, frozenset[str]]], probe: Probe) -> tuple[Hit, ...]:
        """Score what was found in each scope, and read the best of all of it whole."""
        if not looked:
            return ()
        from recollect.recall.hits import Reader, unfolded  # noqa: PLC0415  NumPy is loaded by those who have something to score
        from recollect.recall.ranking import has_evidence, ordered, ranked, standing, summed  # noqa: PLC0415  as above
        from recollect.recall.signals import signals  # noqa: PLC0415  as above

        ask, wanted = self._ask, self._ask.limit + _SPARE
        best: list[_Scored] = []
        for found, without in looked:
            scored = signals(found, self._asked, probe.vector, self._now)
            sums = summed(scored, ask.weights, with_meaning=found.embedded_count > 0)
            order = [row for row in ordered(scored, sums, {}) if has_evidence(scored, row, only_when=self._only_when)]
            others = [row for row in order if scored.owners[row].conversation_id not in without]
            best += [_Scored(found, scored, sums, row) for row in unfolded(scored, others, wanted, ask.per_conversation)]
        best = sorted(best, key=lambda one: standing(one.signals, one.sums, one.row))[:wanted]
        reader = Reader(self._store, self._workspace, self._now, self._contents)
        await reader.read([one.owner for one in best])
        best = [one for one in best if reader.has(one.owner)]  # what is forgotten meanwhile is no hit
        against = [(one, reader.penalties(one.owner, ask.weights)) for one in best]
        against.sort(key=lambda pair: standing(pair[0].signals, pair[0].sums, pair[0].row, sum(pair[1].values())))
        rated = [(one, ranked(one.signals, one.sums, one.row, penalties)) for one, penalties in against]
        kept = [(one, rank) for one, rank in rated if rank.score >= ask.minimum_score and rank.score > 0][: ask.limit]
        return tuple([reader.hit(rank, one.owner, one.passage) for one, rank in kept])


def _narrowed(scope: SearchScope, periods: Sequence[Period]) -> SearchScope:
    """Return a scope of the time that a question asks for, when that is all it asks for."""
    starts = [period.start for period in periods if period.start is not None]
    ends = [period.end for period in periods if period.end is not None]
    if not starts or not ends or scope.where.since is not None or scope.where.until is not None:
        return scope
    return msgspec.structs.replace(scope, where=msgspec.structs.replace(scope.where, since=min(starts), until=max(ends)))
