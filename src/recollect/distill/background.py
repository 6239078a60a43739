"""A worker in a thread of its own, with a store of its own, so that nobody who records or asks ever waits for it.

What it has not done when the process ends waits in the store for the next one.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

from recollect.store import open_store

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.clock import Clock, Ids
    from recollect.config import Settings
    from recollect.distill.metrics import Metrics
    from recollect.distill.models import Writers
    from recollect.store import Store

_FIRST_LOOK_SECONDS = 1.0  # a program that is over sooner never pays for a worker
_LOOK_SECONDS = 30.0  # jobs of other processes, and those that wait for another attempt


class Background:
    """Does the jobs of a workspace while the process lives."""

    def __init__(self, settings: Settings, clock: Clock, ids: Ids, metrics: Metrics, writers: Callable[[Store], Writers]) -> None:
        self._settings = settings
        self._clock = clock
        self._ids = ids
        self._metrics = metrics
        self._writers = writers
        self._asked = threading.Event()
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to look for jobs, a little later."""
        self._thread = threading.Thread(target=self._run, name="recollect-distill", daemon=True)
        self._thread.start()

    def adopt(self, settings: Settings) -> None:
        """Work by other settings from the next look on."""
        self._settings = settings

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
        from recollect.distill.worker import Worker  # noqa: PLC0415  NumPy is loaded when there is something to do

        store = await open_store(self._settings.store, self._settings, clock=self._clock, threads=False)
        try:
            worker = Worker(
                store, self._settings, self._clock, self._ids,
                metrics=self._metrics, writers=self._writers(store), is_stopped=self._stopped.is_set,
            )  # fmt: skip
            if is_first:
                await worker.wake_stale()
            await worker.sweep()
            while not self._stopped.is_set() and await worker.step():
                pass
        finally:
            await store.close()
