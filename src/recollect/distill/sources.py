"""What windows cover, read from the store: the words a model is asked about, the facts it may not change, and how to tell a change."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from recollect.distill.actions import Actions
from recollect.distill.extractive import fold_summaries, summarise_turns
from recollect.distill.models import Asked, summaries_text, turns_text
from recollect.limits import TURNS_PER_PAGE
from recollect.placing import checksum
from recollect.store.shapes import TurnRange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recollect.distill.plan import Window
    from recollect.model import Summary, Turn
    from recollect.store import Store


class Covered(NamedTuple):
    """What windows of one level ask, nothing when a source is gone; and what their sources say now, by their hashes."""

    asked: list[Asked]
    unless: Mapping[str, str | int]


class Sources:
    """Reads the sources of a workspace's summaries."""

    def __init__(self, store: Store, workspace: str) -> None:
        self._store = store
        self._workspace = workspace

    async def of(self, conversation_id: str, windows: Sequence[Window]) -> Covered:
        """Return what windows of one level cover."""
        own_ids = [source for window in windows for source in window.source_ids]
        if windows[0].level == 1:
            turns = await self._store.turns.by_id(self._workspace, own_ids)
            asked = [_of_turns(window, turns) for window in windows if len(turns) == len(own_ids)]
            return Covered(asked, {turn.id: turn.content_hash for turn in turns})
        low = await self._store.derived.summaries_by_id(self._workspace, own_ids)
        asked = [_of_summaries(window, low, await self._actions(conversation_id, window)) for window in windows if len(low) == len(own_ids)]
        return Covered(asked, {one.id: checksum(one) for one in low})

    async def _actions(self, conversation_id: str, window: Window) -> Actions:
        """Return what the tools did in a stretch of turns, read in pages."""
        actions = Actions()
        first = window.first_turn
        while True:
            span = TurnRange(first=first, last=window.last_turn, limit=TURNS_PER_PAGE)
            page = await self._store.turns.history(self._workspace, conversation_id, span)
            for turn in page:
                actions.add(turn)
            if len(page) < TURNS_PER_PAGE:
                return actions
            first = page[-1].index + 1


def _of_turns(window: Window, turns: Sequence[Turn]) -> Asked:
    own = [turn for turn in turns if turn.id in window.source_ids]
    return Asked(level=window.level, text=turns_text(own), facts=summarise_turns(own), turn_count=len(own))


def _of_summaries(window: Window, summaries: Sequence[Summary], actions: Actions) -> Asked:
    own = [one for one in summaries if one.id in window.source_ids]
    facts = fold_summaries(own, actions)
    return Asked(level=window.level, text=summaries_text(own), facts=facts, turn_count=sum(one.turn_count for one in own))
