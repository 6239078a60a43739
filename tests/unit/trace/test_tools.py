"""What failed calls have in common: first lines, numbers aside."""

from __future__ import annotations

from recollect.trace.tools import common_errors


def told(*said: str | None) -> list[tuple[str, int]]:
    return [(one.message, one.count) for one in common_errors(said)]


def test_errors_that_differ_in_a_number_are_one_and_the_newest_wording_is_shown() -> None:
    assert told("Error: 7 tests failed", "Timeout at 0x7ffe", "Error: 3 tests failed", "Timeout at 0x1a") == [
        ("Error: 7 tests failed", 2),
        ("Timeout at 0x7ffe", 2),
    ]


def test_the_commonest_error_comes_first_and_equals_are_in_the_order_of_their_words() -> None:
    assert [message for message, _ in told("b", "c", "a", "c")] == ["c", "a", "b"]


def test_an_error_is_its_first_line_that_says_something() -> None:
    assert told("\n  \nboom\nat line 3", "boom") == [("boom", 2)]


def test_a_failure_that_said_nothing_is_no_common_error() -> None:
    assert told(None, "", " \n ") == []


def test_a_long_error_is_cut_and_only_the_commonest_five_are_told() -> None:
    assert told("x" * 1_000) == [("x" * 159 + "…", 1)]
    assert told(*"abcdefg") == [(one, 1) for one in "abcde"]
