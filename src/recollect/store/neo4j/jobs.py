"""Work that waits in Neo4j: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from recollect.model import Job
from recollect.store.neo4j.rows import read, readable
from recollect.store.shapes import Lease

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import JobKind
    from recollect.store.neo4j.database import Connection

# writes a job of a conversation `c` and a `kind`, or lets the one that is there be done (again); `since` tells since when
PUT_JOB: LiteralString = """
    MERGE (j:Job {workspace: c.workspace, uuid: c.uuid + ':' + kind})
    ON CREATE SET j.conversation_id = c.uuid, j.project_id = c.project_id, j.kind = kind, j.state = 'ready', j.again = false,
        j.attempts = 0, j.since = since, j.due_at = since
    ON MATCH SET j.again = j.state <> 'ready' OR j.again, j.attempts = CASE j.state WHEN 'parked' THEN 0 ELSE j.attempts END,
        j.state = CASE j.state WHEN 'parked' THEN 'ready' ELSE j.state END
"""


class Neo4jJobs:
    """The `JobRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def wake(self, conversation_id: str, kind: JobKind, at: datetime) -> None:
        """Write a job, or let one that is being done be done again."""
        await self._connection.run(
            "MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id}) WITH c, $kind AS kind, $at AS since\n" + PUT_JOB,
            workspace=self._workspace,
            conversation_id=conversation_id,
            kind=kind,
            at=at,
        )

    async def embedder(self) -> str | None:
        """Return the embedder whose missing vectors were asked for last."""
        row = await self._connection.row("MATCH (w:Workspace {name: $workspace}) RETURN w.embedder", workspace=self._workspace)
        return None if row is None else row[0]

    async def set_embedder(self, model: str | None) -> None:
        """Write whose missing vectors are asked for."""
        await self._connection.run("MATCH (w:Workspace {name: $workspace}) SET w.embedder = $model", workspace=self._workspace, model=model)

    async def wake_unembedded(self, model: str, at: datetime) -> None:
        """Write the jobs that are missing of the conversations that have a passage without a vector of a model."""
        await self._connection.run(
            """
            MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->()-[:HAS_CONVERSATION]->(c)
            WHERE EXISTS {
                MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = c.uuid AND p.turn_index >= 0
                    AND coalesce(p.embedding_model, '') <> $model
            }
                AND NOT EXISTS { MATCH (:Job {workspace: $workspace, uuid: c.uuid + ':embed'}) }
            WITH c, 'embed' AS kind, $at AS since
            """
            + PUT_JOB,
            workspace=self._workspace,
            model=model,
            at=at,
        )

    async def lease(self, now: datetime, until: datetime, token: str, beyond: datetime) -> Lease | None:
        """Take the job that has been due the longest; what another took at the same moment is looked at again under its lock."""
        row = await self._connection.row(
            """
            MATCH (j:Job) WHERE j.workspace = $workspace AND j.state IN ['ready', 'running'] AND j.due_at IS NOT NULL
                AND ((j.state = 'ready' AND (j.attempts = 0 OR j.due_at <= $now OR j.due_at > $beyond))
                    OR (j.state = 'running' AND (j.lease_until <= $now OR j.lease_until > $beyond)))
            WITH j ORDER BY j.due_at, j.uuid LIMIT 1
            SET j.kind = j.kind
            WITH j WHERE (j.state = 'ready' AND (j.attempts = 0 OR j.due_at <= $now OR j.due_at > $beyond))
                OR (j.state = 'running' AND (j.lease_until <= $now OR j.lease_until > $beyond))
            SET j.state = 'running', j.token = $token, j.lease_until = $until, j.again = false
            RETURN j.conversation_id, j.kind, j.attempts
            """,
            workspace=self._workspace,
            now=now,
            until=until,
            token=token,
            beyond=beyond,
        )
        return None if row is None else Lease(conversation_id=row[0], kind=row[1], token=token, attempts=row[2])

    async def extend(self, lease: Lease, until: datetime) -> bool:
        """Hold a job for longer; False when somebody else holds it now."""
        row = await self._connection.row(_HELD + "SET j.lease_until = $until RETURN j.uuid", **self._of(lease), until=until)
        return row is not None

    async def holds(self, lease: Lease) -> bool:
        """Tell whether a job is still held, and keep it from being taken until the transaction ends."""
        return await self._connection.row(_HELD + "RETURN j.uuid", **self._of(lease)) is not None

    async def finish(self, lease: Lease, now: datetime) -> None:
        """Remove a job that is held, or let it be done again when it was asked for meanwhile."""
        await self._connection.run(
            _HELD
            + """
            SET j.state = 'ready', j.attempts = 0, j.due_at = $now, j.token = null, j.lease_until = null, j.error = null
            WITH j WHERE NOT j.again DELETE j
            """,
            **self._of(lease),
            now=now,
        )

    async def release(self, lease: Lease) -> None:
        """Let somebody else do a job that is held."""
        await self._connection.run(_HELD + "SET j.state = 'ready', j.token = null, j.lease_until = null", **self._of(lease))

    async def fail(self, lease: Lease, due_at: datetime, error: str, attempts: int, *, parked: bool) -> None:
        """Let a job that is held wait, or park it, with the error it met; it has had so many attempts."""
        await self._connection.run(
            _HELD
            + """
            SET j.state = CASE WHEN j.again THEN 'ready' ELSE $state END, j.due_at = $due_at, j.error = $error,
                j.attempts = CASE WHEN j.again THEN 1 ELSE $attempts END, j.again = false, j.token = null, j.lease_until = null
            """,
            **self._of(lease),
            state="parked" if parked else "ready",
            due_at=due_at,
            error=error,
            attempts=attempts,
        )

    def _of(self, lease: Lease) -> dict[str, str]:
        return {"workspace": self._workspace, "uuid": f"{lease.conversation_id}:{lease.kind}", "token": lease.token}

    async def listed(self) -> list[Job]:
        """Return every job, the longest due first."""
        rows = await self._connection.rows(
            """
            MATCH (j:Job) WHERE j.workspace = $workspace AND j.state IS NOT NULL AND j.due_at IS NOT NULL
            RETURN j {.*, since: toString(j.since), due_at: toString(j.due_at), lease_until: null} AS properties ORDER BY j.due_at, j.uuid
            """,
            workspace=self._workspace,
        )
        with readable():
            return [read(Job, row[0]) for row in rows]


_HELD: LiteralString = """
    MATCH (j:Job {workspace: $workspace, uuid: $uuid}) SET j.kind = j.kind
    WITH j WHERE j.state = 'running' AND j.token = $token
"""
