"""Raw messages → turns: grouped at each user message, tool calls joined to their results; the third step of capture.

A turn built here has no ids, index or sequence yet: the store places it (`placing`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.changes import changes_of_call, changes_of_chunks
from recollect.capture.files import accessed_files
from recollect.capture.parts import read_checkpoint, read_context_file
from recollect.capture.shapes import RawCall, RawMessage, RawResult, flat_text, parsed_arguments
from recollect.errors import TooLargeError
from recollect.identity import HASH_PREFIX, canonical, content_hash
from recollect.limits import (
    ACCESSES_PER_CALL_MAX,
    ARGUMENT_CHARS_MAX,
    ERROR_CHARS_MAX,
    ID_CHARS_MAX,
    INTEGER_MAX,
    MESSAGE_CHARS_MAX,
    NAME_CHARS_MAX,
    REASONING_CHARS_MAX,
    RESULT_CHARS_MAX,
    SUMMARY_CHARS_MAX,
    TURN_MESSAGES_MAX,
    TURN_PARTS_MAX,
    TURN_TOOL_CALLS_MAX,
)
from recollect.model import CallStatus, CodeChange, ContextFile, FileAccess, Message, ToolCall, ToolResult, Turn, TurnStatus
from recollect.text import cut, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from recollect.capture.reading import Reading
    from recollect.model import Json

_FAILURE = re.compile(r"\s*(?:<tool_use_error>|(?:error|traceback|exception|fatal|failed)\b\s*[:(]|exit code:? [1-9])", re.IGNORECASE)
_LEAF_CHARS_MIN = 200
SILENT_ROLES = frozenset({"tool", "function", "context_file", "diff"})  # what they bring is no message of the turn


def build_turns(messages: Iterable[RawMessage], reading: Reading) -> list[Turn]:
    """Group messages into turns: a user message and everything up to the next one; what comes first starts one too.

    Files that stand between an answer that called no tool and a user's message were given with that message.
    """
    drafts: list[_Draft] = []
    given: list[RawMessage] = []
    for message in messages:
        if message.role == "context_file" and drafts and drafts[-1].has_answered:
            given.append(message)
            continue
        starts = message.role == "user" and not (message.results and not message.text)
        if not drafts or (starts and drafts[-1].has_begun):
            if message.results and drafts:
                drafts[-1].take_results(message.results)
                message.results = []
            drafts.append(_Draft(reading, drafts[-1] if drafts else None))
        for one in [*given, message]:
            drafts[-1].take(one)
        given = []
    for one in given:
        drafts[-1].take(one)
    turns = [draft.turn() for draft in drafts if draft.messages or draft.calls]
    if turns and not (turns[-1].tool_calls or any(message.role == "assistant" for message in turns[-1].messages)):
        turns[-1] = msgspec.structs.replace(turns[-1], status="open")
    return turns


class _Draft:
    """A turn while its messages come in."""

    def __init__(self, reading: Reading, before: _Draft | None) -> None:
        self.reading = reading
        self.before = before
        self.messages: list[RawMessage] = []
        self.calls: list[tuple[RawCall, int, int]] = []  # call, its message's place in the turn, iteration
        self.iteration = -1
        self.has_answered = False  # whether what came last was an answer that called no tool
        self.given: list[tuple[dict[str, Any], Any]] = []  # files given as context, each with its time
        self.chunks: list[tuple[str | None, list[dict[str, Any]]]] = []

    @property
    def has_begun(self) -> bool:
        """Whether a user has spoken or an agent answered; leading system messages belong to the turn that follows."""
        return bool(self.calls) or any(message.role not in {"system", "developer"} for message in self.messages)

    def take(self, message: RawMessage) -> None:
        """Add a message, its calls and its results."""
        if len(self.messages) >= TURN_MESSAGES_MAX or len(self.calls) >= TURN_TOOL_CALLS_MAX:
            msg = f"a turn has more than {TURN_MESSAGES_MAX:,} messages or {TURN_TOOL_CALLS_MAX:,} tool calls: record it as several turns"
            raise TooLargeError(msg)
        self.take_results(message.results)
        self.has_answered = message.role == "assistant" and not (message.calls or message.results)
        source = {"source": "tool"} if self.calls else {}
        self.given += [({**source, **record}, message.timestamp) for record in message.context_files]
        self.chunks += message.chunks
        if message.role in SILENT_ROLES:
            return
        if message.is_empty and message.role == "assistant" and self.messages:
            self.reading.notes["empty_messages"] += 1
            return
        if message.results and not (message.text or message.calls or message.reasoning):
            return
        if message.calls:
            self.iteration += 1
        self.calls += [(call, len(self.messages), max(self.iteration, 0)) for call in message.calls]
        self.messages.append(message)

    def take_results(self, results: list[RawResult]) -> None:
        """Join results to calls: by id, in this turn or an earlier one, else to the first call that still waits."""
        for result in results:
            call = self._asked(result)
            if call is None:
                self.reading.notes["results_without_calls"] += 1
                call = RawCall(call_id=result.call_id, name=result.name or "unknown")
                self.calls.append((call, len(self.messages) - 1, max(self.iteration, 0)))
            call.result, call.has_result = result.content, True
            call.result_hash, call.result_size_bytes = result.content_hash or call.result_hash, result.size_bytes or call.result_size_bytes
            call.timestamp = call.timestamp or result.timestamp
            call.duration_ms = result.duration_ms if call.duration_ms is None else call.duration_ms
            if result.failed is not None:
                call.success = not result.failed

    def _asked(self, result: RawResult) -> RawCall | None:
        """Return the call that a result answers: one that waits, or one of the same id of which only the outcome was known."""
        calls = [call for call, _, _ in self.calls]
        if result.call_id is None:
            return next((call for call in calls if not call.has_result), None)
        same = [call for call in calls if call.call_id == result.call_id]
        found = next((call for call in same if not call.has_result), None)
        found = found or next((call for call in same if call.result is None or call.result == result.content), None)
        if found is not None or self.before is None:
            return found
        return self.before._asked(result)  # noqa: SLF001  the same class, one turn earlier

    def turn(self) -> Turn:
        """Build the turn."""
        reading = self.reading
        times = [reading.time(message.timestamp) for message in self.messages]
        known = [time for time in times if time is not None]
        started = known[0] if known else reading.now
        messages = [_message(raw, time or started) for raw, time in zip(self.messages, times, strict=True)]
        calls = [
            _tool_call(raw, reading, order, iteration, place, (times[place] if 0 <= place < len(times) else None) or started)
            for order, (raw, place, iteration) in enumerate(self.calls)
        ]
        last_known = max(known, default=started)
        prompt_tokens = [raw.prompt_tokens for raw in self.messages if raw.prompt_tokens is not None]
        completion_tokens = [raw.token_count for raw in self.messages if raw.token_count is not None and raw.role == "assistant"]
        return Turn(
            messages=tuple(messages),
            tool_calls=tuple(calls),
            char_count=char_count(messages, calls),
            started_at=started,
            ended_at=max(last_known, started),
            model=next((raw.model for raw in reversed(self.messages) if raw.model), None),
            finish_reason=next((raw.finish_reason for raw in reversed(self.messages) if raw.finish_reason), None),
            prompt_tokens=max(prompt_tokens, default=None),
            completion_tokens=min(sum(completion_tokens), INTEGER_MAX) if completion_tokens else None,
            context_files=self._context_files(started),
            changes=self._changes(calls, started),
            checkpoints=tuple(
                part for raw in self.messages for item in raw.checkpoints if (part := read_checkpoint(item, started, reading)) is not None
            ),
        )

    def _context_files(self, started: datetime) -> tuple[ContextFile, ...]:
        read = [read_context_file(record, self.reading.time(time) or started, self.reading) for record, time in self.given]
        self.reading.notes["context_files_unreadable"] += read.count(None)
        return tuple(part for part in read if part is not None)

    def _changes(self, calls: list[ToolCall], started: datetime) -> tuple[CodeChange, ...]:
        """Return the changes that diffs tell of, and those that the arguments of the other calls do."""
        place = self.reading.place
        found = [
            change for call_id, chunks in self.chunks for change in changes_of_chunks(chunks, place, tool_call_id=call_id, time=started)
        ]
        told = {call_id for call_id, chunks in self.chunks if chunks}
        for call in calls:
            if call.tool_call_id is None or call.tool_call_id not in told:
                found += changes_of_call(
                    call.tool_name, call.arguments, None if call.result is None else call.result.result, place,
                    tool_call_id=call.tool_call_id, diff_chunk_id=call.diff_chunk_id, time=call.timestamp,
                    succeeded=None if call.status == "unknown" else call.status == "success",
                )  # fmt: skip
        return tuple(found[:TURN_PARTS_MAX])


def _message(raw: RawMessage, time: datetime) -> Message:
    text = raw.text if raw.text is not None or raw.summary is not None or raw.given_hash is not None else ""
    if text is None:
        summary = shorten(raw.summary or "", SUMMARY_CHARS_MAX)
        own_hash = raw.given_hash if raw.given_hash and raw.given_hash.startswith(HASH_PREFIX) else content_hash(summary)
        content, size = None, raw.given_bytes or 0
    else:
        summary, own_hash, size = shorten(text, SUMMARY_CHARS_MAX), content_hash(text), len(text.encode())
        content = cut(text, MESSAGE_CHARS_MAX)
    return Message(
        role=raw.role,
        content=content,
        content_summary=summary,
        content_hash=own_hash,
        source_hash=_short(raw.given_hash),
        content_bytes=size,
        reasoning=cut(raw.reasoning, REASONING_CHARS_MAX) if raw.reasoning else None,
        token_count=raw.token_count,
        timestamp=time,
    )


def _tool_call(raw: RawCall, reading: Reading, order: int, iteration: int, place: int, said_at: datetime) -> ToolCall:
    arguments = parsed_arguments(raw.arguments)
    if isinstance(raw.arguments, str) and arguments is not None:  # what was text inside a text is only clean once it is parsed
        arguments = cast("dict[str, Json]", reading.cleaner.value(arguments))
    time = reading.time(raw.timestamp) or said_at
    result = _result(raw, time) if raw.has_result or raw.success is not None else None
    status: CallStatus = "unknown"
    if result is not None and result.success is not None:
        status = "success" if result.success else "failed"
    return ToolCall(
        message_id=str(place) if place >= 0 else None,
        tool_call_id=_short(raw.call_id),
        tool_name=raw.name[:NAME_CHARS_MAX],
        arguments=_cut_arguments(arguments),
        arguments_hash=content_hash(canonical(arguments)) if arguments is not None else (raw.arguments_hash or content_hash("")),
        source_hash=_short(raw.arguments_hash),
        status=status,
        duration_ms=raw.duration_ms,
        order=order,
        iteration=iteration,
        timestamp=time,
        diff_chunk_id=_short(raw.diff_chunk_id),
        result=result,
        accessed=_accessed(raw) or accessed_files(raw.name, arguments, result.result if result else None, reading.place),
    )


def _accessed(raw: RawCall) -> tuple[FileAccess, ...]:
    """Return the files a call touched as somebody told who saw its arguments."""
    try:
        return tuple(msgspec.convert(raw.accessed[:ACCESSES_PER_CALL_MAX], list[FileAccess]))
    except msgspec.ValidationError:
        return ()


def _result(raw: RawCall, time: datetime) -> ToolResult:
    text = flat_text(raw.result) if raw.result is not None else None
    success = raw.success
    if success is None:
        success = not (raw.error or (text is not None and _FAILURE.match(text)))
    whole = text if text is not None else (raw.error or "")
    own_hash = raw.result_hash or ""  # what nobody told has none
    if whole or text is not None:
        own_hash = content_hash(whole)
    return ToolResult(
        success=success,
        result=cut(text, RESULT_CHARS_MAX) if text is not None else None,
        error=cut(raw.error, ERROR_CHARS_MAX) if raw.error else None,
        result_size_bytes=len(whole.encode()) if whole or raw.result_size_bytes is None else raw.result_size_bytes,
        content_hash=own_hash,
        source_hash=_short(raw.result_hash),
        timestamp=time,
    )


def _short(text: str | None) -> str | None:
    return text[:ID_CHARS_MAX] if text else None


def _cut_arguments(arguments: dict[str, Any] | None) -> dict[str, Json] | None:
    if arguments is None:
        return None
    size = len(msgspec.json.encode(arguments))
    if size <= ARGUMENT_CHARS_MAX:
        return arguments
    room = max(ARGUMENT_CHARS_MAX // max(_leaves(arguments), 1), _LEAF_CHARS_MIN)
    return cast("dict[str, Json]", _cut_leaves(arguments, room))


def _leaves(value: object) -> int:
    if isinstance(value, dict):
        return sum(_leaves(item) for item in cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        return sum(_leaves(item) for item in cast("list[Any]", value))
    return 1


def _cut_leaves(value: object, room: int) -> Json:
    if isinstance(value, str):
        return cut(value, room)
    if isinstance(value, dict):
        return {key: _cut_leaves(item, room) for key, item in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [_cut_leaves(item, room) for item in cast("list[Any]", value)]
    return value


def char_count(messages: Iterable[Message], calls: Iterable[ToolCall]) -> int:
    """Count the characters of a turn as stored: messages, reasoning, arguments and results."""
    total = sum(len(message.content or message.content_summary) + len(message.reasoning or "") for message in messages)
    for call in calls:
        total += len(msgspec.json.encode(call.arguments)) if call.arguments is not None else 0
        if call.result is not None:
            total += len(call.result.result or "") + len(call.result.error or "")
    return total


def with_status(turn: Turn, status: TurnStatus) -> Turn:
    """Return the turn with another status."""
    return turn if turn.status == status else msgspec.structs.replace(turn, status=status)
