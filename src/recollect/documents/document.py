"""A conversation ↔ a document: JSON that imports back to the same conversation, and Markdown for reading; pure.

A document holds no ids but the conversation's own: they follow from it. Inherited turns are written in, so that a
document stands for itself. Each turn is one line of the JSON, so a long conversation is written and read in pieces.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec

from recollect.answers import to_json
from recollect.clock import in_utc
from recollect.errors import InputError
from recollect.identity import content_hash
from recollect.model import ConversationInfo, Json, Project, Turn
from recollect.placing import unplaced
from recollect.text import cut, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.model import Checkpoint, CodeChange, ContextFile, Message, ToolCall, ToolResult

FORMAT = "recollect-conversation"
VERSION = 1
_RESULT_SHOWN_CHARS_MAX = 2_000
_ARGUMENTS_SHOWN_CHARS_MAX = 300
_KEPT = ("id", "title", "tags", "status", "summary", "agent", "external_id", "cwd", "created_at", "updated_at", "branch_of", "from_turn")
_replace = msgspec.structs.replace
_Timed = TypeVar("_Timed", "Message", "ToolCall", "ToolResult", "ContextFile", "CodeChange", "Checkpoint")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What a document says."""

    conversation: ConversationInfo
    project: Project
    turns: tuple[Turn, ...]


def document_opening(conversation: ConversationInfo, project: Project) -> str:
    """Return a JSON document up to its first turn."""
    plain = to_json(conversation)
    head: dict[str, Json] = {"format": FORMAT, "version": VERSION, "conversation": {key: plain[key] for key in _KEPT}}
    head["project"] = {"name": project.name, "root": project.root, "external_id": project.external_id}
    return msgspec.json.encode(head).decode()[:-1] + ',"turns":[\n'


def document_turn(turn: Turn) -> str:
    """Return one turn as one line of JSON."""
    plain = cast("dict[str, Any]", msgspec.to_builtins(unplaced(turn)))
    for key in ("id", "conversation_id", "content_hash"):
        del plain[key]
    for part in (*plain["messages"], *plain["tool_calls"], *plain["context_files"], *plain["changes"], *plain["checkpoints"]):
        del part["id"]
    for call in plain["tool_calls"]:
        place = call.pop("message_id")
        call["message"] = None if place is None else int(place)
        if call["result"] is not None:
            del call["result"]["id"]
    return msgspec.json.encode(plain).decode()


def document_closing() -> str:
    """Return what follows the last turn."""
    return "\n]}\n"


def refuse_altered(document: object) -> None:
    """Refuse a document whose contents are not what their hashes say; looked at before secrets are removed."""
    turns = cast("dict[str, Any]", document).get("turns") if isinstance(document, dict) else None
    for turn in cast("list[Any]", turns) if isinstance(turns, list) else []:
        messages = cast("dict[str, Any]", turn).get("messages") if isinstance(turn, dict) else None
        for message in cast("list[Any]", messages) if isinstance(messages, list) else []:
            record = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
            content = record.get("content")
            is_whole = isinstance(content, str) and len(content.encode(errors="replace")) == record.get("content_bytes")
            if is_whole and content_hash(cast("str", content)) != record.get("content_hash"):
                place = f"message {record.get('sequence')}"
                msg = f"the document was altered: {place} does not match its content_hash; export it again"
                raise InputError(msg)


def read_document(document: object, project_id: str) -> Document:
    """Read a document that was cleaned; raises InputError when it is none of ours."""
    if not isinstance(document, dict) or cast("dict[str, Any]", document).get("format") != FORMAT:
        msg = f"this is no exported conversation: its 'format' is not {FORMAT!r}"
        raise InputError(msg)
    record = cast("dict[str, Any]", document)
    if record.get("version") != VERSION:
        msg = f"the document has version {record.get('version')!r}, this Recollect reads {VERSION}: export it again or upgrade"
        raise InputError(msg)
    try:
        project = msgspec.convert({**record["project"], "id": project_id}, Project)
        conversation = msgspec.convert({**record["conversation"], "project_id": project.id, "project": project.name}, ConversationInfo)
        turns = tuple(_read_turn(turn) for turn in record["turns"])
        _refuse_disorder(turns)
    except (msgspec.ValidationError, KeyError, TypeError, ValueError) as error:
        msg = f"the document is damaged: {error}"
        raise InputError(msg) from error
    return Document(conversation=conversation, project=project, turns=turns)


def _refuse_disorder(turns: tuple[Turn, ...]) -> None:
    indexes = [turn.index for turn in turns]
    sequences = [message.sequence for turn in turns for message in turn.messages]
    if any(sorted(set(numbers)) != numbers or min(numbers, default=0) < 0 for numbers in (indexes, sequences)):
        msg = "its turns or messages are not in order"
        raise ValueError(msg)


def _read_turn(plain: dict[str, Any]) -> Turn:
    calls = [
        {**{key: value for key, value in call.items() if key != "message"}, "message_id": _place(call.get("message"))}
        for call in plain["tool_calls"]
    ]
    return rehashed(msgspec.convert({**plain, "tool_calls": calls}, Turn))


def rehashed(turn: Turn) -> Turn:
    """Return a turn whose hashes are worked out again wherever its contents are whole, and whose times are in UTC."""
    messages = tuple(_timed(_hashed(message)) for message in turn.messages)
    checked = tuple(_timed(_replace(call, result=_hashed_result(call.result))) for call in turn.tool_calls)
    return _replace(
        turn,
        messages=messages,
        tool_calls=checked,
        context_files=tuple(map(_timed, turn.context_files)),
        changes=tuple(map(_timed, turn.changes)),
        checkpoints=tuple(map(_timed, turn.checkpoints)),
        started_at=None if turn.started_at is None else in_utc(turn.started_at),
        ended_at=None if turn.ended_at is None else in_utc(turn.ended_at),
    )


def _timed(part: _Timed) -> _Timed:
    return part if part.timestamp is None else _replace(part, timestamp=in_utc(part.timestamp))


def _place(value: object) -> str | None:
    return str(value) if isinstance(value, int) else None


def _hashed(message: Message) -> Message:
    if message.content is None or len(message.content.encode()) < message.content_bytes:
        return message
    return _replace(message, content_hash=content_hash(message.content), content_bytes=len(message.content.encode()))


def _hashed_result(result: ToolResult | None) -> ToolResult | None:
    if result is None:
        return None
    result = _timed(result)
    if result.result is None or len(result.result.encode()) < result.result_size_bytes:
        return result
    return _replace(result, content_hash=content_hash(result.result), result_size_bytes=len(result.result.encode()))


def markdown_opening(conversation: ConversationInfo) -> str:
    """Return the head of a conversation in Markdown."""
    facts = [f"conversation `{conversation.id}`", f"project {conversation.project}", f"{conversation.turn_count} turns"]
    if conversation.agent:
        facts.append(f"agent {conversation.agent}")
    if conversation.tags:
        facts.append("tags " + ", ".join(conversation.tags))
    if conversation.branch_of:
        facts.append(f"branch of `{conversation.branch_of}` after turn {conversation.from_turn}")
    facts.append(f"from {conversation.created_at:%Y-%m-%d %H:%M} to {conversation.updated_at:%Y-%m-%d %H:%M} UTC")
    return f"# {conversation.title or 'Untitled conversation'}\n\n" + " · ".join(facts) + "\n"


def markdown_turn(turn: Turn) -> str:
    """Return one turn in Markdown."""
    return "\n".join(_markdown_lines(turn)) + "\n"


def _markdown_lines(turn: Turn) -> Iterator[str]:
    status = "" if turn.status == "complete" else f" · {turn.status}"
    request = f" · request `{turn.request_id}`" if turn.request_id else ""
    time = f" · {turn.started_at:%Y-%m-%d %H:%M} UTC" if turn.started_at else ""
    yield f"\n## Turn {turn.index}{time}{request}{status}"
    for message in turn.messages:
        if message.text:
            yield f"\n**{message.role.capitalize()}**\n\n{message.text}"
        if message.reasoning:
            yield "\n> " + shorten(message.reasoning, _RESULT_SHOWN_CHARS_MAX)
        for call in turn.calls_of(message):
            yield from _markdown_call(call)
    for change in turn.changes:
        lines = f" +{change.lines_added or 0} −{change.lines_removed or 0}" if change.lines_added or change.lines_removed else ""
        yield f"\n- changed `{change.file_path}`{lines} {change.change_summary or change.change_type}"
    if turn.context_files:
        yield "\nContext: " + ", ".join(f"`{part.file_path}`" for part in turn.context_files)


def _markdown_call(call: ToolCall) -> Iterator[str]:
    given = "" if call.arguments is None else " " + shorten(msgspec.json.encode(call.arguments).decode(), _ARGUMENTS_SHOWN_CHARS_MAX)
    duration = "" if call.duration_ms is None else f" · {call.duration_ms:.0f} ms"
    yield f"\n- `{call.tool_name}`{given.replace('`', chr(39))} → {call.status}{duration}"
    shown = "" if call.result is None else (call.result.error or call.result.result or "")
    if shown:
        body = cut(shown, _RESULT_SHOWN_CHARS_MAX)
        fence = "`" * max(3, _longest_run(body) + 1)
        yield "\n".join("  " + line for line in [fence, *body.splitlines(), fence])


def _longest_run(text: str) -> int:
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    return longest
