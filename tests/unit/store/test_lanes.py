"""Lanes: in order, one at a time, closed once whatever is under way."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, cast

import apsw
import pytest

from recollect.errors import StoreUnavailableError
from recollect.store.sqlite.database import Connection
from recollect.store.sqlite.lanes import Lane, Outcome, attempted


def connect() -> Connection:
    return Connection(apsw.Connection(":memory:"))


def one_by_one(connection: Connection, works: Sequence[Callable[[Connection], Any]]) -> list[Outcome]:
    return [attempted(lambda work=work: work(connection)) for work in works]


@pytest.mark.parametrize("together", [None, one_by_one])
async def test_what_is_asked_for_is_done_in_the_order_of_asking(together: Any) -> None:
    lane = Lane(connect, "a lane", together)
    done: list[int] = []
    await asyncio.gather(*(lane.run_async(lambda _, n=n: done.append(n), joins=n % 3 > 0) for n in range(50)))
    lane.close()
    assert done == list(range(50))


async def test_an_error_reaches_who_asked_and_nobody_else() -> None:
    lane = Lane(connect, "a lane", one_by_one)

    def fail(_: Connection) -> None:
        msg = "no"
        raise ValueError(msg)

    results = await asyncio.gather(*(lane.run_async(work, joins=True) for work in (lambda _: 1, fail, lambda _: 3)), return_exceptions=True)
    lane.close()
    assert results[0] == 1
    assert isinstance(results[1], ValueError)
    assert results[2] == 3


async def test_closing_finishes_what_was_begun_and_refuses_what_comes_later() -> None:
    lane = Lane(connect, "a lane", one_by_one)
    begun, may_go_on = threading.Event(), threading.Event()

    def slow(_: Connection) -> str:
        begun.set()
        may_go_on.wait()
        return "done"

    first, second = asyncio.ensure_future(lane.run_async(slow)), asyncio.ensure_future(lane.run_async(lambda _: "too", joins=True))
    await asyncio.to_thread(begun.wait)
    closing = asyncio.ensure_future(asyncio.to_thread(lane.close))
    may_go_on.set()
    await closing
    assert [await first, await second] == ["done", "too"]
    with pytest.raises(StoreUnavailableError, match="open it again"):
        await lane.run_async(lambda _: None)
    with pytest.raises(StoreUnavailableError, match="open it again"):
        lane.run(lambda _: None)
    lane.close()


def test_work_may_close_the_lane_it_runs_in_as_a_signal_does() -> None:
    lane = Lane(connect, "a lane")
    lane.run(lambda _: lane.close())
    with pytest.raises(StoreUnavailableError):
        lane.run(lambda _: None)


async def test_what_was_asked_for_is_not_kept_alive_until_the_next_asks() -> None:
    class Work:
        def __call__(self, connection: Connection) -> None: ...

    lane = Lane(connect, "a lane", one_by_one)
    work = Work()
    alive = weakref.ref(work)
    await lane.run_async(cast("Callable[[Connection], None]", work), joins=True)
    del work
    answered = await lane.run_async(lambda _: gc.collect())  # the lane has gone on by then
    lane.close()
    assert answered is not None
    assert alive() is None
