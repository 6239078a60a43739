"""Requests that come in pieces, in Neo4j."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.neo4j.database import Connection


class Neo4jRequests:
    """The `RequestRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def get(self, request_id: str) -> str | None:
        """Return the sketch of a request, or None."""
        row = await self._connection.row(
            "MATCH (r:OpenRequest {workspace: $workspace, request_id: $request_id}) RETURN r.sketch",
            workspace=self._workspace,
            request_id=request_id,
        )
        return None if row is None else row[0]

    async def put(self, request_id: str, conversation_id: str, sketch: str, at: datetime) -> None:
        """Write the sketch of a request of a conversation."""
        await self._connection.run(
            """
            MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})
            MERGE (r:OpenRequest {workspace: $workspace, request_id: $request_id})
            SET r.sketch = $sketch, r.updated_at = $at, r.conversation_id = c.uuid, r.project_id = c.project_id
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
            request_id=request_id,
            sketch=sketch,
            at=at,
        )

    async def delete(self, request_id: str) -> bool:
        """Delete the sketch of a request; False when there is none."""
        row = await self._connection.row(
            "MATCH (r:OpenRequest {workspace: $workspace, request_id: $request_id}) DELETE r RETURN count(*)",
            workspace=self._workspace,
            request_id=request_id,
        )
        return row is not None and bool(row[0])

    async def owner(self, request_id: str) -> str | None:
        """Return the conversation of a request, or None."""
        row = await self._connection.row(
            "MATCH (r:OpenRequest {workspace: $workspace, request_id: $request_id}) RETURN r.conversation_id",
            workspace=self._workspace,
            request_id=request_id,
        )
        return None if row is None else row[0]

    async def is_open(self, conversation_id: str) -> bool:
        """Tell whether a conversation has a request that is not whole yet."""
        row = await self._connection.row(
            "RETURN EXISTS { MATCH (r:OpenRequest) WHERE r.workspace = $workspace AND r.conversation_id = $conversation_id }",
            workspace=self._workspace,
            conversation_id=conversation_id,
        )
        return row is not None and bool(row[0])

    async def forget_told(self, turn_ids: list[str]) -> None:
        """Delete the sketches of requests of which a turn goes."""
        await self._connection.run(
            """
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $turn_ids AND t.request_id IS NOT NULL
            MATCH (r:OpenRequest {workspace: $workspace, request_id: t.request_id}) WHERE r.project_id = t.project_id
            WITH DISTINCT r DELETE r
            """,
            workspace=self._workspace,
            turn_ids=turn_ids,
        )

    async def forget(self, conversation_ids: list[str]) -> None:
        """Delete the sketches of conversations."""
        await self._connection.run(
            "MATCH (r:OpenRequest) WHERE r.workspace = $workspace AND r.conversation_id IN $ids DELETE r",
            workspace=self._workspace,
            ids=conversation_ids,
        )

    async def idle(self, before: datetime) -> list[str]:
        """Return the requests to which nothing came since a moment, the oldest first."""
        rows = await self._connection.rows(
            """
            MATCH (r:OpenRequest) WHERE r.workspace = $workspace AND r.updated_at < $before
            RETURN r.request_id ORDER BY r.updated_at, r.request_id
            """,
            workspace=self._workspace,
            before=before,
        )
        return [row[0] for row in rows]
