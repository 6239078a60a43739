"""Passages to search, summaries, insights and scopes in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from recollect.clock import from_iso, iso
from recollect.model import Insight, Passage, Reference, Scope, Summary
from recollect.store.shapes import Candidate, Candidates
from recollect.store.sqlite.numbering import Range, conversation_range, project_range, workspace_range
from recollect.store.sqlite.rows import as_json, texts

if TYPE_CHECKING:
    from recollect.store.shapes import Area
    from recollect.store.sqlite.database import Connection, Row

_ANY_INDEX = 2**62


class SqliteDerived:
    """The `DerivedRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def candidates(self, area: Area, terms: list[str], limit: int) -> Candidates:
        """Return the passages of an area that share a term, with the counts of the area."""
        return _candidates(self._connection, self._workspace, area, terms, limit)

    async def put_summary(self, summary: Summary, checksum: int) -> None:
        """Write a summary with the edges to its sources."""
        _put_summary(self._connection, _key(self._connection, self._workspace, summary.conversation_id), summary, checksum)

    async def summaries(self, conversation_id: str, level: int | None) -> list[Summary]:
        """Return summaries by level, first turn and id."""
        rows = self._connection.rows(
            """
            select uuid, level, summary, actions, key_findings, files_mentioned, tools_used, topics, first_turn, last_turn, turn_count,
                char_count, author, created_at, source_ids
            from summary where conversation_pk = ?1 and (?2 is null or level = ?2) order by level, first_turn, uuid
            """,
            (_key(self._connection, self._workspace, conversation_id), level),
        )
        return [_summary(row, conversation_id) for row in rows]

    async def put_insight(self, insight: Insight, checksum: int) -> None:
        """Write an insight."""
        key = _key(self._connection, self._workspace, insight.conversation_id)
        self._connection.run("delete from insight where uuid = ? and conversation_pk = ?", (insight.id, key))
        self._connection.run(
            "insert into insight (conversation_pk, uuid, kind, body, created_at, checksum) values (?, ?, ?, ?, ?, ?)",
            (key, insight.id, insight.kind, as_json(insight.body), iso(insight.created_at), checksum),
        )

    async def insights(self, conversation_id: str) -> list[Insight]:
        """Return insights, oldest first, then by id."""
        rows = self._connection.rows(
            "select uuid, kind, body, created_at from insight where conversation_pk = ? order by created_at, uuid",
            (_key(self._connection, self._workspace, conversation_id),),
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

    async def put_scopes(self, project_id: str, scopes: list[tuple[Scope, int]]) -> None:
        """Write scopes with their checksums."""
        project_pk = self._connection.value(
            "select p.pk from project p join workspace w on w.pk = p.workspace_pk where w.name = ? and p.uuid = ?",
            (self._workspace, project_id),
        )
        for scope, checksum in scopes:
            _put_scope(self._connection, project_pk, scope, checksum)

    async def scopes(self, project_id: str, name: str | None) -> list[Scope]:
        """Return scopes by path, line and id."""
        rows = self._connection.rows(
            """
            select s.uuid, s.name, s.kind, f.file_path, s.line_start, s.line_end, s.signature, s.content_hash
            from scope s join project p on p.pk = s.project_pk join workspace w on w.pk = p.workspace_pk
                join code_file f on f.pk = s.code_file_pk
            where w.name = ?1 and p.uuid = ?2 and (?3 is null or s.name = ?3) order by f.file_path, s.line_start, s.uuid
            """,
            (self._workspace, project_id, name),
        )
        return [
            Scope(
                id=row[0], project_id=project_id, name=row[1], kind=row[2], file_path=row[3], line_start=row[4], line_end=row[5],
                signature=row[6], content_hash=row[7],
            )
            for row in rows
        ]  # fmt: skip

    async def put_references(self, references: list[Reference]) -> None:
        """Write that messages speak of scopes."""
        self._connection.run_many(
            """
            insert into reference (message_pk, scope_pk)
            select m.pk, s.pk from message m join turn t on t.pk = m.turn_pk join conversation c on c.pk = t.conversation_pk
                join workspace w on w.pk = c.workspace_pk join project p on p.workspace_pk = w.pk join scope s on s.project_pk = p.pk
            where w.name = ?1 and m.uuid = ?2 and s.uuid = ?3
            on conflict do nothing
            """,
            [(self._workspace, one.message_id, one.scope_id) for one in references],
        )

    async def references(self, scope_ids: list[str]) -> list[Reference]:
        """Return who speaks of scopes, by scope, conversation and message."""
        rows = self._connection.rows(
            """
            select m.uuid, c.uuid, s.uuid from scope s join reference r on r.scope_pk = s.pk join message m on m.pk = r.message_pk
                join turn t on t.pk = m.turn_pk join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
            where w.name = ?1 and s.uuid in (select value from json_each(?2)) order by s.uuid, c.uuid, m.sequence
            """,
            (self._workspace, as_json(scope_ids)),
        )
        return [Reference(message_id=row[0], scope_id=row[2], conversation_id=row[1]) for row in rows]


def _key(connection: Connection, workspace: str, conversation_id: str) -> int | None:
    key: int | None = connection.value(
        "select pk from conversation where workspace_pk = (select pk from workspace where name = ?) and uuid = ?",
        (workspace, conversation_id),
    )
    return key


def _candidates(connection: Connection, workspace: str, area: Area, terms: list[str], limit: int) -> Candidates:
    ranges = _ranges(connection, workspace, area)
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
        turn_count=_turn_count(connection, workspace, area) if ranges else 0,
        average_length=length / passages if passages else 0.0,
        document_frequency=frequency,
    )


def _turn_count(connection: Connection, workspace: str, area: Area) -> int:
    if area.spans is not None:
        return sum(
            connection.value(
                "select count(*) from turn where conversation_pk = ? and turn_index <= ?",
                (_key(connection, workspace, span.conversation_id), _ANY_INDEX if span.last is None else span.last),
            )
            for span in area.spans
        )
    return int(
        connection.value(
            """
            select count(*) from conversation c join turn t on t.conversation_pk = c.pk
            where c.workspace_pk = (select pk from workspace where name = ?1)
                and (?2 is null or c.project_pk in (
                    select pk from project where workspace_pk = c.workspace_pk and uuid in (select value from json_each(?2))))
            """,
            (workspace, None if area.project_ids is None else as_json(area.project_ids)),
        )
    )


def _ranges(connection: Connection, workspace: str, area: Area) -> list[tuple[Range, int]]:
    """Return the passage numbers of an area, each range with the last turn index that counts in it."""
    if area.spans is not None:
        return [
            (_conversation_range(connection, workspace, span.conversation_id), _ANY_INDEX if span.last is None else span.last)
            for span in area.spans
        ]
    workspace_pk = connection.value("select pk from workspace where name = ?", (workspace,))
    if workspace_pk is None:
        return []
    if area.project_ids is None:
        return [(workspace_range(workspace_pk), _ANY_INDEX)]
    rows = connection.rows(
        "select number from project where workspace_pk = ? and uuid in (select value from json_each(?)) order by number",
        (workspace_pk, as_json(area.project_ids)),
    )
    return [(project_range(workspace_pk, row[0]), _ANY_INDEX) for row in rows]


def _conversation_range(connection: Connection, workspace: str, conversation_id: str) -> Range:
    row = connection.row(
        "select c.workspace_pk, p.number, c.number from conversation c join project p on p.pk = c.project_pk where c.pk = ?",
        (_key(connection, workspace, conversation_id),),
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
        select best.rank, passage.number, turn.uuid, part, ordinal, start, end, terms, conversation.uuid, turn_index from (
            select rowid, rank from passage_terms where passage_terms match ?1 and rowid between ?2 and ?3
                and (?4 = ?5 or exists (
                    select 1 from passage join turn on turn.pk = turn_pk where number = passage_terms.rowid and turn_index <= ?4))
            order by rank, rowid limit ?6
        ) best join passage on passage.number = best.rowid join turn on turn.pk = turn_pk
            join conversation on conversation.pk = conversation_pk
        order by best.rank, passage.number
        """,
        (query, numbers[0], numbers[1], last_index, _ANY_INDEX, limit),
    )
    return [
        (
            row[0],
            row[1],
            Candidate(
                turn_id=row[2],
                conversation_id=row[8],
                turn_index=row[9],
                passage=Passage(part=row[3], ordinal=row[4], start=row[5], end=row[6], terms=row[7]),
            ),
        )
        for row in rows
    ]


def _put_summary(connection: Connection, conversation_pk: int | None, summary: Summary, checksum: int) -> None:
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
            summary.turn_count, summary.char_count, summary.author, iso(summary.created_at), as_json(summary.source_ids), checksum,
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


def _summary(row: Row, conversation_id: str) -> Summary:
    return Summary(
        id=row[0], conversation_id=conversation_id, level=row[1], summary=row[2], actions=row[3], key_findings=texts(row[4]),
        files_mentioned=texts(row[5]), tools_used=texts(row[6]), topics=texts(row[7]), first_turn=row[8], last_turn=row[9],
        turn_count=row[10], char_count=row[11], author=row[12], created_at=from_iso(row[13]), source_ids=texts(row[14]),
    )  # fmt: skip


def _put_scope(connection: Connection, project_pk: int, scope: Scope, checksum: int) -> None:
    connection.run("insert into code_file (project_pk, file_path) values (?, ?) on conflict do nothing", (project_pk, scope.file_path))
    connection.run("delete from scope where uuid = ? and project_pk = ?", (scope.id, project_pk))
    connection.run(
        """
        insert into scope (project_pk, uuid, code_file_pk, name, kind, line_start, line_end, signature, content_hash, checksum)
        select ?1, ?2, pk, ?4, ?5, ?6, ?7, ?8, ?9, ?10 from code_file where project_pk = ?1 and file_path = ?3
        """,
        (
            project_pk, scope.id, scope.file_path, scope.name, scope.kind, scope.line_start, scope.line_end, scope.signature,
            scope.content_hash, checksum,
        ),
    )  # fmt: skip
