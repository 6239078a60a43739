"""Turns → the store: appended, recognised as history, forked or replaced; the writing half of `Memory`.

Everything is cleaned by `capture` before it comes here, and decided again inside the store's transaction, so that two
processes that record at once lose and double nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from recollect.capture.clean import Cleaner
from recollect.capture.turns import Reading
from recollect.distill.passages import cut_passages
from recollect.errors import NotFoundError, StoreBusyError
from recollect.identity import identity
from recollect.limits import HEAD_MOVED_ATTEMPTS_MAX
from recollect.model import ConversationInfo, Project, Turn
from recollect.placing import Head, outline, place_turns
from recollect.recognition import Recognition, recognise
from recollect.store.protocol import Draft, Recording, TurnRange

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.capture.paths import Place
    from recollect.capture.secrets import Redactor
    from recollect.clock import Clock
    from recollect.config import Settings
    from recollect.store.protocol import Outline, Store, TurnOutline

_replace = msgspec.structs.replace
OnEdit = Literal["branch", "replace"]
Status = Literal["created", "unchanged", "replaced", "branched", "pending", "skipped"]


class MovedError(StoreBusyError):
    """The conversation moved on between reading and writing; whoever sees this reads again."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of turns, and in which conversation."""

    conversation_id: str
    status: Status
    turns: tuple[Turn, ...] = ()


class Recorder:
    """Writes turns of one workspace."""

    def __init__(self, store: Store, workspace: str, settings: Settings, clock: Clock) -> None:
        self._store = store
        self._workspace = workspace
        self._settings = settings
        self._clock = clock
        self._redactor: Redactor | None = None
        self._pending: list[tuple[str, Recording]] = []

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
        return await self._write(conversation_id, Recording(drafts=_drafts(turns), request_id=request_id, replace=replace))

    async def _write(self, conversation_id: str, recording: Recording) -> Result:
        if not self.enabled:
            return await self._skipped(conversation_id, recording)
        if not self._settings.agent.memory.persistence.auto_save:
            turns = await self._foreseen(conversation_id, recording)
            self._pending.append((conversation_id, recording))
            return Result(conversation_id=conversation_id, status="pending", turns=turns)
        return await self._stored(conversation_id, recording)

    async def _skipped(self, conversation_id: str, recording: Recording) -> Result:
        try:
            turns = await self._foreseen(conversation_id, recording)
        except NotFoundError:  # a conversation that was begun while recording was off
            turns = tuple(place_turns([draft.turn for draft in recording.drafts], Head(conversation_id=conversation_id)))
        return Result(conversation_id=conversation_id, status="skipped", turns=turns)

    async def _stored(self, conversation_id: str, recording: Recording) -> Result:
        outcome = await self._store.turns.record(self._workspace, conversation_id, recording, self._clock.now())
        if outcome.status == "moved":
            msg = f"conversation {conversation_id} moved on while it was read: try again"
            raise MovedError(msg)
        written_to = outcome.turns[0].conversation_id if outcome.turns else conversation_id
        return Result(conversation_id=written_to, status=outcome.status, turns=outcome.turns)

    async def _foreseen(self, conversation_id: str, recording: Recording) -> tuple[Turn, ...]:
        """Place turns as they would be placed now, without writing them."""
        held = await self._store.turns.outline(self._workspace, conversation_id, TurnRange(limit=0))
        waiting = [draft.turn for owner, earlier in self._pending if owner == conversation_id for draft in earlier.drafts]
        head = Head(
            conversation_id=conversation_id,
            next_index=held.next_index + len(waiting),
            next_sequence=held.next_sequence + sum(len(turn.messages) for turn in waiting),
        )
        return tuple(place_turns([draft.turn for draft in recording.drafts], head))

    async def save(self) -> int:
        """Write the turns that were kept back; returns how many."""
        count = 0
        while self._pending:
            conversation_id, recording = self._pending[0]
            count += len((await self._stored(conversation_id, recording)).turns)
            self._pending.pop(0)
        return count

    async def history(
        self,
        conversation: ConversationInfo,
        turns: Sequence[Turn],
        *,
        request_id: str | None = None,
        replace: bool = False,
        on_edit: OnEdit = "branch",
    ) -> Result:
        """Record what is new in a payload that may repeat the history so far; never lost, never doubled."""
        if not self.enabled:
            return await self._skipped(conversation.id, Recording(drafts=_drafts(turns)))
        for _ in range(HEAD_MOVED_ATTEMPTS_MAX):
            try:
                return await self._history_once(conversation, list(turns), request_id, replace=replace, on_edit=on_edit)
            except MovedError:
                continue
        msg = f"conversation {conversation.id} kept changing under {HEAD_MOVED_ATTEMPTS_MAX} attempts to record: try again"
        raise StoreBusyError(msg)

    async def _history_once(
        self, conversation: ConversationInfo, turns: list[Turn], request_id: str | None, *, replace: bool, on_edit: OnEdit
    ) -> Result:
        if len(turns) == 1 and await self._begins_otherwise(conversation.id, turns[0]):
            return await self.append(conversation.id, _numbered(turns, request_id), request_id=request_id, replace=replace)
        target, outlined = await self._target(conversation, turns, request_id)
        held, next_index = outlined.turns, outlined.next_index
        known = [turn.index for turn in held if request_id is not None and turn.request_id == request_id]
        if known:
            before = [turn for turn in held if turn.index < known[0]]
            found = recognise(before, turns)
            new = turns[found.new_from :] if found.kind in {"extends", "edited"} and found.new_from == len(before) else turns
            return await self.append(target, _numbered(new, request_id), request_id=request_id, replace=replace)
        found = recognise(held, turns)
        if found.kind == "append":
            return await self.append(target, _numbered(turns, request_id), request_id=request_id, replace=replace)
        if found.kind == "known":
            if request_id is None:
                return Result(conversation_id=target, status="unchanged")
            return await self.append(target, _numbered(turns[-1:], request_id), request_id=request_id)
        if found.kind == "edited":
            return await self._edited(target, outlined, found, turns, request_id, on_edit)
        new = turns[found.new_from :]
        if found.kind == "grows":
            last = held[found.new_from - found.forgotten]
            if len(new) > 1 or request_id is None or last.request_id in {None, request_id}:
                grown = await self._grow(last, new[0])
                rest = await self._after_growth(target, new[1:], request_id, next_index)
                return Result(conversation_id=target, status="replaced" if not rest else "created", turns=(grown, *rest))
        recording = Recording(drafts=_drafts(_numbered(new, request_id)), request_id=request_id, expected_index=next_index)
        return await self._write(target, recording)

    async def _begins_otherwise(self, conversation_id: str, turn: Turn) -> bool:
        """Tell, without reading the whole history, whether a single turn is none of it."""
        held = await self._store.turns.outline(self._workspace, conversation_id, TurnRange(limit=1))
        return not held.turns or held.turns[0].said[:1] != tuple(outline(turn.messages)[:1])

    async def _after_growth(self, target: str, new: list[Turn], request_id: str | None, next_index: int) -> tuple[Turn, ...]:
        if not new:
            return ()
        recording = Recording(drafts=_drafts(_numbered(new, request_id)), request_id=request_id, expected_index=next_index)
        return (await self._write(target, recording)).turns

    async def _target(self, conversation: ConversationInfo, turns: list[Turn], request_id: str | None) -> tuple[str, Outline]:
        """Return the conversation, or the branch below it, that a payload continues, with its outline."""
        held = await self._store.turns.outline(self._workspace, conversation.id, TurnRange())
        if recognise(held.turns, turns).kind not in {"edited", "append"} or not held.turns:
            return conversation.id, held
        for branch in await self._store.conversations.branches(self._workspace, conversation.id):
            found_id, found = await self._target(branch, turns, request_id)
            own = [turn for turn in found.turns if turn.conversation_id == found_id]
            holds_request = request_id is not None and any(turn.request_id == request_id for turn in own)
            if holds_request or recognise(found.turns, turns).kind not in {"edited", "append"}:
                return found_id, found
        return conversation.id, held

    async def _grow(self, held: TurnOutline, turn: Turn) -> Turn:
        """Put more into the last turn; its request stays its own."""
        return await self.rewrite(held.conversation_id, held.index, held.id, held.content_hash, _replace(turn, request_id=held.request_id))

    async def rewrite(self, conversation_id: str, index: int, turn_id: str, was: str, turn: Turn) -> Turn:
        """Replace one turn in its place; raises `MovedError` when it has changed meanwhile."""
        placed = _replace(turn, id=turn_id, conversation_id=conversation_id, index=index)
        draft = Draft(turn=placed, passages=cut_passages(placed))
        written = await self._store.turns.rewrite(self._workspace, draft, was, self._clock.now())
        if written is None:
            msg = f"turn {index} of conversation {conversation_id} changed while it was read: try again"
            raise MovedError(msg)
        return written

    async def _edited(
        self, target: str, held: Outline, found: Recognition, turns: list[Turn], request_id: str | None, on_edit: OnEdit
    ) -> Result:
        new = _numbered(turns[found.new_from :], request_id)
        if on_edit == "replace":
            recording = Recording(
                drafts=_drafts(new),
                request_id=request_id,
                truncate_from=held.turns[found.new_from - found.forgotten].index,
                expected_index=held.next_index,
            )
            return await self._write(target, recording)
        inherited = found.new_from - found.forgotten
        from_turn = held.turns[inherited - 1].index if inherited else -1
        branch = await self.branch(target, from_turn, None, identity("branch", target, from_turn, *outline(new[0].messages)[0]))
        result = await self.append(branch.id, new, request_id=request_id)
        return _replace(result, status="branched" if result.status == "created" else result.status)

    async def branch(self, conversation_id: str, from_turn: int, title: str | None, branch_id: str) -> ConversationInfo:
        """Fork a conversation after a turn; the branch inherits everything up to and including it."""
        parent = await self._store.conversations.get(self._workspace, conversation_id)
        if parent is None:
            msg = f"there is no conversation {conversation_id!r} to branch from in workspace {self._workspace!r}"
            raise NotFoundError(msg)
        now = self._clock.now()
        forked = _replace(
            parent, id=branch_id, title=title or parent.title, status="active", external_id=None, branch_of=parent.id,
            from_turn=from_turn, created_at=now, updated_at=now,
        )  # fmt: skip
        return await self._store.conversations.create(self._workspace, forked, Project(id=parent.project_id, name=parent.project))

    async def restore(self, conversation_id: str, turns: Sequence[Turn], at: datetime) -> None:
        """Record turns at the places they carry."""
        recording = Recording(drafts=_drafts(turns), keep_places=True)
        await self._store.turns.record(self._workspace, conversation_id, recording, at)


def _drafts(turns: Sequence[Turn]) -> tuple[Draft, ...]:
    return tuple(Draft(turn=turn, passages=cut_passages(turn)) for turn in turns)


def _numbered(turns: Sequence[Turn], request_id: str | None) -> list[Turn]:
    """Let turns share a request id, told apart by their ordinal."""
    return [_replace(turn, request_id=request_id, request_ordinal=n if request_id is not None else 0) for n, turn in enumerate(turns)]
