"""Candidates for recall in SQLite: the passages of an area by terms and by meaning, with the counts of the area."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, LiteralString

import msgspec

from recollect.clock import iso
from recollect.store.shapes import Candidates, Counts, Found, TurnFilter
from recollect.store.sqlite.numbering import (
    PASSAGE_BITS,
    Range,
    conversation_of,
    conversation_range,
    project_range,
    workspace_range,
)
from recollect.store.sqlite.rows import as_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from recollect.store.shapes import Area, Probe
    from recollect.store.sqlite.database import Connection, Row
    from recollect.store.sqlite.planes import Near, Told
    from recollect.store.sqlite.remembering import Remembered

_ANY_INDEX = 2**31 - 1
_NO_FILTER = TurnFilter()

_POSTINGS_MAX = 4_000  # a term that more passages have is common: it counts in the score, and chooses no candidates if it need not
_DRIFT_MAX = 0.05

Ranges = list[tuple[Range, int]]

_HAVING: LiteralString = """
    from passage_terms where passage_terms match ?1 and rowid between ?2 and ?3
        and ((?4 = ?5 and ?6 is null) or exists (
            select 1 from passage where number = passage_terms.rowid and last_turn <= ?4
                and (?6 is null or level in (select value from json_each(?6)))))
"""
_TURNS: LiteralString = """
    select coalesce(sum(case when c.parent_pk is null then c.turn_count
        else (select count(*) from turn t where t.conversation_pk = c.pk) end), 0)
"""  # a conversation that inherits nothing has counted its own turns
_LAST_TURN, _NUMBER = 4, 14  # columns of passages that were found
_NUMBERS: LiteralString = "select json_group_array(rowid) from (select rowid" + _HAVING + "limit ?7)"
_COUNT: LiteralString = "select count(*)" + _HAVING
_NEWEST: LiteralString = (
    "select rowid" + _HAVING + "and (?7 is null or rowid in (select value from json_each(?7))) order by rowid desc limit ?8"
)


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


class _Where(msgspec.Struct, frozen=True):
    """An area in numbers: ranges, each with the last turn that counts, the levels, and the only ones a filter lets through."""

    ranges: Ranges
    levels: tuple[int, ...] | None
    among: list[int] | None

    @property
    def levels_json(self) -> str | None:
        return None if self.levels is None else as_json(self.levels)

    @property
    def among_numbers(self) -> NDArray[np.int64] | None:
        import numpy as np  # noqa: PLC0415  only those who have found something need it

        return None if self.among is None else np.array(self.among, np.int64)

    @property
    def among_json(self) -> str | None:
        return None if self.among is None else as_json(self.among)


class SqliteSearch:
    """The `SearchRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str, remembered: Remembered) -> None:
        self._connection = connection
        self._workspace = workspace
        self._remembered = remembered

    async def candidates(self, area: Area, probe: Probe) -> Candidates:
        """Return the passages of the turns and summaries of an area that promise most, with the counts of the area."""
        where = self._where(area)
        passages, terms = self._counted(where)
        counts = Counts(passages, terms, self._turn_count(area) if where.ranges else 0)
        if not passages:
            return Candidates(turn_count=counts.turns)
        frequency, having = self._having_any(where, probe, passages)
        near = None if probe.model is None else self._near(where, probe)
        return Candidates(
            passages=tuple(self._chosen(where, probe, counts, having, near)),
            passage_count=passages,
            embedded_count=0 if near is None else near.count,
            turn_count=counts.turns,
            average_length=terms / passages,
            document_frequency=frequency,
        )

    # Where an area is

    def _where(self, area: Area) -> _Where:
        among = None if area.where == _NO_FILTER else self._filtered(area.where)
        return _Where(self._ranges(area), area.levels, among)

    def _ranges(self, area: Area) -> Ranges:
        if area.spans is not None:
            return [
                (
                    conversation_range_of(self._connection, self._workspace, span.conversation_id),
                    _ANY_INDEX if span.last is None else span.last,
                )
                for span in area.spans
            ]
        workspace_pk = self._connection.value("select pk from workspace where name = ?", (self._workspace,))
        if workspace_pk is None:
            return []
        if area.project_ids is None:
            return [(workspace_range(workspace_pk), _ANY_INDEX)]
        rows = self._connection.rows(
            """
            select distinct number from json_each(?2) asked
                cross join project on uuid = asked.value and workspace_pk = ?1 order by number
            """,
            (workspace_pk, as_json(area.project_ids)),
        )
        return [(project_range(workspace_pk, row[0]), _ANY_INDEX) for row in rows]

    def _filtered(self, where: TurnFilter) -> list[int]:
        """Return the passages of the turns that a filter lets through, and of the summaries that tell of one."""
        rows = self._connection.rows(
            """
            with file as materialized (
                select f.pk from code_file f join project p on p.pk = f.project_pk
                where p.workspace_pk = (select pk from workspace where name = ?1)
                    and (f.file_path = ?7 or substr(f.file_path, -length(?7) - 1) = '/' || ?7)
            ),
            touched as materialized (
                select k.turn_pk from access a join tool_call k on k.pk = a.tool_call_pk where a.code_file_pk in (select pk from file)
                union select turn_pk from code_change where code_file_pk in (select pk from file)
                union select turn_pk from context_file where code_file_pk in (select pk from file)
            ),
            wanted as materialized (
                select t.pk, t.conversation_pk, t.turn_index from turn t join conversation c on c.pk = t.conversation_pk
                where c.workspace_pk = (select pk from workspace where name = ?1) and (?2 is null or c.agent = ?2)
                    and (?3 is null or exists (select 1 from json_each(c.tags) a join json_each(?3) b on a.value = b.value))
                    and (?4 is null or coalesce(t.ended_at, t.started_at) >= ?4)
                    and (?5 is null or coalesce(t.started_at, t.ended_at) < ?5)
                    and (?6 is null or exists (select 1 from tool_call k where k.turn_pk = t.pk and lower(k.tool_name) = lower(?6)))
                    and (?7 is null or t.pk in (select turn_pk from touched))
            )
            select number from passage where turn_pk in (select pk from wanted)
            union all select p.number from passage p join summary s on s.pk = p.summary_pk
            where exists (
                select 1 from wanted w where w.conversation_pk = s.conversation_pk and w.turn_index between s.first_turn and s.last_turn)
            """,
            (
                self._workspace,
                where.agent,
                as_json(where.tags) if where.tags else None,
                None if where.since is None else iso(where.since),
                None if where.until is None else iso(where.until),
                where.tool,
                where.file,
            ),
        )
        return [row[0] for row in rows]

    # What it holds

    def _counted(self, where: _Where) -> tuple[int, int]:
        """Return how many passages an area has, and how many terms those have."""
        passages = terms = 0
        for (first, last), last_turn in where.ranges:
            if last_turn == _ANY_INDEX:
                row = self._connection.row(
                    """
                    select coalesce(sum(passages), 0), coalesce(sum(terms), 0) from tally
                    where conversation between ?1 and ?2 and (?3 is null or level in (select value from json_each(?3)))
                    """,
                    (first >> PASSAGE_BITS, last >> PASSAGE_BITS, where.levels_json),
                )
            else:
                row = self._connection.row(
                    """
                    select count(*), coalesce(sum(length), 0) from passage
                    where number between ?1 and ?2 and last_turn <= ?3 and (?4 is null or level in (select value from json_each(?4)))
                    """,
                    (first, last, last_turn, where.levels_json),
                )
            passages, terms = (passages + row[0], terms + row[1]) if row is not None else (passages, terms)
        return passages, terms

    def _turn_count(self, area: Area) -> int:
        if area.spans is not None:
            return sum(
                self._connection.value(
                    "select count(*) from turn where conversation_pk = ? and turn_index <= ?",
                    (key_of(self._connection, self._workspace, span.conversation_id), _ANY_INDEX if span.last is None else span.last),
                )
                for span in area.spans
            )
        if area.project_ids is None:
            return int(
                self._connection.value(
                    _TURNS + "from conversation c where c.workspace_pk = (select pk from workspace where name = ?)", (self._workspace,)
                )
            )
        return int(
            self._connection.value(
                _TURNS
                + """
                from (select distinct value from json_each(?2)) asked
                    cross join project p on p.uuid = asked.value and p.workspace_pk = (select pk from workspace where name = ?1)
                    cross join conversation c on c.project_pk = p.pk
                """,
                (self._workspace, as_json(area.project_ids)),
            )
        )

    # What is in it

    def _having_any(self, where: _Where, probe: Probe, passages: int) -> tuple[dict[str, int], list[tuple[float, list[int]]]]:
        """Return how many passages have each term, and which have it, with its rarity."""
        frequency: dict[str, int] = {}
        having: list[tuple[float, list[int]]] = []
        for term in probe.terms:
            count, numbers = self._having(term, where, passages, max(_POSTINGS_MAX, probe.limit))
            frequency[term] = count
            having.append((math.log(1 + (passages - count + 0.5) / (count + 0.5)), numbers))
        allowed = None if where.among is None else set(where.among)
        if any(numbers if allowed is None else allowed.intersection(numbers) for _, numbers in having):
            return frequency, having
        for term in sorted((term for term in frequency if frequency[term]), key=frequency.__getitem__):  # the rarest that is there
            newest = self._newest(where, term, probe.limit)
            if newest:
                having.append((1.0, newest))
                break
        return frequency, having

    def _having(self, term: str, where: _Where, passages: int, postings_max: int) -> tuple[int, list[int]]:
        """Return how many passages have a term, and which, unless it is common; those are counted again when the area has changed."""
        key = (self._workspace, term, where.levels_json, *where.ranges)
        known = self._remembered.frequencies.get(key)
        if known is not None and known[1] > postings_max and abs(passages - known[0]) <= known[0] * _DRIFT_MAX:
            return min(round(known[1] * passages / max(known[0], 1)), passages), []
        numbers: list[int] = []
        for (first, last), last_turn in where.ranges:
            bindings = (_quoted(term), first, last, last_turn, _ANY_INDEX, where.levels_json)
            found = self._connection.value(_NUMBERS, (*bindings, postings_max + 1 - len(numbers)))
            numbers += msgspec.json.decode(found, type=list[int])
            if len(numbers) > postings_max:
                break
        if len(numbers) <= postings_max:
            return len(numbers), numbers
        count = sum(
            int(self._connection.value(_COUNT, (_quoted(term), first, last, last_turn, _ANY_INDEX, where.levels_json)))
            for (first, last), last_turn in where.ranges
        )
        self._remembered.remember(key, passages, count)
        return count, []

    def _newest(self, where: _Where, term: str, limit: int) -> list[int]:
        """Return the newest passages of a term so common that it ranks nothing."""
        found: list[int] = []
        for (first, last), last_turn in where.ranges:
            bindings = (_quoted(term), first, last, last_turn, _ANY_INDEX, where.levels_json, where.among_json, limit)
            found += [row[0] for row in self._connection.rows(_NEWEST, bindings)]
        return sorted(found, reverse=True)[:limit]

    def _near(self, where: _Where, probe: Probe) -> Near:
        """Return the passages whose signs are closest to the vector asked for."""
        import numpy as np  # noqa: PLC0415  only those who search by meaning need it

        planes = self._remembered.planes(probe.model or "")
        planes.refresh(self._connection)
        return planes.near(
            self._connection, where.ranges, where.levels, where.among_numbers, np.array(probe.vector, np.float32), probe.limit
        )

    # What is worth scoring

    def _chosen(self, where: _Where, probe: Probe, counts: Counts, having: list[tuple[float, list[int]]], near: Near | None) -> list[Found]:
        """Return the passages of what promises most: all of them, where there are no more than may be looked at."""
        import numpy as np  # noqa: PLC0415  as above

        from recollect.store.choosing import Shares, chosen_turns, promises  # noqa: PLC0415  as above

        shares = Shares(having)
        numbers = shares.highest(probe.limit, where.among_numbers)
        if near is not None:
            numbers = np.union1d(numbers, near.numbers)
        if len(numbers) == counts.passages:
            return self._found(numbers.tolist(), probe.model)
        told = self._told(numbers, near, probe)
        promised = promises(numbers, shares, told.cosines, counts.passages / max(counts.turns, 1))
        own = told.levels == 0
        places = chosen_turns(numbers[own] >> PASSAGE_BITS, told.turns[own], promised[own], counts, probe)
        return [*self._of_turns(where, places, probe.model), *self._found(numbers[~own].tolist(), probe.model)]

    def _told(self, numbers: NDArray[np.int64], near: Near | None, probe: Probe) -> Told:
        """Tell of passages where they are, and about how close: as it is remembered, and read where it is not."""
        import numpy as np  # noqa: PLC0415  as above

        from recollect.store.sqlite.planes import Planes  # noqa: PLC0415  as above

        told = Planes("").told(numbers, np.zeros(0, np.uint64)) if near is None else near.planes.told(numbers, near.asked)
        unknown = np.flatnonzero(told.levels < 0)
        if len(unknown):
            rows = self._connection.rows(
                """
                select p.level, p.last_turn, e.scale, e.vector from json_each(?1) asked cross join passage p on p.number = asked.value
                    left join embedding e on e.number = p.number and e.model = ?2 and length(e.vector) = ?3
                """,
                (as_json(numbers[unknown].tolist()), probe.model, len(probe.vector)),
            )
            vector = np.array(probe.vector, np.float64)
            for place, (level, last_turn, scale, values) in zip(unknown.tolist(), rows, strict=True):
                told.levels[place], told.turns[place] = level, last_turn
                if values is not None:
                    told.cosines[place] = float(np.frombuffer(values, np.int8) @ vector) * scale
        return told

    def _of_turns(self, where: _Where, places: list[tuple[int, int]], model: str | None) -> list[Found]:
        """Return every passage of some turns, named by the number of their conversation and their index, that is in an area."""
        if not places:
            return []
        rows = self._connection.rows(
            """
            select t.uuid, p.level, c.uuid, p.last_turn, p.last_turn, p.part, p.ordinal, p.start, p.end, p.terms, p.length,
                coalesce(t.ended_at, t.started_at), e.scale, e.vector, p.number
            from json_each(?2) place
                cross join project q on q.workspace_pk = place.value ->> 0 and q.number = place.value ->> 1
                cross join conversation c on c.project_pk = q.pk and c.number = place.value ->> 2
                cross join turn t on t.conversation_pk = c.pk and t.turn_index = place.value ->> 3 cross join passage p on p.turn_pk = t.pk
                left join embedding e on e.number = p.number and e.model = ?1
            """,
            (model, as_json([(*conversation_of(conversation), turn) for conversation, turn in places])),
        )
        allowed = None if where.among is None else set(where.among)
        return [
            _found_of(row)
            for (first, last), last_turn in where.ranges
            for row in rows
            if first <= row[_NUMBER] <= last and row[_LAST_TURN] <= last_turn and (allowed is None or row[_NUMBER] in allowed)
        ]

    def _found(self, numbers: list[int], model: str | None) -> list[Found]:
        if not numbers:
            return []
        rows = self._connection.rows(
            """
            select coalesce(t.uuid, s.uuid), p.level, c.uuid, coalesce(s.first_turn, p.last_turn), p.last_turn, p.part, p.ordinal, p.start,
                p.end, p.terms, p.length, coalesce(t.ended_at, t.started_at, s.created_at), e.scale, e.vector
            from json_each(?2) asked cross join passage p on p.number = asked.value left join turn t on t.pk = p.turn_pk
                left join summary s on s.pk = p.summary_pk join conversation c on c.pk = coalesce(t.conversation_pk, s.conversation_pk)
                left join embedding e on e.number = p.number and e.model = ?1
            """,
            (model, as_json(numbers)),
        )
        return [_found_of(row) for row in rows]


def _found_of(row: Row) -> Found:
    return Found(*row[:_NUMBER])


def _quoted(term: str) -> str:
    return '"' + term.replace('"', '""') + '"'
