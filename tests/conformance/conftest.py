"""One `store` over all registered stores: a test here is a promise of the protocol, kept by every backend alike."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Generator
from pathlib import Path
from uuid import uuid4

import pytest

from recollect.clock import CountedIds, ManualClock
from recollect.memory import Memory
from recollect.settings import Settings
from recollect.store import Store, open_store
from tests.kit import OpenMemory
from tests.plans import explained

# name → the URL of a store; a new backend is one line here
STORES: dict[str, Callable[[pytest.FixtureRequest], str]] = {
    "sqlite": lambda request: f"sqlite://{request.getfixturevalue('tmp_path') / 'memory.db'}",
    "neo4j": lambda request: request.getfixturevalue("neo4j_url"),
}


@pytest.fixture(scope="session", autouse=True)
def no_query_goes_through_everything() -> Generator[None]:
    """Explain every query of the embedded store that a test here runs: what one costs may not grow with all that is remembered."""
    with explained():
        yield


@pytest.fixture(params=sorted(STORES))
def store_url(request: pytest.FixtureRequest) -> str:
    return STORES[request.param](request)


@pytest.fixture
def workspace() -> str:
    """Give each test a workspace of its own, because tests of one run share a server."""
    return f"test-{uuid4()}"


@pytest.fixture
async def store(store_url: str, clock: ManualClock) -> AsyncGenerator[Store]:
    opened = await open_store(store_url, clock=clock)
    yield opened
    await opened.close()


@pytest.fixture
async def memory(store: Store, workspace: str, clock: ManualClock, ids: CountedIds) -> Memory:
    return Memory(store, Settings(store=store.url, workspace=workspace), clock, ids)


@pytest.fixture
async def reopen(store_url: str, workspace: str, clock: ManualClock, ids: CountedIds) -> AsyncGenerator[OpenMemory]:
    """Open the same store again, as another process would."""
    opened: list[Memory] = []

    async def again(workspace: str = workspace) -> Memory:
        opened.append(await Memory.open(settings=Settings(store=store_url, workspace=workspace), clock=clock, ids=ids))
        return opened[-1]

    yield again
    for one in opened:
        await one.close()


@pytest.fixture
async def elsewhere(
    store_url: str, workspace: str, clock: ManualClock, request: pytest.FixtureRequest, tmp_path: Path
) -> AsyncGenerator[Memory]:
    """Open a store of another kind, with nothing in it yet."""
    url = f"sqlite://{tmp_path / 'elsewhere.db'}" if store_url.startswith("neo4j") else request.getfixturevalue("neo4j_url")
    async with await Memory.open(url, workspace=workspace, clock=clock) as other:
        yield other
