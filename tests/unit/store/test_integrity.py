from __future__ import annotations

import pytest

from recollect import messages_to_turns
from recollect.errors import DamagedStoreError
from recollect.placing import checksum
from recollect.store.integrity import damage_of, in_order, intact
from tests.kit import START, said


def test_turns_that_were_not_asked_for_or_stand_twice_are_damage() -> None:
    turns = messages_to_turns(said("a", "b", "c", "d", "e", "f"), now=START)
    assert in_order(turns, 0, None) == turns
    assert in_order(turns[1:], 1, 2) == turns[1:]
    assert in_order([], 5, 3) == []
    for given, first, last in ((turns, 1, None), (turns, 0, 1), ([turns[1], turns[1]], 0, None), ([turns[2], turns[0]], 0, None)):
        with pytest.raises(DamagedStoreError):
            in_order(given, first, last)


def test_a_turn_is_served_only_with_its_checksum() -> None:
    turn = messages_to_turns(said("a", "b"), now=START)[0]
    assert intact(turn, checksum(turn)) is turn
    assert damage_of(turn, checksum(turn)) == []
    with pytest.raises(DamagedStoreError):
        intact(turn, checksum(turn) + 1)
    assert [damage.kind for damage in damage_of(turn, checksum(turn) + 1)] == ["turn"]
