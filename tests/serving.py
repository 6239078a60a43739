"""A real `recollect serve` in a process of its own: started, asked, stopped, killed and started again by tests."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import httpx

from recollect.serve.http.tokens import Role, TokenFile

WAIT_SECONDS_MAX = 120
PLENTY: dict[str, Any] = {"per_second": 1_000_000.0, "burst": 1_000_000}


class Serving:
    """A server on loopback with a folder of its own for its store, tokens, configuration and what it prints."""

    def __init__(self, folder: Path, *, store: str | None = None, worker: bool = False, **settings: Any) -> None:
        self.folder = folder
        self.store = store or f"sqlite://{folder / 'memory.db'}"
        self.audit = folder / "audit.jsonl"
        self.tokens = TokenFile(folder / "tokens.json")
        self.environment: dict[str, str] = {}
        self.address = ""
        self._worker = worker
        self._process: subprocess.Popen[bytes] | None = None
        self._starts = 0
        folder.mkdir(parents=True, exist_ok=True)
        server = {**PLENTY, "tokens": str(self.tokens.path), "audit_log": str(self.audit), **settings.pop("server", {})}
        (folder / "config.yaml").write_text(json.dumps({"store": self.store, "server": server, **settings}))

    def start(self) -> Self:
        """Start it, and wait until it says where it is."""
        self._starts += 1
        known = {name: value for name, value in os.environ.items() if not name.startswith(("RECOLLECT_", "OTEL_", "XDG_"))}
        own = {"RECOLLECT_CONFIG": str(self.folder / "config.yaml"), "HOME": str(self.folder / "home")}
        options = ["--port", "0", *([] if self._worker else ["--no-worker"])]
        with self._told("out").open("wb") as out, self._told("err").open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "recollect", "serve", *options], stdout=out, stderr=err, env={**known, **own, **self.environment}
            )
        eventually(lambda: "\n" in self.printed or not self.is_running)
        assert self.is_running, self.logged
        self.address = self.printed.split()[3].partition("/?")[0]
        return self

    def _told(self, kind: str) -> Path:
        return self.folder / f"{kind}-{self._starts}.txt"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def printed(self) -> str:
        """What the present process wrote to standard output."""
        return self._told("out").read_text()

    @property
    def logged(self) -> str:
        """What the present process wrote to standard error."""
        return self._told("err").read_text()

    def ask_to_stop(self) -> None:
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)

    def stop(self) -> int:
        """End it as a supervisor would; returns how it ended."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        return self._process.wait(WAIT_SECONDS_MAX)

    def kill(self) -> None:
        """End it with -9."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(WAIT_SECONDS_MAX)

    def token(self, workspace: str = "default", role: Role = "write") -> str:
        return self.tokens.create(workspace, role, None, datetime.now(UTC))[1]

    def client(self, token: str | None, **options: Any) -> httpx.Client:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        return httpx.Client(base_url=self.address, headers=headers, timeout=WAIT_SECONDS_MAX, trust_env=False, **options)


@contextlib.contextmanager
def served(folder: Path, **settings: Any) -> Generator[Serving]:
    """Have a server as long as a test needs one; its own end is asked for only when the test has not ended it."""
    serving = Serving(folder, **settings)
    serving.tokens.create("unused", "read", None, datetime.now(UTC))  # so that no first key is printed
    try:
        yield serving.start()
    finally:
        if serving.is_running:
            serving.kill()


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds, which it will."""
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.005)


def as_lines(payloads: list[bytes]) -> dict[str, Any]:
    """Return the arguments of a request that sends payloads as JSON lines."""
    return {"content": b"\n".join(payloads), "headers": {"Content-Type": "application/x-ndjson"}}
