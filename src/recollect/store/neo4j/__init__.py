"""The store on a Neo4j server: for many machines at once, and for people who ask the graph themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from recollect.store.neo4j.address import address_of
from recollect.store.neo4j.audit import index_damage
from recollect.store.neo4j.database import Database
from recollect.store.neo4j.migrations import migrate
from recollect.store.neo4j.transaction import Neo4jTransaction

if TYPE_CHECKING:
    from recollect.answers import Damage
    from recollect.settings import Neo4j
    from recollect.store.protocol import Work

_T = TypeVar("_T")


class Neo4jEngine:
    """Units of work on one database of a Neo4j server."""

    def __init__(self, database: Database) -> None:
        self.url = database.address.url
        self.database = database

    async def read(self, workspace: str, work: Work[_T], *, settled: bool = False) -> _T:
        """Run a unit of work that changes nothing; a settled one holds the projects it looks at."""
        return await self.database.read(lambda connection: work(Neo4jTransaction(connection, workspace)), locks=settled)

    async def write(self, workspace: str, work: Work[_T]) -> _T:
        """Run a unit of work whole or not at all, and once."""
        return await self.database.write(lambda connection: work(Neo4jTransaction(connection, workspace)))

    async def workspaces(self) -> list[str]:
        """Return the names of all workspaces."""
        rows = await self.database.read(lambda connection: connection.rows("MATCH (w:Workspace) RETURN w.name ORDER BY w.name"))
        return [row[0] for row in rows]

    async def damage(self) -> list[Damage]:
        """Check that every index is in use."""
        return await self.database.read(index_damage)

    async def size_bytes(self) -> int:
        """Return 0: a Neo4j server does not tell its clients."""
        return 0

    async def erase(self) -> None:
        """Do nothing more: what was removed is out of reach of every query and index, and its room is the server's to reuse."""

    async def close(self) -> None:
        """Close every connection."""
        await self.database.close()


async def open_neo4j(url: str, settings: Neo4j) -> Neo4jEngine:
    """Open a database, bringing its constraints and indexes up to date."""
    address = address_of(url)
    user = settings.user or address.user or (None if settings.password is None else "neo4j")
    auth = None if user is None else (user, settings.password or "")
    database = Database(address, auth, retry_seconds=settings.retry_seconds)
    try:
        await database.connect()
        await migrate(database)
    except BaseException:
        await database.close()
        raise
    return Neo4jEngine(database)
