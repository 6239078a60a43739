"""The memories a server holds open: one for each workspace that a token is bound to, all on one store."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import msgspec

from recollect.errors import RecollectError
from recollect.memory import Memory
from recollect.store import open_store

if TYPE_CHECKING:
    from recollect.clock import Clock, Ids
    from recollect.settings import Settings
    from recollect.store import Store


class Workspaces:
    """Memories by workspace; each works in the background from its first use on."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, ids: Ids, *, worker: bool) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._worker = worker
        self._open: dict[str, Memory] = {}

    @classmethod
    async def open(cls, settings: Settings, clock: Clock, ids: Ids, *, worker: bool) -> Workspaces:
        """Open the store that the settings name."""
        return cls(await open_store(settings.store, settings, clock=clock), settings, clock, ids, worker=worker)

    def memory(self, workspace: str) -> Memory:
        """Return the memory of a workspace."""
        if workspace not in self._open:
            self._open[workspace] = self._made(workspace)
            if self._worker:
                self._open[workspace].begin_background()
        return self._open[workspace]

    def _made(self, workspace: str) -> Memory:
        return Memory(self._store, msgspec.structs.replace(self._settings, workspace=workspace), self._clock, self._ids)

    async def sweep(self) -> None:
        """Close what was never finalized and remove what has expired, in every workspace of the store, asked for or not."""
        for workspace in await self._store.workspaces():
            memory = self._open.get(workspace) or self._made(workspace)
            with contextlib.suppress(RecollectError):  # it is looked at again, and the others do not wait for it
                await memory.sweep()

    async def ready(self) -> None:
        """Ask the store for something small; raises when it cannot be used."""
        await self._store.workspaces()

    async def close(self) -> None:
        """Let go of everything; what was acknowledged is safe."""
        await asyncio.gather(*(memory.rest() for memory in self._open.values()))
        await self._store.close()
