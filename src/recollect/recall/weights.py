"""How much each signal weighs: a handful of numbers, chosen on half of a benchmark and measured on the other (`docs/recall.md`)."""

from __future__ import annotations

import msgspec


class Weights(msgspec.Struct, frozen=True, kw_only=True):
    """The weights; `near` and `far` are what the turns one and two places away lend, `summary` scales what a summary has."""

    terms: float = 2.3
    around: float = 4.5
    meaning: float = 5.2
    phrase: float = 1.0
    near: float = 0.25
    far: float = 0.15
    session: float = 1.5
    speaker: float = 2.3
    time: float = 2.5
    recency: float = 0.3
    summary: float = 0.9
    unanswered: float = -0.7
    stale: float = -0.3


CHOSEN = Weights()
