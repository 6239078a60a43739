"""Both stores side by side on one corpus: recording and reading, at a thousand turns and at ten thousand."""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.neo4j_server import Server, fetch

from bench.corpus import turns
from recollect import Memory
from recollect.store.neo4j import Neo4jEngine

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from recollect.conversation import Conversation

_SIZES = (1_000, 10_000)
_PER_CONVERSATION = 100
_CONVERSATIONS_PER_PROJECT = 5
_REPEATS = 20
_WARM_UP = 40  # a server compiles what it is asked often
_QUERY = "why does the retry of the payment queue fail"


class _Filling:
    """A memory that grows to the sizes at which it is measured."""

    def __init__(self, memory: Memory, corpus: list[dict[str, Any]]) -> None:
        self.memory = memory
        self._corpus = corpus
        self._count = 0
        self.conversation: Conversation | None = None
        self.waits: list[float] = []

    async def grow(self, size: int) -> None:
        """Record up to a size."""
        self.waits = []
        while self._count < size:
            if self._count % _PER_CONVERSATION == 0:
                number = self._count // _PER_CONVERSATION // _CONVERSATIONS_PER_PROJECT
                self.conversation = await self.memory.create_conversation(project=f"project {number}")
            if self.conversation is not None:
                before = time.perf_counter()
                await self.conversation.record(**self._corpus[self._count % len(self._corpus)])
                self.waits.append((time.perf_counter() - before) * 1_000)
            self._count += 1


async def _median(work: Callable[[], Awaitable[object]]) -> float:
    spent: list[float] = []
    for _ in range(_WARM_UP):
        await work()
    for _ in range(_REPEATS):
        before = time.perf_counter()
        await work()
        spent.append((time.perf_counter() - before) * 1_000)
    return statistics.median(spent)


async def _measured(filling: _Filling) -> dict[str, float]:
    """Return the median wait for each kind of question, in milliseconds."""
    conversation, memory = filling.conversation, filling.memory
    assert conversation is not None
    return {
        "record": statistics.median(filling.waits[-500:]),
        "history_of_100_turns": await _median(lambda: conversation.turns(limit=_PER_CONVERSATION)),
        "recent_turns": await _median(conversation.recent_turns),
        "accessed_files": await _median(conversation.accessed_files),
        "search_a_project": await _median(lambda: memory.search(_QUERY, project="project 0")),
        "search_everything": await _median(lambda: memory.search(_QUERY)),
    }


async def _run(url: str, sizes: tuple[int, ...]) -> tuple[dict[int, dict[str, float]], float]:
    """Grow a store to each size and measure it there; and the round trips that recording one turn takes."""
    found: dict[int, dict[str, float]] = {}
    async with await Memory.open(url) as memory:
        filling = _Filling(memory, turns(2_000))
        await _warmed(memory)
        for size in sizes:
            await filling.grow(size)
            found[size] = await _measured(filling)
        assert (await memory.stats()).turns == sizes[-1]
        trips = await _round_trips(filling)
    return found, trips


async def _warmed(memory: Memory) -> None:
    """Record in a workspace of its own first, so that a server has compiled what it will be asked."""
    apart = await Memory.open(memory.store.url, workspace="warm-up")
    async with apart:
        conversation = await apart.create_conversation(project="warm-up")
        for arguments in turns(1_000):
            await conversation.record(**arguments)


async def _round_trips(filling: _Filling) -> float:
    """Count what recording a turn asks of a server: its queries, the beginning and the end; a file has none."""
    engine = filling.memory.store._engine  # noqa: SLF001  the benchmark counts what nobody else needs to know
    if not isinstance(engine, Neo4jEngine) or filling.conversation is None:
        return 0
    counted: set[float] = set()
    for arguments in turns(30):
        queries, units = engine.database.queries, engine.database.units
        await filling.conversation.record(**arguments)
        counted.add(engine.database.queries - queries + 2 * (engine.database.units - units))
    assert len(counted) == 1, "a constant number"
    return counted.pop()


def measure(sizes: tuple[int, ...] = _SIZES) -> dict[str, float | str]:
    """Measure both stores, and how each grows."""
    trouble = fetch()
    if trouble is not None:
        print(trouble, file=sys.stderr)
        return {}
    results: dict[str, float | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder) / "neo4j", heap="1g")
        server.start()
        try:
            server.wait()
            for name, url in (("sqlite", f"sqlite://{folder}/memory.db"), ("neo4j", server.url)):
                found, trips = asyncio.run(_run(url, sizes))
                small, large = found[sizes[0]], found[sizes[-1]]
                for what, spent in large.items():
                    results[f"{name}.{what}_ms_p50"] = round(spent, 2)
                    results[f"{name}.{what}_growth"] = round(spent / small[what], 2)
                if trips:
                    results[f"{name}.record_round_trips"] = trips
        finally:
            server.stop()
    return results
