"""Writing that is done to its end even when whoever waits for it is cancelled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

_T = TypeVar("_T")


async def surely(work: Coroutine[Any, Any, _T]) -> _T:
    """Wait for work in a task of its own; when the waiting is cancelled, the work is finished first, and then the cancelling goes on."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    return task.result()
