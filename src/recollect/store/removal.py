"""Conversations and turns removed, with all that hangs from them; what a branch still shows is handed over to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Forgotten
from recollect.placing import checksum, place_turn, unplaced
from recollect.store.lineage import below, counted_anew, counted_below, sealed
from recollect.store.recording import adopted, chosen_heir
from recollect.store.shapes import Span, StoredTurn

if TYPE_CHECKING:
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
        StoredTurn(turn=turn, checksum=checksum(turn), passages=passages.get(own_id, ())) for own_id, turn in zip(ids, placed, strict=True)
    ]
    await transaction.turns.insert(heir_id, stored, None)
    for branch in branches:
        if branch is not heir:
            conversation = _replace(branch.conversation, branch_of=heir_id)
            await transaction.conversations.update(sealed(_replace(branch, conversation=conversation, parent_id=heir_id)))
    return len(handed)


async def forget_before(transaction: Transaction, moment: datetime, project_ids: tuple[str, ...] | None) -> Forgotten:
    """Forget the turns that ended before a moment, and the conversations this leaves empty."""
    old = await transaction.turns.ended_before(moment, project_ids)
    await transaction.turns.delete([turn_id for turn_id, _ in old])
    owners = list(dict.fromkeys(conversation_id for _, conversation_id in old))
    held = [one for one in [await transaction.conversations.held(owner) for owner in owners] if one is not None]
    depths = {
        one.conversation.id: (len(await transaction.conversations.chain(one.conversation.id)), one)
        for one in [*held, *await below(transaction, owners)]
    }
    emptied = 0
    for _, one in sorted(depths.values(), key=lambda entry: -entry[0]):  # branches before their parents
        anew = await counted_anew(transaction, one, 0)
        if not anew.conversation.turn_count and not await transaction.conversations.branches(one.conversation.id):
            await transaction.conversations.delete(one.conversation.id)
            emptied += 1
    await transaction.conversations.drop_unused(sorted({one.conversation.project_id for _, one in depths.values()}))
    return Forgotten(conversations=emptied, turns=len(old))
