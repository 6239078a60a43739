"""Which turns are worth scoring is a pure choice: the most promising, with those around them."""

from __future__ import annotations

import numpy as np
import pytest

from recollect.limits import NEIGHBOURS_MIN
from recollect.store.choosing import Shares, chosen_turns, promises
from recollect.store.shapes import Counts, Probe

CROWDED = Counts(passages=1_000_000, terms=1, turns=1_000)  # so many passages a turn that only the fewest turns are chosen


def chosen(
    spots: list[tuple[int, int, float]], counts: Counts = CROWDED, hits: int = 0, per_conversation: int | None = None
) -> list[tuple[int, int]]:
    conversations, turns, promised = zip(*spots, strict=True)
    probe = Probe(limit=9, hits=hits, per_conversation=per_conversation)
    return chosen_turns(np.array(conversations, np.int64), np.array(turns, np.int64), np.array(promised, np.float64), counts, probe)


def places(*numbers: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(numbers, np.int64)


def test_a_turn_comes_with_the_two_before_and_after_it_and_none_before_the_first() -> None:
    assert chosen([(7, 0, 1.0)]) == [(7, 0), (7, 1), (7, 2)]
    assert sorted(chosen([(7, 5, 1.0)])) == [(7, turn) for turn in range(3, 8)]


def test_the_most_promising_come_first_and_the_rest_is_left_out() -> None:
    found = chosen([(1, turn * 10, turn / 100) for turn in range(100)])
    assert len(found) == NEIGHBOURS_MIN
    assert found[0] == (1, 990)
    assert (1, 0) not in found


def test_a_turn_promises_as_much_as_the_best_of_its_passages() -> None:
    assert chosen([(1, 5, 0.1), (2, 5, 0.39), (1, 5, 0.4)])[0] == (1, 5)


def test_more_hits_choose_more_turns_and_one_conversation_gives_no_more_than_it_may() -> None:
    spots = [(turn % 3, turn * 10, 1.0) for turn in range(300)]
    assert len(chosen(spots, hits=100)) == 198  # of turn 0 there is nothing before
    assert {(1, 10), (2, 20)} < set(chosen(spots, per_conversation=1))
    assert len(chosen(spots, per_conversation=1)) == 13


def test_turns_of_few_passages_are_chosen_in_greater_number() -> None:
    spots = [(1, turn * 10, 1.0) for turn in range(300)]
    assert len(chosen(spots, Counts(passages=1_000, terms=1, turns=1_000))) > len(chosen(spots))


def test_shares_are_by_rarity_and_of_equals_the_lower_place_is_first() -> None:
    shares = Shares([(3.0, [30, 10]), (1.0, [10, 20])])
    assert shares.at(places(10, 20, 30, 40)).tolist() == [1.0, 0.25, 0.75, 0.0]
    assert shares.highest(2).tolist() == [10, 30]
    assert shares.highest(9, places(20, 30, 99)).tolist() == [30, 20]
    assert Shares([(1.0, [8, 7])]).highest(1).tolist() == [7]


def test_what_stands_around_counts_more_than_once_and_not_beyond_its_reach() -> None:
    shares = Shares([(1.0, [10, 11, 15])])
    assert shares.around(places(10, 13, 20), 2).tolist() == pytest.approx([2 / 3, 2 / 3, 0.0])


def test_nothing_that_is_asked_for_stands_nowhere() -> None:
    for shares in (Shares([]), Shares([(1.0, [])])):
        assert shares.at(places(1, 2)).tolist() == [0.0, 0.0]
        assert shares.highest(5).tolist() == []
        assert shares.around(places(1), 3).tolist() == [0.0]


def test_what_is_far_from_the_meaning_promises_no_less_than_nothing() -> None:
    assert promises(places(1, 2), Shares([]), np.array([-1.0, 0.5]), 1.0).tolist() == [0.0, 2.6]
