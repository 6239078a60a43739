"""Which turns are worth scoring: the most promising by terms and by meaning, each with the turns around it; pure.

A scope may hold a hundred thousand passages, and a score looks at some hundreds. What is known of passages before they are
read chooses the turns: which have which terms, so what stands around each as well, and how close the vectors are. Every
passage of those turns and of their neighbours is read and scored.

A place is a number: those of passages, or of turns, that follow one another in a conversation follow one another, and the
places of different conversations are far apart.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from recollect.limits import NEIGHBOUR_PASSAGES_MAX, NEIGHBOURS_MIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from recollect.store.shapes import Counts, Probe

    Numbers = NDArray[np.int64]
    Floats = NDArray[np.float64]

# about as scores weigh them: the terms of a passage, those two turns around it, those that its neighbours have around them
_TERMS = 2.3
_AROUND = 4.5
_FARTHER = 5.4
_MEANING = 5.2
_AROUND_TURNS = 2.5
_FARTHER_TURNS = 4.5
_COMPANIONS = (0, 1, -1, 2, -2)


class Shares:
    """How much of a question stands at places, by the rarity of its terms: those too common to choose by are nowhere."""

    def __init__(self, having: Sequence[tuple[float, Sequence[int]]]) -> None:
        self._having = [(rarity, np.sort(np.array(places, np.int64))) for rarity, places in having if places]
        self._whole = max(sum(rarity for rarity, _ in having), 1e-9)
        every = np.concatenate([np.zeros(0, np.int64), *(places for _, places in self._having)])
        rarities = np.concatenate([np.zeros(0), *(np.full(len(places), rarity) for rarity, places in self._having)])
        self._places, rows = np.unique(every, return_inverse=True)
        self._shares = np.bincount(rows, weights=rarities, minlength=len(self._places)) / self._whole

    def highest(self, limit: int, among: Numbers | None = None) -> Numbers:
        """Return the places that have the most, of equals the lower; only those among some, if any are given."""
        places, shares = self._places, self._shares
        if among is not None:
            allowed = np.isin(places, among)
            places, shares = places[allowed], shares[allowed]
        return places[np.argsort(-shares, kind="stable")[:limit]]

    def at(self, places: Numbers) -> Floats:
        """Return what some places have."""
        if not len(self._places):
            return np.zeros(len(places))
        rows = np.minimum(np.searchsorted(self._places, places), len(self._places) - 1)
        return np.where(self._places[rows] == places, self._shares[rows], 0.0)

    def around(self, places: Numbers, reach: int) -> Floats:
        """Return what places have together with those before and after; a term there twice counts more than once, not twice."""
        found = np.zeros(len(places))
        for rarity, own in self._having:
            counts = np.searchsorted(own, places + reach, side="right") - np.searchsorted(own, places - reach)
            found += rarity * counts / (counts + 1)
        return found / self._whole


def promises(places: Numbers, shares: Shares, cosines: Floats | float, per_turn: float) -> Floats:
    """Return what places promise, when so many belong to a turn, and their vectors are so close to what is asked for."""
    near, far = (shares.around(places, round(turns * per_turn)) for turns in (_AROUND_TURNS, _FARTHER_TURNS))
    return shares.at(places) * _TERMS + near * _AROUND + far * _FARTHER + np.maximum(cosines, 0.0) * _MEANING


def chosen_turns(conversations: Numbers, turns: Numbers, promised: Floats, counts: Counts, probe: Probe) -> list[tuple[int, int]]:
    """Return the turns to score, by conversation and index: those of the passages that promise most, and their neighbours."""
    per_turn = counts.passages / max(counts.turns, 1)
    most = max(int(NEIGHBOUR_PASSAGES_MAX / max(per_turn, 1.0)), NEIGHBOURS_MIN, probe.hits * 2)
    chosen: dict[tuple[int, int], None] = {}
    seen: set[tuple[int, int]] = set()
    taken: Counter[int] = Counter()
    for row in np.lexsort((turns, conversations, -promised)).tolist():
        place = conversation, turn = int(conversations[row]), int(turns[row])
        if place in seen:
            continue
        seen.add(place)
        if taken[conversation] != probe.per_conversation:
            taken[conversation] += 1
            chosen |= {(conversation, turn + distance): None for distance in _COMPANIONS}
        if len(chosen) >= most:
            break
    return [place for place in chosen if place[1] >= 0]
