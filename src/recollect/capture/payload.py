"""An engine's payload (FORMATS §1) → turns with their context files, changes and checkpoints; pure.

Everything is optional but the messages; what cannot be read is left out and noted, never the rest with it.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from recollect.capture.clean import Cleaner
from recollect.capture.pairing import each_change_once, paired
from recollect.capture.parts import (
    each_file_once,
    read_change,
    read_checkpoint,
    read_context_file,
    short_name,
    snapshot_folder,
    told_change,
)
from recollect.capture.paths import Place, place_of
from recollect.capture.reading import Reading
from recollect.capture.shapes import RawCall, as_bool, as_id, as_int, as_text, read_call, read_message, token_counts
from recollect.capture.turns import SILENT_ROLES, build_turns, with_status
from recollect.clock import SystemClock
from recollect.errors import InputError
from recollect.limits import ID_CHARS_MAX, PATH_CHARS_MAX, SYMBOLS_MAX, TURN_PARTS_MAX
from recollect.model import Checkpoint, CodeChange, ContextFile, Turn
from recollect.placing import Head, place_turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from recollect.capture.shapes import RawMessage

_Part = TypeVar("_Part", ContextFile, CodeChange, Checkpoint)


class Payload(msgspec.Struct, frozen=True, kw_only=True):
    """A whole request: its turns, and where they belong."""

    turns: tuple[Turn, ...]
    request_id: str | None = None
    project: str | None = None
    chat_id: str | None = None
    cwd: str | None = None
    agent: str | None = None
    title: str | None = None


def read_payload(document: object, reading: Reading) -> Payload:
    """Read one payload; raises InputError when it holds no message at all."""
    cleaned = reading.cleaner.payload(document)
    if not isinstance(cleaned, dict):
        msg = f"a payload is a JSON object with messages, not {_kind(document)}"
        raise InputError(msg)
    record = cast("dict[str, Any]", cleaned)
    meta = _meta(record)
    messages = _messages(record, reading)
    if reading.place == Place() and not as_text(record.get("cwd")):
        reading.place = _place_of_checkpoints(messages, record)
    _join_calls(messages, record, reading)
    sent_at = reading.time(record.get("created_at") if record.get("timestamp") is None else record["timestamp"])
    if sent_at is not None:
        for message in messages:
            message.timestamp = message.timestamp or sent_at
    turns = [with_status(turn, "complete") for turn in build_turns(messages, reading)]
    if not turns:
        msg = "the payload holds no message: send at least one under 'messages'"
        raise InputError(msg)
    turns = _with_usage(_with_parts(turns, record, sent_at, reading), record)
    for key in ("request_id", "project_id", "title", "agent", "cwd", "chat_id", "conversation_id"):
        reading.notes["fields_unreadable"] += record.get(key) is not None and as_id(record[key]) is None and record[key] != ""
    request_id = as_id(record.get("request_id"))
    request_id = request_id[:ID_CHARS_MAX] if request_id else None
    return Payload(
        turns=tuple(_with_request(turn, ordinal, request_id, record, meta) for ordinal, turn in enumerate(turns)),
        request_id=request_id,
        project=short_name(record.get("project_id")),
        chat_id=short_name(_chat_id(record, meta)),
        cwd=as_text(record.get("cwd")),
        agent=short_name(record.get("agent")),
        title=short_name(record.get("title")),
    )


def _place_of_checkpoints(messages: Sequence[RawMessage], record: dict[str, Any]) -> Place:
    """Return the folder whose snapshots a payload tells, which its paths are relative to when nobody says otherwise."""
    given = record.get("checkpoints")
    told = [one for message in messages for one in message.checkpoints] + (cast("list[Any]", given) if isinstance(given, list) else [])
    named = [snapshot_folder(cast("dict[str, Any]", one)) for one in told if isinstance(one, dict)]
    folders = {name for name in named if name is not None and name.startswith("/") and len(name) <= PATH_CHARS_MAX}
    if len(folders) != 1:
        return Place()
    folder = os.path.normpath(folders.pop())
    return Place(root=folder, cwd=folder)


def told_names(document: object) -> frozenset[str]:
    """Return by what a payload, not read yet, names its conversation and request: those that share one belong in their order."""
    if not isinstance(document, dict):
        return frozenset()
    record = cast("dict[str, Any]", document)
    named = (("chat", _chat_id(record, _meta(record))), ("request", record.get("request_id")))
    return frozenset(f"{kind}:{name}" for kind, name in named if name is not None)


def _chat_id(record: dict[str, Any], meta: dict[str, Any]) -> Any:
    return meta.get("chat_id") or record.get("chat_id") or record.get("conversation_id") or record.get("id")


def _meta(record: dict[str, Any]) -> dict[str, Any]:
    """Return what is said of the chat, under the names that the payload and the engine use for it."""
    given = next((record[name] for name in ("chat_meta", "meta", "metadata") if isinstance(record.get(name), dict)), {})
    own = {name: record[name] for name in ("chat_mode", "request_attempt_id", "base_chat_id") if record.get(name) is not None}
    return {"chat_mode": record.get("mode"), **own, **cast("dict[str, Any]", given)}


def engine_payload_to_turns(payload: object, *, cwd: str | None = None, now: datetime | None = None) -> list[Turn]:
    """Read one engine payload (FORMATS §1 or §2) into turns, secrets removed; `cwd` makes file paths relative to its project.

    What cannot be read is left out; `InputError` is raised only when there is no message at all.
    """
    from recollect.capture.secrets import default_redactor  # noqa: PLC0415  the rules load when something is to be cleaned

    reading = Reading(Cleaner(default_redactor()), now or SystemClock().now(), place_of(cwd))
    return place_turns(list(read_payload(payload, reading).turns), Head(conversation_id=""))


def _kind(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return f"a text of {len(value):,} characters"
    if isinstance(value, list):
        return "a list"
    return "an object" if isinstance(value, dict) else "a number or truth value"


def _messages(record: dict[str, Any], reading: Reading) -> list[RawMessage]:
    given = record.get("messages")
    if not isinstance(given, list):
        msg = f"'messages' is a list of messages, not {_kind(given)}"
        raise InputError(msg)
    indexed = [(n, item) for n, item in enumerate(cast("list[Any]", given))]
    if all(isinstance(item, dict) and as_int(cast("dict[str, Any]", item).get("sequence")) is not None for _, item in indexed):
        indexed.sort(key=lambda pair: (as_int(pair[1]["sequence"]) or 0, pair[0]))
    read = [read_message(item, reading.notes) for _, item in indexed]
    return [message for message in read if message is not None]


def _join_calls(messages: list[RawMessage], record: dict[str, Any], reading: Reading) -> None:
    """Join the payload's own list of tool calls to the calls its messages made, by id, each once.

    The rest hang from the last answer, or from the last one before their result, which then finds them.
    """
    made = {call.call_id: call for message in messages for call in message.calls if call.call_id is not None}
    answered: dict[str | None, int] = {}
    for n, message in enumerate(messages):
        for result in message.results:
            if result.call_id is not None:
                answered.setdefault(result.call_id, n)
    for item in _records(record, "tool_calls", reading):
        listed = read_call(item, reading.notes)
        if listed is None:
            continue
        call = made.get(listed.call_id) if listed.call_id is not None else None
        if call is not None:
            _fill(call, listed)
            continue
        host = _host(messages[: answered.get(listed.call_id)]) or _host(messages)
        if host is not None:
            host.calls.append(listed)
            made |= {listed.call_id: listed} if listed.call_id is not None else {}


def _host(messages: list[RawMessage]) -> RawMessage | None:
    """Return the message from which a call hangs that no message made: the last answer, else what was said last."""
    answer = next((one for one in reversed(messages) if one.role == "assistant"), None)
    return answer or next((one for one in reversed(messages) if one.role not in SILENT_ROLES), None)


def _fill(call: RawCall, listed: RawCall) -> None:
    """Add what a list of calls knows of a call that a message made, or that it named before."""
    if call.name == "unknown":
        call.name = listed.name
    if call.arguments is None:
        call.arguments = listed.arguments
    call.arguments_hash = call.arguments_hash or listed.arguments_hash
    if listed.has_result:
        call.result, call.error, call.has_result = listed.result, listed.error, True
        call.result_hash, call.result_size_bytes = listed.result_hash, listed.result_size_bytes
        call.accessed = call.accessed or listed.accessed
    call.success = listed.success if listed.success is not None else call.success
    call.duration_ms = listed.duration_ms if listed.duration_ms is not None else call.duration_ms
    call.timestamp = call.timestamp or listed.timestamp
    call.diff_chunk_id = call.diff_chunk_id or listed.diff_chunk_id


def _records(record: dict[str, Any], key: str, reading: Reading) -> list[dict[str, Any]]:
    given = record.get(key)
    if given is None:
        return []
    if not isinstance(given, list):
        reading.notes[f"{key}_not_a_list"] += 1
        return []
    items = cast("list[Any]", given)
    if len(items) > TURN_PARTS_MAX:
        reading.notes[f"{key}_over_limit"] += len(items) - TURN_PARTS_MAX
    kept = [cast("dict[str, Any]", item) for item in items[:TURN_PARTS_MAX] if isinstance(item, dict)]
    if len(kept) < min(len(items), TURN_PARTS_MAX):
        reading.notes[f"{key}_unreadable"] += min(len(items), TURN_PARTS_MAX) - len(kept)
    return kept


def read_parts(
    items: list[dict[str, Any]], read: Callable[[dict[str, Any]], _Part | None], name: str, reading: Reading
) -> tuple[_Part, ...]:
    """Read each record of a list; one that cannot be read is noted and left out."""
    parts = [read(item) for item in items]
    if None in parts:
        reading.notes[f"{name}_unreadable"] += parts.count(None)
    return tuple(part for part in parts if part is not None)


def _with_parts(turns: list[Turn], record: dict[str, Any], sent_at: datetime | None, reading: Reading) -> list[Turn]:
    """Give the parts to the turn they were used in: a change to that of its tool call, everything else to the last."""
    changes: dict[int, list[dict[str, Any]]] = {}
    for change in _records(record, "code_changes", reading):
        call_id = as_id(change.get("tool_call_id"))
        owners = [
            n for n, turn in enumerate(turns) if call_id is not None and any(call.tool_call_id == call_id for call in turn.tool_calls)
        ]
        changes.setdefault(owners[-1] if owners else len(turns) - 1, []).append(change)
    last = len(turns) - 1
    return [
        with_parts(
            turn,
            context_files=[_records(record, name, reading) for name in ("context", "context_files")] if n == last else [],
            changes=changes.get(n, []),
            checkpoints=_records(record, "checkpoints", reading) if n == last else [],
            time=sent_at or turn.started_at,
            reading=reading,
        )
        for n, turn in enumerate(turns)
    ]


def with_parts(
    turn: Turn,
    *,
    context_files: list[list[dict[str, Any]]],
    changes: list[dict[str, Any]],
    checkpoints: list[dict[str, Any]],
    time: datetime | None,
    reading: Reading,
) -> Turn:
    """Return the turn with its context files (lists of them, the last is believed first), changes and checkpoints read from clean records.

    A change that is told takes the place of what was worked out from its tool call, and is completed by it (`pairing`); a record
    that says from what it is `derived` was worked out before.
    """
    if not (any(context_files) or changes or checkpoints):
        return turn
    files = turn.context_files
    for items in context_files:
        files = each_file_once(files, read_parts(items, lambda item: read_context_file(item, time, reading), "context_files", reading))
    told = [one for one in changes if not _is_derived(one)]
    derived = [one for one in changes if _is_derived(one)]
    return msgspec.structs.replace(
        turn,
        context_files=files,
        changes=paired(
            each_change_once(read_parts(told, lambda item: told_change(item, time, reading), "code_changes", reading)),
            (*turn.changes, *read_parts(derived, lambda item: read_change(item, time, reading), "code_changes", reading)),
        ),
        checkpoints=turn.checkpoints + read_parts(checkpoints, lambda item: read_checkpoint(item, time, reading), "checkpoints", reading),
    )


def _is_derived(change: dict[str, Any]) -> bool:
    return change.get("derived") in ("call", "diff")


def _with_usage(turns: list[Turn], record: dict[str, Any]) -> list[Turn]:
    """Give the last turn the tokens of the model's response, where its messages do not tell theirs."""
    response = record.get("model_response")
    asked, answered = token_counts(cast("dict[str, Any]", response).get("usage") if isinstance(response, dict) else None)
    last = turns[-1]
    counted = msgspec.structs.replace(
        last,
        prompt_tokens=asked if last.prompt_tokens is None else last.prompt_tokens,
        completion_tokens=answered if last.completion_tokens is None else last.completion_tokens,
    )
    return [*turns[:-1], counted]


def _with_request(turn: Turn, ordinal: int, request_id: str | None, record: dict[str, Any], meta: dict[str, Any]) -> Turn:
    response = cast("dict[str, Any]", record["model_response"]) if isinstance(record.get("model_response"), dict) else {}
    artifacts = cast("list[Any]", record.get("related_artifacts")) if isinstance(record.get("related_artifacts"), list) else []
    failed = as_bool(record.get("failed")) or as_text(record.get("status")) in {"failed", "error"}
    return msgspec.structs.replace(
        turn,
        request_id=request_id,
        request_ordinal=ordinal if request_id is not None else 0,
        status="failed" if failed else turn.status,
        model=short_name(response.get("model") or record.get("model")) or turn.model,
        finish_reason=short_name(response.get("finish_reason")) or turn.finish_reason,
        chat_mode=short_name(meta.get("chat_mode")),
        request_attempt_id=short_name(meta.get("request_attempt_id")),
        base_chat_id=short_name(meta.get("base_chat_id")),
        related_artifacts=tuple(_artifact(item) for item in artifacts[:SYMBOLS_MAX]),
    )


def _artifact(item: object) -> str:
    return item[:PATH_CHARS_MAX] if isinstance(item, str) else msgspec.json.encode(item).decode()[:PATH_CHARS_MAX]
