"""A store: eleven facets over one engine, and an end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.store.audit import Audit
from recollect.store.coding import Code
from recollect.store.conversations import Conversations
from recollect.store.derived import Derived
from recollect.store.jobs import Jobs
from recollect.store.requests import Requests
from recollect.store.retention import Retention
from recollect.store.searching import Searching
from recollect.store.spending import Spending
from recollect.store.tracing import Tracing
from recollect.store.turns import Turns

if TYPE_CHECKING:
    from recollect.store.protocol import Engine


class Store:
    """One graph, whichever database keeps it; `protocol` says what is promised."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.conversations = Conversations(engine)
        self.turns = Turns(engine)
        self.search = Searching(engine)
        self.derived = Derived(engine)
        self.code = Code(engine)
        self.jobs = Jobs(engine)
        self.retention = Retention(engine)
        self.requests = Requests(engine)
        self.spending = Spending(engine)
        self.trace = Tracing(engine)
        self.audit = Audit(engine)

    @property
    def url(self) -> str:
        """Where it is, without any password."""
        return self._engine.url

    async def workspaces(self) -> list[str]:
        """Return the names of all workspaces."""
        return await self._engine.workspaces()

    async def erase(self) -> None:
        """Make what was removed unrecoverable, as far as the backend's own files go."""
        await self._engine.erase()

    async def close(self) -> None:
        """Let go of everything the store holds open; what was acknowledged is already safe."""
        await self._engine.close()
