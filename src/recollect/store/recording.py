"""What to do with turns that are to be recorded, decided from what the conversation holds; pure, for all stores.

A backend loads a `Situation` inside its write transaction, asks `plan`, and carries the plan out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from recollect.errors import ConflictError, InputError
from recollect.model import Turn
from recollect.placing import Head, outline, place_turn, place_turns
from recollect.store.shapes import Span
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.store.shapes import Held, Link, Recording, TurnOutline

_replace = msgspec.structs.replace
_LAST_MESSAGE_CHARS_MAX = 200


class KnownTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn of the same request that is already recorded."""

    id: str
    conversation_id: str
    index: int
    sequence: int
    message_count: int
    content_hash: str


class Situation(msgspec.Struct, frozen=True, kw_only=True):
    """What the conversation and its project hold at this moment.

    `inherited_to` is the last index that the conversation itself inherits, `forked_at` the last that a branch inherits
    from it; -1 where there is none. `cut_sequence` is the first message sequence at the index to truncate from. A silent
    conversation takes no more turns.
    """

    head: Head
    is_silent: bool = False
    known: tuple[KnownTurn, ...] = ()
    inherited_to: int = -1
    forked_at: int = -1
    cut_sequence: int = 0


class Shift(msgspec.Struct, frozen=True):
    """The sequences of all messages after a turn, moved by so many."""

    after: int
    by: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What to carry out, in this order: remove turns, move sequences, insert turns.

    With `ends_sooner` the conversation goes on right after its last turn, since those behind it went with what they said.
    """

    status: Literal["created", "unchanged", "replaced", "moved", "skipped"]
    remove_ids: tuple[str, ...] = ()
    truncate_from: int | None = None
    shifts: tuple[Shift, ...] = ()
    ends_sooner: bool = False
    insert: tuple[Turn, ...] = ()


def plan(situation: Situation, recording: Recording) -> Plan:
    """Decide; raises `ConflictError` when the same request says something else and replacing was not asked for."""
    turns = [draft.turn for draft in recording.drafts]
    head = situation.head
    if situation.is_silent and not recording.keep_places:
        return Plan(status="skipped")
    if situation.known:
        return _plan_known(situation, recording, turns)
    if recording.expected_index is not None and recording.expected_index != head.next_index:
        return Plan(status="moved")
    if recording.keep_places:
        return Plan(status="created", insert=tuple(_kept(turn, head) for turn in turns))
    if recording.truncate_from is not None and recording.truncate_from < head.next_index:
        _refuse_shared(situation, recording.truncate_from)
        head = _replace(head, next_index=recording.truncate_from, next_sequence=situation.cut_sequence)
        return Plan(status="replaced", truncate_from=recording.truncate_from, ends_sooner=True, insert=tuple(place_turns(turns, head)))
    return Plan(status="created", insert=tuple(place_turns(turns, head)))


def is_apart(newest: Sequence[TurnOutline], turn: Turn, request_id: str | None) -> bool:
    """Tell whether a single turn surely continues nothing, from the newest two turns of a history; people repeat themselves."""
    words = tuple(outline(turn.messages)[:1])
    others = [one for one in newest if request_id is None or one.request_id != request_id]
    return others[-1].said[:1] != words if others else len(newest) <= 1


def _kept(turn: Turn, head: Head) -> Turn:
    return place_turn(turn, head.conversation_id, turn.index, turn.first_sequence)


def _plan_known(situation: Situation, recording: Recording, turns: list[Turn]) -> Plan:
    head = situation.head
    here = [turn for turn in situation.known if turn.conversation_id == head.conversation_id]
    known = here or [turn for turn in situation.known if turn.conversation_id == situation.known[0].conversation_id]
    owner = known[0].conversation_id
    placed, shifts = _in_place(turns, known, head if here else Head(conversation_id=owner))
    if [turn.content_hash for turn in placed] == [turn.content_hash for turn in known]:
        return Plan(status="unchanged", insert=tuple(placed))
    if not here:
        msg = f"request {recording.request_id!r} is recorded in conversation {owner}: send it there, or under another id"
        raise ConflictError(msg)
    if not recording.replace:
        msg = f"request {recording.request_id!r} is already recorded with other content: send it with replace, or under another id"
        raise ConflictError(msg)
    _refuse_shared(situation, known[0].index)
    return Plan(
        status="replaced",
        remove_ids=tuple(turn.id for turn in known),
        shifts=shifts,
        ends_sooner=len(placed) < len(known) and known[-1].index == head.next_index - 1,
        insert=tuple(placed),
    )


def _in_place(turns: list[Turn], known: list[KnownTurn], head: Head) -> tuple[list[Turn], tuple[Shift, ...]]:
    """Place turns of a request where its known ones stand, and those that are new after everything else, as they came."""
    placed: list[Turn] = []
    shifts: list[Shift] = []
    moved = 0
    for n, standing in enumerate(known):
        here = turns[n : n + 1]
        placed += [place_turn(turn, head.conversation_id, standing.index, standing.sequence + moved) for turn in here]
        by = sum(len(turn.messages) for turn in here) - standing.message_count
        if by:
            shifts.append(Shift(standing.index, by))
            moved += by
    after = _replace(head, next_sequence=head.next_sequence + moved)
    return [*placed, *place_turns(turns[len(known) :], after)], tuple(shifts)


def _refuse_shared(situation: Situation, first: int) -> None:
    if first <= situation.inherited_to:
        msg = f"turn {first} is inherited from the parent conversation: replace it there, or branch before it"
        raise ConflictError(msg)
    if first <= situation.forked_at:
        msg = f"turn {first} is inherited by a branch: fork another branch instead of replacing it"
        raise ConflictError(msg)


def last_message(turns: tuple[Turn, ...]) -> str | None:
    """Return the last thing a user or assistant said, short enough for a list."""
    for turn in reversed(turns):
        for message in reversed(turn.messages):
            if message.role in {"user", "assistant"} and message.content_summary:
                return shorten(message.content_summary, _LAST_MESSAGE_CHARS_MAX)
    return None


def shown(chain: list[Link]) -> list[Span]:
    """Turn a chain (a conversation, its parent, …; each with the turn it forks from) into who shows which turns, oldest first."""
    spans: list[Span] = []
    limit: int | None = None
    for link in chain:
        spans.append(Span(conversation_id=link.conversation_id, last=limit))
        if link.from_turn is not None:
            limit = link.from_turn if limit is None else min(limit, link.from_turn)
    return spans[::-1]


def chosen_heir(branches: list[Held]) -> Held:
    """Choose, of the branches of a conversation that goes, the one that takes its turns: who shows the most, the oldest."""
    return max(branches, key=lambda branch: -1 if branch.conversation.from_turn is None else branch.conversation.from_turn)


def adopted(branch: Held, gone: Held) -> Held:
    """Return a branch of a conversation that goes as a branch of its parent: from where it forked, or where that did."""
    forks = [n for n in (branch.conversation.from_turn, gone.conversation.from_turn) if n is not None]
    from_turn = None if gone.parent_id is None else min(forks, default=None)
    conversation = _replace(
        branch.conversation, from_turn=from_turn, branch_of=None if gone.parent_id is None else gone.conversation.branch_of
    )
    return _replace(branch, conversation=conversation, parent_id=gone.parent_id)


def checked_span(first: int, last: int | None) -> None:
    """Refuse a span of turns that makes no sense."""
    if first < 0 or (last is not None and last < 0):
        msg = f"turns are counted from 0: there is none before it, so {min(first, first if last is None else last)} is no turn"
        raise InputError(msg)
