"""Terms are counted in one sweep exactly as one by one."""

from __future__ import annotations

import random

import pytest

from recollect.recall.counting import counted

WORDS = ["a", "b", "ab", "aé", "日本", "seven77", "eight888", "eight8888", "nine99999", "x" * 64, "a.b/c", "@bob", "\ud800"]


def one_by_one(text: str, term: str) -> int:
    return f" {text} ".count(f" {term} ")


def test_a_sweep_counts_what_counting_one_by_one_does() -> None:
    source = random.Random(1)
    for _ in range(400):
        texts = [" ".join(source.choices(WORDS, k=source.randrange(9))) for _ in range(source.randrange(5))]
        terms = source.sample(WORDS, source.randrange(6))
        assert counted(texts, terms).tolist() == [[one_by_one(text, term) for term in terms] for text in texts], (texts, terms)


@pytest.mark.parametrize(("text", "count"), [("a", 1), ("a a", 1), ("a a a", 2), ("a a b a", 2), ("b ab ba", 0), ("", 0)])
def test_the_same_term_twice_in_a_row_counts_once(text: str, count: int) -> None:
    assert counted([text], ["a"]).tolist() == [[count]]


def test_what_ends_one_text_is_not_in_a_row_with_what_begins_the_next() -> None:
    assert counted(["b a", "a b", "a"], ["a"]).tolist() == [[1], [1], [1]]


def test_nothing_is_counted_in_nothing() -> None:
    assert counted([], ["a"]).shape == (0, 1)
    assert counted(["a"], []).shape == (1, 0)
