"""Pieces of requests → the server, at once or through the lane; what fails is noted, and raised only when that was asked for."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import quote
from weakref import WeakSet

from .lane import Lane, Piece, Undelivered
from .plain import encoded, plain
from .server import ClientError, backoff_seconds

if TYPE_CHECKING:
    from collections.abc import Callable

    from .plain import Json
    from .server import Server

WHOLE = "conversation"


class Delivery:
    """What delivers the pieces of all requests of a client."""

    def __init__(
        self,
        server: Server,
        *,
        raises: bool,
        background: bool,
        queue_max: int,
        on_error: Callable[[ClientError], object] | None,
        sleep: Callable[[float], object],
        random: Callable[[], float],
    ) -> None:
        self._server = server
        self._raises = raises
        self._background = background and not raises
        self._queue_max = max(queue_max, 1)
        self._on_error = on_error
        self._sleep = sleep
        self._random = random
        self.begin()
        _deliveries.add(self)

    def begin(self) -> None:
        """Start with nothing queued and no thread: at first, and in a forked child, whose parent delivers what it had queued."""
        self.lane = Lane(self._deliver, self._queue_max)

    def send(self, request_id: str, name: str, body: Json, *, is_quiet: bool = False) -> None:
        """Deliver or queue a piece; raises ClientError when the client raises, unless `is_quiet`: an error of the caller's is passing."""
        path = "/ingest/conversation" if name == WHOLE else f"/requests/{quote(request_id, safe='')}/{name}"
        piece = Piece(request_id, name, path, encoded(body))
        if not self._background and not self.lane.is_closed:
            self._raise(self._deliver(piece), is_quiet=is_quiet)
        elif not self.lane.put(piece):
            title = "Closed" if self.lane.is_closed else "Full"
            self.lose(request_id, name, ClientError(None, title, "the piece was dropped, not queued"), is_quiet=is_quiet)

    def lose(self, request_id: str, name: str, error: ClientError, *, is_quiet: bool = False) -> None:
        """Note that a piece was not delivered; raises the error when the client raises, unless `is_quiet`."""
        self._raise(self._noted(request_id, name, error), is_quiet=is_quiet)

    def ask(self, method: str, path: str, body: Json | None = None) -> Json:
        """Return an answer to read; raises ClientError."""
        return self._server.ask(method, path, None if body is None else encoded(plain(body)), self._wait)

    def close(self, timeout_seconds: float) -> None:
        """Deliver what is queued, and note what there was no time for."""
        for piece in self.lane.close(timeout_seconds):
            self._noted(piece.request_id, piece.name, ClientError(None, "Closed", "the client was closed before this was delivered"))

    def _raise(self, error: ClientError | None, *, is_quiet: bool) -> None:
        if error is not None and self._raises and not is_quiet:
            raise error

    def _deliver(self, piece: Piece) -> ClientError | None:
        try:
            self._server.ask("POST", piece.path, piece.body, self._wait)
        except ClientError as error:
            return self._noted(piece.request_id, piece.name, error)
        except Exception as error:  # noqa: BLE001  whatever it is, the caller's work and the lane go on
            return self._noted(piece.request_id, piece.name, ClientError(None, type(error).__name__, str(error)))
        return None

    def _wait(self, attempt: int, asked_seconds: float | None) -> bool:
        if not self.lane.is_abandoned:
            self._sleep(backoff_seconds(attempt, asked_seconds, self._random()))
        return not self.lane.is_abandoned

    def _noted(self, request_id: str, name: str, error: ClientError) -> ClientError:
        self.lane.note(Undelivered(request_id, name, error.status or error.title))
        if self._on_error is not None:
            with suppress(Exception):  # what listens to errors makes none
                self._on_error(error)
        return error


_deliveries: WeakSet[Delivery] = WeakSet()


def _begin_again() -> None:
    for delivery in _deliveries:
        delivery.begin()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_again)
