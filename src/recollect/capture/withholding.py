"""What a project with privacy `summary` keeps: hashes, sizes and relations, and 200 characters of a message; pure.

Of a whole turn, or of a piece of a request before the rest of it is known. Nothing is kept because nobody thought of it:
each field that stays is named here, and every text but a path has at most 200 characters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.changes import changes_of_chunks, long_path_before
from recollect.capture.engine import context_records
from recollect.capture.files import is_shell
from recollect.capture.parts import told_change
from recollect.capture.shapes import RawCall, RawMessage, as_float, as_id, as_int, as_text, read_call, read_message
from recollect.capture.turns import build_turns, char_count
from recollect.identity import content_hash
from recollect.limits import NAME_CHARS_MAX, PATH_CHARS_MAX, SUMMARY_CHARS_MAX, SYMBOLS_MAX
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.capture.reading import Reading
    from recollect.capture.shapes import RawResult
    from recollect.capture.sketch import Piece
    from recollect.model import Checkpoint, CodeChange, ContextFile, FileAccess, Json, Message, ToolCall, Turn

_Item = dict[str, Any]
_replace = msgspec.structs.replace


def withheld(turn: Turn) -> Turn:
    """Return a turn without contents, arguments, results, diffs and reasoning; what was derived from them stays."""
    messages = tuple(_message(message) for message in turn.messages)
    calls = tuple(_call(call) for call in turn.tool_calls)
    return _replace(
        turn,
        messages=messages,
        tool_calls=calls,
        context_files=tuple(_context_file(part) for part in turn.context_files),
        changes=tuple(_change(change) for change in turn.changes),
        checkpoints=tuple(_checkpoint(part) for part in turn.checkpoints),
        model=_name(turn.model),
        chat_mode=_name(turn.chat_mode),
        finish_reason=_name(turn.finish_reason),
        request_attempt_id=_name(turn.request_attempt_id),
        base_chat_id=_name(turn.base_chat_id),
        related_artifacts=tuple(_referred(one) for one in turn.related_artifacts),
        char_count=char_count(messages, calls),
    )


def _message(message: Message) -> Message:
    return _replace(
        message,
        role=_named(message.role),
        content=None,
        reasoning=None,
        content_summary=shorten(message.content_summary, SUMMARY_CHARS_MAX) if message.content is None else _opening(message.content),
        content_hash=_referred(message.content_hash),
        source_hash=_reference(message.source_hash),
    )


def _opening(text: str) -> str:
    """Return the first 200 characters of a text on one line, and none beyond them, however much of those is blank."""
    line = " ".join(text[:SUMMARY_CHARS_MAX].split())
    return line if len(text) <= SUMMARY_CHARS_MAX else line[: SUMMARY_CHARS_MAX - 1].rstrip() + "…"


def _call(call: ToolCall) -> ToolCall:
    result = call.result
    kept = None
    if result is not None:
        hashes = {"content_hash": _referred(result.content_hash), "source_hash": _reference(result.source_hash)}
        kept = _replace(result, result=None, error=None, **hashes)
    return _replace(
        call,
        tool_name=_named(call.tool_name),
        tool_call_id=_id(call.tool_call_id),
        diff_chunk_id=_id(call.diff_chunk_id),
        arguments=None,
        arguments_hash=_referred(call.arguments_hash),
        source_hash=_reference(call.source_hash),
        result=kept,
        accessed=() if is_shell(call.tool_name) else tuple(one for one in call.accessed if _is_path(one)),
    )


def _is_path(access: FileAccess) -> bool:
    return access.path.isprintable() and len(access.path) <= PATH_CHARS_MAX


def _change(change: CodeChange) -> CodeChange:
    return _replace(
        change,
        change_type=_named(change.change_type),
        change_summary=_summed_up(change.change_summary),
        git_commit=_reference(change.git_commit),
        function_name=_name(change.function_name),
        code_before_hash=_reference(change.code_before_hash),
        code_after_hash=_reference(change.code_after_hash),
        diff=None,
        severity=_name(change.severity),
        language=_name(change.language),
        tool_call_id=_id(change.tool_call_id),
        diff_chunk_id=_id(change.diff_chunk_id),
    )


def _summed_up(summary: str | None) -> str | None:
    if summary is None or long_path_before(summary) is not None:
        return summary
    return shorten(summary, SUMMARY_CHARS_MAX)


def _context_file(part: ContextFile) -> ContextFile:
    return _replace(
        part,
        source=_name(part.source),
        symbols=tuple(_named(one) for one in part.symbols),
        content_hash=_reference(part.content_hash),
        language=_name(part.language),
    )


def _checkpoint(part: Checkpoint) -> Checkpoint:
    return _replace(
        part,
        checkpoint_id=_name(part.checkpoint_id),
        git_hash=_reference(part.git_hash),
        parent_checkpoint=_name(part.parent_checkpoint),
    )


def _named(text: str) -> str:
    return text if len(text) <= NAME_CHARS_MAX else shorten(text, NAME_CHARS_MAX)


def _name(text: str | None) -> str | None:
    return None if text is None else _named(text)


def _id(text: str | None) -> str | None:
    """Return an id that the rest of a turn names alike, too; one that is a text rather than an id goes by its hash."""
    return text if text is None or len(text) <= NAME_CHARS_MAX else content_hash(text)


def _referred(text: str) -> str:
    return text if not text or _is_reference(text) else content_hash(text)


def _reference(text: str | None) -> str | None:
    return None if text is None else _referred(text)


def _is_reference(text: str) -> bool:
    return len(text) <= NAME_CHARS_MAX and not any(character.isspace() or character in "{[" for character in text)


def withheld_piece(piece: Piece, items: list[_Item], reading: Reading) -> list[tuple[Piece, list[_Item]]]:
    """Return what is kept of the items of a piece: the piece, and what else can be told from it while its texts are known."""
    if piece == "messages":
        return _messages_piece(items, reading)
    if piece == "tool-calls":
        calls, changes = _calls_piece([(item, read_call(item, reading.notes)) for item in items], reading)
        return [("tool-calls", calls), ("code-changes", changes)]
    if piece == "tool-results":
        return [("tool-results", [_result_item(item, reading) for item in items])]
    if piece == "code-changes":
        read = [(item, told_change(item, None, reading)) for item in items]
        return [("code-changes", [{**_ids(item, "id"), **_plain(change, reading)} for item, change in read if change is not None])]
    if piece == "context":
        return [("context", [_context_item(item) for item in context_records(items)])]
    if piece == "checkpoints":
        return [("checkpoints", [_checkpoint_item(item) for item in items])]
    return [(piece, [])]


_CONTEXT_NAMES = ("source", "language", "content_hash")
_CONTEXT_NUMBERS = ("line_start", "line_end", "line1", "line2")
_CHECKPOINT_NAMES = ("checkpoint_id", "id", "git_hash", "commit_hash", "parent_checkpoint")


def _context_item(item: _Item) -> _Item:
    symbols = cast("list[Any]", item["symbols"]) if isinstance(item.get("symbols"), list) else []
    return _known(
        **{name: _path_text(item.get(name)) for name in ("file_path", "file_name", "path")},
        **{name: _name(as_text(item.get(name))) for name in _CONTEXT_NAMES},
        **{name: as_int(item.get(name)) for name in _CONTEXT_NUMBERS},
        usefulness=as_float(item.get("usefulness")),
        symbols=[_named(one) for one in symbols[:SYMBOLS_MAX] if isinstance(one, str)] or None,
        timestamp=_time(item.get("timestamp")),
    )


def _checkpoint_item(item: _Item) -> _Item:
    return _known(
        **{name: _name(as_id(item.get(name))) for name in _CHECKPOINT_NAMES},
        **{name: _path_text(item.get(name)) for name in ("workspace_dir", "workspace_folder")},
        timestamp=_time(item.get("timestamp")),
    )


def _path_text(value: object) -> str | None:
    text = as_text(value)
    return text if text is not None and len(text) <= PATH_CHARS_MAX and "\n" not in text else None


def _time(value: object) -> Json:
    return value if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _TIME_CHARS_MAX) else None


_TIME_CHARS_MAX = 64


def _ids(item: _Item, *names: str) -> _Item:
    """Return the ids under which a piece is known, so that the same again finds its place."""
    return _known(**{name: _id(as_id(item.get(name))) for name in names})


def _messages_piece(items: list[_Item], reading: Reading) -> list[tuple[Piece, list[_Item]]]:
    messages: list[_Item] = []
    calls_changes: list[_Item] = []
    results: list[_Item] = []
    for item in items:
        raw = read_message(item, reading.notes)
        if raw is None:
            continue
        for call_id, chunks in raw.chunks:
            shown = changes_of_chunks(chunks, reading.place, tool_call_id=call_id, time=None)
            calls_changes += [_plain(one, reading) | {"derived": "diff"} for one in shown]
        calls, made = _calls_piece([({}, call) for call in raw.calls], reading)
        calls_changes += made
        answers = [_answer(result, reading) for result in raw.results]
        if len(answers) == 1 and not _says(raw):
            messages.append({**_head(item, raw), "role": "tool", **answers[0]})
            continue
        results += answers
        if not answers or _says(raw):
            messages.append({**_head(item, raw), **_said(raw), **({"tool_calls": calls} if calls else {})})
    found: list[tuple[Piece, list[_Item]]] = [("messages", messages), ("code-changes", calls_changes)]
    return [*found, ("tool-results", results)] if results else found


def _says(raw: RawMessage) -> bool:
    return bool(raw.text or raw.summary or raw.calls or raw.reasoning)


def _head(item: _Item, raw: RawMessage) -> _Item:
    return _known(
        **_ids(item, "message_id", "id"),
        sequence=as_int(item.get("sequence")),
        role=_named(raw.role),
        timestamp=_time(raw.timestamp),
        completion_tokens=raw.token_count,
        prompt_tokens=raw.prompt_tokens,
        finish_reason=_name(raw.finish_reason),
        model=_name(raw.model),
        checkpoints=[_checkpoint_item(cast("_Item", one)) for one in raw.checkpoints if isinstance(one, dict)] or None,
    )


def _said(raw: RawMessage) -> _Item:
    if raw.role == "context_file":
        return {"content": [_context_item(one) for one in raw.context_files]}
    if raw.text is None and (raw.summary is not None or raw.given_hash is not None):
        summary = shorten(raw.summary or "", SUMMARY_CHARS_MAX)
        return _known(content_summary=summary, content_hash=_reference(raw.given_hash), content_bytes=raw.given_bytes)
    text = raw.text or ""
    if not text:  # there is nothing to withhold, and an empty message is left out as it always is
        return {"content": ""}
    return {
        "content_summary": _opening(text),
        "content_hash": content_hash(text),
        "content_bytes": len(text.encode(errors="replace")),
    }


def _calls_piece(read: Iterable[tuple[_Item, RawCall | None]], reading: Reading) -> tuple[list[_Item], list[_Item]]:
    calls: list[_Item] = []
    changes: list[_Item] = []
    for item, raw in read:
        if raw is None:
            continue
        call, made = _told(raw, reading)
        place = _known(message_sequence=as_int(item.get("message_sequence")))
        calls.append({**_call_item(raw, call), **_ids(item, "id", "tool_call_id", "call_id"), **place})
        several = len(made) > 1  # they cannot all go by the id of one chunk
        changes += [_plain(_replace(change, diff_chunk_id=None) if several else change, reading) | {"derived": "call"} for change in made]
    return calls, changes


def _told(raw: RawCall, reading: Reading) -> tuple[ToolCall, list[CodeChange]]:
    """Return what a call says for itself, and the changes it made, just as they are read of a whole turn."""
    turn = withheld(build_turns([RawMessage(role="assistant", calls=[raw])], reading)[0])
    timed = raw.timestamp is not None
    return turn.tool_calls[0], [change if timed else _replace(change, timestamp=None) for change in turn.changes]


def _call_item(raw: RawCall, call: ToolCall) -> _Item:
    is_hashed = raw.arguments is not None or raw.arguments_hash is not None
    return _known(
        id=call.tool_call_id,
        name=call.tool_name,
        arguments_hash=call.arguments_hash if is_hashed else None,
        accessed=msgspec.to_builtins(call.accessed),
        duration_ms=raw.duration_ms,
        timestamp=_time(raw.timestamp),
        diff_chunk_id=call.diff_chunk_id,
        **_outcome(raw, call),
    )


def _outcome(raw: RawCall, call: ToolCall) -> _Item:
    """Return what came back: a failure that only its text told has to be told now."""
    success = raw.success
    if success is None and call.status == "failed":
        success = False
    if call.result is None or not raw.has_result:
        return _known(success=success)
    return _known(success=success, content_hash=call.result.content_hash, result_size_bytes=call.result.result_size_bytes)


def _result_item(item: _Item, reading: Reading) -> _Item:
    own = {name: value for name, value in item.items() if name != "content"}
    if item.get("content") is not None:
        own["result"] = item["content"]
    raw = read_call({"name": "unknown", **own}, reading.notes)
    if raw is None:  # a record always is one
        return {}
    call, _ = _told(raw, reading)
    timed = _known(duration_ms=raw.duration_ms, timestamp=_time(raw.timestamp))
    return {**_ids(item, "id", "tool_call_id", "call_id"), **timed, **_outcome(raw, call)}


def _answer(result: RawResult, reading: Reading) -> _Item:
    """Return a result that a message brought."""
    success = None if result.failed is None else not result.failed
    raw = RawCall(call_id=result.call_id, name="unknown", result=result.content, has_result=True, success=success)
    raw.result_hash, raw.result_size_bytes, raw.duration_ms = result.content_hash, result.size_bytes, result.duration_ms
    call, _ = _told(raw, reading)
    told = _outcome(raw, call)
    failed = None if told.pop("success", None) is not False else True
    return _known(
        tool_call_id=_id(result.call_id), name=_name(result.name), tool_failed=failed if success is None else result.failed, **told
    )


def _plain(change: CodeChange, reading: Reading) -> _Item:
    """Return a change as a record that is read again to the same change: with a path that says where it lies."""
    plain = msgspec.to_builtins(_change(change))
    plain["file_path"] = _rooted(change.file_path, reading)
    before = long_path_before(change.change_summary)
    if before is not None:
        plain |= {"renamed_from": _rooted(before, reading), "change_summary": None}
    return {name: value for name, value in plain.items() if value not in {None, ""}}


def _rooted(path: str, reading: Reading) -> str:
    root = reading.place.root
    return path if root is None or path.startswith(("/", "~")) else f"{root.rstrip('/')}/{path}"


def _known(**fields: Json) -> _Item:
    return {name: value for name, value in fields.items() if value is not None}
