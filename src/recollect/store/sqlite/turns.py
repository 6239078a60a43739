"""Turns and all their parts in SQLite: queries and row mapping."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, LiteralString

import msgspec

from recollect.answers import AccessedFile
from recollect.clock import iso
from recollect.model import NOT_RECORDED_TAG, Passage
from recollect.placing import Head
from recollect.store.recording import KnownTurn, Situation
from recollect.store.shapes import Count, PlacedCall, Question, TurnOutline, TurnSize
from recollect.store.sqlite.insights import retire_insights
from recollect.store.sqlite.jobs import wake
from recollect.store.sqlite.numbering import conversation_range
from recollect.store.sqlite.passages import next_number
from recollect.store.sqlite.rows import SELECT_TURN, as_json, moment, read_turns
from recollect.store.sqlite.writing import Target, insert_turn, standing_passages

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.shapes import Advance, CallFilter, Span, StoredTurn
    from recollect.store.sqlite.database import Connection, Row


_NOWHERE = Target(0, 0, (1, 0))  # keys count from 1

_SPAN: LiteralString = " from turn where conversation_pk = ?1 and turn_index >= ?2 and (?3 is null or turn_index <= ?3) "
_FIRST: LiteralString = _SPAN + "order by turn_index limit ?4"
_NEWEST: LiteralString = _SPAN + "order by turn_index desc limit ?4"
_OUTLINED: LiteralString = """
    select t.uuid, turn_index, request_id, t.content_hash,
        (select count(*) + count(tool_call_pk) from tool_call left join tool_result on tool_call_pk = pk where turn_pk = t.pk),
        role, m.content_hash
    from t left join message m on m.turn_pk = t.pk and role not in ('system', 'developer') order by turn_index, sequence
"""
_OUTLINE: LiteralString = "with t as (select *" + _FIRST + ")" + _OUTLINED
_OUTLINE_NEWEST: LiteralString = "with t as (select *" + _NEWEST + ")" + _OUTLINED


class _Head(msgspec.Struct, frozen=True):
    """A conversation that is written to, and where it goes on."""

    target: Target
    next_index: int
    next_sequence: int
    inherited_to: int
    is_silent: bool


class SqliteTurns:
    """The `TurnRows` of a transaction; a plus before a column keeps SQLite from starting there, where ids are few and turns many."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace
        self._targets: dict[str, Target] = {}

    async def situation(self, conversation_id: str, request_id: str | None, cut_from: int | None) -> Situation | None:
        """Return what a recording is decided by; the transaction already keeps others from writing."""
        found = self._head(conversation_id)
        if found is None:
            return None
        head = Head(conversation_id=conversation_id, next_index=found.next_index, next_sequence=found.next_sequence)
        known = () if request_id is None else self._known(found.target.project_pk, request_id)
        if not known and cut_from is None:
            return Situation(head=head, is_silent=found.is_silent, inherited_to=found.inherited_to)
        key = found.target.key
        return Situation(
            head=head,
            is_silent=found.is_silent,
            known=known,
            inherited_to=found.inherited_to,
            forked_at=self._connection.value("select coalesce(max(from_turn), -1) from conversation where parent_pk = ?", (key,)),
            cut_sequence=self._connection.value(
                """
                select coalesce(min(sequence), ?3) from turn join message on turn_pk = turn.pk
                where conversation_pk = ?1 and turn_index >= ?2
                """,
                (key, cut_from, head.next_sequence),
            ),
        )

    def _head(self, conversation_id: str) -> _Head | None:
        row = self._connection.row(
            """
            select pk, project_pk, workspace_pk, (select number from project where pk = project_pk), number, next_index, next_sequence,
                case when parent_pk is null then -1 else from_turn end,
                tags <> '[]' and exists (select 1 from json_each(tags) where value = ?3)
            from conversation where workspace_pk = (select pk from workspace where name = ?1) and uuid = ?2
            """,
            (self._workspace, conversation_id, NOT_RECORDED_TAG),
        )
        if row is None:
            return None
        target = self._targets[conversation_id] = Target(row[0], row[1], conversation_range(row[2], row[3], row[4]))
        return _Head(target, row[5], row[6], row[7], bool(row[8]))

    def _target(self, conversation_id: str) -> Target:
        if conversation_id not in self._targets and self._head(conversation_id) is None:
            return _NOWHERE
        return self._targets[conversation_id]

    def _known(self, project_pk: int, request_id: str) -> tuple[KnownTurn, ...]:
        rows = self._connection.rows(
            """
            select t.uuid, c.uuid, t.turn_index, t.content_hash, (select coalesce(min(sequence), 0) from message where turn_pk = t.pk),
                (select count(*) from message where turn_pk = t.pk)
            from turn t join conversation c on c.pk = t.conversation_pk
            where t.request_id = ? and c.project_pk = ? order by t.request_ordinal, c.uuid
            """,
            (request_id, project_pk),
        )
        return tuple(
            KnownTurn(id=row[0], conversation_id=row[1], index=row[2], content_hash=row[3], sequence=row[4], message_count=row[5])
            for row in rows
        )

    async def read(self, span: Span) -> list[StoredTurn]:
        """Return whole turns in index order."""
        rows = self._connection.rows(
            SELECT_TURN + "where t.pk in (select value from json_each(?)) order by turn_index", (as_json(self._keys(span)),)
        )
        return read_turns(self._connection, rows)

    def _keys(self, span: Span) -> list[int]:
        rows = self._connection.rows("select pk" + (_NEWEST if span.newest else _FIRST), self._bounds(span))
        return [row[0] for row in rows]

    def _bounds(self, span: Span) -> Row:
        return self._target(span.conversation_id).key, span.first, span.last, -1 if span.limit is None else span.limit

    async def by_id(self, turn_ids: list[str]) -> list[StoredTurn]:
        """Return whole turns; unknown ones are left out."""
        rows = self._connection.rows(
            SELECT_TURN + "join workspace w on w.pk = +c.workspace_pk where w.name = ? and t.uuid in (select value from json_each(?))",
            (self._workspace, as_json(turn_ids)),
        )
        return read_turns(self._connection, rows)

    async def hashes(self, turn_ids: list[str]) -> dict[str, str]:
        """Return the content hashes of turns."""
        rows = self._connection.rows(
            """
            select t.uuid, t.content_hash from turn t join conversation c on c.pk = t.conversation_pk
            where +c.workspace_pk = (select pk from workspace where name = ?) and t.uuid in (select value from json_each(?))
            """,
            (self._workspace, as_json(turn_ids)),
        )
        return {row[0]: row[1] for row in rows}

    async def passages(self, turn_ids: list[str]) -> dict[str, tuple[Passage, ...]]:
        """Return the passages of turns, in their order."""
        rows = self._connection.rows(
            """
            select t.uuid, part, ordinal, start, end, terms from passage join turn t on t.pk = turn_pk
                join conversation c on c.pk = t.conversation_pk
            where +c.workspace_pk = (select pk from workspace where name = ?) and t.uuid in (select value from json_each(?))
            order by part = 'tool', ordinal, start
            """,
            (self._workspace, as_json(turn_ids)),
        )
        found: dict[str, tuple[Passage, ...]] = dict.fromkeys(turn_ids, ())
        for row in rows:
            found[row[0]] += (Passage(part=row[1], ordinal=row[2], start=row[3], end=row[4], terms=row[5]),)
        return found

    async def outline(self, span: Span) -> list[TurnOutline]:
        """Return turns in outline, in index order."""
        rows = self._connection.rows(_OUTLINE_NEWEST if span.newest else _OUTLINE, self._bounds(span))
        return [
            _outlined(span.conversation_id, head, tuple((row[5], row[6]) for row in said if row[5] is not None))
            for head, said in groupby(rows, key=lambda row: row[:5])
        ]

    async def calls(self, span: Span, where: CallFilter) -> list[PlacedCall]:
        """Return where tool calls stand, newest first."""
        rows = self._connection.rows(
            """
            select turn_index, call_order from turn t join tool_call on tool_call.turn_pk = t.pk
            where conversation_pk = ?1 and (?2 is null or turn_index <= ?2) and (?3 is null or tool_name = ?3)
                and (?4 is null or tool_call.status = ?4)
            order by turn_index desc, call_order desc limit ?5
            """,
            (
                self._target(span.conversation_id).key,
                span.last,
                where.tool_name,
                None if where.success is None else ("success" if where.success else "failed"),
                where.limit,
            ),
        )
        return [PlacedCall(turn_index=row[0], order=row[1]) for row in rows]

    async def questions(self, span: Span) -> list[Question]:
        """Return what users said, newest first."""
        rows = self._connection.rows(
            """
            select turn_index, m.uuid, coalesce(content, content_summary), timestamp from turn t join message m on m.turn_pk = t.pk
            where conversation_pk = ?1 and (?2 is null or turn_index <= ?2) and role = 'user'
            order by turn_index desc, sequence desc limit ?3
            """,
            (self._target(span.conversation_id).key, span.last, -1 if span.limit is None else span.limit),
        )
        return [
            Question(conversation_id=span.conversation_id, turn_index=row[0], message_id=row[1], text=row[2], at=moment(row[3]))
            for row in rows
        ]

    async def accesses(self, span: Span) -> list[AccessedFile]:
        """Return the latest access to each path, newest first."""
        rows = self._connection.rows(
            """
            select f.file_path, kind, tool_name, turn_index, k.timestamp, temporary, generated,
                max((turn_index << 32) + (call_order << 12) + position) as place
            from turn t join tool_call k on k.turn_pk = t.pk join access a on a.tool_call_pk = k.pk
                join code_file f on f.pk = a.code_file_pk
            where conversation_pk = ?1 and (?2 is null or turn_index <= ?2) group by f.pk order by place desc
            """,
            (self._target(span.conversation_id).key, span.last),
        )
        return [
            AccessedFile(
                path=row[0], kind=row[1], tool_name=row[2], turn_index=row[3], timestamp=moment(row[4]), temporary=bool(row[5]),
                generated=bool(row[6]),
            )
            for row in rows
        ]  # fmt: skip

    async def count(self, span: Span) -> Count:
        """Count what a span holds."""
        row = self._connection.row(
            """
            select count(distinct t.pk), count(m.pk), coalesce(max(t.turn_index), -1) + 1, coalesce(max(m.sequence), -1) + 1
            from turn t left join message m on m.turn_pk = t.pk
            where conversation_pk = ?1 and (?2 is null or turn_index <= ?2)
            """,
            (self._target(span.conversation_id).key, span.last),
        ) or (0, 0, 0, 0)
        return Count(turns=row[0], messages=row[1], next_index=row[2], next_sequence=row[3])

    async def ended_before(self, moment: datetime, project_ids: tuple[str, ...] | None) -> list[tuple[str, str]]:
        """Return the turns that ended before a moment, each with its conversation."""
        rows = self._connection.rows(
            """
            select t.uuid, c.uuid from turn t join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
                join project p on p.pk = c.project_pk
            where w.name = ?1 and (?2 is null or p.uuid in (select value from json_each(?2))) and coalesce(t.ended_at, t.started_at) < ?3
            """,
            (self._workspace, None if project_ids is None else as_json(project_ids), iso(moment)),
        )
        return [(row[0], row[1]) for row in rows]

    async def insert(self, conversation_id: str, turns: list[StoredTurn], advance: Advance | None) -> None:
        """Write turns with all their parts and passages, and what they add to their conversation."""
        target = self._target(conversation_id)
        standing = {} if advance is not None else self._put_aside([stored.turn.id for stored in turns])
        number = next_number(self._connection, target.passages)
        for stored in turns:
            known = standing.get(stored.turn.id, ())
            number = insert_turn(
                self._connection, target, stored, number, standing_passages(self._connection, target, known, stored.turn.index)
            )
        if standing:
            self._delete([key for keys in standing.values() for key in keys])
        if advance is not None:
            self._connection.run(
                """
                update conversation set turn_count = turn_count + ?2, message_count = message_count + ?3, next_index = next_index + ?2,
                    next_sequence = next_sequence + ?3, updated_at = ?4, last_message = coalesce(?5, last_message)
                where pk = ?1
                """,
                (target.key, advance.turns, advance.messages, iso(advance.at), advance.last_message),
            )
        wake(self._connection, [target.key])

    async def delete(self, turn_ids: list[str], *, keep_summaries: bool = False) -> None:
        """Delete turns with all their parts, and the summaries, of any level, that tell of them."""
        self._delete([key for key, _ in self._keys_of(turn_ids)], keep_summaries=keep_summaries)

    def _keys_of(self, turn_ids: list[str]) -> list[tuple[int, str]]:
        rows = self._connection.rows(
            """
            select t.pk, t.uuid from turn t join conversation c on c.pk = t.conversation_pk
            where +c.workspace_pk = (select pk from workspace where name = ?) and t.uuid in (select value from json_each(?))
            """,
            (self._workspace, as_json(turn_ids)),
        )
        return [(row[0], row[1]) for row in rows]

    def _put_aside(self, turn_ids: list[str]) -> dict[str, list[int]]:
        """Make room for turns that are written anew, and return the keys of what stood there, until it is deleted."""
        standing: dict[str, list[int]] = {}
        found = self._keys_of(turn_ids)
        retire_insights(self._connection, [key for key, _ in found])
        for key, turn_id in found:
            standing.setdefault(turn_id, []).append(key)
            self._connection.run("update turn set turn_index = -1 - pk where pk = ?", (key,))
        return standing

    def _delete(self, turn_keys: list[int], *, keep_summaries: bool = False) -> None:
        keys = as_json(turn_keys)
        changed = self._connection.rows("select distinct conversation_pk from turn where pk in (select value from json_each(?))", (keys,))
        if not keep_summaries:
            self._connection.run(
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
            retire_insights(self._connection, turn_keys)
        self._connection.run("delete from turn where pk in (select value from json_each(?))", (keys,))
        wake(self._connection, [row[0] for row in changed])

    async def sizes(self, span: Span) -> list[TurnSize]:
        """Return turns as planning sees them, in index order."""
        rows = self._connection.rows(
            """
            select uuid, turn_index, char_count, (select count(*) from message where turn_pk = turn.pk), status = 'open'
            from turn where conversation_pk = ?1 and turn_index >= ?2 and (?3 is null or turn_index <= ?3) order by turn_index
            """,
            (self._target(span.conversation_id).key, span.first, span.last),
        )
        return [TurnSize(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows]

    async def shift(self, conversation_id: str, after: int, by: int) -> None:
        """Move the sequences of the messages after a turn."""
        self._connection.run(
            """
            update message set sequence = sequence + ?
            where turn_pk in (select pk from turn where conversation_pk = ? and turn_index > ?)
            """,
            (by, self._target(conversation_id).key, after),
        )


def _outlined(conversation_id: str, head: Row, said: tuple[tuple[str, str], ...]) -> TurnOutline:
    return TurnOutline(
        id=head[0], conversation_id=conversation_id, index=head[1], request_id=head[2], content_hash=head[3], steps=head[4], said=said
    )
