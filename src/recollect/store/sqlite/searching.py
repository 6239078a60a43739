"""Candidates for search in SQLite: the passages of an area that share a term, with the counts of the area."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.model import Passage
from recollect.store.shapes import Candidate, Candidates
from recollect.store.sqlite.numbering import Range, conversation_range, project_range, workspace_range
from recollect.store.sqlite.rows import as_json

if TYPE_CHECKING:
    from recollect.store.shapes import Area
    from recollect.store.sqlite.database import Connection

_ANY_INDEX = 2**62


def key_of(connection: Connection, workspace: str, conversation_id: str) -> int | None:
    """Return the key of a conversation, or None."""
    key: int | None = connection.value(
        "select pk from conversation where workspace_pk = (select pk from workspace where name = ?) and uuid = ?",
        (workspace, conversation_id),
    )
    return key


def conversation_range_of(connection: Connection, workspace: str, conversation_id: str) -> Range:
    """Return the numbers of a conversation's passages."""
    row = connection.row(
        "select c.workspace_pk, p.number, c.number from conversation c join project p on p.pk = c.project_pk where c.pk = ?",
        (key_of(connection, workspace, conversation_id),),
    )
    return (1, 0) if row is None else conversation_range(row[0], row[1], row[2])


def candidates(connection: Connection, workspace: str, area: Area, terms: list[str], limit: int) -> Candidates:
    """Return the passages of an area that share a term, the most promising first."""
    ranges = _ranges(connection, workspace, area)
    found: list[tuple[float, int, Candidate]] = []
    passages = length = 0
    frequency = dict.fromkeys(terms, 0)
    query = " OR ".join(_quoted(term) for term in terms)
    levels = None if area.levels is None else as_json(area.levels)
    for (first, last), last_index in ranges:
        counted = connection.row(
            """
            select count(*), coalesce(sum(length), 0) from passage
            where number between ?1 and ?2 and last_turn <= ?3 and (?4 is null or level in (select value from json_each(?4)))
            """,
            (first, last, last_index, levels),
        )
        if counted is None or not counted[0] or not terms:
            continue
        passages, length = passages + counted[0], length + counted[1]
        for term in terms:
            frequency[term] += _frequency(connection, term, (first, last), last_index, levels)
        found += _matches(connection, query, (first, last), last_index, levels, limit)
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
                (key_of(connection, workspace, span.conversation_id), _ANY_INDEX if span.last is None else span.last),
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
            (conversation_range_of(connection, workspace, span.conversation_id), _ANY_INDEX if span.last is None else span.last)
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


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'


def _frequency(connection: Connection, term: str, numbers: Range, last_index: int, levels: str | None) -> int:
    if last_index == _ANY_INDEX and levels is None:
        count = connection.value(
            "select count(*) from passage_terms where passage_terms match ? and rowid between ? and ?", (_quoted(term), *numbers)
        )
    else:
        count = connection.value(
            """
            select count(*) from passage_terms join passage on number = passage_terms.rowid
            where passage_terms match ?1 and passage_terms.rowid between ?2 and ?3 and last_turn <= ?4
                and (?5 is null or level in (select value from json_each(?5)))
            """,
            (_quoted(term), *numbers, last_index, levels),
        )
    return int(count)


def _matches(
    connection: Connection, query: str, numbers: Range, last_index: int, levels: str | None, limit: int
) -> list[tuple[float, int, Candidate]]:
    """Rank within the scope: the range comes first, then the best `limit` of what is left."""
    rows = connection.rows(
        """
        select best.rank, p.number, coalesce(t.uuid, s.uuid), p.level, part, ordinal, start, end, terms, c.uuid, p.last_turn from (
            select rowid, rank from passage_terms where passage_terms match ?1 and rowid between ?2 and ?3
                and ((?4 = ?5 and ?6 is null) or exists (
                    select 1 from passage where number = passage_terms.rowid and last_turn <= ?4
                        and (?6 is null or level in (select value from json_each(?6)))))
            order by rank, rowid limit ?7
        ) best join passage p on p.number = best.rowid left join turn t on t.pk = p.turn_pk left join summary s on s.pk = p.summary_pk
            join conversation c on c.pk = coalesce(t.conversation_pk, s.conversation_pk)
        order by best.rank, p.number
        """,
        (query, *numbers, last_index, _ANY_INDEX, levels, limit),
    )
    return [
        (
            row[0],
            row[1],
            Candidate(
                owner_id=row[2],
                level=row[3],
                conversation_id=row[9],
                turn_index=row[10],
                passage=Passage(part=row[4], ordinal=row[5], start=row[6], end=row[7], terms=row[8]),
            ),
        )
        for row in rows
    ]
