"""Commands about the memory itself: how much it holds, whether it is whole, whether it can be used."""

from __future__ import annotations

import os
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
from recollect.settings import model_uses

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator, Sequence

    from recollect.answers import ModelSpending, Stats
    from recollect.memory import Memory
    from recollect.settings import Settings

_FREE_BYTES_MIN = 100 * 1024 * 1024


@command
async def stats(memory: Memory, options: Namespace) -> int:
    """Say how much is remembered."""
    if options.models:
        return await _model_stats(memory, options)
    counted = await memory.stats()
    if wants_json(options):
        print_json(counted)
    else:
        for name, value in _told(counted):
            print(f"{name:<14} {value}")
    return 0


async def _model_stats(memory: Memory, options: Namespace) -> int:
    """Say what models were asked, took and spent, today and in all, and what the caps of the day leave."""
    midnight = memory.clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
    today, in_all = await memory.spending(since=midnight), await memory.spending()
    caps = [(use, cap, max(cap - _tokens(today, use), 0)) for use, cap in _caps(memory.settings)]
    if wants_json(options):
        shown = {use: {"daily_tokens_max": cap, "left_tokens": left} for use, cap, left in caps}
        print_json({"today": to_json(today), "in_all": to_json(in_all), "caps": shown})
        return 0
    if not in_all:
        print("no model was ever asked")
    for period, spent in (("today", today), ("in all", in_all)):
        for one in spent:
            cost = "" if one.cost is None else f", cost {one.cost:,.4f}"
            failed = f" ({one.failures:,} failed)" if one.failures else ""
            tokens = f"{one.input_tokens:,} tokens in, {one.output_tokens:,} out"
            took = f", {one.duration_ms / 1_000:,.1f} s ({one.duration_ms / max(one.calls, 1) / 1_000:,.1f} s a call)"
            print(safe(f"{period:<7} {one.use:<10} {one.model}: {count(one.calls, 'call')}{failed}, {tokens}{took}{cost}"))
    for use, cap, left in caps:
        print(f"{'cap':<7} {use:<10} {left:,} of {cap:,} tokens are left today (UTC)")
    return 0


def _tokens(spent: Sequence[ModelSpending], use: str) -> int:
    return sum(one.input_tokens + one.output_tokens for one in spent if one.use == use)


def _caps(settings: Settings) -> Iterator[tuple[str, int]]:
    """Yield the uses of models that are capped by the day, and their caps."""
    uses = {**dict(model_uses(settings)), "embeddings": settings.models.embeddings}
    for what, use in uses.items():
        if use.name is not None and use.daily_tokens_max is not None:
            yield what, use.daily_tokens_max


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
        told = count(swept.summaries, "summary").replace("summarys", "summaries")
        gone = f"{count(swept.turns, 'turn')}, {told} and {count(swept.insights, 'insight')} had expired"
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
        code = 0 if all(ok for ok, _, _ in findings) else 1
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
    return [*found, *await _model_findings(memory.settings)]


async def _model_findings(settings: Settings) -> list[tuple[bool, str, str]]:
    """Say of each model that is configured whether it could be asked; none is."""
    found: list[tuple[bool, str, str]] = []
    for what, use in model_uses(settings):
        if use.name is None:
            continue
        from recollect.models.providers import open_model  # noqa: PLC0415  only those who have a model need it

        try:
            async with open_model(use, what):
                found.append((True, what, f"by {use.name} at {masked(use.endpoint) if use.endpoint else use.provider}"))
        except RecollectError as error:
            found.append((False, what, str(error)))
    vectors = settings.models.embeddings
    if vectors.name is not None:
        missing = vectors.key_variable is not None and not os.environ.get(vectors.key_variable)
        said = (
            f"{vectors.key_variable} is to hold the key, and is not set"
            if missing
            else f"by {vectors.name} at {masked(vectors.endpoint or '')}"
        )
        found.append((not missing, "embeddings", said))
    return found
