"""What models were asked and spent, in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.answers import ModelSpending
from recollect.clock import iso
from recollect.store.shapes import Room

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import ModelCall
    from recollect.store.sqlite.database import Connection


class SqliteSpending:
    """The `SpendingRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def put(self, call: ModelCall) -> None:
        """Write a call down, in the place of what was written of it before."""
        self._connection.run(
            """
            insert into model_call
                (workspace, uuid, use, model, input_tokens, output_tokens, duration_ms, cost, is_failed, is_open, timestamp)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            on conflict (workspace, uuid) do update set input_tokens = excluded.input_tokens, output_tokens = excluded.output_tokens,
                duration_ms = excluded.duration_ms, cost = excluded.cost, is_failed = excluded.is_failed, is_open = excluded.is_open
            """,
            (
                self._workspace, call.id, call.use, call.model, call.input_tokens, call.output_tokens, call.duration_ms, call.cost,
                int(call.is_failed), int(call.is_open), iso(call.timestamp),
            ),
        )  # fmt: skip

    async def hold(self, use: str) -> None:
        """Do nothing: a transaction that writes is the only one that does."""

    async def tokens(self, use: str, since: datetime, underway_since: datetime) -> Room:
        """Count the tokens of a use since a moment."""
        row = self._connection.row(
            """
            select coalesce(sum(input_tokens + output_tokens), 0),
                coalesce(sum(input_tokens + output_tokens) filter (where is_open and timestamp >= ?4), 0)
            from model_call where workspace = ?1 and use = ?2 and timestamp >= ?3
            """,
            (self._workspace, use, iso(since), iso(underway_since)),
        ) or (0, 0)
        return Room(spent_tokens=row[0] - row[1], underway_tokens=row[1])

    async def totals(self, since: datetime | None) -> list[ModelSpending]:
        """Return what was spent, by use and model."""
        rows = self._connection.rows(
            """
            select use, model, count(*), sum(is_failed), sum(input_tokens), sum(output_tokens), sum(duration_ms), sum(cost)
            from model_call where workspace = ?1 and (?2 is null or timestamp >= ?2) group by use, model order by use, model
            """,
            (self._workspace, None if since is None else iso(since)),
        )
        return [
            ModelSpending(
                use=row[0], model=row[1], calls=row[2], failures=row[3], input_tokens=row[4], output_tokens=row[5],
                duration_ms=row[6], cost=row[7],
            )
            for row in rows
        ]  # fmt: skip
