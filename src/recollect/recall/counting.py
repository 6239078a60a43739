"""How often texts have the terms that are asked for: one sweep over their bytes, however many terms there are; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

_KEY_BYTES = 8
_SPACE = ord(" ")


def counted(texts: Sequence[str], terms: Sequence[str]) -> Floats:
    """Return how often each text, terms joined by spaces, has each of some terms; the same term twice in a row counts once.

    Of words whose first two bytes are those of some term, the first eight are compared as one number, and only what is longer
    byte by byte.
    """
    counts = np.zeros((len(texts), len(terms)), np.float64)
    if not terms:
        return counts
    parts = [text.encode(errors="surrogatepass") for text in texts]
    joined = b" %b %b" % (b"  ".join(parts), b" " * _KEY_BYTES)  # two spaces: what ends one text is not in a row with what begins the next
    ends = np.cumsum([len(part) + 2 for part in parts])
    words = [f"{term} ".encode(errors="surrogatepass") for term in terms]
    starts = np.flatnonzero(np.frombuffer(joined, np.uint8)[:-_KEY_BYTES] == _SPACE) + 1
    places = np.flatnonzero(_beginning_as(words, joined, starts))
    keys = np.ndarray((len(joined) - _KEY_BYTES + 1,), "<u8", joined, strides=(1,))[starts[places]]
    for column, word in enumerate(words):
        mask = (1 << 8 * min(len(word), _KEY_BYTES)) - 1
        found = places[(keys & np.uint64(mask)) == np.uint64(int.from_bytes(word[:_KEY_BYTES], "little"))]
        if len(word) > _KEY_BYTES:
            found = found[np.array([joined.startswith(word, start) for start in starts[found].tolist()], np.bool_)]
        if len(found):
            rows = np.searchsorted(ends, starts[_every_other(found)], side="right")
            counts[:, column] = np.bincount(rows, minlength=len(texts))
    return counts


def _beginning_as(words: Sequence[bytes], joined: bytes, starts: Places) -> NDArray[np.bool_]:
    """Tell of what stands at some places whether its first two bytes are those of some word."""
    wanted = np.zeros(1 << 16, np.bool_)
    wanted[[int.from_bytes(word[:2], "little") for word in words]] = True
    return wanted[np.ndarray((len(joined) - 1,), "<u2", joined, strides=(1,))[starts]]


def _every_other(words: Places) -> Places:
    """Return which words count: of those that follow one another without a gap the first, the third and so on."""
    begins = np.diff(words, prepend=-2) != 1
    if begins.all():
        return words
    ordinal = np.arange(len(words))
    return words[(ordinal - np.maximum.accumulate(np.where(begins, ordinal, 0))) % 2 == 0]
