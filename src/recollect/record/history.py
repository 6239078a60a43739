"""A payload that repeats the history so far → what is new in it, appended, grown, replaced or forked; never lost, never doubled."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from recollect.errors import StoreBusyError
from recollect.identity import identity
from recollect.limits import HEAD_MOVED_ATTEMPTS_MAX
from recollect.model import Checkpoint, CodeChange, ContextFile, ConversationInfo, Project, Turn
from recollect.placing import outline
from recollect.record.recognition import Recognition, recognise
from recollect.record.shapes import MovedError, Result, Telling
from recollect.store.shapes import Recording, TurnRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.clock import Clock
    from recollect.record.recorder import Recorder
    from recollect.store import Store
    from recollect.store.shapes import Outline, Step, TurnOutline

_replace = msgspec.structs.replace
_Part = TypeVar("_Part", ContextFile, CodeChange, Checkpoint)


class History:
    """What is known of the conversations of one workspace, compared with what is told of them."""

    def __init__(self, store: Store, workspace: str, clock: Clock, recorder: Recorder) -> None:
        self._store = store
        self._workspace = workspace
        self._clock = clock
        self._recorder = recorder

    async def record(self, conversation: ConversationInfo, project: Project | None, turns: list[Turn], told: Telling) -> Result:
        """Record what is new; a conversation that is missing is begun in the project, with the only turn that is told of it."""
        if len(turns) == 1:  # it may continue nothing, which is cheaper to find out than to read the history
            recording = await self._recording(conversation.id, turns, told)
            apart = await self._recorder.write_apart(conversation, project, _replace(recording, replace=told.replace))
            if apart is not None:
                return apart
        for _ in range(HEAD_MOVED_ATTEMPTS_MAX):
            try:
                return await self._once(conversation, turns, told)
            except MovedError:
                continue
        msg = f"conversation {conversation.id} kept changing under {HEAD_MOVED_ATTEMPTS_MAX} attempts to record: try again"
        raise StoreBusyError(msg)

    async def _once(self, conversation: ConversationInfo, turns: list[Turn], told: Telling) -> Result:
        request_id = told.request_id
        target, held, found = await self._target(conversation, turns, request_id)
        known = [turn.index for turn in held.turns if request_id is not None and turn.request_id == request_id]
        if known:
            before = [turn for turn in held.turns if turn.index < known[0]]
            earlier = recognise(before, turns)
            new = turns if earlier.kind == "append" else turns[earlier.new_from :]
            settles = told.on_edit == "replace" and turns[-1].status == "complete"
            return await self._settled(target, before if settles else [], earlier, new, told)
        new = turns[found.new_from :]
        if found.kind == "stale" or (found.kind == "known" and (request_id is None or not told.adds)):
            if told.step is not None:
                await self._store.requests.step(self._workspace, told.step, self._clock.now())
            return Result(conversation_id=target, status="unchanged")
        if found.kind == "known":
            return await self._added(target, turns[-1:], told, held.next_index)
        if found.kind == "edited":
            return await self._edited(target, held, found, new, told)
        last = held.turns[-1] if held.turns else None
        if found.kind == "grows" and last is not None:
            if last.conversation_id != target:  # an inherited turn is its owner's to change
                edited = Recognition(kind="edited", new_from=found.new_from, matched=len(held.turns) - 1)
                return await self._edited(target, held, edited, new, told)
            if len(new) == 1:
                grown = await self._grow(last, new[0], request_id or last.request_id, told.step)  # the newest call that made it grow
                return Result(conversation_id=target, status="replaced", turns=(grown,))
            grown = await self._grow(last, new[0], last.request_id)
            rest = await self._added(target, new[1:], _replace(told, replace=False), held.next_index)
            return Result(conversation_id=target, status="created" if rest.turns else "replaced", turns=(grown, *rest.turns))
        return await self._added(target, new, told, held.next_index)

    async def _settled(self, target: str, before: list[TurnOutline], found: Recognition, new: list[Turn], told: Telling) -> Result:
        """Record the last state of a request that has turns already; those before it that it tells otherwise are not told twice.

        As long as a request is open they stay, since its pieces may come in any order.
        """
        gone = await self._outdated(target, before, found, new)
        if gone and found.kind == "grows" and len(new) > 1:
            await self._grow(gone[0], new[0], gone[0].request_id)
            new, gone = new[1:], []
        elif gone and found.kind == "grows":
            new = [await self._longer(gone[0], new[0], told.request_id)]
        result = await self._added(target, new, told, None)
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

    async def _added(self, conversation_id: str, turns: list[Turn], told: Telling, next_index: int | None) -> Result:
        """Record turns at the end, which is where the caller saw it."""
        recording = await self._recording(conversation_id, turns, told)
        return await self._recorder.write(conversation_id, _replace(recording, replace=told.replace, expected_index=next_index))

    async def _recording(self, conversation_id: str, turns: list[Turn], told: Telling) -> Recording:
        drafts = self._recorder.drafts(_numbered(turns, told.request_id), await self._recorder.policy(conversation_id))
        return Recording(drafts=drafts, request_id=told.request_id, step=told.step)

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

    async def _grow(self, held: TurnOutline, turn: Turn, request_id: str | None, step: Step | None = None) -> Turn:
        """Put more into the last turn; the files, changes and checkpoints it had stay, and new ones are added."""
        longer = await self._longer(held, turn, request_id)
        return await self._recorder.rewrite(held.conversation_id, held.index, held.id, held.content_hash, longer, step)

    async def _longer(self, held: TurnOutline, turn: Turn, request_id: str | None) -> Turn:
        from recollect.capture.pairing import told_again  # noqa: PLC0415  all readers of payloads come with it

        current = (await self._store.turns.by_id(self._workspace, [held.id]) or [turn])[0]
        changes, more = told_again(current.changes, turn.changes)
        return _replace(
            turn,
            request_id=request_id,
            request_ordinal=current.request_ordinal if request_id == current.request_id else 0,
            started_at=current.started_at,
            context_files=_united(current.context_files, turn.context_files),
            changes=_united(changes, more),
            checkpoints=_united(current.checkpoints, turn.checkpoints),
            chat_mode=current.chat_mode or turn.chat_mode,
            request_attempt_id=current.request_attempt_id,
            base_chat_id=current.base_chat_id,
            related_artifacts=current.related_artifacts,
        )

    async def _edited(self, target: str, held: Outline, found: Recognition, new: list[Turn], told: Telling) -> Result:
        inherited = found.matched
        if told.on_edit == "replace":
            first = held.turns[inherited].index
            recording = await self._recording(target, new, told)
            return await self._recorder.write(target, _replace(recording, truncate_from=first, expected_index=held.next_index))
        from_turn = held.turns[inherited - 1].index if inherited else -1
        words = [part for turn in new for message in outline(turn.messages) for part in message]
        branch = await self._recorder.branch(target, from_turn, None, identity("branch", target, from_turn, told.request_id, *words))
        result = await self._added(branch.id, new, _replace(told, replace=False), from_turn + 1)
        return _replace(result, status="branched" if result.status == "created" else result.status)


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
