"""What expires, in Neo4j."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import from_iso
from recollect.store.neo4j.rows import DELETE_SUMMARIES

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.neo4j.database import Connection


class Neo4jRetention:
    """The `RetentionRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def soonest(self, until: datetime) -> datetime | None:
        """Return when the next of it expires, or None."""
        row = await self._connection.row(
            """
            CALL () {
                MATCH (t:Turn) WHERE t.workspace = $workspace AND t.expires_at <= $until RETURN min(t.expires_at) AS at
                UNION ALL MATCH (s:Summary) WHERE s.workspace = $workspace AND s.expires_at <= $until RETURN min(s.expires_at) AS at
                UNION ALL MATCH (i:Insight) WHERE i.workspace = $workspace AND i.expires_at <= $until RETURN min(i.expires_at) AS at
            }
            RETURN toString(min(at))
            """,
            workspace=self._workspace,
            until=until,
        )
        return None if row is None or row[0] is None else from_iso(row[0])

    async def turns(self, now: datetime) -> list[tuple[str, str]]:
        """Return the turns that have expired; their projects are locked first, in one order, as every writer does it."""
        await self._connection.run(
            """
            CALL () {
                MATCH (t:Turn) WHERE t.workspace = $workspace AND t.expires_at <= $now RETURN t.project_id AS project_id
                UNION MATCH (s:Summary) WHERE s.workspace = $workspace AND s.expires_at <= $now RETURN s.project_id AS project_id
                UNION MATCH (i:Insight) WHERE i.workspace = $workspace AND i.expires_at <= $now RETURN i.project_id AS project_id
            }
            WITH DISTINCT project_id ORDER BY project_id
            MATCH (p:Project {workspace: $workspace, uuid: project_id}) SET p.name = p.name
            """,
            workspace=self._workspace,
            now=now,
        )
        rows = await self._connection.rows(
            """
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.expires_at <= $now
            RETURN t.uuid, t.conversation_id ORDER BY t.conversation_id, t.index
            """,
            workspace=self._workspace,
            now=now,
        )
        return [(row[0], row[1]) for row in rows]

    async def summaries(self, now: datetime) -> list[tuple[str, str]]:
        """Return the summaries that have expired."""
        rows = await self._connection.rows(
            "MATCH (s:Summary) WHERE s.workspace = $workspace AND s.expires_at <= $now RETURN s.uuid, s.conversation_id ORDER BY s.uuid",
            workspace=self._workspace,
            now=now,
        )
        return [(row[0], row[1]) for row in rows]

    async def told_before(self, moment: datetime, project_ids: tuple[str, ...] | None) -> list[tuple[str, str]]:
        """Return the summaries that were made before a moment, and all of whose turns are gone, and those that fold them."""
        rows = await self._connection.rows(
            """
            MATCH (s:Summary) WHERE s.workspace = $workspace AND s.created_at < $moment
                AND ($project_ids IS NULL OR s.project_id IN $project_ids) AND NOT EXISTS { (s)-[:SUMMARIZES*]->(:Turn) }
            MATCH (s)<-[:SUMMARIZES*0..]-(fold:Summary)
            RETURN DISTINCT fold.uuid, fold.conversation_id ORDER BY fold.uuid
            """,
            workspace=self._workspace,
            moment=moment,
            project_ids=None if project_ids is None else list(project_ids),
        )
        return [(row[0], row[1]) for row in rows]

    async def delete_summaries(self, summary_ids: list[str]) -> None:
        """Delete summaries."""
        await self._connection.run(
            "MATCH (s:Summary) WHERE s.workspace = $workspace AND s.uuid IN $ids\n" + DELETE_SUMMARIES,
            workspace=self._workspace,
            ids=summary_ids,
        )

    async def insights(self, now: datetime) -> list[tuple[str, str]]:
        """Return the insights that have expired."""
        rows = await self._connection.rows(
            "MATCH (i:Insight) WHERE i.workspace = $workspace AND i.expires_at <= $now RETURN i.uuid, i.conversation_id ORDER BY i.uuid",
            workspace=self._workspace,
            now=now,
        )
        return [(row[0], row[1]) for row in rows]

    async def insights_before(self, moment: datetime, project_ids: tuple[str, ...] | None, owners: list[str]) -> list[tuple[str, str]]:
        """Return the insights that were made before a moment, and all of some conversations."""
        rows = await self._connection.rows(
            """
            MATCH (i:Insight) WHERE i.workspace = $workspace AND (
                i.created_at < $moment AND ($project_ids IS NULL OR i.project_id IN $project_ids) OR i.conversation_id IN $owners)
            RETURN i.uuid, i.conversation_id ORDER BY i.uuid
            """,
            workspace=self._workspace,
            moment=moment,
            project_ids=None if project_ids is None else list(project_ids),
            owners=owners,
        )
        return [(row[0], row[1]) for row in rows]

    async def delete_insights(self, insight_ids: list[str]) -> None:
        """Delete insights."""
        await self._connection.run(
            "MATCH (i:Insight) WHERE i.workspace = $workspace AND i.uuid IN $ids DETACH DELETE i",
            workspace=self._workspace,
            ids=insight_ids,
        )

    async def expiries(self, conversation_id: str) -> dict[str, datetime]:
        """Return when the summaries and insights of a conversation expire."""
        rows = await self._connection.rows(
            """
            MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})-[:HAS_SUMMARY|HAS_INSIGHT]->(s)
            WHERE s.expires_at IS NOT NULL
            RETURN s.uuid, toString(s.expires_at)
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
        )
        return {row[0]: from_iso(row[1]) for row in rows}
