"""`recollect serve`: the application behind its guard, on uvicorn, until it is told to stop; nothing acknowledged is lost then."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import uvicorn

from recollect.clock import RandomIds, SystemClock
from recollect.errors import ConfigError, RecollectError, StoreUnavailableError
from recollect.serve.http.addresses import PORT_MAX, is_loopback, names_of
from recollect.serve.http.app import create_app
from recollect.serve.http.connections import Connection, Room
from recollect.serve.http.guard import Guard
from recollect.serve.http.log import AuditLog, EventLog, Logs, RequestLog, default_audit_path
from recollect.serve.http.tokens import FirstKey, token_file
from recollect.serve.http.traffic import Limits
from recollect.serve.http.workspaces import Workspaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.clock import Clock, Ids
    from recollect.serve.http.figures import Figures
    from recollect.serve.http.log import Entry
    from recollect.settings import Settings

_SHUTDOWN_SECONDS = 20
_SWEEP_SECONDS = 60.0


class HttpServer:
    """One server of one store, for all the workspaces that its tokens name."""

    def __init__(self, settings: Settings, *, clock: Clock | None = None, ids: Ids | None = None, logs: Logs | None = None) -> None:
        self.settings = settings
        self.clock = clock or SystemClock()
        self.ids = ids or RandomIds()
        server = settings.server
        if not 0 <= server.port <= PORT_MAX:
            msg = f"a port is a number from 0, which takes a free one, to {PORT_MAX}, not {server.port}"
            raise ConfigError(msg)
        self.tokens = token_file(server.tokens)
        audit = Path(server.audit_log).expanduser() if server.audit_log else default_audit_path()
        self._logs = logs or Logs(request=RequestLog(sys.stderr).write, audit=AuditLog(audit).write)
        self.first_key = (
            None
            if any(token.holds(self.clock.now()) for token in self.tokens.list())
            else FirstKey.create(self.clock.now(), settings.workspace)
        )
        if not is_loopback(server.host) and self.first_key is not None:
            msg = f"{server.host} is reached from elsewhere: create a token first with `recollect token create`"
            raise ConfigError(msg)

    def listening(self) -> socket.socket:
        """Take the port; `StoreUnavailableError` when somebody else has it."""
        host, port = self.settings.server.host, self.settings.server.port
        try:
            family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
            # the protocol is named, or asyncio would not know it for TCP, leave Nagle's delay on, and every answer would take 40 ms
            taken = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
            try:
                taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                taken.bind((host, port))
            except OSError:
                taken.close()
                raise
        except UnicodeError as error:  # what a name that no resolver would be asked for raises
            msg = f"{host[:60]!r} is no address to listen on: name one such as 127.0.0.1"
            raise ConfigError(msg) from error
        except OSError as error:
            msg = f"cannot listen on {host}:{port}: {error.strerror or error}"
            raise StoreUnavailableError(msg) from error
        return taken

    async def run(self, taken: socket.socket, *, worker: bool, started: Callable[[], object] = lambda: None) -> None:
        """Serve until told to stop; requests under way are finished first."""
        workspaces = await Workspaces.open(self.settings, self.clock, self.ids, worker=worker)
        server = self.settings.server
        app = create_app(workspaces, self.tokens, self.clock)
        figures: Figures = app.state.figures

        def ended(entry: Entry) -> None:
            figures.count(entry)
            self._logs.request(entry)

        guard = Guard(
            app,
            self.tokens,
            limits=Limits(
                body_bytes_max=server.body_bytes_max,
                requests_at_once_max=server.requests_at_once_max,
                per_second=server.per_second,
                burst=server.burst,
                hosts=names_of(server.host, server.hosts),
            ),
            first_key=self.first_key,
            logs=self._logs._replace(request=ended),
            clock=self.clock,
            ids=self.ids,
        )
        config = uvicorn.Config(
            guard, http=cast("Any", partial(Connection, room=Room())), log_config=None, access_log=False, server_header=False,
            date_header=False, proxy_headers=False, timeout_graceful_shutdown=_SHUTDOWN_SECONDS, timeout_keep_alive=_SHUTDOWN_SECONDS,
            lifespan="on", ws="none",
        )  # fmt: skip
        sweeping = asyncio.create_task(self._sweep(workspaces))
        try:
            with EventLog(sys.stderr, self.clock).installed():
                await _Running(config, started, guard.stop).serve(sockets=[taken])
        finally:
            sweeping.cancel()

    async def _sweep(self, workspaces: Workspaces) -> None:
        """Close requests that were never finalized, and remove what has expired, now and then."""
        while True:
            await asyncio.sleep(min(_SWEEP_SECONDS, self.settings.server.open_seconds_max))
            with contextlib.suppress(RecollectError):  # a store that cannot be used now is looked at again
                await workspaces.sweep()


class _Running(uvicorn.Server):
    """Uvicorn, which says when it has begun, and when it is about to stop."""

    def __init__(self, config: uvicorn.Config, started: Callable[[], object], stopping: Callable[[], object]) -> None:
        super().__init__(config)
        self._told = started
        self._stopping = stopping

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            self._told()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._stopping()
        await super().shutdown(sockets)
