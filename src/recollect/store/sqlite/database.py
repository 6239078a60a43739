"""The SQLite file: opened, migrated, and run one unit of work at a time; knows no table of the graph.

A unit of work is a function of a connection. Writes begin with `BEGIN IMMEDIATE` and are tried again, with jitter, when
another process holds the file; reads see one moment. With threads, one serves writes and one reads, so that a long
search never delays a record; without, all runs in the caller's thread. Writes that wait at the same time share one commit.
"""

from __future__ import annotations

import contextlib
import os
import random
import time
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar, cast

import apsw

from recollect.errors import DamagedStoreError, InputError, NewerStoreError, StoreBusyError, StoreError, StoreUnavailableError
from recollect.limits import BUSY_ATTEMPTS_MAX, BUSY_TIMEOUT_MS
from recollect.store.sqlite.lanes import Lane, Outcome, attempted
from recollect.store.sqlite.migrations import APPLICATION_ID, MIGRATIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

_T = TypeVar("_T")
Row = tuple[Any, ...]

_PRAGMAS: tuple[LiteralString, ...] = (
    "pragma cache_size = -32000",
    "pragma temp_store = memory",
    "pragma foreign_keys = on",
    "pragma secure_delete = on",
    "pragma journal_size_limit = 67108864",
    "pragma wal_autocheckpoint = 4000",  # pages, 16 MB: the ends of tables and indexes are copied once for many turns
)
_ERASE_ATTEMPTS_MAX = 20
_ERASE_WAIT_SECONDS = 0.1
_SURPRISES = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError)  # what values that nobody wrote do to code
_DURABILITY: dict[str, LiteralString] = {
    "process": "pragma synchronous = normal",  # survives the death of every process
    "power": "pragma synchronous = full",  # survives a power cut too, for one fdatasync a commit
}


class Connection:
    """A connection that runs literal queries only."""

    def __init__(self, raw: apsw.Connection) -> None:
        self.raw = raw

    def run(self, query: LiteralString, bindings: Sequence[object] = ()) -> None:
        """Run a statement for its effect."""
        self.raw.execute(query, cast("Any", bindings))

    def run_many(self, query: LiteralString, rows: Sequence[Sequence[object]]) -> None:
        """Run a statement once for each row."""
        if rows:
            self.raw.executemany(query, cast("Any", rows))

    def rows(self, query: LiteralString, bindings: Sequence[object] = ()) -> list[Row]:
        """Return all rows."""
        return cast("list[Row]", self.raw.execute(query, cast("Any", bindings)).fetchall())

    def row(self, query: LiteralString, bindings: Sequence[object] = ()) -> Row | None:
        """Return the first row, or None."""
        return cast("Row | None", self.raw.execute(query, cast("Any", bindings)).fetchone())

    def value(self, query: LiteralString, bindings: Sequence[object] = ()) -> Any:
        """Return the first column of the first row, or None."""
        row = self.row(query, bindings)
        return None if row is None else row[0]

    def inserted(self, query: LiteralString, bindings: Sequence[object] = ()) -> int:
        """Insert one row and return its key."""
        self.raw.execute(query, cast("Any", bindings))
        return self.raw.last_insert_rowid()


class _UndoneError(Exception):
    """SQLite undid a whole transaction, and not just the unit of work that failed."""


class Database:
    """One SQLite file, open for reading and writing from this process."""

    def __init__(self, path: Path, *, durability: str, threads: bool) -> None:
        if durability not in _DURABILITY:
            msg = f"durability is 'process' or 'power', not {durability!r}"
            raise InputError(msg)
        self.path = path
        self._durability = durability
        self._threads = threads
        self._writer = Lane(self._connected, "recollect-write", self._writing_together)
        self._reader = Lane(self._connected, "recollect-read") if threads else self._writer

    def _connected(self) -> Connection:
        with translated(self.path):
            raw = apsw.Connection(os.fspath(self.path))
            raw.set_busy_timeout(BUSY_TIMEOUT_MS)
            raw.config(apsw.SQLITE_DBCONFIG_ENABLE_QPSG, 1)  # or many statements would be compiled anew for every value they are given
            for pragma in (*_PRAGMAS, _DURABILITY[self._durability]):
                raw.execute(pragma).fetchall()
        return Connection(raw)

    def prepare(self, migrations: Sequence[Callable[[apsw.Connection], None]] = MIGRATIONS) -> None:
        """Create the file or bring it up to date, each step whole or not at all; refuse what is not ours or is newer."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            msg = f"cannot create the folder of {self.path}: {error.strerror or error}"
            raise StoreUnavailableError(msg) from error
        if not self.path.exists():
            with contextlib.suppress(FileExistsError):
                _create_private(self.path)
        self._writer.run(lambda connection: self._migrate(connection, migrations))

    def _migrate(self, connection: Connection, migrations: Sequence[Callable[[apsw.Connection], None]]) -> None:
        with translated(self.path):
            if self._version(connection, len(migrations)) == len(migrations):
                return
            connection.rows("pragma journal_mode = wal")
            while (version := self._version(connection, len(migrations))) < len(migrations):
                with _immediate(connection):
                    if self._version(connection, len(migrations)) != version:
                        continue  # another process took this step meanwhile
                    migrations[version](connection.raw)
                    connection.raw.pragma("user_version", version + 1)
                    connection.raw.pragma("application_id", APPLICATION_ID)

    def _version(self, connection: Connection, newest: int) -> int:
        version = int(connection.value("pragma user_version"))
        if version == 0:
            if connection.value("select count(*) from sqlite_schema"):
                msg = f"{self.path} is an SQLite file of another program: name a file of its own for Recollect"
                raise StoreUnavailableError(msg)
            return 0
        if connection.value("pragma application_id") != APPLICATION_ID:
            msg = f"{self.path} is an SQLite file of another program: name a file of its own for Recollect"
            raise StoreUnavailableError(msg)
        if version > newest:
            msg = f"{self.path} was made by a newer Recollect (schema {version}, this one knows {newest}): upgrade Recollect"
            raise NewerStoreError(msg)
        return version

    async def read(self, work: Callable[[Connection], _T]) -> _T:
        """Run a unit of work that sees one moment of the file."""
        return await self._on(self._reader, lambda connection: self._reading(connection, work))

    async def write(self, work: Callable[[Connection], _T]) -> _T:
        """Run a unit of work whole or not at all; when this returns, it survives the death of every process."""
        if self._threads:
            return await self._writer.run_async(lambda connection: self._writing(connection, work), joins=True)
        return self._writer.run(lambda connection: self._writing(connection, work))

    async def read_afresh(self, work: Callable[[Connection], _T]) -> _T:
        """Run a unit of work on a connection of its own: a full-text table that is checked must not remember older pages."""
        lane = Lane(self._connected, "recollect-check")
        try:
            return await self._on(lane, lambda connection: self._reading(connection, work))
        finally:
            lane.close()

    async def _on(self, lane: Lane, work: Callable[[Connection], _T]) -> _T:
        return await lane.run_async(work) if self._threads else lane.run(work)

    def _reading(self, connection: Connection, work: Callable[[Connection], _T]) -> _T:
        with translated(self.path):
            connection.run("begin")
            try:
                return self._surprised(connection, work)
            finally:
                _end(connection)

    def _writing(self, connection: Connection, work: Callable[[Connection], _T]) -> _T:
        """Run a unit of work in a transaction of its own, or as a part of the one it shares."""
        if connection.raw.in_transaction:
            return self._surprised(connection, work)
        with translated(self.path), _immediate(connection):
            return self._surprised(connection, work)

    def _surprised(self, connection: Connection, work: Callable[[Connection], _T]) -> _T:
        try:
            return work(connection)
        except _SURPRISES as error:
            raise self._explained(connection, error) from error

    def _writing_together(self, connection: Connection, works: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
        """Run units of work in one transaction, each whole or not at all; where it fails as a whole, each has one of its own."""
        try:
            return self._at_once(connection, works)
        except StoreBusyError as error:  # another process holds the file: nobody has to wait for that again
            return [Outcome(error=error)] * len(works)
        except (_UndoneError, StoreError):
            return [attempted(lambda work=work: work(connection)) for work in works]

    def _at_once(self, connection: Connection, works: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
        outcomes: list[Outcome] = []
        with translated(self.path), _immediate(connection):
            for work in works:
                connection.run("savepoint unit")
                outcome = attempted(lambda work=work: self._as_part(connection, work))
                if outcome.error is not None:
                    if not connection.raw.in_transaction:
                        raise _UndoneError from outcome.error
                    connection.run("rollback to unit")
                connection.run("release unit")
                outcomes.append(outcome)
        return outcomes

    def _as_part(self, connection: Connection, work: Callable[[Connection], _T]) -> _T:
        with translated(self.path):
            return work(connection)

    def _explained(self, connection: Connection, error: Exception) -> Exception:
        """Return the error that says so when a damaged file surprised its reader; a surprise in a sound file is our own mistake."""
        if isinstance(error, UnicodeDecodeError) or connection.value("pragma integrity_check(1)") == "ok":
            return error
        return DamagedStoreError(f"{self.path} is damaged ({error}): restore it from a copy, or see `recollect verify`")

    async def erase(self) -> None:
        """Empty the journal, so that nothing removed is left in any byte of the store's files."""
        await self._on(self._writer, self._erasing)

    def _erasing(self, connection: Connection) -> None:
        with translated(self.path):
            for _ in range(_ERASE_ATTEMPTS_MAX):
                with contextlib.suppress(apsw.BusyError):
                    row = connection.row("pragma wal_checkpoint(truncate)")
                    if row is not None and row[0] == 0:
                        return
                time.sleep(_ERASE_WAIT_SECONDS)
        msg = f"what was forgotten is out of every query, but another process still reads the journal of {self.path}: forget it again later"
        raise StoreBusyError(msg)

    def size_bytes(self) -> int:
        """Return the bytes of the file and its journal."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    async def close(self) -> None:
        """Close the connections; the last one to leave folds the journal into the file."""
        for lane in {self._writer, self._reader}:
            lane.close()


def _create_private(path: Path) -> None:
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        raise
    except OSError as error:
        msg = f"cannot create {path}: {error.strerror or error}"
        raise StoreUnavailableError(msg) from error


@contextlib.contextmanager
def _immediate(connection: Connection) -> Generator[None]:
    for attempt in range(BUSY_ATTEMPTS_MAX):
        try:
            connection.run("begin immediate")
            break
        except apsw.BusyError:
            if attempt == BUSY_ATTEMPTS_MAX - 1:
                raise
            time.sleep(random.uniform(0.001, 0.02) * (attempt + 1))  # noqa: S311  jitter, not a secret
    try:
        yield
        connection.run("commit")
    finally:
        _end(connection)


def _end(connection: Connection) -> None:
    if connection.raw.in_transaction:
        connection.run("rollback")


@contextlib.contextmanager
def translated(path: Path) -> Generator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except apsw.BusyError as error:
        msg = f"{path} was held by another process for too long: try again when it is done"
        raise StoreBusyError(msg) from error
    except (apsw.CantOpenError, apsw.PermissionsError, apsw.ReadOnlyError) as error:
        msg = f"cannot open {path} for writing: {error}"
        raise StoreUnavailableError(msg) from error
    except (apsw.CorruptError, apsw.NotADBError, UnicodeDecodeError) as error:
        msg = f"{path} is damaged or no SQLite file ({error}): restore it from a copy, or see `recollect verify`"
        raise DamagedStoreError(msg) from error
    except apsw.ConstraintError as error:
        msg = f"this contradicts what is stored in {path} ({error}): nothing was written"
        raise InputError(msg) from error
    except apsw.FullError as error:
        msg = f"the disk of {path} is full; nothing was recorded: make room and try again"
        raise StoreUnavailableError(msg) from error
    except apsw.IOError as error:
        msg = f"reading or writing {path} failed: {error}"
        raise StoreUnavailableError(msg) from error
    except apsw.TooBigError as error:
        msg = f"a value is too big for SQLite: {error}"
        raise InputError(msg) from error
    except apsw.SQLError as error:
        msg = f"{path} does not have the tables Recollect made: {error}"
        raise StoreError(msg) from error
