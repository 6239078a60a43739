"""The command line: a thin door to the library; this file finds the command, runs it, and turns errors into exit codes.

Only what a command needs is imported: a hook or a prompt may be waiting for it.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from recollect import __version__
from recollect.errors import RecollectError

EXIT_UNUSABLE = 3
EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no, 2 wrong input, 3 store unavailable, 4 not allowed."""
    try:
        try:
            return run(sys.argv[1:] if arguments is None else arguments)
        finally:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        _drop_output()
        return EXIT_PIPE_CLOSED
    except OSError as error:
        if error.filename is not None:
            raise
        _drop_output()
        print(f"recollect: cannot use standard input or output: {error.strerror or error}", file=sys.stderr)
        return EXIT_UNUSABLE


def run(given: list[str]) -> int:
    """Run one command, say what it refuses, and return its exit code; an interruption, and output that fails, are raised."""
    if given == ["--version"]:
        print(f"recollect {__version__}")
        return 0
    from recollect.serve.cli.arguments import parse  # noqa: PLC0415  --version needs none of it

    options, command = parse(given)
    try:
        return command(options)
    except RecollectError as error:
        print(f"recollect: {error}", file=sys.stderr)
        if getattr(options, "json", False):
            from recollect.serve.cli.output import print_json  # noqa: PLC0415  only those who asked for JSON need it

            print_json({"error": str(error)})
        return error.exit_code


def _drop_output() -> None:
    """Have what is still buffered go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def entry() -> None:
    """Run as a program."""
    _open_closed()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(main())


def _open_closed() -> None:
    """Put something in the place of each stream that was closed before: nothing to read, a pipe that nobody reads, and nowhere."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(_broken_pipe() if name == "stdout" else os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _broken_pipe() -> int:
    read, write = os.pipe()
    os.close(read)
    return write
