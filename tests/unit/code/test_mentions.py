"""What a text speaks of: precision first."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.code.mentions import is_telling, mentions_of, referenced
from tests.mentioned import LABELLED, ROOT, SCOPES


def found(text: str) -> set[str]:
    mentions = mentions_of(text, ROOT)
    named = [scope for scope in SCOPES if {scope.name, scope.qualified} & mentions.names]
    paths = {path for path, _ in mentions.places}
    in_files = [scope for scope in SCOPES if any(scope.file_path == path or scope.file_path.endswith("/" + path) for path in paths)]
    return set(referenced(mentions, named, in_files, "shop"))


@pytest.mark.parametrize(("text", "wanted"), LABELLED)
def test_a_text_speaks_of_what_somebody_says_it_does(text: str, wanted: tuple[str, ...]) -> None:
    assert found(text) == set(wanted)


@pytest.mark.parametrize("name", ["login_user", "LoginForm", "renderCart", "_private_name", "to_json"])
def test_names_that_are_hardly_said_by_chance(name: str) -> None:
    assert is_telling(name)


@pytest.mark.parametrize("name", ["get", "main", "Paris", "open", "MAX_TRIES", "HTTP", "x", "a_b", "__", ""])
def test_names_that_are_said_by_chance(name: str) -> None:
    assert not is_telling(name)


@given(st.text(max_size=2_000))
def test_any_text_is_read(text: str) -> None:
    assert isinstance(found(text), set)


def test_a_long_text_is_read_in_time_that_grows_with_it() -> None:
    for text in (
        "a.b" * 20_000,
        "`" * 50_000,
        "x/" * 25_000,
        "def " * 10_000,
        "src/a.py:1 " * 5_000,
        "\t" * 50_000,
        "from a import b, " * 3_000,
        "{" * 50_000,
        "a.py:1 in b\n    " * 3_000,
        "at a (" * 9_000,
        "a.py::" * 8_000,
        "@" * 50_000,
        "{ a } from " * 5_000,
        "self." * 10_000,
    ):
        assert len(found(text)) <= len(SCOPES)
