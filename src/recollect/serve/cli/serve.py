"""The command that serves the memory over HTTP, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from typing import TYPE_CHECKING

import msgspec

from recollect.errors import StoreUnavailableError
from recollect.opening import settings_of
from recollect.serve.cli.output import complain, print_json
from recollect.serve.cli.session import wants_json
from recollect.settings import Server, Settings

if TYPE_CHECKING:
    from argparse import Namespace
    from pathlib import Path


def serve(options: Namespace) -> int:
    """Serve until interrupted; the first start prints an address with a key that can be used once."""
    settings = settings_of(getattr(options, "store", None), getattr(options, "workspace", None), None)
    given = {name: value for name, value in (("host", options.host), ("port", options.port)) if value is not None}
    settings = msgspec.structs.replace(settings, server=msgspec.structs.replace(settings.server, **given))
    return _serve(settings, worker=options.worker and settings.distill.worker, as_json=wants_json(options))


def serve_demo(store: str, workspace: str, folder: Path) -> int:
    """Serve the memory of the tour on a free port, with tokens and logs of its own."""
    server = Server(port=0, tokens=str(folder / "tokens.json"), audit_log=str(folder / "audit.jsonl"))
    return _serve(Settings(store=store, workspace=workspace, server=server), worker=True, as_json=False)


def _serve(settings: Settings, *, worker: bool, as_json: bool) -> int:
    try:
        from recollect.serve.http.addresses import host_of, is_loopback, names_of  # noqa: PLC0415  only those who serve need it
        from recollect.serve.http.server import HttpServer  # noqa: PLC0415  as above
    except ModuleNotFoundError as error:
        msg = f"serving needs {error.name}, which is not installed: pip install 'recollect[server]'"
        raise StoreUnavailableError(msg) from error

    server = HttpServer(settings)
    taken = server.listening()
    host, port = settings.server.host, taken.getsockname()[1]
    address = f"http://{host_of(host)}:{port}"
    if not is_loopback(host):
        complain(f"{host} is reached from elsewhere, and HTTP is not encrypted: put TLS in front of it")
        names = sorted(names_of(host, settings.server.hosts))
        complain(f"it answers to {', '.join(['localhost', '127.0.0.1', '[::1]', *names])} as Host: name others under server.hosts")

    def say() -> None:
        key = None if server.first_key is None else f"{address}/?key={server.first_key.key}"
        try:
            if as_json:
                print_json({"serving": settings.workspace, "address": address, "key_address": key})
            else:
                print(f"serving {settings.workspace!r} at {key or address}")
            sys.stdout.flush()
        except OSError as error:  # who cannot be told is served all the same
            complain(f"cannot say that it serves at {address}: {error.strerror or error}")
            return
        if key is not None:
            print("open that address once to get a token; it holds for 15 minutes", file=sys.stderr, flush=True)

    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which uvicorn raises again when all requests are finished
    with contextlib.suppress(KeyboardInterrupt), taken:
        asyncio.run(server.run(taken, worker=worker, started=say))
    return 0
