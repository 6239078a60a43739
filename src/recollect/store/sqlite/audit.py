"""Questions about the SQLite store itself: counts, kept hashes, damage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import apsw

from recollect.errors import DamagedStoreError
from recollect.limits import TURNS_PER_PAGE
from recollect.model import Damage, Stats
from recollect.placing import checksum
from recollect.store.integrity import damage_of
from recollect.store.protocol import HashRecord
from recollect.store.sqlite.rows import SELECT_CONVERSATION, SELECT_TURN, conversation_of, read_turns

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from recollect.store.sqlite.database import Connection, Database, Row

_FAULTS_MAX = 100


class SqliteAudit:
    """The `Audit` facet."""

    def __init__(self, database: Database, url: str) -> None:
        self._database = database
        self._url = url

    async def stats(self, workspace: str) -> Stats:
        """Count what the workspace holds."""
        return await self._database.read(lambda connection: self._stats(connection, workspace))

    async def hashes(self, workspace: str, record_id: str) -> list[HashRecord]:
        """Return the hashes kept for a record; for a turn those of its messages."""
        return await self._database.read(lambda connection: _hashes(connection, workspace, record_id))

    async def damage(self, workspace: str) -> AsyncIterator[tuple[int, list[Damage]]]:
        """Check the file, then every conversation and turn of the workspace, a page at a time."""
        yield 0, await self._database.read_afresh(_file_damage)
        yield 0, await self._database.write(_index_damage)
        yield await self._database.read(lambda connection: _conversation_damage(connection, workspace))
        after = 0
        while True:
            page = await self._database.read(lambda connection, start=after: _page(connection, workspace, start))
            if not page:
                return
            after = page[-1][0]
            yield await self._database.read(lambda connection, rows=page: (len(rows), _turn_damage(connection, rows)))

    def _stats(self, connection: Connection, workspace: str) -> Stats:
        row = connection.row(
            """
            select count(distinct c.pk), count(t.pk) from conversation c join workspace w on w.pk = c.workspace_pk
                left join turn t on t.conversation_pk = c.pk
            where w.name = ?
            """,
            (workspace,),
        ) or (0, 0)
        messages = _count(
            connection.row(
                """
                select count(*) from message m join turn t on t.pk = m.turn_pk join conversation c on c.pk = t.conversation_pk
                    join workspace w on w.pk = c.workspace_pk where w.name = ?
                """,
                (workspace,),
            )
        )
        calls = _count(
            connection.row(
                """
                select count(*) from tool_call m join turn t on t.pk = m.turn_pk join conversation c on c.pk = t.conversation_pk
                    join workspace w on w.pk = c.workspace_pk where w.name = ?
                """,
                (workspace,),
            )
        )
        passages = _count(
            connection.row(
                """
                select count(*) from passage m join turn t on t.pk = m.turn_pk join conversation c on c.pk = t.conversation_pk
                    join workspace w on w.pk = c.workspace_pk where w.name = ?
                """,
                (workspace,),
            )
        )
        levels = connection.rows(
            """
            select level, count(*) from summary s join conversation c on c.pk = s.conversation_pk join workspace w on w.pk = c.workspace_pk
            where w.name = ? group by level order by level
            """,
            (workspace,),
        )
        return Stats(
            workspace=workspace,
            store=self._url,
            conversations=row[0],
            turns=row[1],
            messages=messages,
            tool_calls=calls,
            summaries={str(level): count for level, count in levels},
            passages=passages,
            size_bytes=self._database.size_bytes(),
        )


def _count(row: Row | None) -> int:
    return 0 if row is None else int(row[0])


def _hashes(connection: Connection, workspace: str, record_id: str) -> list[HashRecord]:
    rows = connection.rows(
        """
        with found (kind, content_hash, source_hash, turn_pk, place) as (
            select 'message', content_hash, source_hash, turn_pk, sequence from message where uuid = ?2
            union all select 'message', m.content_hash, m.source_hash, m.turn_pk, m.sequence
                from turn join message m on m.turn_pk = turn.pk where turn.uuid = ?2
            union all select 'tool_result', r.content_hash, r.source_hash, c.turn_pk, 0
                from tool_result r join tool_call c on c.pk = r.tool_call_pk where r.uuid = ?2 or c.uuid = ?2
            union all select 'context_file', content_hash, content_hash, turn_pk, 0 from context_file where uuid = ?2
            union all select 'code_change', code_after_hash, code_after_hash, turn_pk, 0 from code_change where uuid = ?2
        )
        select kind, found.content_hash, source_hash from found
            join turn t on t.pk = found.turn_pk join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
        where w.name = ?1 order by place
        """,
        (workspace, record_id),
    )
    return [HashRecord(kind=row[0], content_hash=row[1], source_hash=row[2]) for row in rows]


def _file_damage(connection: Connection) -> list[Damage]:
    """Ask SQLite itself about its pages and foreign keys."""
    found = [Damage(kind="file", id="", reason=str(row[0])) for row in connection.rows("pragma integrity_check(100)") if row[0] != "ok"][
        :_FAULTS_MAX
    ]
    found += [
        Damage(kind=str(row[0]), id=str(row[1]), reason=f"names a row of {row[2]} that is gone")
        for row in connection.rows("pragma foreign_key_check")
    ][:_FAULTS_MAX]
    return found


def _index_damage(connection: Connection) -> list[Damage]:
    """Compare the full-text index with the passages it was made from."""
    try:
        connection.run("insert into passage_terms (passage_terms, rank) values ('integrity-check', 1)")
    except apsw.CorruptError as error:
        return [Damage(kind="index", id="passage_terms", reason=f"the full-text index does not match its passages: {error}")]
    return []


def _conversation_damage(connection: Connection, workspace: str) -> tuple[int, list[Damage]]:
    """Read the conversations one by one, so that an unreadable one hides no other."""
    found: list[Damage] = []
    keys = connection.rows(
        "select pk from conversation where workspace_pk = (select pk from workspace where name = ?) order by pk", (workspace,)
    )
    for (key,) in keys:
        reason = _reason(lambda key=key: _is_sealed(connection, key))
        if reason is not None:
            name = _unhexed(connection.value("select hex(uuid) from conversation where pk = ?", (key,)))
            found.append(Damage(kind="conversation", id=name, conversation_id=name, reason=reason))
    return len(keys), found


def _is_sealed(connection: Connection, key: int) -> bool:
    row = connection.row(SELECT_CONVERSATION + "where c.pk = ?", (key,))
    return row is not None and checksum(conversation_of(row)) == row[17]


def _reason(check: Callable[[], bool]) -> str | None:
    """Return why a record is not what was written, or None."""
    try:
        return None if check() else "a stored row does not match the checksum"
    except (DamagedStoreError, apsw.CorruptError, UnicodeDecodeError) as error:
        return str(error)


def _page(connection: Connection, workspace: str, after: int) -> list[tuple[int, str, str]]:
    rows = connection.rows(
        """
        select t.pk, hex(t.uuid), hex(c.uuid) from turn t join conversation c on c.pk = t.conversation_pk
            join workspace w on w.pk = c.workspace_pk
        where w.name = ? and t.pk > ? order by t.pk limit ?
        """,
        (workspace, after, TURNS_PER_PAGE),
    )
    return [(row[0], _unhexed(row[1]), _unhexed(row[2])) for row in rows]


def _unhexed(text: str | None) -> str:
    """Read an id that may itself be damaged, or gone."""
    return "" if text is None else bytes.fromhex(text).decode(errors="replace")


def _turn_damage(connection: Connection, page: list[tuple[int, str, str]]) -> list[Damage]:
    """Read the turns of a page one by one, so that an unreadable one hides no other."""
    found: list[Damage] = []
    for key, turn_id, conversation_id in page:
        try:
            rows = connection.rows(SELECT_TURN + "where t.pk = ?", (key,))
            for turn, stored in read_turns(connection, rows):
                found += damage_of(turn, stored)
        except (DamagedStoreError, apsw.CorruptError, UnicodeDecodeError) as error:
            found.append(Damage(kind="turn", id=turn_id, conversation_id=conversation_id, reason=str(error)))
    return found
