"""One bit a dimension of every vector, packed in the file, and scanned by processes that remember what they have read.

The signs of a vector, after a fixed rotation, are enough to choose the few hundred that are worth scoring exactly. A row
of `plane` holds the signs for 1,024 passage numbers, with the level and the last turn of each; a stamp tells which rows
have changed since a process looked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
import numpy as np

from recollect.store.nearness import WORD_BITS, signs
from recollect.store.sqlite.rows import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from recollect.store.sqlite.database import Connection
    from recollect.store.sqlite.numbering import Range

    Floats = NDArray[np.float32]
    Cosines = NDArray[np.float64]
    Words = NDArray[np.uint64]
    Numbers = NDArray[np.int64]
    Flags = NDArray[np.bool_]

_BLOCK_BITS = 10
_HEAD = np.dtype([("place", "<u2"), ("level", "u1"), ("last_turn", "<i4")])
_SCANNED_AT_ONCE = 32_768
_Number = TypeVar("_Number", bound=np.generic)


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


class Near(msgspec.Struct, frozen=True):
    """What is close to a vector, by its signs: the numbers worth looking at, and how many have a vector at all."""

    planes: Planes
    asked: Words
    numbers: Numbers
    count: int


class Told(msgspec.Struct, frozen=True):
    """What is remembered of some numbers; a level of -1, and nothing else, of those that have no signs."""

    levels: Numbers
    turns: Numbers
    cosines: Cosines


class _Piece(msgspec.Struct, frozen=True):
    """A stretch of the signs that were read, and which of them count: those whose flag is set, or all when there are no flags."""

    place: slice
    flags: Flags | None = None

    @property
    def count(self) -> int:
        return self.place.stop - self.place.start if self.flags is None else int(np.count_nonzero(self.flags))

    def only(self, flags: Flags) -> _Piece:
        """Return it with fewer that count."""
        return _Piece(self.place, flags if self.flags is None else self.flags & flags)

    def of(self, values: NDArray[_Number]) -> NDArray[_Number]:
        """Return the values of those that count."""
        return values[self.place] if self.flags is None else values[self.place][self.flags]

    def parts(self) -> Iterator[_Piece]:
        """Return it in parts of a size that stays in the processor's cache."""
        first, last = self.place.start, self.place.stop
        for start in range(first, last, _SCANNED_AT_ONCE):
            end = min(start + _SCANNED_AT_ONCE, last)
            yield _Piece(slice(start, end), None if self.flags is None else self.flags[start - first : end - first])


class Planes:
    """The planes of one file and one model, as far as this process has read them."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._seen = 0
        self._spoilt: set[int] = set()
        self._numbers: Numbers = np.zeros(0, np.int64)
        self._levels: NDArray[np.uint8] = np.zeros(0, np.uint8)
        self._turns: NDArray[np.int32] = np.zeros(0, np.int32)
        self._last_turn = -1
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
        self._last_turn = int(self._turns.max(initial=-1))
        self._words = np.ascontiguousarray(np.concatenate(words, axis=1)[:, order]) if words else np.zeros((0, 0), np.uint64)

    def near(
        self,
        connection: Connection,
        ranges: list[tuple[Range, int]],
        levels: tuple[int, ...] | None,
        among: Numbers | None,
        vector: Floats,
        limit: int,
    ) -> Near:
        """Return the numbers in some ranges whose signs are closest to a vector's, and those that have none."""
        pieces: list[_Piece] = []
        loose: list[int] = []
        count = 0
        for (first, last), last_turn in ranges:
            piece = self._piece((first, last), last_turn, levels)
            count += piece.count
            pieces.append(piece if among is None else piece.only(np.isin(self._numbers[piece.place], among)))
            loose += self._unpacked(connection, (first, last), last_turn, levels)
        count += len(loose)
        unpacked = np.array(loose, np.int64)
        if among is not None:
            unpacked = unpacked[np.isin(unpacked, among)]
        asked = signs(vector[None]).view(np.uint64)[0]
        return Near(self, asked, np.concatenate((self._nearest(pieces, asked, limit), unpacked)), count)

    def told(self, numbers: Numbers, asked: Words) -> Told:
        """Tell of some numbers where they are, and about how close their vectors are, by their signs."""
        places = np.searchsorted(self._numbers, numbers)
        known = places < len(self._numbers)
        known[known] = self._numbers[places[known]] == numbers[known]
        own = places[known]
        levels, turns, cosines = np.full(len(numbers), -1), np.zeros(len(numbers), np.int64), np.zeros(len(numbers))
        if len(own):
            levels[known], turns[known] = self._levels[own], self._turns[own]
            distances = np.bitwise_count(self._words[:, own] ^ asked[:, None]).sum(axis=0, dtype=np.float64)
            cosines[known] = np.cos(np.pi * distances / (len(asked) * WORD_BITS))
        return Told(levels, turns, cosines)

    def _piece(self, numbers: Range, last_turn: int, levels: tuple[int, ...] | None) -> _Piece:
        """Return where the signs of a range are, and which of them count."""
        start, end = (int(place) for place in np.searchsorted(self._numbers, (numbers[0], numbers[1] + 1)))
        piece = _Piece(slice(start, end))
        if last_turn < self._last_turn:
            piece = piece.only(self._turns[start:end] <= last_turn)
        return piece if levels is None else piece.only(np.isin(self._levels[start:end], np.array(levels)))

    def _nearest(self, pieces: list[_Piece], asked: Words, limit: int) -> Numbers:
        """Return the numbers of the signs closest to a vector's, of equals the first; all of them, where there are no more."""
        numbers, distances = np.zeros(0, np.int64), np.zeros(0, np.uint16)
        if sum(piece.count for piece in pieces) <= limit:
            return np.concatenate([numbers, *(piece.of(self._numbers) for piece in pieces)])
        for part in (part for piece in pieces for part in piece.parts()):
            distance = np.zeros(part.place.stop - part.place.start, np.uint16)
            for word, own in zip(asked, self._words, strict=True):
                distance += np.bitwise_count(own[part.place] ^ word)
            if len(distances) == limit:
                part = part.only(distance < distances[-1])  # noqa: PLW2901  no other of it can be among the closest
            numbers = np.concatenate((numbers, part.of(self._numbers)))
            distances = np.concatenate((distances, distance if part.flags is None else distance[part.flags]))
            kept = np.argsort(distances, kind="stable")[:limit]
            numbers, distances = numbers[kept], distances[kept]
        return numbers

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
