"""The command that writes a starter project."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from recollect.agent.starter import write_starter
from recollect.serve.cli.output import print_json, safe
from recollect.serve.cli.session import wants_json

if TYPE_CHECKING:
    from argparse import Namespace


def init(options: Namespace) -> int:
    """Write the project, and say what to do next."""
    written = write_starter(options.directory)
    folder = written[0].parent
    if wants_json(options):
        print_json({"directory": str(folder), "files": [path.name for path in written]})
        return 0
    print(safe(f"{folder}: {', '.join(path.name for path in written)}"))
    print(safe(f'next: cd {quote(str(folder))} && python agent.py --example && python agent.py "Which port did we choose?"'))
    return 0
