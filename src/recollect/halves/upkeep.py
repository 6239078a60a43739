"""What is forgotten, swept away, verified and counted: the keeping half of `Memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.checks import checked_plain
from recollect.errors import InputError, StoreBusyError
from recollect.halves.core import Core
from recollect.store.shapes import ConversationFilter
from recollect.trace.verify import verify_content, verify_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from recollect.answers import Forgotten, ModelSpending, Stats, Swept, Verification

_ALL = 1_000_000


class Kept(Core):
    """How a memory is kept in order."""

    async def forget(
        self,
        *,
        conversation: str | None = None,
        project: str | None = None,
        before: datetime | None = None,
        origin: str | None = None,
    ) -> Forgotten:
        """Forget a conversation, a project, what ended before a moment, or what an agent brought; `before` may go with a project.

        Forgotten turns are gone from branches, too, and on SQLite from every byte of the store's files.
        """
        if before is not None and conversation is None and origin is None:
            forgotten = await self.store.turns.forget_before(self.workspace, before, await self._projects.ids(project, None))
        else:
            ids = await self._ids_to_forget(conversation, project, before, origin)
            if project is not None:
                await self.store.code.forget(self.workspace, await self._projects.ids(project, None) or ())
            forgotten = await self.store.conversations.remove(self.workspace, ids, keep_inherited=False)
        try:
            await self._mirrored_anew()
        finally:
            await self.store.erase()
        return forgotten

    async def _ids_to_forget(self, conversation: str | None, project: str | None, before: datetime | None, origin: str | None) -> list[str]:
        given = [name for name, value in (("conversation", conversation), ("project", project), ("origin", origin)) if value is not None]
        if len(given) != 1 or before is not None:
            msg = "forget exactly one of: a conversation, a project, what is before a date, what an agent brought (origin)"
            raise InputError(msg)
        if conversation is not None:
            return [(await self.get_info(conversation)).id]
        where = ConversationFilter(agent=origin, project_ids=None if project is None else await self._projects.ids(project, None))
        return [info.id for info in await self.store.conversations.find(self.workspace, where, _ALL)]

    async def sweep(self, *, thoroughly: bool = True) -> Swept:
        """Remove what has expired from disk, with all that hangs from it, and close requests that were never finalized.

        Another process may have taken it out of the store already: `thoroughly` has its bytes, and what a mirror says, go all
        the same.
        """
        swept = await self.store.retention.sweep(self.workspace, self.clock.now())
        closed = await self.requests.close_idle()
        if swept.has_removed or thoroughly:
            await self._mirrored_anew()
            try:
                await self.store.erase()
            except StoreBusyError:
                if swept.has_removed:
                    raise
        return msgspec.structs.replace(swept, closed=closed)

    async def remove(self, conversation_ids: list[str], *, keep_inherited: bool) -> Forgotten:
        """Remove conversations; their branches keep what they inherited, if that is asked for."""
        removed = await self.store.conversations.remove(self.workspace, conversation_ids, keep_inherited=keep_inherited)
        await self._mirrored_anew()
        return removed

    async def verify(
        self, record_id: str | None = None, content: str | None = None, *, progress: Callable[[int], None] | None = None
    ) -> Verification:
        """Compare a content with what was recorded under an id, or, without arguments, check the whole workspace."""
        if (record_id is None) != (content is None):
            msg = "verify takes an id and a content together, or neither to check the whole store"
            raise InputError(msg)
        if record_id is None or content is None:
            return await verify_store(self.store, self.workspace, progress)
        own_id = checked_plain("id", record_id) or ""
        return await verify_content(self.store, self.workspace, own_id, content, self.recorder.reading().cleaner)

    async def stats(self) -> Stats:
        """Count what the workspace holds."""
        counted = await self.store.audit.stats(self.workspace)
        return msgspec.structs.replace(counted, timings_ms=self.metrics.timings_ms())

    async def spending(self, *, since: datetime | None = None) -> list[ModelSpending]:
        """Return what models were asked and spent, by use and model; of all time, or since a moment."""
        return await self.store.spending.totals(self.workspace, since)
