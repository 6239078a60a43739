"""Commands about the memory itself: how much it holds, whether it is whole, whether it can be used."""

from __future__ import annotations

import platform
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from recollect import __version__
from recollect.answers import to_json
from recollect.checks import masked
from recollect.config import config_path, load_settings
from recollect.errors import InputError, RecollectError
from recollect.serve.cli.output import Progress, count, print_json, safe, size, styled
from recollect.serve.cli.session import command, read_file, wants_json, with_memory

if TYPE_CHECKING:
    from argparse import Namespace

    from recollect.answers import Stats
    from recollect.memory import Memory

_FREE_BYTES_MIN = 100 * 1024 * 1024


@command
async def stats(memory: Memory, options: Namespace) -> int:
    """Say how much is remembered."""
    counted = await memory.stats()
    if wants_json(options):
        print_json(counted)
    else:
        for name, value in _told(counted):
            print(f"{name:<14} {value}")
    return 0


def _told(counted: Stats) -> list[tuple[str, str]]:
    summaries = ", ".join(f"{number:,} of level {level}" for level, number in counted.summaries.items()) or "none yet"
    return [
        ("store", counted.store),
        ("workspace", counted.workspace),
        ("conversations", f"{counted.conversations:,}"),
        ("turns", f"{counted.turns:,}"),
        ("messages", f"{counted.messages:,}"),
        ("tool calls", f"{counted.tool_calls:,}"),
        ("passages", f"{counted.passages:,}, {counted.embedded:,} embedded"),
        ("summaries", summaries),
        ("jobs", ", ".join(f"{number:,} {state}" for state, number in counted.jobs.items())),
        ("size", size(counted.size_bytes) if counted.size_bytes else "the server's own affair"),
    ]


@command
async def sweep(memory: Memory, options: Namespace) -> int:
    """Remove what has expired, and close requests that were never finalized."""
    swept = await memory.sweep()
    if wants_json(options):
        print_json(swept)
    else:
        gone = f"{count(swept.turns, 'turn')} and {count(swept.summaries, 'summary').replace('summarys', 'summaries')} had expired"
        print(f"{gone}; {count(swept.closed, 'request')} closed that nobody had finalized")
    return 0


@command
async def verify(memory: Memory, options: Namespace) -> int:
    """Check a content, or the whole store."""
    if (options.id is None) != (options.content is None):
        msg = "give an id together with --content FILE, or neither to check the whole store"
        raise InputError(msg)
    if options.id is None:
        progress = Progress("records")
        checked = await memory.verify(progress=progress.at)
        progress.end()
    else:
        checked = await memory.verify(options.id, read_file(options.content).decode(errors="replace"))
    if wants_json(options):
        print_json(checked)
    elif checked.status in {"intact", "damaged"}:
        print(f"{checked.status}: {count(checked.checked, 'record')} checked, {len(checked.damage)} damaged")
        for one in checked.damage:
            print(safe(f"  {one.kind} {one.id}: {one.reason}"))
    else:
        print(f"{checked.status}: {safe(str(options.id))}")
    return 0 if checked.status in {"matches", "intact"} else 1


def config(options: Namespace) -> int:
    """Say where settings come from, and what they are."""
    path = config_path()
    if options.what == "path":
        if wants_json(options):
            print_json({"path": str(path), "exists": path.exists()})
        else:
            print(path)
        return 0
    settings = load_settings()
    shown = msgspec.structs.replace(settings.neo4j, password=None if settings.neo4j.password is None else "(set)")
    print_json(to_json(msgspec.structs.replace(settings, neo4j=shown, store=masked(settings.store))))
    return 0


def doctor(options: Namespace) -> int:
    """Say whether everything is in order, one line for each thing that could be wrong."""
    findings: list[tuple[bool, str, str]] = [(True, "program", f"recollect {__version__}, Python {platform.python_version()}")]
    code = 0
    try:
        load_settings()
        path = config_path()
        findings.append((True, "configuration", f"{path}" if path.exists() else f"none at {path}, which is fine"))
        findings += with_memory(options, _store_findings)
    except RecollectError as error:
        findings.append((False, "store" if error.exit_code > 2 else "configuration", str(error)))  # noqa: PLR2004  the table in errors
        code = error.exit_code
    if wants_json(options):
        print_json({"ok": code == 0, "findings": [{"ok": ok, "what": what, "says": says} for ok, what, says in findings]})
    else:
        for ok, what, says in findings:
            print(f"{styled('ok', 'green') if ok else styled('NO', 'red')}  {what:<14} {safe(says)}")
    return code


async def _store_findings(memory: Memory, _: Namespace) -> list[tuple[bool, str, str]]:
    memory.recorder.reading()  # loads the rules for secrets, the user's own among them
    counted = await memory.stats()
    room = f", {size(counted.size_bytes)}" if counted.size_bytes else ""
    found = [(True, "store", f"{counted.store}: {count(counted.turns, 'turn')}{room}")]
    folder = Path(counted.store.partition("://")[2]).parent
    if counted.size_bytes and folder.exists():
        free = shutil.disk_usage(folder).free
        found.append((free > _FREE_BYTES_MIN, "disk", f"{size(free)} free below {folder}"))
    found.append((True, "workspace", memory.workspace))
    return found
