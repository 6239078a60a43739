"""A question as people write it → what to look for: terms, names, phrases, times; pure."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

from recollect.limits import QUERY_CHARS_MAX, QUERY_TERMS_MAX
from recollect.recall.times import Period, periods
from recollect.text import fold, speaker_term, terms

if TYPE_CHECKING:
    from datetime import datetime

_LINE = re.compile(r"(?<=\.\w):\d+(?:[:-]\d+)?\b|(?<=\.\w\w):\d+(?:[:-]\d+)?\b|(?<=\.\w\w\w):\d+(?:[:-]\d+)?\b")  # src/a.py:31
_QUOTED = re.compile(r"\"([^\"]{2,200})\"|“([^”]{2,200})”|«\s*([^»]{2,200}?)\s*»|`([^`]{2,200})`")
_NAMES = re.compile(r"[^\W\d_a-zà-ÿ][^\W\d_]+(?:[ '’-][^\W\d_a-zà-ÿ][^\W\d_]+)*")
_PAIR = 2


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """A question, analysed: `text` is what its vector is made of; `speakers` are the terms that mark who spoke."""

    text: str
    terms: tuple[str, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    phrases: tuple[tuple[str, ...], ...] = ()
    speakers: frozenset[str] = frozenset()
    periods: tuple[Period, ...] = ()


def asked_of(query: str, now: datetime) -> Asked:
    """Analyse a question; any string at all is a legal one."""
    text = _LINE.sub("", query[:QUERY_CHARS_MAX].encode(errors="replace").decode())
    times = periods(text, now)
    words = terms(_without(text, times))
    distinct = tuple(dict.fromkeys(words))[:QUERY_TERMS_MAX]
    phrases = [tuple(terms(next(filter(None, found.groups())))) for found in _QUOTED.finditer(text)]
    return Asked(
        text=text,
        terms=distinct,
        pairs=tuple(dict.fromkeys(pair for pair in pairwise(words) if pair[0] != pair[1]))[:QUERY_TERMS_MAX],
        phrases=tuple(phrase for phrase in phrases if len(phrase) >= _PAIR),
        speakers=_speakers(text),
        periods=times,
    )


def _without(text: str, times: tuple[Period, ...]) -> str:
    """Return a question without the words that only said when; a date's own words stay, for texts may have them, too."""
    folded = fold(text)
    for period in times:
        if period.start is not None and len(folded) == len(text):
            folded = re.sub(rf"\b{re.escape(period.words)}\b", " ", folded, flags=re.IGNORECASE)
    return folded


def _speakers(text: str) -> frozenset[str]:
    """Return the marks of everybody who is named: each capitalised word, and each two of them in a row."""
    found: set[str] = set()
    for match in _NAMES.finditer(text):
        names = match[0].split(" ")
        found |= {speaker_term(name) for name in (*names, *(" ".join(pair) for pair in pairwise(names)))}
    return frozenset(mark for mark in found if mark != "@")
