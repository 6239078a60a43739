"""What the HTTP door writes down: a line for each request, and a lasting audit of who read what; the guard calls both.

A line holds who, when, where and how it ended; never a content, a query string, a header or a body, nor a secret that stands
in an address.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import threading
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from recollect.capture.clean import Cleaner
from recollect.capture.secrets import default_redactor
from recollect.clock import iso
from recollect.config import config_path

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path
    from typing import TextIO

    from recollect.clock import Clock

AUDIT_BYTES_MAX = 10_000_000
AUDIT_FILES_MAX = 5
_PATH_CHARS_MAX = 500
_OTHERS = 0o077


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it may be written down; `path` is without its query, `route` the path's template if it is known."""

    time: datetime
    request_id: str
    method: str
    path: str
    route: str | None
    status: int | None
    duration_ms: float
    token_id: str | None
    workspace: str | None
    bytes_in: int
    bytes_out: int
    error: str | None = None


def _ignored(_: Entry) -> None:
    return


class Logs(NamedTuple):
    """Where the guard writes: `request` when a request has ended, `audit` before the first byte of an answer leaves."""

    request: Callable[[Entry], None] = _ignored
    audit: Callable[[Entry], None] = _ignored


def default_audit_path() -> Path:
    """Return where the audit of the user's server is: beside their configuration."""
    return config_path().with_name("audit.log")


class RequestLog:
    """A JSON line for each request, on standard error or another stream."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream

    def write(self, entry: Entry) -> None:
        """Write a line; a stream that nobody reads any more is no reason to fail a request that was answered."""
        line: dict[str, Any] = {
            "time": iso(entry.time),
            "request_id": entry.request_id,
            "method": entry.method,
            "path": entry.route or _shown(entry.path),
            "status": entry.status,
            "duration_ms": round(entry.duration_ms, 3),
            "token": entry.token_id,
            "workspace": entry.workspace,
            "bytes_in": entry.bytes_in,
            "bytes_out": entry.bytes_out,
        }
        if entry.error is not None:
            line["error"] = entry.error
        _tell(self._stream or sys.stderr, line)


class EventLog(logging.Handler):
    """A JSON line for each event of the server itself that has to be known: what it is about is in its words, and no stack of calls."""

    def __init__(self, stream: TextIO, clock: Clock) -> None:
        super().__init__(logging.WARNING)
        self._stream = stream
        self._clock = clock

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line; as with requests, a stream that nobody reads any more is no reason to fail."""
        line: dict[str, Any] = {
            "time": iso(self._clock.now()),
            "level": record.levelname.lower(),
            "from": record.name,
            "event": _shown(record.getMessage().strip()),
        }
        if record.exc_info is not None and record.exc_info[0] is not None:
            line["error"] = record.exc_info[0].__name__
        _tell(self._stream, line)

    @contextlib.contextmanager
    def installed(self) -> Generator[None]:
        """Write down what the program logs as long as this lasts."""
        root = logging.getLogger()
        root.addHandler(self)
        try:
            yield
        finally:
            root.removeHandler(self)


class AuditLog:
    """A JSON line for each authenticated request, in a file of the user's own; when it is full, older ones are kept beside it."""

    def __init__(self, path: Path, bytes_max: int = AUDIT_BYTES_MAX, files_max: int = AUDIT_FILES_MAX) -> None:
        self.path = path
        self._bytes_max = bytes_max
        self._files_max = files_max
        self._lock = threading.Lock()

    def write(self, entry: Entry) -> None:
        """Append a line, or raise OSError; when this returns, the line is with the operating system."""
        line = _line(
            {
                "time": iso(entry.time),
                "token": entry.token_id,
                "workspace": entry.workspace,
                "method": entry.method,
                "path": _shown(entry.path),
                "status": entry.status,
            }
        ).encode()
        with self._lock:
            file = self._opened(len(line))
            try:
                if os.write(file, line) != len(line):
                    msg = f"only a part of a line could be written to {self.path}"
                    raise OSError(msg)
            finally:
                os.close(file)

    def _opened(self, line_bytes: int) -> int:
        """Open the file for one more line: a new one, if there is none, or when the line would make it too large."""
        file = self._open()
        status = os.fstat(file)
        if status.st_size and status.st_size + line_bytes > self._bytes_max:
            os.close(file)
            self._put_aside()
            file = self._open()
            status = os.fstat(file)
        if os.name == "posix" and status.st_mode & _OTHERS:
            os.fchmod(file, 0o600)
        return file

    def _open(self) -> int:
        how = os.O_CREAT | os.O_APPEND | os.O_WRONLY
        try:
            return os.open(self.path, how, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            return os.open(self.path, how, 0o600)

    def _put_aside(self) -> None:
        """Give the file a number; of those put aside the oldest goes."""
        for number in (*range(self._files_max - 1, 0, -1), 0):
            with contextlib.suppress(FileNotFoundError):  # there is none yet, or another process puts it aside
                self._aside(number).replace(self._aside(number + 1))

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}") if number else self.path


def _tell(stream: TextIO, values: dict[str, Any]) -> None:
    """Write a line that nobody may be there to read."""
    with contextlib.suppress(OSError, ValueError):  # ValueError is what a closed stream raises
        stream.write(_line(values))
        stream.flush()


def _shown(path: str) -> str:
    clean = Cleaner(default_redactor()).text(path)
    return clean if len(clean) <= _PATH_CHARS_MAX else clean[:_PATH_CHARS_MAX] + "…"


def _line(values: dict[str, Any]) -> str:
    # ASCII alone: whatever stands in a path, a line is one line and cannot command a terminal
    return json.dumps(values, separators=(",", ":")) + "\n"
