"""One bit a dimension tells which vectors point the same way."""

from __future__ import annotations

import numpy as np

from recollect.identity import identity
from recollect.store.nearness import nearest, packed

CHANCE = np.random.default_rng(7)
VECTORS = CHANCE.standard_normal((40, 256)).astype(np.float32)
IDS = [identity("thing", n) for n in range(len(VECTORS))]


def test_the_closest_come_first_wherever_they_are_packed() -> None:
    packs = [packed(IDS[:10], VECTORS[:10]), packed(IDS[10:], VECTORS[10:])]
    for n in (3, 25):
        close = VECTORS[n] + 0.3 * CHANCE.standard_normal(256).astype(np.float32)
        assert nearest(packs, close, 1) == [IDS[n]]
        assert nearest(reversed(packs), close, 5) == nearest(packs, close, 5)
    assert sorted(nearest(packs, VECTORS[0], 100)) == sorted(IDS)


def test_equals_are_ordered_by_id_whatever_the_limit() -> None:
    packs = [packed(IDS[:6], np.repeat(VECTORS[:1], 6, axis=0))]
    assert nearest(packs, VECTORS[0], 3) == sorted(IDS[:6])[:3]


def test_what_says_nothing_is_near_nothing() -> None:
    vectors = VECTORS[:2].copy()
    vectors[1] = 0
    assert nearest([packed(IDS[:2], vectors)], VECTORS[1], 5) == IDS[:1]
    assert nearest([packed(IDS[:2], vectors)], vectors[1], 5) == []
    assert nearest([], VECTORS[0], 5) == []
    assert packed([], VECTORS[:0]) == b""


def test_signs_of_vectors_of_another_length_are_passed_over() -> None:
    short = packed(IDS[:3], VECTORS[:3, :64])
    assert nearest([short, packed(IDS[3:4], VECTORS[3:4])], VECTORS[0], 5) == IDS[3:4]
