"""The timeline of checkpoints: which follows which, and what changed in between."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, TypeVar

from recollect.store.traced import PlacedChange, PlacedCheckpoint
from recollect.trace.answers import CheckpointEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from recollect.store import Store
    from recollect.store.shapes import Span
    from recollect.store.traced import TraceScope

_Placed = TypeVar("_Placed", PlacedChange, PlacedCheckpoint)


async def checkpoints(store: Store, workspace: str, where: TraceScope, conversation_id: str | None = None) -> list[CheckpointEntry]:
    """Return the checkpoints of some projects, or of the history of a conversation, oldest first, with the changes after each."""
    rows = await store.trace.checkpoints(workspace, where, conversation_id)
    return timeline(rows.found, rows.chain, rows.changes, rows.histories)


def timeline(
    found: Sequence[PlacedCheckpoint],
    chain: Sequence[PlacedCheckpoint],
    changes: Sequence[PlacedChange],
    histories: Mapping[str, Sequence[Span]],
) -> list[CheckpointEntry]:
    """Join checkpoints to those before them and to the changes after them; a checkpoint is taken before the changes of its turn.

    `chain` has those outside the period too, because what a checkpoint follows does not depend on what was asked for. Each folder
    has a chain of its own in the history of a conversation, and a branch's is its parent's up to the fork, then its own.
    """
    saved: dict[str, list[PlacedCheckpoint]] = {}
    for one in chain:
        saved.setdefault(one.conversation_id, []).append(one)
    made: dict[str, list[PlacedChange]] = {}
    for change in reversed(changes):
        made.setdefault(change.conversation_id, []).append(change)
    entries: dict[str, CheckpointEntry] = {}
    for conversation_id, spans in histories.items():
        for own in _folders(_shown(saved, spans)):
            after = _after(own, _shown(made, spans))
            for place, one in enumerate(own):
                if one.conversation_id == conversation_id or one.checkpoint.id not in entries:
                    entries[one.checkpoint.id] = _entry(place, own, after[place])
    return [entries[one.checkpoint.id] for one in found]


def _shown(parts: Mapping[str, Sequence[_Placed]], spans: Sequence[Span]) -> list[_Placed]:
    return [one for span in spans for one in parts.get(span.conversation_id, ()) if span.shows(one.turn_index)]


def _folders(found: Sequence[PlacedCheckpoint]) -> Iterable[list[PlacedCheckpoint]]:
    folders: dict[str | None, list[PlacedCheckpoint]] = {}
    for one in sorted(found, key=lambda one: one.turn_index):
        folders.setdefault(one.checkpoint.workspace_dir, []).append(one)
    return folders.values()


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
