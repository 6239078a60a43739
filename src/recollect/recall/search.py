"""A question in words → hits: analysed, scoped, scored, one hit a turn or summary; the only way in to recall."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recollect.answers import SearchResult
from recollect.checks import checked_count, checked_text
from recollect.errors import ModelError
from recollect.limits import CANDIDATES_MAX, NEIGHBOUR_PASSAGES_MAX, NEIGHBOURS_MIN, SEARCH_LIMIT_MAX
from recollect.recall.asking import asked_of
from recollect.recall.weights import CHOSEN, Weights
from recollect.store.shapes import Probe, SearchScope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from recollect.answers import Hit
    from recollect.distill.embedders import Embedder
    from recollect.recall.ranking import Sums
    from recollect.recall.signals import Signals
    from recollect.recall.times import Period
    from recollect.store import Store
    from recollect.store.shapes import Candidates

_SPARE = 5  # so many more than asked for are read whole, for what only the whole turn tells


class Meaning(NamedTuple):
    """How to search by meaning: with an embedder, or the reason why not."""

    embedder: Callable[[], Embedder] | None
    reason: str = "ran"


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """What is searched for, where, and how much of it; `candidates_max` is raised by what has to be exhaustive."""

    query: str
    scope: SearchScope
    limit: int
    minimum_score: float = 0.0
    per_conversation: int | None = None
    weights: Weights = CHOSEN
    candidates_max: int = CANDIDATES_MAX


async def search(store: Store, workspace: str, ask: Ask, meaning: Meaning, now: datetime) -> SearchResult:
    """Return the turns and summaries that answer a question, best first; any string at all is a legal one."""
    checked_text("query", ask.query)
    checked_count("limit", ask.limit, SEARCH_LIMIT_MAX)
    return await _Search(store, workspace, ask, now).result(meaning)


class _Search:
    """One search: the question, and what is known of the answer so far."""

    def __init__(self, store: Store, workspace: str, ask: Ask, now: datetime) -> None:
        self._store = store
        self._workspace = workspace
        self._ask = ask
        self._now = now
        self._asked = asked_of(ask.query, now)
        self._only_when = bool(self._asked.periods) and not self._asked.terms
        self._scope = _narrowed(ask.scope, self._asked.periods) if self._only_when else ask.scope
        self._retrievers = {"terms": "ran"}

    async def result(self, meaning: Meaning) -> SearchResult:
        started = time.perf_counter()
        model, vector = await self._vector(meaning)
        limit = max(self._ask.candidates_max, self._ask.limit * 2)
        probe = Probe(terms=self._asked.terms, model=model, vector=vector, limit=limit)
        found = await self._store.search.candidates(self._workspace, self._scope, probe)
        self._tell(found, model)
        hits = await self._hits(found, probe) if found.passages else ()
        elapsed_ms = round((time.perf_counter() - started) * 1_000, 3)
        return SearchResult(hits=hits, retrievers=self._retrievers, searched_turns=found.turn_count, elapsed_ms=elapsed_ms)

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

    async def _hits(self, found: Candidates, probe: Probe) -> tuple[Hit, ...]:
        from recollect.recall.hits import Reader, unfolded  # noqa: PLC0415  NumPy is loaded by those who have something to score
        from recollect.recall.ranking import has_evidence, ordered, ranked  # noqa: PLC0415  as above

        weights = self._ask.weights
        found, signals, sums = await self._scored(found, probe, weights)
        order = [row for row in ordered(signals, sums, {}) if has_evidence(signals, row, only_when=self._only_when)]
        rows = unfolded(signals, order, self._ask.limit + _SPARE, self._ask.per_conversation)
        reader = Reader(self._store, self._workspace, self._now)
        await reader.read([signals.owners[row] for row in rows])
        rows = [row for row in rows if reader.has(signals.owners[row])]  # what is forgotten meanwhile is no hit
        penalties = {row: weights.unanswered for row in rows if reader.is_unanswered(signals.owners[row])}
        final = [ranked(signals, sums, row, penalties.get(row, 0.0)) for row in ordered(signals, sums, penalties, rows)]
        kept = [one for one in final if one.score >= self._ask.minimum_score and one.score > 0][: self._ask.limit]
        return tuple([reader.hit(one, signals.owners[one.row], found.passages[signals.best[one.row]].passage) for one in kept])

    async def _scored(self, found: Candidates, probe: Probe, weights: Weights) -> tuple[Candidates, Signals, Sums]:
        """Score the candidates, the best of them together with their neighbours, which no retriever may have found."""
        from recollect.recall.ranking import summed  # noqa: PLC0415  as above
        from recollect.recall.signals import signals  # noqa: PLC0415  as above

        asked, with_meaning = self._asked, found.embedded_count > 0
        is_whole = len(found.passages) == found.passage_count
        scored = signals(found, asked, probe.vector, self._now, with_phrases=is_whole)
        sums = summed(scored, weights, with_meaning=with_meaning)
        if is_whole:
            return found, scored, sums
        places = _places_around(scored, sums, found, self._ask)
        more = await self._store.search.of_turns(self._workspace, self._scope, places, probe.model)
        kept = [one for one in found.passages if one.level]
        found = msgspec.structs.replace(found, passages=(*more, *kept))
        scored = signals(found, asked, probe.vector, self._now)
        return found, scored, summed(scored, weights, with_meaning=with_meaning)


def _narrowed(scope: SearchScope, periods: Sequence[Period]) -> SearchScope:
    """Return a scope of the time that a question asks for, when that is all it asks for."""
    starts = [period.start for period in periods if period.start is not None]
    ends = [period.end for period in periods if period.end is not None]
    if not starts or not ends or scope.where.since is not None or scope.where.until is not None:
        return scope
    return msgspec.structs.replace(scope, where=msgspec.structs.replace(scope.where, since=min(starts), until=max(ends)))


def _places_around(signals: Signals, sums: Sums, found: Candidates, ask: Ask) -> list[tuple[str, int]]:
    """Return the best turns and their neighbours, by conversation and index, as many as may be looked at."""
    per_turn = found.passage_count / max(found.turn_count, 1)
    most = max(int(NEIGHBOUR_PASSAGES_MAX / max(per_turn, 1.0)), NEIGHBOURS_MIN, ask.limit * 2)
    total = sums.total
    places: dict[tuple[str, int], None] = {}
    taken: Counter[str] = Counter()
    for row in (-total).argsort(kind="stable").tolist():
        owner = signals.owners[row]
        if owner.level == 0 and taken[owner.conversation_id] != ask.per_conversation:
            taken[owner.conversation_id] += 1
            places |= {(owner.conversation_id, owner.last_turn + distance): None for distance in (0, 1, -1, 2, -2)}
        if len(places) >= most:
            break
    return [place for place in places if place[1] >= 0]
