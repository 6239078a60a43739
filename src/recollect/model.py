"""What is remembered: the nodes of the graph, immutable and free of I/O."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Literal

import msgspec

ConversationStatus = Literal["active", "archived"]
TurnStatus = Literal["open", "complete", "failed"]
CallStatus = Literal["success", "failed", "unknown"]
NOT_RECORDED_TAG = "do-not-record"  # a conversation with this tag takes no more turns
AccessKind = Literal["read", "write", "search", "list"]
ACCESS_ORDER: tuple[AccessKind, ...] = ("write", "read", "search", "list")  # what changed something comes first
Json = Any  # a plain JSON value: None, bool, int, float, str, or lists and string-keyed dicts of them


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """The base of all: frozen, built by keyword; `told_too` names the properties that JSON has beside the fields."""

    told_too: ClassVar[tuple[str, ...]] = ()


class FileAccess(Node, frozen=True, kw_only=True):
    """A file that a tool call touched; `path` is relative to the project, or absolute outside it."""

    path: str
    kind: AccessKind
    temporary: bool = False
    generated: bool = False


class Message(Node, frozen=True, kw_only=True):
    """One message of a turn; its content is optional, its hash is not.

    `content_hash` and `content_bytes` are of the whole redacted text, before it was cut to fit;
    `source_hash` is what the sender said the hash was.
    """

    id: str = ""
    sequence: int = 0
    role: str
    content: str | None = None
    content_summary: str = ""
    content_hash: str = ""
    source_hash: str | None = None
    content_bytes: int = 0
    reasoning: str | None = None
    token_count: int | None = None
    timestamp: datetime | None = None

    @property
    def text(self) -> str:
        """What was said, or the summary of it where the content is not kept."""
        return self.content_summary if self.content is None else self.content


class ToolResult(Node, frozen=True, kw_only=True):
    """What a tool call brought back."""

    id: str = ""
    success: bool | None = None
    result: str | None = None
    error: str | None = None
    result_size_bytes: int = 0
    content_hash: str = ""
    source_hash: str | None = None
    timestamp: datetime | None = None


class ToolCall(Node, frozen=True, kw_only=True):
    """One call of a tool: `order` counts in its turn, `iteration` the rounds of calls before an answer."""

    id: str = ""
    message_id: str | None = None
    tool_call_id: str | None = None
    tool_name: str
    arguments: dict[str, Json] | None = None
    arguments_hash: str = ""
    source_hash: str | None = None
    status: CallStatus = "unknown"
    duration_ms: float | None = None
    order: int = 0
    iteration: int = 0
    timestamp: datetime | None = None
    diff_chunk_id: str | None = None
    result: ToolResult | None = None
    accessed: tuple[FileAccess, ...] = ()


class ContextFile(Node, frozen=True, kw_only=True):
    """A file that was given to the model as context in one turn; an unknown usefulness is None, never 0."""

    id: str = ""
    file_path: str
    line_start: int | None = None
    line_end: int | None = None
    usefulness: float | None = None
    source: str | None = None
    symbols: tuple[str, ...] = ()
    content_hash: str | None = None
    language: str | None = None
    timestamp: datetime | None = None


class CodeChange(Node, frozen=True, kw_only=True):
    """One change of one file, joined to its tool call by `tool_call_id`."""

    id: str = ""
    file_path: str
    change_type: str = "updated"
    change_summary: str | None = None
    git_commit: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    function_name: str | None = None
    lines_added: int | None = None
    lines_removed: int | None = None
    code_before_hash: str | None = None
    code_after_hash: str | None = None
    diff: str | None = None
    severity: str | None = None
    language: str | None = None
    tool_call_id: str | None = None
    diff_chunk_id: str | None = None
    timestamp: datetime | None = None


class Checkpoint(Node, frozen=True, kw_only=True):
    """A snapshot of the work tree."""

    id: str = ""
    checkpoint_id: str | None = None
    git_hash: str | None = None
    parent_checkpoint: str | None = None
    workspace_dir: str | None = None
    timestamp: datetime | None = None


class Turn(Node, frozen=True, kw_only=True):
    """A request: one user message and everything up to the next one.

    `content_hash` is over all parts without their times, so that the same turn sent again is recognised.
    """

    told_too: ClassVar[tuple[str, ...]] = ("user", "assistant")

    id: str = ""
    conversation_id: str = ""
    index: int = 0
    request_id: str | None = None
    request_ordinal: int = 0
    status: TurnStatus = "complete"
    messages: tuple[Message, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()
    context_files: tuple[ContextFile, ...] = ()
    changes: tuple[CodeChange, ...] = ()
    checkpoints: tuple[Checkpoint, ...] = ()
    char_count: int = 0
    started_at: datetime | None = None
    ended_at: datetime | None = None
    model: str | None = None
    chat_mode: str | None = None
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    request_attempt_id: str | None = None
    base_chat_id: str | None = None
    related_artifacts: tuple[str, ...] = ()
    content_hash: str = ""

    @property
    def user(self) -> str:
        """The user's words, or the summary of them where the content is not kept."""
        return self._said("user")

    @property
    def assistant(self) -> str:
        """The answer: what the assistant said in this turn, one paragraph for each message."""
        return self._said("assistant")

    def _said(self, role: str) -> str:
        return "\n\n".join(message.text for message in self.messages if message.role == role and message.text)

    @property
    def first_sequence(self) -> int:
        """The sequence of its first message."""
        return self.messages[0].sequence if self.messages else 0

    def calls_of(self, message: Message) -> tuple[ToolCall, ...]:
        """Return the tool calls that one of its messages made; those of no message are told with the first."""
        is_first = message is self.messages[0]
        return tuple(call for call in self.tool_calls if call.message_id == message.id or (call.message_id is None and is_first))


class Project(Node, frozen=True, kw_only=True):
    """What agents work on: the repository of their directory, else the directory, else a name the sender gave."""

    id: str
    name: str
    root: str | None = None
    external_id: str | None = None


class ConversationInfo(Node, frozen=True, kw_only=True):
    """A session of an agent in a project; counts include the turns a branch inherits."""

    id: str
    title: str | None = None
    tags: tuple[str, ...] = ()
    status: ConversationStatus = "active"
    summary: str | None = None
    agent: str | None = None
    external_id: str | None = None
    project_id: str = ""
    project: str = ""
    cwd: str | None = None
    created_at: datetime
    updated_at: datetime
    turn_count: int = 0
    message_count: int = 0
    last_message: str | None = None
    branch_of: str | None = None
    from_turn: int | None = None


class Summary(Node, frozen=True, kw_only=True):
    """What a run of turns (level 1), or of summaries (level n + 1), came to."""

    id: str
    conversation_id: str
    level: int
    summary: str
    actions: str = ""
    key_findings: tuple[str, ...] = ()
    files_mentioned: tuple[str, ...] = ()
    tools_used: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    first_turn: int
    last_turn: int
    turn_count: int
    char_count: int
    author: str = "extractive"
    created_at: datetime
    source_ids: tuple[str, ...] = ()


class Scope(Node, frozen=True, kw_only=True):
    """A symbol of the code: a function, class or method; `qualified` has the names of what it is in, too."""

    id: str
    project_id: str
    name: str
    qualified: str = ""
    kind: str
    file_path: str
    line_start: int
    line_end: int
    signature: str = ""
    docstring: str = ""
    content_hash: str = ""


class Reference(Node, frozen=True, kw_only=True):
    """A message that speaks of a scope."""

    message_id: str
    scope_id: str
    conversation_id: str = ""


class Insight(Node, frozen=True, kw_only=True):
    """A structured finding over a conversation: what was looked for (`task`), by whom, and in what.

    It tells of the turns up to `last_turn`; `source_hash` is their fingerprint, as they were.
    """

    id: str
    conversation_id: str
    kind: str
    task: str = ""
    body: dict[str, Json]
    author: str = "extractive"
    source_hash: str = ""
    last_turn: int = -1
    created_at: datetime


PassagePart = Literal["question", "answer", "tool", "summary"]
JobKind = Literal["embed", "summarize"]
JobState = Literal["ready", "running", "parked"]


class Passage(Node, frozen=True, kw_only=True):
    """A piece of a turn or summary that is searched as one: `ordinal` is its message's or call's place in the turn."""

    part: PassagePart
    ordinal: int
    start: int
    end: int
    terms: str


class Job(Node, frozen=True, kw_only=True):
    """Work that waits for a worker: one of a kind for a conversation, however often it was asked for."""

    conversation_id: str
    kind: JobKind
    state: JobState = "ready"
    attempts: int = 0
    since: datetime
    due_at: datetime
    error: str | None = None


class ModelCall(Node, frozen=True, kw_only=True):
    """One call of a model of a provider: for which use, and what it spent; nothing of what was said.

    While it is open, the tokens are the most it may take.
    """

    id: str
    use: str
    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    duration_ms: float = 0.0
    cost: float | None = None
    is_failed: bool = False
    is_open: bool = False
    timestamp: datetime
