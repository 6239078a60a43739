"""The commands of the audit: why a line is as it is, the flow of a request, how context and tools serve, checkpoints."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.serve.cli.output import age, columns, count, one_line, print_json, safe, styled, table, width, wrapped
from recollect.serve.cli.session import command, conversation_of, wants_json
from recollect.text import shorten
from recollect.trace.lines import renamed_from

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.memory import Memory
    from recollect.model import CodeChange, ContextFile
    from recollect.store.traced import PlacedChange
    from recollect.trace.answers import CheckpointEntry, FileUsage, Flow, Reason, Step, ToolReliability, Why

_PLACE = re.compile(r"^(.*?):(\d{1,9})(?::\d+)?$")
_NAME = 9
_QUOTE_CHARS_MAX = 400
_CONTEXT_MAX = 6
_CHANGES_SHOWN_MAX = 5
_ERRORS_SHOWN_MAX = 2
_TREND_CALLS_MIN = 10
_TREND_STEP = 0.05
_RATE_SHOWN_MIN = 0.005
_TOGETHER = "\u00a0"  # a space at which no row is broken
_NAMED_KINDS = frozenset({"created", "renamed", "deleted"})


def _scope(options: Namespace) -> dict[str, Any]:
    return {"project": options.project, "cwd": options.cwd, "days": options.days, "since": options.since, "until": options.until}


def _line(name: str, text: str) -> None:
    told = wrapped(f"{name}{' ' * max(_NAME - len(name), 1)}{safe(text)}", _NAME)
    print(styled(name, "dim") + told.removeprefix(name).replace(_TOGETHER, " "))


def _meant(path: str, options: Namespace) -> str:
    """Return a path as the library is asked for it: where no project is named, a file that is here is the one that is meant."""
    if options.project is not None or options.cwd is not None:
        return path
    here = Path.cwd() / path
    return str(here.resolve()) if here.is_file() else path


@command
async def why(memory: Memory, options: Namespace) -> int:
    """Say why a file or a line is as it is."""
    match = _PLACE.match(options.place)
    path, line = (match[1], int(match[2])) if match else (options.place, None)
    found = await memory.why(_meant(path, options), line, line_text=options.text, limit=options.limit, **_scope(options))
    if wants_json(options):
        print_json(found)
    else:
        _tell_why(found, options, memory.clock.now())
    return 0 if found.changes else 1


def _period(options: Namespace) -> str:
    """Return the words for the period that was asked for, when it is not all of time."""
    if options.days is not None:
        return f" in the last {options.days:g} day{'s' * (options.days != 1)}"
    return " in that period" if options.since or options.until else ""


def _tell_why(found: Why, options: Namespace, now: datetime) -> None:
    if not found.changes:
        place = found.path if found.line is None else f"{found.path}:{found.line}"
        print(safe(f"no change of {place} is recorded{_period(options)}"))
        return
    if found.line is not None:
        by_number = " (found by its number)" if found.found_by == "range" else ""
        shown = found.line_text.strip() if found.line_text else f"of {found.path}"
        _line(f"line {found.line}", one_line(shown, width() - _NAME - len(by_number)) + by_number)
    else:
        number = len(found.changes)
        told = (
            f"{count(number, 'change')}, the newest first"
            if number < options.limit
            else f"the {count(number, 'newest change')[2 * (number == 1) :]}"
        )
        _line("file", f"{found.path} · {told}")
    for n, reason in enumerate(found.changes):
        if n or found.line is None:
            print()
        _tell_reason(reason, found, now)


def _tell_reason(reason: Reason, found: Why, now: datetime) -> None:
    change, turn = reason.change, reason.turn
    name = change.change_type if change.change_type in _NAMED_KINDS else "changed"
    before = renamed_from(change.change_type, change.change_summary)
    by = f" by {reason.tool_call.tool_name}" if reason.tool_call is not None else ""
    title = f' of "{shorten(reason.conversation_title, 60)}"' if reason.conversation_title else ""
    request = f" ({reason.request_id})" if reason.request_id else ""
    told = f"{f'from {before} ' if before else ''}{age(change.timestamp or turn.ended_at, now)}{by} in turn {turn.index}{title}{request}"
    _line(name, _with_counts(told, _counts(change.lines_added, change.lines_removed)))
    where = [change.file_path] if change.file_path != found.path else []
    where += [change.function_name] if change.function_name and found.line is None else []
    if where:
        _line("where", " · ".join(where))
    if reason.asked:
        _line("asked", one_line(reason.asked, _QUOTE_CHARS_MAX))
    if reason.context_files:
        _line("context", _contexts(reason.context_files))
    if reason.reasoning:
        _line("because", f'"{one_line(reason.reasoning, _QUOTE_CHARS_MAX)}"')
    elif turn.assistant:
        _line("agent", one_line(turn.assistant, _QUOTE_CHARS_MAX))


def _with_counts(told: str, counts: str) -> str:
    """Put the counts of lines at the end of the row, where there is room."""
    room = width() - _NAME - columns(told) - columns(counts)
    return f"{told}{' ' * room if room > 1 else ' · '}{counts}" if counts else told


def _contexts(files: Sequence[ContextFile]) -> str:
    more = len(files) - _CONTEXT_MAX
    return " · ".join(_context(one) for one in files[:_CONTEXT_MAX]) + (f" · and {more} more" if more > 0 else "")


def _what(change: CodeChange) -> str:
    counts = _counts(change.lines_added, change.lines_removed)
    function = f" in {change.function_name}" if change.function_name else ""
    severity = f", {change.severity} severity" if change.severity else ""
    return f"{change.change_type} {change.file_path}{function} {counts}{severity}".strip()


def _counts(added: int | None, removed: int | None) -> str:
    return "" if added is None and removed is None else f"+{added or 0}{_TOGETHER}−{removed or 0}"


def _context(one: ContextFile) -> str:
    useful = "" if one.usefulness is None else f"{one.usefulness:.2f} "
    lines = "" if one.line_start is None else f" {one.line_start}–{one.line_end or one.line_start}"
    return f"{useful}{one.file_path}{lines}{f' ({one.source})' if one.source else ''}"


@command
async def flow(memory: Memory, options: Namespace) -> int:
    """Show a request from its first message to its last."""
    found = await memory.flow(options.request, project=options.project, cwd=options.cwd)
    if wants_json(options):
        print_json(found)
    else:
        _tell_flow(found)
    return 0


def _tell_flow(found: Flow) -> None:
    turns = count(len(found.turn_ids), "turn")
    print(safe(f"request {found.request_id or found.turn_ids[0]} · {turns} of conversation {found.conversation_id} · {found.status}"))
    if found.context_files:
        _line("context", _contexts(found.context_files))
    for step in found.steps:
        _tell_step(step)
    for change in found.changes:
        _line("changed", _what(change))
    for checkpoint in found.checkpoints:
        _line("saved", f"checkpoint {checkpoint.checkpoint_id or checkpoint.git_hash}")


def _tell_step(step: Step) -> None:
    name = {"user": "you", "assistant": "agent"}.get(step.role, step.role)
    if step.reasoning:
        _line("thought", one_line(step.reasoning, _QUOTE_CHARS_MAX))
    if step.text:
        _line(name, one_line(step.text, _QUOTE_CHARS_MAX))
    for call in step.tool_calls:
        files = ", ".join(dict.fromkeys(part.path for part in call.accessed))
        took = "" if call.duration_ms is None else f" in {call.duration_ms:,.0f} ms"
        said = one_line(call.error or call.result or "", 120) if call.status == "failed" else ""
        _line("tool", f"{call.tool_name} {files} {call.status}{took}{f': {said}' if said else ''}".replace("  ", " "))
        for change in call.changes:
            _line("", _what(change))


@command
async def usage(memory: Memory, options: Namespace) -> int:
    """Say how files and sources serve as context."""
    now = memory.clock.now()
    if options.path is not None:
        one = await memory.file_usage(_meant(options.path, options), **_scope(options))
        if wants_json(options):
            print_json(one)
        else:
            _tell_usage(one, _period(options), now)
        return 0 if one.count else 1
    found = await memory.context_usage(limit=options.limit, **_scope(options))
    if wants_json(options):
        print_json(found)
        return 0 if found.most_used else 1
    if not found.most_used:
        print("no file was given as context")
        return 1
    for title, files in (("most used", found.most_used), ("most useful", found.most_useful), ("never useful", found.never_useful)):
        if files:
            print(styled(title, "bold"))
            table(("uses", "useful", "file", "sources"), [_usage_row(one) for one in files], stretch=2)
            print()
    print(styled("sources, the best first", "bold"))
    rows = [(one.source, f"{one.count:,}", f"{one.files:,}", _useful(one.average_usefulness)) for one in found.sources]
    table(("source", "uses", "files", "useful"), rows, stretch=0)
    return 0


def _usage_row(one: FileUsage) -> tuple[str, str, str, str]:
    return f"{one.count:,}", _useful(one.average_usefulness), one.path, ", ".join(one.sources)


def _useful(value: float | None) -> str:
    return "?" if value is None else f"{value:.2f}"


def _tell_usage(one: FileUsage, period: str, now: datetime) -> None:
    if not one.count:
        print(safe(f"{one.path} was never given as context{period}"))
        return
    average = "of unknown usefulness" if one.average_usefulness is None else f"average usefulness {one.average_usefulness:.2f}"
    sources = f", sources {' and '.join(one.sources)}" if one.sources else ""
    print(wrapped(safe(f"{one.path} was used {count(one.count, 'time')}, {average}{sources}; last {age(one.last_used_at, now)}")))
    if one.followed_by_changes:
        _line("followed", f"by {count(len(one.followed_by_changes), 'change')} in those requests, the newest first:")
        for change in one.followed_by_changes[:_CHANGES_SHOWN_MAX]:
            _line("", _placed(change, now))


def _placed(change: PlacedChange, now: datetime) -> str:
    counts = _counts(change.lines_added, change.lines_removed)
    request = f" ({change.request_id})" if change.request_id else ""
    return f"{age(change.at, now)} {change.change_type} {change.file_path} {counts} in turn {change.turn_index}{request}".replace("  ", " ")


@command
async def tools(memory: Memory, options: Namespace) -> int:
    """Say how reliable tools are."""
    found = await memory.tool_reliability(options.tool, **_scope(options))
    if wants_json(options):
        print_json(found)
    elif not found:
        print("no tool was called" if options.tool is None else safe(f"{options.tool} was not called"))
    else:
        table(("tool", "calls", "failed", "rate", "p50", "p95", "trend"), [_tool_row(one) for one in found], stretch=0)
        for one in found:
            _tell_errors(one)
    return 0 if found else 1


def _tell_errors(one: ToolReliability) -> None:
    if one.failures:
        print(f"\n{styled(safe(one.tool_name), 'bold')} · {one.failures:,} of {one.calls:,} failed: {_rate(one)}")
    for error in one.common_errors[:_ERRORS_SHOWN_MAX]:
        _line("once" if error.count == 1 else f"{error.count:,} times", error.message)


def _tool_row(one: ToolReliability) -> tuple[str, ...]:
    return one.tool_name, f"{one.calls:,}", f"{one.failures:,}", _rate(one), _ms(one.p50_ms), _ms(one.p95_ms), _trend(one)


def _rate(one: ToolReliability) -> str:
    return "< 1 %" if 0 < one.failure_rate < _RATE_SHOWN_MIN else f"{100 * one.failure_rate:.0f} %"


def _ms(value: float | None) -> str:
    return "?" if value is None else f"{value:,.0f} ms"


def _trend(one: ToolReliability) -> str:
    """Compare the newer half of a tool's days with the older one."""
    middle = len(one.trend) // 2
    older, newer = one.trend[:middle], one.trend[middle:]
    calls = [sum(day.calls for day in half) for half in (older, newer)]
    if min(calls) < _TREND_CALLS_MIN:
        return ""
    before, since = (sum(day.failures for day in half) / number for half, number in zip((older, newer), calls, strict=True))
    return "worse" if since > before + _TREND_STEP else "better" if since < before - _TREND_STEP else "steady"


@command
async def checkpoints(memory: Memory, options: Namespace) -> int:
    """Show the timeline of checkpoints, and what changed between them."""
    own = None if options.id is None else (await conversation_of(memory, options.id)).id
    found = await memory.checkpoints(own, **_scope(options))
    if wants_json(options):
        print_json(found)
    elif not found:
        print("no checkpoint is recorded")
    else:
        for entry in found:
            _tell_checkpoint(entry, memory.clock.now())
    return 0 if found else 1


def _tell_checkpoint(entry: CheckpointEntry, now: datetime) -> None:
    name = entry.checkpoint.checkpoint_id or entry.checkpoint.git_hash or "?"
    parent = "" if entry.parent is None else f" · after {entry.parent}{' (by order)' if entry.parent_inferred else ''}"
    commit = f" · commit {entry.checkpoint.git_hash}" if entry.checkpoint.git_hash not in {None, name} else ""
    print(safe(f"{name} · {age(entry.timestamp, now)} · turn {entry.turn_index} of {entry.conversation_id[:8]}{commit}{parent}"))
    for change in entry.changes[:_CHANGES_SHOWN_MAX]:
        _line("", f"{change.change_type} {change.file_path} {_counts(change.lines_added, change.lines_removed)}")
    if len(entry.changes) > _CHANGES_SHOWN_MAX:
        _line("", f"and {len(entry.changes) - _CHANGES_SHOWN_MAX} more changes")
