"""Turns → the store, as their project's policy has them kept: appended, rewritten, restored; the writing half of `Memory`.

Everything is cleaned by `capture` before it comes here, and decided again inside the store's transaction, so that two
processes that record at once lose and double nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import msgspec

from recollect.capture.clean import Cleaner
from recollect.capture.reading import Reading
from recollect.distill.keeping import conversation_policy, policy_in
from recollect.distill.passages import cut_passages
from recollect.errors import NotAllowedError, NotFoundError, RecollectError
from recollect.model import ConversationInfo, Project, Turn
from recollect.placing import Head, place_turns
from recollect.policies import KEEPS_ALL, Policy, is_marked, policy_of
from recollect.record.history import History
from recollect.record.shapes import MovedError, Result, Telling
from recollect.store.shapes import Draft, Recording, TurnRange
from recollect.store.traced import TraceScope

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from recollect.capture.paths import Place
    from recollect.capture.secrets import Redactor
    from recollect.clock import Clock
    from recollect.record.shapes import OnEdit
    from recollect.settings import Settings
    from recollect.store import Store
    from recollect.store.shapes import Outcome, Step

_replace = msgspec.structs.replace


class Recorder:
    """Writes turns of one workspace."""

    def __init__(
        self, store: Store, workspace: str, settings: Settings, clock: Clock, *, on_recorded: Callable[[int, float], None]
    ) -> None:
        self._on_recorded = on_recorded
        self._store = store
        self._workspace = workspace
        self._settings = settings
        self._clock = clock
        self._redactor: Redactor | None = None
        self._policies: dict[str, Policy] = {}
        self._pending: list[tuple[str, tuple[Turn, ...], Callable[[], Awaitable[Result]]]] = []

    def reading(self, place: Place | None = None) -> Reading:
        """Begin to read one payload: a clean slate of notes, the present moment, and where its paths lie."""
        if self._redactor is None:
            self._redactor = self._chosen_redactor()
        return Reading(Cleaner(self._redactor), self._clock.now(), place)

    def _chosen_redactor(self) -> Redactor:
        from recollect.capture.secrets import SecretRule, default_redactor, redactor_with  # noqa: PLC0415  rules load at the first record

        secrets = self._settings.secrets
        if not (secrets.rules or secrets.exceptions):
            return default_redactor()
        own = [SecretRule(kind=rule.kind, regex=rule.regex, keywords=rule.keywords, group=rule.group) for rule in secrets.rules]
        return redactor_with(own, secrets.exceptions)

    @property
    def enabled(self) -> bool:
        """Whether anything is recorded at all."""
        return self._settings.agent.memory.enabled

    async def append(self, conversation_id: str, turns: Sequence[Turn], *, request_id: str | None = None, replace: bool = False) -> Result:
        """Record turns after the last one; those of a request that is known are recognised or replaced."""
        if request_id is not None and any(is_marked(turn) for turn in turns):
            await self._forget(conversation_id, request_id)
        kept, policy = await self._kept(conversation_id, turns)
        if not kept:
            return await self._skipped(conversation_id, turns)
        recording = Recording(drafts=self.drafts(kept, policy), request_id=request_id, replace=replace)
        return await self._now_or_later(conversation_id, kept, lambda: self.write(conversation_id, recording))

    async def _kept(self, conversation_id: str, turns: Sequence[Turn]) -> tuple[list[Turn], Policy]:
        """Return the turns of which something is recorded, and what that is."""
        policy = await self.policy(conversation_id)
        if policy.excludes:
            return [], policy
        kept = [turn for turn in turns if not is_marked(turn)]
        return [_as_kept(turn, policy) for turn in kept], policy

    async def policy(self, conversation_id: str) -> Policy:
        """Return the policy of a conversation's project, which never changes while a process lives."""
        if not self._settings.projects:
            return KEEPS_ALL
        if conversation_id not in self._policies:
            info = await self._store.conversations.get(self._workspace, conversation_id)
            if info is None:
                return KEEPS_ALL
            self._policies[conversation_id] = await conversation_policy(self._store, self._workspace, self._settings, info)
        return self._policies[conversation_id]

    async def begin(self, conversation: ConversationInfo, project: Project) -> ConversationInfo:
        """Create a conversation of which something is recorded, if there is none."""
        if not self.takes(conversation.id, project):
            return conversation
        return await self._store.conversations.create(self._workspace, conversation, project)

    def _comes_alone(self, turns: Sequence[Turn]) -> bool:
        """Tell whether turns can be recorded before anything is known of their conversation."""
        writes = self.enabled and self._settings.agent.memory.persistence.auto_save
        return writes and not self._settings.projects and len(turns) == 1 and not is_marked(turns[0])

    def takes(self, conversation_id: str, project: Project) -> bool:
        """Tell whether anything of a new conversation is recorded at all; remember where not, because no store will know."""
        policy = policy_of(self._settings, project)
        if policy.excludes:
            self._policies[conversation_id] = policy
        return self.enabled and not policy.excludes

    def drafts(self, turns: Sequence[Turn], policy: Policy) -> tuple[Draft, ...]:
        """Return turns as they are stored under a policy: with their passages, and when they go."""
        expires_at = policy.turn_expiry(self._clock.now())
        return tuple(Draft(turn=turn, passages=cut_passages(turn), expires_at=expires_at) for turn in turns)

    async def _now_or_later(self, conversation_id: str, turns: Sequence[Turn], write: Callable[[], Awaitable[Result]]) -> Result:
        """Write, or keep the writing back until `save`, or leave it, as the settings say."""
        if not self.enabled:
            return await self._skipped(conversation_id, turns)
        if self._settings.agent.memory.persistence.auto_save:
            return await write()
        foreseen = await self._foreseen(conversation_id, turns)
        self._pending.append((conversation_id, tuple(turns), write))
        return Result(conversation_id=conversation_id, status="pending", turns=foreseen)

    async def _skipped(self, conversation_id: str, turns: Sequence[Turn]) -> Result:
        try:
            placed = await self._foreseen(conversation_id, turns)
        except NotFoundError:  # a conversation that was begun while recording was off
            placed = tuple(place_turns(list(turns), Head(conversation_id=conversation_id)))
        return Result(conversation_id=conversation_id, status="skipped", turns=placed)

    async def held(self, request_id: str, conversation_id: str | None = None) -> list[Turn]:
        """Return the turns that are recorded of a request; several conversations may have one of the same id."""
        found = await self._store.trace.request(self._workspace, TraceScope(), [request_id])
        turns = await self._store.turns.by_id(self._workspace, [turn_id for turn_id, _ in found])
        return [turn for turn in turns if conversation_id in {None, turn.conversation_id}]

    async def _forget(self, conversation_id: str, request_id: str) -> None:
        """Remove what was recorded of a request that is not to be recorded after all, from the disk, too."""
        if gone := [turn.id for turn in await self.held(request_id, conversation_id)]:
            await self._store.requests.let_go(self._workspace, request_id, self._clock.now())
            await self._store.turns.remove(self._workspace, gone)
            await self._store.erase()

    async def write(self, conversation_id: str, recording: Recording) -> Result:
        """Record turns at the end of a conversation, or in the place of those of their request; `MovedError` when that is elsewhere."""
        started = time.perf_counter()
        outcome = await self._store.turns.record(self._workspace, conversation_id, recording, self._clock.now())
        return await self._told(conversation_id, recording, outcome, started)

    async def write_apart(self, conversation: ConversationInfo, project: Project | None, recording: Recording) -> Result | None:
        """Record a single turn without reading the history; None when it may be a part of that."""
        started = time.perf_counter()
        outcome = await self._store.turns.record_apart(self._workspace, conversation, project, recording, self._clock.now())
        return None if outcome is None else await self._told(conversation.id, recording, outcome, started)

    async def _told(self, conversation_id: str, recording: Recording, outcome: Outcome, started: float) -> Result:
        if outcome.status == "skipped":
            return await self._skipped(conversation_id, [draft.turn for draft in recording.drafts])
        self._on_recorded(len(outcome.turns), time.perf_counter() - started)
        if outcome.status == "moved":
            msg = f"conversation {conversation_id} moved on while it was read: try again"
            raise MovedError(msg)
        written_to = outcome.turns[0].conversation_id if outcome.turns else conversation_id
        return Result(conversation_id=written_to, status=outcome.status, turns=outcome.turns)

    async def _foreseen(self, conversation_id: str, turns: Sequence[Turn]) -> tuple[Turn, ...]:
        """Place turns as they would be placed now, after those that wait, without writing them."""
        held = await self._store.turns.outline(self._workspace, conversation_id, TurnRange(limit=0))
        waiting = [turn for owner, earlier, _ in self._pending if owner == conversation_id for turn in earlier]
        head = Head(
            conversation_id=conversation_id,
            next_index=held.next_index + len(waiting),
            next_sequence=held.next_sequence + sum(len(turn.messages) for turn in waiting),
        )
        return tuple(place_turns(list(turns), head))

    async def save(self) -> list[Result]:
        """Write what was kept back, in order; what belongs to a conversation that is gone is given up, and said so."""
        waiting, self._pending = self._pending, []
        saved: list[Result] = []
        gone: NotFoundError | None = None
        for n, (_, _, write) in enumerate(waiting):
            try:
                saved.append(await write())
            except NotFoundError as error:
                gone = error
            except RecollectError:
                self._pending = waiting[n:] + self._pending
                raise
        if gone is not None:
            raise gone
        return saved

    async def history(
        self,
        conversation: ConversationInfo,
        turns: Sequence[Turn],
        *,
        request_id: str | None = None,
        replace: bool = False,
        on_edit: OnEdit = "branch",
        project: Project | None = None,
        step: Step | None = None,
    ) -> Result:
        """Record what is new in a payload that may repeat the history so far; never lost, never doubled.

        A conversation that is missing is begun in the project, if one is given. With a step nothing is written unless the
        request is where that goes on from, which is an `OvertakenError`.
        """
        if request_id is not None and is_marked(turns[-1]):
            await self._forget(conversation.id, request_id)
        if all(is_marked(turn) for turn in turns):
            return await self._skipped(conversation.id, turns)
        is_new = False
        if project is not None and not self._comes_alone(turns):
            is_new = await self.begin(conversation, project) == conversation
            project = None
        listed, _ = await self._kept(conversation.id, turns)
        if not listed:
            return await self._skipped(conversation.id, turns)
        asks_for_none = is_marked(turns[-1])  # what is left is the history before the turn that was asked for
        if not self._settings.agent.memory.persistence.auto_save:  # what is known of a request is never kept back
            if step is not None:
                await self._store.requests.step(self._workspace, step, self._clock.now())
            step = None
        told = Telling(request_id=request_id, replace=replace, on_edit=on_edit, adds=not asks_for_none, step=step)

        async def write() -> Result:
            written = History(self._store, self._workspace, self._clock, self).record(conversation, project, listed, told)
            result = await (self._or_never_begun(conversation.id, written) if is_new else written)
            return _replace(result, status="skipped") if asks_for_none and result.status == "unchanged" else result

        return await self._now_or_later(conversation.id, listed, write)

    async def _or_never_begun(self, conversation_id: str, written: Awaitable[Result]) -> Result:
        """Write to a conversation that was begun for it; when nothing is written, it goes again."""
        is_written = False
        try:
            result = await written
            is_written = result.status != "unchanged"
        finally:
            if not is_written:
                await self._store.conversations.drop_empty(self._workspace, conversation_id)
        return result

    async def rewrite(self, conversation_id: str, index: int, turn_id: str, was: str, turn: Turn, step: Step | None = None) -> Turn:
        """Replace one turn in its place; raises `MovedError` when it, or the request that takes a step with it, has changed meanwhile."""
        placed = _replace(turn, id=turn_id, conversation_id=conversation_id, index=index)
        policy = await self.policy(conversation_id)
        draft = self.drafts([_as_kept(placed, policy)], policy)[0]
        started = time.perf_counter()
        written = await self._store.turns.rewrite(self._workspace, draft, was, self._clock.now(), step)
        self._on_recorded(1, time.perf_counter() - started)
        if written is None:
            msg = f"turn {index} of conversation {conversation_id} changed while it was read: try again"
            raise MovedError(msg)
        return written

    async def branch(self, conversation_id: str, from_turn: int, title: str | None, branch_id: str) -> ConversationInfo:
        """Fork a conversation after a turn; the branch inherits everything up to and including it.

        What was distilled of the parent stays there, lest it outlive what it tells of; a title that somebody gave goes along.
        """
        held = await self._store.conversations.held(self._workspace, conversation_id)
        if held is None:
            msg = f"there is no conversation {conversation_id!r} to branch from in workspace {self._workspace!r}"
            raise NotFoundError(msg)
        parent, now = held.conversation, self._clock.now()
        given = None if held.has_own_title else parent.title
        forked = _replace(
            parent, id=branch_id, title=title or given, summary=None, status="active", external_id=None, branch_of=parent.id,
            from_turn=from_turn, created_at=now, updated_at=now,
        )  # fmt: skip
        return await self._store.conversations.create(self._workspace, forked, Project(id=parent.project_id, name=parent.project))

    async def restore(self, conversation: ConversationInfo, project: Project, turns: Sequence[Turn], *, replace: bool) -> ConversationInfo:
        """Create a conversation with its turns at the places they carry."""
        policy = policy_in(self._settings, project, conversation.cwd)
        if policy.excludes:
            msg = f"nothing of the project {project.name!r} is recorded: `exclude` in the configuration says so"
            raise NotAllowedError(msg)
        kept = [_as_kept(turn, policy) for turn in turns if not is_marked(turn)]
        if policy.withholds:  # its summary may quote what is not kept; it is distilled again from what is
            conversation = _replace(conversation, summary=None)
        drafts = self.drafts(kept, policy)
        return await self._store.turns.restore(self._workspace, conversation, project, drafts, replace=replace)


def _as_kept(turn: Turn, policy: Policy) -> Turn:
    """Return a turn as its project's privacy has it kept."""
    if not policy.withholds:
        return turn
    from recollect.capture.withholding import withheld  # noqa: PLC0415  all readers of payloads come with it

    return withheld(turn)
