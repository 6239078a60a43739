"""A query in words → hits: analysed, scoped, scored, one hit a turn; the only way in to recall."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from recollect.checks import checked_count, checked_text
from recollect.limits import CANDIDATES_MAX, QUERY_CHARS_MAX, QUERY_TERMS_MAX, SEARCH_LIMIT_MAX
from recollect.model import Hit, SearchResult
from recollect.quoting import passage_text
from recollect.recall.lexical import score
from recollect.text import terms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.model import ConversationInfo, Turn
    from recollect.recall.lexical import Scored
    from recollect.store import Store
    from recollect.store.shapes import SearchScope

_MEANING_ABSENT = "not run: there are no embeddings in this version"


async def search(
    store: Store, workspace: str, query: str, scope: SearchScope, *, levels: Sequence[int] | None, limit: int, semantic: bool, now: datetime
) -> SearchResult:
    """Return the turns that answer a query, best first; any string at all is a legal query."""
    checked_text("query", query)
    checked_count("limit", limit, SEARCH_LIMIT_MAX)
    started = time.perf_counter()
    retrievers = {"terms": "ran", "meaning": _MEANING_ABSENT if semantic else "not run: switched off"}
    asked = query_terms(query)
    hits: tuple[Hit, ...] = ()
    searched = 0
    if levels is not None and 0 not in levels:
        retrievers["terms"] = "not run: there are no summaries of that level yet"
    else:
        found = await store.derived.candidates(workspace, scope, asked, CANDIDATES_MAX)
        searched = found.turn_count
        if not asked:
            retrievers["terms"] = "not run: the query has no word to search for; the commonest words are not indexed"
        best = _best_by_turn(score(found, asked))[:limit]
        hits = await _hits(store, workspace, best, now)
    elapsed_ms = (time.perf_counter() - started) * 1000
    return SearchResult(hits=hits, retrievers=retrievers, searched_turns=searched, elapsed_ms=round(elapsed_ms, 3))


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, in order."""
    return list(dict.fromkeys(terms(query[:QUERY_CHARS_MAX].encode(errors="replace").decode())))[:QUERY_TERMS_MAX]


def _best_by_turn(scored: list[Scored]) -> list[Scored]:
    best: dict[str, Scored] = {}
    for one in scored:
        best.setdefault(one.candidate.turn_id, one)
    return list(best.values())


async def _hits(store: Store, workspace: str, best: list[Scored], now: datetime) -> tuple[Hit, ...]:
    turns = {turn.id: turn for turn in await store.turns.by_id(workspace, [one.candidate.turn_id for one in best])}
    conversations: dict[str, ConversationInfo | None] = {}
    hits: list[Hit] = []
    for one in best:
        turn = turns.get(one.candidate.turn_id)
        if turn is None:
            continue
        if turn.conversation_id not in conversations:
            conversations[turn.conversation_id] = await store.conversations.get(workspace, turn.conversation_id)
        hits.append(_hit(turn, one, conversations[turn.conversation_id], now))
    return tuple(hits)


def _hit(turn: Turn, one: Scored, conversation: ConversationInfo | None, now: datetime) -> Hit:
    moment = turn.ended_at or turn.started_at
    return Hit(
        kind="turn",
        id=turn.id,
        conversation_id=turn.conversation_id,
        conversation_title=None if conversation is None else conversation.title,
        project="" if conversation is None else conversation.project,
        turn_index=turn.index,
        question=turn.user,
        answer=turn.assistant,
        passage=passage_text(turn, one.candidate.passage),
        score=round(one.score, 6),
        confidence=round(one.coverage, 6),
        timestamp=moment,
        age_seconds=0.0 if moment is None else max((now - moment).total_seconds(), 0.0),
        explanation={"terms": round(one.score, 6)},
    )
