"""What models were asked and spent, in Neo4j."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.answers import ModelSpending
from recollect.store.shapes import Room

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import ModelCall
    from recollect.store.neo4j.database import Connection


class Neo4jSpending:
    """The `SpendingRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def put(self, call: ModelCall) -> None:
        """Write a call down, in the place of what was written of it before."""
        await self._connection.run(
            """
            MERGE (m:ModelCall {workspace: $workspace, uuid: $uuid})
            SET m.use = $use, m.model = $model, m.input_tokens = $input_tokens, m.output_tokens = $output_tokens,
                m.duration_ms = $duration_ms, m.cost = $cost, m.is_failed = $is_failed, m.is_open = $is_open, m.timestamp = $timestamp
            """,
            workspace=self._workspace, uuid=call.id, use=call.use, model=call.model, input_tokens=call.input_tokens,
            output_tokens=call.output_tokens, duration_ms=call.duration_ms, cost=call.cost, is_failed=call.is_failed,
            is_open=call.is_open, timestamp=call.timestamp,
        )  # fmt: skip

    async def hold(self, use: str) -> None:
        """Take the lock of a use."""
        await self._connection.run(
            "MERGE (u:ModelUse {workspace: $workspace, use: $use}) SET u.holds = coalesce(u.holds, 0) + 1",
            workspace=self._workspace,
            use=use,
        )

    async def tokens(self, use: str, since: datetime, underway_since: datetime) -> Room:
        """Count the tokens of a use since a moment."""
        row = await self._connection.row(
            """
            MATCH (m:ModelCall) WHERE m.workspace = $workspace AND m.use = $use AND m.timestamp >= $since
            WITH m.input_tokens + m.output_tokens AS tokens, m.is_open AND m.timestamp >= $underway_since AS is_underway
            RETURN coalesce(sum(CASE WHEN is_underway THEN 0 ELSE tokens END), 0),
                coalesce(sum(CASE WHEN is_underway THEN tokens ELSE 0 END), 0)
            """,
            workspace=self._workspace,
            use=use,
            since=since,
            underway_since=underway_since,
        )
        return Room() if row is None else Room(spent_tokens=row[0], underway_tokens=row[1])

    async def totals(self, since: datetime | None) -> list[ModelSpending]:
        """Return what was spent, by use and model."""
        rows = await self._connection.rows(
            """
            MATCH (m:ModelCall) WHERE m.workspace = $workspace AND ($since IS NULL OR m.timestamp >= $since)
            WITH m.use AS use, m.model AS model, count(*) AS calls, sum(CASE WHEN m.is_failed THEN 1 ELSE 0 END) AS failures,
                sum(m.input_tokens) AS sent, sum(m.output_tokens) AS answered, sum(m.duration_ms) AS duration_ms,
                sum(m.cost) AS cost, count(m.cost) AS priced
            RETURN use, model, calls, failures, sent, answered, duration_ms, CASE WHEN priced > 0 THEN cost END
            ORDER BY use, model
            """,
            workspace=self._workspace,
            since=since,
        )
        return [
            ModelSpending(
                use=row[0], model=row[1], calls=row[2], failures=row[3], input_tokens=row[4], output_tokens=row[5],
                duration_ms=row[6], cost=row[7],
            )
            for row in rows
        ]  # fmt: skip
