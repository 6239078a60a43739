"""The timeline of checkpoints: which follows which, and what changed in between."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from recollect.trace.answers import CheckpointEntry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.store import Store
    from recollect.store.traced import PlacedChange, PlacedCheckpoint, TraceScope


async def checkpoints(store: Store, workspace: str, where: TraceScope, conversation_id: str | None = None) -> list[CheckpointEntry]:
    """Return the checkpoints of some projects, or of a conversation, oldest first, with the changes after each."""
    found, chain, changes = await store.trace.checkpoints(workspace, where, conversation_id)
    return timeline(found, chain, changes)


def timeline(
    found: Sequence[PlacedCheckpoint], chain: Sequence[PlacedCheckpoint], changes: Sequence[PlacedChange]
) -> list[CheckpointEntry]:
    """Join checkpoints to those before them and to the changes after them; a checkpoint is taken before the changes of its turn.

    `chain` has those outside the period too, because what a checkpoint follows does not depend on what was asked for. Each folder
    has a chain of its own in its conversation.
    """
    places: dict[tuple[str, str | None], list[PlacedCheckpoint]] = {}
    for one in chain:
        places.setdefault((one.conversation_id, one.checkpoint.workspace_dir), []).append(one)
    made: dict[str, list[PlacedChange]] = {}
    for change in reversed(changes):
        made.setdefault(change.conversation_id, []).append(change)
    entries: dict[str, CheckpointEntry] = {}
    for (conversation_id, _), own in places.items():
        own.sort(key=lambda one: one.turn_index)
        after = _after(own, made.get(conversation_id, []))
        entries |= {one.checkpoint.id: _entry(place, own, after[place]) for place, one in enumerate(own)}
    return [entries[one.checkpoint.id] for one in found]


def _after(own: Sequence[PlacedCheckpoint], changes: Sequence[PlacedChange]) -> list[list[PlacedChange]]:
    """Return the changes after each checkpoint; of those in one turn with it, times decide where there are some, else its last has them."""
    found: list[list[PlacedChange]] = [[] for _ in own]
    turns = [one.turn_index for one in own]
    for change in changes:
        place = bisect_right(turns, change.turn_index) - 1
        while place > 0 and turns[place - 1] == change.turn_index and _is_earlier(change, own[place]):
            place -= 1
        if place >= 0:
            found[place].append(change)
    return found


def _is_earlier(change: PlacedChange, than: PlacedCheckpoint) -> bool:
    return change.at is not None and than.checkpoint.timestamp is not None and change.at < than.checkpoint.timestamp


def _entry(place: int, own: Sequence[PlacedCheckpoint], changes: Sequence[PlacedChange]) -> CheckpointEntry:
    one = own[place]
    given = one.checkpoint.parent_checkpoint
    name = _name(one)
    inferred = next((_name(before) for before in reversed(own[:place]) if _name(before) != name), None)
    return CheckpointEntry(
        checkpoint=one.checkpoint,
        conversation_id=one.conversation_id,
        turn_index=one.turn_index,
        request_id=one.request_id,
        timestamp=one.at,
        parent=given or inferred,
        parent_inferred=given is None and inferred is not None,
        changes=tuple(changes),
    )


def _name(one: PlacedCheckpoint) -> str | None:
    return one.checkpoint.checkpoint_id or one.checkpoint.git_hash
