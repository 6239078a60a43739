"""The embedded store: one SQLite file for many processes."""

from __future__ import annotations

from pathlib import Path

from recollect.errors import InputError
from recollect.store.sqlite.audit import SqliteAudit
from recollect.store.sqlite.conversations import SqliteConversations
from recollect.store.sqlite.database import Database
from recollect.store.sqlite.derived import SqliteDerived
from recollect.store.sqlite.turns import SqliteTurns


class SqliteStore:
    """The store protocol on one SQLite file."""

    def __init__(self, database: Database) -> None:
        self.url = f"sqlite://{database.path}"
        self._database = database
        self.conversations = SqliteConversations(database)
        self.turns = SqliteTurns(database)
        self.derived = SqliteDerived(database)
        self.audit = SqliteAudit(database, self.url)

    async def erase(self) -> None:
        """Empty the journal, so that nothing removed is left in any byte of the file."""
        await self._database.erase()

    async def close(self) -> None:
        """Close the file."""
        await self._database.close()


async def open_sqlite(path: str, *, durability: str, threads: bool) -> SqliteStore:
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
    return SqliteStore(database)
