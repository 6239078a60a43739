"""The signs of vectors choose what is worth scoring, and are the same on every machine."""

from __future__ import annotations

import hashlib
from typing import Any, cast

import numpy as np
import pytest

from recollect.store.nearness import signs
from recollect.store.sqlite import planes
from recollect.store.sqlite.database import Connection
from recollect.store.sqlite.planes import Planes


def test_signs_are_the_same_for_ever() -> None:
    vectors = np.array([[(n * 37 + row * 11) % 23 - 11 for n in range(256)] for row in range(4)], np.float32)
    found = signs(vectors)
    assert found.shape == (4, 32)
    assert hashlib.sha256(found.tobytes()).hexdigest()[:16] == EXPECTED


EXPECTED = "aed2eb7dbdaa57a2"


def test_close_vectors_have_close_signs() -> None:
    source = np.random.default_rng(3)
    base = source.normal(size=(300, 256)).astype(np.float32)
    query = base[7] + 0.4 * source.normal(size=256).astype(np.float32)
    bits = np.unpackbits(signs(base), axis=1)
    asked = np.unpackbits(signs(query[None]), axis=1)[0]
    assert int(np.argmin((bits != asked).sum(axis=1))) == 7


def test_any_number_of_dimensions_fills_whole_words() -> None:
    for size in (1, 3, 64, 100, 768, 1_536):
        assert signs(np.ones((2, size), np.float32)).shape[1] % 8 == 0
    assert signs(np.zeros((0, 256), np.float32)).shape[0] == 0


class OneBlock:
    """A connection to a file that holds one block of planes."""

    def __init__(self, vectors: np.ndarray[Any, np.dtype[np.float32]]) -> None:
        heads = [(n, n % 2, n // 3) for n in range(len(vectors))]
        packed = np.array(heads, [("place", "<u2"), ("level", "u1"), ("last_turn", "<i4")])
        self._row = (0, "model", packed.tobytes(), signs(vectors).tobytes())

    def value(self, _query: str) -> int:
        return 1

    def rows(self, _query: str, _bindings: object) -> list[tuple[int, str, bytes, bytes]]:
        return [self._row]


@pytest.mark.parametrize("levels", [None, (1,)])
@pytest.mark.parametrize("among", [None, range(0, 900, 7)])
@pytest.mark.parametrize("ranges", [[((0, 1023), 999)], [((5, 300), 999), ((301, 640), 150)], [((0, 1023), 20)], [((7, 31), 999)], []])
def test_a_scan_finds_the_closest_signs_of_its_ranges_and_of_equals_the_lower(
    ranges: list[tuple[tuple[int, int], int]], among: range | None, levels: tuple[int, ...] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planes, "_SCANNED_AT_ONCE", 64)
    source = np.random.default_rng(5)
    vectors = source.normal(size=(900, 64)).astype(np.float32)
    asked = source.normal(size=64).astype(np.float32)
    distance = (np.unpackbits(signs(vectors), axis=1) != np.unpackbits(signs(asked[None]), axis=1)).sum(axis=1)
    inside = [
        n
        for n in range(900)
        if (levels is None or n % 2 in levels) and any(first <= n <= last and n // 3 <= last_turn for (first, last), last_turn in ranges)
    ]
    wanted = [n for n in inside if among is None or n in among]
    read = Planes("model")
    connection = cast("Connection", OneBlock(vectors))
    read.refresh(connection)
    found = read.near(connection, ranges, levels, None if among is None else np.array(among, np.int64), asked, 30)
    assert found.count == len(inside)
    if len(wanted) > 30:
        assert found.numbers.tolist() == sorted(wanted, key=lambda n: (distance[n], n))[:30]
    else:
        assert sorted(found.numbers.tolist()) == wanted


def test_signs_tell_about_how_close_a_vector_is_and_where_its_passage_is() -> None:
    source = np.random.default_rng(6)
    vectors = source.normal(size=(40, 256)).astype(np.float32)
    read = Planes("model")
    connection = cast("Connection", OneBlock(vectors))
    read.refresh(connection)
    near = read.near(connection, [((0, 1023), 999)], None, None, vectors[9], 5)
    told = read.told(np.array([3, 9, 39, 40, 2_000], np.int64), near.asked)
    assert told.cosines[1] == 1.0
    assert told.cosines[3:].tolist() == [0.0, 0.0]
    exact = vectors @ vectors[9] / (np.linalg.norm(vectors, axis=1) * np.linalg.norm(vectors[9]))
    assert np.abs(read.told(np.arange(40), near.asked).cosines - exact).max() < 0.35
    assert told.levels.tolist() == [1, 1, 1, -1, -1]
    assert told.turns.tolist() == [1, 3, 13, 0, 0]


def test_planes_that_were_never_read_tell_nothing() -> None:
    told = Planes("model").told(np.array([1, 2], np.int64), np.zeros(4, np.uint64))
    assert (told.levels.tolist(), told.cosines.tolist()) == ([-1, -1], [0.0, 0.0])
