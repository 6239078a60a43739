"""Who shows which turns, how much a conversation holds, and what a list tells of it: shared by the facets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.errors import NotFoundError
from recollect.placing import checksum
from recollect.store.recording import last_message, shown
from recollect.store.shapes import Count, Link, Span

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.model import Turn
    from recollect.store.protocol import Transaction
    from recollect.store.shapes import Held, TurnRange

_replace = msgspec.structs.replace


def not_found(workspace: str, conversation_id: str) -> NotFoundError:
    """Return the error for a conversation that is not there."""
    return NotFoundError(f"there is no conversation {conversation_id!r} in workspace {workspace!r}: `recollect conversations` lists them")


async def spans_of(transaction: Transaction, workspace: str, conversation_id: str) -> list[Span]:
    """Return the turns that make up a conversation's history, the eldest ancestor's first; `NotFoundError` when there is none."""
    chain = await transaction.conversations.chain(conversation_id)
    if not chain:
        raise not_found(workspace, conversation_id)
    return shown(chain)


def asked_of(spans: list[Span], asked: TurnRange) -> list[Span]:
    """Narrow the spans of a history to a range, in the order in which they are to be read."""
    narrowed = [
        _replace(
            span, first=asked.first, last=min((n for n in (span.last, asked.last) if n is not None), default=None), newest=asked.newest
        )
        for span in spans
    ]
    return narrowed[::-1] if asked.newest else narrowed


async def recounted(transaction: Transaction, held: Held) -> Held:
    """Count again what a conversation shows, and where it goes on; an index is never given out twice."""
    total = Count(next_index=held.next_index, next_sequence=held.next_sequence)
    for span in await _spans(transaction, held):
        part = await transaction.turns.count(span)
        total = Count(
            turns=total.turns + part.turns,
            messages=total.messages + part.messages,
            next_index=max(total.next_index, part.next_index),
            next_sequence=max(total.next_sequence, part.next_sequence),
        )
    conversation = _replace(held.conversation, turn_count=total.turns, message_count=total.messages)
    return _replace(held, conversation=conversation, next_index=total.next_index, next_sequence=total.next_sequence)


async def retold(transaction: Transaction, held: Held) -> Held:
    """Let a list entry tell the last thing that is still said in what the conversation shows."""
    newest: list[Turn] = []
    for span in reversed(await _spans(transaction, held)):
        newest = newest or [stored.turn for stored in await transaction.turns.read(_replace(span, limit=1, newest=True))]
    return _replace(held, conversation=_replace(held.conversation, last_message=last_message(tuple(newest))))


async def _spans(transaction: Transaction, held: Held) -> list[Span]:
    """Return what a conversation shows, by the parent it has now, which need not be written yet."""
    own = Link(conversation_id=held.conversation.id, from_turn=None if held.parent_id is None else held.conversation.from_turn)
    return shown([own, *(await transaction.conversations.chain(held.parent_id) if held.parent_id is not None else [])])


async def counted_anew(transaction: Transaction, held: Held, changed_from: int) -> Held:
    """Count and tell a conversation again from a turn on, and write it; what was distilled of that is no longer told."""
    anew = sealed(await retold(transaction, await recounted(transaction, _untold(held, changed_from))))
    await transaction.conversations.update(anew)
    await transaction.jobs.wake(held.conversation.id, "summarize", held.conversation.updated_at)
    return anew


def _untold(held: Held, changed_from: int) -> Held:
    if changed_from > held.told_to:
        return held
    title = None if held.has_own_title else held.conversation.title
    return _replace(held, conversation=_replace(held.conversation, title=title, summary=None), has_own_title=False, told_to=-1)


async def counted_below(transaction: Transaction, conversation_id: str, changed_from: int) -> None:
    """Count and tell every branch below a conversation again."""
    for branch in await below(transaction, [conversation_id]):
        await counted_anew(transaction, branch, changed_from)


async def below(transaction: Transaction, conversation_ids: Iterable[str]) -> list[Held]:
    """Return the branches of conversations, the branches of those, and so on, each after the one it inherits from."""
    seen = dict.fromkeys(conversation_ids)
    found: list[Held] = []
    waiting = list(seen)
    while waiting:
        branches = await transaction.conversations.branches(waiting.pop())
        new = [branch for branch in branches if branch.conversation.id not in seen]
        found += new
        seen |= dict.fromkeys(branch.conversation.id for branch in new)
        waiting += [branch.conversation.id for branch in new]
    return found


def sealed(held: Held) -> Held:
    """Give a conversation the checksum of what it now says."""
    return _replace(held, checksum=checksum(held.conversation))


async def existing(transaction: Transaction, workspace: str, conversation_id: str) -> Held:
    """Return a conversation that must be there."""
    held = await transaction.conversations.held(conversation_id)
    if held is None:
        raise not_found(workspace, conversation_id)
    return held
