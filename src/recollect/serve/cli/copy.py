"""The command that copies a whole store into another."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.config import load_settings
from recollect.documents.copying import copy_store
from recollect.running import runner
from recollect.serve.cli.output import Progress, count, print_json
from recollect.serve.cli.session import wants_json
from recollect.store import waits_for_a_server

if TYPE_CHECKING:
    from argparse import Namespace


def copy(options: Namespace) -> int:
    """Copy, and say how much was new."""
    progress = Progress("turns")
    by = runner(waits=any(waits_for_a_server(url) for url in (options.source, options.target)))
    workspace: str | None = getattr(options, "workspace", None)
    try:
        copied = by.run(
            copy_store(options.source, options.target, workspace=workspace, settings=load_settings(), progress=progress.at, threads=False)
        )
    finally:
        progress.end()
        by.close()
    if wants_json(options):
        print_json(copied)
    else:
        places = f"{count(copied.conversations, 'conversation')} in {count(copied.workspaces, 'workspace')}"
        print(f"{count(copied.turns, 'turn')} of {places} are there, {copied.new_turns:,} of them new")
    return 0
