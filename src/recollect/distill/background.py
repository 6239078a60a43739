"""A worker in a thread of its own, with a store of its own, so that nobody who records or asks ever waits for it.

What it has not done when the process ends waits in the store for the next one.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from recollect.distill.metrics import Metrics
    from recollect.distill.worker import Worker

_FIRST_LOOK_SECONDS = 1.0  # a program that is over sooner never pays for a worker
_LOOK_SECONDS = 30.0  # jobs of other processes, and those that wait for another attempt


class Workplace(Protocol):
    """A memory on a store of its own."""

    def worker(self, is_stopped: Callable[[], bool]) -> Worker:
        """Return a worker on its store."""
        ...

    async def sweep(self, *, thoroughly: bool) -> object:
        """Remove what has expired."""
        ...

    async def close(self) -> None:
        """Let go of the store."""
        ...


class Background:
    """Does the jobs of a workspace while the process lives."""

    def __init__(self, opened: Callable[[], Awaitable[Workplace]], metrics: Metrics) -> None:
        self._opened = opened
        self._metrics = metrics
        self._asked = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look for jobs, a little later."""
        self._thread = threading.Thread(target=self._run, name="recollect-distill", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Say that there is something to do; returns at once."""
        self._asked.set()

    def close(self) -> None:
        """Finish the step that was begun, and stop; what is left stays in the store."""
        self._stopped.set()
        self._asked.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        wait = _FIRST_LOOK_SECONDS
        while not self._stopped.is_set():
            self._asked.wait(wait)
            self._asked.clear()
            if self._stopped.is_set():
                return
            try:
                asyncio.run(self._drained(is_first=wait == _FIRST_LOOK_SECONDS))
            except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001  the jobs stay in the store, and are looked at again
                self._metrics.worker_failed(f"{type(error).__name__}: {error}")
            wait = _LOOK_SECONDS

    async def _drained(self, *, is_first: bool) -> None:
        """Do what is due, in a store that is open only as long as there is something."""
        own = await self._opened()
        try:
            worker = own.worker(self._stopped.is_set)
            if is_first:
                await worker.wake_stale()
            await own.sweep(thoroughly=False)
            while not self._stopped.is_set() and await worker.step():
                pass
        finally:
            await own.close()
