"""Coroutines run to their end for doors that are not async themselves.

A store that is opened with `threads=False` and waits for no server never waits for anything but its own work, so its
coroutines finish in one step. That saves a command line or a script the import of asyncio, which is most of its start.
What does wait for a server runs on an event loop in a thread of its own, so that it works from any caller, one inside
another event loop included.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast
from weakref import WeakSet

from recollect.errors import StoreUnavailableError

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Coroutine
    from concurrent.futures import Future

_T = TypeVar("_T")


class Runner(Protocol):
    """Runs coroutines to their end, as long as it is open."""

    process: int  # the one it was made in

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        """Run a coroutine and return its result."""
        ...

    def close(self) -> None:
        """Run no more."""
        ...


def runner(*, waits: bool) -> Runner:
    """Return a runner for coroutines that wait for something outside, or for those that never do."""
    return _LoopInAThread() if waits else _AtOnce()


def refuse_fork(process: int) -> None:
    """Refuse to work in a process that was forked from the one that opened a memory: the threads that serve it stayed there."""
    if os.getpid() != process:
        msg = "this memory was opened by the process that this one was forked from: open it again here"
        raise StoreUnavailableError(msg)


def run_now(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine that never waits, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: _T = stop.value
        return result
    coroutine.close()
    msg = "this coroutine waits for something outside: it needs an event loop"
    raise RuntimeError(msg)


class _AtOnce:
    """Runs what never waits."""

    def __init__(self) -> None:
        self.process = os.getpid()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        return run_now(coroutine)

    def close(self) -> None:
        pass


def _tell(ended: Future[_T], task: asyncio.Task[_T]) -> None:
    if task.cancelled():
        ended.cancel()
    elif (error := task.exception()) is not None:
        ended.set_exception(error)
    else:
        ended.set_result(task.result())


class _LoopInAThread:
    """Runs on an event loop of its own."""

    def __init__(self) -> None:
        import asyncio  # noqa: PLC0415  doors without an event loop never pay for one
        import selectors  # noqa: PLC0415  as above
        import threading  # noqa: PLC0415  as above

        self.process = os.getpid()
        self._selector = selectors.DefaultSelector()
        self._loop = asyncio.SelectorEventLoop(self._selector)
        _LOOPS.add(self)
        self._thread = threading.Thread(target=self._loop.run_forever, name="recollect-loop", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, _T]) -> _T:
        from concurrent.futures import Future, wait  # noqa: PLC0415  as above

        try:
            refuse_fork(self.process)
            self._refuse_closed()
        except StoreUnavailableError:
            coroutine.close()
            raise
        ended: Future[_T] = Future()
        begun: list[asyncio.Task[_T]] = []

        def begin() -> None:
            begun.append(self._loop.create_task(coroutine))
            begun[0].add_done_callback(lambda task: _tell(ended, task))

        self._loop.call_soon_threadsafe(begin)
        try:
            return ended.result()
        except BaseException:
            if not ended.done():  # the caller was interrupted: what it asked for is given up, and puts away what it holds
                self._loop.call_soon_threadsafe(lambda: [one.cancel() for one in begun])
                wait([ended])
            raise

    def _refuse_closed(self) -> None:
        if self._loop.is_closed():
            msg = "the memory is closed: open it again"
            raise StoreUnavailableError(msg)

    def leave(self) -> None:
        """Let go, in a forked process, of what the kernel shares with the other: what is watched for the other's loop."""
        import select  # noqa: PLC0415  as above
        import selectors  # noqa: PLC0415  as above

        if hasattr(select, "epoll") and not self._loop.is_closed():  # elsewhere nothing is shared
            with selectors.EpollSelector() as own:
                os.dup2(own.fileno(), cast("selectors.EpollSelector", self._selector).fileno())

    def close(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


_LOOPS: WeakSet[_LoopInAThread] = WeakSet()


def _leave_loops() -> None:
    for loop in tuple(_LOOPS):
        loop.leave()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_loops)
