"""One turn in a user's own words and parts (`record(user=…, tool_calls=[…])`) → a turn without a place yet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.capture.messages import read_turns
from recollect.capture.payload import with_parts
from recollect.capture.shapes import RawMessage, read_call
from recollect.capture.turns import build_turns, with_status
from recollect.checks import checked_text
from recollect.errors import InputError

if TYPE_CHECKING:
    from recollect.capture.reading import Reading
    from recollect.model import Turn, TurnStatus


_TEXTS = ("user", "assistant", "system", "reasoning", "request_id")


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
    for name in _TEXTS:
        value = getattr(said, name)
        if value is not None and not isinstance(value, str):
            msg = f"{name} is text, not {type(value).__name__}: pass a list of messages as messages="
            raise InputError(msg)
    said = _cleaned(said, reading)
    messages = _messages(said, reading)
    if not any(message.text or message.calls or message.reasoning for message in messages):
        msg = "there is nothing to record: give what the user said, what was answered, tool calls or a list of messages"
        raise InputError(msg)
    turns = build_turns(messages, reading)
    turn = with_parts(
        with_status(turns[0], status),
        context_files=[_records("context_files", said.context_files)],
        changes=_records("changes", said.changes),
        checkpoints=_records("checkpoints", said.checkpoints),
        time=turns[0].started_at,
        reading=reading,
    )
    for name in _LISTS:
        if reading.notes[f"{name}_unreadable"] or reading.notes[f"code_{name}_unreadable"]:
            msg = f"{name} holds an item that cannot be read: each names its file_path, a checkpoint its git_hash"
            raise InputError(msg)
    return msgspec.structs.replace(turn, request_id=said.request_id)


def listed_turns(said: Said, messages: Sequence[Any], reading: Reading) -> list[Turn]:
    """Build the turns of a list of messages, which takes the place of everything but the request's id."""
    beside = [name for name in ("user", "assistant", "system", "reasoning", *_LISTS) if getattr(said, name)]
    if beside:
        msg = f"messages holds all that was said: put {beside[0]} into it, or leave messages out"
        raise InputError(msg)
    turns = read_turns(messages, reading)
    if not turns:
        msg = "messages holds no message: give at least one"
        raise InputError(msg)
    request_id = None if said.request_id is None else reading.cleaner.text(checked_text("request_id", said.request_id))
    return [msgspec.structs.replace(turn, request_id=request_id) for turn in turns]


_LISTS = ("tool_calls", "context_files", "changes", "checkpoints")


def _cleaned(said: Said, reading: Reading) -> Said:
    """Clean all of it, in one pass when there is nothing to clean."""
    for name in _LISTS:
        given = getattr(said, name)
        if isinstance(given, str | bytes | dict):
            msg = f"{name} is a list of objects, not {type(given).__name__}"
            raise InputError(msg)
    parts = [list(getattr(said, name)) for name in _LISTS]
    if reading.cleaner.is_clean([said.user, said.assistant, said.system, said.reasoning, said.request_id, *parts]):
        return said
    cleaned: dict[str, Any] = {name: reading.cleaner.value(part) for name, part in zip(_LISTS, parts, strict=True)}
    for name in _TEXTS:
        text = getattr(said, name)
        cleaned[name] = None if text is None else reading.cleaner.text(text)
    return msgspec.structs.replace(said, **cleaned)


def _messages(said: Said, reading: Reading) -> list[RawMessage]:
    time = said.timestamp
    messages: list[RawMessage] = []
    if said.system is not None:
        messages.append(RawMessage(role="system", text=said.system, timestamp=time))
    if said.user is not None:
        messages.append(RawMessage(role="user", text=said.user, timestamp=time))
    calls = [read_call(call, reading.notes) for call in _records("tool_calls", said.tool_calls)]
    if said.assistant is not None or said.reasoning is not None or calls:
        answer = RawMessage(role="assistant", text=said.assistant or "", timestamp=time)
        answer.reasoning = said.reasoning or None
        answer.calls = [call for call in calls if call is not None]
        messages.append(answer)
    return messages


def _records(name: str, given: Sequence[Any]) -> list[dict[str, Any]]:
    unreadable = sum(not isinstance(item, dict) for item in given)
    if unreadable:
        msg = f"{name} holds {unreadable} item{'s' * (unreadable > 1)} that {'are' if unreadable > 1 else 'is'} no object: give dicts"
        raise InputError(msg)
    return list(given)
