"""Lanes to an SQLite file: a connection each, used by one thread at a time and in the order of asking; knows no SQL.

Units of work that wait for a lane at the same time may be handed on together, so that they can share what each would pay alone.
"""

from __future__ import annotations

import contextlib
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import apsw

from recollect.errors import StoreUnavailableError
from recollect.limits import UNITS_TOGETHER_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from recollect.store.sqlite.database import Connection

_T = TypeVar("_T")


class Outcome(NamedTuple):
    """What became of a unit of work: its result, or its error."""

    result: Any = None
    error: BaseException | None = None


class _Asked(NamedTuple):
    """A unit of work that waits; `joins` lets it be handed on with others."""

    work: Callable[[Connection], Any]
    joins: bool
    answer: Callable[[Outcome], object]


def attempted(work: Callable[[], Any]) -> Outcome:
    """Run something and return how it ended; an error is raised again where the work was asked for."""
    try:
        return Outcome(result=work())
    except BaseException as error:  # noqa: BLE001  nothing is swallowed: who asked gets it
        return Outcome(error=error)


class Lane:
    """One connection; `together` runs several units of work that join and returns what became of each, in their order."""

    def __init__(
        self,
        connect: Callable[[], Connection],
        name: str,
        together: Callable[[Connection, Sequence[Callable[[Connection], Any]]], list[Outcome]] | None = None,
    ) -> None:
        self._connect = connect
        self._name = name
        self._together = together
        self._connection: Connection | None = None
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._closing = self._closed = False

    def run(self, work: Callable[[Connection], _T]) -> _T:
        """Run in this thread."""
        with self._lock:
            if self._closed:
                raise _closed()
            if self._connection is None:
                self._connection = self._connect()
            return work(self._connection)

    async def run_async(self, work: Callable[[Connection], _T], *, joins: bool = False) -> _T:
        """Run in the lane's own thread while the event loop goes on; a cancelled caller does not cancel the work."""
        import asyncio  # noqa: PLC0415  doors without an event loop never pay for one

        if self._closing:
            raise _closed()
        if self._thread is None:
            self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()

        def done(outcome: Outcome) -> None:
            if not future.cancelled():
                if outcome.error is None:
                    future.set_result(cast("_T", outcome.result))
                else:
                    future.set_exception(outcome.error)

        self._asked.put(_Asked(work, joins, partial(loop.call_soon_threadsafe, done)))
        return await future

    def _serve(self) -> None:
        """Do what is asked, in order, until asked for nothing."""
        for asked in self._waiting():
            for one, outcome in zip(asked, self._outcomes(asked), strict=True):
                with contextlib.suppress(RuntimeError):  # the loop that asked is gone; the work is done all the same
                    one.answer(outcome)

    def _waiting(self) -> Generator[list[_Asked]]:
        """Yield what was asked for, in order: those that join and wait at the same time together, the others one by one."""
        following = self._asked.get()
        while following is not None:
            asked, following = [following], None
            while asked[-1].joins and len(asked) < UNITS_TOGETHER_MAX and not self._asked.empty():
                following = self._asked.get()
                if following is None:
                    yield asked
                    return
                if not following.joins:
                    break
                asked.append(following)
                following = None
            yield asked
            del asked  # nor is what was asked for kept alive until the next asks
            following = following or self._asked.get()

    def _outcomes(self, asked: list[_Asked]) -> list[Outcome]:
        together = self._together
        if len(asked) == 1 or together is None:
            return [attempted(lambda: self.run(asked[0].work))]
        ended = attempted(lambda: self.run(lambda connection: together(connection, [one.work for one in asked])))
        return ended.result if ended.error is None else [ended] * len(asked)

    def close(self) -> None:
        """Finish what was begun, then close."""
        self._closing = True
        if self._thread is not None:
            self._asked.put(None)
            self._thread.join()
        with self._lock:
            self._closed = True
            if self._connection is not None:
                with contextlib.suppress(apsw.BusyError):
                    self._connection.raw.close()
                self._connection = None


def _closed() -> StoreUnavailableError:
    return StoreUnavailableError("the memory is closed: open it again")
