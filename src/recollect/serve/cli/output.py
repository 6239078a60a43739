"""How answers look: plain in a pipe, coloured on a terminal, within its width, and never able to command it."""

from __future__ import annotations

import os
import re
import sys
import time
import unicodedata
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.answers import to_json
from recollect.clock import ago
from recollect.text import terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_WORD = re.compile(r"[^\W_]+(?:'[^\W_]+)?")
_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}
_UNITS = ("B", "kB", "MB", "GB", "TB")
_THOUSAND = 1_000
_PROGRESS_SECONDS = 0.2
_WIDTH_MIN = 40
_WIDTH_DEFAULT = 100


def is_terminal() -> bool:
    """Whether a person watches standard output, and wants colours."""
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def styled(text: str, style: str) -> str:
    """Return text in a style, where there is a terminal to show it."""
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m" if is_terminal() and text else text


def safe(text: str) -> str:
    """Return text that cannot command a terminal: control characters are shown as a dot."""
    return _CONTROL.sub("·", text)


def one_line(text: str, chars_max: int) -> str:
    """Return the beginning of a text on one line, safe to print, in at most so many columns."""
    line = safe(" ".join(text[: chars_max * 4].split()))
    if columns(line) <= chars_max:
        return line
    kept = ""
    used = 0
    for character in line:
        used += columns(character)
        if used > chars_max - 1:
            break
        kept += character
    return kept.rstrip() + "…"


def columns(text: str) -> int:
    """Return how many columns a text takes: wide characters take two, combining ones none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def width() -> int:
    """Return the columns there are."""
    told = os.environ.get("COLUMNS", "")
    try:
        found = int(told) if told.isdecimal() else os.get_terminal_size(sys.stdout.fileno()).columns
    except (OSError, ValueError):
        found = _WIDTH_DEFAULT
    return max(found, _WIDTH_MIN)


def wrapped(text: str, indent: int = 7) -> str:
    """Return a text in lines as wide as the terminal; those after the first are indented."""
    import textwrap  # noqa: PLC0415  only long texts need it

    return "\n".join(textwrap.wrap(text, width(), subsequent_indent=" " * indent, break_long_words=False, break_on_hyphens=False))


def print_json(value: object) -> None:
    """Print one JSON document; what is no character, as in the names of some files, is replaced."""
    plain = to_json(value)
    try:
        told = msgspec.json.encode(plain).decode()
    except UnicodeEncodeError:
        import json  # noqa: PLC0415  only such names need it

        told = json.dumps(plain, ensure_ascii=False).encode(errors="replace").decode()
    print(told)


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], *, stretch: int) -> None:
    """Print rows in columns as wide as their contents; the one to stretch gives way to the terminal's width."""
    cells = [[safe(str(cell)) for cell in row] for row in rows]
    widths = [max([columns(name), *(columns(row[n]) for row in cells)]) for n, name in enumerate(head)]
    spare = width() - sum(widths) - 2 * (len(widths) - 1)
    widths[stretch] = max(min(widths[stretch], widths[stretch] + spare), len(head[stretch]), 8)
    print(styled(_padded(head, widths), "dim"))
    for row in cells:
        row[stretch] = one_line(row[stretch], widths[stretch])
        print(_padded(row, widths))


def _padded(cells: Sequence[str], widths: Sequence[int]) -> str:
    return "  ".join(cell + " " * (widths[n] - columns(cell)) for n, cell in enumerate(cells)).rstrip()


def age(moment: datetime | None, now: datetime) -> str:
    """Return how long ago something was, in words."""
    if moment is None:
        return "unknown"
    seconds = (now - moment).total_seconds()
    return "now" if seconds < 1 else ago(seconds)


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def size(number: float) -> str:
    """Return a number of bytes in words."""
    for unit in _UNITS:
        if number < _THOUSAND or unit == _UNITS[-1]:
            return f"{number:,.0f} {unit}" if unit == "B" else f"{number:,.1f} {unit}"
        number /= _THOUSAND
    return ""


def marked(text: str, wanted: frozenset[str]) -> str:
    """Return text with the words marked that a query asked for: bold on a terminal, between asterisks elsewhere."""

    def mark(match: re.Match[str]) -> str:
        word = match[0]
        if wanted.isdisjoint(terms(word)):
            return word
        return styled(word, "bold") if is_terminal() else f"**{word}**"

    return _WORD.sub(mark, text)


class Progress:
    """How far a long work has come, on standard error, where a person watches it."""

    def __init__(self, noun: str) -> None:
        self._noun = noun
        self._shown_at = time.monotonic()
        self._shown = False

    def at(self, number: int) -> None:
        """Say it, now and then."""
        if sys.stderr.isatty() and time.monotonic() - self._shown_at >= _PROGRESS_SECONDS:
            print(f"\r{number:,} {self._noun} …", end="", file=sys.stderr, flush=True)
            self._shown_at = time.monotonic()
            self._shown = True

    def end(self) -> None:
        """Clear the line."""
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """Say something that is not the answer."""
    print(f"recollect: {safe(text)}", file=sys.stderr)
