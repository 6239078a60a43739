"""Passages in SQLite, written with the words they are found by and the counts of their conversation.

What is added is indexed here, and not by a trigger: a statement that fires one makes the full-text index write down what it
has gathered, so that each passage would become a segment of its own, to be merged with the others later; that took more
time than everything else of a turn. What is removed leaves the index by trigger, so that no tool can leave words behind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.limits import PASSAGES_PER_CONVERSATION_MAX
from recollect.store.sqlite.numbering import PASSAGE_BITS, Range, checked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import Passage
    from recollect.store.sqlite.database import Connection


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """What passages belong to: a turn (level 0) or a summary, by its key, and the last turn it tells of."""

    turn_pk: int | None = None
    summary_pk: int | None = None
    level: int
    last_turn: int


def next_number(connection: Connection, numbers: Range) -> int:
    """Return the number of the next passage of a conversation."""
    return int(connection.value("select coalesce(max(number) + 1, ?1) from passage where number between ?1 and ?2", numbers))


def put_passages(connection: Connection, numbers: Range, owner: Owner, passages: Sequence[Passage], number: int) -> int:
    """Write passages from a number on, and return the one after the last."""
    following = number + len(passages)
    checked("passages in a conversation", following - 1 - numbers[0], PASSAGES_PER_CONVERSATION_MAX)
    if not passages:
        return following
    lengths = [part.terms.count(" ") + 1 for part in passages]
    numbered = list(enumerate(passages, number))
    connection.run_many(
        """
        insert into passage (number, turn_pk, summary_pk, level, last_turn, part, ordinal, start, end, length, terms)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
            (key, owner.turn_pk, owner.summary_pk, owner.level, owner.last_turn, part.part, part.ordinal, part.start, part.end, length,
             part.terms)
            for (key, part), length in zip(numbered, lengths, strict=True)
        ],
    )  # fmt: skip
    connection.run(
        """
        insert into tally (conversation, level, passages, terms) values (?, ?, ?, ?)
        on conflict do update set passages = passages + excluded.passages, terms = terms + excluded.terms
        """,
        (numbers[0] >> PASSAGE_BITS, owner.level, len(passages), sum(lengths)),
    )
    connection.run_many("insert into passage_terms (rowid, terms) values (?, ?)", [(key, part.terms) for key, part in numbered])
    return following
