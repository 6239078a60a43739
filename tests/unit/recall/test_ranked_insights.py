"""Insights ranked: rare words first, meaning beside them, the newer of equals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from recollect.model import Insight
from recollect.recall.insights import ranked_insights
from recollect.store.shapes import WordedInsight
from recollect.text import term_text

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def worded(own_id: str, words: str, days: int = 0) -> WordedInsight:
    made = Insight(id=own_id, conversation_id="c", kind="k", body={"said": words}, created_at=NOW + timedelta(days=days))
    return WordedInsight(made, term_text(words), 0)


def test_rare_words_count_more_than_common_ones() -> None:
    found = [worded("a", "token"), worded("b", "token expiry"), worded("c", "token")]
    hits = ranked_insights(["token", "expiri"], found, None)
    assert hits[0].id == "b"
    assert hits[0].score == hits[0].confidence == 1.0
    assert hits[1].score == hits[2].score < 0.5


def test_meaning_decides_among_equals_and_then_the_newer_comes_first() -> None:
    found = [worded("a", "token", 0), worded("b", "token", 1), worded("c", "token", 2)]
    assert [hit.id for hit in ranked_insights(["token"], found, None)] == ["c", "b", "a"]
    hits = ranked_insights(["token"], found, [0.9, -0.5, 0.1])
    assert [hit.id for hit in hits] == ["a", "c", "b"]
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert set(hits[0].explanation) == {"terms", "meaning"}
