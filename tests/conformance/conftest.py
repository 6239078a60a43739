"""One `store` over all registered stores: a test here is a promise of the protocol, kept by every backend alike."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from recollect.clock import CountedIds, ManualClock
from recollect.config import Settings
from recollect.memory import Memory
from recollect.store import Store, open_store
from tests.kit import OpenMemory

Factory = Callable[[Path], str]

# name → the URL of an empty store; a new backend is one line here
STORES: dict[str, Factory] = {"sqlite": lambda folder: f"sqlite://{folder / 'memory.db'}"}


@pytest.fixture(params=sorted(STORES))
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return STORES[request.param](tmp_path)


@pytest.fixture
async def store(store_url: str) -> AsyncGenerator[Store]:
    opened = await open_store(store_url)
    yield opened
    await opened.close()


@pytest.fixture
async def memory(store: Store, clock: ManualClock, ids: CountedIds) -> Memory:
    return Memory(store, Settings(store=store.url), clock, ids)


@pytest.fixture
async def reopen(store_url: str, clock: ManualClock, ids: CountedIds) -> AsyncGenerator[OpenMemory]:
    """Open the same store again, as another process would."""
    opened: list[Memory] = []

    async def again(**settings: object) -> Memory:
        chosen = Settings(store=store_url, **settings)  # type: ignore[arg-type]
        opened.append(await Memory.open(settings=chosen, clock=clock, ids=ids))
        return opened[-1]

    yield again
    for one in opened:
        await one.close()
