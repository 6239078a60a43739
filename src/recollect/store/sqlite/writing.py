"""The rows of a turn, written as one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.model import Passage
from recollect.store.sqlite.numbering import Range
from recollect.store.sqlite.passages import Owner, put_passages
from recollect.store.sqlite.rows import (
    as_json,
    call_row,
    change_row,
    checkpoint_row,
    context_file_row,
    message_row,
    result_row,
    turn_row,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import ToolCall, Turn
    from recollect.store.shapes import StoredTurn
    from recollect.store.sqlite.database import Connection


class Target(msgspec.Struct, frozen=True):
    """The conversation that is written to: its keys, and the numbers its passages may have."""

    key: int
    project_pk: int
    passages: Range


Standing = dict[Passage, int]


def standing_passages(connection: Connection, target: Target, turn_keys: Sequence[int], index: int) -> Standing:
    """Return the numbers of the passages of a turn that is written anew in its place: those that stay the same are not indexed again."""
    if not turn_keys:
        return {}
    rows = connection.rows(
        """
        select part, ordinal, start, end, terms, number from passage
        where turn_pk in (select value from json_each(?)) and last_turn = ? and number between ? and ?
        """,
        (as_json(list(turn_keys)), index, *target.passages),
    )
    return {Passage(part=row[0], ordinal=row[1], start=row[2], end=row[3], terms=row[4]): row[5] for row in rows}


def insert_turn(connection: Connection, target: Target, stored: StoredTurn, number: int, standing: Standing) -> int:
    """Insert a turn with all its parts; `number` is its first new passage's, and what comes back is the one after its last."""
    turn, passages = stored.turn, [passage for passage in stored.passages if passage not in standing]
    turn_pk = connection.inserted(
        """
        insert into turn (conversation_pk, uuid, turn_index, request_id, request_ordinal, status, model, chat_mode, finish_reason,
            prompt_tokens, completion_tokens, request_attempt_id, base_chat_id, related_artifacts, char_count, started_at, ended_at,
            content_hash, checksum, expires_at)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        turn_row(stored, target.key),
    )
    connection.run_many(
        """
        insert into message (turn_pk, uuid, sequence, role, content, content_summary, content_hash, source_hash, content_bytes, reasoning,
            token_count, timestamp)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [message_row(message, turn_pk) for message in turn.messages],
    )
    files = _file_keys(connection, target.project_pk, turn)
    if turn.tool_calls:
        _insert_calls(connection, turn_pk, turn.tool_calls, files)
    if turn.context_files or turn.changes or turn.checkpoints:
        _insert_parts(connection, turn_pk, turn, files)
    if standing:
        kept = [standing[passage] for passage in stored.passages if passage in standing]
        connection.run("update passage set turn_pk = ? where number in (select value from json_each(?))", (turn_pk, as_json(kept)))
    owner = Owner(turn_pk=turn_pk, level=0, last_turn=turn.index)
    return put_passages(connection, target.passages, owner, passages, number)


def _insert_calls(connection: Connection, turn_pk: int, calls: tuple[ToolCall, ...], files: dict[str, int]) -> None:
    first = int(connection.value("select coalesce(max(pk), 0) + 1 from tool_call"))
    keyed = list(enumerate(calls, first))
    connection.run_many(
        """
        insert into tool_call (pk, turn_pk, uuid, message_id, tool_call_id, tool_name, arguments, arguments_hash, source_hash, status,
            duration_ms, call_order, iteration, timestamp, diff_chunk_id)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [(key, *call_row(call, turn_pk)) for key, call in keyed],
    )
    connection.run_many(
        """
        insert into tool_result (tool_call_pk, uuid, success, result, error, result_size_bytes, content_hash, source_hash, timestamp)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [result_row(call.result, key) for key, call in keyed if call.result is not None],
    )
    connection.run_many(
        "insert into access (tool_call_pk, position, code_file_pk, kind, temporary, generated) values (?, ?, ?, ?, ?, ?)",
        [
            (key, n, files[part.path], part.kind, part.temporary, part.generated)
            for key, call in keyed
            for n, part in enumerate(call.accessed)
        ],
    )


def _insert_parts(connection: Connection, turn_pk: int, turn: Turn, files: dict[str, int]) -> None:
    connection.run_many(
        """
        insert into context_file (turn_pk, uuid, code_file_pk, line_start, line_end, usefulness, source, symbols, content_hash, language,
            timestamp)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [context_file_row(part, turn_pk, files[part.file_path]) for part in turn.context_files],
    )
    connection.run_many(
        """
        insert into code_change (turn_pk, uuid, code_file_pk, change_type, change_summary, git_commit, line_start, line_end, function_name,
            lines_added, lines_removed, code_before_hash, code_after_hash, diff, severity, language, tool_call_id, diff_chunk_id, timestamp)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [change_row(part, turn_pk, files[part.file_path]) for part in turn.changes],
    )
    connection.run_many(
        """
        insert into checkpoint (turn_pk, uuid, checkpoint_id, git_hash, parent_checkpoint, workspace_dir, timestamp)
        values (?, ?, ?, ?, ?, ?, ?)
        """,
        [checkpoint_row(part, turn_pk) for part in turn.checkpoints],
    )


def _file_keys(connection: Connection, project_pk: int, turn: Turn) -> dict[str, int]:
    """Return the key of every code file the turn names, creating what is missing."""
    languages: dict[str, str | None] = {part.path: None for call in turn.tool_calls for part in call.accessed}
    languages |= {change.file_path: change.language for change in turn.changes}
    languages |= {part.file_path: part.language for part in turn.context_files}
    if not languages:
        return {}
    found = connection.rows(
        "select file_path, pk from code_file where project_pk = ? and file_path in (select value from json_each(?))",
        (project_pk, as_json(list(languages))),
    )
    keys: dict[str, int] = dict(found)
    for path, language in languages.items():
        if path not in keys:
            keys[path] = connection.inserted(
                "insert into code_file (project_pk, file_path, language) values (?, ?, ?)", (project_pk, path, language)
            )
        elif language is not None:
            connection.run("update code_file set language = coalesce(language, ?) where pk = ?", (language, keys[path]))
    return keys
