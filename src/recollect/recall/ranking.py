"""Signals → one score between 0 and 1 with the share of each signal in it, a confidence, and an order; pure.

The sum is linear in the signals, with weights chosen on half of a benchmark (`docs/recall.md`). Neighbouring turns lend each other
their score. Signals that could not run give their weight to those that did, so that a score means the same with and
without vectors.
"""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recollect.recall.signals import DISTANCES
from recollect.recall.weights import CHOSEN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from recollect.recall.signals import Signals
    from recollect.recall.weights import Weights

    Floats = NDArray[np.float64]

_NONE: Mapping[str, float] = MappingProxyType({})
_SCALE = 6.0  # a sum of so much is a score of 1 - 1/e
_DECIMALS = 6
_MEANING_MIN = 0.2  # unrelated texts are about as close as this


class Ranked(msgspec.Struct, frozen=True):
    """A candidate's place: the row of its owner, its score, and what each signal added to it."""

    row: int
    score: float
    confidence: float
    shares: dict[str, float]


class Sums(msgspec.Struct, frozen=True):
    """What each signal adds to each owner, before it is a score, and the sum for each owner, never below 0."""

    parts: dict[str, Floats]
    total: Floats


def summed(signals: Signals, weights: Weights = CHOSEN, *, with_meaning: bool = True) -> Sums:
    """Add up the signals of each owner, and what its neighbours lend it."""
    lexical = weights.terms + weights.around
    spread = 1.0 if with_meaning or not lexical else (lexical + weights.meaning) / lexical
    values = {
        "terms": signals.terms * weights.terms * spread,
        "around": signals.around * weights.around * spread,
        "meaning": signals.meaning * (weights.meaning if with_meaning else 0.0),
        "phrase": signals.phrase * weights.phrase,
    }
    lending = np.array([weights.far if abs(distance) > 1 else weights.near for distance in DISTANCES])
    has = signals.neighbours >= 0
    kept = 1 + (~has * lending).sum(axis=1)  # who has no neighbour there lends to itself
    alone = np.sum(list(values.values()), axis=0)
    lent = (np.where(has, alone[signals.neighbours], 0.0) * lending).sum(axis=1) if len(alone) else alone
    level = weights.summary ** np.array([owner.level for owner in signals.owners], np.float64)
    parts = {name: value * kept * level for name, value in values.items()}
    parts |= {
        "neighbours": lent * level,
        "session": signals.session * weights.session * level,
        "speaker": signals.speaker * weights.speaker,
        "time": signals.time * weights.time,
        "recency": signals.recency * weights.recency,
    }
    given = {name: value for name, value in parts.items() if name == "terms" or value.any()}
    return Sums(given, np.maximum(np.sum(list(given.values()), axis=0), 0.0))


def ordered(signals: Signals, sums: Sums, penalties: Mapping[int, float], rows: Iterable[int] | None = None) -> list[int]:
    """Return rows, best first; equals are in the order of conversation, turn and level, whichever store found them."""
    return sorted(range(len(sums.total)) if rows is None else rows, key=lambda row: standing(signals, sums, row, penalties.get(row, 0.0)))


def standing(signals: Signals, sums: Sums, row: int, penalty: float = 0.0) -> tuple[float, str, int, int, str]:
    """Return what owners are put in order by, the first the best; also those of different scopes."""
    owner = signals.owners[row]
    total = max(round(float(sums.total[row]), _DECIMALS) + penalty, 0.0)
    return -total, owner.conversation_id, owner.last_turn, owner.level, owner.owner_id


def has_evidence(signals: Signals, row: int, *, only_when: bool = False) -> bool:
    """Tell whether something speaks for an owner itself: what its neighbours or its age lend is not enough.

    Its time is enough when nothing but a time was asked for.
    """
    return bool(signals.terms[row] > 0 or signals.meaning[row] >= _MEANING_MIN or (only_when and signals.time[row] > 0))


def ranked(signals: Signals, sums: Sums, row: int, penalties: Mapping[str, float] = _NONE) -> Ranked:
    """Return what came of one owner, with what counts against it by name; the shares sum to its score."""
    parts = {name: float(values[row]) for name, values in sums.parts.items()} | dict(penalties)
    total = max(sum(parts.values()), 0.0)
    score = score_of(total)
    shares = {name: part * score / total for name, part in parts.items() if part} if total else {}
    return Ranked(row, score, confidence_of(total, signals, row), shares)


def score_of(total: float) -> float:
    """Return a sum as a score: 0 for nothing, nearer and nearer to 1."""
    return 1 - math.exp(-total / _SCALE)


def confidence_of(total: float, signals: Signals, row: int) -> float:
    """Return how likely a hit of such a sum and such evidence is right, as measured (`docs/recall.md`)."""
    raw = _CONFIDENCE[0] + _CONFIDENCE[1] * total + _CONFIDENCE[2] * float(signals.coverage[row])
    return 1 / (1 + math.exp(-min(max(raw, -_STEEPEST), _STEEPEST))) * _LEVEL_SHARE ** signals.owners[row].level


_CONFIDENCE = (-5.0, 0.246, 1.373)  # fitted on half of the benchmark by `bench/recall.py choose`
_LEVEL_SHARE = 0.9
_STEEPEST = 50.0
