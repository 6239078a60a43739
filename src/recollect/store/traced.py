"""What the audit asks of a store, and what it is answered: frozen, without meaning of their own."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from recollect.model import Checkpoint
from recollect.store.shapes import Span


class TraceScope(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns are asked about: those of some projects, or of all when None, that ended in a period; `until` is not in it."""

    project_ids: tuple[str, ...] | None = None
    since: datetime | None = None
    until: datetime | None = None


class PlacedChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change, and where it was made."""

    id: str
    file_path: str
    change_type: str
    change_summary: str | None
    lines_added: int | None
    lines_removed: int | None
    turn_id: str
    conversation_id: str
    turn_index: int
    request_id: str | None
    at: datetime | None


class ContextUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often a file was context, and how useful; `rated` counts the uses whose usefulness is known."""

    path: str
    count: int
    rated: int
    average_usefulness: float | None
    greatest_usefulness: float | None
    sources: tuple[str, ...]
    last_used_at: datetime | None


class SourceUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often a source gave context, of how many files, and how useful it was."""

    source: str
    count: int
    files: int
    rated: int
    average_usefulness: float | None


class ToolUse(msgspec.Struct, frozen=True, kw_only=True):
    """How often a tool was called and failed, and how long it took: the values at the ranks of 50 and 95 per cent."""

    tool_name: str
    calls: int
    failures: int
    p50_ms: float | None
    p95_ms: float | None


class ToolDay(msgspec.Struct, frozen=True, kw_only=True):
    """The calls of a tool on one day, in UTC."""

    tool_name: str
    day: str
    calls: int
    failures: int


class ToolError(msgspec.Struct, frozen=True, kw_only=True):
    """What a call that failed brought back, or None where that is not kept."""

    tool_name: str
    said: str | None


class PlacedCheckpoint(msgspec.Struct, frozen=True, kw_only=True):
    """A checkpoint, and where it was made."""

    checkpoint: Checkpoint
    conversation_id: str
    turn_id: str
    turn_index: int
    request_id: str | None
    at: datetime | None


class CheckpointRows(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoints of a period, oldest first; all of any time; the changes of the period, and who shows which turns in each history."""

    found: list[PlacedCheckpoint] = []
    chain: list[PlacedCheckpoint] = []
    changes: list[PlacedChange] = []
    histories: dict[str, list[Span]] = {}


class TraceRows(Protocol):
    """What the audit asks about turns of some projects in a period, by query."""

    async def paths(self, where: TraceScope, path: str) -> list[str]:
        """Return the paths that are kept as this one, or else those that end with it."""
        ...

    async def renamed(self, where: TraceScope, beginnings: list[str]) -> list[str]:
        """Return the paths that renames gave whose summaries begin like one of these, whenever that was."""
        ...

    async def changes(
        self, where: TraceScope, paths: list[str] | None, limit: int, conversation_id: str | None = None
    ) -> list[PlacedChange]:
        """Return changes of files, or of all, in all conversations or in one, newest first."""
        ...

    async def changes_of(self, where: TraceScope, turn_ids: list[str]) -> list[PlacedChange]:
        """Return the changes of turns, newest first."""
        ...

    async def requests(self, where: TraceScope, request_ids: list[str]) -> list[tuple[str, str]]:
        """Return the turns of requests, each with its request, by request, conversation and index."""
        ...

    async def given(self, where: TraceScope, paths: list[str], limit: int) -> list[tuple[str, str, str | None]]:
        """Return the files that turns had as context, each with the turn and its request, newest first."""
        ...

    async def context_uses(self, where: TraceScope, paths: list[str] | None) -> list[ContextUse]:
        """Return how files, or all of them, were used as context, the most used first."""
        ...

    async def source_uses(self, where: TraceScope) -> list[SourceUse]:
        """Return how sources of context served, the most used first."""
        ...

    async def tool_uses(self, where: TraceScope) -> list[ToolUse]:
        """Return how tools did, the most called first."""
        ...

    async def tool_days(self, where: TraceScope) -> list[ToolDay]:
        """Return how often tools were called and failed each day, by tool and day."""
        ...

    async def tool_errors(self, where: TraceScope, limit: int) -> list[ToolError]:
        """Return what failed calls brought back, the newest first."""
        ...

    async def checkpoints(self, where: TraceScope, conversation_id: str | None) -> list[PlacedCheckpoint]:
        """Return checkpoints of all conversations, or of one, oldest first."""
        ...
