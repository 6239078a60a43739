"""What expires, in SQLite: looked for by its time, of which there are few, whatever else a workspace holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import from_iso, iso
from recollect.store.sqlite.rows import as_json

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.sqlite.database import Connection


class SqliteRetention:
    """The `RetentionRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def soonest(self, until: datetime) -> datetime | None:
        """Return when the next of it expires, or None."""
        found: str | None = self._connection.value(
            """
            select min(at) from (
                select min(x.expires_at) as at from turn x join conversation c on c.pk = x.conversation_pk
                where x.expires_at <= ?2 and +c.workspace_pk = (select pk from workspace where name = ?1)
                union all select min(x.expires_at) from summary x join conversation c on c.pk = x.conversation_pk
                where x.expires_at <= ?2 and +c.workspace_pk = (select pk from workspace where name = ?1)
                union all select min(x.expires_at) from insight x join conversation c on c.pk = x.conversation_pk
                where x.expires_at <= ?2 and +c.workspace_pk = (select pk from workspace where name = ?1))
            """,
            (self._workspace, iso(until)),
        )
        return None if found is None else from_iso(found)

    async def turns(self, now: datetime) -> list[tuple[str, str]]:
        """Return the turns that have expired."""
        rows = self._connection.rows(
            """
            select x.uuid, c.uuid from turn x join conversation c on c.pk = x.conversation_pk
            where x.expires_at <= ?2 and +c.workspace_pk = (select pk from workspace where name = ?1) order by +x.pk
            """,
            (self._workspace, iso(now)),
        )
        return [(row[0], row[1]) for row in rows]

    async def summaries(self, now: datetime) -> list[tuple[str, str]]:
        """Return the summaries that have expired."""
        rows = self._connection.rows(
            """
            select x.uuid, c.uuid from summary x join conversation c on c.pk = x.conversation_pk
            where x.expires_at <= ?2 and +c.workspace_pk = (select pk from workspace where name = ?1) order by +x.pk
            """,
            (self._workspace, iso(now)),
        )
        return [(row[0], row[1]) for row in rows]

    async def told_before(self, moment: datetime, project_ids: tuple[str, ...] | None) -> list[tuple[str, str]]:
        """Return the summaries that were made before a moment, and all of whose turns are gone, and those that fold them."""
        rows = self._connection.rows(
            """
            with recursive told (pk, below) as (
                select x.pk, x.pk from summary x join conversation c on c.pk = x.conversation_pk join project p on p.pk = c.project_pk
                where x.created_at < ?2 and +c.workspace_pk = (select pk from workspace where name = ?1)
                    and (?3 is null or p.uuid in (select value from json_each(?3)))
                union select told.pk, source_pk from told join summary_source on summary_pk = told.below where source_pk is not null
            ), gone (pk) as (
                select pk from told
                except select told.pk from told join summary_source on summary_pk = told.below where turn_pk is not null
            ), folding (pk) as (
                select pk from gone union select summary_pk from folding join summary_source on source_pk = folding.pk
            )
            select x.uuid, c.uuid from summary x join conversation c on c.pk = x.conversation_pk
            where x.pk in (select pk from folding) order by x.pk
            """,
            (self._workspace, iso(moment), None if project_ids is None else as_json(project_ids)),
        )
        return [(row[0], row[1]) for row in rows]

    async def delete_summaries(self, summary_ids: list[str]) -> None:
        """Delete summaries."""
        self._connection.run(
            """
            delete from summary where uuid in (select value from json_each(?2)) and exists (
                select 1 from conversation where pk = conversation_pk and +workspace_pk = (select pk from workspace where name = ?1))
            """,
            (self._workspace, as_json(summary_ids)),
        )

    async def insights(self, now: datetime) -> list[tuple[str, str]]:
        """Return the insights that have expired."""
        rows = self._connection.rows(
            """
            select x.uuid, c.uuid from insight x join conversation c on c.pk = x.conversation_pk
            where x.expires_at <= ?2 and +c.workspace_pk = (select pk from workspace where name = ?1) order by +x.pk
            """,
            (self._workspace, iso(now)),
        )
        return [(row[0], row[1]) for row in rows]

    async def insights_before(self, moment: datetime, project_ids: tuple[str, ...] | None, owners: list[str]) -> list[tuple[str, str]]:
        """Return the insights that were made before a moment, and all of some conversations."""
        rows = self._connection.rows(
            """
            select x.uuid, c.uuid from insight x join conversation c on c.pk = x.conversation_pk join project p on p.pk = c.project_pk
            where +c.workspace_pk = (select pk from workspace where name = ?1) and (
                x.created_at < ?2 and (?3 is null or p.uuid in (select value from json_each(?3)))
                or c.uuid in (select value from json_each(?4))) order by x.pk
            """,
            (self._workspace, iso(moment), None if project_ids is None else as_json(project_ids), as_json(owners)),
        )
        return [(row[0], row[1]) for row in rows]

    async def delete_insights(self, insight_ids: list[str]) -> None:
        """Delete insights."""
        self._connection.run(
            """
            delete from insight where uuid in (select value from json_each(?2)) and exists (
                select 1 from conversation where pk = conversation_pk and +workspace_pk = (select pk from workspace where name = ?1))
            """,
            (self._workspace, as_json(insight_ids)),
        )

    async def expiries(self, conversation_id: str) -> dict[str, datetime]:
        """Return when the summaries and insights of a conversation expire."""
        rows = self._connection.rows(
            """
            select x.uuid, x.expires_at from summary x join conversation c on c.pk = x.conversation_pk
            where c.uuid = ?2 and x.expires_at is not null and c.workspace_pk = (select pk from workspace where name = ?1)
            union all select x.uuid, x.expires_at from insight x join conversation c on c.pk = x.conversation_pk
            where c.uuid = ?2 and x.expires_at is not null and c.workspace_pk = (select pk from workspace where name = ?1)
            """,
            (self._workspace, conversation_id),
        )
        return {row[0]: from_iso(row[1]) for row in rows}
