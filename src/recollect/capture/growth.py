"""An open turn and what came since → the turn with more in it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from recollect.capture.messages import read_turns
from recollect.capture.turns import char_count
from recollect.checks import checked_text
from recollect.errors import InputError
from recollect.identity import canonical, content_hash
from recollect.limits import ACCESSES_PER_CALL_MAX, INTEGER_MAX, NAME_CHARS_MAX, SYMBOLS_MAX, TURN_PARTS_MAX
from recollect.placing import unplaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.capture.reading import Reading
    from recollect.model import CodeChange, ContextFile, FileAccess, ToolCall, Turn

_replace = msgspec.structs.replace


def grown(current: Turn, messages: Sequence[Any], reading: Reading, related: Sequence[str] = ()) -> Turn:
    """Put messages after those of an open turn; results find the calls that wait for them, also those of earlier messages."""
    own = unplaced(current)
    if related:
        more = [reading.cleaner.text(checked_text("related", one))[:NAME_CHARS_MAX] for one in related]
        own = _replace(own, related_artifacts=tuple(dict.fromkeys([*own.related_artifacts, *more]))[:SYMBOLS_MAX])
    if not messages:
        return own
    waiting = [n for n, call in enumerate(own.tool_calls) if call.result is None]
    asked = {"role": "assistant", "content": "", "tool_calls": [_asked(own.tool_calls[n]) for n in waiting]}
    turns = read_turns([asked, *messages], reading)
    if any(message.role == "user" for turn in turns for message in turn.messages):
        msg = "a user's message begins a new turn: finish this one and begin another"
        raise InputError(msg)
    return _merged(own, turns[0], waiting)


def _asked(call: ToolCall) -> dict[str, Any]:
    """Return a call as it was made; arguments that are cut would tell of other edits."""
    is_whole = call.arguments is not None and content_hash(canonical(call.arguments)) == call.arguments_hash
    return {"call_id": call.tool_call_id or call.id, "name": call.tool_name, "arguments": call.arguments if is_whole else None}


def _merged(own: Turn, new: Turn, waiting: list[int]) -> Turn:
    """Join; the first calls of `new` are the turn's own waiting ones, and stand in its first message."""
    calls = list(own.tool_calls)
    for n, answered in zip(waiting, new.tool_calls, strict=False):
        if answered.result is not None:
            touched = _touched(answered.accessed, calls[n].accessed)
            took = answered.duration_ms if calls[n].duration_ms is None else calls[n].duration_ms
            calls[n] = _replace(calls[n], result=answered.result, status=answered.status, accessed=touched, duration_ms=took)
    rounds = max((call.iteration for call in calls), default=-1) + 1 - bool(waiting)
    for call in new.tool_calls[len(waiting) :]:
        place = None if call.message_id is None else str(max(int(call.message_id) - 1 + len(own.messages), 0))
        calls.append(_replace(call, message_id=place, iteration=call.iteration + rounds))
    messages = (*own.messages, *new.messages[1:])
    return _replace(
        own,
        messages=messages,
        tool_calls=tuple(calls),
        context_files=(*own.context_files, *_given(own, new))[:TURN_PARTS_MAX],
        changes=_changes(own, new, [calls[n] for n in waiting])[:TURN_PARTS_MAX],
        checkpoints=(*own.checkpoints, *new.checkpoints)[:TURN_PARTS_MAX],
        char_count=char_count(messages, calls),
        ended_at=max((time for time in (own.ended_at, new.ended_at) if time is not None), default=None),
        model=new.model or own.model,
        finish_reason=new.finish_reason or own.finish_reason,
        prompt_tokens=max((count for count in (own.prompt_tokens, new.prompt_tokens) if count is not None), default=None),
        completion_tokens=_sum(own.completion_tokens, new.completion_tokens),
    )


def _touched(answered: tuple[FileAccess, ...], asked: tuple[FileAccess, ...]) -> tuple[FileAccess, ...]:
    """Return the files of a call as its result tells them, and those that only its arguments told, which may not be kept."""
    known = {access.path for access in answered}
    return (*answered, *(access for access in asked if access.path not in known))[:ACCESSES_PER_CALL_MAX]


def _given(own: Turn, new: Turn) -> tuple[ContextFile, ...]:
    """Return the files that came since; what is given after a call was found by a tool, if nobody says otherwise."""
    if not own.tool_calls:
        return new.context_files
    return tuple(part if part.source is not None else _replace(part, source="tool") for part in new.context_files)


def _changes(own: Turn, new: Turn, asked: list[ToolCall]) -> tuple[CodeChange, ...]:
    """Return the changes of both; what a result tells of a call takes the place of what its arguments did, and a failed one's go."""
    by_id = {call.tool_call_id or call.id: call for call in asked}
    more = [_of_call(change, by_id.get(change.tool_call_id or "")) for change in new.changes]
    anew = {(change.tool_call_id, None if change.tool_call_id else change.file_path) for change in more}
    failed = {call.tool_call_id for call in asked if call.status == "failed"} - {None}
    kept = [
        change
        for change in own.changes
        if change.tool_call_id not in failed and (change.tool_call_id, None if change.tool_call_id else change.file_path) not in anew
    ]
    return (*kept, *more)


def _of_call(change: CodeChange, call: ToolCall | None) -> CodeChange:
    """Return a change as that of a call which was made before: under the id and at the time that call has."""
    return change if call is None else _replace(change, tool_call_id=call.tool_call_id, timestamp=call.timestamp)


def _sum(*counts: int | None) -> int | None:
    known = [count for count in counts if count is not None]
    return min(sum(known), INTEGER_MAX) if known else None
