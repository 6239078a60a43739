"""Candidates for recall in Neo4j: the passages of an area by terms and by meaning, with the counts of the area.

Neither index takes a scope. In the full-text index the scope is a word that must match and weighs nothing. Vectors of
a small area are compared one by one; for a large one the index is asked for so many that enough of them are inside, and
when they are not, they are compared one by one after all.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple

import msgspec

from recollect.limits import INTEGER_MAX
from recollect.model import Passage
from recollect.store.neo4j.rows import full_text_query, read, readable, scope_term
from recollect.store.shapes import Candidates, Counts, Found, TurnFilter

if TYPE_CHECKING:
    from recollect.store.neo4j.database import Connection, Row
    from recollect.store.shapes import Area, Probe

_COMPARED_MAX = 3_000  # an area of so many passages is compared vector by vector
_INDEX_ASKED_MAX = 10_000
_INDEX_SLACK = 2
_TURNS_MAX = 2**31  # no conversation has so many
_NO_FILTER = TurnFilter()

_CONVERSATIONS: LiteralString = """
    MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->(p) WHERE $project_ids IS NULL OR p.uuid IN $project_ids
    MATCH (p)-[:HAS_CONVERSATION]->(c)
"""
_OF_SPANS: LiteralString = """
    UNWIND $spans AS span
    MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = span.id AND p.turn_index <= span.last
        AND ($levels IS NULL OR p.level IN $levels)
"""
_OF_PROJECTS: LiteralString = """
    MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->(q) WHERE $project_ids IS NULL OR q.uuid IN $project_ids
    MATCH (q)-[:HAS_CONVERSATION]->(c)
    MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = c.uuid AND p.turn_index >= 0
        AND ($levels IS NULL OR p.level IN $levels)
"""
_IS_IN: LiteralString = """
    ($among IS NULL OR p.owner_id IN $among) AND ($levels IS NULL OR p.level IN $levels) AND p.workspace = $workspace
    AND ($project_ids IS NULL OR p.project_id IN $project_ids)
    AND ($spans IS NULL OR any(span IN $spans WHERE span.id = p.conversation_id AND p.turn_index <= span.last))
"""


class _Where(msgspec.Struct, frozen=True):
    """An area as parameters: spans or projects, the levels, and the only owners a filter lets through."""

    workspace: str
    spans: list[dict[str, Any]] | None
    project_ids: list[str] | None
    levels: list[int] | None
    among: list[str] | None

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__struct_fields__}


class _Spot(NamedTuple):
    """A passage before it is scored: where it is, what it says, and how close its vector is."""

    key: str
    conversation_id: str
    turn_index: int
    level: int
    terms: str
    cosine: float = 0.0


def _joined(matching: list[_Spot], near: list[_Spot]) -> list[_Spot]:
    """Return the passages found by terms and by meaning, each once, with what both say of it."""
    spots = {spot.key: spot for spot in matching}
    for spot in near:
        spots[spot.key] = spots.get(spot.key, spot)._replace(cosine=spot.cosine)
    return list(spots.values())


class Neo4jSearch:
    """The `SearchRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def candidates(self, area: Area, probe: Probe) -> Candidates:
        """Return the passages of the turns and summaries of an area that promise most, with the counts of the area."""
        where = await self._where(area)
        counts = await self._counted(where)
        if not counts.passages:
            return Candidates(turn_count=counts.turns)
        frequency = await self._frequencies(area, where, probe.terms)
        spots = await self._matching(area, where, frequency, probe.limit)
        embedded = 0
        if probe.model is not None:
            near = await self._near(where, probe, counts.passages)
            embedded = await self._embedded(where, probe.model, counts.passages) if near else 0
            spots = _joined(spots, near)
        return Candidates(
            passages=tuple(await self._chosen(where, probe, counts, frequency, spots)),
            passage_count=counts.passages,
            embedded_count=embedded,
            turn_count=counts.turns,
            average_length=counts.terms / counts.passages,
            document_frequency=frequency,
        )

    async def _chosen(self, where: _Where, probe: Probe, counts: Counts, frequency: dict[str, int], spots: list[_Spot]) -> list[Found]:
        """Return the passages of what promises most: all of them, where there are no more than may be looked at."""
        if len(spots) == counts.passages:
            return await self._found([spot.key for spot in spots], probe.model)
        import numpy as np  # noqa: PLC0415  only those who have found something need it

        from recollect.store.choosing import Shares, chosen_turns, promises  # noqa: PLC0415  as above

        own = [spot for spot in spots if spot.level == 0]
        conversations = list(dict.fromkeys(spot.conversation_id for spot in own))
        numbers = {conversation_id: number for number, conversation_id in enumerate(conversations)}
        owners = np.array([numbers[spot.conversation_id] for spot in own], np.int64)
        turns = np.array([spot.turn_index for spot in own], np.int64)
        places = owners * _TURNS_MAX + turns
        rarities = {term: math.log(1 + (counts.passages - count + 0.5) / (count + 0.5)) for term, count in frequency.items()}
        said = [set(spot.terms.split()) for spot in own]
        having = [
            (rarity, [place for place, words in zip(places.tolist(), said, strict=True) if term in words])
            for term, rarity in rarities.items()
        ]
        promised = promises(places, Shares(having), np.array([spot.cosine for spot in own]), 1.0)
        chosen = chosen_turns(owners, turns, promised, counts, probe)
        keys = await self._of_turns(where, [(conversations[number], turn) for number, turn in chosen])
        return await self._found([*keys, *(spot.key for spot in spots if spot.level)], probe.model)

    async def _of_turns(self, where: _Where, places: list[tuple[str, int]]) -> list[str]:
        """Return every passage of some turns that is in an area."""
        rows = await self._connection.rows(
            """
            UNWIND $places AS place
            MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = place[0] AND p.turn_index = place[1]
                AND p.level = 0 AND
            """
            + _IS_IN
            + "RETURN p.uuid",
            places=[list(place) for place in places],
            **where.parameters,
        )
        return [row[0] for row in rows]

    # Where an area is

    async def _where(self, area: Area) -> _Where:
        spans = None
        if area.spans is not None:
            spans = [{"id": span.conversation_id, "last": INTEGER_MAX if span.last is None else span.last} for span in area.spans]
        return _Where(
            self._workspace,
            spans,
            None if area.project_ids is None else list(area.project_ids),
            None if area.levels is None else list(area.levels),
            None if area.where == _NO_FILTER else await self._filtered(area.where),
        )

    async def _filtered(self, where: TurnFilter) -> list[str]:
        """Return the turns that a filter lets through, and the summaries that tell of one."""
        rows = await self._connection.rows(
            """
            MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->()-[:HAS_CONVERSATION]->(c)
            WHERE ($agent IS NULL OR c.agent = $agent) AND ($tags IS NULL OR any(tag IN c.tags WHERE tag IN $tags))
            MATCH (c)-[:HAS_TURN]->(t:Turn {conversation_id: c.uuid})
            WHERE ($since IS NULL OR coalesce(t.ended_at, t.started_at) >= $since)
                AND ($until IS NULL OR coalesce(t.started_at, t.ended_at) < $until)
                AND ($tool IS NULL OR EXISTS { (t)-[:HAS_TOOL_CALL]->(k) WHERE toLower(k.tool_name) = toLower($tool) })
                AND ($file IS NULL
                    OR EXISTS { (t)-[:HAS_TOOL_CALL]->()-[:ACCESSED]->(f:CodeFile)
                        WHERE f.file_path = $file OR f.file_path ENDS WITH '/' + $file }
                    OR EXISTS { (t)-[:USES_CONTEXT]->(x) WHERE x.file_path = $file OR x.file_path ENDS WITH '/' + $file }
                    OR EXISTS { (x:CodeChange {workspace: t.workspace, turn_id: t.uuid})
                        WHERE x.file_path = $file OR x.file_path ENDS WITH '/' + $file })
            WITH c, collect(t) AS turns
            OPTIONAL MATCH (c)-[:HAS_SUMMARY]->(s) WHERE any(t IN turns WHERE s.first_turn <= t.index AND t.index <= s.last_turn)
            WITH turns, collect(s.uuid) AS told
            RETURN [t IN turns | t.uuid] + told
            """,
            workspace=self._workspace,
            agent=where.agent,
            tags=list(where.tags) or None,
            since=where.since,
            until=where.until,
            tool=where.tool,
            file=where.file,
        )
        return [owner_id for row in rows for owner_id in row[0]]

    def _scopes(self, area: Area) -> list[tuple[str, int | None]]:
        """Return the words that stand for an area in the full-text index, each with the last turn that counts."""
        if area.spans is not None:
            return [(scope_term(self._workspace, "conversation", span.conversation_id), span.last) for span in area.spans]
        if area.project_ids is not None:
            return [(scope_term(self._workspace, "project", project_id), None) for project_id in area.project_ids]
        return [(scope_term(self._workspace, "workspace", ""), None)]

    # What it holds

    async def _counted(self, where: _Where) -> Counts:
        parameters = where.parameters
        if where.spans is not None:
            row = await self._connection.row(
                """
                UNWIND $spans AS span
                CALL (span) {
                    MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = span.id AND p.turn_index <= span.last
                        AND ($levels IS NULL OR p.level IN $levels)
                    RETURN count(p) AS passages, sum(p.length) AS terms
                }
                CALL (span) {
                    MATCH (t:Turn) WHERE t.workspace = $workspace AND t.conversation_id = span.id AND t.index <= span.last
                    RETURN count(t) AS turns
                }
                RETURN sum(passages), sum(terms), sum(turns)
                """,
                **parameters,
            )
        elif where.levels is None:
            row = await self._connection.row(
                _CONVERSATIONS + "RETURN sum(c.own_passages), sum(c.own_terms), sum(c.own_turns)", **parameters
            )
        else:
            row = await self._connection.row(
                _CONVERSATIONS
                + """
                CALL (c) {
                    MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = c.uuid AND p.turn_index >= 0
                        AND p.level IN $levels
                    RETURN count(p) AS passages, sum(p.length) AS terms
                }
                RETURN sum(passages), sum(terms), sum(c.own_turns)
                """,
                **parameters,
            )
        return Counts(0, 0, 0) if row is None else Counts(*row)

    async def _frequencies(self, area: Area, where: _Where, terms: tuple[str, ...]) -> dict[str, int]:
        frequency = dict.fromkeys(terms, 0)
        asked = [
            {"term": term, "query": full_text_query(scope, [term]), "last": last}
            for scope, last in self._scopes(area)
            for term in frequency
        ]
        rows = await self._connection.rows(
            """
            UNWIND $asked AS one
            CALL (one) {
                CALL db.index.fulltext.queryNodes('passage_terms', one.query) YIELD node
                WITH node WHERE (one.last IS NULL OR node.turn_index <= one.last) AND ($levels IS NULL OR node.level IN $levels)
                RETURN count(node) AS found
            }
            RETURN one.term, found
            """,
            asked=asked,
            levels=where.levels,
        )
        for term, count in rows:
            frequency[term] += count
        return frequency

    async def _embedded(self, where: _Where, model: str, passages: int) -> int:
        """Count the passages that have a vector: all of them, where no conversation waits for any."""
        waiting = await self._connection.row(
            _CONVERSATIONS
            + """
            WHERE $spans IS NULL OR any(span IN $spans WHERE span.id = c.uuid)
            MATCH (j:Job {workspace: $workspace, uuid: c.uuid + ':embed'}) RETURN j.uuid LIMIT 1
            """,
            **where.parameters,
        )
        if waiting is None:
            return passages
        row = await self._connection.row(
            (_OF_PROJECTS if where.spans is None else _OF_SPANS) + "AND p.embedding_model = $model RETURN count(p)",
            model=model,
            **where.parameters,
        )
        return 0 if row is None else row[0]

    # What is in it

    async def _matching(self, area: Area, where: _Where, frequency: dict[str, int], limit: int) -> list[_Spot]:
        """Return the passages that share a term: all of them, or the best when there are too many; the area comes first."""
        terms = [term for term, count in frequency.items() if count]
        if not terms:
            return []
        narrowed = where.levels is not None or where.among is not None
        asked = [
            {"query": full_text_query(scope, terms), "last": last, "options": {} if narrowed or last is not None else {"limit": limit}}
            for scope, last in self._scopes(area)
        ]
        rows = await self._connection.rows(
            """
            UNWIND $asked AS one
            CALL (one) {
                CALL db.index.fulltext.queryNodes('passage_terms', one.query, one.options) YIELD node, score
                WITH node, score WHERE (one.last IS NULL OR node.turn_index <= one.last) AND ($levels IS NULL OR node.level IN $levels)
                    AND ($among IS NULL OR node.owner_id IN $among)
                RETURN node, score ORDER BY score DESC LIMIT $limit
            }
            RETURN node.uuid, node.conversation_id, node.turn_index, node.level, node.terms
            ORDER BY score DESC, node.conversation_id, node.turn_index, node.order LIMIT $limit
            """,
            asked=asked,
            limit=limit,
            levels=where.levels,
            among=where.among,
        )
        return [_Spot(*row) for row in rows]

    async def _near(self, where: _Where, probe: Probe, passages: int) -> list[_Spot]:
        """Return the passages whose vectors are closest to the one asked for."""
        if passages > _COMPARED_MAX:
            found = await self._indexed(where, probe, passages)
            if len(found) == probe.limit:
                return found
        rows = await self._connection.rows(
            (_OF_PROJECTS if where.spans is None else _OF_SPANS)
            + """
            AND p.embedding_model = $model AND p.embedding_scale > 0 AND ($among IS NULL OR p.owner_id IN $among)
            WITH p, vector.similarity.cosine(p.embedding, $vector) AS score
            RETURN p.uuid, p.conversation_id, p.turn_index, p.level, p.terms, 2 * score - 1 ORDER BY score DESC LIMIT $limit
            """,
            vector=list(probe.vector),
            model=probe.model,
            limit=probe.limit,
            **where.parameters,
        )
        return [_Spot(*row) for row in rows]

    async def _indexed(self, where: _Where, probe: Probe, passages: int) -> list[_Spot]:
        total = await self._connection.row("MATCH (p:Passage) RETURN count(p)")
        share = passages / max(total[0] if total else 1, 1)
        asked = int(probe.limit * _INDEX_SLACK / share)
        if asked > _INDEX_ASKED_MAX:
            return []
        rows = await self._connection.rows(
            "CALL db.index.vector.queryNodes('passage_embedding', $asked, $vector) YIELD node AS p, score\nWITH p, score WHERE"
            + _IS_IN
            + "AND p.embedding_model = $model"
            + " RETURN p.uuid, p.conversation_id, p.turn_index, p.level, p.terms, 2 * score - 1 ORDER BY score DESC LIMIT $limit",
            asked=asked,
            vector=list(probe.vector),
            model=probe.model,
            limit=probe.limit,
            **where.parameters,
        )
        return [_Spot(*row) for row in rows]

    async def _found(self, keys: list[str], model: str | None) -> list[Found]:
        rows = await self._connection.rows(
            """
            UNWIND $keys AS key
            MATCH (p:Passage {workspace: $workspace, uuid: key})<-[:HAS_PASSAGE]-(o)
            RETURN p.owner_id, p.level, p.conversation_id, o.first_turn, p.turn_index, p {.part, .ordinal, .start, .end, .terms},
                toString(coalesce(o.ended_at, o.started_at, o.created_at)),
                CASE WHEN p.embedding_model = $model THEN p.embedding_scale END, p.embedding_values, p.length
            """,
            workspace=self._workspace,
            keys=keys,
            model=model,
        )
        with readable():
            return [_found_of(row) for row in rows]


def _found_of(row: Row) -> Found:
    passage = read(Passage, row[5])
    return Found(
        owner_id=row[0],
        level=row[1],
        conversation_id=row[2],
        first_turn=row[4] if row[3] is None else row[3],
        last_turn=row[4],
        part=passage.part,
        ordinal=passage.ordinal,
        start=passage.start,
        end=passage.end,
        terms=passage.terms,
        length=row[9],
        at=row[6],
        scale=row[7],
        vector=None if row[7] is None else row[8],
    )
