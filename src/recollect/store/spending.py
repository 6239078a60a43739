"""What models were asked and spent in a workspace; it says nothing of what was asked, so forgetting leaves it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.answers import ModelSpending
    from recollect.model import ModelCall
    from recollect.store.protocol import Engine


class Spending:
    """Calls of models."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put(self, workspace: str, call: ModelCall) -> None:
        """Write a call down; the same id again changes nothing."""
        await self._engine.write(workspace, lambda transaction: transaction.spending.put(call))

    async def tokens(self, workspace: str, use: str, since: datetime) -> int:
        """Count the tokens, in and out, that a use has spent since a moment."""
        return await self._engine.read(workspace, lambda transaction: transaction.spending.tokens(use, since))

    async def totals(self, workspace: str, since: datetime | None = None) -> list[ModelSpending]:
        """Return what was spent, by use and model; of all time, or since a moment."""
        return await self._engine.read(workspace, lambda transaction: transaction.spending.totals(since))
