"""Requests that come in pieces, in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import iso
from recollect.store.sqlite.rows import as_json

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.sqlite.database import Connection


class SqliteRequests:
    """The `RequestRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def get(self, request_id: str) -> str | None:
        """Return the sketch of a request, or None."""
        found: str | None = self._connection.value(
            "select sketch from open_request where workspace_pk = (select pk from workspace where name = ?) and request_id = ?",
            (self._workspace, request_id),
        )
        return found

    async def put(self, request_id: str, conversation_id: str, sketch: str, at: datetime) -> None:
        """Write the sketch of a request of a conversation."""
        self._connection.run(
            """
            insert into open_request (conversation_pk, workspace_pk, request_id, sketch, updated_at)
            select c.pk, c.workspace_pk, ?3, ?4, ?5 from conversation c join workspace w on w.pk = c.workspace_pk
            where w.name = ?1 and c.uuid = ?2
            on conflict do update set sketch = excluded.sketch, updated_at = excluded.updated_at
            """,
            (self._workspace, conversation_id, request_id, sketch, iso(at)),
        )

    async def owner(self, request_id: str) -> str | None:
        """Return the conversation of a request, or None."""
        found: str | None = self._connection.value(
            """
            select c.uuid from open_request r join conversation c on c.pk = r.conversation_pk
            where r.workspace_pk = (select pk from workspace where name = ?) and r.request_id = ?
            """,
            (self._workspace, request_id),
        )
        return found

    async def is_open(self, conversation_id: str) -> bool:
        """Tell whether a conversation has a request that is not whole yet."""
        found = self._connection.value(
            """
            select exists (select 1 from open_request where conversation_pk = (
                select pk from conversation where workspace_pk = (select pk from workspace where name = ?) and uuid = ?))
            """,
            (self._workspace, conversation_id),
        )
        return bool(found)

    async def forget_told(self, turn_ids: list[str]) -> None:
        """Delete the sketches of requests of which a turn goes."""
        self._connection.run(
            """
            delete from open_request where pk in (
                select r.pk from json_each(?2) asked cross join turn t on t.uuid = asked.value
                    cross join conversation c on c.pk = t.conversation_pk and c.workspace_pk = (select pk from workspace where name = ?1)
                    cross join open_request r on r.workspace_pk = c.workspace_pk and r.request_id = t.request_id
                    cross join conversation own on own.pk = r.conversation_pk and own.project_pk = c.project_pk)
            """,
            (self._workspace, as_json(turn_ids)),
        )

    async def forget(self, conversation_ids: list[str]) -> None:
        """Delete the sketches of conversations."""
        self._connection.run(
            """
            delete from open_request where conversation_pk in (
                select c.pk from conversation c join workspace w on w.pk = c.workspace_pk
                where w.name = ? and c.uuid in (select value from json_each(?)))
            """,
            (self._workspace, as_json(conversation_ids)),
        )

    async def delete(self, request_id: str) -> bool:
        """Delete the sketch of a request; False when there is none."""
        known = await self.get(request_id) is not None
        self._connection.run(
            "delete from open_request where workspace_pk = (select pk from workspace where name = ?) and request_id = ?",
            (self._workspace, request_id),
        )
        return known

    async def idle(self, before: datetime) -> list[str]:
        """Return the requests to which nothing came since a moment, the oldest first."""
        rows = self._connection.rows(
            """
            select request_id from open_request where workspace_pk = (select pk from workspace where name = ?) and updated_at < ?
            order by updated_at, request_id
            """,
            (self._workspace, iso(before)),
        )
        return [row[0] for row in rows]
