"""The five questions of the audit at a hundred thousand requests on SQLite, in CPU milliseconds each."""

from __future__ import annotations

import asyncio
import os
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect import Memory

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

_COUNT = int(os.environ.get("RECOLLECT_BENCH_REQUESTS", "100000"))
_PROJECTS = 20
_FILES = 400
_ASKED = 9
_TOOLS = ("cat", "update_textdoc", "shell", "search_pattern", "tree")
_SOURCES = ("vecdb", "ast", "user")


def _payload(random_: random.Random, number: int) -> dict[str, Any]:
    project, day = number % _PROJECTS, number * 90 // _COUNT
    path = f"src/m{random_.randrange(20)}/f{random_.randrange(_FILES // 20)}.py"
    failed = random_.random() < 0.1
    line = random_.randrange(1, 400)
    return {
        "request_id": f"req_{number}",
        "project_id": f"project {project}",
        "timestamp": f"2026-{1 + day // 30:02}-{1 + day % 30:02}T{number % 24:02}:00:00Z",
        "chat_meta": {"chat_id": f"c{number // 100}-{project}"},
        "messages": [{"role": "user", "content": f"Fix {number}"}, {"role": "assistant", "content": f"Done {number}"}],
        "context_files": [
            {"file_path": path, "usefulness": random_.random(), "source": random_.choice(_SOURCES)},
            {"file_path": f"docs/d{random_.randrange(50)}.md", "source": random_.choice(_SOURCES)},
        ],
        "tool_calls": [
            {"tool_call_id": f"t{number}", "tool_name": random_.choice(_TOOLS), "status": "failed" if failed else "success",
             "execution_time_ms": random_.randrange(5_000), **({"error": f"exit code {random_.randrange(4)}"} if failed else {})}
        ],
        "code_changes": [
            {"file_path": path, "tool_call_id": f"t{number}", "line_start": line, "line_end": line + 5, "lines_added": 3,
             "lines_removed": 1, "diff": f"@@ -{line},1 +{line},1 @@\\n-old {number}\\n+new {number}\\n"}
        ] if number % 3 == 0 else [],
        "checkpoints": [{"git_hash": f"{number:08x}"}] if number % 10 == 0 else [],
    }  # fmt: skip


async def _filled(memory: Memory, count: int) -> float:
    random_ = random.Random(11)  # noqa: S311  a corpus, not a secret
    before = time.process_time()
    for number in range(count):
        await memory.record(_payload(random_, number))
    return time.process_time() - before


async def _cpu_ms(ask: Callable[[int], Awaitable[Any]]) -> float:
    await ask(0)
    spent: list[float] = []
    for n in range(_ASKED):
        before = time.process_time()
        await ask(n)
        spent.append((time.process_time() - before) * 1_000)
    return round(statistics.median(spent), 2)


async def _measured(folder: Path, count: int) -> dict[str, float]:
    async with await Memory.open(f"sqlite://{folder / 'audit.db'}", threads=False) as memory:
        spent = await _filled(memory, count)
        paths = [f"src/m{n}/f{n}.py" for n in range(_ASKED)]
        project = "project 7"
        asked: dict[str, Callable[[int], Awaitable[Any]]] = {
            "why_of_a_file": lambda n: memory.why(paths[n], project=project),
            "why_of_a_line": lambda n: memory.why(paths[n], 50 + n, line_text=f"new {n}", project=project),
            "flow_of_a_request": lambda n: memory.flow(f"req_{n * count // 10}"),
            "usage_of_a_file": lambda n: memory.file_usage(paths[n], project=project),
            "usage_of_all_files": lambda _: memory.context_usage(project=project),
            "reliability_of_tools": lambda _: memory.tool_reliability(project=project),
            "reliability_of_tools_in_7_days": lambda _: memory.tool_reliability(project=project, since="2026-03-20"),
            "checkpoints": lambda _: memory.checkpoints(project=project),
        }
        return {
            "requests": count,
            "projects": _PROJECTS,
            "record_cpu_ms": round(spent / count * 1_000, 3),
            **{f"{name}_cpu_ms": await _cpu_ms(ask) for name, ask in asked.items()},
        }


def measure(count: int = _COUNT) -> dict[str, float]:
    """Record the requests, then ask about one of twenty projects."""
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(Path(folder), count))
