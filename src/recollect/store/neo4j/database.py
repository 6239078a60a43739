"""One Neo4j database: units of work in transactions of the official driver, retried, with its errors told as ours.

Every write locks the project it writes to before it looks at it, so that what it decides still holds when it is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import re
import uuid
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import neo4j
from neo4j import AsyncGraphDatabase
from neo4j.exceptions import (
    AuthError,
    ClientError,
    ConstraintError,
    DriverError,
    IncompleteCommit,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
    TransientError,
)

from recollect.errors import DamagedStoreError, RecollectError, StoreBusyError, StoreError, StoreUnavailableError
from recollect.running import refuse_fork

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Generator

    from recollect.store.neo4j.address import Address

logging.getLogger("neo4j").addHandler(logging.NullHandler())  # what the driver has to say is in the errors it raises

_T = TypeVar("_T")
Row = list[Any]

SERVER_VERSION_MIN = (5, 23)
UNIT_SECONDS_MAX = 60.0  # one transaction, the wait for another's lock included
ATTEMPTS_MAX = 10  # of what the driver itself does not try again
_CONNECT_SECONDS_MAX = 15.0
_SILENCE_SECONDS_MAX = 60.0  # a server that is alive ends a transaction itself
_GONE = "Neo.ClientError.Statement.EntityNotFound"  # another transaction deleted what this one was about to read
_NO_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"
_TIMED_OUT = (
    "Neo.ClientError.Transaction.TransactionTimedOut",
    "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration",
    "Neo.ClientError.Transaction.LockClientStopped",
    "Neo.TransientError.Transaction.LockAcquisitionTimeout",
)


class Connection:
    """A transaction that runs literal queries only; `locks` says whether what is read is kept from others' writing."""

    def __init__(self, raw: neo4j.AsyncManagedTransaction, unit: Unit, *, locks: bool) -> None:
        self._raw = raw
        self.unit = unit
        self.locks = locks

    async def rows(self, query: LiteralString, **parameters: object) -> list[Row]:
        """Return all rows."""
        self.unit.queries += 1
        result = await self._raw.run(query, parameters)
        return await result.values()

    async def row(self, query: LiteralString, **parameters: object) -> Row | None:
        """Return the first row, or None."""
        rows = await self.rows(query, **parameters)
        return rows[0] if rows else None

    async def run(self, query: LiteralString, **parameters: object) -> None:
        """Run a query for its effect."""
        self.unit.queries += 1
        await (await self._raw.run(query, parameters)).consume()


class Unit:
    """One unit of work: turns it writes carry its id, so that a lost answer to a commit can be found out."""

    def __init__(self) -> None:
        self.id = str(uuid.uuid4())
        self.wrote_to: set[tuple[str, str]] = set()  # workspace and conversation
        self.queries = 0


class Database:
    """One database of a Neo4j server."""

    def __init__(self, address: Address, auth: tuple[str, str] | None, *, retry_seconds: float) -> None:
        self.address = address
        self.queries = 0  # asked so far; each is one round trip, as are the beginning and the end of a transaction
        self.units = 0
        self._closed = False
        self._process = os.getpid()
        self._retry_seconds = retry_seconds
        self._user = None if auth is None else auth[0]
        with self._translated():
            self._driver = AsyncGraphDatabase.driver(
                address.server,
                auth=auth,
                telemetry_disabled=True,
                notifications_min_severity="OFF",
                max_transaction_retry_time=retry_seconds,
                connection_timeout=_CONNECT_SECONDS_MAX,
                keep_alive=True,
            )
        self._bookmarks = AsyncGraphDatabase.bookmark_manager()  # in a cluster, what was written is seen by who wrote it

    def _session(self, access: str) -> neo4j.AsyncSession:
        refuse_fork(self._process)
        if self._closed:
            msg = "the memory is closed: open it again"
            raise StoreUnavailableError(msg)
        return self._driver.session(database=self.address.database, default_access_mode=access, bookmark_manager=self._bookmarks)

    async def connect(self) -> None:
        """Reach the server once, so that what is wrong with the connection is said at once; refuse one that is too old."""
        with self._translated():
            info = await self._driver.get_server_info()
        refuse_old(info.agent, self.address.url)

    async def read(self, work: Callable[[Connection], Awaitable[_T]], *, locks: bool = False) -> _T:
        """Run a unit of work that changes nothing.

        A reader may meet a writer's commit half-way, and finds its turn damaged: it looks again before it says so.
        """
        return await self._asked(work, Unit(), locks=locks)

    async def _asked(self, work: Callable[[Connection], Awaitable[_T]], unit: Unit, *, locks: bool) -> _T:
        for attempt in range(ATTEMPTS_MAX):
            try:
                return await self._run(work, unit, writes=locks, locks=locks)
            except DamagedStoreError:
                if attempt >= ATTEMPTS_MAX // 2:
                    raise
            except _LostCommitError:  # nothing was changed, so nothing can be lost
                pass
            await _pause(attempt)
        raise _busy(self.address)

    async def write(self, work: Callable[[Connection], Awaitable[_T]]) -> _T:
        """Run a unit of work whole or not at all, and once: a commit whose answer was lost is looked for before it is repeated."""
        unit = Unit()
        results: list[_T] = []

        async def kept(connection: Connection) -> _T:
            results.append(await work(connection))
            return results[-1]

        for attempt in range(ATTEMPTS_MAX):
            try:
                return await self._run(kept, unit, writes=True, locks=True)
            except _LostCommitError:
                if await self._asked(_was_committed, unit, locks=True):
                    return results[-1]
            await _pause(attempt)
        raise _busy(self.address)

    async def _run(self, work: Callable[[Connection], Awaitable[_T]], unit: Unit, *, writes: bool, locks: bool) -> _T:
        """Run a unit of work in a transaction; the driver tries again what is transient, this what the driver does not."""
        for attempt in range(ATTEMPTS_MAX):
            with self._translated():
                try:
                    return await self._transaction(work, unit, writes=writes, locks=locks)
                except ConstraintError:  # somebody else wrote the same at the same moment: now it is there to be seen
                    if attempt == ATTEMPTS_MAX - 1:
                        raise
                except ClientError as error:
                    if error.code != _GONE or attempt == ATTEMPTS_MAX - 1:
                        raise
            await _pause(attempt)
        raise _busy(self.address)

    async def _transaction(self, work: Callable[[Connection], Awaitable[_T]], unit: Unit, *, writes: bool, locks: bool) -> _T:
        @neo4j.unit_of_work(timeout=UNIT_SECONDS_MAX)
        async def body(raw: neo4j.AsyncManagedTransaction) -> _T:
            return await work(Connection(raw, unit, locks=locks))

        before = unit.queries
        patience = UNIT_SECONDS_MAX + self._retry_seconds + _SILENCE_SECONDS_MAX
        session = self._session(neo4j.WRITE_ACCESS if writes else neo4j.READ_ACCESS)
        async with asyncio.timeout(patience), session:
            try:
                return await (session.execute_write(body) if writes else session.execute_read(body))
            finally:
                self.queries += unit.queries - before
                self.units += 1

    async def run(self, query: LiteralString, **parameters: object) -> list[Row]:
        """Run one query in a transaction of its own, such as a change of the schema."""
        with self._translated():
            async with self._session(neo4j.WRITE_ACCESS) as session:
                return await (await session.run(query, parameters)).values()

    @contextlib.asynccontextmanager
    async def first_to(self, query: LiteralString, *, seconds_max: float, **parameters: object) -> AsyncGenerator[bool]:
        """Write one unique node and keep it to ourselves while the caller works; False where another has written it by then.

        Who comes second waits for the first, and writes itself when that one fails or dies.
        """
        with self._translated():
            async with self._session(neo4j.WRITE_ACCESS) as session, await session.begin_transaction(timeout=seconds_max) as raw:
                told = await (await raw.run(query, parameters)).consume()
                yield told.counters.nodes_created > 0
                await raw.commit()

    @contextlib.contextmanager
    def _translated(self) -> Generator[None]:
        """Turn the driver's errors into ours; no message repeats a password, because the driver is the only one that has it."""
        where = self.address.url
        try:
            yield
        except IncompleteCommit as error:
            msg = f"the connection to {where} broke while something was being written: it is not known whether it was"
            raise _LostCommitError(msg) from error
        except AuthError as error:
            who = "somebody without a name" if self._user is None else f"user {self._user!r}"
            msg = f"the Neo4j server at {where} refuses {who}: set RECOLLECT_NEO4J_USER and RECOLLECT_NEO4J_PASSWORD"
            raise StoreUnavailableError(msg) from error
        except TimeoutError as error:
            msg = f"the Neo4j server at {where} did not answer in time: see whether it is well, and try again"
            raise StoreUnavailableError(msg) from error
        except (ServiceUnavailable, SessionExpired, OSError) as error:
            msg = f"no Neo4j server answers at {where}: start it, or name another with --store"
            raise StoreUnavailableError(msg) from error
        except Neo4jError as error:
            raise self._refusal(error) from error
        except DriverError as error:
            msg = f"{where} cannot be used as it is configured: {_short(error)}"
            raise StoreUnavailableError(msg) from error

    def _refusal(self, error: Neo4jError) -> StoreError:
        """Say what a server's answer means."""
        where = self.address.url
        if error.code in _TIMED_OUT:
            return StoreBusyError(f"{where} was held by another for longer than {UNIT_SECONDS_MAX:.0f} s: try again")
        if isinstance(error, TransientError):
            return StoreBusyError(f"{where} was busy for too long ({_short(error)}): try again")
        if error.code == _NO_DATABASE:
            named = f"no database {self.address.database!r}"
            return StoreUnavailableError(f"the Neo4j server at {self.address.server} has {named}: create it, or leave it out")
        return StoreError(f"{where} cannot do this: {_short(error)}")

    async def close(self) -> None:
        """Close every connection."""
        self._closed = True
        await self._driver.close()


class _LostCommitError(StoreUnavailableError):
    """A commit was sent and no answer came."""


async def _was_committed(connection: Connection) -> bool:
    """Tell whether the turns of a unit are there, once nobody writes to their conversations any more."""
    if not connection.unit.wrote_to:
        return False  # nothing that cannot be written again
    row = await connection.row(
        """
        UNWIND $written AS one
        MATCH (c:Conversation {workspace: one[0], uuid: one[1]})
        MATCH (p:Project {workspace: one[0], uuid: c.project_id})
        SET p.name = p.name
        WITH c
        MATCH (c)-[:HAS_TURN]->(t) WHERE t.write_id = $unit
        RETURN count(t)
        """,
        written=[list(one) for one in sorted(connection.unit.wrote_to)],
        unit=connection.unit.id,
    )
    return row is not None and row[0] > 0


def refuse_old(agent: str, where: str) -> None:
    """Refuse a server that does not know the queries we ask."""
    found = re.search(r"/(\d+)\.(\d+)", agent)
    if found is not None and (int(found[1]), int(found[2])) < SERVER_VERSION_MIN:
        wanted = ".".join(str(number) for number in SERVER_VERSION_MIN)
        msg = f"the server at {where} is {agent}, which is too old: Recollect needs Neo4j {wanted} or newer"
        raise StoreUnavailableError(msg)


def _busy(address: Address) -> RecollectError:
    return StoreBusyError(f"{address.url} kept changing under {ATTEMPTS_MAX} attempts: try again")


async def _pause(attempt: int) -> None:
    await asyncio.sleep(random.uniform(0.01, 0.1) * (attempt + 1))  # noqa: S311  jitter, not a secret


def _short(error: BaseException) -> str:
    text = str(getattr(error, "message", None) or error)
    return " ".join(text.split())[:200] or type(error).__name__
