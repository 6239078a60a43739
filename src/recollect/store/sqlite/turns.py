"""Turns and all their parts in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.clock import iso
from recollect.errors import NotFoundError
from recollect.limits import PASSAGES_PER_CONVERSATION_MAX
from recollect.model import Forgotten
from recollect.placing import Head, checksum, place_turn
from recollect.store.integrity import intact
from recollect.store.protocol import Outcome, Outline, PlacedCall, TurnOutline
from recollect.store.recording import KnownTurn, Situation, checked_span, last_message, plan
from recollect.store.sqlite.conversations import ancestors, drop_unused, key_of, recount, recount_below
from recollect.store.sqlite.numbering import checked, conversation_range
from recollect.store.sqlite.rows import (
    SELECT_TURN,
    as_json,
    call_row,
    change_row,
    checkpoint_row,
    context_file_row,
    message_row,
    read_turns,
    result_row,
    turn_row,
)

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Passage, ToolCall, Turn
    from recollect.store.protocol import CallFilter, Draft, Recording, TurnRange
    from recollect.store.sqlite.database import Connection, Database


class SqliteTurns:
    """The `Turns` facet."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, workspace: str, conversation_id: str, recording: Recording, at: datetime) -> Outcome:
        """Record turns, whole and once."""
        return await self._database.write(lambda connection: _record(connection, workspace, conversation_id, recording, at))

    async def rewrite(self, workspace: str, draft: Draft, was: str, at: datetime) -> Turn | None:
        """Replace a turn in its place, if its content hash is still `was`."""
        return await self._database.write(lambda connection: _rewrite(connection, workspace, draft, was, at))

    async def history(self, workspace: str, conversation_id: str, span: TurnRange) -> list[Turn]:
        """Return whole turns of a conversation's history, ancestors' first."""
        checked_span(span.first, span.last)
        return await self._database.read(lambda connection: _history(connection, workspace, conversation_id, span))

    async def by_id(self, workspace: str, turn_ids: list[str]) -> list[Turn]:
        """Return whole turns by their ids, in the order asked for."""
        return await self._database.read(lambda connection: _by_id(connection, workspace, turn_ids))

    async def of_request(self, workspace: str, project_id: str, request_id: str) -> list[Turn]:
        """Return the turns of a request in order."""
        return await self._database.read(lambda connection: _of_request(connection, workspace, project_id, request_id))

    async def outline(self, workspace: str, conversation_id: str) -> Outline:
        """Return the outline of a conversation's whole history, ancestors' first."""
        return await self._database.read(lambda connection: _outline(connection, workspace, conversation_id))

    async def calls(self, workspace: str, conversation_id: str, where: CallFilter) -> list[PlacedCall]:
        """Return where the tool calls of a history stand, newest first."""
        return await self._database.read(lambda connection: _find_calls(connection, workspace, conversation_id, where))

    async def forget_before(self, workspace: str, moment: datetime, project_id: str | None) -> Forgotten:
        """Forget the turns that ended before a moment."""
        return await self._database.write(lambda connection: _forget_before(connection, workspace, moment, project_id))


class _Target(msgspec.Struct, frozen=True):
    """The conversation that is written to: its keys, its numbers, and where it goes on."""

    key: int
    project_pk: int
    first_passage: int
    next_passage: int
    next_index: int
    next_sequence: int
    inherited_to: int


def _target(connection: Connection, workspace: str, conversation_id: str) -> _Target:
    row = connection.row(
        """
        select pk, project_pk, workspace_pk, (select number from project where pk = project_pk), number, next_passage, next_index,
            next_sequence, case when parent_pk is null then -1 else from_turn end
        from conversation where workspace_pk = (select pk from workspace where name = ?) and uuid = ? and status <> 'removed'
        """,
        (workspace, conversation_id),
    )
    if row is None:
        msg = f"there is no conversation {conversation_id!r} in workspace {workspace!r}: `recollect conversations` lists them"
        raise NotFoundError(msg)
    return _Target(row[0], row[1], conversation_range(row[2], row[3], row[4])[0], row[5], row[6], row[7], row[8])


def _record(connection: Connection, workspace: str, conversation_id: str, recording: Recording, at: datetime) -> Outcome:
    target = _target(connection, workspace, conversation_id)
    decided = plan(_situation(connection, target, conversation_id, recording), recording)
    if decided.status in {"unchanged", "moved"}:
        return Outcome(status=decided.status, turns=decided.insert)
    if decided.remove_ids:
        rows = connection.rows(
            "select pk from turn where conversation_pk = ? and uuid in (select value from json_each(?))",
            (target.key, as_json(decided.remove_ids)),
        )
        _delete(connection, [row[0] for row in rows])
    if decided.truncate_from is not None:
        _delete(connection, _keys_in(connection, target.key, decided.truncate_from, None, None, newest=False))
        connection.run("update conversation set next_index = 0, next_sequence = 0 where pk = ?", (target.key,))
    if decided.shift_after is not None:
        _shift(connection, target.key, decided.shift_after, decided.shift_by)
    next_passage = target.next_passage
    for turn, draft in zip(decided.insert, recording.drafts, strict=True):
        next_passage = _insert(connection, target, turn, draft.passages, next_passage)
    if decided.status == "created" and not recording.keep_places:
        _advance(connection, target.key, decided.insert, next_passage, at)
    else:
        _recounted(connection, target.key, next_passage, at)
    return Outcome(status=decided.status, turns=decided.insert)


def _situation(connection: Connection, target: _Target, conversation_id: str, recording: Recording) -> Situation:
    head = Head(conversation_id=conversation_id, next_index=target.next_index, next_sequence=target.next_sequence)
    known: tuple[KnownTurn, ...] = ()
    if recording.request_id is not None:
        known = _known(connection, target.project_pk, recording.request_id)
    if not known and recording.truncate_from is None:
        return Situation(head=head)
    return Situation(
        head=head,
        known=known,
        inherited_to=target.inherited_to,
        forked_at=connection.value("select coalesce(max(from_turn), -1) from conversation where parent_pk = ?", (target.key,)),
        cut_sequence=connection.value(
            """
            select coalesce(min(sequence), ?3) from turn join message on turn_pk = turn.pk where conversation_pk = ?1 and turn_index >= ?2
            """,
            (target.key, recording.truncate_from, head.next_sequence),
        ),
    )


def _known(connection: Connection, project_pk: int, request_id: str) -> tuple[KnownTurn, ...]:
    rows = connection.rows(
        """
        select t.uuid, c.uuid, t.turn_index, t.content_hash, (select coalesce(min(sequence), 0) from message where turn_pk = t.pk),
            (select count(*) from message where turn_pk = t.pk)
        from turn t join conversation c on c.pk = t.conversation_pk
        where t.request_id = ? and c.project_pk = ? order by t.request_ordinal
        """,
        (request_id, project_pk),
    )
    return tuple(
        KnownTurn(id=row[0], conversation_id=row[1], index=row[2], content_hash=row[3], sequence=row[4], message_count=row[5])
        for row in rows
    )


def _insert(connection: Connection, target: _Target, turn: Turn, passages: tuple[Passage, ...], next_passage: int) -> int:
    """Insert a turn with all its parts; returns the place of the next passage."""
    turn_pk = connection.inserted(
        """
        insert into turn (conversation_pk, uuid, turn_index, request_id, request_ordinal, status, model, chat_mode, finish_reason,
            prompt_tokens, completion_tokens, request_attempt_id, base_chat_id, related_artifacts, char_count, started_at, ended_at,
            content_hash, checksum)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        turn_row(turn, target.key, checksum(turn)),
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
    following = checked("passages in a conversation", next_passage + len(passages), PASSAGES_PER_CONVERSATION_MAX)
    first = target.first_passage + next_passage
    connection.run_many(
        "insert into passage (number, turn_pk, part, ordinal, start, end, length, terms) values (?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (first + n, turn_pk, part.part, part.ordinal, part.start, part.end, part.terms.count(" ") + 1, part.terms)
            for n, part in enumerate(passages)
        ],
    )
    return following


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


def _delete(connection: Connection, turn_keys: list[int]) -> None:
    """Delete turns with all their parts, and the summaries, of any level, that speak of them."""
    keys = as_json(turn_keys)
    connection.run(
        """
        delete from summary where pk in (
            with recursive told (pk) as (
                select summary_pk from summary_source where turn_pk in (select value from json_each(?))
                union select summary_pk from told join summary_source on source_pk = told.pk
            )
            select pk from told
        )
        """,
        (keys,),
    )
    connection.run("delete from turn where pk in (select value from json_each(?))", (keys,))


def _advance(connection: Connection, key: int, turns: tuple[Turn, ...], next_passage: int, at: datetime) -> None:
    messages = sum(len(turn.messages) for turn in turns)
    connection.run(
        """
        update conversation set turn_count = turn_count + ?2, message_count = message_count + ?3, next_index = next_index + ?2,
            next_sequence = next_sequence + ?3, next_passage = ?4, updated_at = ?5, last_message = coalesce(?6, last_message)
        where pk = ?1
        """,
        (key, len(turns), messages, next_passage, iso(at), last_message(turns)),
    )


def _recounted(connection: Connection, key: int, next_passage: int, at: datetime) -> None:
    """Count a conversation again after more than an addition at its end."""
    recount(connection, key)
    newest = connection.rows(SELECT_TURN + "where c.pk = ? order by turn_index desc limit 1", (key,))
    said = last_message(tuple(turn for turn, _ in read_turns(connection, newest)))
    connection.run(
        "update conversation set updated_at = ?, last_message = ?, next_passage = ? where pk = ?", (iso(at), said, next_passage, key)
    )


def _shift(connection: Connection, key: int, after: int, by: int) -> None:
    """Move the sequences of the messages after a turn."""
    connection.run(
        "update message set sequence = sequence + ? where turn_pk in (select pk from turn where conversation_pk = ? and turn_index > ?)",
        (by, key, after),
    )


def _rewrite(connection: Connection, workspace: str, draft: Draft, was: str, at: datetime) -> Turn | None:
    turn = draft.turn
    target = _target(connection, workspace, turn.conversation_id)
    row = connection.row(
        """
        select t.pk, coalesce((select min(sequence) from message where turn_pk = t.pk), ?4),
            (select count(*) from message where turn_pk = t.pk)
        from turn t where t.conversation_pk = ?1 and t.uuid = ?2 and t.content_hash = ?3
        """,
        (target.key, turn.id, was, target.next_sequence),
    )
    if row is None:
        return None
    placed = place_turn(turn, turn.conversation_id, turn.index, row[1])
    _delete(connection, [row[0]])
    _shift(connection, target.key, placed.index, len(placed.messages) - row[2])
    next_passage = _insert(connection, target, placed, draft.passages, target.next_passage)
    _recounted(connection, target.key, next_passage, at)
    return placed


def _history(connection: Connection, workspace: str, conversation_id: str, span: TurnRange) -> list[Turn]:
    shown = ancestors(connection, key_of(connection, workspace, conversation_id))
    keys: list[int] = []
    for ancestor in reversed(shown) if span.newest else shown:
        wanted = None if span.limit is None else span.limit - len(keys)
        last = min((n for n in (ancestor.last_index, span.last) if n is not None), default=None)
        keys += _keys_in(connection, ancestor.key, span.first, last, wanted, newest=span.newest)
    rows = connection.rows(
        SELECT_TURN + "where t.pk in (select value from json_each(?)) order by turn_index",
        (as_json(keys),),
    )
    return [intact(turn, stored) for turn, stored in read_turns(connection, rows)]


def _keys_in(connection: Connection, key: int, first: int, last: int | None, wanted: int | None, *, newest: bool) -> list[int]:
    if newest:
        rows = connection.rows(
            """
            select pk from turn where conversation_pk = ?1 and turn_index >= ?2 and (?3 is null or turn_index <= ?3)
            order by turn_index desc limit ?4
            """,
            (key, first, last, -1 if wanted is None else wanted),
        )
    else:
        rows = connection.rows(
            """
            select pk from turn where conversation_pk = ?1 and turn_index >= ?2 and (?3 is null or turn_index <= ?3)
            order by turn_index limit ?4
            """,
            (key, first, last, -1 if wanted is None else wanted),
        )
    return [row[0] for row in rows]


def _by_id(connection: Connection, workspace: str, turn_ids: list[str]) -> list[Turn]:
    rows = connection.rows(
        SELECT_TURN + "join workspace w on w.pk = c.workspace_pk where w.name = ? and t.uuid in (select value from json_each(?))",
        (workspace, as_json(turn_ids)),
    )
    found = {turn.id: intact(turn, stored) for turn, stored in read_turns(connection, rows)}
    return [found[turn_id] for turn_id in turn_ids if turn_id in found]


def _of_request(connection: Connection, workspace: str, project_id: str, request_id: str) -> list[Turn]:
    rows = connection.rows(
        """
        select t.uuid from turn t join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
            join project p on p.pk = c.project_pk
        where w.name = ? and p.uuid = ? and t.request_id = ? order by t.request_ordinal
        """,
        (workspace, project_id, request_id),
    )
    return _by_id(connection, workspace, [row[0] for row in rows])


def _outline(connection: Connection, workspace: str, conversation_id: str) -> Outline:
    key = key_of(connection, workspace, conversation_id)
    next_index, next_sequence = connection.row("select next_index, next_sequence from conversation where pk = ?", (key,)) or (0, 0)
    found: list[TurnOutline] = []
    for ancestor in ancestors(connection, key):
        said: dict[int, list[tuple[str, str]]] = {}
        heads: dict[int, tuple[str, int, str | None, str]] = {}
        for row in connection.rows(
            """
            select t.pk, t.uuid, turn_index, request_id, t.content_hash, role, m.content_hash
            from turn t left join message m on m.turn_pk = t.pk and role not in ('system', 'developer')
            where conversation_pk = ?1 and (?2 is null or turn_index <= ?2) order by turn_index, sequence
            """,
            (ancestor.key, ancestor.last_index),
        ):
            heads[row[0]] = (row[1], row[2], row[3], row[4])
            said.setdefault(row[0], []).extend([(row[5], row[6])] if row[5] is not None else [])
        found += [
            TurnOutline(
                id=head[0],
                conversation_id=ancestor.conversation_id,
                index=head[1],
                request_id=head[2],
                content_hash=head[3],
                said=tuple(said[turn_key]),
            )
            for turn_key, head in heads.items()
        ]
    return Outline(next_index=next_index, next_sequence=next_sequence, turns=tuple(found))


def _find_calls(connection: Connection, workspace: str, conversation_id: str, where: CallFilter) -> list[PlacedCall]:
    found: list[PlacedCall] = []
    for ancestor in reversed(ancestors(connection, key_of(connection, workspace, conversation_id))):
        rows = connection.rows(
            """
            select turn_index, call_order from turn t join tool_call on tool_call.turn_pk = t.pk
            where conversation_pk = ?1 and (?2 is null or turn_index <= ?2) and (?3 is null or tool_name = ?3)
                and (?4 is null or tool_call.status = ?4)
            order by turn_index desc, call_order desc limit ?5
            """,
            (
                ancestor.key,
                ancestor.last_index,
                where.tool_name,
                None if where.success is None else ("success" if where.success else "failed"),
                where.limit - len(found),
            ),
        )
        found += [PlacedCall(turn_index=row[0], order=row[1]) for row in rows]
    return found


def _forget_before(connection: Connection, workspace: str, moment: datetime, project_id: str | None) -> Forgotten:
    rows = connection.rows(
        """
        select t.pk, c.pk from turn t join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
            join project p on p.pk = c.project_pk
        where w.name = ?1 and (?2 is null or p.uuid = ?2) and coalesce(t.ended_at, t.started_at) < ?3
        """,
        (workspace, project_id, iso(moment)),
    )
    _delete(connection, [row[0] for row in rows])
    emptied = 0
    for key in dict.fromkeys(row[1] for row in rows):
        recount_below(connection, key)
        is_empty = not connection.value("select count(*) from turn where conversation_pk = ?", (key,))
        has_heirs = connection.value("select count(*) from conversation where parent_pk = ?", (key,))
        if is_empty and not has_heirs and not connection.value("select turn_count from conversation where pk = ?", (key,)):
            connection.run("delete from conversation where pk = ?", (key,))
            emptied += 1
        else:
            _retell(connection, key)
    drop_unused(connection)
    return Forgotten(conversations=emptied, turns=len(rows))


def _retell(connection: Connection, key: int) -> None:
    """Forget the last message of a list entry when the turn that said it is gone."""
    updated = connection.value("select updated_at from conversation where pk = ?", (key,))
    newest = connection.value("select count(*) from turn where conversation_pk = ?", (key,))
    if not newest:
        connection.run("update conversation set last_message = null, updated_at = ? where pk = ?", (updated, key))
