from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.text import cut, fold, raw_tokens, shorten, term_text, terms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("getUserById", ["getuserbyid", "get", "user", "by", "id"]),
        ("src/auth/login.py", ["src", "auth", "login.py", "login", "py", "src/auth/login.py"]),
        ("The crashes crashed crashing", ["crash", "crash", "crash"]),
        ("Sửa lỗi đăng nhập", ["sua", "loi", "dang", "nhap"]),
        ("don't user's HTTPServer2", ["user", "httpserver2", "http", "server", "2"]),
        ("snake_case_name", ["snake_case_name", "snake", "case", "name"]),
        ("line 31415926", ["line", "31######"]),
        ("the of and", []),
        ("北京天气怎么样", ["北京天气怎么样", "北京", "京天", "天气", "气怎", "怎么", "么样"]),
        ("天气", ["天气"]),
        ("", []),
        ("???", []),
    ],
)
def test_terms_of_words_identifiers_and_paths(text: str, expected: list[str]) -> None:
    assert terms(text) == expected


@given(st.text("aB9_'.- \t\n\x1c(=\"~", max_size=40))
def test_the_terms_of_a_text_are_those_of_its_tokens_one_by_one(text: str) -> None:
    assert terms(text) == [term for token in raw_tokens(text) for term in terms(token)]


@given(st.text())
def test_terms_never_hold_white_space_and_never_fail(text: str) -> None:
    found = terms(text)
    assert " ".join(found) == term_text(text)
    assert all(term and not term.isspace() for term in found)


@given(st.text(alphabet=st.characters(codec="ascii")))
def test_ascii_text_is_folded_to_itself(text: str) -> None:
    assert fold(text) == text


@given(st.text(), st.integers(min_value=0, max_value=500))
def test_a_cut_text_never_exceeds_its_limit_and_a_short_one_is_whole(text: str, limit: int) -> None:
    shown = cut(text, limit)
    assert len(shown) <= max(limit, 0) or shown == text
    if len(text) <= limit:
        assert shown == text


def test_a_cut_keeps_beginning_and_end_and_says_how_much_there_was() -> None:
    text = "start " + "x" * 1_000 + " outcome"
    shown = cut(text, 200)
    assert shown.startswith("start ")
    assert shown.endswith(" outcome")
    assert "of 1014 characters" in shown


def test_a_short_line_is_one_line() -> None:
    assert shorten("a\n  b\tc", 10) == "a b c"
    assert shorten("abcdefghij", 5) == "abcd…"
