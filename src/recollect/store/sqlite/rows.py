"""Rows ↔ nodes: the only place that knows the order of columns; shared by the facets of the SQLite store."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString

import apsw
import msgspec

from recollect.clock import from_iso, iso
from recollect.errors import DamagedStoreError
from recollect.model import Checkpoint, CodeChange, ContextFile, ConversationInfo, FileAccess, Message, ToolCall, ToolResult, Turn
from recollect.store.shapes import Held, StoredTurn

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from datetime import datetime

    from recollect.store.sqlite.database import Connection, Row

_decode = msgspec.json.decode

SELECT_TURN: LiteralString = """
    select t.pk, c.uuid, t.uuid, turn_index, request_id, request_ordinal, t.status, model, chat_mode, finish_reason, prompt_tokens,
        completion_tokens, request_attempt_id, base_chat_id, related_artifacts, char_count, started_at, ended_at, content_hash, t.checksum,
        expires_at
    from turn t join conversation c on c.pk = t.conversation_pk
"""
SELECT_CONVERSATION: LiteralString = """
    select c.uuid, c.title, c.tags, c.status, c.summary, c.agent, c.external_id, c.cwd, c.created_at, c.updated_at, c.turn_count,
        c.message_count, c.last_message, c.branch_of, c.from_turn, p.uuid, p.name, c.checksum, c.next_index, c.next_sequence, parent.uuid,
        c.has_own_title, c.told_to
    from conversation c join workspace w on w.pk = c.workspace_pk join project p on p.pk = c.project_pk
        left join conversation parent on parent.pk = c.parent_pk
"""


def as_json(value: object) -> str:
    """Write a list or an object as JSON text."""
    return msgspec.json.encode(value).decode()


def time_text(moment: datetime | None) -> str | None:
    """Write a time, or nothing."""
    return None if moment is None else iso(moment)


def moment(text: str | None) -> datetime | None:
    """Read a time, or nothing."""
    return None if text is None else from_iso(text)


def texts(text: str) -> tuple[str, ...]:
    """Read a JSON list of strings."""
    return _decode(text, type=tuple[str, ...])


def as_bool(value: int | None) -> bool | None:
    """Read a truth value, or nothing."""
    return None if value is None else bool(value)


@contextmanager
def readable() -> Generator[None]:
    """Turn what a damaged row does to its reader into an error that says so."""
    try:
        yield
    except (msgspec.DecodeError, UnicodeDecodeError, ValueError, TypeError, apsw.CorruptError) as error:
        msg = f"a stored row cannot be read ({error}): see `recollect verify`"
        raise DamagedStoreError(msg) from error


def held_of(row: Row) -> Held:
    """Read a row of `SELECT_CONVERSATION`."""
    with readable():
        return Held(
            conversation=_conversation(row), parent_id=row[20], next_index=row[18], next_sequence=row[19], checksum=row[17],
            has_own_title=bool(row[21]), told_to=row[22],
        )  # fmt: skip


def _conversation(row: Row) -> ConversationInfo:
    return ConversationInfo(
        id=row[0], title=row[1], tags=texts(row[2]), status=row[3], summary=row[4], agent=row[5], external_id=row[6], cwd=row[7],
        created_at=from_iso(row[8]), updated_at=from_iso(row[9]), turn_count=row[10], message_count=row[11], last_message=row[12],
        branch_of=row[13], from_turn=row[14], project_id=row[15], project=row[16],
    )  # fmt: skip


def conversation_row(held: Held) -> Row:
    """Write the columns of a conversation, from its uuid on, but for its parent."""
    one = held.conversation
    return (
        one.id, one.title, as_json(one.tags), one.status, one.summary, one.agent, one.external_id, one.cwd, iso(one.created_at),
        iso(one.updated_at), one.turn_count, one.message_count, held.next_index, held.next_sequence, one.last_message, one.branch_of,
        one.from_turn, held.checksum, held.has_own_title, held.told_to,
    )  # fmt: skip


def turn_row(stored: StoredTurn, conversation_pk: int) -> Row:
    """Write the columns of a turn, in the order of its table."""
    turn = stored.turn
    return (
        conversation_pk, turn.id, turn.index, turn.request_id, turn.request_ordinal, turn.status, turn.model, turn.chat_mode,
        turn.finish_reason, turn.prompt_tokens, turn.completion_tokens, turn.request_attempt_id, turn.base_chat_id,
        as_json(turn.related_artifacts) if turn.related_artifacts else "[]", turn.char_count, time_text(turn.started_at),
        time_text(turn.ended_at), turn.content_hash, stored.checksum, time_text(stored.expires_at),
    )  # fmt: skip


def message_row(message: Message, turn_pk: int) -> Row:
    """Write the columns of a message."""
    return (
        turn_pk, message.id, message.sequence, message.role, message.content, message.content_summary, message.content_hash,
        message.source_hash, message.content_bytes, message.reasoning, message.token_count, time_text(message.timestamp),
    )  # fmt: skip


def call_row(call: ToolCall, turn_pk: int) -> Row:
    """Write the columns of a tool call."""
    return (
        turn_pk, call.id, call.message_id, call.tool_call_id, call.tool_name,
        None if call.arguments is None else as_json(call.arguments), call.arguments_hash, call.source_hash, call.status,
        call.duration_ms, call.order, call.iteration, time_text(call.timestamp), call.diff_chunk_id,
    )  # fmt: skip


def result_row(result: ToolResult, call_pk: int) -> Row:
    """Write the columns of a tool result."""
    return (
        call_pk, result.id, result.success, result.result, result.error, result.result_size_bytes, result.content_hash,
        result.source_hash, time_text(result.timestamp),
    )  # fmt: skip


def context_file_row(part: ContextFile, turn_pk: int, file_pk: int) -> Row:
    """Write the columns of a context file."""
    return (
        turn_pk, part.id, file_pk, part.line_start, part.line_end, part.usefulness, part.source, as_json(part.symbols),
        part.content_hash, part.language, time_text(part.timestamp),
    )  # fmt: skip


def change_row(part: CodeChange, turn_pk: int, file_pk: int) -> Row:
    """Write the columns of a code change."""
    return (
        turn_pk, part.id, file_pk, part.change_type, part.change_summary, part.git_commit, part.line_start, part.line_end,
        part.function_name, part.lines_added, part.lines_removed, part.code_before_hash, part.code_after_hash, part.diff,
        part.severity, part.language, part.tool_call_id, part.diff_chunk_id, time_text(part.timestamp),
    )  # fmt: skip


def checkpoint_row(part: Checkpoint, turn_pk: int) -> Row:
    """Write the columns of a checkpoint."""
    return (
        turn_pk, part.id, part.checkpoint_id, part.git_hash, part.parent_checkpoint, part.workspace_dir, time_text(part.timestamp),
    )  # fmt: skip


def read_turns(connection: Connection, rows: Sequence[Row]) -> list[StoredTurn]:
    """Read whole turns from rows of `SELECT_TURN`."""
    with readable():
        return _read_turns(connection, rows)


def _read_turns(connection: Connection, rows: Sequence[Row]) -> list[StoredTurn]:
    keys = as_json([row[0] for row in rows])
    messages = _messages(connection, keys)
    calls = _calls(connection, keys)
    context_files = _context_files(connection, keys)
    changes = _changes(connection, keys)
    checkpoints = _checkpoints(connection, keys)
    return [
        StoredTurn(
            turn=Turn(
                conversation_id=row[1], id=row[2], index=row[3], request_id=row[4], request_ordinal=row[5], status=row[6], model=row[7],
                chat_mode=row[8], finish_reason=row[9], prompt_tokens=row[10], completion_tokens=row[11], request_attempt_id=row[12],
                base_chat_id=row[13], related_artifacts=texts(row[14]), char_count=row[15], started_at=moment(row[16]),
                ended_at=moment(row[17]), content_hash=row[18], messages=tuple(messages[row[0]]), tool_calls=tuple(calls[row[0]]),
                context_files=tuple(context_files[row[0]]), changes=tuple(changes[row[0]]), checkpoints=tuple(checkpoints[row[0]]),
            ),
            checksum=row[19],
            expires_at=moment(row[20]),
        )
        for row in rows
    ]  # fmt: skip


def _messages(connection: Connection, keys: str) -> defaultdict[int, list[Message]]:
    found: defaultdict[int, list[Message]] = defaultdict(list)
    rows = connection.rows(
        """
        select turn_pk, uuid, sequence, role, content, content_summary, content_hash, source_hash, content_bytes, reasoning,
            token_count, timestamp
        from message where turn_pk in (select value from json_each(?)) order by turn_pk, sequence
        """,
        (keys,),
    )
    for row in rows:
        found[row[0]].append(
            Message(
                id=row[1], sequence=row[2], role=row[3], content=row[4], content_summary=row[5], content_hash=row[6], source_hash=row[7],
                content_bytes=row[8], reasoning=row[9], token_count=row[10], timestamp=moment(row[11]),
            )
        )  # fmt: skip
    return found


def _calls(connection: Connection, keys: str) -> defaultdict[int, list[ToolCall]]:
    accesses: defaultdict[int, list[FileAccess]] = defaultdict(list)
    for row in connection.rows(
        """
        select access.tool_call_pk, file_path, kind, temporary, generated
        from tool_call join access on access.tool_call_pk = tool_call.pk join code_file on code_file.pk = access.code_file_pk
        where turn_pk in (select value from json_each(?)) order by access.tool_call_pk, position
        """,
        (keys,),
    ):
        accesses[row[0]].append(FileAccess(path=row[1], kind=row[2], temporary=bool(row[3]), generated=bool(row[4])))
    found: defaultdict[int, list[ToolCall]] = defaultdict(list)
    for row in connection.rows(
        """
        select turn_pk, pk, tool_call.uuid, message_id, tool_call_id, tool_name, arguments, arguments_hash, tool_call.source_hash, status,
            duration_ms, call_order, iteration, tool_call.timestamp, diff_chunk_id, tool_result.uuid, success, result, error,
            result_size_bytes, content_hash, tool_result.source_hash, tool_result.timestamp
        from tool_call left join tool_result on tool_result.tool_call_pk = tool_call.pk
        where turn_pk in (select value from json_each(?)) order by turn_pk, call_order
        """,
        (keys,),
    ):
        found[row[0]].append(_call(row, tuple(accesses[row[1]])))
    return found


def _call(row: Row, accessed: tuple[FileAccess, ...]) -> ToolCall:
    result = None
    if row[15] is not None:
        result = ToolResult(
            id=row[15], success=as_bool(row[16]), result=row[17], error=row[18], result_size_bytes=row[19], content_hash=row[20],
            source_hash=row[21], timestamp=moment(row[22]),
        )  # fmt: skip
    arguments: dict[str, Any] | None = None if row[6] is None else _decode(row[6], type=dict[str, Any])
    return ToolCall(
        id=row[2], message_id=row[3], tool_call_id=row[4], tool_name=row[5], arguments=arguments, arguments_hash=row[7], source_hash=row[8],
        status=row[9], duration_ms=row[10], order=row[11], iteration=row[12], timestamp=moment(row[13]), diff_chunk_id=row[14],
        result=result, accessed=accessed,
    )  # fmt: skip


def _context_files(connection: Connection, keys: str) -> defaultdict[int, list[ContextFile]]:
    found: defaultdict[int, list[ContextFile]] = defaultdict(list)
    for row in connection.rows(
        """
        select turn_pk, uuid, file_path, line_start, line_end, usefulness, source, symbols, content_hash, context_file.language, timestamp
        from context_file join code_file on code_file.pk = code_file_pk
        where turn_pk in (select value from json_each(?)) order by context_file.pk
        """,
        (keys,),
    ):
        found[row[0]].append(
            ContextFile(
                id=row[1], file_path=row[2], line_start=row[3], line_end=row[4], usefulness=row[5], source=row[6], symbols=texts(row[7]),
                content_hash=row[8], language=row[9], timestamp=moment(row[10]),
            )
        )  # fmt: skip
    return found


def _changes(connection: Connection, keys: str) -> defaultdict[int, list[CodeChange]]:
    found: defaultdict[int, list[CodeChange]] = defaultdict(list)
    for row in connection.rows(
        """
        select turn_pk, uuid, file_path, change_type, change_summary, git_commit, line_start, line_end, function_name, lines_added,
            lines_removed, code_before_hash, code_after_hash, diff, severity, code_change.language, tool_call_id, diff_chunk_id, timestamp
        from code_change join code_file on code_file.pk = code_file_pk
        where turn_pk in (select value from json_each(?)) order by code_change.pk
        """,
        (keys,),
    ):
        found[row[0]].append(
            CodeChange(
                id=row[1], file_path=row[2], change_type=row[3], change_summary=row[4], git_commit=row[5], line_start=row[6],
                line_end=row[7], function_name=row[8], lines_added=row[9], lines_removed=row[10], code_before_hash=row[11],
                code_after_hash=row[12], diff=row[13], severity=row[14], language=row[15], tool_call_id=row[16],
                diff_chunk_id=row[17], timestamp=moment(row[18]),
            )
        )  # fmt: skip
    return found


def _checkpoints(connection: Connection, keys: str) -> defaultdict[int, list[Checkpoint]]:
    found: defaultdict[int, list[Checkpoint]] = defaultdict(list)
    for row in connection.rows(
        """
        select turn_pk, uuid, checkpoint_id, git_hash, parent_checkpoint, workspace_dir, timestamp
        from checkpoint where turn_pk in (select value from json_each(?)) order by pk
        """,
        (keys,),
    ):
        found[row[0]].append(
            Checkpoint(
                id=row[1], checkpoint_id=row[2], git_hash=row[3], parent_checkpoint=row[4], workspace_dir=row[5], timestamp=moment(row[6]),
            )
        )  # fmt: skip
    return found
