"""One bit a dimension of every vector, packed in the file, and scanned by processes that remember what they have read.

The signs of a vector, after a fixed rotation, are enough to choose the few hundred that are worth scoring exactly. A row
of `plane` holds the signs for 1,024 passage numbers, with the level and the last turn of each; a stamp tells which rows
have changed since a process looked.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING
from zlib import crc32

import msgspec
import numpy as np

from recollect.store.sqlite.rows import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from recollect.store.sqlite.database import Connection
    from recollect.store.sqlite.numbering import Range

    Floats = NDArray[np.float32]
    Words = NDArray[np.uint64]
    Numbers = NDArray[np.int64]

_BLOCK_BITS = 10
_WORD_BITS = 64
_HEAD = np.dtype([("place", "<u2"), ("level", "u1"), ("last_turn", "<i4")])
_ROUNDS = 2


def signs(vectors: Floats) -> NDArray[np.uint8]:
    """Return the signs of vectors after a fixed rotation, eight to a byte; as many bytes a row as make whole words."""
    rows, size = vectors.shape
    padded = 1 << max(size - 1, _WORD_BITS - 1).bit_length()
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


def pack(connection: Connection, model: str, numbers: Iterable[int]) -> None:
    """Pack the signs of vectors that were just written; a block that is spoilt, or of another model, is packed anew."""
    touched: dict[int, list[int]] = {}
    for number in numbers:
        touched.setdefault(number >> _BLOCK_BITS, []).append(number)
    stamp = int(connection.value("select coalesce(max(stamp), 0) + 1 from plane"))
    for block, own in touched.items():
        held = connection.row("select heads, bits from plane where block = ? and model = ?", (block, model))
        heads, bits = _rows(connection, model, own if held is not None else None, block)
        if held is not None:
            old = np.frombuffer(held[0], _HEAD)
            kept = ~np.isin(old["place"], heads["place"])
            if len(old):
                bits = np.concatenate((np.frombuffer(held[1], np.uint8).reshape(len(old), -1)[kept], bits))
            heads = np.concatenate((old[kept], heads))
            order = np.argsort(heads["place"])
            heads, bits = heads[order], bits[order]
        connection.run(
            "insert or replace into plane (block, model, stamp, heads, bits) values (?, ?, ?, ?, ?)",
            (block, model, stamp, heads.tobytes(), bits.tobytes()),
        )


def _rows(connection: Connection, model: str, numbers: list[int] | None, block: int) -> tuple[NDArray[np.void], NDArray[np.uint8]]:
    rows = connection.rows(
        """
        select p.number & 1023, p.level, p.last_turn, e.vector from embedding e join passage p on p.number = e.number
        where e.number between ?1 and ?2 and e.model = ?3 and (?4 is null or e.number in (select value from json_each(?4))) order by 1
        """,
        (block << _BLOCK_BITS, (block + 1 << _BLOCK_BITS) - 1, model, None if numbers is None else as_json(numbers)),
    )
    heads = np.array([row[:3] for row in rows], _HEAD)
    if not rows:
        return heads, np.zeros((0, 0), np.uint8)
    values = np.frombuffer(b"".join(row[3] for row in rows), np.int8).reshape(len(rows), -1)
    return heads, signs(values.astype(np.float32))


class Scan(msgspec.Struct, frozen=True):
    """What a scan found: the numbers worth scoring, and how many there are in the ranges at all."""

    numbers: list[int]
    count: int


class Planes:
    """The planes of one file and one model, as far as this process has read them."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._seen = 0
        self._spoilt: set[int] = set()
        self._numbers: Numbers = np.zeros(0, np.int64)
        self._levels: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._turns: NDArray[np.int32] = np.zeros(0, np.int32)
        self._words: Words = np.zeros((0, 0), np.uint64)

    def refresh(self, connection: Connection) -> None:
        """Read what has changed since the last time."""
        newest = int(connection.value("select coalesce(max(stamp), 0) from plane"))
        if newest < self._seen:  # another file has taken the place of the one that was read
            self.__init__(self.model)
        if newest == self._seen:
            return
        rows = connection.rows("select block, model, heads, bits from plane where stamp > ? order by block", (self._seen,))
        self._seen = newest
        changed = np.array([row[0] for row in rows], np.int64)
        kept = ~np.isin(self._numbers >> _BLOCK_BITS, changed)
        own = [row for row in rows if row[1] == self.model and row[2]]
        self._spoilt = (self._spoilt - {row[0] for row in rows}) | {row[0] for row in rows if row[1] != self.model}
        heads = [np.frombuffer(row[2], _HEAD) for row in own]
        numbers = [(row[0] << _BLOCK_BITS) + head["place"].astype(np.int64) for row, head in zip(own, heads, strict=True)]
        words = [np.frombuffer(row[3], np.uint8).reshape(len(head), -1).view(np.uint64).T for row, head in zip(own, heads, strict=True)]
        if self._words.size:
            words.insert(0, self._words[:, kept])
        self._numbers = np.concatenate([self._numbers[kept], *numbers])
        order = np.argsort(self._numbers, kind="stable")
        self._numbers = self._numbers[order]
        self._levels = np.concatenate([self._levels[kept], *(head["level"] for head in heads)])[order]
        self._turns = np.concatenate([self._turns[kept], *(head["last_turn"] for head in heads)])[order]
        self._words = np.ascontiguousarray(np.concatenate(words, axis=1)[:, order]) if words else np.zeros((0, 0), np.uint64)

    def scan(
        self,
        connection: Connection,
        ranges: list[tuple[Range, int]],
        levels: tuple[int, ...] | None,
        among: Numbers | None,
        vector: Floats,
        limit: int,
    ) -> Scan:
        """Return the numbers in some ranges whose signs are closest to a vector's."""
        places: list[NDArray[np.intp]] = []
        loose: list[int] = []
        for (first, last), last_turn in ranges:
            start, end = np.searchsorted(self._numbers, (first, last + 1))
            wanted = self._turns[start:end] <= last_turn
            if levels is not None:
                wanted &= np.isin(self._levels[start:end], np.array(levels))
            places.append(np.flatnonzero(wanted) + start)
            loose += self._unpacked(connection, (first, last), last_turn, levels)
        found = np.concatenate(places) if places else np.zeros(0, np.intp)
        count = len(found) + len(loose)
        if among is not None:
            found = found[np.isin(self._numbers[found], among)]
            allowed = set(among.tolist())
            loose = [number for number in loose if number in allowed]
        if len(found) > limit:
            asked = signs(vector[None]).view(np.uint64)[0]
            distance = np.zeros(len(found), np.uint16)
            whole = len(found) == int(found[-1]) - int(found[0]) + 1
            span = slice(int(found[0]), int(found[-1]) + 1)
            for word, own in zip(asked, self._words, strict=True):
                distance += np.bitwise_count((own[span] if whole else own[found]) ^ word)
            found = found[np.argpartition(distance, limit)[:limit]]
        return Scan([*self._numbers[found].tolist(), *loose], count)

    def _unpacked(self, connection: Connection, numbers: Range, last_turn: int, levels: tuple[int, ...] | None) -> list[int]:
        """Return the numbers of vectors in no plane of their model now: some of their block were deleted, or are of another model."""
        blocks = [block for block in self._spoilt if numbers[0] >> _BLOCK_BITS <= block <= numbers[1] >> _BLOCK_BITS]
        if not blocks:
            return []
        rows = connection.rows(
            """
            select e.number from json_each(?1) b join embedding e on e.number between b.value << 10 and (b.value << 10) + 1023
                join passage p on p.number = e.number
            where e.number between ?2 and ?3 and e.model = ?4 and p.last_turn <= ?5
                and (?6 is null or p.level in (select value from json_each(?6)))
            """,
            (as_json(blocks), *numbers, self.model, last_turn, None if levels is None else as_json(levels)),
        )
        return [row[0] for row in rows]
