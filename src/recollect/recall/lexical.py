"""Scores of passages by the terms they share with a query; pure, so they are the same whichever store found them.

BM25 over the scope's own counts, divided by the most the query could reach: a score is between 0 and 1, and means the
share of the query's weight that a passage answers.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from recollect.store.shapes import Candidate, Candidates

if TYPE_CHECKING:
    from collections.abc import Sequence


_K1 = 0.9
_B = 0.4


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """A candidate with its score, and the share of the query's weight that it has at all."""

    candidate: Candidate
    score: float
    coverage: float


def score(found: Candidates, terms: Sequence[str]) -> list[Scored]:
    """Score every candidate, best first; ties are in the order of conversation, turn and place, whichever store found them."""
    weights = {term: _weight(found.passage_count, found.document_frequency.get(term, 0)) for term in terms}
    whole = sum(weights.values())
    if whole <= 0:
        return []
    scored = [_scored(candidate, weights, whole, found.average_length) for candidate in found.candidates]
    return sorted(scored, key=_rank)


def _rank(one: Scored) -> tuple[float, str, int, str, int, int]:
    found, passage = one.candidate, one.candidate.passage
    return -one.score, found.conversation_id, found.turn_index, passage.part, passage.ordinal, passage.start


def _weight(passages: int, having: int) -> float:
    return math.log(1 + (passages - having + 0.5) / (having + 0.5))


def _scored(candidate: Candidate, weights: dict[str, float], whole: float, average_length: float) -> Scored:
    words = candidate.passage.terms.split(" ")
    counts = Counter(word for word in words if word in weights)
    norm = _K1 * (1 - _B + _B * len(words) / max(average_length, 1.0))
    reached = sum(weights[term] * count / (count + norm) for term, count in counts.items())
    return Scored(candidate=candidate, score=min(reached / whole, 1.0), coverage=min(sum(weights[term] for term in counts) / whole, 1.0))
