"""What models were asked and spent in a workspace; it says nothing of what was asked, so forgetting leaves it alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.store.shapes import Room

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.answers import ModelSpending
    from recollect.model import ModelCall
    from recollect.store.protocol import Engine, Transaction


class Spending:
    """Calls of models."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put(self, workspace: str, call: ModelCall) -> None:
        """Write a call down, in the place of what was written of it before."""
        await self._engine.write(workspace, lambda transaction: transaction.spending.put(call))

    async def reserve(self, workspace: str, call: ModelCall, most: int | None, since: datetime, underway_since: datetime) -> Room:
        """Write down a call that is about to be made, if its tokens and those since a moment are no more than `most`.

        Two that ask at once, wherever they run, cannot both have what is there only once. What was asked for before
        `underway_since` and is still open counts as spent: whoever asked is gone.
        """
        return await self._engine.write(workspace, lambda transaction: _reserve(transaction, call, most, since, underway_since))

    async def totals(self, workspace: str, since: datetime | None = None) -> list[ModelSpending]:
        """Return what was spent, by use and model; of all time, or since a moment."""
        return await self._engine.read(workspace, lambda transaction: transaction.spending.totals(since))


async def _reserve(transaction: Transaction, call: ModelCall, most: int | None, since: datetime, underway_since: datetime) -> Room:
    if most is None:
        await transaction.spending.put(call)
        return Room(is_granted=True)
    await transaction.spending.hold(call.use)
    room = await transaction.spending.tokens(call.use, since, underway_since)
    wanted = call.input_tokens + call.output_tokens
    if room.spent_tokens + room.underway_tokens + wanted > most:
        return room
    await transaction.spending.put(call)
    return msgspec.structs.replace(room, is_granted=True)
