"""What speaks for a turn: its own passages, those around it, and the best of them is named."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from recollect.recall.asking import asked_of
from recollect.recall.signals import signals
from recollect.store.shapes import Candidates, Found

NOW = datetime(2026, 3, 18, tzinfo=UTC)


def found(turn: int, terms: str, *, level: int = 0, conversation: str = "c", ordinal: int = 0, vector: bytes | None = None) -> Found:
    return Found(
        owner_id=f"{conversation}-{level}-{turn}",
        level=level,
        conversation_id=conversation,
        first_turn=turn,
        last_turn=turn,
        part="summary" if level else "answer",
        ordinal=ordinal,
        start=0,
        end=9,
        terms=terms,
        length=len(terms.split()),
        scale=None if vector is None else 1 / 127,
        vector=vector,
    )


def candidates(*passages: Found) -> Candidates:
    frequency = {term: sum(term in one.terms.split() for one in passages) for term in ("login", "token")}
    return Candidates(
        passages=passages, passage_count=50, embedded_count=50, turn_count=20, average_length=4.0, document_frequency=frequency
    )


def test_the_passage_that_says_most_speaks_for_its_owner_and_of_equals_the_first() -> None:
    got = signals(
        candidates(found(3, "other"), found(3, "login token", ordinal=1), found(3, "login token", ordinal=2), found(9, "nothing")),
        asked_of("login token", NOW),
        (),
        NOW,
    )
    assert [owner.last_turn for owner in got.owners] == [3, 9]
    assert got.best.tolist() == [1, 3]
    assert got.terms[0] > got.terms[1] == 0


def test_neighbours_are_the_turns_around_in_the_same_conversation_never_summaries() -> None:
    got = signals(
        candidates(found(5, "login"), found(4, "x"), found(7, "y"), found(6, "z", conversation="d"), found(6, "s", level=1), found(0, "t")),
        asked_of("login", NOW),
        (),
        NOW,
    )
    assert got.neighbours.tolist() == [[-1, 1, -1, 2], [-1, -1, 0, -1], [0, -1, -1, -1], [-1] * 4, [-1] * 4, [-1] * 4]
    assert got.around[1] > 0 == got.terms[1], "its neighbour has the word"
    assert got.around[4] == got.terms[4] == 0


def test_meaning_is_the_cosine_of_the_best_vector_and_nothing_where_there_is_none_of_that_size() -> None:
    same, opposite = np.array([127, 0], np.int8).tobytes(), np.array([-127, 0], np.int8).tobytes()
    got = signals(
        candidates(found(1, "a", vector=opposite), found(1, "b", vector=same), found(2, "c", vector=b"\x01"), found(3, "d")),
        asked_of("login", NOW),
        (1.0, 0.0),
        NOW,
    )
    assert got.meaning.tolist() == pytest.approx([1.0, 0.0, 0.0])


def test_nothing_speaks_for_nobody() -> None:
    assert signals(candidates(), asked_of("login", NOW), (), NOW).owners == []
