"""The command that finds out what was learned in conversations, many at once, and shows it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, cast

from recollect.capture.clean import parse_json
from recollect.errors import InputError, ModelError, SpendingError
from recollect.serve.cli.output import age, complain, count, one_line, print_json, safe, styled, width, wrapped
from recollect.serve.cli.session import command, conversation_of, read_file, wants_json

if TYPE_CHECKING:
    from argparse import Namespace
    from datetime import datetime

    from recollect.answers import Analyses, Hit
    from recollect.memory import Memory
    from recollect.model import Insight, Json

_INDENT = 4
_NAME = 14


@command
async def analyze(memory: Memory, options: Namespace) -> int:
    """Analyse conversations, or show what was found before."""
    if options.show or options.search is not None:
        return await _show(memory, options)
    if options.kind is not None:
        msg = "--kind chooses among what was found before: give it with --show or --search"
        raise InputError(msg)
    given = [(await conversation_of(memory, one)).id for one in options.id] or None
    progress = _Progress()
    try:
        made = await memory.analyze(
            given, task=options.task, output_schema=_schema(options.schema), project=options.project, cwd=options.cwd,
            limit=options.limit, concurrency=options.concurrency, again=options.again, progress=progress.at,
        )  # fmt: skip
    finally:
        progress.end()
    if wants_json(options):
        print_json(made)
    else:
        _print_all(made, memory.clock.now())
    return _code(made)


def _code(made: Analyses) -> int:
    if made.stopped is not None:
        complain(made.stopped)
        return SpendingError.exit_code if made.is_capped else ModelError.exit_code
    if any(item.status == "failed" for item in made.items):
        return ModelError.exit_code
    return 0 if made.insights else 1


def _schema(name: str | None) -> dict[str, Any] | None:
    if name is None:
        return None
    schema = parse_json(read_file(name))
    if not isinstance(schema, dict):
        msg = f"{name} holds no JSON schema: that is an object with a type and properties"
        raise InputError(msg)
    return cast("dict[str, Any]", schema)


def _print_all(made: Analyses, now: datetime) -> None:
    for item in made.items:
        title = f"{item.conversation_title or 'untitled'} · {item.conversation_id[:8]}"
        if item.insight is not None:
            _print(item.insight, title, now)
        if item.reason is not None or item.insight is None:
            print(styled(safe(f"{item.status.replace('_', ' ')}: {title}"), "yellow"))
            print(wrapped(safe(f"{' ' * _INDENT}{item.reason}"), _INDENT))
    counted = {
        status: sum(item.status == status for item in made.items) for status in ("done", "unchanged", "skipped", "failed", "not_done")
    }
    told = [f"{number:,} {status.replace('_', ' ')}" for status, number in counted.items() if number]
    print(styled(f"{count(len(made.items), 'conversation')}: {', '.join(told) or 'nothing to analyse'}", "dim"))


async def _show(memory: Memory, options: Namespace) -> int:
    """Show insights of conversations, of a project, or all of them."""
    given = [(await conversation_of(memory, one)).id for one in options.id]
    where: dict[str, Any] = {"project": options.project, "cwd": options.cwd, "kind": options.kind, "limit": options.limit}
    owners: list[str | None] = [*given] or [None]
    if options.search is not None:
        words = str(options.search)
        hits: list[Hit] = [hit for owner in owners for hit in await memory.insights(words, conversation=owner, **where)]
        hits = sorted(hits, key=lambda hit: -hit.score)[: options.limit]
        if wants_json(options):
            print_json(hits)
            return 0 if hits else 1
        for n, hit in enumerate(hits, 1):
            path = " › ".join(part for part in (hit.project, hit.conversation_title or hit.conversation_id[:8]) if part)
            print(styled(f"{n:<2} {hit.score:.2f}  {one_line(path, 60)} · {age(hit.timestamp, memory.clock.now())}", "cyan"))
            for line in hit.passage.splitlines():
                print(wrapped(safe(f"{' ' * _INDENT}{line}"), _INDENT))
        print(styled(f"{count(len(hits), 'insight')} shown", "dim"))
        return 0 if hits else 1
    found = [one for owner in owners for one in await memory.insights(conversation=owner, **where)][: options.limit]
    if wants_json(options):
        print_json(found)
        return 0 if found else 1
    titles = {own_id: (await memory.get_info(own_id)).title for own_id in dict.fromkeys(one.conversation_id for one in found)}
    for one in found:
        _print(one, f"{titles[one.conversation_id] or 'untitled'} · {one.conversation_id[:8]}", memory.clock.now())
    print(styled(f"{count(len(found), 'insight')} shown", "dim"))
    return 0 if found else 1


def _print(insight: Insight, title: str, now: datetime) -> None:
    """Print an insight: where it is from, then each of its fields."""
    print(styled(one_line(f"{title} · {insight.kind} · {insight.author} · {age(insight.created_at, now)}", width()), "bold"))
    if insight.task:
        print(styled(wrapped(safe(f"{' ' * _INDENT}{insight.task}"), _INDENT), "dim"))
    for name, value in insight.body.items():
        _print_field(name.replace("_", " "), value)
    print()


def _print_field(name: str, value: Json) -> None:
    items: list[Json] = cast("list[Json]", value) if isinstance(value, list) else [value]
    for n, item in enumerate(items):
        label = one_line(name, _NAME) if n == 0 else ""
        print(wrapped(safe(f"{' ' * _INDENT}{label:<{_NAME + 1}}{_plain(item)}"), _INDENT + _NAME + 1))


def _plain(value: Json) -> str:
    """Return a value on one line, as a person reads it."""
    if isinstance(value, dict):
        return "; ".join(f"{name.replace('_', ' ')}: {_plain(item)}" for name, item in cast("dict[str, Json]", value).items())
    if isinstance(value, list):
        return ", ".join(_plain(item) for item in cast("list[Json]", value))
    return {None: "–", True: "yes", False: "no"}.get(value, str(value)) if value is None or isinstance(value, bool) else str(value)


class _Progress:
    """How many conversations are through, on standard error, where a person watches it."""

    def __init__(self) -> None:
        self._is_watched = sys.stderr.isatty()

    def at(self, through: int, of: int) -> None:
        """Say it."""
        if self._is_watched:
            print(f"\r{through:,} of {count(of, 'conversation')} …", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Clear the line."""
        if self._is_watched:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
