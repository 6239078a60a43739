"""What expires: gone from every read at once, and from disk at the next sweep."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from recollect.answers import Swept
from recollect.store.removal import sweep

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.answers import Damage
    from recollect.clock import Clock
    from recollect.store.protocol import Engine, Transaction, Work

_T = TypeVar("_T")
_DUE: Any = object()
_LOOK_AHEAD = timedelta(seconds=60)


class Retention:
    """What has a time after which it is gone."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def sweep(self, workspace: str, now: datetime) -> Swept:
        """Remove what has expired, with all that hangs from it; summaries outlive their turns until their own time is over.

        What was removed in passing since the last sweep, before somebody read or wrote, is counted in.
        """
        swept = await self._engine.write(workspace, lambda transaction: sweep(transaction, now))
        return _sum(swept, _in_passing.pop((self._engine.url, workspace), Swept()))

    async def expiries(self, workspace: str, conversation_id: str) -> dict[str, datetime]:
        """Return when the summaries and insights of a conversation expire; those that never do are left out."""
        return await self._engine.read(workspace, lambda transaction: transaction.retention.expiries(conversation_id))


# what was removed in passing, of each store and workspace, whichever of a process's doors it was: a sweep has yet to erase it
_in_passing: dict[tuple[str, str], Swept] = {}


def _sum(one: Swept, other: Swept) -> Swept:
    return Swept(
        conversations=one.conversations + other.conversations,
        turns=one.turns + other.turns,
        summaries=one.summaries + other.summaries,
        insights=one.insights + other.insights,
    )


class Fresh:
    """An engine that never sees what has expired: where something has, it is removed before anything is read or written.

    Every read looks. A write, of which a server's round trips count, does not look again for a minute when nothing expires in it.
    """

    def __init__(self, engine: Engine, clock: Clock) -> None:
        self._engine = engine
        self._clock = clock
        self._quiet: dict[str, tuple[datetime, datetime]] = {}  # from when to when nothing expires, by workspace

    @property
    def url(self) -> str:
        """Where it is, without any password."""
        return self._engine.url

    async def read(self, workspace: str, work: Work[_T], *, settled: bool = False) -> _T:
        """Run a unit of work that changes nothing, and sees nothing that has expired."""
        now = self._clock.now()

        async def unless_due(transaction: Transaction) -> _T:
            return _DUE if await self._is_due(transaction, workspace, now) else await work(transaction)

        found = await self._engine.read(workspace, unless_due, settled=settled)
        if found is not _DUE:
            return found
        self._count(workspace, await self._engine.write(workspace, lambda transaction: sweep(transaction, now)))
        return await self._engine.read(workspace, work, settled=settled)

    async def write(self, workspace: str, work: Work[_T]) -> _T:
        """Run a unit of work whole or not at all; nor does it go on with what has expired."""
        now = self._clock.now()
        since, until = self._quiet.get(workspace, (now, now))
        if since <= now < until:
            return await self._engine.write(workspace, work)

        async def swept_first(transaction: Transaction) -> tuple[_T, Swept]:
            swept = await sweep(transaction, now) if await self._is_due(transaction, workspace, now) else Swept()
            return await work(transaction), swept

        done, swept = await self._engine.write(workspace, swept_first)
        self._count(workspace, swept)
        return done

    async def _is_due(self, transaction: Transaction, workspace: str, now: datetime) -> bool:
        until = now + _LOOK_AHEAD
        soonest = await transaction.retention.soonest(until)
        self._quiet[workspace] = now, until if soonest is None else max(now, soonest)
        return soonest is not None and soonest <= now

    def _count(self, workspace: str, swept: Swept) -> None:
        if swept.has_removed:
            known = _in_passing.get((self.url, workspace), Swept())
            _in_passing[self.url, workspace] = _sum(known, swept)

    async def workspaces(self) -> list[str]:
        """Return the names of all workspaces."""
        return await self._engine.workspaces()

    async def damage(self) -> list[Damage]:
        """Ask the database about its own health."""
        return await self._engine.damage()

    async def size_bytes(self) -> int:
        """Return how much room it takes, or 0 when it does not tell."""
        return await self._engine.size_bytes()

    async def erase(self) -> None:
        """Make what was removed unrecoverable."""
        await self._engine.erase()

    async def close(self) -> None:
        """Let go of everything that is held open."""
        await self._engine.close()
