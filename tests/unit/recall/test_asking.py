from __future__ import annotations

from datetime import UTC, datetime

from recollect.recall.asking import asked_of

NOW = datetime(2026, 3, 18, tzinfo=UTC)


def test_a_path_is_asked_for_without_its_line() -> None:
    assert asked_of("src/auth/login.py:31", NOW).terms == asked_of("src/auth/login.py", NOW).terms
    assert "31" not in asked_of("why src/a.py:31-40 failed", NOW).terms


def test_words_that_only_say_when_are_not_looked_for() -> None:
    assert asked_of("restart last week", NOW).terms == ("restart",)
    assert asked_of("restart last week", NOW).periods


def test_quoted_phrases_and_pairs_are_kept_in_order() -> None:
    asked = asked_of('where is "null pointer check" raised', NOW)
    assert asked.phrases == (("null", "pointer", "check"),)
    assert ("null", "pointer") in asked.pairs


def test_names_become_marks_of_speakers() -> None:
    assert "@carolin" in asked_of("What is Caroline's identity?", NOW).speakers
    assert "@anna-smith" in asked_of("Did Anna Smith agree?", NOW).speakers
    assert asked_of("what did caroline say", NOW).speakers == frozenset()
