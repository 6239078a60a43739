"""Lanes to an SQLite file: a connection each, used by one thread at a time and in the order of asking; knows no SQL.

Units of work that wait for a lane at the same time may be handed on together, so that they can share what each would pay alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import apsw

from recollect.errors import StoreUnavailableError
from recollect.limits import UNITS_TOGETHER_MAX
from recollect.running import refuse_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from recollect.store.sqlite.database import Connection

_T = TypeVar("_T")
_INHERITED: list[object] = []  # connections of the process that this one was forked from, kept, so that nobody closes them here


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
        self._process = os.getpid()
        self._in_use = threading.RLock()  # a signal may close the lane in the middle of its work
        self._asking = threading.Lock()
        self._thread: threading.Thread | None = None
        self._asked: SimpleQueue[_Asked | None] = SimpleQueue()
        self._closing = self._closed = False

    def run(self, work: Callable[[Connection], _T]) -> _T:
        """Run in this thread."""
        refuse_fork(self._process)
        with self._in_use:
            if self._closed:
                raise _closed()
            if self._connection is None:
                self._connection = self._connect()
            return work(self._connection)

    async def run_async(self, work: Callable[[Connection], _T], *, joins: bool = False) -> _T:
        """Run in the lane's own thread while the event loop goes on; a cancelled caller does not cancel the work."""
        import asyncio  # noqa: PLC0415  doors without an event loop never pay for one

        refuse_fork(self._process)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[_T] = loop.create_future()

        def done(outcome: Outcome) -> None:
            if not future.cancelled():
                if outcome.error is None:
                    future.set_result(cast("_T", outcome.result))
                else:
                    future.set_exception(outcome.error)

        self._ask(_Asked(work, joins and self._together is not None, partial(loop.call_soon_threadsafe, done)))
        return await future

    def _ask(self, asked: _Asked) -> None:
        """Let the lane's thread do something, and let there be one."""
        with self._asking:
            if self._closing:
                raise _closed()
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
                thread.start()
                self._thread = thread
            self._asked.put(asked)

    def _serve(self) -> None:
        """Do what is asked, in order, until asked for nothing."""
        for asked in self._waiting():
            self._answer(asked)
            asked.clear()  # nor is what was asked for kept alive until the next asks

    def _answer(self, asked: Sequence[_Asked]) -> None:
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
            following = following or self._asked.get()

    def _outcomes(self, asked: Sequence[_Asked]) -> list[Outcome]:
        together = self._together
        if together is None or not asked[0].joins:
            return [attempted(lambda: self.run(asked[0].work))]
        ended = attempted(lambda: self.run(lambda connection: together(connection, [one.work for one in asked])))
        return ended.result if ended.error is None else [ended] * len(asked)

    def close(self) -> None:
        """Finish what was begun, then close; in a forked process nothing is touched, since all of it belongs to the other."""
        if os.getpid() != self._process:
            _INHERITED.append(self._connection)
            return
        with self._asking:
            is_first, self._closing = not self._closing, True
            if self._thread is not None and is_first:
                self._asked.put(None)
        if self._thread is not None:
            self._thread.join()
        with self._in_use:
            self._closed = True
            if self._connection is not None:
                with contextlib.suppress(apsw.BusyError):
                    self._connection.raw.close()
                self._connection = None


def _closed() -> StoreUnavailableError:
    return StoreUnavailableError("the memory is closed: open it again")
