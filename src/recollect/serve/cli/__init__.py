"""The command line: a thin door to the library; this file finds the command, runs it, and turns errors into exit codes.

Only what a command needs is imported: a hook or a prompt may be waiting for it.
"""

from __future__ import annotations

import os
import sys
from io import TextIOWrapper

from recollect import __version__
from recollect.errors import RecollectError

EXIT_INTERRUPTED = 130
EXIT_PIPE_CLOSED = 141


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 the answer is no, 2 wrong input, 3 store unavailable, 4 not allowed."""
    given = sys.argv[1:] if arguments is None else arguments
    if given == ["--version"]:
        print(f"recollect {__version__}")
        return 0
    from recollect.serve.cli.arguments import parse  # noqa: PLC0415  --version needs none of it

    try:
        options, run = parse(given)
        code = run(options)
        sys.stdout.flush()
    except RecollectError as error:
        print(f"recollect: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is still buffered goes nowhere
        return EXIT_PIPE_CLOSED
    return code


def entry() -> None:
    """Run as a program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")
    sys.exit(main())
