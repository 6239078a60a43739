"""The embedded store: one SQLite file for many processes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import InputError
from recollect.running import run_now
from recollect.store.sqlite.database import Database
from recollect.store.sqlite.remembering import Remembered
from recollect.store.sqlite.transaction import SqliteTransaction

if TYPE_CHECKING:
    from recollect.answers import Damage
    from recollect.store.protocol import Work

_T = TypeVar("_T")


class SqliteEngine:
    """Units of work on one SQLite file."""

    def __init__(self, database: Database) -> None:
        self.url = f"sqlite://{database.path}"
        self._database = database
        self._remembered = Remembered()

    async def read(self, workspace: str, work: Work[_T], *, settled: bool = False) -> _T:  # noqa: ARG002  what is read is one moment
        """Run a unit of work that sees one moment of the file, which is settled in any case."""
        return await self._database.read(lambda connection: run_now(work(SqliteTransaction(connection, workspace, self._remembered))))

    async def write(self, workspace: str, work: Work[_T]) -> _T:
        """Run a unit of work whole or not at all."""
        return await self._database.write(lambda connection: run_now(work(SqliteTransaction(connection, workspace, self._remembered))))

    async def workspaces(self) -> list[str]:
        """Return the names of all workspaces."""
        rows = await self._database.read(lambda connection: connection.rows("select name from workspace order by name"))
        return [row[0] for row in rows]

    async def damage(self) -> list[Damage]:
        """Check the file, then its full-text index."""
        from recollect.store.sqlite.audit import file_damage, index_damage  # noqa: PLC0415  only who verifies needs it

        return [*await self._database.read_afresh(file_damage), *await self._database.write(index_damage)]

    async def size_bytes(self) -> int:
        """Return the bytes of the file and its journal."""
        return self._database.size_bytes()

    async def erase(self) -> None:
        """Empty the journal, so that nothing removed is left in any byte of the file."""
        await self._database.erase()

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()


async def open_sqlite(path: str, *, durability: str, threads: bool) -> SqliteEngine:
    """Open a file, creating or migrating it as needed."""
    if not path or path.endswith("/") or "\0" in path:
        msg = f"a SQLite store needs the path of a file, not {path!r}: use sqlite:///path/to/memory.db"
        raise InputError(msg)
    if "?" in path:
        msg = f"a SQLite store takes no options after a question mark, as in {path!r}: name the file alone"
        raise InputError(msg)
    if Path(path).expanduser().is_dir():
        msg = f"{path} is a folder: name a file in it, such as {path.rstrip('/')}/memory.db"
        raise InputError(msg)
    database = Database(Path(path).expanduser().absolute(), durability=durability, threads=threads)
    database.prepare()
    return SqliteEngine(database)
