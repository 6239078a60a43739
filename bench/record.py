"""Recording: CPU of a turn against bare statements, and ten thousand turns into an empty file."""

from __future__ import annotations

import asyncio
import resource
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import apsw

from bench.corpus import turns
from recollect import Memory, sync
from recollect.running import run_now
from recollect.store.sqlite.database import Database

Group = list[tuple[str, tuple[Any, ...]]]

_TABLES = ("turn", "message", "tool_call", "tool_result", "access", "passage")
_TURNS = 1_500
_WARM_UP = 200
_ROUNDS = 3


async def _recorded(path: Path, corpus: list[dict[str, Any]]) -> None:
    """Record a corpus, to learn which rows that makes."""
    async with await Memory.open(f"sqlite://{path}") as memory:
        conversation = await memory.create_conversation(project="bench")
        for arguments in corpus:
            await conversation.record(**arguments)


def rows_by_turn(path: Path) -> list[Group]:
    """Read back what was written, turn by turn, as statements and rows."""
    connection = apsw.Connection(str(path))
    keys = [row[0] for row in connection.execute("select pk from turn order by pk")]
    queries = {
        "turn": "select * from turn where pk = ?",
        "message": "select * from message where turn_pk = ? order by pk",
        "tool_call": "select * from tool_call where turn_pk = ? order by pk",
        "tool_result": "select r.* from tool_result r join tool_call c on c.pk = tool_call_pk where turn_pk = ? order by 1",
        "access": "select a.* from access a join tool_call c on c.pk = tool_call_pk where turn_pk = ? order by 1, 2",
        "passage": "select * from passage where turn_pk = ? order by 1",
    }
    groups: list[Group] = []
    seen: set[int] = set()
    for key in keys:
        group: Group = []
        for table in _TABLES:
            rows = [tuple(row) for row in connection.execute(queries[table], (key,))]
            if table == "access":
                files = [row[2] for row in rows if row[2] not in seen]
                seen.update(files)
                for file in dict.fromkeys(files):
                    found = connection.execute("select * from code_file where pk = ?", (file,)).fetchall()
                    group += [("insert into code_file values (?, ?, ?, ?)", tuple(row)) for row in found]
            group += [(f"insert into {table} values ({', '.join('?' * len(row))})", row) for row in rows]  # noqa: S608  our own tables
        terms = connection.execute("select number, terms from passage where turn_pk = ? order by 1", (key,))
        group += [("insert into passage_terms (rowid, terms) values (?, ?)", tuple(row)) for row in terms]
        groups.append(group)
    connection.close()
    return groups


def bare_connection(path: Path, source: Path) -> apsw.Connection:
    """Open an empty file with the same tables, triggers and settings, and the same conversation."""
    database = Database(path, durability="process", threads=False)
    database.prepare()
    run_now(database.close())
    connection = apsw.Connection(str(path))
    for pragma in ("synchronous = normal", "foreign_keys = on", "secure_delete = on", "cache_size = -16000", "temp_store = memory"):
        connection.execute(f"pragma {pragma}").fetchall()
    connection.execute("attach ? as other", (str(source),))
    for table in ("workspace", "project", "conversation"):
        connection.execute(f"insert into {table} select * from other.{table}")  # noqa: S608  our own tables
    connection.execute("detach other")
    return connection


def insert(connection: apsw.Connection, group: Group) -> None:
    """Insert the rows and terms of one turn by bare statements in one transaction."""
    connection.execute("begin immediate")
    for statement, row in group:
        connection.execute(statement, row)
    connection.execute("update conversation set turn_count = turn_count + 1, next_index = next_index + 1")
    connection.execute("commit")


async def _in_turns(folder: Path, corpus: list[dict[str, Any]], groups: list[Group], source: Path) -> dict[str, list[float]]:
    """Record each turn all ways, one after the other, so that caches and noise are the same for all; CPU milliseconds."""
    spent: dict[str, list[float]] = {"record": [], "bare": [], "record_sync": []}
    connection = bare_connection(folder / "bare.db", source)
    with sync.Memory.open(f"sqlite://{folder / 'sync.db'}") as plain:
        async with await Memory.open(f"sqlite://{folder / 'again.db'}") as memory:
            conversation = await memory.create_conversation(project="bench")
            without_await = plain.create_conversation(project="bench")
            for arguments, group in zip(corpus, groups, strict=True):
                times = [time.process_time()]
                await conversation.record(**arguments)
                times.append(time.process_time())
                insert(connection, group)
                times.append(time.process_time())
                without_await.record(**arguments)
                times.append(time.process_time())
                for name, start, end in zip(spent, times, times[1:], strict=False):
                    spent[name].append((end - start) * 1_000)
    connection.close()
    return {name: found[_WARM_UP:] for name, found in spent.items()}


def measure_ratio() -> dict[str, float]:
    """Measure both ways and compare the medians."""
    corpus = turns(_TURNS)
    spent: dict[str, list[float]] = {}
    for _ in range(_ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / "ours.db"
            asyncio.run(_recorded(source, corpus))
            for name, found in asyncio.run(_in_turns(Path(folder), corpus, rows_by_turn(source), source)).items():
                spent.setdefault(name, []).extend(found)
    medians = {name: statistics.median(found) for name, found in spent.items()}
    characters = statistics.mean(len(t["user"]) + len(t["assistant"]) + sum(len(str(c)) for c in t["tool_calls"]) for t in corpus)
    return {
        "turn_chars_mean": round(characters),
        **{f"{name}_cpu_ms_p50": round(value, 3) for name, value in medians.items()},
        "ratio_p50": round(medians["record"] / medians["bare"], 2),
        "ratio_sync_p50": round(medians["record_sync"] / medians["bare"], 2),
        "ratio_mean": round(statistics.mean(spent["record"]) / statistics.mean(spent["bare"]), 2),
    }


def measure_bulk(count: int = 10_000) -> dict[str, float]:
    """Record many turns into an empty file, a hundred to a conversation."""
    corpus = turns(2_000)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bulk.db"

        async def run() -> list[float]:
            waits: list[float] = []
            async with await Memory.open(f"sqlite://{path}") as memory:
                for start in range(0, count, 100):
                    conversation = await memory.create_conversation(project=f"project {start // 1_000}")
                    for n in range(start, min(start + 100, count)):
                        before = time.perf_counter()
                        await conversation.record(**corpus[n % len(corpus)])
                        waits.append((time.perf_counter() - before) * 1_000)
            return waits

        before = time.process_time()
        waits = sorted(asyncio.run(run()))
        spent = time.process_time() - before
        size = path.stat().st_size
    return {
        "turns": count,
        "turns_per_cpu_second": round(count / spent),
        "bytes_per_turn": round(size / count),
        "record_wall_ms_p50": round(waits[len(waits) // 2], 2),
        "record_wall_ms_p99": round(waits[int(len(waits) * 0.99)], 2),
        "peak_memory_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_024),
    }
