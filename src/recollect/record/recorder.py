"""Turns → the store: appended, recognised as history, forked or replaced; the writing half of `Memory`.

Everything is cleaned by `capture` before it comes here, and decided again inside the store's transaction, so that two
processes that record at once lose and double nothing.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, TypeVar

import msgspec

from recollect.answers import Recorded
from recollect.capture.clean import Cleaner
from recollect.capture.reading import Reading
from recollect.distill.keeping import conversation_policy, policy_in
from recollect.distill.passages import cut_passages
from recollect.errors import NotAllowedError, NotFoundError, RecollectError, StoreBusyError
from recollect.identity import identity
from recollect.limits import HEAD_MOVED_ATTEMPTS_MAX
from recollect.model import Checkpoint, CodeChange, ContextFile, ConversationInfo, Project, Turn
from recollect.placing import Head, outline, place_turns
from recollect.policies import KEEPS_ALL, Policy, is_marked, policy_of
from recollect.record.recognition import Recognition, recognise
from recollect.store.shapes import Draft, Recording, TurnRange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from recollect.capture.paths import Place
    from recollect.capture.secrets import Redactor
    from recollect.clock import Clock
    from recollect.settings import Settings
    from recollect.store import Store
    from recollect.store.shapes import Outcome, Outline, TurnOutline

_replace = msgspec.structs.replace
_Part = TypeVar("_Part", ContextFile, CodeChange, Checkpoint)
OnEdit = Literal["branch", "replace"]
Status = Literal["created", "unchanged", "replaced", "branched", "pending", "skipped"]


class MovedError(StoreBusyError):
    """The conversation moved on between reading and writing; whoever sees this reads again."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of turns, and in which conversation."""

    conversation_id: str
    status: Status
    turns: tuple[Turn, ...] = ()

    def recorded(self, request_id: str | None, notes: dict[str, int]) -> Recorded:
        """Return it as callers are told."""
        ids = tuple(turn.id for turn in self.turns)
        return Recorded(conversation_id=self.conversation_id, status=self.status, request_id=request_id, turn_ids=ids, notes=notes)


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
        kept, policy = await self._kept(conversation_id, turns)
        if not kept:
            return await self._skipped(conversation_id, turns)
        recording = Recording(drafts=self._drafts(kept, policy), request_id=request_id, replace=replace)
        return await self._now_or_later(conversation_id, kept, lambda: self._stored(conversation_id, recording))

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

    def _drafts(self, turns: Sequence[Turn], policy: Policy) -> tuple[Draft, ...]:
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

    async def _stored(self, conversation_id: str, recording: Recording) -> Result:
        started = time.perf_counter()
        outcome = await self._store.turns.record(self._workspace, conversation_id, recording, self._clock.now())
        return await self._told(conversation_id, recording, outcome, started)

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
    ) -> Result:
        """Record what is new in a payload that may repeat the history so far; never lost, never doubled.

        A conversation that is missing is begun in the project, if one is given.
        """
        if project is not None and not self._comes_alone(turns):
            await self.begin(conversation, project)
            project = None
        listed, _ = await self._kept(conversation.id, turns)
        if not listed:
            return await self._skipped(conversation.id, turns)
        asks_for_none = is_marked(turns[-1])  # what is left is the history before the turn that was asked for

        async def write() -> Result:
            if len(listed) == 1 and (apart := await self._apart(conversation, project, listed, request_id, replace=replace)) is not None:
                return apart
            result = await self._history(conversation, listed, request_id, replace=replace, on_edit=on_edit, adds=not asks_for_none)
            return _replace(result, status="skipped") if asks_for_none and result.status == "unchanged" else result

        return await self._now_or_later(conversation.id, listed, write)

    async def _history(
        self, conversation: ConversationInfo, turns: list[Turn], request_id: str | None, *, replace: bool, on_edit: OnEdit, adds: bool
    ) -> Result:
        for _ in range(HEAD_MOVED_ATTEMPTS_MAX):
            try:
                return await self._history_once(conversation, turns, request_id, replace=replace, on_edit=on_edit, adds=adds)
            except MovedError:
                continue
        msg = f"conversation {conversation.id} kept changing under {HEAD_MOVED_ATTEMPTS_MAX} attempts to record: try again"
        raise StoreBusyError(msg)

    async def _history_once(
        self, conversation: ConversationInfo, turns: list[Turn], request_id: str | None, *, replace: bool, on_edit: OnEdit, adds: bool
    ) -> Result:
        target, held, found = await self._target(conversation, turns, request_id)
        known = [turn.index for turn in held.turns if request_id is not None and turn.request_id == request_id]
        if known:
            before = [turn for turn in held.turns if turn.index < known[0]]
            earlier = recognise(before, turns)
            new = turns if earlier.kind == "append" else turns[earlier.new_from :]
            settles = on_edit == "replace" and turns[-1].status == "complete"
            return await self._settled(target, before if settles else [], earlier, new, request_id, replace=replace)
        new = turns[found.new_from :]
        if found.kind == "stale" or (found.kind == "known" and (request_id is None or not adds)):
            return Result(conversation_id=target, status="unchanged")
        if found.kind == "known":
            return await self._added(target, turns[-1:], request_id, held.next_index, replace=replace)
        if found.kind == "edited":
            return await self._edited(target, held, found, new, request_id, on_edit)
        last = held.turns[-1] if held.turns else None
        if found.kind == "grows" and last is not None:
            if last.conversation_id != target:  # an inherited turn is its owner's to change
                edited = Recognition(kind="edited", new_from=found.new_from, matched=len(held.turns) - 1)
                return await self._edited(target, held, edited, new, request_id, on_edit)
            request = last.request_id if len(new) > 1 else request_id or last.request_id  # the newest call that made it grow
            grown = await self._grow(last, new[0], request)
            rest = (await self._added(target, new[1:], request_id, held.next_index, replace=False)).turns if len(new) > 1 else ()
            return Result(conversation_id=target, status="created" if rest else "replaced", turns=(grown, *rest))
        return await self._added(target, new, request_id, held.next_index, replace=replace)

    async def _settled(
        self, target: str, before: list[TurnOutline], found: Recognition, new: list[Turn], request_id: str | None, *, replace: bool
    ) -> Result:
        """Record the last state of a request that has turns already; those before it that it tells otherwise are not told twice.

        As long as a request is open they stay, since its pieces may come in any order.
        """
        gone = await self._outdated(target, before, found, new)
        if gone and found.kind == "grows" and len(new) > 1:
            await self._grow(gone[0], new[0], gone[0].request_id)
            new, gone = new[1:], []
        elif gone and found.kind == "grows":
            new = [await self._longer(gone[0], new[0], request_id)]
        result = await self._added(target, new, request_id, None, replace=replace)
        if gone and result.status != "skipped":
            await self._store.turns.remove(self._workspace, [turn.id for turn in gone])
        return result

    async def _outdated(self, target: str, before: list[TurnOutline], found: Recognition, new: list[Turn]) -> list[TurnOutline]:
        """Return the turns that a history tells with more in them, or otherwise; none that another request or conversation needs."""
        gone: list[TurnOutline] = []
        if found.kind == "grows":
            gone = before[-1:]
        elif found.kind == "edited" and _is_history(before, found, new):
            gone = before[found.matched :]
        if not gone or any(turn.conversation_id != target for turn in gone):
            return []
        branches = await self._store.conversations.branches(self._workspace, target)
        if any(branch.from_turn is not None and branch.from_turn >= gone[0].index for branch in branches):
            return []
        requests = {turn.request_id for turn in gone if turn.request_id is not None}
        is_open = [await self._store.requests.get(self._workspace, one) is not None for one in requests]
        return [] if any(is_open) else gone

    async def _added(
        self, conversation_id: str, turns: list[Turn], request_id: str | None, next_index: int | None, *, replace: bool
    ) -> Result:
        """Record turns at the end, which is where the caller saw it."""
        drafts = self._drafts(_numbered(turns, request_id), await self.policy(conversation_id))
        recording = Recording(drafts=drafts, request_id=request_id, replace=replace, expected_index=next_index)
        return await self._stored(conversation_id, recording)

    async def _apart(
        self, conversation: ConversationInfo, project: Project | None, turns: list[Turn], request_id: str | None, *, replace: bool
    ) -> Result | None:
        """Record a single turn without reading the history; None when it may be a part of that."""
        drafts = self._drafts(_numbered(turns, request_id), await self.policy(conversation.id))
        recording = Recording(drafts=drafts, request_id=request_id, replace=replace)
        started = time.perf_counter()
        outcome = await self._store.turns.record_apart(self._workspace, conversation, project, recording, self._clock.now())
        return None if outcome is None else await self._told(conversation.id, recording, outcome, started)

    async def _target(self, conversation: ConversationInfo, turns: list[Turn], request_id: str | None) -> tuple[str, Outline, Recognition]:
        """Return the conversation, or the branch below it, that shares the most with a payload, and how it goes on from there."""
        held = await self._store.turns.outline(self._workspace, conversation.id, TurnRange())
        best = conversation.id, held, recognise(held.turns, turns)
        if best[2].kind not in {"edited", "append"}:
            return best
        for branch in await self._store.conversations.branches(self._workspace, conversation.id):
            found = await self._target(branch, turns, request_id)
            own = [turn.request_id for turn in found[1].turns if turn.conversation_id == found[0]]
            if request_id is not None and request_id in own:
                return found
            if _closeness(found[2]) > _closeness(best[2]):
                best = found
        return best

    async def _grow(self, held: TurnOutline, turn: Turn, request_id: str | None) -> Turn:
        """Put more into the last turn; the files, changes and checkpoints it had stay, and new ones are added."""
        longer = await self._longer(held, turn, request_id)
        return await self.rewrite(held.conversation_id, held.index, held.id, held.content_hash, longer)

    async def _longer(self, held: TurnOutline, turn: Turn, request_id: str | None) -> Turn:
        current = (await self._store.turns.by_id(self._workspace, [held.id]) or [turn])[0]
        return _replace(
            turn,
            request_id=request_id,
            request_ordinal=current.request_ordinal if request_id == current.request_id else 0,
            started_at=current.started_at,
            context_files=_united(current.context_files, turn.context_files),
            changes=_united(current.changes, turn.changes),
            checkpoints=_united(current.checkpoints, turn.checkpoints),
            chat_mode=current.chat_mode or turn.chat_mode,
            request_attempt_id=current.request_attempt_id,
            base_chat_id=current.base_chat_id,
            related_artifacts=current.related_artifacts,
        )

    async def rewrite(self, conversation_id: str, index: int, turn_id: str, was: str, turn: Turn) -> Turn:
        """Replace one turn in its place; raises `MovedError` when it has changed meanwhile."""
        placed = _replace(turn, id=turn_id, conversation_id=conversation_id, index=index)
        policy = await self.policy(conversation_id)
        draft = self._drafts([_as_kept(placed, policy)], policy)[0]
        started = time.perf_counter()
        written = await self._store.turns.rewrite(self._workspace, draft, was, self._clock.now())
        self._on_recorded(1, time.perf_counter() - started)
        if written is None:
            msg = f"turn {index} of conversation {conversation_id} changed while it was read: try again"
            raise MovedError(msg)
        return written

    async def _edited(
        self, target: str, held: Outline, found: Recognition, new: list[Turn], request_id: str | None, on_edit: OnEdit
    ) -> Result:
        inherited = found.matched
        if on_edit == "replace":
            drafts = self._drafts(_numbered(new, request_id), await self.policy(target))
            first = held.turns[inherited].index
            recording = Recording(drafts=drafts, request_id=request_id, truncate_from=first, expected_index=held.next_index)
            return await self._stored(target, recording)
        from_turn = held.turns[inherited - 1].index if inherited else -1
        words = [part for turn in new for message in outline(turn.messages) for part in message]
        branch = await self.branch(target, from_turn, None, identity("branch", target, from_turn, request_id, *words))
        result = await self._added(branch.id, new, request_id, from_turn + 1, replace=False)
        return _replace(result, status="branched" if result.status == "created" else result.status)

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
        drafts = self._drafts(kept, policy)
        return await self._store.turns.restore(self._workspace, conversation, project, drafts, replace=replace)


def _as_kept(turn: Turn, policy: Policy) -> Turn:
    """Return a turn as its project's privacy has it kept."""
    if not policy.withholds:
        return turn
    from recollect.capture.withholding import withheld  # noqa: PLC0415  all readers of payloads come with it

    return withheld(turn)


def _closeness(found: Recognition) -> tuple[bool, int]:
    """Rank how a payload continues conversations: one that it goes on with before one it departs from, the later the better."""
    return found.kind not in {"edited", "append"}, found.matched if found.kind != "append" else -1


def _is_history(before: list[TurnOutline], found: Recognition, new: list[Turn]) -> bool:
    """Tell whether turns that depart from a conversation are its history, edited; people may begin twice with the same words."""
    told = {tuple(outline(turn.messages)) for turn in new[1:]}
    return found.matched > 0 or (len(new) > 1 and (len(before) == 1 or any(turn.said in told for turn in before[1:])))


def _united(before: tuple[_Part, ...], more: tuple[_Part, ...]) -> tuple[_Part, ...]:
    """Return the parts a turn had and those that came since; ids and times do not tell two apart."""
    known = {_replace(part, id="", timestamp=None) for part in before}
    return (*before, *(part for part in more if _replace(part, id="", timestamp=None) not in known))


def _numbered(turns: Sequence[Turn], request_id: str | None) -> list[Turn]:
    """Let turns share a request id, told apart by their ordinal."""
    return [_replace(turn, request_id=request_id, request_ordinal=n if request_id is not None else 0) for n, turn in enumerate(turns)]
