"""What a definition says of itself: its signature and its doc comment, from the text alone; pure."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.code.languages import Comments

    Clean = Callable[[str], str]

SIGNATURE_CHARS_MAX = 300
DOCSTRING_CHARS_MAX = 500
_SOURCE_CHARS_MAX = 4_000  # what is looked at to find either
_DOC_LINES_MAX = 60
_ATTRIBUTES_MAX = 20

_ATTRIBUTE = re.compile(r"(?:@(?!interface\b)[\w.:]+(?:\((?:[^()]|\([^()]*\))*\))?|#?\[[^\[\]]*\])\s+(?=\S)")
_QUOTES = re.compile(r"[rRuU]?(\"\"\"|'''|\"|')")
_OPENING = re.compile(r"/\*+!?|///?!?|//!|#+|--+(?:\[=*\[)?|\*(?!/)")
_CLOSING = re.compile(r"\s*(?:\*+/|--\]\]|\]=*\])\s*$")
_TAG = re.compile(r"</?(?:summary|remarks|para|param|returns|value|example|see|code|c|p)\b[^<>]*>")
_PARAGRAPH = re.compile(r"\n[ \t\r]*\n")
_COMMENT_STARTS: dict[Comments, tuple[str, ...]] = {"slashes": ("//",), "hash": ("#",), "dashes": ("--",)}


def signature(text: str, start: int, end: int, clean: Clean) -> str:
    """Return a stretch of a text as one line, without leading attributes and what opens a body; cleaned before it is cut."""
    line = " ".join(text[start : min(end, start + _SOURCE_CHARS_MAX)].split())
    for _ in range(_ATTRIBUTES_MAX):
        found = _ATTRIBUTE.match(line)
        if found is None:
            break
        line = line[found.end() :]
    line = line.replace("( ", "(").replace(", )", ")").replace(" )", ")")
    line = line.rstrip(" {:=;").removesuffix("=>").rstrip()
    return _cut(clean(line), SIGNATURE_CHARS_MAX)


def python_docstring(text: str, body: int, clean: Clean) -> str:
    """Return the docstring that opens a Python body, empty when there is none."""
    opened = _QUOTES.match(text, body)
    if opened is None:
        return ""
    end = text.find(opened[1], opened.end(), opened.end() + _SOURCE_CHARS_MAX)
    return _paragraphs(text[opened.end() : end if end >= 0 else opened.end() + _SOURCE_CHARS_MAX], clean)


def comment_above(lines: list[str], line: int, comments: Comments, clean: Clean) -> str:
    """Return the comment directly above a line (counted from one), without its marks; empty when there is none."""
    at = _above_attributes(lines, line - 2)
    if at < 0:
        return ""
    last = lines[at].strip()
    if comments != "hash" and last.endswith(("*/", "]]")):
        found = _block(lines, at, "/*" if comments == "slashes" else "--[")
    else:
        found = _run(lines, at, _COMMENT_STARTS[comments])
    cleaned = [_CLOSING.sub("", _unmarked(one.strip()[:_SOURCE_CHARS_MAX])) for one in found]
    told = takewhile(lambda one: not one.startswith("@"), cleaned)
    return _paragraphs(_TAG.sub("", "\n".join(told)), clean)


def _above_attributes(lines: list[str], at: int) -> int:
    for _ in range(_ATTRIBUTES_MAX):
        if at < 0:
            return -1
        line = lines[at].strip()
        if not (line.startswith(("#[", "@")) or (line.startswith("[") and line.endswith("]"))):
            return at
        at -= 1
    return -1


def _block(lines: list[str], at: int, opening: str) -> list[str]:
    for first in range(at, max(-1, at - _DOC_LINES_MAX), -1):
        place = lines[first].find(opening)
        if place >= 0:
            return lines[first : at + 1] if not lines[first][:place].strip() else []
    return []


def _run(lines: list[str], at: int, starts: tuple[str, ...]) -> list[str]:
    first = at
    while first >= 0 and at - first < _DOC_LINES_MAX:
        line = lines[first].lstrip()
        if not line.startswith(starts) or line.startswith(("#!", "//!")):
            break
        first -= 1
    return lines[first + 1 : at + 1]


def _unmarked(line: str) -> str:
    found = _OPENING.match(line)
    return line[found.end() :].strip() if found is not None else line


def _paragraphs(text: str, clean: Clean) -> str:
    """Return as many leading paragraphs as fit, each on one line; the first is cut when it alone is too long."""
    kept = ""
    for paragraph in _PARAGRAPH.split(clean(text.strip())):
        one = " ".join(paragraph.split())
        joined = f"{kept}\n\n{one}" if kept else one
        if kept and len(joined) > DOCSTRING_CHARS_MAX:
            break
        kept = joined
    return _cut(kept, DOCSTRING_CHARS_MAX)


def _cut(text: str, chars_max: int) -> str:
    return text if len(text) <= chars_max else text[: chars_max - 1].rstrip() + "…"
