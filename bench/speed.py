"""Speed of recall on SQLite, in CPU per query: one project of 1 %, everything, and a context, at 10,000 and 100,000 turns.

The turns are of code conversations with five tool calls each; their words come from a vocabulary of 6,000 words and
their pairs, used as often as words are. Summaries are left out, so that what is measured is reached within minutes.
"""

from __future__ import annotations

import asyncio
import random
import resource
import tempfile
import time
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.locomo import samples
from bench.recall import found, recorded
from recollect import Memory
from recollect.config import settings_from

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from bench.locomo import Sample

_SIZES = (10_000, 100_000)
_PROJECTS = 100
_TURNS_PER_CONVERSATION = 100
_QUERIES = 12
_TOOLS = ("Read", "Edit", "Bash", "Grep", "Write")


class _Words:
    """A vocabulary, used as often as words are: the n-th word in proportion to 1 / n."""

    def __init__(self, seed: int) -> None:
        self._source = random.Random(seed)  # noqa: S311  a corpus, not a secret
        syllables = [a + b for a in "bcdfghklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "or", "ist")]
        self._words = ["".join(self._source.choice(syllables) for _ in range(self._source.choice((2, 2, 3)))) for _ in range(6_000)]
        self._weights = list(accumulate(1 / (n + 3) for n in range(len(self._words))))

    def some(self, count: int) -> list[str]:
        return self._source.choices(self._words, cum_weights=self._weights, k=count)

    def name(self) -> str:
        return "_".join(self.some(2))

    def prose(self, count: int) -> str:
        return " ".join(self.some(count))


def _messages(words: _Words, turns: int) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for _ in range(turns):
        names = [words.name() for _ in range(6)]
        calls = [
            {"id": f"call_{words.name()}_{n}", "name": tool, "arguments": {"file_path": f"src/{names[n]}.py", "command": words.prose(4)}}
            for n, tool in enumerate(_TOOLS)
        ]
        messages.append({"role": "user", "content": f"Please change {names[0]} in src/{names[1]}.py: {words.prose(40)}"})
        messages.append({"role": "assistant", "content": "", "tool_calls": calls})
        messages += [{"role": "tool", "tool_call_id": call["id"], "content": f"def {names[5]}():\n    {words.prose(60)}"} for call in calls]
        messages.append({"role": "assistant", "content": f"I changed `{names[2]}`. {words.prose(110)}"})
    return messages


async def _opened(path: Path) -> Memory:
    quiet = {"memory": {"summarization": {"enabled": False}}}
    return await Memory.open(settings=settings_from({"store": f"sqlite://{path}", "agent": quiet}), worker=False)


async def _fill(memory: Memory, size: int) -> None:
    words = _Words(7)
    per_project = size // _PROJECTS
    for number in range(_PROJECTS):
        for first in range(0, per_project, _TURNS_PER_CONVERSATION):
            conversation = await memory.create_conversation(project=f"project {number}")
            await conversation.record(messages=_messages(words, min(_TURNS_PER_CONVERSATION, per_project - first)))
    await memory.distill()


async def _evidence(memory: Memory, sample: Sample, places: dict[str, str]) -> float:
    """Return R@10 of one LoCoMo dialogue."""
    rows = [
        found((await memory.search(asked.text, project=sample.name, levels=[0], limit=20)).hits, asked.gold, places)
        for asked in sample.questions
    ]
    return round(100 * sum(row[1] for row in rows) / len(rows), 1)


async def _cpu_ms(ask: Callable[[str], Awaitable[object]], queries: list[str]) -> float:
    for query in queries[:2]:
        await ask(query)
    spent: list[float] = []
    for query in queries:
        before = time.process_time()
        await ask(query)
        spent.append((time.process_time() - before) * 1_000)
    return round(sorted(spent)[len(spent) // 2], 1)


async def _at(path: Path, size: int) -> dict[str, float]:
    memory = await _opened(path)
    sample = next(iter(samples()), None)
    places = {} if sample is None else await recorded(memory, sample)
    await memory.distill()
    alone = None if sample is None else await _evidence(memory, sample, places)
    await _fill(memory, size)
    words = _Words(8)
    queries = [f"why did we change {words.name()} {words.prose(4)}" for _ in range(_QUERIES)]
    name = "project 7"
    conversation = (await memory.list_conversations(project=name, limit=1))[0].id
    figures = {
        "search_in_a_project_cpu_ms": await _cpu_ms(lambda query: memory.search(query, project=name), queries),
        "search_over_everything_cpu_ms": await _cpu_ms(memory.search, queries),
        "context_cpu_ms": await _cpu_ms(lambda query: memory.context(query, conversation=conversation), queries),
    }
    if sample is not None and alone is not None:
        figures["locomo_r10_alone"] = alone
        figures["locomo_r10_among_others"] = await _evidence(memory, sample, places)
    await memory.close()
    return figures


def measure() -> dict[str, float]:
    """Measure both sizes, and how much each figure grows from the one to the other."""
    with tempfile.TemporaryDirectory() as folder:
        small, large = (asyncio.run(_at(Path(folder) / f"{size}.db", size)) for size in _SIZES)
    figures = {f"{name}_at_{size:_}": value for size, of in zip(_SIZES, (small, large), strict=True) for name, value in of.items()}
    growth = {f"{name.removesuffix('_cpu_ms')}_growth": round(large[name] / small[name], 2) for name in small if name.endswith("_cpu_ms")}
    return {**figures, **growth, "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024)}
