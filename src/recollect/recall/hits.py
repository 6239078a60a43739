"""Ranked owners → hits: turns and summaries read whole, each with the passage that matched; what covers another is folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from recollect.answers import Hit
from recollect.distill.versions import changed_since
from recollect.opening import off_the_loop
from recollect.quoting import passage_text, summary_text
from recollect.store.shapes import Owners

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.code.contents import Contents
    from recollect.model import ConversationInfo, Passage, Summary, Turn
    from recollect.recall.ranking import Ranked
    from recollect.recall.signals import Signals
    from recollect.recall.weights import Weights
    from recollect.store import Store
    from recollect.store.shapes import Found

_DECIMALS = 6
_SHARE_DECIMALS = 9  # the shares still sum to the score when they are rounded


def unfolded(signals: Signals, order: Sequence[int], limit: int, per_conversation: int | None = None) -> list[int]:
    """Return the first rows without what a better one tells already: a turn of a summary above it, a summary of a turn above it."""
    kept: list[int] = []
    taken: dict[str, list[Found]] = {}
    for row in order:
        owner = signals.owners[row]
        above = taken.setdefault(owner.conversation_id, [])
        if len(above) != per_conversation and not any(_overlap(owner, other) for other in above):
            kept.append(row)
            above.append(owner)
        if len(kept) == limit:
            break
    return kept


def _overlap(one: Found, other: Found) -> bool:
    return one.level != other.level and one.first_turn <= other.last_turn and other.first_turn <= one.last_turn


class Reader:
    """Reads the owners of hits whole, and tells the hits from them."""

    def __init__(self, store: Store, workspace: str, now: datetime, contents: Contents) -> None:
        self._store = store
        self._workspace = workspace
        self._now = now
        self._contents = contents
        self._owners = Owners(turns={}, summaries={}, conversations={})
        self._stale: frozenset[str] = frozenset()

    async def read(self, owners: Sequence[Found]) -> None:
        """Read turns, summaries and their conversations, and look at the files they tell of, those of the first ones first."""
        self._owners = await self._store.search.owners(self._workspace, owners)
        if self._owners.cited:
            await off_the_loop(self._look)

    def _look(self) -> None:
        self._stale = changed_since(self._contents, self._owners.cited)

    def has(self, owner: Found) -> bool:
        """Tell whether an owner was still there when it was read."""
        return owner.owner_id in self._owners.turns or owner.owner_id in self._owners.summaries

    def is_unanswered(self, owner: Found) -> bool:
        """Tell whether a turn only asks: nobody answered, and no tool ran."""
        turn = self._owners.turns.get(owner.owner_id)
        return turn is not None and not turn.assistant and not turn.tool_calls and turn.user.rstrip().endswith("?")

    def penalties(self, owner: Found, weights: Weights) -> dict[str, float]:
        """Return what counts against an owner, which only the whole of it tells."""
        found: dict[str, float] = {}
        if self.is_unanswered(owner):
            found["unanswered"] = weights.unanswered
        if owner.owner_id in self._stale:
            found["stale"] = weights.stale
        return found

    def hit(self, ranked: Ranked, owner: Found, passage: Passage) -> Hit:
        """Return one hit."""
        conversation, stale = self._owners.conversations.get(owner.conversation_id), owner.owner_id in self._stale
        if owner.level:
            return self._summary_hit(self._owners.summaries[owner.owner_id], _hit("summary", owner, ranked, conversation, stale=stale))
        return self._turn_hit(self._owners.turns[owner.owner_id], passage, _hit("turn", owner, ranked, conversation, stale=stale))

    def _turn_hit(self, turn: Turn, passage: Passage, hit: Hit) -> Hit:
        moment = turn.ended_at or turn.started_at
        return msgspec.structs.replace(
            hit,
            turn_index=turn.index,
            question=turn.user,
            answer=turn.assistant,
            passage=passage_text(turn, passage),
            timestamp=moment,
            age_seconds=_age_seconds(moment, self._now),
        )

    def _summary_hit(self, summary: Summary, hit: Hit) -> Hit:
        return msgspec.structs.replace(
            hit,
            level=summary.level,
            first_turn=summary.first_turn,
            last_turn=summary.last_turn,
            answer=summary.summary,
            passage=summary_text(summary),
            timestamp=summary.created_at,
            age_seconds=_age_seconds(summary.created_at, self._now),
        )


def _hit(kind: Literal["turn", "summary"], owner: Found, ranked: Ranked, conversation: ConversationInfo | None, *, stale: bool) -> Hit:
    return Hit(
        kind=kind,
        id=owner.owner_id,
        conversation_id=owner.conversation_id,
        conversation_title=None if conversation is None else conversation.title,
        project="" if conversation is None else conversation.project,
        score=round(ranked.score, _DECIMALS),
        confidence=round(ranked.confidence, _DECIMALS),
        stale=stale,
        explanation={name: round(share, _SHARE_DECIMALS) for name, share in ranked.shares.items()},
    )


def _age_seconds(moment: datetime | None, now: datetime) -> float:
    return 0.0 if moment is None else max((now - moment).total_seconds(), 0.0)
