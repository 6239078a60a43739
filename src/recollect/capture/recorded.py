"""One turn in a user's own words and parts (`record(user=…, tool_calls=[…])`) → a turn without a place yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.payload import with_parts
from recollect.capture.shapes import RawMessage, read_call
from recollect.capture.turns import build_turns, with_status
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.capture.turns import Reading
    from recollect.model import Turn, TurnStatus


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What was said and done in a turn, as the caller of `record` gives it."""

    user: str | None = None
    assistant: str | None = None
    system: str | None = None
    reasoning: str | None = None
    tool_calls: Sequence[Any] = ()
    context_files: Sequence[Any] = ()
    changes: Sequence[Any] = ()
    checkpoints: Sequence[Any] = ()
    timestamp: Any = None
    request_id: str | None = None


def said_turn(said: Said, reading: Reading, status: TurnStatus = "complete") -> Turn:
    """Build the turn; raises InputError when nothing was said or done, or a part is of the wrong type."""
    for name in ("user", "assistant", "system", "reasoning", "request_id"):
        value = getattr(said, name)
        if value is not None and not isinstance(value, str):
            msg = f"{name} is text, not {type(value).__name__}: pass a list of messages as messages="
            raise InputError(msg)
    messages = _messages(said, reading)
    if not messages:
        msg = "there is nothing to record: give user=, assistant=, tool_calls= or messages="
        raise InputError(msg)
    turns = build_turns(messages, reading)
    turn = with_parts(
        with_status(turns[0], status),
        context_files=_records("context_files", said.context_files, reading),
        changes=_records("changes", said.changes, reading),
        checkpoints=_records("checkpoints", said.checkpoints, reading),
        time=turns[0].started_at,
        reading=reading,
    )
    return msgspec.structs.replace(turn, request_id=None if said.request_id is None else reading.cleaner.text(said.request_id))


def _messages(said: Said, reading: Reading) -> list[RawMessage]:
    clean = reading.cleaner.text
    time = said.timestamp
    messages: list[RawMessage] = []
    if said.system is not None:
        messages.append(RawMessage(role="system", text=clean(said.system), timestamp=time))
    if said.user is not None:
        messages.append(RawMessage(role="user", text=clean(said.user), timestamp=time))
    calls = [read_call(call, reading.notes) for call in _records("tool_calls", said.tool_calls, reading)]
    if said.assistant is not None or said.reasoning is not None or calls:
        answer = RawMessage(role="assistant", text=clean(said.assistant or ""), timestamp=time)
        answer.reasoning = clean(said.reasoning) if said.reasoning else None
        answer.calls = [call for call in calls if call is not None]
        messages.append(answer)
    return messages


def _records(name: str, given: Sequence[Any], reading: Reading) -> list[dict[str, Any]]:
    if isinstance(given, str | bytes | dict):
        msg = f"{name} is a list of objects, not {type(given).__name__}"
        raise InputError(msg)
    cleaned = cast("list[Any]", reading.cleaner.value(list(given)))
    unreadable = sum(not isinstance(item, dict) for item in cleaned)
    if unreadable:
        msg = f"{name} holds {unreadable} item{'s' * (unreadable > 1)} that {'are' if unreadable > 1 else 'is'} no object: give dicts"
        raise InputError(msg)
    return cast("list[dict[str, Any]]", cleaned)
