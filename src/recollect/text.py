"""Text → terms, and text cut with a mark: one analyser for everything that is stored or asked; a leaf.

Both stores index these terms as they are, and a query goes through the same function, so both find the same.
The rules up to `parts_of` are those the default embedder was trained with; stop words and stems come on top.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_RAW = re.compile(r"[^\W_]+(?:[_'.-][^\W_]+)*|_+[^\W_]+(?:[_.-]+[^\W_]+)*")
_RAW_ASCII = re.compile(r"[A-Za-z0-9]+(?:[_'.-][A-Za-z0-9]+)*|_+[A-Za-z0-9]+(?:[_.-]+[A-Za-z0-9]+)*")  # the same, faster
_SPACED = "".join(chr(code) if chr(code).isalnum() or chr(code) in "_'.-" else " " for code in range(128))  # no token crosses the rest
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\WA-Za-z0-9_]+")
_PATH = re.compile(r"(?<![\w/:.])(?:~|\.{1,2})?/?[\w.@+-]+(?:/[\w.@+-]+)+")
_UNSPACED = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+$")
_PAIR = 2
_CONTRACTIONS = frozenset({"s", "t", "m", "d", "ll", "re", "ve"})
_PARTS_MAX = 12
_NUMBER_DIGITS_MAX = 4
_NUMBER_DIGITS_SHOWN = 2
_NUMBER_LENGTH_MAX = 9
_TERM_CHARS_MAX = 64
_CACHE_TERMS_MAX = 200_000

MARK = "… [cut: {shown} of {total} characters shown] …"
_TAIL_SHARE = 4  # one part in four of what is shown comes from the end, where outcomes stand

_STOP_WORDS = frozenset(
    (
        "a about after again all also am an and any are as at be because been before being both but by can could did do does "
        "doing don dont down each else few for from further had has have having he her here hers him his how i if in into is "
        "it its just me more most my nor of off on once only or other our ours out over own please same she should so some "
        "such than that the their them then there these they this those through to too under until up very was we were what "
        "when where which while who whom why will with would you your yours "
        "au aux avec ce ces cette dans de des du elle est et il ils je la le les leur lui ma mais mes nous ou par pas pour "
        "que qui sa ses son sont sur ta tes toi tu un une vos votre vous"
    ).split(),
)


class _WithoutMarks(dict[int, int | None]):
    """Code point → itself, or nothing for a combining mark; worked out once."""

    def __missing__(self, code: int) -> int | None:
        found = None if unicodedata.combining(chr(code)) else code
        self[code] = found
        return found


_without_marks = _WithoutMarks()


def fold(text: str) -> str:
    """Strip diacritics (and the Vietnamese d-bar); ASCII text passes untouched."""
    if text.isascii():
        return text
    text = text.replace("\u2019", "'").replace("\u0111", "d").replace("\u0110", "D")
    return unicodedata.normalize("NFKD", text).translate(_without_marks)


def raw_tokens(folded: str) -> list[str]:
    """Split folded text into words and identifiers, as they are written."""
    return (_RAW_ASCII if folded.isascii() else _RAW).findall(folded)


def parts_of(raw: str) -> list[str]:
    """Split one raw token into lower-case parts: a plain word is one, an identifier has several."""
    low = raw.lower()
    if (low.isalpha() and raw[1:].islower()) or len(low) == 1:
        return [low]
    if low.endswith("'s"):
        low, raw = low[:-2], raw[:-2]
    if "'" in raw and low.replace("'", "").isalpha():
        return [part for part in low.split("'") if part and part not in _CONTRACTIONS]
    return [_short_number(part) for part in map(str.lower, _PART.findall(raw)[:_PARTS_MAX])]


def _short_number(part: str) -> str:
    if len(part) <= _NUMBER_DIGITS_MAX or not part.isdigit():
        return part
    return part[:_NUMBER_DIGITS_SHOWN] + "#" * (min(len(part), _NUMBER_LENGTH_MAX) - _NUMBER_DIGITS_SHOWN)


@cache
def _stem() -> Callable[[str], str]:
    import Stemmer  # noqa: PLC0415  a C extension that only recording and searching need

    stem: Any = Stemmer.Stemmer("english")
    return stem.stemWord


def _pieces(part: str) -> list[str]:
    """Cut a run of characters that are written without spaces into pairs, so that words inside it are found."""
    if not _UNSPACED.match(part) or len(part) <= _PAIR:
        return [part]
    return [part[n : n + _PAIR] for n in range(len(part) - 1)]


class _Remembered(dict[str, str]):
    """A stretch of folded text without spaces → its terms joined by spaces, empty for a stop word; worked out once."""

    def __missing__(self, stretch: str) -> str:
        raw = raw_tokens(stretch)
        found = _terms_of_token(stretch) if raw == [stretch] else " ".join(filter(None, [self[one] for one in raw]))
        if len(self) >= _CACHE_TERMS_MAX:
            self.clear()
        self[stretch] = found
        return found


def _terms_of_token(raw: str) -> str:
    parts = parts_of(raw) if raw.isascii() else [piece for part in parts_of(raw) for piece in _pieces(part)]
    if len(parts) == 1:
        return "" if parts[0] in _STOP_WORDS else _stem()(parts[0])[:_TERM_CHARS_MAX]
    whole = raw.lower().strip("_.-").replace("'", "")[:_TERM_CHARS_MAX]
    return " ".join([whole, *[_stem()(part)[:_TERM_CHARS_MAX] for part in parts]])


_terms_of = _Remembered()


def term_text(text: str) -> str:
    """Return the terms of a text in order, joined by spaces, repeated as often as they occur.

    `getUserById` gives getuserbyid, get, user, by, id; `src/auth/login.py` gives its parts, then the path.
    """
    folded = fold(text)
    stretches = folded.translate(_SPACED).split() if folded.isascii() else raw_tokens(folded)
    found = [_terms_of[stretch] for stretch in stretches]
    if "/" in folded:
        words = [word for word in folded.split() if "/" in word]
        found += [path.lower().lstrip("./~")[-_TERM_CHARS_MAX:] for word in words for path in _PATH.findall(word)]
    return " ".join(filter(None, found))


def speaker_term(name: str) -> str:
    """Return the term that marks who said something: no word of a text becomes one of this kind."""
    return "@" + "-".join(terms(name))[:_TERM_CHARS_MAX]


def terms(text: str) -> list[str]:
    """Return the terms of a text as a list."""
    return term_text(text).split()


def shorten(text: str, chars_max: int) -> str:
    """Return the beginning of a text on one line, with an ellipsis where it was longer."""
    line = " ".join(text[: chars_max * 4].split())
    return line if len(line) <= chars_max else line[: chars_max - 1].rstrip() + "…"


def cut(text: str, chars_max: int) -> str:
    """Return a text of at most `chars_max` characters: whole, or its beginning and end around a mark."""
    if len(text) <= chars_max:
        return text
    mark = MARK.format(shown=chars_max, total=len(text))
    room = chars_max - len(mark)
    if room <= 0:
        return text[: max(chars_max - 1, 0)] + "…"[:chars_max]
    tail = room // _TAIL_SHARE
    return text[: room - tail] + mark + text[len(text) - tail :]
