"""A query in words → hits: analysed, scoped, scored, one hit a turn or summary; the only way in to recall."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal

import msgspec

from recollect.answers import Hit, SearchResult
from recollect.checks import checked_count, checked_text
from recollect.limits import CANDIDATES_MAX, QUERY_CHARS_MAX, QUERY_TERMS_MAX, SEARCH_LIMIT_MAX
from recollect.quoting import passage_text, summary_text
from recollect.recall.lexical import score
from recollect.text import terms

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.model import ConversationInfo, Summary, Turn
    from recollect.recall.lexical import Scored
    from recollect.store import Store
    from recollect.store.shapes import SearchScope

_MEANING_ABSENT = "not run: vectors are made, and not searched in this version"


async def search(
    store: Store, workspace: str, query: str, scope: SearchScope, *, levels: Sequence[int] | None, limit: int, semantic: bool, now: datetime
) -> SearchResult:
    """Return the turns and summaries that answer a query, best first; any string at all is a legal query."""
    checked_text("query", query)
    checked_count("limit", limit, SEARCH_LIMIT_MAX)
    started = time.perf_counter()
    retrievers = {"terms": "ran", "meaning": _MEANING_ABSENT if semantic else "not run: switched off"}
    asked = query_terms(query)
    wanted = msgspec.structs.replace(scope, levels=None if levels is None else tuple(levels))
    found = await store.derived.candidates(workspace, wanted, asked, CANDIDATES_MAX)
    if levels is not None and not found.passage_count:
        retrievers["terms"] = "not run: there is nothing of that level yet"
    if not asked:
        retrievers["terms"] = "not run: the query has no word to search for; the commonest words are not indexed"
    best = _best_by_owner(score(found, asked))[:limit]
    hits = await _hits(store, workspace, best, now)
    elapsed_ms = (time.perf_counter() - started) * 1000
    return SearchResult(hits=hits, retrievers=retrievers, searched_turns=found.turn_count, elapsed_ms=round(elapsed_ms, 3))


def query_terms(query: str) -> list[str]:
    """Return the distinct terms of a query, in order."""
    return list(dict.fromkeys(terms(query[:QUERY_CHARS_MAX].encode(errors="replace").decode())))[:QUERY_TERMS_MAX]


def _best_by_owner(scored: list[Scored]) -> list[Scored]:
    best: dict[str, Scored] = {}
    for one in scored:
        best.setdefault(one.candidate.owner_id, one)
    return list(best.values())


async def _hits(store: Store, workspace: str, best: list[Scored], now: datetime) -> tuple[Hit, ...]:
    owners = [one.candidate.owner_id for one in best if one.candidate.level == 0]
    turns = {turn.id: turn for turn in await store.turns.by_id(workspace, owners)}
    told = [one.candidate.owner_id for one in best if one.candidate.level > 0]
    summaries = {summary.id: summary for summary in await store.derived.summaries_by_id(workspace, told)}
    conversations: dict[str, ConversationInfo | None] = {}
    hits: list[Hit] = []
    for one in best:
        owner_id, conversation_id = one.candidate.owner_id, one.candidate.conversation_id
        if conversation_id not in conversations:
            conversations[conversation_id] = await store.conversations.get(workspace, conversation_id)
        if owner_id in turns:
            hits.append(_turn_hit(turns[owner_id], one, conversations[conversation_id], now))
        elif owner_id in summaries:
            hits.append(_summary_hit(summaries[owner_id], one, conversations[conversation_id], now))
    return tuple(hits)


def _turn_hit(turn: Turn, one: Scored, conversation: ConversationInfo | None, now: datetime) -> Hit:
    moment = turn.ended_at or turn.started_at
    return msgspec.structs.replace(
        _hit("turn", turn.id, one, conversation),
        turn_index=turn.index,
        question=turn.user,
        answer=turn.assistant,
        passage=passage_text(turn, one.candidate.passage),
        timestamp=moment,
        age_seconds=_age_seconds(moment, now),
    )


def _summary_hit(summary: Summary, one: Scored, conversation: ConversationInfo | None, now: datetime) -> Hit:
    return msgspec.structs.replace(
        _hit("summary", summary.id, one, conversation),
        level=summary.level,
        first_turn=summary.first_turn,
        last_turn=summary.last_turn,
        answer=summary.summary,
        passage=summary_text(summary),
        timestamp=summary.created_at,
        age_seconds=_age_seconds(summary.created_at, now),
    )


def _hit(kind: Literal["turn", "summary"], own_id: str, one: Scored, conversation: ConversationInfo | None) -> Hit:
    return Hit(
        kind=kind,
        id=own_id,
        conversation_id=one.candidate.conversation_id,
        conversation_title=None if conversation is None else conversation.title,
        project="" if conversation is None else conversation.project,
        score=round(one.score, 6),
        confidence=round(one.coverage, 6),
        explanation={"terms": round(one.score, 6)},
    )


def _age_seconds(moment: datetime | None, now: datetime) -> float:
    return 0.0 if moment is None else max((now - moment).total_seconds(), 0.0)
