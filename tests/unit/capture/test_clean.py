from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.capture.clean import Cleaner, parse_json
from recollect.capture.secrets import default_redactor
from recollect.errors import InputError
from recollect.limits import INTEGER_MAX, PAYLOAD_DEPTH_MAX


def cleaned(value: object) -> tuple[Any, dict[str, int]]:
    cleaner = Cleaner(default_redactor())
    return cleaner.value(value), dict(cleaner.notes)


@pytest.mark.parametrize(
    ("value", "expected", "note"),
    [
        ("a\0b", "a\ufffdb", "nul_characters"),
        ("a\ud800b", "a\ufffdb", "lone_surrogates"),
        (2**63, str(2**63), "big_integers"),
        (-(2**63) - 1, str(-(2**63) - 1), "big_integers"),
        (2**5_000, "[integer of 5001 bits]", "big_integers"),
        (math.nan, None, "numbers_not_finite"),
        (math.inf, None, "numbers_not_finite"),
        (object, "<class 'object'>", "foreign_values"),
        ("password=correct-horse9", "password=[redacted:assigned-secret]", "secrets_redacted"),
        ({"password": "x1y2"}, {"password": "[redacted:assigned-secret]"}, "secrets_redacted"),
        ({"db_password": 'with "quotes" x'}, {"db_password": "[redacted:assigned-secret]"}, "secrets_redacted"),
    ],
)
def test_what_no_store_takes_is_read_with_tolerance_and_counted(value: object, expected: object, note: str) -> None:
    assert cleaned(value) == (expected, {note: 1})


@pytest.mark.parametrize(
    ("value", "expected"),
    [(INTEGER_MAX, INTEGER_MAX), (True, True), (("a", 1), ["a", 1]), (b"abc", "abc"), (Path("/p/a"), "/p/a"), ({1: 2}, {"1": 2}),
     ({"token": 3, "pad_token": "[PAD]"}, {"token": 3, "pad_token": "[PAD]"}), ({"token": "class"}, {"token": "class"}),
     ({"credentials": "same-origin"}, {"credentials": "same-origin"}), ({"pwd": "/work"}, {"pwd": "/work"}), ({"pass": 1}, {"pass": 1}),
     ({"token": "None"}, {"token": "None"}), ({"password": "$PASSWORD"}, {"password": "$PASSWORD"}), ({"password": ""}, {"password": ""})],
)  # fmt: skip
def test_what_is_harmless_passes_without_a_note(value: object, expected: object) -> None:
    assert cleaned(value) == (expected, {})


def test_depth_is_cut_not_followed() -> None:
    deep: Any = "bottom"
    for _ in range(10_000):
        deep = [deep]
    value, notes = cleaned(deep)
    assert notes == {"too_deep": 1}
    assert str(value).count("[") == PAYLOAD_DEPTH_MAX + 1
    assert not Cleaner(default_redactor()).is_clean(deep)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["password=correct-horse9", "token", "x\0y", "\ud800"]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.sampled_from(["password", "path"]), inner),
)


@given(json_values)
def test_a_value_that_is_said_to_be_clean_is_left_as_it_is_by_cleaning(value: object) -> None:
    cleaner = Cleaner(default_redactor())
    if cleaner.is_clean(value):
        assert cleaner.value(value) == value
        assert not cleaner.notes


@given(json_values)
def test_cleaning_twice_is_cleaning_once(value: object) -> None:
    once, _ = cleaned(value)
    assert cleaned(once)[0] == once


@pytest.mark.parametrize("document", [b"", b"{", b"\xff\xfe", b"nul", b"[" * 200_000, b'{"a":' * 200_000, "[1,]", '{"a": 1} x'])
def test_what_is_no_json_is_refused_with_a_sentence(document: str | bytes) -> None:
    with pytest.raises(InputError):
        parse_json(document)


def test_numbers_that_json_allows_and_stores_do_not_are_read() -> None:
    assert cleaned(parse_json(b"[NaN, Infinity, -Infinity]")) == ([None, None, None], {"numbers_not_finite": 3})
    assert parse_json("9" * 5_000) == "9" * 5_000
    assert parse_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
