"""Ways of waiting: to the end even when cancelled, for several things at once, for what was given up, and for a thread."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence
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


async def together(works: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Do some things at once; when one cannot go on, the others are given up, too, and have ended when its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        await given_up(tasks)


async def given_up(tasks: Sequence[asyncio.Future[Any]]) -> None:
    """Cancel what is not done, and wait until it has put away what it holds."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def in_a_thread(work: Callable[[], _T]) -> _T:
    """Do something that blocks in a thread of its own; who is cancelled goes on at once, and no program waits for the thread to end."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[_T] = loop.create_future()

    def done(result: _T | None, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)  # pyright: ignore[reportArgumentType]  a result of None is one
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = work()
        except BaseException as raised:  # noqa: BLE001  it is raised again where the work was asked for
            error = raised
        with contextlib.suppress(RuntimeError):  # the loop is gone, and with it who waited
            loop.call_soon_threadsafe(done, result, error)

    threading.Thread(target=run, daemon=True).start()
    return await future
