"""An open turn and what came since → the turn with more in it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from recollect.capture.messages import read_turns
from recollect.capture.turns import char_count
from recollect.errors import InputError
from recollect.placing import unplaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.capture.reading import Reading
    from recollect.model import Turn

_replace = msgspec.structs.replace


def grown(current: Turn, messages: Sequence[Any], reading: Reading) -> Turn:
    """Put messages after those of an open turn; results find the calls that wait for them, also those of earlier messages."""
    own = unplaced(current)
    if not messages:
        return own
    waiting = [n for n, call in enumerate(own.tool_calls) if call.result is None]
    asked = {
        "role": "assistant",
        "tool_calls": [
            {"call_id": call.tool_call_id or call.id, "name": call.tool_name, "arguments": call.arguments}
            for call in (own.tool_calls[n] for n in waiting)
        ],
    }
    turns = read_turns([asked, *messages] if waiting else messages, reading)
    if any(message.role == "user" for turn in turns for message in turn.messages):
        msg = "a user's message begins a new turn: finish this one and begin another"
        raise InputError(msg)
    return _merged(own, turns[0], waiting) if turns else own


def _merged(own: Turn, new: Turn, waiting: list[int]) -> Turn:
    """Join; the first calls of `new` are the turn's own waiting ones, and stand in its first message."""
    repeated = 1 if waiting else 0
    calls = list(own.tool_calls)
    for n, answered in zip(waiting, new.tool_calls, strict=False):
        if answered.result is not None:
            calls[n] = _replace(calls[n], result=answered.result, status=answered.status, accessed=answered.accessed)
    rounds = max((call.iteration for call in calls), default=-1) + 1
    for call in new.tool_calls[len(waiting) :]:
        place = None if call.message_id is None else str(max(int(call.message_id) - repeated + len(own.messages), 0))
        calls.append(_replace(call, message_id=place, iteration=call.iteration - repeated + rounds))
    messages = (*own.messages, *new.messages[repeated:])
    return _replace(
        own,
        messages=messages,
        tool_calls=tuple(calls),
        char_count=char_count(messages, calls),
        ended_at=max((time for time in (own.ended_at, new.ended_at) if time is not None), default=None),
        model=new.model or own.model,
        finish_reason=new.finish_reason or own.finish_reason,
    )
