"""Worker processes killed at random: one summary a window, none missing, none stuck once its lease is over, on either store."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import uuid4

import pytest

from recollect.clock import ManualClock
from recollect.memory import Memory
from tests.kit import SOAK

CONVERSATIONS = 12 if SOAK else 4
TURNS = 40 if SOAK else 14
KILLS = 60 if SOAK else 4


@pytest.fixture(params=["neo4j", "sqlite"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return request.getfixturevalue("neo4j_url") if request.param == "neo4j" else f"sqlite://{tmp_path / 'memory.db'}"


def started(url: str, workspace: str) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "RECOLLECT_STORE": url, "RECOLLECT_WORKSPACE": workspace}
    return subprocess.Popen([sys.executable, "-m", "recollect", "worker"], env=environment, stdout=subprocess.DEVNULL)


async def filled(url: str, workspace: str) -> list[str]:
    async with await Memory.open(url, workspace=workspace) as memory:
        made: list[str] = []
        for number in range(CONVERSATIONS):
            conversation = await memory.create_conversation(project=f"p{number}")
            for n in range(TURNS):
                await conversation.record(user=f"Question {n} about part {number}", assistant=f"Answer {n} says that part {number} failed.")
            made.append(conversation.id)
        return made


async def checked(url: str, workspace: str, conversation_ids: list[str]) -> None:
    later = ManualClock(datetime.now(UTC) + timedelta(hours=2))  # every lease is over
    async with await Memory.open(url, workspace=workspace, clock=later) as memory:
        await memory.distill()
        assert (await memory.stats()).jobs == {"ready": 0, "running": 0, "parked": 0}
        stats = await memory.stats()
        assert stats.embedded == stats.passages
        expected = [(first, first + 2) for first in range(0, TURNS - 4, 3)]
        for conversation_id in conversation_ids:
            summaries = await (await memory.load_conversation(conversation_id)).summaries(level=1)
            assert [(one.first_turn, one.last_turn) for one in summaries] == expected
        assert (await memory.verify()).status == "intact"


def test_workers_killed_at_random_leave_one_summary_a_window(store_url: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}, {KILLS} kills")
    chance = random.Random(seed)
    workspace = f"workers-{uuid4()}"
    conversation_ids = asyncio.run(filled(store_url, workspace))
    workers = [started(store_url, workspace) for _ in range(2)]
    for _ in range(KILLS):
        time.sleep(chance.uniform(0.1, 1.0))
        victim = chance.randrange(len(workers))
        workers[victim].send_signal(signal.SIGKILL)
        workers[victim].wait()
        workers[victim] = started(store_url, workspace)
    for worker in workers:
        worker.kill()
        worker.wait()
    asyncio.run(checked(store_url, workspace, conversation_ids))


def test_a_worker_stops_in_order_when_it_is_asked_to(store_url: str) -> None:
    workspace = f"stopped-{uuid4()}"
    asyncio.run(filled(store_url, workspace))
    environment = {**os.environ, "RECOLLECT_STORE": store_url, "RECOLLECT_WORKSPACE": workspace}
    once = subprocess.run(
        [sys.executable, "-m", "recollect", "worker", "--once"], env=environment, capture_output=True, text=True, check=False
    )
    assert (once.returncode, once.stderr) == (0, "")
    assert "jobs done" in once.stdout
    going = subprocess.Popen([sys.executable, "-m", "recollect", "worker"], env=environment, stdout=subprocess.PIPE, text=True)
    time.sleep(1.5)
    going.send_signal(signal.SIGTERM)
    said, _ = going.communicate(timeout=60)
    assert going.returncode in {0, -signal.SIGTERM}
    assert "done" in said or going.returncode == -signal.SIGTERM
