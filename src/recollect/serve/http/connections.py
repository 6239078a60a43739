"""Connections of the HTTP door, before and after what the guard sees: a head that never comes, an answer that nobody reads, an end.

A connection that is to be closed while its request is still arriving is half-closed first, and what comes is thrown away
for a while: a close would reset it, and the answer would be lost on its way.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from recollect.serve.http.refusals import PROBLEM, problem

if TYPE_CHECKING:
    import asyncio

CONNECTIONS_MAX = 1_000
HEAD_SECONDS_MAX = 15.0
STALLED_SECONDS_MAX = 30.0  # an answer of which nobody reads anything for so long is given up
LINGER_SECONDS_MAX = 10.0
LINGER_BYTES_MAX = 256 * 1024 * 1024
_FILES_KEPT = 64  # for the store, the logs and what else a process opens


class Room:
    """How many connections there may be; when there are more, the one goes that has been waited for the longest for its head."""

    def __init__(self, connections_max: int = CONNECTIONS_MAX) -> None:
        self._connections_max = min(connections_max, _files_max() - _FILES_KEPT)
        self._connections: dict[Connection, None] = {}

    def enter(self, connection: Connection) -> None:
        """Take a connection in, and give one up that is only waited for, if there are too many; that may be the same one."""
        self._connections[connection] = None
        if len(self._connections) > self._connections_max:
            next((one for one in self._connections if one.is_awaited), connection).give_up()

    def leave(self, connection: Connection) -> None:
        """Let a connection go."""
        self._connections.pop(connection, None)


class Connection(H11Protocol):
    """One connection of uvicorn's, with an end to every waiting."""

    def __init__(self, *args: Any, room: Room, head_seconds_max: float = HEAD_SECONDS_MAX, **options: Any) -> None:
        super().__init__(*args, **options)
        self._room = room
        self._head_seconds_max = head_seconds_max
        self._wire: asyncio.Transport | None = None
        self._head_timer: asyncio.TimerHandle | None = None
        self._end_timer: asyncio.TimerHandle | None = None
        self._stalled_timer: asyncio.TimerHandle | None = None
        self._thrown_away_bytes: int | None = None  # a number once the connection is half-closed

    @property
    def _answering(self) -> RequestResponseCycle | None:
        return self.cycle  # there is none before the first request, whatever its type says

    @property
    def is_awaited(self) -> bool:
        """Whether nothing is under way: the head of a request, the first or the next, has yet to come."""
        return self._answering is None or self._answering.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]  as uvicorn has it
        """Begin to wait for a head."""
        self._wire = transport
        super().connection_made(_Ending(transport, self))  # pyright: ignore[reportArgumentType]  it is a transport in all that is asked of one
        self._head_timer = self.loop.call_later(self._head_seconds_max, self._head_is_late)
        self._room.enter(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop all waiting."""
        self._room.leave(self)
        for timer in (self._head_timer, self._end_timer, self._stalled_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, or throw away what comes after the end."""
        if self._thrown_away_bytes is not None:
            self._thrown_away_bytes += len(data)
            if self._thrown_away_bytes > LINGER_BYTES_MAX:
                self.give_up()
            return
        super().data_received(data)
        if not self.is_awaited:
            if self._head_timer is not None:
                self._head_timer.cancel()
                self._head_timer = None
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self._head_seconds_max, self._head_is_late)

    def _head_is_late(self) -> None:
        self._head_timer = None
        if self.is_awaited and self.timeout_keep_alive_task is None:
            self._refuse(HTTPStatus.REQUEST_TIMEOUT, "The head of the request took too long to arrive.")

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._refuse(HTTPStatus.BAD_REQUEST, msg)

    def _refuse(self, status: HTTPStatus, detail: str) -> None:
        """Answer with a problem document what never became a request."""
        body = problem(status.value, status.phrase, detail)
        headers = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode()), (b"connection", b"close")]
        events = (h11.Response(status_code=status.value, headers=headers, reason=status.phrase.encode()), h11.Data(data=body))
        for event in (*events, h11.EndOfMessage()):
            self.transport.write(self.conn.send(event) or b"")
        self.end(is_unread=True)

    def pause_writing(self) -> None:
        """Begin to watch whether anything is read."""
        super().pause_writing()
        self._watch(None)

    def resume_writing(self) -> None:
        """Stop watching."""
        super().resume_writing()
        if self._stalled_timer is not None:
            self._stalled_timer.cancel()
            self._stalled_timer = None

    def _watch(self, bytes_before: int | None) -> None:
        """Give the connection up when as much waits to be read as before."""
        bytes_now = 0 if self._wire is None else self._wire.get_write_buffer_size()
        if bytes_before is not None and bytes_now >= bytes_before:
            self.give_up()
        else:
            self._stalled_timer = self.loop.call_later(STALLED_SECONDS_MAX, self._watch, bytes_now)

    def end(self, *, is_unread: bool = False) -> None:
        """Close the connection when the answer is read, and not before the other side has said all it is about to say, within limits."""
        wire = self._wire
        if wire is None or self._end_timer is not None or wire.is_closing():
            return
        lingers = is_unread or (self._answering is not None and self._answering.more_body)
        self._end_timer = self.loop.call_later(LINGER_SECONDS_MAX if lingers else STALLED_SECONDS_MAX, wire.abort)
        if not lingers:
            wire.close()
            return
        self._thrown_away_bytes = 0
        wire.write_eof()
        self.flow.resume_reading()

    @property
    def is_ending(self) -> bool:
        """Whether it is closed, or half-closed."""
        return self._end_timer is not None

    def give_up(self) -> None:
        """Close the connection at once."""
        if self._wire is not None:
            self._wire.abort()


class _Ending:
    """A transport whose end is its connection's to decide."""

    def __init__(self, wire: asyncio.Transport, connection: Connection) -> None:
        self._wire = wire
        self._connection = connection

    def close(self) -> None:
        """End the connection."""
        self._connection.end()

    def is_closing(self) -> bool:
        """Tell whether it ends."""
        return self._connection.is_ending or self._wire.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)


def _files_max() -> int:
    """Return how many files the process may have open."""
    try:
        import resource  # noqa: PLC0415  there is none on Windows
    except ImportError:
        return CONNECTIONS_MAX + _FILES_KEPT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(soft, 2 * _FILES_KEPT) if soft != resource.RLIM_INFINITY else CONNECTIONS_MAX + _FILES_KEPT
