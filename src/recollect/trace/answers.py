"""What the audit answers: why, flow, usage, reliability, checkpoints; immutable and free of I/O."""

from __future__ import annotations

from datetime import datetime

from recollect.model import Checkpoint, CodeChange, ContextFile, FileAccess, Json, Node, ToolCall, Turn
from recollect.store.traced import PlacedChange


class Reason(Node, frozen=True, kw_only=True):
    """One change of a file: the call that made it, what was asked, the context the request had, and what was thought."""

    change: CodeChange
    tool_call: ToolCall | None
    turn: Turn
    conversation_title: str | None = None
    request_id: str | None
    asked: str
    context_files: tuple[ContextFile, ...] = ()
    reasoning: str | None = None


class Why(Node, frozen=True, kw_only=True):
    """Why a file, or a line of it, is as it is: the changes that made it so, newest first.

    `found_by` says how a line was found: by its `content`, by its `range`, or not at all (None).
    """

    path: str
    line: int | None = None
    line_text: str | None = None
    found_by: str | None = None
    changes: tuple[Reason, ...] = ()


class TracedCall(Node, frozen=True, kw_only=True):
    """A tool call with what it changed."""

    id: str
    tool_call_id: str | None
    tool_name: str
    arguments: dict[str, Json] | None
    status: str
    duration_ms: float | None
    result: str | None
    error: str | None
    accessed: tuple[FileAccess, ...] = ()
    changes: tuple[CodeChange, ...] = ()


class Step(Node, frozen=True, kw_only=True):
    """One message of a request, with the calls it made."""

    sequence: int
    role: str
    text: str
    reasoning: str | None = None
    timestamp: datetime | None = None
    tool_calls: tuple[TracedCall, ...] = ()


class Flow(Node, frozen=True, kw_only=True):
    """A request from its first message to its last, over all its turns; `changes` are those that no call of it made."""

    request_id: str | None
    conversation_id: str
    turn_ids: tuple[str, ...] = ()
    status: str = "complete"
    steps: tuple[Step, ...] = ()
    context_files: tuple[ContextFile, ...] = ()
    changes: tuple[CodeChange, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()


class FileUsage(Node, frozen=True, kw_only=True):
    """How often a file was context, how useful where that is known, and which changes were made in those requests, newest first."""

    path: str
    count: int
    average_usefulness: float | None
    sources: tuple[str, ...] = ()
    last_used_at: datetime | None = None
    followed_by_changes: tuple[PlacedChange, ...] = ()


class SourceUsage(Node, frozen=True, kw_only=True):
    """How a source of context (vecdb, ast, manual …) serves."""

    source: str
    count: int
    files: int
    average_usefulness: float | None


class ContextUsage(Node, frozen=True, kw_only=True):
    """What is used as context in a project: most often, most usefully, never usefully; and which sources serve best."""

    most_used: tuple[FileUsage, ...] = ()
    most_useful: tuple[FileUsage, ...] = ()
    never_useful: tuple[FileUsage, ...] = ()
    sources: tuple[SourceUsage, ...] = ()


class CommonError(Node, frozen=True, kw_only=True):
    """What failed calls of a tool say, and how often; numbers do not tell two apart."""

    message: str
    count: int


class ToolDayCount(Node, frozen=True, kw_only=True):
    """The calls of a tool on one day, in UTC."""

    day: str
    calls: int
    failures: int


class ToolReliability(Node, frozen=True, kw_only=True):
    """How a tool does: calls, failures, how long it takes, what it says when it fails, and how that went day by day."""

    tool_name: str
    calls: int
    failures: int
    failure_rate: float
    p50_ms: float | None = None
    p95_ms: float | None = None
    common_errors: tuple[CommonError, ...] = ()
    trend: tuple[ToolDayCount, ...] = ()


class CheckpointEntry(Node, frozen=True, kw_only=True):
    """A checkpoint in the timeline; `changes` were made after it and before the next one of its folder in its conversation.

    `parent` is the checkpoint before it: the one its sender named, else, with `parent_inferred`, the one before it in order.
    """

    checkpoint: Checkpoint
    conversation_id: str
    turn_index: int
    request_id: str | None = None
    timestamp: datetime | None = None
    parent: str | None = None
    parent_inferred: bool = False
    changes: tuple[PlacedChange, ...] = ()
