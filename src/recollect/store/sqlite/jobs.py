"""Work that waits in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from recollect.clock import from_iso, iso
from recollect.model import Job
from recollect.store.shapes import Lease

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import JobKind
    from recollect.store.sqlite.database import Connection


# a job that is being done is done again, a parked one gets another chance, one that waits goes on waiting
_OR_AGAIN: LiteralString = """
    on conflict (conversation_pk, kind) do update set again = 1, attempts = case state when 'parked' then 0 else attempts end,
        state = case state when 'parked' then 'ready' else state end
    where state <> 'ready'
"""


def wake(connection: Connection, conversation_keys: list[int]) -> None:
    """Write the jobs that a change of conversations causes, in the same transaction."""
    connection.run_many(
        """
        insert into job (conversation_pk, kind, state, again, attempts, since, due_at)
        select pk, kind.column1, 'ready', 0, 0, updated_at, updated_at
        from conversation, (values ('embed'), ('summarize')) kind where pk = ?
        """
        + _OR_AGAIN,
        [(key,) for key in conversation_keys],
    )


class SqliteJobs:
    """The `JobRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def wake(self, conversation_id: str, kind: JobKind, at: datetime) -> None:
        """Write a job, or let one that is being done be done again."""
        self._connection.run(
            """
            insert into job (conversation_pk, kind, state, again, attempts, since, due_at)
            select pk, ?3, 'ready', 0, 0, ?4, ?4 from conversation
            where workspace_pk = (select pk from workspace where name = ?1) and uuid = ?2
            """
            + _OR_AGAIN,
            (self._workspace, conversation_id, kind, iso(at)),
        )

    async def embedder(self) -> str | None:
        """Return the embedder whose missing vectors were asked for last."""
        found: str | None = self._connection.value("select embedder from workspace where name = ?", (self._workspace,))
        return found

    async def set_embedder(self, model: str | None) -> None:
        """Write whose missing vectors are asked for."""
        self._connection.run("update workspace set embedder = ?2 where name = ?1", (self._workspace, model))

    async def wake_unembedded(self, model: str, at: datetime) -> None:
        """Write the jobs that are missing of the conversations that have a passage without a vector of a model."""
        self._connection.run(
            """
            insert into job (conversation_pk, kind, state, again, attempts, since, due_at)
            select pk, 'embed', 'ready', 0, 0, ?3, ?3 from conversation
            where workspace_pk = (select pk from workspace where name = ?1) and pk in (
                select coalesce(t.conversation_pk, s.conversation_pk) from passage p
                    left join turn t on t.pk = p.turn_pk left join summary s on s.pk = p.summary_pk
                    left join embedding e on e.number = p.number and e.model = ?2
                where e.number is null)
            on conflict (conversation_pk, kind) do nothing
            """,
            (self._workspace, model, iso(at)),
        )

    async def lease(self, now: datetime, until: datetime, token: str, beyond: datetime) -> Lease | None:
        """Take the job that has been due the longest, or whose lease has run out."""
        row = self._connection.row(
            """
            update job set state = 'running', token = ?3, lease_until = ?4, again = 0
            where pk = (
                select pk from job where workspace_pk = (select pk from workspace where name = ?1) and (
                    (state = 'ready' and (attempts = 0 or due_at <= ?2 or due_at > ?5))
                    or (state = 'running' and (lease_until <= ?2 or lease_until > ?5)))
                order by due_at, pk limit 1)
            returning (select uuid from conversation where pk = conversation_pk), kind, attempts
            """,
            (self._workspace, iso(now), token, iso(until), iso(beyond)),
        )
        return None if row is None else Lease(conversation_id=row[0], kind=row[1], token=token, attempts=row[2])

    async def extend(self, lease: Lease, until: datetime) -> bool:
        """Hold a job for longer; False when somebody else holds it now."""
        self._connection.run("update job set lease_until = ? where token = ? and state = 'running'", (iso(until), lease.token))
        return await self.holds(lease)

    async def holds(self, lease: Lease) -> bool:
        """Tell whether a job is still held."""
        return bool(self._connection.value("select count(*) from job where token = ? and state = 'running'", (lease.token,)))

    async def finish(self, lease: Lease, now: datetime) -> None:
        """Remove a job that is held, or let it be done again when it was asked for meanwhile."""
        self._connection.run("delete from job where token = ? and state = 'running' and again = 0", (lease.token,))
        self._connection.run(
            """
            update job set state = 'ready', again = 0, attempts = 0, due_at = ?2, token = null, lease_until = null, error = null
            where token = ?1 and state = 'running'
            """,
            (lease.token, iso(now)),
        )

    async def release(self, lease: Lease) -> None:
        """Let somebody else do a job that is held."""
        self._connection.run(
            "update job set state = 'ready', token = null, lease_until = null where token = ? and state = 'running'", (lease.token,)
        )

    async def fail(self, lease: Lease, due_at: datetime, error: str, attempts: int, *, parked: bool) -> None:
        """Let a job that is held wait, or park it, with the error it met; it has had so many attempts."""
        self._connection.run(
            """
            update job set state = case again when 1 then 'ready' else ?2 end, due_at = ?3, error = ?4,
                attempts = case again when 1 then 1 else ?5 end, again = 0, token = null, lease_until = null
            where token = ?1 and state = 'running'
            """,
            (lease.token, "parked" if parked else "ready", iso(due_at), error, attempts),
        )

    async def listed(self) -> list[Job]:
        """Return every job, the longest due first."""
        rows = self._connection.rows(
            """
            select c.uuid, kind, state, attempts, since, due_at, error from job cross join conversation c on c.pk = conversation_pk
            where job.workspace_pk = (select pk from workspace where name = ?) order by due_at, job.pk
            """,
            (self._workspace,),
        )
        return [
            Job(
                conversation_id=row[0], kind=row[1], state=row[2], attempts=row[3], since=from_iso(row[4]), due_at=from_iso(row[5]),
                error=row[6],
            )
            for row in rows
        ]  # fmt: skip
