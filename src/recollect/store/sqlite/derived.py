"""Passages to search, summaries, insights and scopes in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from recollect.clock import from_iso, iso
from recollect.model import Insight, Passage, Scope, Summary
from recollect.placing import checksum
from recollect.store.protocol import Candidate, Candidates
from recollect.store.sqlite.lineage import ancestors, key_of
from recollect.store.sqlite.numbering import Range, conversation_range, project_range, workspace_range
from recollect.store.sqlite.rows import as_json, texts

if TYPE_CHECKING:
    from recollect.store.protocol import SearchScope
    from recollect.store.sqlite.database import Connection, Database, Row

_ANY_INDEX = 2**62


class SqliteDerived:
    """The `Derived` facet."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def candidates(self, workspace: str, scope: SearchScope, terms: list[str], limit: int) -> Candidates:
        """Return the passages of a scope that share a term."""
        return await self._database.read(lambda connection: _candidates(connection, workspace, scope, terms, limit))

    async def put_summaries(self, workspace: str, summaries: list[Summary]) -> None:
        """Write summaries with the edges to their sources."""
        await self._database.write(lambda connection: [_put_summary(connection, workspace, summary) for summary in summaries])

    async def summaries(self, workspace: str, conversation_id: str, level: int | None) -> list[Summary]:
        """Return the summaries of a conversation by level and first turn."""
        return await self._database.read(lambda connection: _summaries(connection, workspace, conversation_id, level))

    async def put_insights(self, workspace: str, insights: list[Insight]) -> None:
        """Write insights of conversations."""
        await self._database.write(lambda connection: [_put_insight(connection, workspace, insight) for insight in insights])

    async def insights(self, workspace: str, conversation_id: str) -> list[Insight]:
        """Return the insights of a conversation, oldest first."""
        return await self._database.read(lambda connection: _insights(connection, workspace, conversation_id))

    async def put_scopes(self, workspace: str, scopes: list[Scope]) -> None:
        """Write code scopes of a project."""
        await self._database.write(lambda connection: [_put_scope(connection, workspace, scope) for scope in scopes])

    async def scopes(self, workspace: str, project_id: str, name: str | None) -> list[Scope]:
        """Return the code scopes of a project by path and line."""
        return await self._database.read(lambda connection: _scopes(connection, workspace, project_id, name))


def _candidates(connection: Connection, workspace: str, scope: SearchScope, terms: list[str], limit: int) -> Candidates:
    ranges = _ranges(connection, workspace, scope)
    found: list[tuple[float, int, Candidate]] = []
    passages = length = 0
    frequency = dict.fromkeys(terms, 0)
    query = " OR ".join(_quoted(term) for term in terms)
    for (first, last), last_index in ranges:
        counted = connection.row(
            """
            select count(*), coalesce(sum(length), 0) from passage join turn on turn.pk = turn_pk
            where number between ? and ? and turn_index <= ?
            """,
            (first, last, last_index),
        )
        if counted is None or not counted[0] or not terms:
            continue
        passages, length = passages + counted[0], length + counted[1]
        for term in terms:
            frequency[term] += _frequency(connection, term, first, last, last_index)
        found += _matches(connection, query, (first, last), last_index, limit)
    found.sort(key=lambda match: match[:2])
    return Candidates(
        candidates=tuple(candidate for _, _, candidate in found[:limit]),
        passage_count=passages,
        turn_count=_turn_count(connection, workspace, scope) if ranges else 0,
        average_length=length / passages if passages else 0.0,
        document_frequency=frequency,
    )


def _turn_count(connection: Connection, workspace: str, scope: SearchScope) -> int:
    if scope.conversation_id is not None:
        return int(
            connection.value("select turn_count from conversation where pk = ?", (key_of(connection, workspace, scope.conversation_id),))
        )
    return int(
        connection.value(
            """
            select count(*) from conversation c join turn t on t.conversation_pk = c.pk
            where c.workspace_pk = (select pk from workspace where name = ?1)
                and (?2 is null or c.project_pk in (
                    select pk from project where workspace_pk = c.workspace_pk and uuid in (select value from json_each(?2))))
            """,
            (workspace, None if scope.project_ids is None else as_json(scope.project_ids)),
        )
    )


def _ranges(connection: Connection, workspace: str, scope: SearchScope) -> list[tuple[Range, int]]:
    """Return the passage numbers of a scope, each range with the last turn index that counts in it."""
    if scope.conversation_id is not None:
        shown = ancestors(connection, key_of(connection, workspace, scope.conversation_id))
        return [(_conversation_range(connection, a.key), _ANY_INDEX if a.last_index is None else a.last_index) for a in shown]
    workspace_pk = connection.value("select pk from workspace where name = ?", (workspace,))
    if workspace_pk is None:
        return []
    if scope.project_ids is None:
        return [(workspace_range(workspace_pk), _ANY_INDEX)]
    rows = connection.rows(
        "select number from project where workspace_pk = ? and uuid in (select value from json_each(?)) order by number",
        (workspace_pk, as_json(scope.project_ids)),
    )
    return [(project_range(workspace_pk, row[0]), _ANY_INDEX) for row in rows]


def _conversation_range(connection: Connection, key: int) -> Range:
    row = connection.row(
        "select c.workspace_pk, p.number, c.number from conversation c join project p on p.pk = c.project_pk where c.pk = ?", (key,)
    )
    return (1, 0) if row is None else conversation_range(row[0], row[1], row[2])


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _frequency(connection: Connection, term: str, first: int, last: int, last_index: int) -> int:
    if last_index == _ANY_INDEX:
        count = connection.value(
            "select count(*) from passage_terms where passage_terms match ? and rowid between ? and ?", (_quoted(term), first, last)
        )
    else:
        count = connection.value(
            """
            select count(*) from passage_terms join passage on number = passage_terms.rowid join turn on turn.pk = turn_pk
            where passage_terms match ? and passage_terms.rowid between ? and ? and turn_index <= ?
            """,
            (_quoted(term), first, last, last_index),
        )
    return int(count)


def _matches(connection: Connection, query: str, numbers: Range, last_index: int, limit: int) -> list[tuple[float, int, Candidate]]:
    """Rank within the scope: the range comes first, then the best `limit` of what is left."""
    rows = connection.rows(
        """
        select best.rank, number, turn.uuid, part, ordinal, start, end, terms from (
            select rowid, rank from passage_terms where passage_terms match ?1 and rowid between ?2 and ?3
                and (?4 = ?5 or exists (
                    select 1 from passage join turn on turn.pk = turn_pk where number = passage_terms.rowid and turn_index <= ?4))
            order by rank, rowid limit ?6
        ) best join passage on number = best.rowid join turn on turn.pk = turn_pk order by best.rank, number
        """,
        (query, numbers[0], numbers[1], last_index, _ANY_INDEX, limit),
    )
    return [
        (
            row[0],
            row[1],
            Candidate(turn_id=row[2], passage=Passage(part=row[3], ordinal=row[4], start=row[5], end=row[6], terms=row[7])),
        )
        for row in rows
    ]


def _put_summary(connection: Connection, workspace: str, summary: Summary) -> None:
    conversation_pk = key_of(connection, workspace, summary.conversation_id)
    connection.run("delete from summary where uuid = ? and conversation_pk = ?", (summary.id, conversation_pk))
    key = connection.inserted(
        """
        insert into summary (conversation_pk, uuid, level, summary, actions, key_findings, files_mentioned, tools_used, topics, first_turn,
            last_turn, turn_count, char_count, author, created_at, source_ids, checksum)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            conversation_pk, summary.id, summary.level, summary.summary, summary.actions, as_json(summary.key_findings),
            as_json(summary.files_mentioned), as_json(summary.tools_used), as_json(summary.topics), summary.first_turn, summary.last_turn,
            summary.turn_count, summary.char_count, summary.author, iso(summary.created_at), as_json(summary.source_ids), checksum(summary),
        ),
    )  # fmt: skip
    sources = as_json(summary.source_ids)
    connection.run(
        """
        insert into summary_source (summary_pk, turn_pk)
        select ?1, t.pk from turn t join conversation c on c.pk = t.conversation_pk
        where t.uuid in (select value from json_each(?2)) and c.workspace_pk = (select workspace_pk from conversation where pk = ?3)
        """,
        (key, sources, conversation_pk),
    )
    connection.run(
        """
        insert into summary_source (summary_pk, source_pk)
        select ?1, pk from summary where conversation_pk = ?3 and uuid in (select value from json_each(?2)) and pk <> ?1
        """,
        (key, sources, conversation_pk),
    )


def _summaries(connection: Connection, workspace: str, conversation_id: str, level: int | None) -> list[Summary]:
    rows = connection.rows(
        """
        select uuid, level, summary, actions, key_findings, files_mentioned, tools_used, topics, first_turn, last_turn, turn_count,
            char_count, author, created_at, source_ids
        from summary where conversation_pk = ?1 and (?2 is null or level = ?2) order by level, first_turn
        """,
        (key_of(connection, workspace, conversation_id), level),
    )
    return [_summary(row, conversation_id) for row in rows]


def _summary(row: Row, conversation_id: str) -> Summary:
    return Summary(
        id=row[0], conversation_id=conversation_id, level=row[1], summary=row[2], actions=row[3], key_findings=texts(row[4]),
        files_mentioned=texts(row[5]), tools_used=texts(row[6]), topics=texts(row[7]), first_turn=row[8], last_turn=row[9],
        turn_count=row[10], char_count=row[11], author=row[12], created_at=from_iso(row[13]), source_ids=texts(row[14]),
    )  # fmt: skip


def _put_insight(connection: Connection, workspace: str, insight: Insight) -> None:
    conversation_pk = key_of(connection, workspace, insight.conversation_id)
    connection.run("delete from insight where uuid = ? and conversation_pk = ?", (insight.id, conversation_pk))
    connection.run(
        "insert into insight (conversation_pk, uuid, kind, body, created_at, checksum) values (?, ?, ?, ?, ?, ?)",
        (conversation_pk, insight.id, insight.kind, as_json(insight.body), iso(insight.created_at), checksum(insight)),
    )


def _insights(connection: Connection, workspace: str, conversation_id: str) -> list[Insight]:
    rows = connection.rows(
        "select uuid, kind, body, created_at from insight where conversation_pk = ? order by pk",
        (key_of(connection, workspace, conversation_id),),
    )
    return [
        Insight(
            id=row[0],
            conversation_id=conversation_id,
            kind=row[1],
            body=msgspec.json.decode(row[2], type=dict[str, Any]),
            created_at=from_iso(row[3]),
        )
        for row in rows
    ]


def _put_scope(connection: Connection, workspace: str, scope: Scope) -> None:
    project_pk = connection.value(
        "select p.pk from project p join workspace w on w.pk = p.workspace_pk where w.name = ? and p.uuid = ?",
        (workspace, scope.project_id),
    )
    connection.run("insert into code_file (project_pk, file_path) values (?, ?) on conflict do nothing", (project_pk, scope.file_path))
    connection.run("delete from scope where uuid = ? and project_pk = ?", (scope.id, project_pk))
    connection.run(
        """
        insert into scope (project_pk, uuid, code_file_pk, name, kind, line_start, line_end, signature, content_hash, checksum)
        select ?1, ?2, pk, ?4, ?5, ?6, ?7, ?8, ?9, ?10 from code_file where project_pk = ?1 and file_path = ?3
        """,
        (
            project_pk, scope.id, scope.file_path, scope.name, scope.kind, scope.line_start, scope.line_end, scope.signature,
            scope.content_hash, checksum(scope),
        ),
    )  # fmt: skip


def _scopes(connection: Connection, workspace: str, project_id: str, name: str | None) -> list[Scope]:
    rows = connection.rows(
        """
        select s.uuid, s.name, s.kind, f.file_path, s.line_start, s.line_end, s.signature, s.content_hash
        from scope s join project p on p.pk = s.project_pk join workspace w on w.pk = p.workspace_pk
            join code_file f on f.pk = s.code_file_pk
        where w.name = ?1 and p.uuid = ?2 and (?3 is null or s.name = ?3) order by f.file_path, s.line_start
        """,
        (workspace, project_id, name),
    )
    return [
        Scope(
            id=row[0], project_id=project_id, name=row[1], kind=row[2], file_path=row[3], line_start=row[4], line_end=row[5],
            signature=row[6], content_hash=row[7],
        )
        for row in rows
    ]  # fmt: skip
