"""The signs of vectors choose what is worth scoring, and are the same on every machine."""

from __future__ import annotations

import hashlib

import numpy as np

from recollect.store.sqlite.planes import signs


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
