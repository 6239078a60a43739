"""Work that waits for a worker: taken under a lease, done once, tried again, parked; for every store.

A job is written in the transaction of what caused it. There is one of a kind for a conversation: asked for again while
it waits, it is done once; asked for while it is being done, it is done again.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.model import Job, JobKind
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.shapes import Lease

ATTEMPTS_MAX = 5
BACK_OFF_SECONDS = 5.0
BACK_OFF_SECONDS_MAX = 900.0
_CLOCK_MISTAKE_SECONDS = 3_600.0  # no lease or back-off is as long: a time beyond it was written by a clock that was wrong


class Jobs:
    """Work that waits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def wake(self, workspace: str, conversation_id: str, kind: JobKind, at: datetime) -> None:
        """Have something done for a conversation; a parked job gets another chance."""
        await self._engine.write(workspace, lambda transaction: transaction.jobs.wake(conversation_id, kind, at))

    async def wake_stale(self, workspace: str, model: str | None, at: datetime) -> None:
        """Have every passage embedded that has no vector of a model, once it is another than before; None while nothing is embedded.

        What is recorded brings its own job, so passages are looked through only when the model changes. A job that waits,
        is being done or is parked stays as it is.
        """
        if await self._engine.read(workspace, lambda transaction: transaction.jobs.embedder()) != model:
            await self._engine.write(workspace, lambda transaction: _wake_stale(transaction, model, at))

    async def lease(self, workspace: str, now: datetime, seconds: float, token: str) -> Lease | None:
        """Take the job that has been due the longest, or whose lease has run out; None when nothing is due."""
        until, beyond = now + timedelta(seconds=seconds), now + timedelta(seconds=_CLOCK_MISTAKE_SECONDS)
        return await self._engine.write(workspace, lambda transaction: transaction.jobs.lease(now, until, token, beyond))

    async def extend(self, workspace: str, lease: Lease, now: datetime, seconds: float) -> bool:
        """Hold a job for longer; False when somebody else holds it now."""
        until = now + timedelta(seconds=seconds)
        return await self._engine.write(workspace, lambda transaction: transaction.jobs.extend(lease, until))

    async def finish(self, workspace: str, lease: Lease, now: datetime) -> None:
        """End a job that is held, or let it be done again, after the others, when it was asked for meanwhile."""
        await self._engine.write(workspace, lambda transaction: transaction.jobs.finish(lease, now))

    async def release(self, workspace: str, lease: Lease) -> None:
        """Let somebody else do a job that is held, at once."""
        await self._engine.write(workspace, lambda transaction: transaction.jobs.release(lease))

    async def fail(self, workspace: str, lease: Lease, now: datetime, error: str, chance: float) -> None:
        """Let a job wait, longer each time, or park it after the last attempt; `chance`, from 0 to 1, spreads the waiting."""
        seconds = min(BACK_OFF_SECONDS * 4**lease.attempts, BACK_OFF_SECONDS_MAX) * (0.5 + chance)
        parked = lease.attempts + 1 >= ATTEMPTS_MAX
        due_at = now + timedelta(seconds=seconds)
        attempts = lease.attempts + 1
        await self._engine.write(workspace, lambda transaction: transaction.jobs.fail(lease, due_at, error, attempts, parked=parked))

    async def defer(self, workspace: str, lease: Lease, now: datetime, reason: str, seconds: float) -> None:
        """Let a job wait that cannot be done now and that nothing is wrong with: it counts no attempt, and is never parked."""
        due_at, attempts = now + timedelta(seconds=seconds), max(lease.attempts, 1)  # one that was never tried is due at once
        await self._engine.write(workspace, lambda transaction: transaction.jobs.fail(lease, due_at, reason, attempts, parked=False))

    async def listed(self, workspace: str) -> list[Job]:
        """Return every job, the longest due first."""
        return await self._engine.read(workspace, lambda transaction: transaction.jobs.listed())


async def _wake_stale(transaction: Transaction, model: str | None, at: datetime) -> None:
    await transaction.jobs.set_embedder(model)
    if model is not None:
        await transaction.jobs.wake_unembedded(model, at)


def states_of(jobs: Sequence[Job]) -> dict[str, int]:
    """Count jobs by state."""
    return {state: sum(job.state == state for job in jobs) for state in ("ready", "running", "parked")}


def waiting_since(jobs: Sequence[Job]) -> datetime | None:
    """Return since when the oldest job waits that is not parked."""
    return min((job.since for job in jobs if job.state != "parked"), default=None)
