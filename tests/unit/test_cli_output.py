from __future__ import annotations

import io
import json
from datetime import timedelta
from typing import Any

import pytest

from recollect.errors import InputError, RecollectError
from recollect.serve.cli.ingest import payloads
from recollect.serve.cli.output import age, columns, marked, one_line, safe, size
from tests.kit import START


def test_recorded_text_cannot_command_the_terminal() -> None:
    assert safe("\x1b[31mred\x07\u202e") == "·[31mred··"
    assert "\x1b" not in one_line("\x1b]0;title\x07 hello", 50)


def test_lines_respect_the_width_in_columns() -> None:
    assert columns("日本語") == 6
    assert columns(one_line("日本語" * 30, 20)) <= 20
    assert one_line("a\nb", 20) == "a b"


def test_ages_and_sizes_are_words() -> None:
    assert [age(START - timedelta(seconds=s), START) for s in (0, 1, 90, 7_200, 3 * 86_400, 90 * 86_400, 900 * 86_400)] == [
        "now", "1 second ago", "1 minute ago", "2 hours ago", "3 days ago", "3 months ago", "2 years ago",
    ]  # fmt: skip
    assert age(START + timedelta(hours=1), START) == "now"
    assert age(None, START) == "unknown"
    assert [size(n) for n in (5, 1_500, 2_500_000)] == ["5 B", "1.5 kB", "2.5 MB"]


def test_words_a_query_asked_for_are_marked() -> None:
    assert marked("Login crashes in login_user", frozenset({"login", "crash"})) == "**Login** **crashes** in **login**_user"


@pytest.mark.parametrize(
    ("text", "places"),
    [
        (b'{"a": 1}', ["line 1"]),
        (b'\n\n{\n"a": 1\n}', ["document"]),
        (b'[{"a": 1}, {"a": 2}]', ["item 1", "item 2"]),
        (b'{"a": 1}\n\n{"a": 2}\n', ["line 1", "line 3"]),
        (b'{"a": 1}\n{broken}\n{"a": 2}', ["line 1", "line 2", "line 3"]),
        (b'{broken}\n{"a": 1}\n{"a": 2}', ["line 1", "line 2", "line 3"]),
        (b"nonsense", ["document"]),
    ],
)
def test_payloads_are_found_in_a_document_an_array_or_lines(text: bytes, places: list[str]) -> None:
    assert [place for place, _ in payloads(io.BytesIO(text))] == places


def test_a_bad_line_stands_for_itself_and_hides_no_neighbour() -> None:
    found: list[Any] = [payload for _, payload in payloads(io.BytesIO(b'{"a": 1}\n{broken}\n{"a": 2}'))]
    assert [isinstance(one, RecollectError) for one in found] == [False, True, False]
    assert json.dumps(found[2]) == '{"a": 2}'
    with pytest.raises(InputError):
        list(payloads(io.BytesIO(b" \n ")))
