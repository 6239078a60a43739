"""Insights in SQLite, with the words they are found by: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

import msgspec

from recollect.clock import from_iso, iso
from recollect.model import Insight
from recollect.store.integrity import intact_derived
from recollect.store.sqlite.rows import as_json, readable, time_text

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.shapes import InsightFilter, WordedInsight
    from recollect.store.sqlite.database import Connection, Row

SELECT_INSIGHT: LiteralString = """
    select i.uuid, c.uuid, i.kind, i.task, i.body, i.author, i.source_hash, i.last_turn, i.created_at, i.terms, i.checksum
    from insight i join conversation c on c.pk = i.conversation_pk join workspace w on w.pk = +c.workspace_pk
"""
INSIGHT_FILTER: LiteralString = """
    and (?2 is null or c.uuid = ?2) and (?4 is null or i.kind = ?4)
    and (?3 is null or c.project_pk in (
        select p.pk from project p where p.workspace_pk = w.pk and p.uuid in (select value from json_each(?3))))
"""


def insight_of(row: Row) -> Insight:
    """Read a row of `SELECT_INSIGHT`."""
    with readable():
        insight = Insight(
            id=row[0], conversation_id=row[1], kind=row[2], task=row[3], body=msgspec.json.decode(row[4], type=dict[str, Any]),
            author=row[5], source_hash=row[6], last_turn=row[7], created_at=from_iso(row[8]),
        )  # fmt: skip
    return intact_derived(insight, row[10])


def insight_filter(where: InsightFilter) -> tuple[str | None, str | None, str | None]:
    """Return what `INSIGHT_FILTER` is given, from its second binding on."""
    return where.conversation_id, None if where.project_ids is None else as_json(where.project_ids), where.kind


def any_of(terms: list[str]) -> str:
    """Return a full-text query: any of the terms."""
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)


def put_insight(connection: Connection, conversation_pk: int | None, worded: WordedInsight, expires_at: datetime | None) -> None:
    """Write an insight in the place of one with its id."""
    one = worded.insight
    connection.run("delete from insight where uuid = ? and conversation_pk = ?", (one.id, conversation_pk))
    connection.run(
        """
        insert into insight (conversation_pk, uuid, kind, task, body, author, source_hash, last_turn, created_at, terms, checksum,
            expires_at)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (
            conversation_pk, one.id, one.kind, one.task, as_json(one.body), one.author, one.source_hash, one.last_turn,
            iso(one.created_at), worded.terms, worded.checksum, time_text(expires_at),
        ),
    )  # fmt: skip


def retire_insights(connection: Connection, turn_keys: list[int]) -> None:
    """Delete the insights that tell of turns, in their conversations and in the branches that show them.

    A turn that was put aside stands at a place below 0, and was retired before.
    """
    connection.run(
        """
        delete from insight where pk in (
            with recursive told (conversation_pk, first) as (
                select conversation_pk, min(turn_index) from turn
                where pk in (select value from json_each(?1)) and turn_index >= 0 group by conversation_pk
                union select c.pk, told.first from told join conversation c on c.parent_pk = told.conversation_pk
                where told.first <= c.from_turn
            )
            select i.pk from told cross join insight i on i.conversation_pk = told.conversation_pk where told.first <= i.last_turn
        )
        """,
        (as_json(turn_keys),),
    )
