"""Vectors, summaries and insights in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.model import Passage
from recollect.store.shapes import Unembedded, Vector, WordedInsight
from recollect.store.sqlite.insights import INSIGHT_FILTER, SELECT_INSIGHT, any_of, insight_filter, insight_of, put_insight
from recollect.store.sqlite.numbering import Range, workspace_range
from recollect.store.sqlite.rows import as_json, time_text
from recollect.store.sqlite.searching import conversation_range_of, key_of
from recollect.store.sqlite.summaries import SELECT_SUMMARY, put_summary, summary_of

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Insight, Summary
    from recollect.store.shapes import Embedded, InsightFilter
    from recollect.store.sqlite.database import Connection


class SqliteDerived:
    """The `DerivedRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def put_summary(self, summary: Summary, checksum: int, passages: tuple[Passage, ...], expires_at: datetime | None) -> None:
        """Write a summary with the edges to its sources and its passages."""
        key = key_of(self._connection, self._workspace, summary.conversation_id)
        numbers = conversation_range_of(self._connection, self._workspace, summary.conversation_id)
        put_summary(self._connection, key, numbers, summary, checksum, passages)
        self._connection.run(
            "update summary set expires_at = ? where uuid = ? and conversation_pk = ?", (time_text(expires_at), summary.id, key)
        )

    async def summaries(self, conversation_id: str, level: int | None) -> list[Summary]:
        """Return summaries by level, first turn and id."""
        rows = self._connection.rows(
            SELECT_SUMMARY + "where s.conversation_pk = ?1 and (?2 is null or level = ?2) order by level, first_turn, s.uuid",
            (key_of(self._connection, self._workspace, conversation_id), level),
        )
        return [summary_of(row) for row in rows]

    async def summaries_by_id(self, summary_ids: list[str]) -> list[Summary]:
        """Return summaries in any order."""
        rows = self._connection.rows(
            SELECT_SUMMARY
            + """
            where +c.workspace_pk = (select pk from workspace where name = ?) and s.uuid in (select value from json_each(?))
            """,
            (self._workspace, as_json(summary_ids)),
        )
        return [summary_of(row) for row in rows]

    async def delete_summaries(self, conversation_id: str) -> None:
        """Delete every summary of a conversation that can be made again."""
        self._connection.run(
            """
            delete from summary where conversation_pk = ?1 and pk not in (
                with recursive last_trace (pk) as (
                    select s.pk from summary s where s.conversation_pk = ?1
                        and (select count(*) from summary_source where summary_pk = s.pk) < json_array_length(s.source_ids)
                    union select summary_pk from last_trace join summary_source on source_pk = last_trace.pk
                )
                select pk from last_trace
            )
            """,
            (key_of(self._connection, self._workspace, conversation_id),),
        )

    async def unembedded(self, conversation_id: str, model: str, limit: int) -> list[Unembedded]:
        """Return own passages of a conversation that have no vector of a model."""
        rows = self._connection.rows(
            """
            select p.number, coalesce(t.uuid, s.uuid), p.level, part, ordinal, start, end, terms from passage p
                left join turn t on t.pk = p.turn_pk left join summary s on s.pk = p.summary_pk
            where p.number between ? and ?
                and not exists (select 1 from embedding e where e.number = p.number and e.model = ?) order by p.number limit ?
            """,
            (*conversation_range_of(self._connection, self._workspace, conversation_id), model, limit),
        )
        return [
            Unembedded(
                key=row[0],
                owner_id=row[1],
                level=row[2],
                passage=Passage(part=row[3], ordinal=row[4], start=row[5], end=row[6], terms=row[7]),
            )
            for row in rows
        ]

    async def known_vectors(self, model: str, text_hashes: list[str]) -> dict[str, Vector]:
        """Return the vectors that texts have already in the workspace."""
        rows = self._connection.rows(
            """
            select text_hash, scale, vector from embedding
            where text_hash in (select value from json_each(?)) and model = ? and number between ? and ?
            """,
            (as_json(text_hashes), model, *self._numbers()),
        )
        return {row[0]: Vector(row[1], row[2]) for row in rows}

    def _numbers(self) -> Range:
        key = self._connection.value("select pk from workspace where name = ?", (self._workspace,))
        return (1, 0) if key is None else workspace_range(int(key))

    async def delete_embeddings(self, conversation_id: str) -> None:
        """Delete every vector of a conversation's own passages."""
        self._connection.run(
            "delete from embedding where number between ? and ?",
            conversation_range_of(self._connection, self._workspace, conversation_id),
        )

    async def put_embeddings(self, model: str, embedded: list[Embedded]) -> None:
        """Write vectors of passages, and their signs."""
        from recollect.store.sqlite.planes import pack  # noqa: PLC0415  NumPy is loaded by those who distil

        self._connection.run_many(
            """
            insert or replace into embedding (number, model, text_hash, scale, vector)
            select number, ?2, ?3, ?4, ?5 from passage where number = ?1 and terms = ?6
            """,
            [(one.key, model, one.text_hash, one.vector.scale, one.vector.values, one.terms) for one in embedded],
        )
        pack(self._connection, model, [int(one.key) for one in embedded])

    async def is_told_of(self, conversation_id: str) -> bool:
        """Tell whether a conversation has a summary or an insight."""
        key = key_of(self._connection, self._workspace, conversation_id)
        query = "select 1 from summary where conversation_pk = ?1 union all select 1 from insight where conversation_pk = ?1 limit 1"
        return bool(self._connection.value(query, (key,)))

    async def put_insight(self, insight: WordedInsight, expires_at: datetime | None) -> None:
        """Write an insight."""
        put_insight(self._connection, key_of(self._connection, self._workspace, insight.insight.conversation_id), insight, expires_at)

    async def insights(self, conversation_id: str) -> list[Insight]:
        """Return insights, oldest first, then by id."""
        rows = self._connection.rows(
            SELECT_INSIGHT + "where i.conversation_pk = ? order by i.created_at, i.uuid",
            (key_of(self._connection, self._workspace, conversation_id),),
        )
        return [insight_of(row) for row in rows]

    async def find_insights(self, where: InsightFilter, limit: int) -> list[Insight]:
        """Return insights, newest first, then by id."""
        rows = self._connection.rows(
            SELECT_INSIGHT + "where w.name = ?1 " + INSIGHT_FILTER + "order by i.created_at desc, i.uuid limit ?5",
            (self._workspace, *insight_filter(where), limit),
        )
        return [insight_of(row) for row in rows]

    async def insights_having(self, where: InsightFilter, terms: list[str], limit: int) -> list[WordedInsight]:
        """Return insights that have one of some terms, those with the most of what is rare first."""
        rows = self._connection.rows(
            SELECT_INSIGHT
            + "join insight_terms x on x.rowid = i.pk where insight_terms match ?6 and w.name = ?1 "
            + INSIGHT_FILTER
            + "order by x.rank, i.created_at desc, i.uuid limit ?5",
            (self._workspace, *insight_filter(where), limit, any_of(terms)),
        )
        return [WordedInsight(insight_of(row), row[9], row[10]) for row in rows]
