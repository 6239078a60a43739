"""The timeline of checkpoints: what follows what, and what changed in between."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.model import Checkpoint
from recollect.store.shapes import Span
from recollect.store.traced import PlacedChange, PlacedCheckpoint
from recollect.trace import checkpoints
from recollect.trace.answers import CheckpointEntry

NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)


def saved(
    name: str | None,
    turn: int,
    *,
    conversation: str = "c",
    parent: str | None = None,
    commit: str | None = None,
    folder: str | None = None,
    minute: int | None = None,
) -> PlacedCheckpoint:
    checkpoint = Checkpoint(
        id=f"{conversation}-{name or commit}-{turn}", checkpoint_id=name, git_hash=commit, parent_checkpoint=parent, workspace_dir=folder,
        timestamp=None if minute is None else NOON + timedelta(minutes=minute),
    )  # fmt: skip
    return PlacedCheckpoint(
        checkpoint=checkpoint, conversation_id=conversation, turn_id=f"t{turn}", turn_index=turn, request_id=None, at=NOON
    )


def changed(name: str, turn: int, conversation: str = "c", minute: int = 0) -> PlacedChange:
    return PlacedChange(
        id=name, file_path=name, change_type="updated", change_summary=None, lines_added=1, lines_removed=0, turn_id=f"t{turn}",
        conversation_id=conversation, turn_index=turn, request_id=None, at=NOON + timedelta(minutes=minute),
    )  # fmt: skip


def timeline(found: list[PlacedCheckpoint], chain: list[PlacedCheckpoint], changes: list[PlacedChange]) -> list[CheckpointEntry]:
    histories = {one.conversation_id: [Span(conversation_id=one.conversation_id)] for one in chain}
    return checkpoints.timeline(found, chain, changes, histories)


def parents(*found: PlacedCheckpoint) -> list[tuple[str | None, bool]]:
    return [(one.parent, one.parent_inferred) for one in timeline([*found], [*found], [])]


def test_a_checkpoint_without_a_parent_follows_the_one_before_it_in_its_conversation() -> None:
    assert parents(saved("a", 0), saved("x", 1, conversation="other"), saved("b", 2)) == [(None, False), (None, False), ("a", True)]


def test_a_parent_that_is_named_is_believed() -> None:
    assert parents(saved("a", 0), saved("b", 1), saved("c", 2, parent="a")) == [(None, False), ("a", True), ("a", False)]


def test_a_commit_names_a_checkpoint_that_has_no_id() -> None:
    assert parents(saved(None, 0, commit="ae09"), saved("b", 1)) == [(None, False), ("ae09", True)]


def test_a_checkpoint_never_follows_itself() -> None:
    """Nothing changed between two messages, so both name the same commit."""
    assert parents(saved("a", 0), saved("b", 1), saved("b", 2)) == [(None, False), ("a", True), ("a", True)]
    assert parents(saved("a", 0), saved("a", 1)) == [(None, False), (None, False)]


def test_the_order_of_a_conversation_decides_not_the_order_of_the_clock() -> None:
    later, earlier = saved("a", 5), saved("b", 1)
    assert [(one.checkpoint.checkpoint_id, one.parent) for one in timeline([later, earlier], [later, earlier], [])] == [
        ("a", "b"),
        ("b", None),
    ]


def test_changes_belong_to_the_checkpoint_before_them_oldest_first() -> None:
    """Those of its own turn come after a checkpoint; those before the first belong to none."""
    found = [saved("a", 1), saved("b", 3)]
    newest_first = [
        changed("six", 6),
        changed("three", 3),
        changed("two", 2),
        changed("elsewhere", 2, "other"),
        changed("one", 1),
        changed("zero", 0),
    ]
    assert [[change.id for change in one.changes] for one in timeline(found, found, newest_first)] == [["one", "two"], ["three", "six"]]


def test_of_two_checkpoints_in_a_turn_the_second_has_its_changes() -> None:
    found = [saved("a", 1), saved("b", 1)]
    told = timeline(found, found, [changed("one", 1)])
    assert [(one.parent, len(one.changes)) for one in told] == [(None, 0), ("a", 1)]


def test_within_a_turn_times_tell_which_checkpoint_a_change_came_after() -> None:
    found = [saved("a", 0, minute=9), saved("b", 1, minute=5), saved("c", 1, minute=7), saved("d", 2, minute=1)]
    newest_first = [changed("2", 2, minute=0), changed("1 after", 1, minute=8), changed("1 with", 1, minute=7),
                    changed("1 between", 1, minute=6), changed("1 early", 1, minute=0), changed("0", 0, minute=0)]  # fmt: skip
    told = [[change.id for change in one.changes] for one in timeline(found, found, newest_first)]
    assert told == [["0"], ["1 early", "1 between"], ["1 with", "1 after"], ["2"]], "between turns their order decides"


def test_each_folder_has_a_chain_of_its_own_and_those_without_one_too() -> None:
    places = [("1a", 0, "/w1"), ("2a", 0, "/w2"), ("na", 0, None), ("1b", 2, "/w1"), ("2b", 3, "/w2"), ("nb", 4, None)]
    found = [saved(name, turn, folder=folder) for name, turn, folder in places]
    told = timeline(found, found, [changed(f"{n}.py", n) for n in (3, 2, 1, 0)])
    assert [(one.parent, len(one.changes)) for one in told] == [(None, 2), (None, 3), (None, 4), ("1a", 2), ("2a", 1), ("na", 0)]
    assert parents(found[0], saved("2b", 1, folder="/w2", parent="1a")) == [(None, False), ("1a", False)], "who told it knows"


def test_what_a_checkpoint_follows_does_not_depend_on_the_period_asked_for() -> None:
    chain = [saved("a", 0), saved("b", 1)]
    assert [(one.checkpoint.checkpoint_id, one.parent) for one in timeline(chain[1:], chain, [])] == [("b", "a")]
