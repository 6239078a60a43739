"""Insights that a question may be about, best first: by their words and their meaning; pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Hit
from recollect.quoting import insight_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from recollect.model import ConversationInfo, Insight
    from recollect.store.shapes import WordedInsight

_TERMS = 0.75
_MEANING = 0.25
_DIGITS = 6


def ranked_insights(terms: Sequence[str], found: Sequence[WordedInsight], cosines: Sequence[float] | None) -> list[Hit]:
    """Return insights as hits with a score between 0 and 1, best first, of equals the newer; without cosines by their words alone."""
    having: Counter[str] = Counter()
    own = [set(one.terms.split()).intersection(terms) for one in found]
    for said in own:
        having.update(said)
    rarity = {term: 1 / max(having[term], 1) for term in terms}  # a term that no insight has counts as one that only one has
    whole = sum(rarity.values()) or 1.0
    hits: list[Hit] = []
    for n, one in enumerate(found):
        share = sum(rarity[term] for term in sorted(own[n])) / whole
        shares = {"terms": share} if cosines is None else {"terms": _TERMS * share, "meaning": _MEANING * max(cosines[n], 0.0)}
        hits.append(_hit(one, shares, share))
    return sorted(hits, key=lambda hit: (-hit.score, -(hit.timestamp.timestamp() if hit.timestamp else 0.0), hit.id))


def _hit(one: WordedInsight, shares: Mapping[str, float], confidence: float) -> Hit:
    insight = one.insight
    text = insight_text(insight)
    return Hit(
        kind="insight", id=insight.id, conversation_id=insight.conversation_id, first_turn=0, last_turn=insight.last_turn,
        question=insight.task, answer=text.partition("\n")[0], passage=text, score=round(min(sum(shares.values()), 1.0), _DIGITS),
        confidence=round(confidence, _DIGITS), timestamp=insight.created_at,
        explanation={name: round(share, _DIGITS) for name, share in shares.items()},
    )  # fmt: skip


def newest_once(found: Sequence[Insight], most: int) -> tuple[Insight, ...]:
    """Return the newest of insights that are in the order of their time, each text once, for whatever tasks it was found."""
    said = {insight_text(one): one for one in found}
    return tuple(one for one in found[::-1] if said[insight_text(one)] is one)[:most]


def placed(hit: Hit, info: ConversationInfo | None, now: datetime) -> Hit:
    """Return a hit with where it is from, and how old it is."""
    age_seconds = 0.0 if hit.timestamp is None else max((now - hit.timestamp).total_seconds(), 0.0)
    title, project = (None, "") if info is None else (info.title, info.project)
    return msgspec.structs.replace(hit, conversation_title=title, project=project, age_seconds=age_seconds)
