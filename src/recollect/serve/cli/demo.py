"""The demo: a short guided tour in a fresh file; every step is a command that the reader could type."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from recollect.checks import checked_name
from recollect.errors import RecollectError
from recollect.identity import identity
from recollect.serve.cli import run, tour_migration
from recollect.serve.cli.output import styled
from recollect.serve.cli.tour import CHAT, PROJECT, REQUESTS

if TYPE_CHECKING:
    from argparse import Namespace


def demo(options: Namespace) -> int:
    """Take the tour; what it recorded stays in its own file, for the reader to try on."""
    workspace = checked_name("workspace", getattr(options, "workspace", "default"))
    folder = Path(tempfile.mkdtemp(prefix="recollect-demo-"))
    tour = _Tour(f"sqlite://{folder / 'memory.db'}", workspace)
    requests = folder / "requests.jsonl"
    requests.write_bytes(b"\n".join(msgspec.json.encode(request) for request in REQUESTS) + b"\n")
    conversation = identity("conversation", tour.workspace, identity("project", tour.workspace, "name", PROJECT), None, CHAT)
    exported = folder / "conversation.json"
    here = ("--project", PROJECT)

    print("A coding agent worked on a login bug in four requests. Its engine sends each to Recollect.")
    tour.step("Record them. Sending them again would change nothing.", "ingest", str(requests))
    tour.step("List what is remembered.", "conversations")
    tour.step("Show it. The password in the second request never reached the disk.", "show", conversation[:8])
    tour.step("Find the reason for the crash, weeks later.", "search", "why does login crash with an expired token")
    tour.step("Which files did its tools touch?", "files", conversation[:8])
    tour.step("Which tool calls failed?", "tool-calls", conversation[:8], "--failed")
    tour.step("Why is a line as it is? What was asked, what the agent knew, what it did.", "why", "src/auth/auth_service.py", *here)
    tour.step("How well does a file serve as context?", "usage", "src/auth/auth_service.py", *here)
    tour.step("How reliable are the tools?", "tools", *here)
    tour.step(
        "Try another way from turn 1 on, without losing this one.",
        "branch",
        conversation[:8],
        "--turn",
        "1",
        "--title",
        "Use refresh tokens",
    )
    tour.step("A branch inherits what came before it.", "conversations")
    tour.step("Export it, to keep or to move.", "export", conversation[:8], "--output", str(exported))
    migration = folder / "migration.jsonl"
    migration.write_bytes(b"\n".join(msgspec.json.encode(request) for request in tour_migration.requests()) + b"\n")
    long = identity("conversation", tour.workspace, identity("project", tour.workspace, "name", PROJECT), None, tour_migration.CHAT)
    tour.step("A long conversation comes in: a service moved to another database, module by module.", "ingest", str(migration))
    tour.step("Condense it. No model is asked; a program that uses the library does this in the background.", "distill", "--wait")
    tour.step("What is left of its first weeks is a summary of summaries.", "show", long[:8], "--summaries", "--level", "2")
    tour.step(
        "Find an old decision by what it means, in other words than were used then.", "search", "why are customers merged", "--limit", "2"
    )
    tour.step(
        "Hand an agent what matters for its next request, within 4,000 characters.",
        "context",
        "Which tests of the payments module failed?",
        "--conversation",
        long[:8],
        "--budget",
        "4000",
    )
    tour.step("Every record is still what was written.", "verify")
    tour.step(
        "How often did the shell fail in those weeks? No turn says so; the summary of them does.",
        "search",
        "how many failures of the shell were there",
        "--levels",
        "2",
    )

    program = "recollect" if shutil.which("recollect") else os.path.relpath(sys.argv[0])
    print("\n" + styled("What next?", "bold"))
    print("Look around in this tour:")
    print(f"  {program} --store {tour.store} show {conversation[:8]} --full")
    print("Record your own engine's requests, search everything you have recorded, see all commands:")
    print(f"  {program} ingest FILE\n  {program} search WORDS\n  {program} --help")
    print("README.md has the library in a few lines.")
    if not options.serve:
        return 0
    print("\n" + styled("The same over HTTP, until you stop it (Ctrl-C). Open the address once to get a token.", "bold"))
    from recollect.serve.cli.serve import serve_demo  # noqa: PLC0415  only those who serve need it

    return serve_demo(tour.store, tour.workspace, folder)


class _Tour:
    """Runs commands on the tour's own store, showing each as it would be typed."""

    def __init__(self, store: str, workspace: str) -> None:
        self.store = store
        self.workspace = workspace

    def step(self, why: str, *arguments: str) -> None:
        """Say why, show the command, run it."""
        print("\n" + styled(why, "bold"))
        typed = " ".join(f'"{word}"' if " " in word else word for word in arguments)
        print(styled(f"$ recollect {typed}", "green"), flush=True)
        code = run(["--store", self.store, "--workspace", self.workspace, *arguments])
        if code != 0:
            msg = f"the tour stopped: `recollect {typed}` ended with code {code}"
            raise RecollectError(msg)
