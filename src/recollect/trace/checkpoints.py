"""The timeline of checkpoints: which follows which, and what changed in between."""

from __future__ import annotations

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
        entries |= {one.checkpoint.id: _entry(place, own, made.get(conversation_id, [])) for place, one in enumerate(own)}
    return [entries[one.checkpoint.id] for one in found]


def _entry(place: int, own: Sequence[PlacedCheckpoint], changes: Sequence[PlacedChange]) -> CheckpointEntry:
    one = own[place]
    following = own[place + 1] if place + 1 < len(own) else None
    given = one.checkpoint.parent_checkpoint
    name = _name(one)
    inferred = next((_name(before) for before in reversed(own[:place]) if _name(before) != name), None)
    since = [
        change
        for change in changes
        if one.turn_index <= change.turn_index and (following is None or change.turn_index < following.turn_index)
    ]
    return CheckpointEntry(
        checkpoint=one.checkpoint,
        conversation_id=one.conversation_id,
        turn_index=one.turn_index,
        request_id=one.request_id,
        timestamp=one.at,
        parent=given or inferred,
        parent_inferred=given is None and inferred is not None,
        changes=tuple(since),
    )


def _name(one: PlacedCheckpoint) -> str | None:
    return one.checkpoint.checkpoint_id or one.checkpoint.git_hash
