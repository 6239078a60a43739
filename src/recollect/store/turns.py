"""Turns recorded, rewritten, restored and read through a lineage: what it means, for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.clock import in_utc
from recollect.errors import ConflictError
from recollect.placing import checksum, place_turn, unplaced
from recollect.store.conversations import create
from recollect.store.integrity import in_order, intact
from recollect.store.lineage import asked_of, counted_anew, counted_below, existing, not_found, spans_of
from recollect.store.recording import checked_span, is_apart, last_message, plan
from recollect.store.removal import forget_before, remove, remove_turns
from recollect.store.requests import check_step, take_step
from recollect.store.shapes import Advance, Draft, Outcome, Outline, PlacedCall, Recording, Span, StoredTurn, TurnOutline, TurnRange

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.answers import AccessedFile, Forgotten
    from recollect.model import ConversationInfo, Project, Turn
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.recording import Plan, Situation
    from recollect.store.shapes import CallFilter, Held, Question, Step, TurnSize

_replace = msgspec.structs.replace


class Turns:
    """Turns with all their parts."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def record(self, workspace: str, conversation_id: str, recording: Recording, at: datetime) -> Outcome:
        """Record turns, whole and once; `NotFoundError` when there is no such conversation."""
        return await self._engine.write(workspace, lambda transaction: _record(transaction, workspace, conversation_id, recording, at))

    async def record_apart(
        self, workspace: str, conversation: ConversationInfo, project: Project | None, recording: Recording, at: datetime
    ) -> Outcome | None:
        """Record one turn that continues nothing; None, and nothing is written, when the history has to be read to know that.

        A conversation that is missing begins with it, in the project that is given; `NotFoundError` when none is.
        """
        return await self._engine.write(
            workspace, lambda transaction: _record_apart(transaction, workspace, conversation, project, recording, at)
        )

    async def rewrite(self, workspace: str, draft: Draft, was: str, at: datetime, step: Step | None = None) -> Turn | None:
        """Replace a turn in its place, if its content hash is still `was`; None when it has changed or gone.

        In a conversation that takes no more turns it stays as it is, but for its status. With a step it is replaced only
        while the request is where that goes on from, and the step is taken in the same transaction.
        """
        return await self._engine.write(workspace, lambda transaction: _rewrite(transaction, workspace, draft, was, at, step))

    async def restore(
        self, workspace: str, conversation: ConversationInfo, project: Project, drafts: tuple[Draft, ...], *, replace: bool
    ) -> ConversationInfo:
        """Create a conversation with all its turns at the places they carry, whole or not at all; replace one that exists if asked."""
        return await self._engine.write(
            workspace, lambda transaction: _restore(transaction, workspace, conversation, project, drafts, replace=replace)
        )

    async def own(self, workspace: str, conversation_id: str, span: TurnRange) -> list[Draft]:
        """Return a conversation's own turns with their passages, as another store can take them."""
        return await self._engine.read(workspace, lambda transaction: _own(transaction, conversation_id, span))

    async def put(self, workspace: str, conversation_id: str, drafts: list[Draft]) -> int:
        """Write a conversation's own turns at the places they carry, and return how many were not there yet.

        `ConflictError` when another turn is in the place of one of them; the conversation's counts are left as they are.
        """
        return await self._engine.write(workspace, lambda transaction: _put(transaction, workspace, conversation_id, drafts))

    async def history(self, workspace: str, conversation_id: str, span: TurnRange) -> list[Turn]:
        """Return whole turns of a conversation's history, ancestors' first."""
        checked_span(span.first, span.last)
        return await self._engine.read(workspace, lambda transaction: _history(transaction, workspace, conversation_id, span))

    async def by_id(self, workspace: str, turn_ids: list[str]) -> list[Turn]:
        """Return whole turns by their ids, in the order asked for; unknown ones are left out."""
        return await self._engine.read(workspace, lambda transaction: _by_id(transaction, turn_ids)) if turn_ids else []

    async def outline(self, workspace: str, conversation_id: str, span: TurnRange) -> Outline:
        """Return the outline of a conversation's history, ancestors' first."""
        return await self._engine.read(workspace, lambda transaction: _outline(transaction, workspace, conversation_id, span), settled=True)

    async def sizes(self, workspace: str, conversation_id: str) -> list[TurnSize]:
        """Return every turn of a history as planning sees it, ancestors' first."""
        return await self._engine.read(workspace, lambda transaction: _sizes(transaction, workspace, conversation_id))

    async def calls(self, workspace: str, conversation_id: str, where: CallFilter) -> list[PlacedCall]:
        """Return where the tool calls of a history stand, newest first."""
        return await self._engine.read(workspace, lambda transaction: _calls(transaction, workspace, conversation_id, where))

    async def questions(self, workspace: str, conversation_id: str, limit: int) -> list[Question]:
        """Return what users said in a history, newest first."""
        return await self._engine.read(workspace, lambda transaction: _questions(transaction, workspace, conversation_id, limit))

    async def accesses(self, workspace: str, conversation_id: str) -> list[AccessedFile]:
        """Return the latest access of a history to each path, newest first."""
        return await self._engine.read(workspace, lambda transaction: _accesses(transaction, workspace, conversation_id))

    async def remove(self, workspace: str, turn_ids: list[str]) -> int:
        """Remove turns with all that hangs from them; returns how many there were."""
        return await self._engine.write(workspace, lambda transaction: remove_turns(transaction, turn_ids)) if turn_ids else 0

    async def forget_before(self, workspace: str, moment: datetime, project_ids: tuple[str, ...] | None) -> Forgotten:
        """Forget the turns that ended before a moment, and the conversations this leaves empty."""
        return await self._engine.write(workspace, lambda transaction: forget_before(transaction, in_utc(moment), project_ids))


async def _record(transaction: Transaction, workspace: str, conversation_id: str, recording: Recording, at: datetime) -> Outcome:
    situation = await transaction.turns.situation(conversation_id, recording.request_id, recording.truncate_from)
    if situation is None:
        raise not_found(workspace, conversation_id)
    return await _carried_out(transaction, workspace, situation, recording, at)


async def _record_apart(
    transaction: Transaction, workspace: str, conversation: ConversationInfo, project: Project | None, recording: Recording, at: datetime
) -> Outcome | None:
    situation = await transaction.turns.situation(conversation.id, recording.request_id, None)
    if situation is None:
        if project is None:
            raise not_found(workspace, conversation.id)
        await create(transaction, conversation, project, inherits=True)
        outcome = await _record(transaction, workspace, conversation.id, recording, at)
        if outcome.status == "unchanged":  # it is recorded elsewhere in the project
            await transaction.conversations.delete(conversation.id)
        return outcome
    inherits, is_begun = situation.inherited_to >= 0, situation.head.next_index > 0
    spans = await spans_of(transaction, workspace, conversation.id) if inherits else [Span(conversation_id=conversation.id)]
    newest = await _outlined(transaction, spans, TurnRange(limit=2, newest=True)) if is_begun else []
    if not is_apart(newest, recording.drafts[0].turn, recording.request_id):
        return None
    return await _carried_out(transaction, workspace, situation, recording, at)


async def _carried_out(transaction: Transaction, workspace: str, situation: Situation, recording: Recording, at: datetime) -> Outcome:
    await check_step(transaction, recording.step)
    decided = plan(situation, recording)
    if decided.status in {"moved", "skipped"}:
        return Outcome(status=decided.status, turns=decided.insert)
    if decided.status != "unchanged":
        await _written(transaction, workspace, situation, recording, decided, at)
    await take_step(transaction, recording.step, at)
    return Outcome(status=decided.status, turns=decided.insert)


async def _written(
    transaction: Transaction, workspace: str, situation: Situation, recording: Recording, decided: Plan, at: datetime
) -> None:
    conversation_id = situation.head.conversation_id
    turns = _stored(decided.insert, recording.drafts)
    if decided.status == "created" and not recording.keep_places:
        await transaction.turns.insert(conversation_id, turns, _advance(decided.insert, at))
        return
    cut = (
        [] if decided.truncate_from is None else await _ids(transaction, Span(conversation_id=conversation_id, first=decided.truncate_from))
    )
    kept = {turn.id for turn in decided.insert}
    gone = [turn_id for turn_id in (*decided.remove_ids, *cut) if turn_id not in kept]
    if gone:
        await transaction.turns.delete(gone)
    for shift in decided.shifts:
        await transaction.turns.shift(conversation_id, shift.after, shift.by)
    await transaction.turns.insert(conversation_id, turns, None)
    held = _touched(await existing(transaction, workspace, conversation_id), at)
    held = _replace(held, next_index=0, next_sequence=0) if decided.ends_sooner else held
    await counted_anew(transaction, held, min((turn.index for turn in decided.insert), default=0))


def _stored(turns: Sequence[Turn], drafts: Sequence[Draft]) -> list[StoredTurn]:
    return [
        StoredTurn(turn=turn, checksum=checksum(turn), passages=draft.passages, expires_at=draft.expires_at)
        for turn, draft in zip(turns, drafts, strict=True)
    ]


def _advance(turns: tuple[Turn, ...], at: datetime) -> Advance:
    messages = sum(len(turn.messages) for turn in turns)
    return Advance(turns=len(turns), messages=messages, at=at, last_message=last_message(turns))


async def _ids(transaction: Transaction, span: Span) -> list[str]:
    return [turn.id for turn in await transaction.turns.outline(span)]


def _touched(held: Held, at: datetime) -> Held:
    return _replace(held, conversation=_replace(held.conversation, updated_at=at))


async def _own(transaction: Transaction, conversation_id: str, asked: TurnRange) -> list[Draft]:
    span = Span(conversation_id=conversation_id, first=asked.first, last=asked.last, limit=asked.limit)
    found = await transaction.turns.read(span)
    passages = await transaction.turns.passages([stored.turn.id for stored in found]) if found else {}
    return [
        Draft(turn=intact(stored.turn, stored.checksum), passages=passages.get(stored.turn.id, ()), expires_at=stored.expires_at)
        for stored in found
    ]


async def _put(transaction: Transaction, workspace: str, conversation_id: str, drafts: list[Draft]) -> int:
    if await transaction.turns.situation(conversation_id, None, None) is None:
        raise not_found(workspace, conversation_id)
    indexes = [draft.turn.index for draft in drafts]
    span = Span(conversation_id=conversation_id, first=min(indexes, default=0), last=max(indexes, default=0))
    known = {turn.index: (turn.id, turn.content_hash) for turn in await transaction.turns.outline(span)}
    for turn in (draft.turn for draft in drafts):
        if known.get(turn.index, (turn.id, turn.content_hash)) != (turn.id, turn.content_hash):
            msg = f"conversation {conversation_id} holds another turn {turn.index} already: copy into a store that does not have it"
            raise ConflictError(msg)
    new = [draft for draft in drafts if draft.turn.index not in known]
    await transaction.turns.insert(conversation_id, _stored([draft.turn for draft in new], new), None)
    return len(new)


async def _restore(
    transaction: Transaction, workspace: str, conversation: ConversationInfo, project: Project, drafts: tuple[Draft, ...], *, replace: bool
) -> ConversationInfo:
    if replace:
        await remove(transaction, [conversation.id], keep_inherited=True)
    await create(transaction, conversation, project, inherits=False)
    await _record(transaction, workspace, conversation.id, Recording(drafts=drafts, keep_places=True), conversation.updated_at)
    return (await existing(transaction, workspace, conversation.id)).conversation


async def _rewrite(transaction: Transaction, workspace: str, draft: Draft, was: str, at: datetime, step: Step | None) -> Turn | None:
    turn = draft.turn
    situation = await transaction.turns.situation(turn.conversation_id, None, None)
    if situation is None:
        raise not_found(workspace, turn.conversation_id)
    standing = [stored.turn for stored in await transaction.turns.by_id([turn.id])]
    if not standing or standing[0].content_hash != was or standing[0].conversation_id != turn.conversation_id:
        return None
    await check_step(transaction, step)
    if situation.is_silent:
        kept = (await transaction.turns.passages([turn.id])).get(turn.id, ())
        turn = _replace(unplaced(standing[0]), status=turn.status)
        draft = _replace(draft, turn=turn, passages=kept)
    held = _touched(await existing(transaction, workspace, turn.conversation_id), at)
    first = standing[0].first_sequence if standing[0].messages else held.next_sequence
    placed = place_turn(turn, turn.conversation_id, turn.index, first)
    if placed.id != turn.id:
        await transaction.turns.delete([turn.id])
    await _shift_after(transaction, turn.conversation_id, placed.index, len(placed.messages) - len(standing[0].messages))
    await transaction.turns.insert(turn.conversation_id, _stored([placed], [draft]), None)
    await counted_anew(transaction, held, turn.index)
    await counted_below(transaction, turn.conversation_id, turn.index)
    await take_step(transaction, step, at)
    return placed


async def _shift_after(transaction: Transaction, conversation_id: str, index: int, by: int) -> None:
    """Move the sequences after a turn, in its conversation and in every branch that shows the turn."""
    if by == 0:
        return
    await transaction.turns.shift(conversation_id, index, by)
    for branch in await transaction.conversations.branches(conversation_id):
        if branch.conversation.from_turn is not None and branch.conversation.from_turn >= index:
            await transaction.conversations.update(_replace(branch, next_sequence=branch.next_sequence + by))
            await _shift_after(transaction, branch.conversation.id, index, by)


async def _history(transaction: Transaction, workspace: str, conversation_id: str, asked: TurnRange) -> list[Turn]:
    found: list[Turn] = []
    for span in asked_of(await spans_of(transaction, workspace, conversation_id), asked):
        limit = None if asked.limit is None else asked.limit - len(found)
        if limit is None or limit > 0:
            part = [intact(stored.turn, stored.checksum) for stored in await transaction.turns.read(_replace(span, limit=limit))]
            found = [*part, *found] if asked.newest else [*found, *part]
    return in_order(found, asked.first, asked.last)


async def _by_id(transaction: Transaction, turn_ids: list[str]) -> list[Turn]:
    found = {stored.turn.id: intact(stored.turn, stored.checksum) for stored in await transaction.turns.by_id(turn_ids)}
    return [found[turn_id] for turn_id in turn_ids if turn_id in found]


async def _outline(transaction: Transaction, workspace: str, conversation_id: str, asked: TurnRange) -> Outline:
    held = await existing(transaction, workspace, conversation_id)
    found = await _outlined(transaction, await spans_of(transaction, workspace, conversation_id), asked)
    return Outline(next_index=held.next_index, next_sequence=held.next_sequence, turns=tuple(found))


async def _outlined(transaction: Transaction, spans: list[Span], asked: TurnRange) -> list[TurnOutline]:
    found: list[TurnOutline] = []
    for span in asked_of(spans, asked):
        limit = None if asked.limit is None else asked.limit - len(found)
        if limit is None or limit > 0:
            part = await transaction.turns.outline(_replace(span, limit=limit))
            found = [*part, *found] if asked.newest else [*found, *part]
    return found


async def _sizes(transaction: Transaction, workspace: str, conversation_id: str) -> list[TurnSize]:
    spans = await spans_of(transaction, workspace, conversation_id)
    return [size for span in spans for size in await transaction.turns.sizes(span)]


async def _questions(transaction: Transaction, workspace: str, conversation_id: str, limit: int) -> list[Question]:
    found: list[Question] = []
    for span in reversed(await spans_of(transaction, workspace, conversation_id)):
        if limit > len(found):
            found += await transaction.turns.questions(_replace(span, limit=limit - len(found), newest=True))
    return found


async def _accesses(transaction: Transaction, workspace: str, conversation_id: str) -> list[AccessedFile]:
    found: dict[str, AccessedFile] = {}
    for span in reversed(await spans_of(transaction, workspace, conversation_id)):
        for one in await transaction.turns.accesses(span):
            found.setdefault(one.path, one)
    return list(found.values())


async def _calls(transaction: Transaction, workspace: str, conversation_id: str, where: CallFilter) -> list[PlacedCall]:
    found: list[PlacedCall] = []
    for span in reversed(await spans_of(transaction, workspace, conversation_id)):
        if where.limit > len(found):
            found += await transaction.turns.calls(span, _replace(where, limit=where.limit - len(found)))
    return found
