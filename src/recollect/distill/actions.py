"""What was done, told from the graph: files read and edited, commands run and how they ended; pure, and fed turn by turn."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Any

from recollect.distill.sentences import uncommanded
from recollect.text import shorten

if TYPE_CHECKING:
    from recollect.model import CodeChange, ToolCall, Turn

_NAMED_MAX = 3
_COMMANDS_MAX = 3
_FILES_MAX = 40
_TOOLS_MAX = 40
_COMMAND_CHARS_MAX = 60
_OUTCOME_CHARS_MAX = 80
_COMMAND_KEYS = ("command", "cmd", "script")
_TELLING = re.compile(r"\b(?:\d+ (?:failed|passed|errors?|warnings?|tests?)|FAILED|PASSED|OK|Error:|error:|not found|denied|failed)")


class Actions:
    """What the tools of some turns did."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, None]] = {"read": {}, "write": {}, "search": {}, "list": {}}
        self._changed: dict[str, tuple[int, int]] = {}
        self._commands: dict[str, ToolCall] = {}
        self._calls: Counter[str] = Counter()
        self._failed: Counter[str] = Counter()
        self._context: dict[str, None] = {}

    def add(self, turn: Turn) -> None:
        """Take in what one turn did."""
        for call in turn.tool_calls:
            self._add_call(call)
        for change in turn.changes:
            self._add_change(change)
        self._context |= dict.fromkeys(part.file_path for part in turn.context_files)

    def _add_call(self, call: ToolCall) -> None:
        self._calls[call.tool_name] += 1
        if call.status == "failed":
            self._failed[call.tool_name] += 1
        for access in call.accessed:
            if not access.temporary:
                self._files[access.kind][access.path] = None
        command = _command(call.arguments)
        if command:
            self._commands.pop(command, None)  # the last time it ran is the one that counts
            self._commands[command] = call

    def _add_change(self, change: CodeChange) -> None:
        added, removed = self._changed.get(change.file_path, (0, 0))
        self._changed[change.file_path] = (added + (change.lines_added or 0), removed + (change.lines_removed or 0))

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that was changed, written, read or given as context, in that order."""
        every = [*self._changed, *self._files["write"], *self._files["read"], *self._context]
        return tuple(dict.fromkeys(every))[:_FILES_MAX]

    @property
    def tools(self) -> tuple[str, ...]:
        """Every tool that was called, the most used first."""
        return tuple(name for name, _ in sorted(self._calls.items(), key=lambda item: (-item[1], item[0])))[:_TOOLS_MAX]

    def told(self) -> str:
        """Return what was done in at most a few clauses, or nothing."""
        written = list(dict.fromkeys([*self._changed, *self._files["write"]]))
        read = [path for path in self._files["read"] if path not in self._changed and path not in self._files["write"]]
        clauses = [
            _clause("read", "file", read),
            _clause("searched", "place", list(self._files["search"])),
            self._edited(written),
            *[f"ran {command}: {outcome}" if outcome else f"ran {command}" for command, outcome in self._last_commands()],
        ]
        told = [clause for clause in clauses if clause]
        if not told and self._calls:
            told = [f"called {_listed([_times(name, count) for name, count in self._calls.most_common(_NAMED_MAX)], len(self._calls))}"]
        failures = [_times(name, count) for name, count in self._failed.most_common(_NAMED_MAX)]
        if failures:
            told.append(f"failures: {', '.join(failures)}")
        text = "; ".join(told)
        return text[:1].upper() + text[1:] + "." if text else ""

    def _last_commands(self) -> list[tuple[str, str]]:
        return [(command, _outcome(call)) for command, call in list(self._commands.items())[-_COMMANDS_MAX:]]

    def _edited(self, paths: list[str]) -> str:
        named = [self._with_counts(path) for path in paths[:_NAMED_MAX]]
        return f"edited {_listed(named, len(paths))}" if named else ""

    def _with_counts(self, path: str) -> str:
        added, removed = self._changed.get(path, (0, 0))
        return f"{path} (+{added} −{removed})" if added or removed else path


def _clause(verb: str, noun: str, paths: list[str]) -> str:
    if not paths:
        return ""
    if len(paths) <= _NAMED_MAX:
        return f"{verb} {', '.join(paths)}"
    return f"{verb} {len(paths)} {noun}s ({', '.join(paths[:_NAMED_MAX])}, …)"


def _listed(named: list[str], total: int) -> str:
    more = total - len(named)
    return ", ".join(named) + (f" and {more} more" if more > 0 else "")


def _times(name: str, count: int) -> str:
    return name if count == 1 else f"{name} ×{count}"  # noqa: RUF001  a multiplication sign


def _command(arguments: dict[str, Any] | None) -> str:
    for key in _COMMAND_KEYS:
        given = (arguments or {}).get(key)
        if isinstance(given, list):
            given = " ".join(str(part) for part in given)
        if isinstance(given, str) and given.strip():
            return shorten(uncommanded(given).strip().splitlines()[0], _COMMAND_CHARS_MAX)
    return ""


def _outcome(call: ToolCall) -> str:
    """Return the line of a result that tells how it ended."""
    result = call.result
    text = "" if result is None else (result.error or result.result or "")
    lines = [line.strip(" =-\t") for line in uncommanded(text).splitlines()[-40:]]
    telling = next((line for line in reversed(lines) if _TELLING.search(line) and not line.startswith(("{", "[", "<", '"'))), "")
    if telling:
        return shorten(telling, _OUTCOME_CHARS_MAX)
    return "failed" if call.status == "failed" else ""
