"""What to summarise next: windows are contiguous, whole, never twice, always advance, and do not depend on when one looks."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from recollect.distill.plan import Triggers, Window, fold_windows, turn_windows
from recollect.store.shapes import SummarySize, TurnSize
from tests.kit import SOAK


def turns(*chars: int, messages: int = 2) -> list[TurnSize]:
    return [TurnSize(f"t{n}", n, size, messages) for n, size in enumerate(chars)]


def spans(windows: list[Window]) -> list[tuple[int, int]]:
    return [(window.first_turn, window.last_turn) for window in windows]


def made(window: Window, chars: int = 500) -> SummarySize:
    name = f"s{window.level}:{window.first_turn}-{window.last_turn}"
    return SummarySize(name, window.level, window.first_turn, window.last_turn, chars, window.source_ids)


def test_after_five_turns_the_first_three_are_summarised_and_the_last_two_stay_raw() -> None:
    assert spans(turn_windows(turns(*[100] * 4), [], Triggers())) == []
    assert spans(turn_windows(turns(*[100] * 5), [], Triggers())) == [(0, 2)]
    assert spans(turn_windows(turns(*[100] * 11), [], Triggers())) == [(0, 2), (3, 5), (6, 8)]


def test_every_trigger_alone() -> None:
    none = Triggers(turns=None, keep_raw_turns=0)
    five = turns(*[1_000] * 5)
    assert spans(turn_windows(five, [], none)) == []
    assert spans(turn_windows(five, [], msgspec.structs.replace(none, turns=1))) == [(n, n) for n in range(5)]
    assert spans(turn_windows(five, [], msgspec.structs.replace(none, messages=4))) == [(0, 1), (2, 3)]
    assert spans(turn_windows(five, [], msgspec.structs.replace(none, chars=2_500))) == [(0, 2)]
    assert spans(turn_windows(five, [], msgspec.structs.replace(none, turns=1, keep_raw_turns=2))) == [(0, 0), (1, 1), (2, 2)]


def test_of_several_triggers_the_first_to_be_fulfilled_counts() -> None:
    both = Triggers(turns=4, messages=6, chars=5_000, keep_raw_turns=0)
    assert spans(turn_windows(turns(*[10] * 8), [], both)) == [(0, 2), (3, 5)]
    assert spans(turn_windows(turns(4_000, 4_000, 10, 10, 10, 10), [], both)) == [(0, 1), (2, 4)]
    assert spans(turn_windows(turns(*[10] * 8, messages=1), [], both)) == [(0, 3), (4, 7)]


def test_an_oversized_turn_is_a_window_of_its_own_and_windows_advance() -> None:
    """LESSONS: a user message longer than the threshold made a window of zero turns, and nothing was ever summarised again."""
    triggers = Triggers(chars=5_000)
    assert spans(turn_windows(turns(30_000, 100, 100), [], triggers)) == [(0, 0)]
    assert spans(turn_windows(turns(100, 30_000, 100, 100, 100, 100, 100), [], triggers)) == [(0, 0), (1, 1), (2, 4)]
    assert spans(turn_windows(turns(*[30_000] * 4), [], triggers)) == [(0, 0), (1, 1)]


def test_an_open_turn_and_what_follows_it_stay_raw() -> None:
    history = turns(*[100] * 12)
    history[4] = msgspec.structs.replace(history[4], is_open=True)
    assert spans(turn_windows(history, [], Triggers())) == [(0, 2)]


def test_what_is_covered_is_not_covered_again_and_a_hole_is_filled() -> None:
    history = turns(*[100] * 11)
    first = turn_windows(history, [], Triggers())
    summaries = [made(window) for window in first]
    assert turn_windows(history, summaries, Triggers()) == []
    assert turn_windows(history, [summaries[0], summaries[2]], Triggers()) == [first[1]]
    gap = [*history[:4], *history[5:]]  # a turn was forgotten, and its summary with it
    assert spans(turn_windows(gap, [summaries[0], summaries[2]], Triggers())) == [(3, 5)]


def test_a_level_is_folded_at_its_size_and_its_last_one_is_kept_apart() -> None:
    low = [SummarySize(f"s{n}", 1, 3 * n, 3 * n + 2, 2_600) for n in range(9)]
    assert spans(fold_windows(low[:4], 1, Triggers())) == []
    assert spans(fold_windows(low[:5], 1, Triggers())) == [(0, 11)]
    high = [made(window) for window in fold_windows(low, 1, Triggers())]
    assert [(one.first_turn, one.last_turn) for one in high] == [(0, 11), (12, 23)]
    assert fold_windows([*low, *high], 1, Triggers()) == []
    assert spans(fold_windows([*low, high[1]], 1, Triggers())) == [(0, 11)]
    assert fold_windows(low, 6, Triggers()) == []


sizes = st.lists(st.integers(min_value=0, max_value=30_000), max_size=2_000 if SOAK else 200)
triggers_ = st.builds(
    Triggers,
    turns=st.none() | st.integers(min_value=1, max_value=8),
    messages=st.none() | st.integers(min_value=1, max_value=20),
    chars=st.none() | st.integers(min_value=1, max_value=20_000),
    keep_raw_turns=st.integers(min_value=0, max_value=4),
    fold_chars=st.integers(min_value=1, max_value=3_000),
)


@given(sizes=sizes, triggers=triggers_, looks=st.lists(st.integers(min_value=0, max_value=120), max_size=6))
def test_windows_are_the_same_whenever_one_looks_and_cover_each_turn_once(sizes: list[int], triggers: Triggers, looks: list[int]) -> None:
    history = turns(*sizes)
    at_once = turn_windows(history, [], triggers)
    now_and_then: list[SummarySize] = []
    for seen in [*sorted(min(look, len(history)) for look in looks), len(history)]:
        now_and_then += [made(window) for window in turn_windows(history[:seen], now_and_then, triggers)]
    assert sorted(made(window).id for window in at_once) == sorted(one.id for one in now_and_then)
    covered = [index for window in at_once for index in range(window.first_turn, window.last_turn + 1)]
    assert covered == list(range(len(covered)))
    assert len(covered) <= max(len(history) - triggers.keep_raw_turns, 0)
    assert all(window.source_ids for window in at_once)
    assert all(sizes[w.first_turn] <= triggers.oversized_chars or w.first_turn == w.last_turn for w in at_once)


@given(count=st.integers(min_value=0, max_value=2_000), triggers=triggers_)
def test_every_level_covers_the_beginning_once_and_in_order(count: int, triggers: Triggers) -> None:
    summaries = [made(window) for window in turn_windows(turns(*[500] * count), [], triggers)]
    for level in range(1, triggers.levels_max):
        summaries += [made(window) for window in fold_windows(summaries, level, triggers)]
        high = [one for one in summaries if one.level == level + 1]
        covered = [source for one in high for source in one.source_ids]
        low = [one.id for one in summaries if one.level == level]
        assert covered == low[: len(covered)]
        assert not low or len(covered) < len(low)
