"""Text → vectors: what an embedder is, and the one that ships with the package.

NumPy is imported here and where vectors are searched, never when Recollect is imported or a turn is recorded.
"""

from __future__ import annotations

from array import array
from functools import cache
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Protocol
from zlib import crc32

import msgspec
import numpy as np

from recollect.text import fold, parts_of, raw_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

_WEIGHTS = Path(__file__).parent / "weights" / "static256"
_GRAM_SIZES = (3, 4, 5)
_GRAM_CHARS_MAX = 24
_TOKENS_REMEMBERED_MAX = 200_000
_TEXTS_PER_BATCH = 64
_UNKNOWN_WEIGHT = 3.0


class Embedder(Protocol):
    """Makes vectors of texts; the name changes whenever the vectors would."""

    @property
    def name(self) -> str:
        """What the vectors are called in the store."""
        ...

    @property
    def dimensions(self) -> int:
        """How long a vector is."""
        ...

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text: of length 1, or zeros for a text that says nothing; `ModelError` when it cannot be had."""
        ...


class _Settings(msgspec.Struct):
    dim: int
    buckets: int
    vocab: str


class StaticEmbedder:
    """A table of term vectors, summed and normalised: no model runtime, no network, milliseconds to load."""

    def __init__(self, stem: Path = _WEIGHTS) -> None:
        about = msgspec.json.decode(stem.with_suffix(".json").read_bytes(), type=_Settings)
        words = about.vocab.split(" ")
        self.name = stem.name
        self.dimensions = about.dim
        self._row_of = dict(zip(words, range(len(words)), strict=True))
        self._buckets = about.buckets
        rows = len(words) + about.buckets
        table = np.memmap(stem.with_suffix(".bin"), np.uint8, "r")
        self._scales = np.asarray(table[: 2 * rows]).view("<f2").astype(np.float32)
        self._table = np.asarray(table[2 * rows :]).view(np.int8).reshape(rows, about.dim)
        self._rarities: dict[str, float] = {}
        self._lexicon = _Lexicon(self._rows_of)

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text."""
        return self.vectors(texts)

    def vectors(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text, at once."""
        found = np.zeros((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), _TEXTS_PER_BATCH):
            self._fill(found[start : start + _TEXTS_PER_BATCH], texts[start : start + _TEXTS_PER_BATCH])
        return found

    def rarity(self, term: str) -> float:
        """Return how much a known term weighs, which is how rarely it says nothing; unknown ones weigh most of all."""
        if term not in self._row_of:
            return _UNKNOWN_WEIGHT
        if term not in self._rarities:
            row = self._row_of[term]
            self._rarities[term] = float(self._scales[row] * np.linalg.norm(self._table[row].astype(np.float32)))
        return self._rarities[term]

    def _fill(self, rows: Matrix, texts: Sequence[str]) -> None:
        owners, cells, weights = self._lexicon.cells([raw_tokens(fold(text)) for text in texts])
        distinct, place = np.unique(owners * len(self._table) + cells, return_inverse=True)
        summed = np.bincount(place, weights, len(distinct))
        damped = np.where(summed > 1, np.sqrt(np.maximum(summed, 1)), summed).astype(np.float32)
        table_rows = distinct % len(self._table)
        damped *= self._scales[table_rows]
        bounds = np.searchsorted(distinct // len(self._table), np.arange(len(texts) + 1))
        for n in range(len(texts)):
            first, last = bounds[n], bounds[n + 1]
            if first < last:
                vector = damped[first:last] @ self._table[table_rows[first:last]].astype(np.float32)
                rows[n] = vector / max(float(np.sqrt(vector @ vector)), 1e-12)

    def _rows_of(self, raw: str) -> tuple[list[int], list[float]]:
        """Return the rows of a raw token and their weights: 1 for a known term, shared among the n-grams of an unknown one."""
        rows: list[int] = []
        weights: list[float] = []
        for term in self._terms(raw):
            row = self._row_of.get(term)
            if row is not None:
                rows.append(row)
                weights.append(1.0)
                continue
            hashes = _grams(term)
            rows += [len(self._row_of) + one % self._buckets for one in hashes]
            weights += [1.0 / len(hashes)] * len(hashes)
        return rows, weights

    def _terms(self, raw: str) -> list[str]:
        """Return the terms of a raw token: its parts, and the whole where it is known."""
        parts = parts_of(raw)
        low = raw.lower()
        if "'" in low.removesuffix("'s"):
            flat = low.removesuffix("'s").replace("'", "")
            return [flat] if flat.isalpha() and flat in self._row_of else parts
        whole = low.removesuffix("'s").strip("_.-")
        return [*parts, whole] if len(parts) > 1 and whole in self._row_of else parts


class _Lexicon(dict[str, int]):
    """Raw token → its number; the rows of a number and their weights stand one after the other in two flat lists.

    Searches and the worker share it from several threads, one at a time.
    """

    def __init__(self, rows_of: Callable[[str], tuple[list[int], list[float]]]) -> None:
        super().__init__()
        self._lock = Lock()
        self._rows_of = rows_of
        self._rows, self._weights, self._ends = array("q"), array("d"), array("q", [0])

    def __missing__(self, raw: str) -> int:
        rows, weights = self._rows_of(raw)
        self._rows.extend(rows)
        self._weights.extend(weights)
        self._ends.append(len(self._rows))
        number = self[raw] = len(self)
        return number

    def cells(self, texts: Sequence[Sequence[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the rows that the tokens of texts stand for, each with its text and its weight."""
        with self._lock:
            if len(self) >= _TOKENS_REMEMBERED_MAX:
                self.clear()
                self._rows, self._weights, self._ends = array("q"), array("d"), array("q", [0])
            return self._counted(texts)

    def _counted(self, texts: Sequence[Sequence[str]]) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        numbers = np.array([self[raw] for tokens in texts for raw in tokens], np.int64)
        ends = np.frombuffer(self._ends, np.int64)  # as long as it is looked at, nothing can be added
        counts = ends[numbers + 1] - ends[numbers]
        owners = np.repeat(np.repeat(np.arange(len(texts)), [len(tokens) for tokens in texts]), counts)
        places = np.repeat(ends[numbers + 1] - np.cumsum(counts), counts) + np.arange(len(owners))
        return owners, np.frombuffer(self._rows, np.int64)[places], np.frombuffer(self._weights, np.float64)[places]


def _grams(term: str) -> list[int]:
    text = f"<{term[:_GRAM_CHARS_MAX]}>"
    return [crc32(text[n : n + size].encode()) for size in _GRAM_SIZES for n in range(max(1, len(text) - size + 1))]


@cache
def default_embedder() -> StaticEmbedder:
    """Return the embedder that ships with the package, loaded once a process."""
    return StaticEmbedder()
