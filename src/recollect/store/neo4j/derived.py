"""Vectors, summaries and insights in Neo4j: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.model import Insight, Passage, Summary
from recollect.store.neo4j.insights import INSIGHT_FILTER, QUERY_INSIGHTS, RETURN_INSIGHT, insight_filter, insight_queries, put_insight
from recollect.store.neo4j.rows import DELETE_SUMMARIES, RETURN_SUMMARY, read, read_derived, readable, written
from recollect.store.neo4j.vectors import numbers
from recollect.store.neo4j.writing import summary_rows
from recollect.store.shapes import Unembedded, Vector, WordedInsight

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.neo4j.database import Connection
    from recollect.store.shapes import Embedded, InsightFilter


class Neo4jDerived:
    """The `DerivedRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def put_summary(self, summary: Summary, checksum: int, passages: tuple[Passage, ...], expires_at: datetime | None) -> None:
        """Write a summary with the edges to its sources and its passages; those that fold it go on doing so."""
        owner = await self._connection.row(
            "MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id}) RETURN c.project_id",
            workspace=self._workspace,
            conversation_id=summary.conversation_id,
        )
        rows = summary_rows(self._workspace, owner[0] if owner else "", summary, passages)
        await self._connection.run(
            """
            MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})
            MERGE (s:Summary {workspace: $workspace, uuid: $properties.uuid})
            SET s = $properties, s.project_id = c.project_id
            MERGE (c)-[h:HAS_SUMMARY]->(s) SET h.level = s.level
            WITH c, s
            CALL (c, s) {
                MATCH (s)-[:HAS_PASSAGE]->(p)
                WITH c, collect(p) AS gone, count(p) AS passages, sum(p.length) AS terms
                SET c.own_passages = c.own_passages - passages, c.own_terms = c.own_terms - terms
                FOREACH (one IN gone | DETACH DELETE one)
            }
            CALL (s) { MATCH (s)-[old:SUMMARIZES]->() DELETE old }
            CALL (s) {
                MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $source_ids
                CREATE (s)-[:SUMMARIZES {level: s.level}]->(t)
            }
            CALL (s) {
                MATCH (low:Summary) WHERE low.workspace = $workspace AND low.uuid IN $source_ids AND low <> s
                CREATE (s)-[:SUMMARIZES {level: s.level}]->(low)
            }
            SET c.own_passages = c.own_passages + size($passages), c.own_terms = c.own_terms + $terms
            WITH c, s
            UNWIND $passages AS one
            CREATE (s)-[:HAS_PASSAGE]->(p:Passage) SET p = one
            """,
            workspace=self._workspace,
            conversation_id=summary.conversation_id,
            properties=written(summary, workspace=self._workspace, timestamp=summary.created_at, checksum=checksum, expires_at=expires_at),
            source_ids=list(summary.source_ids),
            passages=rows,
            terms=sum(row["length"] for row in rows),
        )

    async def summaries(self, conversation_id: str, level: int | None) -> list[Summary]:
        """Return summaries by level, first turn and id."""
        rows = await self._connection.rows(
            """
            MATCH (:Conversation {workspace: $workspace, uuid: $conversation_id})-[:HAS_SUMMARY]->(s)
            WHERE $level IS NULL OR s.level = $level
            """
            + RETURN_SUMMARY
            + "ORDER BY s.level, s.first_turn, s.uuid",
            workspace=self._workspace,
            conversation_id=conversation_id,
            level=level,
        )
        return [read_derived(Summary, row[0]) for row in rows]

    async def summaries_by_id(self, summary_ids: list[str]) -> list[Summary]:
        """Return summaries in any order."""
        rows = await self._connection.rows(
            "MATCH (s:Summary) WHERE s.workspace = $workspace AND s.uuid IN $summary_ids\n" + RETURN_SUMMARY,
            workspace=self._workspace,
            summary_ids=summary_ids,
        )
        return [read_derived(Summary, row[0]) for row in rows]

    async def delete_summaries(self, conversation_id: str) -> None:
        """Delete every summary of a conversation that can be made again."""
        await self._connection.run(
            """
            MATCH (:Conversation {workspace: $workspace, uuid: $conversation_id})-[:HAS_SUMMARY]->(s)
            WHERE NOT EXISTS {
                MATCH (s)-[:SUMMARIZES*0..]->(low:Summary) WHERE COUNT { (low)-[:SUMMARIZES]->() } < size(low.source_ids)
            }
            """
            + DELETE_SUMMARIES,
            workspace=self._workspace,
            conversation_id=conversation_id,
        )

    async def unembedded(self, conversation_id: str, model: str, limit: int) -> list[Unembedded]:
        """Return own passages of a conversation that have no vector of a model."""
        rows = await self._connection.rows(
            """
            MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = $conversation_id AND p.turn_index >= 0
                AND coalesce(p.embedding_model, '') <> $model
            RETURN p.uuid, p.owner_id, p.level, p {.part, .ordinal, .start, .end, .terms}
            ORDER BY p.turn_index, p.level, p.order LIMIT $limit
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
            model=model,
            limit=limit,
        )
        with readable():
            return [Unembedded(key=row[0], owner_id=row[1], level=row[2], passage=read(Passage, row[3])) for row in rows]

    async def known_vectors(self, model: str, text_hashes: list[str]) -> dict[str, Vector]:
        """Return the vectors that texts have already in the workspace."""
        rows = await self._connection.rows(
            """
            MATCH (p:Passage) WHERE p.workspace = $workspace AND p.embedding_hash IN $text_hashes AND p.embedding_model = $model
            WITH p.embedding_hash AS text_hash, head(collect(p)) AS p
            RETURN text_hash, p.embedding_scale, p.embedding_values
            """,
            workspace=self._workspace,
            text_hashes=text_hashes,
            model=model,
        )
        return {row[0]: Vector(row[1], row[2]) for row in rows}

    async def delete_embeddings(self, conversation_id: str) -> None:
        """Delete every vector of a conversation's own passages."""
        await self._connection.run(
            """
            MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = $conversation_id AND p.turn_index >= 0
            REMOVE p.embedding, p.embedding_scale, p.embedding_values, p.embedding_hash, p.embedding_model
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
        )

    async def put_embeddings(self, model: str, embedded: list[Embedded]) -> None:
        """Write vectors of passages, as numbers that a query and the vector index can use."""
        await self._connection.run(
            """
            UNWIND $rows AS row
            MATCH (p:Passage {workspace: $workspace, uuid: row.key}) WHERE p.terms = row.terms
            SET p.embedding = row.vector, p.embedding_scale = row.scale, p.embedding_values = row.values,
                p.embedding_hash = row.text_hash, p.embedding_model = $model
            """,
            workspace=self._workspace,
            model=model,
            rows=[
                {
                    "key": one.key,
                    "terms": one.terms,
                    "text_hash": one.text_hash,
                    "scale": one.vector.scale,
                    "values": one.vector.values,
                    "vector": numbers(one.vector),
                }
                for one in embedded
            ],
        )

    async def is_told_of(self, conversation_id: str) -> bool:
        """Tell whether a conversation has a summary or an insight."""
        row = await self._connection.row(
            """
            MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})
            RETURN EXISTS { (c)-[:HAS_SUMMARY|HAS_INSIGHT]->() }
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
        )
        return row is not None and bool(row[0])

    async def put_insight(self, insight: WordedInsight, expires_at: datetime | None) -> None:
        """Write an insight."""
        await put_insight(self._connection, self._workspace, insight, expires_at)

    async def insights(self, conversation_id: str) -> list[Insight]:
        """Return insights, oldest first, then by id."""
        rows = await self._connection.rows(
            "MATCH (:Conversation {workspace: $workspace, uuid: $conversation_id})-[:HAS_INSIGHT]->(i)\n"
            + RETURN_INSIGHT
            + "ORDER BY i.created_at, i.uuid",
            workspace=self._workspace,
            conversation_id=conversation_id,
        )
        return [read_derived(Insight, row[0]) for row in rows]

    async def find_insights(self, where: InsightFilter, limit: int) -> list[Insight]:
        """Return insights, newest first, then by id."""
        rows = await self._connection.rows(
            "MATCH (i:Insight) WHERE i.workspace = $workspace AND i.created_at IS NOT NULL\n"
            + INSIGHT_FILTER
            + RETURN_INSIGHT
            + "ORDER BY i.created_at DESC, i.uuid LIMIT $limit",
            workspace=self._workspace,
            limit=limit,
            **insight_filter(where),
        )
        return [read_derived(Insight, row[0]) for row in rows]

    async def insights_having(self, where: InsightFilter, terms: list[str], limit: int) -> list[WordedInsight]:
        """Return insights that have one of some terms, those with the most of what is rare first."""
        rows = await self._connection.rows(
            QUERY_INSIGHTS + INSIGHT_FILTER + RETURN_INSIGHT + ", i.terms, i.checksum, score ORDER BY score DESC, i.created_at DESC, i.uuid"
            " LIMIT $limit",
            queries=insight_queries(self._workspace, where, terms),
            limit=limit,
            **insight_filter(where),
        )
        return [WordedInsight(read_derived(Insight, row[0]), row[1], row[2]) for row in rows]
