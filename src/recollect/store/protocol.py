"""The contract of a store, in prose and types: what every backend promises, and the conformance suite proves.

**Scope.** Every verb names its workspace. Nothing of another workspace is ever read, changed, counted or found.

**Whole.** A turn and all its parts (messages, tool calls and results, context files, changes, checkpoints, passages)
become visible together or not at all, and survive the death of every process once `record` has returned.

**Once.** `record` with a request id that is already there, in whichever conversation of the project, answers *unchanged*
when the content is the same, raises `ConflictError` when it is not, and replaces when asked to. Ids follow from identity
(`placing`), so all stores agree.

**Order.** Turns are ordered by index, messages by sequence, both counting through the conversation; never by time.

**Lineage.** A branch shows its ancestors' turns up to the fork, then its own. Removing a conversation hands the turns
that branches still show over to one of them, under ids that follow from it, unless it is told to forget them.

**Integrity.** What comes out is what went in; what is damaged is reported by `audit.damage`, and is never repaired
silently.

Backends hold queries and row mapping only; decisions are made in `recording`, `placing` and above.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import datetime
from typing import Literal, Protocol

import msgspec

from recollect.model import (
    ConversationInfo,
    ConversationStatus,
    Damage,
    Forgotten,
    Insight,
    Passage,
    Project,
    Scope,
    Stats,
    Summary,
    Turn,
)


class ConversationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations: every given condition must hold, any of the tags."""

    status: ConversationStatus | None = None
    tags: tuple[str, ...] = ()
    project_ids: tuple[str, ...] | None = None
    agent: str | None = None
    before: datetime | None = None


class ConversationChange(msgspec.Struct, frozen=True, kw_only=True):
    """What to change of a conversation; None leaves it as it is."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    status: ConversationStatus | None = None
    summary: str | None = None


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that has no place yet, with the passages it is searched by."""

    turn: Turn
    passages: tuple[Passage, ...] = ()


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Turns to be recorded together.

    `expected_index` is the index the caller believes comes next: when the conversation has moved on meanwhile, nothing
    is written and the outcome is *moved*. `truncate_from` removes the conversation's own turns from that index on, in
    the same transaction. `keep_places` records turns at the indexes and sequences they carry, for restoring.
    """

    drafts: tuple[Draft, ...]
    request_id: str | None = None
    replace: bool = False
    expected_index: int | None = None
    truncate_from: int | None = None
    keep_places: bool = False


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a recording."""

    status: Literal["created", "unchanged", "replaced", "moved"]
    turns: tuple[Turn, ...] = ()


class TurnRange(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns of a conversation's history, by index, both ends included; `newest` takes them from the end.

    The answer is in index order either way.
    """

    first: int = 0
    last: int | None = None
    limit: int | None = None
    newest: bool = False


class CallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool calls of a conversation's history, newest first."""

    tool_name: str | None = None
    success: bool | None = None
    limit: int = 100


class TurnOutline(msgspec.Struct, frozen=True, kw_only=True):
    """What recognition needs to know of a recorded turn: who said what, by hash, without system messages.

    `steps` counts its tool calls and their results.
    """

    id: str
    conversation_id: str
    index: int
    request_id: str | None
    content_hash: str
    steps: int
    said: tuple[tuple[str, str], ...]


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's history in outline, and where it goes on."""

    next_index: int
    next_sequence: int
    turns: tuple[TurnOutline, ...]


class PlacedCall(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tool call stands: the turn it belongs to, and its order there."""

    turn_index: int
    order: int


class SearchScope(msgspec.Struct, frozen=True, kw_only=True):
    """Where to search: one conversation with its lineage, some projects, or the whole workspace when both are None."""

    conversation_id: str | None = None
    project_ids: tuple[str, ...] | None = None


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that shares a term with the query."""

    turn_id: str
    passage: Passage


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """What scoring needs: candidates, and the counts of the scope they were found in."""

    candidates: tuple[Candidate, ...] = ()
    passage_count: int = 0
    turn_count: int = 0
    average_length: float = 0.0
    document_frequency: Mapping[str, int] = {}


class HashRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The hashes kept for a message, tool result, context file or change."""

    kind: str
    content_hash: str | None
    source_hash: str | None = None


class Conversations(Protocol):
    """Workspaces, projects and conversations."""

    async def create(self, workspace: str, conversation: ConversationInfo, project: Project) -> ConversationInfo:
        """Create a conversation and, where missing, its workspace and project; one that exists is returned as it is."""
        ...

    async def get(self, workspace: str, conversation_id: str) -> ConversationInfo | None:
        """Return a conversation, or None."""
        ...

    async def change(self, workspace: str, conversation_id: str, change: ConversationChange, at: datetime) -> ConversationInfo | None:
        """Change a conversation's title, tags, status or summary; None when there is none."""
        ...

    async def find(self, workspace: str, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
        """Return conversations, the latest change first."""
        ...

    async def branches(self, workspace: str, conversation_id: str) -> list[ConversationInfo]:
        """Return the branches that fork from a conversation, oldest first."""
        ...

    async def remove(self, workspace: str, conversation_ids: list[str], *, keep_inherited: bool) -> Forgotten:
        """Remove conversations and all that hangs from them; inherited turns stay with their branches when kept."""
        ...

    async def projects(self, workspace: str) -> list[Project]:
        """Return the projects of a workspace by name."""
        ...


class Turns(Protocol):
    """Turns with all their parts."""

    async def record(self, workspace: str, conversation_id: str, recording: Recording, at: datetime) -> Outcome:
        """Record turns, whole and once; `NotFoundError` when there is no such conversation."""
        ...

    async def rewrite(self, workspace: str, draft: Draft, was: str, at: datetime) -> Turn | None:
        """Replace a turn in its place, if its content hash is still `was`; None when it has changed or gone."""
        ...

    async def restore(
        self, workspace: str, conversation: ConversationInfo, project: Project, drafts: tuple[Draft, ...], *, replace: bool
    ) -> ConversationInfo:
        """Create a conversation with all its turns at the places they carry, whole or not at all; replace one that exists if asked."""
        ...

    async def history(self, workspace: str, conversation_id: str, span: TurnRange) -> list[Turn]:
        """Return whole turns of a conversation's history, ancestors' first."""
        ...

    async def by_id(self, workspace: str, turn_ids: list[str]) -> list[Turn]:
        """Return whole turns by their ids, in the order asked for; unknown ones are left out."""
        ...

    async def outline(self, workspace: str, conversation_id: str, span: TurnRange) -> Outline:
        """Return the outline of a conversation's history, ancestors' first."""
        ...

    async def calls(self, workspace: str, conversation_id: str, where: CallFilter) -> list[PlacedCall]:
        """Return where the tool calls of a history stand, newest first."""
        ...

    async def forget_before(self, workspace: str, moment: datetime, project_ids: tuple[str, ...] | None) -> Forgotten:
        """Forget the turns that ended before a moment, and the conversations this leaves empty."""
        ...


class Derived(Protocol):
    """What was worked out from turns: passages to search, summaries, insights, scopes."""

    async def candidates(self, workspace: str, scope: SearchScope, terms: list[str], limit: int) -> Candidates:
        """Return the passages of a scope that share a term, the most promising first; scope first, rank second."""
        ...

    async def put_summaries(self, workspace: str, summaries: list[Summary]) -> None:
        """Write summaries with the edges to their sources; one that exists is replaced."""
        ...

    async def summaries(self, workspace: str, conversation_id: str, level: int | None) -> list[Summary]:
        """Return the summaries of a conversation by level and first turn."""
        ...

    async def put_insights(self, workspace: str, insights: list[Insight]) -> None:
        """Write insights of conversations; one that exists is replaced."""
        ...

    async def insights(self, workspace: str, conversation_id: str) -> list[Insight]:
        """Return the insights of a conversation, oldest first."""
        ...

    async def put_scopes(self, workspace: str, scopes: list[Scope]) -> None:
        """Write code scopes of a project; one that exists is replaced."""
        ...

    async def scopes(self, workspace: str, project_id: str, name: str | None) -> list[Scope]:
        """Return the code scopes of a project by path and line, all or those of one name."""
        ...


class Audit(Protocol):
    """Questions about the store itself."""

    async def stats(self, workspace: str) -> Stats:
        """Count what the workspace holds."""
        ...

    async def hashes(self, workspace: str, record_id: str) -> list[HashRecord]:
        """Return the hashes kept for a record; for a turn those of its messages."""
        ...

    def damage(self, workspace: str) -> AsyncIterator[tuple[int, list[Damage]]]:
        """Check every record, in pieces: how many were checked, and what is damaged."""
        ...


class Store(Protocol):
    """A store: four facets, and an end."""

    @property
    def url(self) -> str:
        """Where it is, without any password."""
        ...

    @property
    def conversations(self) -> Conversations:
        """Workspaces, projects and conversations."""
        ...

    @property
    def turns(self) -> Turns:
        """Turns with all their parts."""
        ...

    @property
    def derived(self) -> Derived:
        """What was worked out from turns."""
        ...

    @property
    def audit(self) -> Audit:
        """Questions about the store itself."""
        ...

    async def erase(self) -> None:
        """Make what was removed unrecoverable, as far as the backend's own files go."""
        ...

    async def close(self) -> None:
        """Let go of everything the store holds open; what was acknowledged is already safe."""
        ...
