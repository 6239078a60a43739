"""Requests that come in pieces: what is known of each so far, until it is whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.store.removal import drop_empty
from recollect.store.shapes import OvertakenError, Step

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

    async def step(self, workspace: str, step: Step, at: datetime) -> None:
        """Take a step of a request; `OvertakenError`, and nothing is written, when it is not where that goes on from.

        With the last step of a request of which nothing was to be recorded its conversation goes, unless there is more in it.
        """
        await self._engine.write(workspace, lambda transaction: _step(transaction, step, at))

    async def let_go(self, workspace: str, request_id: str, at: datetime, *, conversation_id: str | None = None) -> None:
        """Take the last step of a request, wherever it is by now; nothing happens when there is none, or it is another conversation's."""
        await self._engine.write(workspace, lambda transaction: _let_go(transaction, request_id, at, conversation_id))

    async def idle(self, workspace: str, before: datetime) -> list[str]:
        """Return the requests to which nothing came since a moment, the oldest first."""
        return await self._engine.read(workspace, lambda transaction: transaction.requests.idle(before))


class _Sketched(msgspec.Struct, frozen=True):
    """What a store has to know of a sketch."""

    status: str = "open"


async def check_step(transaction: Transaction, step: Step | None) -> None:
    """Raise `OvertakenError` when a request is not where a step goes on from; until the transaction ends nobody else takes one."""
    if step is None:
        return
    await transaction.conversations.held(step.conversation_id)  # keeps others from writing, also where many may at once
    if await transaction.requests.get(step.request_id) != step.was:
        msg = f"request {step.request_id!r} went on while it was read: try again"
        raise OvertakenError(msg)


async def take_step(transaction: Transaction, step: Step | None, at: datetime) -> None:
    """Write where a request is after a step."""
    if step is None:
        return
    if step.now is not None:  # also when it is as it was: somebody still sends to it
        await transaction.requests.put(step.request_id, step.conversation_id, step.now, at)
        return
    owner = await transaction.requests.owner(step.request_id)
    await transaction.requests.delete(step.request_id)
    if step.was is not None and owner is not None and msgspec.json.decode(step.was, type=_Sketched).status == "skipped":
        await drop_empty(transaction, owner)


async def _step(transaction: Transaction, step: Step, at: datetime) -> None:
    await check_step(transaction, step)
    await take_step(transaction, step, at)


async def _let_go(transaction: Transaction, request_id: str, at: datetime, conversation_id: str | None) -> None:
    owner = await transaction.requests.owner(request_id)
    if owner is None or conversation_id not in {None, owner}:
        return
    await transaction.conversations.held(owner)  # from here on nobody else takes a step
    was = await transaction.requests.get(request_id)
    await take_step(transaction, Step(request_id=request_id, conversation_id=owner, was=was, now=None), at)
