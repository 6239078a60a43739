"""The pieces that wait for delivery, in memory and in order, and the daemon thread that delivers them."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

FAILED_MAX = 1_000
QUEUE_BYTES_MAX = 64 * 1024 * 1024


class Undelivered(NamedTuple):
    """The ids of a piece that never arrived, and why: an HTTP status, or the name of an error."""

    request_id: str
    piece: str
    reason: int | str


class Piece(NamedTuple):
    """One body for one route, and the ids by which it is known when it fails."""

    request_id: str
    name: str
    path: str
    body: bytes


class Lane:
    """A bounded queue with one thread, started by the first piece; the piece that is being delivered stands first in it."""

    def __init__(self, deliver: Callable[[Piece], object], queue_max: int) -> None:
        self._deliver = deliver
        self._queue_max = queue_max
        self._waiting: deque[Piece] = deque()
        self._waiting_bytes = 0
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._failed: deque[Undelivered] = deque(maxlen=FAILED_MAX)
        self.dropped = 0
        self.is_closed = False
        self.is_abandoned = False

    def put(self, piece: Piece) -> bool:
        """Queue a piece without waiting; False, and counted, when it was not taken."""
        with self._changed:
            size = self._waiting_bytes + len(piece.body)
            is_full = len(self._waiting) >= self._queue_max or (self._waiting and size > QUEUE_BYTES_MAX)
            if self.is_closed or is_full or not self._is_running():
                self.dropped += 1
                return False
            self._waiting.append(piece)
            self._waiting_bytes = size
            self._changed.notify_all()
            return True

    def _is_running(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="recollect-client", daemon=True)
            with suppress(RuntimeError):  # no thread can be had: the system's limit, or the interpreter is ending
                thread.start()
                self._thread = thread
        return self._thread is not None

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self.is_closed)
                if not self._waiting:
                    return
                piece = self._waiting[0]
            self._deliver(piece)
            with self._changed:
                self._take(self._waiting.popleft())
                self._changed.notify_all()

    def _take(self, piece: Piece) -> Piece:
        self._waiting_bytes -= len(piece.body)
        return piece

    def flush(self, timeout_seconds: float) -> bool:
        """Wait until nothing waits; False when that took too long."""
        if self._thread is threading.current_thread():  # a listener to errors would wait for itself
            return False
        with self._changed:
            return self._changed.wait_for(lambda: not self._waiting, timeout_seconds)

    def close(self, timeout_seconds: float) -> list[Piece]:
        """Take nothing more, deliver what waits, and return what there was no time for."""
        with self._changed:
            self.is_closed = True
            self._changed.notify_all()
        is_done = self.flush(timeout_seconds)
        with self._changed:
            self.is_abandoned = True
            left = [self._take(self._waiting.pop()) for _ in range(len(self._waiting) - 1)]  # the first is under way
        if is_done and self._thread is not None:
            self._thread.join()
        return left[::-1]

    def note(self, failure: Undelivered) -> None:
        """Keep the ids of what failed; the oldest give way."""
        with self._changed:
            self._failed.append(failure)

    @property
    def failed(self) -> list[Undelivered]:
        """What failed, oldest first."""
        with self._changed:
            return list(self._failed)
