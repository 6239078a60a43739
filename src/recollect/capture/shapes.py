"""One message, in any of the shapes agents use, → one `RawMessage`; the second step of capture.

Read here: OpenAI chat messages, OpenAI Responses items, Anthropic content blocks, and the memory-layer payload of
FORMATS §1, whose messages may hold a summary and a hash instead of a content. Values are clean by now.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.engine import ROLES as ENGINE_ROLES
from recollect.capture.engine import context_records, records_of
from recollect.limits import INTEGER_MAX

if TYPE_CHECKING:
    from collections import Counter

_TEXT_BLOCKS = frozenset({"text", "input_text", "output_text", "summary_text", "refusal"})
_REASONING_BLOCKS = frozenset({"thinking", "reasoning"})
_CALL_BLOCKS = frozenset({"tool_use", "server_tool_use", "function_call", "custom_tool_call", "mcp_call"})
_RESULT_BLOCKS = frozenset({"tool_result", "function_call_output", "custom_tool_call_output", "web_search_tool_result"})
_IMAGE_BLOCKS = frozenset({"image", "image_url", "input_image"})
_RESULT_ROLES = frozenset({"tool", "function"})
KNOWN_ROLES = frozenset({"user", "assistant", "system", "developer", "tool", "function", "plain_text", "cd_instruction", *ENGINE_ROLES})
_MESSAGE_NAMES = frozenset({
    "role", "content", "content_summary", "content_hash", "tool_calls", "function_call", "checkpoints",
    "reasoning", "reasoning_content", "thinking_blocks",
})  # fmt: skip
_CALL_NAMES = (
    "id", "call_id", "tool_call_id", "tool_use_id", "name", "tool_name", "tool", "function", "arguments", "input", "args", "parameters",
    "result", "output", "error", "content_hash", "result_hash",
)  # fmt: skip
_WELL = "success succeeded completed done ok"
_BADLY = "failed failure error timeout timed_out cancelled canceled denied rejected aborted interrupted"
_OUTCOMES: dict[str, bool] = {word: well for words, well in ((_WELL, True), (_BADLY, False)) for word in words.split()}
_TRUE_WORDS = frozenset({"true", "1", "yes", "ok", "success"})


class RawCall(msgspec.Struct, kw_only=True):
    """A tool call as it was sent."""

    call_id: str | None
    name: str
    arguments: Any = None
    arguments_hash: str | None = None
    result: Any = None
    error: str | None = None
    has_result: bool = False
    success: bool | None = None
    duration_ms: float | None = None
    timestamp: Any = None
    diff_chunk_id: str | None = None
    result_hash: str | None = None
    result_size_bytes: int | None = None
    accessed: list[Any] = msgspec.field(default_factory=list[Any])


class RawResult(msgspec.Struct, kw_only=True):
    """A tool's result as it was sent."""

    call_id: str | None
    name: str | None = None
    content: Any = None
    failed: bool | None = None
    timestamp: Any = None
    content_hash: str | None = None
    size_bytes: int | None = None
    duration_ms: float | None = None


class RawMessage(msgspec.Struct, kw_only=True):
    """A message as it was sent, whatever its shape."""

    role: str
    text: str | None = None
    reasoning: str | None = None
    summary: str | None = None
    given_hash: str | None = None
    given_bytes: int | None = None
    timestamp: Any = None
    token_count: int | None = None
    prompt_tokens: int | None = None
    finish_reason: str | None = None
    model: str | None = None
    calls: list[RawCall] = msgspec.field(default_factory=list[RawCall])
    results: list[RawResult] = msgspec.field(default_factory=list[RawResult])
    checkpoints: list[Any] = msgspec.field(default_factory=list[Any])
    context_files: list[dict[str, Any]] = msgspec.field(default_factory=list[dict[str, Any]])
    chunks: list[tuple[str | None, list[dict[str, Any]]]] = msgspec.field(default_factory=list[tuple[str | None, list[dict[str, Any]]]])

    @property
    def is_empty(self) -> bool:
        """Whether it says nothing at all."""
        return not (self.text or self.summary or self.given_hash or self.reasoning or self.calls or self.results)


def read_message(item: object, notes: Counter[str]) -> RawMessage | None:
    """Read one message; None, and a note, for what is no message."""
    if not isinstance(item, dict):
        notes["not_a_message"] += 1
        return None
    record = cast("dict[str, Any]", item)
    if "role" not in record and isinstance(record.get("message"), dict):
        record = {**record, **record["message"]}
    block = record.get("type")
    if "role" not in record and isinstance(block, str) and block != "message":
        return _read_item(record, block, notes)
    if _MESSAGE_NAMES.isdisjoint(record):
        notes["not_a_message"] += 1
        return None
    message = RawMessage(role=_role(record.get("role"), notes))
    message.timestamp = _first(record, "timestamp", "created_at", "time")
    message.summary = as_text(record.get("content_summary"))
    message.given_hash = as_text(record.get("content_hash"))
    message.given_bytes = as_int(record.get("content_bytes"))
    message.token_count = as_int(_first(record, "completion_tokens", "token_count"))
    message.prompt_tokens = as_int(record.get("prompt_tokens"))
    message.finish_reason = as_text(record.get("finish_reason") or record.get("stop_reason"))
    message.model = as_text(record.get("model"))
    _read_usage(record.get("usage"), message)
    _read_content(record, message, notes)
    _add_reasoning(message, record)
    for call in _as_list(record.get("tool_calls"), "tool_calls", notes):
        if (raw := read_call(call, notes)) is not None:
            message.calls.append(raw)
    if isinstance(record.get("function_call"), dict) and (raw := read_call(record["function_call"], notes)) is not None:
        message.calls.append(raw)
    message.checkpoints = _as_list(record.get("checkpoints"), "checkpoints", notes)
    return message


def _role(value: object, notes: Counter[str]) -> str:
    role = value.strip().lower() if isinstance(value, str) and value.strip() else "unknown"
    if role not in KNOWN_ROLES:
        notes["unknown_roles"] += 1
    return role[:40]


def _read_item(record: dict[str, Any], block: str, notes: Counter[str]) -> RawMessage | None:
    """Read a Responses item, or a content block that came without its message."""
    message = RawMessage(role="assistant", timestamp=_first(record, "timestamp", "created_at"))
    if not _read_block(record, block, message, notes):
        notes["unknown_items"] += 1
        return None
    if message.results:
        message.role = "tool"
    elif message.text is not None and block.startswith("input_"):
        message.role = "user"
    return message


def _read_usage(usage: object, message: RawMessage) -> None:
    asked, answered = token_counts(usage)
    message.token_count = answered or message.token_count
    message.prompt_tokens = asked or message.prompt_tokens


def token_counts(usage: object) -> tuple[int | None, int | None]:
    """Return how many tokens were asked with and answered with, under the names that vendors use for them."""
    counts = cast("dict[str, Any]", usage) if isinstance(usage, dict) else {}
    return as_int(_first(counts, "prompt_tokens", "input_tokens")), as_int(_first(counts, "completion_tokens", "output_tokens"))


def _add_reasoning(message: RawMessage, record: dict[str, Any]) -> None:
    given = _first(record, "reasoning", "reasoning_content")
    text = flat_text(given) if given is not None else ""
    for block in cast("list[Any]", record.get("thinking_blocks")) if isinstance(record.get("thinking_blocks"), list) else []:
        text = _joined(text, flat_text(block))
    if text:
        message.reasoning = _joined(message.reasoning, text)


def _read_content(record: dict[str, Any], message: RawMessage, notes: Counter[str]) -> None:
    content = record.get("content")
    if message.role in ENGINE_ROLES:
        _read_engine_content(record, message, notes)
        return
    if message.role in _RESULT_ROLES:
        nested = cast("dict[str, Any]", content) if isinstance(content, dict) and "tool_call_id" in content else record
        message.results.append(
            RawResult(
                call_id=as_id(_first(nested, "tool_call_id", "tool_use_id", "call_id")),
                name=as_text(nested.get("name") or record.get("name")),
                content=nested.get("content"),
                failed=_failed(told_success(nested), told_success(record)),
                timestamp=message.timestamp,
                content_hash=as_text(nested.get("content_hash")) if nested.get("content") is None else None,
                size_bytes=as_int(nested.get("result_size_bytes")),
                duration_ms=_duration(record),
            ),
        )
        return
    if isinstance(content, list):
        for block in cast("list[Any]", content):
            if isinstance(block, str):
                message.text = _joined(message.text, block)
            elif isinstance(block, dict):
                kind = as_text(cast("dict[str, Any]", block).get("type")) or ""
                if not _read_block(cast("dict[str, Any]", block), kind, message, notes):
                    notes["unknown_blocks"] += 1
            elif block is not None:
                notes["unknown_blocks"] += 1
    elif content is not None:
        message.text = flat_text(content)


def _read_engine_content(record: dict[str, Any], message: RawMessage, notes: Counter[str]) -> None:
    """Read files given as context, or the chunks of a diff, which answers the call that made it."""
    if message.role == "context_file":
        message.context_files = context_records(record.get("content"))
        notes["context_files_unreadable"] += not message.context_files and bool(record.get("content"))
        return
    content = record.get("content")
    nested = cast("dict[str, Any]", content) if isinstance(content, dict) and "tool_call_id" in content else record
    chunks = records_of(nested.get("content"))
    notes["diffs_unreadable"] += not chunks and bool(nested.get("content"))
    call_id = as_id(nested.get("tool_call_id"))
    message.chunks = [(call_id, chunks)]
    told = [as_text(chunk.get("application_details")) for chunk in chunks]
    said = "\n".join(text for text in told if text)
    failed = _failed(told_success(nested), told_success(record)) or False
    message.results.append(RawResult(call_id=call_id, content=said, failed=failed, timestamp=message.timestamp))


def _read_block(block: dict[str, Any], kind: str, message: RawMessage, notes: Counter[str]) -> bool:
    """Read one content block into its message; False when its kind is unknown."""
    if kind in _TEXT_BLOCKS:
        message.text = _joined(message.text, flat_text(_first(block, "text", "refusal")))
    elif kind in _REASONING_BLOCKS:
        shown = _first(block, "thinking", "summary", "text", "content")
        message.reasoning = _joined(message.reasoning, flat_text(shown)) or None
    elif kind == "redacted_thinking":
        notes["sealed_reasoning"] += 1
    elif kind in _CALL_BLOCKS:
        if (call := read_call(block, notes)) is not None:
            message.calls.append(call)
    elif kind in _RESULT_BLOCKS:
        message.results.append(
            RawResult(
                call_id=as_id(_first(block, "tool_use_id", "call_id", "tool_call_id", "id")),
                content=_first(block, "content", "output"),
                failed=as_bool(block.get("is_error")),
            ),
        )
    elif kind in _IMAGE_BLOCKS:
        message.text = _joined(message.text, _image_mark(block))
    elif isinstance(block.get("m_type"), str) or isinstance(block.get("text"), str):
        message.text = _joined(message.text, flat_text(block))
    else:
        return False
    return True


def _image_mark(block: dict[str, Any]) -> str:
    source = block.get("source")
    url = block.get("image_url")
    url = cast("dict[str, Any]", url).get("url") if isinstance(url, dict) else url
    media = cast("dict[str, Any]", source).get("media_type") if isinstance(source, dict) else None
    if media is None and isinstance(url, str) and url.startswith("data:"):
        media = url[5:].split(";", 1)[0]
    if media is None and isinstance(url, str):
        return f"[image: {url[:200]}]"
    return f"[image: {media or 'unknown type'}]"


def read_call(item: object, notes: Counter[str]) -> RawCall | None:
    """Read one tool call: chat, Responses, Anthropic, the payload's own, or `record(tool_calls=[…])`."""
    if not isinstance(item, dict):
        notes["not_a_tool_call"] += 1
        return None
    record = cast("dict[str, Any]", item)
    if not any(record.get(name) is not None for name in _CALL_NAMES):
        notes["not_a_tool_call"] += 1
        return None
    inner = record.get("function")
    named = cast("dict[str, Any]", inner) if isinstance(inner, dict) else record
    name = as_text(_first(named, "name", "tool_name", "tool"))
    if not name and isinstance(inner, str):
        name = inner
    if not name:
        notes["unnamed_tool_calls"] += 1
        name = "unknown"
    call = RawCall(call_id=as_id(_first(record, "call_id", "tool_call_id", "id")), name=name)
    call.arguments = _first(named, "arguments", "input", "args", "parameters")
    call.arguments_hash = as_text(_first(record, "arguments_hash", "args_hash"))
    call.accessed = cast("list[Any]", record["accessed"]) if isinstance(record.get("accessed"), list) else []
    _read_outcome(record, call)
    return call


def _read_outcome(record: dict[str, Any], call: RawCall) -> None:
    result, error = _first(record, "result", "output"), record.get("error")
    if isinstance(result, dict) and {"success", "result_size_bytes"} & set(cast("dict[str, Any]", result)):
        given = cast("dict[str, Any]", result)
        result, error = given.get("result"), given.get("error")
        call.success = as_bool(given.get("success"))
        call.result_hash = as_text(_first(given, "source_hash", "content_hash")) if result is None else None
        call.result_size_bytes = as_int(given.get("result_size_bytes"))
        call.has_result = True
    call.result = result
    call.error = flat_text(error) if error is not None else None
    call.has_result = call.has_result or result is not None or error is not None
    success = told_success(record)
    if success is None and call.error:
        success = False
    call.success = success if success is not None else call.success
    if result is None and (own_hash := as_text(_first(record, "result_hash", "content_hash"))) is not None:
        call.result_hash, call.has_result = own_hash, True
        call.result_size_bytes = as_int(record.get("result_size_bytes"))
    call.duration_ms = _duration(record)
    call.timestamp = record.get("timestamp")
    call.diff_chunk_id = as_id(record.get("diff_chunk_id"))


def told_success(record: dict[str, Any]) -> bool | None:
    """Return what a sender says of a call or its result, by whichever flag; that it failed is believed first, None is unknown."""
    failed = as_bool(_first(record, "tool_failed", "is_error"))
    if failed:
        return False
    success, status = as_bool(record.get("success")), as_text(record.get("status"))
    if success is None and status is not None:
        success = _OUTCOMES.get(status.lower())
    return True if success is None and failed is not None else success


def _failed(*successes: bool | None) -> bool | None:
    """Return whether the first who says so says that it failed."""
    return next((not success for success in successes if success is not None), None)


def _duration(record: dict[str, Any]) -> float | None:
    """Return how long something took in milliseconds; less than none is unknown."""
    duration_ms = as_float(_first(record, "duration_ms", "execution_time_ms"))
    return None if duration_ms is None or duration_ms < 0 else duration_ms


def parsed_arguments(arguments: object) -> dict[str, Any] | None:
    """Return arguments as an object: JSON text is parsed, also when it was encoded twice; the rest goes under `input`."""
    value: Any = arguments
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {"input": arguments} if arguments else None
    if value is None or value == "":
        return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {"input": value}


def flat_text(value: object) -> str:
    """Return any content as text: strings as they are, blocks by their text, the rest as JSON."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(text for item in cast("list[Any]", value) if (text := flat_text(item)))
    if isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        if as_text(record.get("type")) in _IMAGE_BLOCKS:
            return _image_mark(record)
        if isinstance(kind := record.get("m_type"), str) and kind != "text":
            return f"[image: {kind}]"
        for key in ("text", "thinking", "content", "m_content"):
            if isinstance(record.get(key), str):
                return str(record[key])
    return json.dumps(value, ensure_ascii=False, default=str)


def _first(record: dict[str, Any], *keys: str) -> Any:
    for key in keys:  # a loop is faster here, where every message and call passes
        value = record.get(key)
        if value is not None:
            return value
    return None


def _joined(before: str | None, text: str) -> str:
    return f"{before}\n{text}" if before and text else (before or text)


def _as_list(value: object, name: str, notes: Counter[str]) -> list[Any]:
    if value is None:
        return []
    if isinstance(value, list):
        return cast("list[Any]", value)
    notes[f"{name}_not_a_list"] += 1
    return []


def as_text(value: object) -> str | None:
    """Return a non-empty string or None."""
    return value if isinstance(value, str) and value else None


def as_id(value: object) -> str | None:
    """Return an id as text; numbers are ids too."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    if isinstance(value, int):
        return str(value) if -INTEGER_MAX <= value <= INTEGER_MAX else None
    return value if isinstance(value, str) else None


def as_int(value: object) -> int | None:
    """Return a whole number or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= INTEGER_MAX else None
    if isinstance(value, str) and len(value) < 19 and value.strip().removeprefix("-").isdecimal():  # noqa: PLR2004  fits 64 bits
        return int(value)
    return value if isinstance(value, int) and -INTEGER_MAX <= value <= INTEGER_MAX else None


def as_float(value: object) -> float | None:
    """Return a number or None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def as_bool(value: object) -> bool | None:
    """Return a truth value or None."""
    if isinstance(value, str):
        return value.strip().lower() in _TRUE_WORDS
    return value if isinstance(value, bool) else None
