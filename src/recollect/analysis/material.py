"""What is shown of a conversation to whoever analyses it: its highest summaries and its last turns, within a limit; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.distill.actions import Actions
from recollect.limits import ANALYSIS_CHARS_MAX
from recollect.model import ConversationInfo, Summary, Turn
from recollect.quoting import summary_text
from recollect.text import cut

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_RAW_TURNS_MIN = 3
_TURN_CHARS_MAX = 6_000
_SUMMARIES_SHARE = 0.5
_MARK_CHARS = 60  # what a mark of turns that are left out takes, with the lines around it


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """What an insight is made of."""

    conversation: ConversationInfo
    summaries: tuple[Summary, ...]
    turns: tuple[Turn, ...]

    @property
    def summary_ids(self) -> tuple[str, ...]:
        """The summaries that have to be there still when the insight is written."""
        return tuple(summary.id for summary in self.summaries)


def material_of(
    conversation: ConversationInfo, shown: Sequence[Summary], first: Sequence[Turn], newest: Sequence[Turn], last_turn: int
) -> Material:
    """Choose: summaries that no higher one tells of, the turns after them, a few of the last in any case; nothing after `last_turn`."""
    known = [one for one in shown if one.last_turn <= last_turn]
    folded = {source for one in known for source in one.source_ids}
    top = tuple(one for one in known if one.id not in folded)
    covered = max((one.last_turn for one in top), default=-1)
    recent = [turn for turn in newest if turn.index <= last_turn]
    raw = [turn for n, turn in enumerate(recent) if turn.index > covered or n >= len(recent) - _RAW_TURNS_MIN]
    goal = [turn for turn in first if not top and turn.index <= last_turn and all(turn.id != one.id for one in raw)]
    return Material(conversation=conversation, summaries=top, turns=(*goal, *raw))


def material_text(material: Material) -> str:
    """Return it as a model reads it, in at most `ANALYSIS_CHARS_MAX` characters: what is left out is marked."""
    head = f"title: {material.conversation.title}" if material.conversation.title else ""
    told = "\n\n".join(f"summary of turns {one.first_turn} to {one.last_turn}\n{summary_text(one)}" for one in material.summaries)
    told = cut(told, int(ANALYSIS_CHARS_MAX * _SUMMARIES_SHARE))
    room = ANALYSIS_CHARS_MAX - len(head) - len(told) - 4 * _MARK_CHARS
    kept: list[Turn] = []
    for turn in reversed(material.turns):
        room -= len(_turn_text(turn)) + _MARK_CHARS
        if room < 0 and kept:
            break
        kept.insert(0, turn)
    covered = max((one.last_turn for one in material.summaries), default=-1)
    return cut("\n\n".join(part for part in (head, told, *_with_gaps(kept, covered)) if part), ANALYSIS_CHARS_MAX)


def _with_gaps(turns: Sequence[Turn], covered: int) -> Iterator[str]:
    """Yield turns in words, with a mark where some were left out that no summary tells of."""
    before = covered
    for turn in turns:
        if turn.index > before + 1:
            yield f"[… {turn.index - before - 1} turns left out …]"
        yield _turn_text(turn)
        before = max(before, turn.index)


def _turn_text(turn: Turn) -> str:
    actions = Actions()
    actions.add(turn)
    parts = [f"turn {turn.index}", f"user: {turn.user}", f"assistant: {turn.assistant}"]
    done = actions.told()
    return cut("\n".join([*parts, *([f"done: {done}"] if done else [])]), _TURN_CHARS_MAX)
