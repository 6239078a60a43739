"""Whether what a store gives back is what it was given; pure, for all stores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import DamagedStoreError
from recollect.identity import content_hash
from recollect.model import Damage
from recollect.placing import checksum

if TYPE_CHECKING:
    from recollect.model import Turn


def intact(turn: Turn, stored: int) -> Turn:
    """Return a turn whose checksum is right; what is damaged is reported, not served."""
    if checksum(turn) != stored:
        msg = f"turn {turn.index} of conversation {turn.conversation_id} is damaged in the store: see `recollect verify`"
        raise DamagedStoreError(msg)
    return turn


def damage_of(turn: Turn, stored: int) -> list[Damage]:
    """Say what is wrong with a turn: first by the hash of each content, else by the checksum over all of it."""
    found = [
        Damage(kind="message", id=message.id, conversation_id=turn.conversation_id, reason="the content does not match its hash")
        for message in turn.messages
        if message.content is not None
        and len(message.content.encode()) == message.content_bytes
        and content_hash(message.content) != message.content_hash
    ]
    for call in turn.tool_calls:
        result = call.result
        if result is None or result.result is None or len(result.result.encode()) != result.result_size_bytes:
            continue
        if content_hash(result.result) != result.content_hash:
            reason = "the result does not match its hash"
            found.append(Damage(kind="tool_result", id=result.id, conversation_id=turn.conversation_id, reason=reason))
    if not found and checksum(turn) != stored:
        found.append(
            Damage(kind="turn", id=turn.id, conversation_id=turn.conversation_id, reason="a stored row does not match the checksum")
        )
    return found
