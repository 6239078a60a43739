"""The contract of a store, in prose and types: what every backend promises, and the conformance suite proves.

**Scope.** Every unit of work names its workspace. Nothing of another workspace is ever read, changed, counted or found.

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

What this means is written once, in the facets (`conversations`, `turns`, `searching`, `derived`, `coding`, `jobs`, `tracing`,
`retention`, `requests`, `spending`, `audit`). A backend is an `Engine` that runs units of work, and a `Transaction` of
eleven groups of queries with their row mapping; it decides nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.answers import AccessedFile, Damage, Stats
    from recollect.model import ConversationInfo, Insight, Job, JobKind, Passage, Project, Summary
    from recollect.store.coded import CodeRows
    from recollect.store.keeping import RequestRows, RetentionRows, SpendingRows
    from recollect.store.recording import Situation
    from recollect.store.shapes import (
        Advance,
        Area,
        CallFilter,
        Candidates,
        ConversationFilter,
        Count,
        DerivedKind,
        Embedded,
        HashRecord,
        Held,
        InsightFilter,
        Lease,
        Link,
        PlacedCall,
        Probe,
        Question,
        RecordKey,
        Span,
        StoredTurn,
        TurnOutline,
        TurnSize,
        Unembedded,
        Vector,
        WordedInsight,
    )
    from recollect.store.traced import TraceRows

_T = TypeVar("_T")


class ConversationRows(Protocol):
    """Projects and conversations, by query."""

    async def held(self, conversation_id: str) -> Held | None:
        """Return a conversation, or None."""
        ...

    async def by_id(self, conversation_ids: list[str]) -> list[ConversationInfo]:
        """Return conversations in any order; unknown ones are left out."""
        ...

    async def find(self, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
        """Return conversations, the latest change first, then the latest made, then by id downwards."""
        ...

    async def branches(self, conversation_id: str) -> list[Held]:
        """Return the conversations that inherit from one, oldest first."""
        ...

    async def chain(self, conversation_id: str) -> list[Link]:
        """Return a conversation, its parent, and so on to the eldest; nothing when there is no such conversation."""
        ...

    async def projects(self) -> list[Project]:
        """Return the projects of the workspace by name."""
        ...

    async def put_project(self, project: Project) -> None:
        """Write a project and its workspace, where they are missing."""
        ...

    async def create(self, held: Held) -> None:
        """Write a new conversation of a project that is there."""
        ...

    async def update(self, held: Held) -> None:
        """Write a conversation as it is now, its parent included."""
        ...

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation that no branch inherits from, with its turns and all that hangs from them."""
        ...

    async def drop_unused(self, project_ids: list[str]) -> None:
        """Delete those of some projects, and of their code files, that nothing names any more."""
        ...


class TurnRows(Protocol):
    """Turns with all their parts, by query."""

    async def situation(self, conversation_id: str, request_id: str | None, cut_from: int | None) -> Situation | None:
        """Return what a recording is decided by, or None when there is no such conversation; nobody else writes to it now."""
        ...

    async def read(self, span: Span) -> list[StoredTurn]:
        """Return whole turns in index order."""
        ...

    async def by_id(self, turn_ids: list[str]) -> list[StoredTurn]:
        """Return whole turns in any order; unknown ones are left out."""
        ...

    async def hashes(self, turn_ids: list[str]) -> dict[str, str]:
        """Return the content hashes of turns; unknown ones are left out."""
        ...

    async def passages(self, turn_ids: list[str]) -> dict[str, tuple[Passage, ...]]:
        """Return the passages of turns, in their order."""
        ...

    async def outline(self, span: Span) -> list[TurnOutline]:
        """Return turns in outline, in index order."""
        ...

    async def calls(self, span: Span, where: CallFilter) -> list[PlacedCall]:
        """Return where tool calls stand, newest first."""
        ...

    async def questions(self, span: Span) -> list[Question]:
        """Return what users said, newest first."""
        ...

    async def accesses(self, span: Span) -> list[AccessedFile]:
        """Return the latest access to each path, newest first."""
        ...

    async def count(self, span: Span) -> Count:
        """Count what a span holds."""
        ...

    async def ended_before(self, moment: datetime, project_ids: tuple[str, ...] | None) -> list[tuple[str, str]]:
        """Return the turns that ended before a moment, each with its conversation."""
        ...

    async def insert(self, conversation_id: str, turns: list[StoredTurn], advance: Advance | None) -> None:
        """Write turns with all their parts and passages, what they add to their conversation, and the jobs they cause.

        Without an advance they come in the place of turns with their ids, and the summaries that tell of those go.
        """
        ...

    async def delete(self, turn_ids: list[str], *, keep_summaries: bool = False) -> None:
        """Delete turns with all their parts, and the summaries, of any level, that tell of them; their conversations get a job."""
        ...

    async def sizes(self, span: Span) -> list[TurnSize]:
        """Return turns as planning sees them, in index order."""
        ...

    async def shift(self, conversation_id: str, after: int, by: int) -> None:
        """Move the sequences of the messages after a turn."""
        ...


class SearchRows(Protocol):
    """Passages to be searched, by query; the area comes first, the rank second."""

    async def candidates(self, area: Area, probe: Probe) -> Candidates:
        """Return every passage of the turns and summaries of an area that promise most (`choosing`), with the counts of the area.

        The counts are of all passages of the area's levels; its filter only says which are returned.
        """
        ...


class DerivedRows(Protocol):
    """Vectors, summaries, insights, by query."""

    async def put_summary(self, summary: Summary, checksum: int, passages: tuple[Passage, ...], expires_at: datetime | None) -> None:
        """Write a summary with the edges to its sources and its passages, in the place of one with its id."""
        ...

    async def summaries_by_id(self, summary_ids: list[str]) -> list[Summary]:
        """Return summaries in any order; unknown ones are left out."""
        ...

    async def delete_summaries(self, conversation_id: str) -> None:
        """Delete every summary of a conversation that can be made again, which one of expired turns cannot; its turns stay."""
        ...

    async def unembedded(self, conversation_id: str, model: str, limit: int) -> list[Unembedded]:
        """Return own passages of a conversation that have no vector of a model, oldest first."""
        ...

    async def known_vectors(self, model: str, text_hashes: list[str]) -> dict[str, Vector]:
        """Return the vectors that texts have already in the workspace, by the hash of the text."""
        ...

    async def delete_embeddings(self, conversation_id: str) -> None:
        """Delete every vector of a conversation's own passages."""
        ...

    async def put_embeddings(self, model: str, embedded: list[Embedded]) -> None:
        """Write vectors of passages, in the place of those of another model; a passage that is gone or says something else is left."""
        ...

    async def summaries(self, conversation_id: str, level: int | None) -> list[Summary]:
        """Return summaries by level, first turn and id."""
        ...

    async def is_told_of(self, conversation_id: str) -> bool:
        """Tell whether a conversation has a summary or an insight."""
        ...

    async def put_insight(self, insight: WordedInsight, expires_at: datetime | None) -> None:
        """Write an insight, in the place of one with its id."""
        ...

    async def insights(self, conversation_id: str) -> list[Insight]:
        """Return insights, oldest first, then by id."""
        ...

    async def find_insights(self, where: InsightFilter, limit: int) -> list[Insight]:
        """Return insights, newest first, then by id."""
        ...

    async def insights_having(self, where: InsightFilter, terms: list[str], limit: int) -> list[WordedInsight]:
        """Return insights that have one of some terms, those with the most of what is rare first; the filter comes before the rank."""
        ...


class JobRows(Protocol):
    """Work that waits, by query."""

    async def wake(self, conversation_id: str, kind: JobKind, at: datetime) -> None:
        """Write a job, or let one that is being done be done again; a parked one gets another chance."""
        ...

    async def embedder(self) -> str | None:
        """Return the embedder whose missing vectors were asked for last, if that is known."""
        ...

    async def set_embedder(self, model: str | None) -> None:
        """Write whose missing vectors are asked for; None for nobody's. A workspace that is not there yet has nothing that lacks one."""
        ...

    async def wake_unembedded(self, model: str, at: datetime) -> None:
        """Write the jobs that are missing of the conversations that have a passage without a vector of a model."""
        ...

    async def lease(self, now: datetime, until: datetime, token: str, beyond: datetime) -> Lease | None:
        """Take the job that has been due the longest, or whose lease has run out; a time later than `beyond` is a clock's mistake."""
        ...

    async def extend(self, lease: Lease, until: datetime) -> bool:
        """Hold a job for longer; False when somebody else holds it now."""
        ...

    async def holds(self, lease: Lease) -> bool:
        """Tell whether a job is still held, and keep it from being taken until the transaction ends."""
        ...

    async def finish(self, lease: Lease, now: datetime) -> None:
        """Remove a job that is held, or let it be done again, after the others, when it was asked for meanwhile."""
        ...

    async def release(self, lease: Lease) -> None:
        """Let somebody else do a job that is held."""
        ...

    async def fail(self, lease: Lease, due_at: datetime, error: str, attempts: int, *, parked: bool) -> None:
        """Let a job that is held wait, or park it, with the error it met."""
        ...

    async def listed(self) -> list[Job]:
        """Return every job, the longest due first."""
        ...


class AuditRows(Protocol):
    """Questions about the store itself, by query."""

    async def stats(self) -> Stats:
        """Count what the workspace holds; the store's own address and size are filled in by the engine."""
        ...

    async def hashes(self, record_id: str) -> list[HashRecord]:
        """Return the hashes kept for a record; for a turn those of its messages."""
        ...

    async def conversations(self) -> list[RecordKey]:
        """Return every conversation to be checked."""
        ...

    async def turns(self, after: int | str | None, limit: int) -> list[RecordKey]:
        """Return the next turns to be checked, in the order of their keys."""
        ...

    async def conversation(self, key: int | str) -> Held | None:
        """Read one conversation by its key; `DamagedStoreError` when it cannot be read."""
        ...

    async def read(self, keys: list[int | str]) -> list[StoredTurn]:
        """Read turns by their keys; `DamagedStoreError` when one cannot be read."""
        ...

    async def derived(self, kind: DerivedKind, after: int | str | None, limit: int) -> list[RecordKey]:
        """Return the next summaries, insights or scopes to be checked, in the order of their keys."""
        ...

    async def read_derived(self, kind: DerivedKind, keys: list[int | str]) -> None:
        """Read summaries, insights or scopes by their keys; `DamagedStoreError` when one is not what was written."""
        ...


class Transaction(Protocol):
    """What a unit of work sees of one workspace."""

    @property
    def conversations(self) -> ConversationRows:
        """Projects and conversations."""
        ...

    @property
    def turns(self) -> TurnRows:
        """Turns with all their parts."""
        ...

    @property
    def search(self) -> SearchRows:
        """Passages to be searched."""
        ...

    @property
    def derived(self) -> DerivedRows:
        """What was worked out from turns."""
        ...

    @property
    def code(self) -> CodeRows:
        """Code files and the scopes in them."""
        ...

    @property
    def jobs(self) -> JobRows:
        """Work that waits."""
        ...

    @property
    def retention(self) -> RetentionRows:
        """What expires."""
        ...

    @property
    def requests(self) -> RequestRows:
        """Requests that come in pieces."""
        ...

    @property
    def spending(self) -> SpendingRows:
        """What models were asked and spent."""
        ...

    @property
    def trace(self) -> TraceRows:
        """What the audit asks."""
        ...

    @property
    def audit(self) -> AuditRows:
        """Questions about the store itself."""
        ...


Work = Callable[[Transaction], Coroutine[Any, Any, _T]]


class Engine(Protocol):
    """A database that runs units of work."""

    @property
    def url(self) -> str:
        """Where it is, without any password."""
        ...

    async def read(self, workspace: str, work: Work[_T], *, settled: bool = False) -> _T:
        """Run a unit of work that changes nothing; `settled` lets nobody write to what it looks at until it is done."""
        ...

    async def write(self, workspace: str, work: Work[_T]) -> _T:
        """Run a unit of work whole or not at all; when this returns, it survives the death of every process.

        The work may run more than once, so it keeps nothing outside the transaction.
        """
        ...

    async def workspaces(self) -> list[str]:
        """Return the names of all workspaces, for copying a whole store."""
        ...

    async def damage(self) -> list[Damage]:
        """Ask the database about its own health."""
        ...

    async def size_bytes(self) -> int:
        """Return how much room it takes, or 0 when it does not tell."""
        ...

    async def erase(self) -> None:
        """Make what was removed unrecoverable, as far as the backend's own files go."""
        ...

    async def close(self) -> None:
        """Let go of everything that is held open; what was acknowledged is already safe."""
        ...
