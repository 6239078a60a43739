"""Questions about the SQLite store itself: counts, kept hashes, damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

import apsw

from recollect.answers import Damage, Stats
from recollect.store.shapes import DerivedKind, HashRecord, RecordKey
from recollect.store.sqlite.coding import SELECT_SCOPE, scope_of
from recollect.store.sqlite.insights import SELECT_INSIGHT, insight_of
from recollect.store.sqlite.rows import SELECT_CONVERSATION, SELECT_TURN, as_json, held_of, read_turns, readable
from recollect.store.sqlite.summaries import SELECT_SUMMARY, summary_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.store.shapes import Held, StoredTurn
    from recollect.store.sqlite.database import Connection, Row

_FAULTS_MAX = 100
_INDEX_CHECKS: dict[str, LiteralString] = {
    "passage_terms": "insert into passage_terms (passage_terms, rank) values ('integrity-check', 1)",
    "scope_terms": "insert into scope_terms (scope_terms, rank) values ('integrity-check', 1)",
    "insight_terms": "insert into insight_terms (insight_terms, rank) values ('integrity-check', 1)",
}
_KEYS: dict[DerivedKind, LiteralString] = {
    "summary": """
        select s.pk, hex(s.uuid), hex(c.uuid) from summary s cross join conversation c on c.pk = s.conversation_pk
        where c.workspace_pk = (select pk from workspace where name = ?) and s.pk > ? order by s.pk limit ?
    """,
    "insight": """
        select i.pk, hex(i.uuid), hex(c.uuid) from insight i cross join conversation c on c.pk = i.conversation_pk
        where c.workspace_pk = (select pk from workspace where name = ?) and i.pk > ? order by i.pk limit ?
    """,
    "scope": """
        select s.pk, hex(s.uuid), null from scope s cross join project p on p.pk = s.project_pk
        where p.workspace_pk = (select pk from workspace where name = ?) and s.pk > ? order by s.pk limit ?
    """,
}
_READ: dict[DerivedKind, tuple[LiteralString, Callable[[Row], object]]] = {
    "summary": (SELECT_SUMMARY + "where s.pk in (select value from json_each(?))", summary_of),
    "insight": (SELECT_INSIGHT + "where i.pk in (select value from json_each(?))", insight_of),
    "scope": (SELECT_SCOPE + "where s.pk in (select value from json_each(?))", scope_of),
}


class SqliteAudit:
    """The `AuditRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def stats(self) -> Stats:
        """Count what the workspace holds."""
        row = self._connection.row(
            """
            with own (pk) as (select c.pk from conversation c join workspace w on w.pk = c.workspace_pk where w.name = ?),
                told (pk) as (select t.pk from turn t join own on own.pk = t.conversation_pk)
            select (select count(*) from own), (select count(*) from told),
                (select count(*) from message join told on told.pk = turn_pk),
                (select count(*) from tool_call join told on told.pk = turn_pk),
                (select count(*) from passage join told on told.pk = turn_pk)
                    + (select count(*) from passage join summary s on s.pk = summary_pk join own on own.pk = s.conversation_pk),
                (select count(*) from embedding join passage using (number) join told on told.pk = turn_pk)
                    + (select count(*) from embedding join passage using (number) join summary s on s.pk = summary_pk
                        join own on own.pk = s.conversation_pk)
            """,
            (self._workspace,),
        ) or (0, 0, 0, 0, 0, 0)
        levels = self._connection.rows(
            """
            select level, count(*) from summary s join conversation c on c.pk = s.conversation_pk join workspace w on w.pk = c.workspace_pk
            where w.name = ? group by level order by level
            """,
            (self._workspace,),
        )
        return Stats(
            workspace=self._workspace,
            store="",
            conversations=row[0],
            turns=row[1],
            messages=row[2],
            tool_calls=row[3],
            passages=row[4],
            embedded=row[5],
            summaries={str(level): count for level, count in levels},
        )

    async def hashes(self, record_id: str) -> list[HashRecord]:
        """Return the hashes kept for a record; for a turn those of its messages, for a call those of its arguments and its result."""
        rows = self._connection.rows(
            """
            with found (kind, content_hash, source_hash, turn_pk, place, whole) as materialized (
                select 'message', content_hash, source_hash, turn_pk, sequence, content is not null from message where uuid = ?2
                union all select 'message', m.content_hash, m.source_hash, m.turn_pk, m.sequence, m.content is not null
                    from turn join message m on m.turn_pk = turn.pk where turn.uuid = ?2
                union all select 'tool_call', arguments_hash, source_hash, turn_pk, 0, 1 from tool_call where uuid = ?2
                union all select 'tool_result', r.content_hash, r.source_hash, c.turn_pk, 1, 1
                    from tool_call c left join tool_result r on r.tool_call_pk = c.pk where c.uuid = ?2
                union all select 'tool_result', r.content_hash, r.source_hash, c.turn_pk, 1, 1
                    from tool_result r join tool_call c on c.pk = r.tool_call_pk where r.uuid = ?2
                union all select 'context_file', content_hash, content_hash, turn_pk, 0, 1 from context_file where uuid = ?2
                union all select 'code_change', code_after_hash, code_after_hash, turn_pk, 0, 1 from code_change where uuid = ?2
            )
            select kind, found.content_hash, source_hash, whole from found
                cross join turn t on t.pk = found.turn_pk cross join conversation c on c.pk = t.conversation_pk
            where c.workspace_pk = (select pk from workspace where name = ?1) order by place
            """,
            (self._workspace, record_id),
        )
        return [HashRecord(kind=row[0], content_hash=row[1], source_hash=row[2], whole=bool(row[3])) for row in rows]

    async def conversations(self) -> list[RecordKey]:
        """Return every conversation to be checked."""
        rows = self._connection.rows(
            "select pk, hex(uuid) from conversation where workspace_pk = (select pk from workspace where name = ?) order by pk",
            (self._workspace,),
        )
        return [RecordKey(key=row[0], id=_unhexed(row[1]), conversation_id=_unhexed(row[1])) for row in rows]

    async def turns(self, after: int | str | None, limit: int) -> list[RecordKey]:
        """Return the next turns to be checked, in the order of their keys."""
        rows = self._connection.rows(
            """
            select t.pk, hex(t.uuid), hex(c.uuid) from turn t cross join conversation c on c.pk = t.conversation_pk
            where c.workspace_pk = (select pk from workspace where name = ?) and t.pk > ? order by t.pk limit ?
            """,
            (self._workspace, after or 0, limit),
        )
        return [RecordKey(key=row[0], id=_unhexed(row[1]), conversation_id=_unhexed(row[2])) for row in rows]

    async def conversation(self, key: int | str) -> Held | None:
        """Read one conversation by its key."""
        with readable():
            row = self._connection.row(SELECT_CONVERSATION + "where c.pk = ?", (key,))
            return None if row is None else held_of(row)

    async def read(self, keys: list[int | str]) -> list[StoredTurn]:
        """Read turns by their keys."""
        with readable():
            rows = self._connection.rows(SELECT_TURN + "where t.pk in (select value from json_each(?))", (as_json(keys),))
            return read_turns(self._connection, rows)

    async def derived(self, kind: DerivedKind, after: int | str | None, limit: int) -> list[RecordKey]:
        """Return the next summaries, insights or scopes to be checked, in the order of their keys."""
        rows = self._connection.rows(_KEYS[kind], (self._workspace, after or 0, limit))
        return [RecordKey(key=row[0], id=_unhexed(row[1]), conversation_id=_unhexed(row[2])) for row in rows]

    async def read_derived(self, kind: DerivedKind, keys: list[int | str]) -> None:
        """Read summaries, insights or scopes by their keys."""
        select, read = _READ[kind]
        with readable():
            for row in self._connection.rows(select, (as_json(keys),)):
                read(row)


def _unhexed(text: str | None) -> str:
    """Read an id that may itself be damaged, or gone."""
    return "" if text is None else bytes.fromhex(text).decode(errors="replace")


def file_damage(connection: Connection) -> list[Damage]:
    """Ask SQLite itself about its pages and foreign keys."""
    found = [Damage(kind="file", id="", reason=str(row[0])) for row in connection.rows("pragma integrity_check(100)") if row[0] != "ok"]
    broken = [
        Damage(kind=str(row[0]), id=str(row[1]), reason=f"names a row of {row[2]} that is gone")
        for row in connection.rows("pragma foreign_key_check")
    ]
    return found[:_FAULTS_MAX] + broken[:_FAULTS_MAX]


def index_damage(connection: Connection) -> list[Damage]:
    """Compare the full-text indexes with what they were made from."""
    found: list[Damage] = []
    for name, query in _INDEX_CHECKS.items():
        try:
            connection.run(query)
        except apsw.CorruptError as error:
            found.append(Damage(kind="index", id=name, reason=f"the full-text index does not match the rows it was made from: {error}"))
    return found
