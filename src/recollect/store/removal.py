"""Conversations and turns removed, with all that hangs from them; what a branch still shows is handed over to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Forgotten, Swept
from recollect.model import NOT_RECORDED_TAG
from recollect.placing import checksum, place_turn, unplaced
from recollect.store.lineage import below, counted_anew, counted_below, sealed
from recollect.store.recording import adopted, chosen_heir
from recollect.store.shapes import Span, StoredTurn

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from recollect.store.protocol import Transaction
    from recollect.store.shapes import Held

_replace = msgspec.structs.replace


async def remove(transaction: Transaction, conversation_ids: list[str], *, keep_inherited: bool) -> Forgotten:
    """Remove conversations; the turns that branches show go to the branch that shows the most of them, when they are kept."""
    conversations = turns = 0
    projects: set[str] = set()
    for conversation_id in conversation_ids:
        gone = await transaction.conversations.held(conversation_id)
        if gone is None:
            continue
        projects.add(gone.conversation.project_id)
        turns += (await transaction.turns.count(Span(conversation_id=conversation_id))).turns
        branches = await transaction.conversations.branches(conversation_id)
        if branches and keep_inherited:
            turns -= await _hand_over(transaction, gone, branches)
            branches = await transaction.conversations.branches(conversation_id)
        for branch in branches:
            await transaction.conversations.update(sealed(adopted(branch, gone)))
        await transaction.turns.delete([turn.id for turn in await transaction.turns.outline(Span(conversation_id=conversation_id))])
        await transaction.requests.forget([conversation_id])
        await transaction.conversations.delete(conversation_id)
        for branch in branches:
            await counted_anew(transaction, adopted(branch, gone), 0)
            await counted_below(transaction, branch.conversation.id, 0)
        conversations += 1
    await transaction.conversations.drop_unused(sorted(projects))
    return Forgotten(conversations=conversations, turns=turns)


async def _hand_over(transaction: Transaction, gone: Held, branches: list[Held]) -> int:
    """Give a conversation's turns up to the fork to a branch, under ids that follow from it; other branches now fork from it."""
    heir = chosen_heir(branches)
    heir_id = heir.conversation.id
    handed = await transaction.turns.read(Span(conversation_id=gone.conversation.id, last=heir.conversation.from_turn))
    ids = [stored.turn.id for stored in handed]
    passages = await transaction.turns.passages(ids)
    await transaction.turns.delete(ids)
    placed = [place_turn(unplaced(one.turn), heir_id, one.turn.index, one.turn.first_sequence) for one in handed]
    stored = [
        StoredTurn(turn=turn, checksum=checksum(turn), passages=passages.get(one.turn.id, ()), expires_at=one.expires_at)
        for one, turn in zip(handed, placed, strict=True)
    ]
    await transaction.turns.insert(heir_id, stored, None)
    for branch in branches:
        if branch is not heir:
            conversation = _replace(branch.conversation, branch_of=heir_id)
            await transaction.conversations.update(sealed(_replace(branch, conversation=conversation, parent_id=heir_id)))
    return len(handed)


async def forget_before(transaction: Transaction, moment: datetime, project_ids: tuple[str, ...] | None) -> Forgotten:
    """Forget the turns that ended before a moment, what tells of them, and the conversations this leaves empty."""
    old = await transaction.turns.ended_before(moment, project_ids)
    await _delete(transaction, [turn_id for turn_id, _ in old])
    told = await transaction.retention.told_before(moment, project_ids)  # of turns that have expired since
    await transaction.retention.delete_summaries([summary_id for summary_id, _ in told])
    tellers = list(dict.fromkeys(conversation_id for _, conversation_id in told))
    tellers += [held.conversation.id for held in await below(transaction, tellers)]  # whatever was learned there was learned from that, too
    found = await transaction.retention.insights_before(moment, project_ids, tellers)
    await transaction.retention.delete_insights([insight_id for insight_id, _ in found])
    emptied = await settle(transaction, [conversation_id for _, conversation_id in (*old, *told)])
    emptied += await _drop_emptied(transaction, [conversation_id for _, conversation_id in found])
    return Forgotten(conversations=emptied, turns=len(old))


async def _delete(transaction: Transaction, turn_ids: list[str], *, keep_summaries: bool = False) -> None:
    """Delete turns, and the sketches of requests that are not whole yet, which say the same and would bring them back."""
    await transaction.requests.forget_told(turn_ids)
    await transaction.turns.delete(turn_ids, keep_summaries=keep_summaries)


async def remove_turns(transaction: Transaction, turn_ids: list[str]) -> int:
    """Remove turns with all that hangs from them, and the conversations this leaves empty; returns how many turns there were."""
    gone = [stored.turn for stored in await transaction.turns.by_id(turn_ids)]
    await transaction.turns.delete([turn.id for turn in gone])
    await settle(transaction, [turn.conversation_id for turn in gone])
    return len(gone)


async def sweep(transaction: Transaction, now: datetime) -> Swept:
    """Remove what has expired: turns with all that hangs from them but what was made of them, and that when its own time is over."""
    turns, summaries = await transaction.retention.turns(now), await transaction.retention.summaries(now)
    if turns:
        await _delete(transaction, [turn_id for turn_id, _ in turns], keep_summaries=True)
    if summaries:
        await transaction.retention.delete_summaries([summary_id for summary_id, _ in summaries])
    insights = await transaction.retention.insights(now)
    if insights:
        await transaction.retention.delete_insights([insight_id for insight_id, _ in insights])
    emptied = await settle(transaction, [owner for _, owner in (*turns, *summaries)])
    emptied += await _drop_emptied(transaction, [owner for _, owner in insights])
    return Swept(conversations=emptied, turns=len(turns), summaries=len(summaries), insights=len(insights))


async def settle(transaction: Transaction, owners: Iterable[str]) -> int:
    """Count and tell conversations anew after something of them went, and remove those that are left empty; returns how many."""
    owners = list(dict.fromkeys(owners))
    held = [one for one in [await transaction.conversations.held(owner) for owner in owners] if one is not None]
    depths = {
        one.conversation.id: (len(await transaction.conversations.chain(one.conversation.id)), one)
        for one in [*held, *await below(transaction, owners)]
    }
    emptied = 0
    anew: list[Held] = []
    for _, one in sorted(depths.values(), key=lambda entry: -entry[0]):  # branches before their parents
        untold = _replace(one, conversation=_replace(one.conversation, summary=None))  # whoever wrote it, it told of what is gone
        anew.append(await counted_anew(transaction, untold, 0))
    for one in anew:
        emptied += await _drop_empty(transaction, await transaction.conversations.held(one.conversation.id))
    await transaction.conversations.drop_unused(sorted({one.conversation.project_id for _, one in depths.values()}))
    return emptied


async def _drop_emptied(transaction: Transaction, owners: Iterable[str]) -> int:
    """Remove those of some conversations that hold nothing any more; returns how many. Nothing else of them was told of what went."""
    held = [one for one in [await transaction.conversations.held(owner) for owner in dict.fromkeys(owners)] if one is not None]
    dropped = sum([await _drop_empty(transaction, one) for one in held])
    if dropped:
        await transaction.conversations.drop_unused(sorted({one.conversation.project_id for one in held}))
    return dropped


async def drop_empty(transaction: Transaction, conversation_id: str) -> None:
    """Remove a conversation in which nothing was recorded after all, and its project when that was the last of it."""
    held = await transaction.conversations.held(conversation_id)
    if held is not None and await _drop_empty(transaction, held):
        await transaction.conversations.drop_unused([held.conversation.project_id])


async def _drop_empty(transaction: Transaction, held: Held | None) -> int:
    """Remove a conversation that holds nothing and that nothing needs, then such ancestors as stayed only for it; returns how many.

    One that is not to be recorded stays: gone, it would begin anew without its tag.
    """
    dropped = 0
    while held is not None and await _is_empty(transaction, held):
        await transaction.conversations.delete(held.conversation.id)
        dropped += 1
        held = None if held.parent_id is None else await transaction.conversations.held(held.parent_id)
    return dropped


async def _is_empty(transaction: Transaction, held: Held) -> bool:
    own_id = held.conversation.id
    if held.conversation.turn_count or NOT_RECORDED_TAG in held.conversation.tags or await transaction.requests.is_open(own_id):
        return False
    return not (await transaction.derived.is_told_of(own_id) or await transaction.conversations.branches(own_id))
