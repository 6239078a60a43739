"""Prose → sentences worth quoting: code blocks, dumps, traces, diffs and tables are left out; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

SENTENCE_CHARS_MAX = 320
_SENTENCE_CHARS_MIN = 8
_WORDS_MIN = 2
_TEXT_CHARS_MAX = 40_000
_LETTERS_SHARE_MIN = 0.6
_TOKEN_CHARS_MAX = 80
_PARAGRAPH_CHARS_MAX = 4_000
_PIECES_MAX = 6
_ABBREVIATION_CHARS_MAX = 10
_LINE_CHARS_MAX = 400

_FENCE = re.compile(r"^\s*(```|~~~)")
_MARKER = re.compile(r"^\s*(?:[-*+•>]|#{1,6}|\d{1,3}[.)]|\[[ xX]\])\s+")
_NOT_PROSE = re.compile(
    r"""^\s*(?:
        \||@@\s|diff\ --git|index\ [0-9a-f]{7}|[+-]{3}\s|[+-](?=[\w\s{}()<]) # tables and diffs
        |File\ "|Traceback\ \(|at\ [\w$.<>]+\(|\^+$|\.{3}|={4,}|-{4,}|_{4,} # traces and rules
        |\$\s|>>>\s|\d+\s*[|:→]\s|\d+\t|</?[a-zA-Z][^>]*>\s*$|[{}\[\]();,]+\s*$ # prompts, numbered lines, markup
        |[\w.-]+\.\w+:\d+:|E\s{2,}|\(?(?:def|class|import|from|return|const|let|var|function|public|private|func|fn|if|for|while)\b.*[:;{(]\s*$
    )""",
    re.VERBOSE,
)
_END = re.compile(r"(?<=[.!?…。！？])[\"')\]*_]*\s+(?=[\"'(\[*_`]*[\w`])")  # noqa: RUF001  full stops of other scripts
_ABBREVIATION = re.compile(r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|mr|mrs|dr|p\.ex)|\b[A-Za-z])\.$", re.IGNORECASE)
_EMPHASIS = re.compile(r"(\*\*|__)(?=\S)(.{1,200}?)(?<=\S)\1")
_COMMAND = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)?)|[\x00-\x08\x0b-\x1f\x7f]")
_QUOTED_COMMAND = re.compile(r"<command-[a-z]+>[^<]{0,500}</command-[a-z]+>")
_PREAMBLE = re.compile(r"^(?:This session is being continued from a previous conversation|Caveat: The messages below were generated)")
_TAG = re.compile(r"</?[A-Za-z][\w:-]{0,60}(?:\s[^<>]{0,200})?>")
_NO_LETTER = re.compile(r"[^\w\s]|[\d_]")
_LINK = re.compile(r"!?\[([^\]]{1,200})\]\([^)]{1,500}\)")


def sentences(text: str) -> list[str]:
    """Return the sentences of a text in order, each on one line and at most `SENTENCE_CHARS_MAX` characters long."""
    plain = _TAG.sub(" ", _QUOTED_COMMAND.sub(" ", uncommanded(text[:_TEXT_CHARS_MAX])))
    found = [one for paragraph in _paragraphs(plain) for one in _split(paragraph)]
    return [shorten(one, SENTENCE_CHARS_MAX) for one in found if _says_something(one)]


def uncommanded(text: str) -> str:
    """Return a text without what commands a terminal: colours, titles, control characters."""
    return _COMMAND.sub("", text)


def _paragraphs(text: str) -> Iterator[str]:
    """Yield runs of prose lines; a list item or heading begins a new one."""
    held: list[str] = []
    inside: str | None = None
    for line in text.splitlines():
        fence = _FENCE.match(line)
        if fence is not None:
            inside = None if inside == fence[1] else inside or fence[1]
            line = ""  # noqa: PLW2901  a fence is no prose
        marker = _MARKER.match(line)
        is_prose = inside is None and bool(line.strip()) and (marker is not None or not _NOT_PROSE.match(line.strip()[:_LINE_CHARS_MAX]))
        if held and (not is_prose or marker is not None):
            yield " ".join(held)
            held = []
        if is_prose:
            held.append(line[marker.end() :].strip() if marker is not None else line.strip())
            if line.lstrip().startswith("#"):  # a heading stands alone
                yield " ".join(held)
                held = []
    if held:
        yield " ".join(held)


def _split(paragraph: str) -> Iterator[str]:
    plain = _LINK.sub(r"\1", _EMPHASIS.sub(r"\2", paragraph[:_PARAGRAPH_CHARS_MAX]))
    held: list[str] = []
    for piece in _END.split(plain):
        held.append(piece)
        if len(held) >= _PIECES_MAX or _ABBREVIATION.search(piece[-_ABBREVIATION_CHARS_MAX:]) is None:
            yield " ".join(held).strip()
            held = []
    if held:
        yield " ".join(held).strip()


def _says_something(sentence: str) -> bool:
    """Tell prose from code, numbers and noise."""
    if len(sentence) < _SENTENCE_CHARS_MIN or len(sentence.split()) < _WORDS_MIN:
        return False
    if sentence.endswith((":", ">")) or _PREAMBLE.match(sentence):  # what leads in to something else, or was not said by anybody
        return False
    if max(map(len, sentence.split())) > _TOKEN_CHARS_MAX and len(sentence.split()) < 2 * _WORDS_MIN:
        return False
    return 1 - len(_NO_LETTER.findall(sentence)) / len(sentence) >= _LETTERS_SHARE_MIN
