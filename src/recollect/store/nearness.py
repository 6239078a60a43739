"""Which vectors point the same way, from one bit a dimension of each: packed with what they are of, and compared; pure."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from uuid import UUID
from zlib import crc32

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    Floats = NDArray[np.float32]
    Bits = NDArray[np.uint8]

WORD_BITS = 64
_ROUNDS = 2
_ID_BYTES = 16


def signs(vectors: Floats) -> Bits:
    """Return the signs of vectors after a fixed rotation, eight to a byte; as many bytes a row as make whole words."""
    rows, size = vectors.shape
    padded = 1 << max(size - 1, WORD_BITS - 1).bit_length()
    turned = np.zeros((rows, padded), np.float32)
    turned[:, :size] = vectors
    for flips in _flips(padded):
        turned *= flips
        step = 1
        while step < padded:
            pairs = turned.reshape(rows, padded // (2 * step), 2, step)
            turned = np.stack((pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]), axis=2).reshape(rows, padded)
            step *= 2
    return np.packbits(turned > 0, axis=1)


@cache
def _flips(size: int) -> list[Floats]:
    """Return the signs that each round of the rotation flips; the same on every machine, for ever."""
    return [np.array([1 - 2 * (crc32(f"{number}:{place}".encode()) & 1) for place in range(size)], np.float32) for number in range(_ROUNDS)]


def packed(ids: Sequence[str], vectors: Floats) -> bytes:
    """Return the ids of some things, each with the signs of its vector; one that says nothing is left out."""
    says = np.abs(vectors).sum(axis=1) > 0
    return b"".join(UUID(one).bytes + row.tobytes() for one, row, kept in zip(ids, signs(vectors), says, strict=True) if kept)


def nearest(packs: Iterable[bytes], vector: Floats, limit: int) -> list[str]:
    """Return the ids whose signs are closest to those of a vector, the closest first, equals by id."""
    if not vector.any():
        return []
    asked = signs(vector[None])[0]
    size = _ID_BYTES + len(asked)
    whole = b"".join(pack for pack in packs if len(pack) % size == 0)
    rows = np.frombuffer(whole, np.uint8).reshape(-1, size)
    words = np.ascontiguousarray(rows[:, _ID_BYTES:]).view(np.uint64)
    distances = np.bitwise_count(words ^ asked.view(np.uint64)).sum(axis=1, dtype=np.int64)
    if len(distances) > limit:
        among = np.flatnonzero(distances <= np.partition(distances, limit - 1)[limit - 1])
    else:
        among = np.arange(len(distances))
    found = sorted((int(distances[place]), rows[place, :_ID_BYTES].tobytes()) for place in among)
    return [str(UUID(bytes=key)) for _, key in found[:limit]]
