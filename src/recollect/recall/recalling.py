"""What a memory is asked in words: search, and conversations like this one; the doors come here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.answers import SimilarConversation
from recollect.checks import checked_count, checked_text
from recollect.clock import RandomIds
from recollect.code.contents import Contents
from recollect.errors import NotFoundError
from recollect.limits import SEARCH_LIMIT_MAX
from recollect.quoting import insight_text, scope_text
from recollect.recall.asking import asked_of
from recollect.recall.search import Ask, Meaning, search
from recollect.store.shapes import SearchScope

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.answers import Hit, ScopeHit, SearchResult
    from recollect.clock import Clock
    from recollect.distill.embedders import Embedder
    from recollect.distill.metrics import Metrics
    from recollect.model import Insight
    from recollect.settings import Settings
    from recollect.store import Store
    from recollect.store.shapes import Elsewhere, InsightFilter

_HITS_PER_CONVERSATION = 4
_CANDIDATES_MAX = 2_000  # so that one long conversation does not hide the others
_BEST_SHARE = 0.7  # a conversation is as close as its best hit, and as what else there is in it
_OTHERS_MAX = 3
_SCOPES_MAX = 60
_SCOPES_COMPARED = 20  # of those found by their words, and of those by their meaning
_SCOPE_TERMS_MAX = 24
_INSIGHTS_MAX = 200
_INSIGHTS_COMPARED = 40  # as with scopes
_LEARNED_MAX = 3


class Recall:
    """Asks one workspace of a store."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, metrics: Metrics) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._metrics = metrics
        self._embedder: Embedder | None = None
        self._contents = Contents()

    async def search(
        self,
        query: str,
        scope: SearchScope,
        *,
        limit: int,
        semantic: bool = True,
        minimum_score: float = 0.0,
        elsewhere: Elsewhere | None = None,
    ) -> SearchResult:
        """Search one scope, and perhaps a second one for the same list."""
        ask = Ask(query=query, scope=scope, limit=limit, minimum_score=minimum_score, elsewhere=elsewhere)
        return await self._ask(ask, semantic=semantic)

    async def _ask(self, ask: Ask, *, semantic: bool) -> SearchResult:
        result = await search(
            self._store, self._settings.workspace, ask, self._meaning(semantic=semantic), self._clock.now(), self._contents
        )
        self._metrics.searched(len(result.hits), result.elapsed_ms / 1_000)
        return result

    def _meaning(self, *, semantic: bool) -> Meaning:
        if not semantic:
            return Meaning(None, "not run: switched off")
        if not self._settings.agent.memory.embeddings.enabled:
            return Meaning(None, "not run: embeddings are off in the configuration")
        return Meaning(self._chosen_embedder)

    def _chosen_embedder(self) -> Embedder:
        if self._embedder is None and self._settings.models.embeddings.name is None:
            from recollect.distill.embedders import default_embedder  # noqa: PLC0415  NumPy is loaded by those who search by meaning

            self._embedder = default_embedder()
        elif self._embedder is None:
            from recollect.models.embedding import configured_embedder  # noqa: PLC0415  as above

            self._embedder = configured_embedder(self._settings, self._store, self._clock, RandomIds())
        return self._embedder

    async def scopes(self, query: str, project_ids: Sequence[str] | None, *, limit: int, semantic: bool = True) -> list[ScopeHit]:
        """Return the symbols of the code that a question may be about, best first.

        Words and meaning choose; names, words and meaning rank.
        """
        workspace = self._settings.workspace
        asked = asked_of(checked_text("query", query), self._clock.now())
        having = await self._store.code.having(workspace, project_ids, asked.terms[:_SCOPE_TERMS_MAX], _SCOPES_MAX)
        from recollect.recall.scopes import ranked_scopes  # noqa: PLC0415  only those who ask for code need it

        hits = ranked_scopes(query, asked.terms, having, None)
        embedder = self.code_embedder()
        if embedder is None or not semantic:
            return hits[:limit]
        (own,) = await embedder.embed([asked.text])
        near = await self._store.code.near(workspace, project_ids, embedder.name, own, _SCOPES_COMPARED)
        best = {hit.scope.id for hit in hits[: max(limit, _SCOPES_COMPARED)]}
        found = list({one.scope.id: one for one in (*having, *near) if one.scope.id in best or one in near}.values())
        vectors = await embedder.embed([scope_text(one.scope) for one in found])
        return ranked_scopes(query, asked.terms, found, (vectors @ own).tolist())[:limit]

    def code_embedder(self) -> Embedder | None:
        """Return what tells the meaning of code: the embedder that ships, since nothing is sent for a symbol; None when that is off."""
        if not self._settings.agent.memory.embeddings.enabled:
            return None
        from recollect.distill.embedders import default_embedder  # noqa: PLC0415  NumPy is loaded by those who search by meaning

        return default_embedder()

    async def insights(self, query: str, where: InsightFilter, *, limit: int) -> list[Hit]:
        """Return the insights that a question may be about, best first: its words choose, words and meaning rank."""
        now = self._clock.now()
        asked = asked_of(checked_text("query", query), now)
        found = await self._store.derived.insights_having(self._settings.workspace, where, asked.terms, max(_INSIGHTS_MAX, limit))
        if not found or not limit:
            return []
        from recollect.distill.embedders import default_embedder  # noqa: PLC0415  only those who have something to rank need it
        from recollect.recall.insights import placed, ranked_insights  # noqa: PLC0415  as above

        hits = ranked_insights(asked.terms, found, None)
        if self._settings.agent.memory.embeddings.enabled and self._chosen_embedder() is default_embedder():  # nothing is sent anywhere
            best = {hit.id for hit in hits[: max(limit, _INSIGHTS_COMPARED)]}
            found = [one for one in found if one.insight.id in best]
            vectors = await default_embedder().embed([asked.text, *(insight_text(one.insight) for one in found)])
            hits = ranked_insights(asked.terms, found, (vectors[1:] @ vectors[0]).tolist())
        hits = hits[:limit]
        owners = dict.fromkeys(hit.conversation_id for hit in hits)
        infos = {own_id: await self._store.conversations.get(self._settings.workspace, own_id) for own_id in owners}
        return [placed(hit, infos[hit.conversation_id], now) for hit in hits]

    async def _learned(self, conversation_id: str) -> tuple[Insight, ...]:
        """Return the newest insights of a conversation, none of one that went meanwhile."""
        from recollect.recall.insights import newest_once  # noqa: PLC0415  as above

        try:
            found = await self._store.derived.insights(self._settings.workspace, conversation_id)
        except NotFoundError:
            return ()
        return newest_once(found, _LEARNED_MAX)

    async def similar(
        self, query: str, project_ids: tuple[str, ...] | None, *, limit: int, semantic: bool = True
    ) -> list[SimilarConversation]:
        """Return the conversations that come closest to a text, best first."""
        wanted = min(checked_count("limit", limit) * _HITS_PER_CONVERSATION, SEARCH_LIMIT_MAX)
        if not wanted or project_ids == ():
            return []
        ask = Ask(
            query=query,
            scope=SearchScope(project_ids=project_ids),
            limit=wanted,
            per_conversation=_HITS_PER_CONVERSATION,
            candidates_max=_CANDIDATES_MAX,
        )
        found = await self._ask(ask, semantic=semantic)
        groups: dict[str, list[Hit]] = {}
        for hit in found.hits:
            groups.setdefault(hit.conversation_id, []).append(hit)
        scored = sorted(((_closeness(hits), hits[0]) for hits in groups.values()), key=lambda one: (-one[0], one[1].conversation_id))
        similar: list[SimilarConversation] = []
        for score, hit in scored[:limit]:
            info = await self._store.conversations.get(self._settings.workspace, hit.conversation_id)
            if info is not None:
                learned = await self._learned(info.id)
                similar.append(SimilarConversation(conversation=info, score=round(score, 6), hit=hit, learned=learned))
        return similar


def _closeness(hits: list[Hit]) -> float:
    others = [hit.score for hit in hits[1 : 1 + _OTHERS_MAX]]
    return hits[0].score * _BEST_SHARE + (1 - _BEST_SHARE) * sum(others) / _OTHERS_MAX
