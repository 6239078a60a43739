"""What is answered: hits, contexts, counts and verdicts, immutable and free of I/O.

Every type is a frozen msgspec struct, so that an answer is the same in Python, in `--json` and over HTTP (`to_json`).
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, cast

import msgspec

from recollect.model import AccessKind, ConversationInfo, Insight, Json, Node, Scope, ToolCall


class Session(Node, frozen=True, kw_only=True):
    """A conversation as somebody who wants to resume it sees it."""

    id: str
    started_at: datetime
    last_activity_at: datetime
    turn_count: int
    last_message: str | None


def session_of(info: ConversationInfo) -> Session:
    """Return a conversation as a session."""
    return Session(
        id=info.id,
        started_at=info.created_at,
        last_activity_at=info.updated_at,
        turn_count=info.turn_count,
        last_message=info.last_message,
    )


class AccessedFile(Node, frozen=True, kw_only=True):
    """The latest access to a path in a conversation."""

    path: str
    kind: AccessKind
    tool_name: str
    turn_index: int
    timestamp: datetime | None
    temporary: bool = False
    generated: bool = False


class HistoryMessage(Node, frozen=True, kw_only=True):
    """A message of a conversation with the tool calls it made."""

    turn_index: int
    sequence: int
    role: str
    content: str
    reasoning: str | None
    timestamp: datetime | None
    tool_calls: tuple[ToolCall, ...] = ()


class Hit(Node, frozen=True, kw_only=True):
    """One answer of a search; a turn's question and answer always come together."""

    kind: Literal["turn", "summary", "scope", "insight"]
    id: str
    conversation_id: str
    conversation_title: str | None = None
    project: str = ""
    level: int = 0
    turn_index: int | None = None
    first_turn: int | None = None
    last_turn: int | None = None
    question: str = ""
    answer: str = ""
    passage: str = ""
    score: float
    confidence: float
    timestamp: datetime | None = None
    age_seconds: float = 0.0
    stale: bool = False
    explanation: dict[str, float] = msgspec.field(default_factory=dict[str, float])

    @property
    def span(self) -> tuple[int | None, int | None]:
        """The first and the last turn it tells of."""
        return (self.turn_index, self.turn_index) if self.first_turn is None else (self.first_turn, self.last_turn)


class SearchResult(Node, frozen=True, kw_only=True):
    """Hits, best first, and for each retriever "ran" or the reason why it did not."""

    hits: tuple[Hit, ...] = ()
    retrievers: dict[str, str] = msgspec.field(default_factory=dict[str, str])
    searched_turns: int = 0
    elapsed_ms: float = 0.0


class SimilarConversation(Node, frozen=True, kw_only=True):
    """A conversation that comes close to a text: how close, the hit that says why, and what was learned in it, newest first."""

    conversation: ConversationInfo
    score: float
    hit: Hit
    learned: tuple[Insight, ...] = ()


class Recorded(Node, frozen=True, kw_only=True):
    """What became of a payload: `status` is created, unchanged, replaced, branched, pending or skipped.

    `notes` counts what had to be read with tolerance, by kind.
    """

    conversation_id: str
    status: Literal["created", "unchanged", "replaced", "branched", "pending", "skipped"]
    request_id: str | None = None
    turn_ids: tuple[str, ...] = ()
    notes: dict[str, int] = msgspec.field(default_factory=dict[str, int])


class Forgotten(Node, frozen=True, kw_only=True):
    """How much was forgotten."""

    conversations: int = 0
    turns: int = 0


class Swept(Node, frozen=True, kw_only=True):
    """How much had expired and was removed, and how many requests that were never finalized were closed."""

    conversations: int = 0
    turns: int = 0
    summaries: int = 0
    insights: int = 0
    closed: int = 0

    @property
    def has_removed(self) -> bool:
        """Whether there is something to be erased."""
        return bool(self.turns or self.summaries or self.insights)


class Rewritten(Node, frozen=True, kw_only=True):
    """How many summaries a model wrote anew, and of how many its answer was of no use, or the turns are gone or changed meanwhile.

    `tokens` are those of this run; `stopped` says why it ended before all was done, at the cap of the day or otherwise.
    """

    rewritten: int = 0
    refused: int = 0
    left: int = 0
    tokens: int = 0
    stopped: str | None = None
    is_capped: bool = False


class Indexed(Node, frozen=True, kw_only=True):
    """How much code of a project is known: files and scopes in all, and how many files were read anew, are gone, or could not be read."""

    project: str
    root: str
    files: int = 0
    scopes: int = 0
    changed: int = 0
    gone: int = 0
    unreadable: int = 0


class ScopeHit(Node, frozen=True, kw_only=True):
    """A symbol of the code that a question may be about; the score is between 0 and 1."""

    scope: Scope
    score: float


class ScopeUse(Node, frozen=True, kw_only=True):
    """A symbol of the code, and the conversations that speak of it, the latest first."""

    scope: Scope
    conversations: tuple[ConversationInfo, ...] = ()


class Analysis(Node, frozen=True, kw_only=True):
    """What became of one conversation that was to be analysed, and the insight it has now.

    `unchanged`: nothing was recorded since the last time; `skipped`: nothing of it is kept; `not_done`: its turn never came.
    """

    conversation_id: str
    conversation_title: str | None = None
    status: Literal["done", "unchanged", "skipped", "failed", "not_done"]
    reason: str | None = None
    insight: Insight | None = None


class Analyses(Node, frozen=True, kw_only=True):
    """What became of conversations that were to be analysed, in the order they were given in.

    `stopped` says why the rest was left; what was done is stored, and the same call again goes on from there.
    """

    items: tuple[Analysis, ...] = ()
    stopped: str | None = None
    is_capped: bool = False

    @property
    def insights(self) -> tuple[Insight, ...]:
        """Every insight there is now."""
        return tuple(item.insight for item in self.items if item.insight is not None)


class Copied(Node, frozen=True, kw_only=True):
    """How much of a store is now in another, and how much of that was not there before."""

    workspaces: int = 0
    conversations: int = 0
    turns: int = 0
    new_turns: int = 0


class Damage(Node, frozen=True, kw_only=True):
    """A record whose bytes are not what was written."""

    kind: str
    id: str
    conversation_id: str | None = None
    reason: str


class Verification(Node, frozen=True, kw_only=True):
    """Whether a content is what was recorded, or, for a whole store, what is damaged."""

    status: Literal["matches", "differs", "unknown", "intact", "damaged"]
    id: str | None = None
    content_hash: str | None = None
    checked: int = 0
    damage: tuple[Damage, ...] = ()


class Stats(Node, frozen=True, kw_only=True):
    """How much is remembered."""

    workspace: str
    store: str
    conversations: int = 0
    turns: int = 0
    messages: int = 0
    tool_calls: int = 0
    summaries: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    passages: int = 0
    embedded: int = 0
    jobs: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    oldest_job_since: datetime | None = None
    size_bytes: int = 0
    timings_ms: dict[str, float] = msgspec.field(default_factory=dict[str, float])


class ModelSpending(Node, frozen=True, kw_only=True):
    """What a model was asked for one use: calls, tokens, time in all, and the cost where prices are configured."""

    use: str
    model: str
    calls: int = 0
    failures: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    duration_ms: float = 0.0
    cost: float | None = None


def to_json(value: object) -> Json:
    """Return a value as plain JSON: times in ISO 8601, ids as strings, and what it works out from its fields beside them."""
    if isinstance(value, list | tuple):
        return [to_json(item) for item in cast("list[object]", value)]
    plain = msgspec.to_builtins(value)
    if isinstance(value, Node) and value.told_too:
        return plain | {name: msgspec.to_builtins(getattr(value, name)) for name in value.told_too}
    return plain
