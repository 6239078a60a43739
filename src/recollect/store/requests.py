"""Requests that come in pieces: what is known of each so far, until it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.store.removal import drop_empty

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.protocol import Engine, Transaction


class Requests:
    """What is known of requests that are not whole yet."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def get(self, workspace: str, request_id: str) -> str | None:
        """Return the sketch of a request, or None."""
        return await self._engine.read(workspace, lambda transaction: transaction.requests.get(request_id))

    async def put(self, workspace: str, request_id: str, conversation_id: str, sketch: str, at: datetime, was: str | None) -> bool:
        """Write the sketch of a request in the place of the one it was made from; False when somebody else has changed that meanwhile."""
        return await self._engine.write(workspace, lambda transaction: _put(transaction, request_id, conversation_id, sketch, at, was))

    async def delete(self, workspace: str, request_id: str) -> bool:
        """Delete a sketch, and its conversation when nothing of it was to be recorded; False when there is no sketch."""
        return await self._engine.write(workspace, lambda transaction: _delete(transaction, request_id))

    async def idle(self, workspace: str, before: datetime) -> list[str]:
        """Return the requests to which nothing came since a moment, the oldest first."""
        return await self._engine.read(workspace, lambda transaction: transaction.requests.idle(before))


class _Sketched(msgspec.Struct, frozen=True):
    """What a store has to know of a sketch."""

    status: str = "open"


async def _put(transaction: Transaction, request_id: str, conversation_id: str, sketch: str, at: datetime, was: str | None) -> bool:
    await transaction.conversations.held(conversation_id)  # keeps others from writing, also where many may at once
    if await transaction.requests.get(request_id) != was:
        return False
    await transaction.requests.put(request_id, conversation_id, sketch, at)
    return True


async def _delete(transaction: Transaction, request_id: str) -> bool:
    sketch, owner = await transaction.requests.get(request_id), await transaction.requests.owner(request_id)
    known = await transaction.requests.delete(request_id)
    if sketch is not None and owner is not None and msgspec.json.decode(sketch, type=_Sketched).status == "skipped":
        await drop_empty(transaction, owner)
    return known
