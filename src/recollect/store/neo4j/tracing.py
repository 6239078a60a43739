"""What the audit asks, in Neo4j: changes, context, tools and checkpoints of some projects in a period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from recollect.clock import from_iso
from recollect.model import Checkpoint
from recollect.store.neo4j.rows import read
from recollect.store.traced import ContextUse, PlacedChange, PlacedCheckpoint, SourceUse, ToolDay, ToolError, ToolUse

if TYPE_CHECKING:
    from recollect.store.neo4j.database import Connection
    from recollect.store.traced import TraceScope

_IN_PROJECT: LiteralString = """
    WHERE t.workspace = $workspace AND ($project_ids IS NULL OR t.project_id IN $project_ids)
"""
_IN_PERIOD: LiteralString = """
        AND ($since IS NULL OR coalesce(t.ended_at, t.started_at) >= $since)
        AND ($until IS NULL OR coalesce(t.ended_at, t.started_at) < $until)
"""
_IN_SCOPE: LiteralString = _IN_PROJECT + _IN_PERIOD
_RETURN_CHANGES: LiteralString = """
    WITH x, t, coalesce(x.timestamp, t.ended_at, t.started_at) AS at
    RETURN x.uuid, x.file_path, x.change_type, x.change_summary, x.lines_added, x.lines_removed, t.uuid, t.conversation_id, t.index,
        t.request_id, toString(at)
    ORDER BY at DESC, t.conversation_id, t.index DESC, x.order DESC LIMIT $limit
"""
_MANY = 2**31 - 1


class Neo4jTrace:
    """The `TraceRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def _rows(self, query: LiteralString, where: TraceScope, **more: object) -> list[list[Any]]:
        return await self._connection.rows(
            query,
            workspace=self._workspace,
            project_ids=None if where.project_ids is None else list(where.project_ids),
            since=where.since,
            until=where.until,
            **more,
        )

    async def paths(self, where: TraceScope, path: str) -> list[str]:
        """Return the paths that are kept as this one, or else those that end with it."""
        rows = await self._rows(
            """
            MATCH (f:CodeFile) WHERE f.workspace = $workspace AND ($project_ids IS NULL OR f.project_id IN $project_ids)
                AND (f.file_path = $path OR f.file_path ENDS WITH '/' + $path)
            RETURN DISTINCT f.file_path AS path, f.file_path = $path ORDER BY path
            """,
            where,
            path=path,
        )
        return [row[0] for row in rows if row[1]] or [row[0] for row in rows]

    async def renamed(self, where: TraceScope, beginnings: list[str]) -> list[str]:
        """Return the paths that renames gave whose summaries begin like one of these, whenever that was."""
        rows = await self._rows(
            """
            MATCH (x:CodeChange) WHERE x.workspace = $workspace AND x.change_type = 'renamed'
                AND ($project_ids IS NULL OR x.project_id IN $project_ids)
                AND any(beginning IN $beginnings WHERE x.change_summary STARTS WITH beginning)
            RETURN DISTINCT x.file_path AS path ORDER BY path
            """,
            where,
            beginnings=beginnings,
        )
        return [row[0] for row in rows]

    async def changes(
        self, where: TraceScope, paths: list[str] | None, limit: int, conversation_id: str | None = None
    ) -> list[PlacedChange]:
        """Return changes, newest first."""
        rows = await self._rows(
            """
            MATCH (x:CodeChange) WHERE x.workspace = $workspace AND ($project_ids IS NULL OR x.project_id IN $project_ids)
                AND ($paths IS NULL OR x.file_path IN $paths) AND ($conversation_id IS NULL OR x.conversation_id = $conversation_id)
            MATCH (t:Turn {workspace: $workspace, uuid: x.turn_id})
            """
            + _IN_SCOPE
            + _RETURN_CHANGES,
            where,
            paths=paths,
            limit=limit,
            conversation_id=conversation_id,
        )
        return [_change(row) for row in rows]

    async def changes_of(self, where: TraceScope, turn_ids: list[str]) -> list[PlacedChange]:
        """Return the changes of turns, newest first."""
        rows = await self._rows(
            "UNWIND $turn_ids AS id MATCH (t:Turn {workspace: $workspace, uuid: id})"
            + _IN_SCOPE
            + "MATCH (x:CodeChange {workspace: $workspace, turn_id: t.uuid})"
            + _RETURN_CHANGES,
            where,
            turn_ids=turn_ids,
            limit=_MANY,
        )
        return [_change(row) for row in rows]

    async def requests(self, where: TraceScope, request_ids: list[str]) -> list[tuple[str, str]]:
        """Return the turns of requests, each with its request, in their order."""
        rows = await self._rows(
            "MATCH (t:Turn)"
            + _IN_SCOPE
            + "AND t.request_id IN $request_ids RETURN t.uuid, t.request_id ORDER BY t.request_id, t.conversation_id, t.index",
            where,
            request_ids=request_ids,
        )
        return [(row[0], row[1]) for row in rows]

    async def given(self, where: TraceScope, paths: list[str], limit: int) -> list[tuple[str, str, str | None]]:
        """Return the files that turns had as context, each with the turn and its request, newest first."""
        rows = await self._rows(
            """
            MATCH (x:ContextFile) WHERE x.workspace = $workspace AND ($project_ids IS NULL OR x.project_id IN $project_ids)
                AND x.file_path IN $paths
            MATCH (t:Turn)-[:USES_CONTEXT]->(x)
            """
            + _IN_SCOPE
            + """
            WITH DISTINCT x.file_path AS path, t, coalesce(t.ended_at, t.started_at) AS at
            RETURN path, t.uuid, t.request_id ORDER BY at DESC, t.uuid LIMIT $limit
            """,
            where,
            paths=paths,
            limit=limit,
        )
        return [(row[0], row[1], row[2]) for row in rows]

    async def context_uses(self, where: TraceScope, paths: list[str] | None) -> list[ContextUse]:
        """Return how files were used as context, the most used first."""
        rows = await self._rows(
            """
            MATCH (x:ContextFile) WHERE x.workspace = $workspace AND ($project_ids IS NULL OR x.project_id IN $project_ids)
                AND ($paths IS NULL OR x.file_path IN $paths)
            MATCH (t:Turn)-[:USES_CONTEXT]->(x)
            """
            + _IN_SCOPE
            + """
            RETURN x.file_path AS path, count(*) AS uses, count(x.usefulness), avg(x.usefulness), max(x.usefulness),
                collect(DISTINCT x.source), toString(max(coalesce(x.timestamp, t.ended_at, t.started_at)))
            ORDER BY uses DESC, path
            """,
            where,
            paths=paths,
        )
        return [
            ContextUse(
                path=row[0], count=row[1], rated=row[2], average_usefulness=row[3], greatest_usefulness=row[4],
                sources=tuple(sorted(row[5])), last_used_at=None if row[6] is None else from_iso(row[6]),
            )
            for row in rows
        ]  # fmt: skip

    async def source_uses(self, where: TraceScope) -> list[SourceUse]:
        """Return how sources of context served, the most used first."""
        rows = await self._rows(
            "MATCH (t:Turn)-[:USES_CONTEXT]->(x:ContextFile)"
            + _IN_SCOPE
            + """
            RETURN coalesce(x.source, 'unknown') AS source, count(*) AS uses, count(DISTINCT x.file_path), count(x.usefulness),
                avg(x.usefulness)
            ORDER BY uses DESC, source
            """,
            where,
        )
        return [SourceUse(source=row[0], count=row[1], files=row[2], rated=row[3], average_usefulness=row[4]) for row in rows]

    async def tool_uses(self, where: TraceScope) -> list[ToolUse]:
        """Return how tools did, the most called first."""
        rows = await self._rows(
            "MATCH (t:Turn)-[:HAS_TOOL_CALL]->(k:ToolCall)"
            + _IN_SCOPE
            + """
            RETURN k.tool_name AS name, count(*) AS calls, sum(CASE k.status WHEN 'failed' THEN 1 ELSE 0 END),
                percentileDisc(k.duration_ms, 0.5), percentileDisc(k.duration_ms, 0.95)
            ORDER BY calls DESC, name
            """,
            where,
        )
        return [ToolUse(tool_name=row[0], calls=row[1], failures=row[2], p50_ms=row[3], p95_ms=row[4]) for row in rows]

    async def tool_days(self, where: TraceScope) -> list[ToolDay]:
        """Return how often tools were called and failed each day, in order."""
        rows = await self._rows(
            "MATCH (t:Turn)-[:HAS_TOOL_CALL]->(k:ToolCall)"
            + _IN_SCOPE
            + """
            WITH k, coalesce(k.timestamp, t.ended_at, t.started_at) AS at WHERE at IS NOT NULL
            RETURN k.tool_name AS name, toString(date(at)) AS day, count(*), sum(CASE k.status WHEN 'failed' THEN 1 ELSE 0 END)
            ORDER BY name, day
            """,
            where,
        )
        return [ToolDay(tool_name=row[0], day=row[1], calls=row[2], failures=row[3]) for row in rows]

    async def tool_errors(self, where: TraceScope, limit: int) -> list[ToolError]:
        """Return what failed calls brought back, the newest first."""
        rows = await self._rows(
            "MATCH (t:Turn)-[:HAS_TOOL_CALL]->(k:ToolCall)"
            + _IN_SCOPE
            + """
                AND k.status = 'failed'
            WITH k, coalesce(k.timestamp, t.ended_at, t.started_at) AS at ORDER BY at DESC, k.uuid LIMIT $limit
            OPTIONAL MATCH (k)-[:PRODUCED_RESULT]->(r)
            RETURN k.tool_name, coalesce(CASE WHEN r.error <> '' THEN r.error END, r.result) ORDER BY at DESC, k.uuid
            """,
            where,
            limit=limit,
        )
        return [ToolError(tool_name=row[0], said=row[1]) for row in rows]

    async def checkpoints(self, where: TraceScope, conversation_id: str | None) -> list[PlacedCheckpoint]:
        """Return checkpoints, oldest first; those of a conversation in its order."""
        rows = await self._rows(
            "MATCH (t:Turn)-[:HAS_CHECKPOINT]->(x:Checkpoint)"
            + _IN_SCOPE
            + """
                AND ($conversation_id IS NULL OR t.conversation_id = $conversation_id)
            WITH x, t, coalesce(x.timestamp, t.started_at, t.ended_at) AS at
            RETURN x {.*, timestamp: toString(x.timestamp)}, t.conversation_id, t.uuid, t.index, t.request_id, toString(at)
            ORDER BY at, t.conversation_id, t.index, x.order
            """,
            where,
            conversation_id=conversation_id,
        )
        return [
            PlacedCheckpoint(
                checkpoint=read(Checkpoint, row[0]), conversation_id=row[1], turn_id=row[2], turn_index=row[3], request_id=row[4],
                at=None if row[5] is None else from_iso(row[5]),
            )
            for row in rows
        ]  # fmt: skip


def _change(row: list[Any]) -> PlacedChange:
    return PlacedChange(
        id=row[0], file_path=row[1], change_type=row[2], change_summary=row[3], lines_added=row[4], lines_removed=row[5],
        turn_id=row[6], conversation_id=row[7], turn_index=row[8], request_id=row[9], at=None if row[10] is None else from_iso(row[10]),
    )  # fmt: skip
