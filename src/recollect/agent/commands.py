"""A command in the project's folder, its output and how it ended; what it leaves running is stopped with it; below `tools`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
from typing import TYPE_CHECKING, Any

from recollect.checks import checked_text
from recollect.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path

COMMAND_CHARS_MAX = 20_000
COMMAND_SECONDS_MAX = 600
OUTPUT_BYTES_MAX = 30_000
_PIECE_BYTES = 65_536
_TAIL_BYTES = OUTPUT_BYTES_MAX // 2
_HEAD_BYTES = OUTPUT_BYTES_MAX - _TAIL_BYTES
_CUT = "\n… [cut: {left_out:,} bytes left out] …\n"
_DRAINED_PIECES_MAX = 64
_QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}  # nobody is there to press a key


async def run(root: Path, command: str, seconds: float) -> dict[str, Any]:
    """Run a command with the shell; after `seconds`, when it is cancelled, and when it has ended, its whole process group is killed."""
    if not checked_text("command", command).strip() or "\0" in command or len(command) > COMMAND_CHARS_MAX:
        msg = f"a command has 1 to {COMMAND_CHARS_MAX:,} characters and no NUL, not {command[:100]!r}: give one for the shell"
        raise InputError(msg)
    if not 0 < seconds <= COMMAND_SECONDS_MAX:
        msg = f"a command runs for more than 0 and at most {COMMAND_SECONDS_MAX} seconds, not {seconds!r}: give a number between"
        raise InputError(msg)
    process, source = _started(root, command)
    output = _Output(source)
    loop = asyncio.get_running_loop()
    loop.add_reader(source, lambda: output.read() or loop.remove_reader(source))
    is_late = False
    try:
        await asyncio.wait_for(asyncio.to_thread(process.wait), seconds)
    except TimeoutError:
        is_late = True
    finally:
        loop.remove_reader(source)
        _kill(process)
        output.drain()
        os.close(source)
    return {"exit_code": None if is_late else process.returncode, "timed_out": is_late, "output": output.text()}


class _Output:
    """The beginning and the end of what comes out of a pipe that does not block."""

    def __init__(self, source: int) -> None:
        self._source = source
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0

    def read(self) -> bool:
        """Take what is there; False when there is nothing, as at the end."""
        try:
            piece = os.read(self._source, _PIECE_BYTES)
        except BlockingIOError:
            return False
        self._total += len(piece)
        room = _HEAD_BYTES - len(self._head)
        self._head += piece[:room]
        self._tail = (self._tail + piece[max(room, 0) :])[-_TAIL_BYTES:]
        return bool(piece)

    def drain(self) -> None:
        """Take what is left, but not for ever: a process that left its group may go on writing."""
        for _ in range(_DRAINED_PIECES_MAX):
            if not self.read():
                return

    def text(self) -> str:
        """Return it as text, with a mark where something was left out."""
        left_out = self._total - len(self._head) - len(self._tail)
        if not left_out:
            return bytes(self._head + self._tail).decode("utf-8", "replace")
        return self._head.decode("utf-8", "replace") + _CUT.format(left_out=left_out) + self._tail.decode("utf-8", "replace")


def _started(root: Path, command: str) -> tuple[subprocess.Popen[bytes], int]:
    """Start the shell in a process group of its own, and return the end of the pipe that its output comes from."""
    source, sink = os.pipe()
    try:
        os.set_blocking(source, False)
        process = subprocess.Popen(  # noqa: S602  a shell is what was asked for, and permitted
            command, shell=True, cwd=root, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink, start_new_session=True,
            env={**os.environ, **_QUIET},
        )  # fmt: skip
    except BaseException:
        os.close(source)
        raise
    finally:
        os.close(sink)
    return process, source


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
