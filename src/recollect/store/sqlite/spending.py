"""What models were asked and spent, in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.answers import ModelSpending
from recollect.clock import iso

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
        """Write a call down, once."""
        self._connection.run(
            """
            insert into model_call
                (workspace, uuid, use, model, input_tokens, output_tokens, duration_ms, cost, is_failed, timestamp)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict do nothing
            """,
            (
                self._workspace, call.id, call.use, call.model, call.input_tokens, call.output_tokens, call.duration_ms, call.cost,
                int(call.is_failed), iso(call.timestamp),
            ),
        )  # fmt: skip

    async def tokens(self, use: str, since: datetime) -> int:
        """Count the tokens of a use since a moment."""
        found: int = self._connection.value(
            "select coalesce(sum(input_tokens + output_tokens), 0) from model_call where workspace = ? and use = ? and timestamp >= ?",
            (self._workspace, use, iso(since)),
        )
        return found

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
