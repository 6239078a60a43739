"""Whether what a store gives back is what it was given; pure, for all stores."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, TypeVar

from recollect.answers import Damage
from recollect.errors import DamagedStoreError
from recollect.identity import content_hash
from recollect.placing import checksum

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.model import Insight, Scope, Summary, Turn

    _Derived = TypeVar("_Derived", Summary, Insight, Scope)

_REMEDIES = {
    "Summary": "make the summaries again with `recollect distill --rebuild`",
    "Insight": "analyse its conversation with `recollect analyze --again`",
    "Scope": "read the code with `recollect index --again`",
}


def intact(turn: Turn, stored: int) -> Turn:
    """Return a turn whose checksum is right; what is damaged is reported, not served."""
    if checksum(turn) != stored:
        msg = f"turn {turn.index} of conversation {turn.conversation_id} is damaged in the store: see `recollect verify`"
        raise DamagedStoreError(msg)
    return turn


def intact_derived(node: _Derived, stored: int) -> _Derived:
    """Return what was made of turns or of code, if its checksum is right; it can be made again."""
    if checksum(node) != stored:
        kind = type(node).__name__
        msg = f"{kind.lower()} {node.id} is not what was written: {_REMEDIES[kind]}"
        raise DamagedStoreError(msg)
    return node


def in_order(turns: list[Turn], first: int, last: int | None) -> list[Turn]:
    """Return turns that are those asked for, each after the one before; a damaged index may give others, for ever."""
    indexes = [turn.index for turn in turns]
    ends = [first - 1, *indexes, *([] if last is None else [last + 1])]
    if any(later <= earlier for earlier, later in pairwise(ends)) and indexes:
        msg = f"the order of the turns of conversation {turns[0].conversation_id} is damaged in the store: see `recollect verify`"
        raise DamagedStoreError(msg)
    return turns


def damage_of(turn: Turn, stored: int) -> list[Damage]:
    """Say what is wrong with a turn whose checksum does not match: which content, by its hash, else that some row is."""
    if checksum(turn) == stored:
        return []
    try:
        found = [*_messages(turn), *_results(turn)]
    except (AttributeError, TypeError):  # a damaged row may hold a value of another type
        found = []
    whole = Damage(kind="turn", id=turn.id, conversation_id=turn.conversation_id, reason="a stored row does not match the checksum")
    return found or [whole]


def _messages(turn: Turn) -> Iterator[Damage]:
    for message in turn.messages:
        if message.content is not None and _differs(message.content, message.content_bytes, message.content_hash):
            reason = "the content does not match its hash"
            yield Damage(kind="message", id=message.id, conversation_id=turn.conversation_id, reason=reason)


def _results(turn: Turn) -> Iterator[Damage]:
    for call in turn.tool_calls:
        result = call.result
        if result is not None and result.result is not None and _differs(result.result, result.result_size_bytes, result.content_hash):
            reason = "the result does not match its hash"
            yield Damage(kind="tool_result", id=result.id, conversation_id=turn.conversation_id, reason=reason)


def _differs(text: str, size_bytes: int, kept: str) -> bool:
    """Tell whether a text that is kept whole is not the one that was hashed; what was cut cannot be told."""
    return len(text.encode()) == size_bytes and content_hash(text) != kept
