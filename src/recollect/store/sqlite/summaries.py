"""Summaries in SQLite, with their sources and passages: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from recollect.clock import from_iso, iso
from recollect.model import Summary
from recollect.store.integrity import intact_derived
from recollect.store.sqlite.passages import Owner, next_number, put_passages
from recollect.store.sqlite.rows import as_json, readable, texts

if TYPE_CHECKING:
    from recollect.model import Passage
    from recollect.store.sqlite.database import Connection, Row
    from recollect.store.sqlite.numbering import Range

SELECT_SUMMARY: LiteralString = """
    select s.uuid, level, s.summary, actions, key_findings, files_mentioned, tools_used, topics, first_turn, last_turn, s.turn_count,
        char_count, author, s.created_at, source_ids, c.uuid, s.checksum
    from summary s join conversation c on c.pk = s.conversation_pk
"""


def summary_of(row: Row) -> Summary:
    """Read a row of `SELECT_SUMMARY`."""
    with readable():
        summary = Summary(
            id=row[0], level=row[1], summary=row[2], actions=row[3], key_findings=texts(row[4]), files_mentioned=texts(row[5]),
            tools_used=texts(row[6]), topics=texts(row[7]), first_turn=row[8], last_turn=row[9], turn_count=row[10], char_count=row[11],
            author=row[12], created_at=from_iso(row[13]), source_ids=texts(row[14]), conversation_id=row[15],
        )  # fmt: skip
    return intact_derived(summary, row[16])


def put_summary(
    connection: Connection, conversation_pk: int | None, numbers: Range, summary: Summary, checksum: int, passages: tuple[Passage, ...]
) -> None:
    """Write a summary in the place of one with its id; those that fold it go on doing so."""
    values = (
        summary.level, summary.summary, summary.actions, as_json(summary.key_findings), as_json(summary.files_mentioned),
        as_json(summary.tools_used), as_json(summary.topics), summary.first_turn, summary.last_turn, summary.turn_count,
        summary.char_count, summary.author, iso(summary.created_at), as_json(summary.source_ids), checksum,
    )  # fmt: skip
    key = connection.value("select pk from summary where uuid = ? and conversation_pk = ?", (summary.id, conversation_pk))
    if key is None:
        key = connection.inserted(
            """
            insert into summary (conversation_pk, uuid, level, summary, actions, key_findings, files_mentioned, tools_used, topics,
                first_turn, last_turn, turn_count, char_count, author, created_at, source_ids, checksum)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (conversation_pk, summary.id, *values),
        )
    else:
        connection.run(
            """
            update summary set level = ?, summary = ?, actions = ?, key_findings = ?, files_mentioned = ?, tools_used = ?, topics = ?,
                first_turn = ?, last_turn = ?, turn_count = ?, char_count = ?, author = ?, created_at = ?, source_ids = ?, checksum = ?
            where pk = ?
            """,
            (*values, key),
        )
        connection.run("delete from summary_source where summary_pk = ?", (key,))
        connection.run("delete from passage where summary_pk = ?", (key,))
    _put_sources(connection, key, conversation_pk, as_json(summary.source_ids))
    owner = Owner(summary_pk=key, level=summary.level, last_turn=summary.last_turn)
    put_passages(connection, numbers, owner, passages, next_number(connection, numbers))


def _put_sources(connection: Connection, key: int, conversation_pk: int | None, sources: str) -> None:
    connection.run(
        """
        insert into summary_source (summary_pk, turn_pk)
        select ?1, t.pk from turn t join conversation c on c.pk = t.conversation_pk
        where t.uuid in (select value from json_each(?2)) and +c.workspace_pk = (select workspace_pk from conversation where pk = ?3)
        """,
        (key, sources, conversation_pk),
    )
    connection.run(
        """
        insert into summary_source (summary_pk, source_pk)
        select ?1, s.pk from summary s join conversation c on c.pk = s.conversation_pk
        where s.uuid in (select value from json_each(?2)) and s.pk <> ?1
            and +c.workspace_pk = (select workspace_pk from conversation where pk = ?3)
        """,
        (key, sources, conversation_pk),
    )
