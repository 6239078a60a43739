"""Many processes on one file: what was acknowledged survives kill -9, nothing is half-written, nothing is doubled."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.sync import Memory
from tests.kit import SOAK

WRITER = Path(__file__).parent / "writer.py"
KILLS = 1_000 if SOAK else 6
WRITERS = 32 if SOAK else 8
TURNS_EACH = 200 if SOAK else 25


def start(store: str, conversation: str, name: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, str(WRITER), store, conversation, name, str(count)], stdout=subprocess.PIPE, text=True)


def acknowledged(process: subprocess.Popen[str]) -> list[str]:
    assert process.stdout is not None
    lines = process.stdout.read()
    process.stdout.close()
    process.wait()
    whole = lines if lines.endswith("\n") else lines.rpartition("\n")[0]
    return whole.split()


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite://{tmp_path / 'memory.db'}"


def make_conversation(store: str) -> str:
    with Memory.open(store) as memory:
        return memory.create_conversation(project="p").id


def check(store: str, conversation_id: str, promised: set[str]) -> None:
    with Memory.open(store) as memory:
        turns = memory.load_conversation(conversation_id).turns()
        requests = [turn.request_id for turn in turns]
        assert promised <= set(requests), "what was acknowledged is there"
        assert len(requests) == len(set(requests)), "nothing is doubled"
        assert [turn.index for turn in turns] == list(range(len(turns)))
        assert all(len(turn.messages) == 2 and len(turn.tool_calls) == 1 for turn in turns), "no turn is half-written"
        assert memory.verify().status == "intact"
        assert memory.stats().turns == len(turns)
        if turns:
            assert memory.search(f"question {turns[-1].request_id}", limit=5).hits


def test_what_was_acknowledged_survives_kill_9_of_its_writer(store: str) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}, {KILLS} kills")
    random_ = random.Random(seed)
    conversation_id = make_conversation(store)
    promised: set[str] = set()
    for n in range(KILLS):
        process = start(store, conversation_id, f"w{n}", 10_000)
        assert process.stdout is not None
        for _ in range(random_.randrange(1, 30)):
            promised.add(process.stdout.readline().strip())
        process.send_signal(signal.SIGKILL)
        promised |= set(acknowledged(process))
        if n % 50 == 0 or n == KILLS - 1:
            check(store, conversation_id, promised)


def test_concurrent_writers_of_one_conversation_lose_and_double_nothing(store: str) -> None:
    conversation_id = make_conversation(store)
    processes = [start(store, conversation_id, f"w{n}", TURNS_EACH) for n in range(WRITERS)]
    promised = {request for process in processes for request in acknowledged(process)}
    assert [process.returncode for process in processes] == [0] * WRITERS
    assert len(promised) == WRITERS * TURNS_EACH
    check(store, conversation_id, promised)


def test_four_writers_one_killed(store: str) -> None:
    conversation_id = make_conversation(store)
    processes = [start(store, conversation_id, f"w{n}", TURNS_EACH) for n in range(4)]
    assert processes[0].stdout is not None
    processes[0].stdout.readline()
    processes[0].kill()
    promised = {request for process in processes for request in acknowledged(process)}
    check(store, conversation_id, promised)


def test_the_same_turns_sent_by_many_processes_are_recorded_once(store: str) -> None:
    conversation_id = make_conversation(store)
    processes = [start(store, conversation_id, "same", TURNS_EACH) for _ in range(4)]
    for process in processes:
        assert len(acknowledged(process)) == TURNS_EACH
    check(store, conversation_id, {f"same-{n}" for n in range(TURNS_EACH)})
    with Memory.open(store) as memory:
        assert memory.stats().turns == TURNS_EACH


def test_many_processes_may_create_the_file_at_once(tmp_path: Path) -> None:
    program = "import sys; from recollect.sync import Memory; Memory.open(sys.argv[1]).create_conversation(project='p').record(user='x')"
    store = f"sqlite://{tmp_path / 'new' / 'memory.db'}"
    processes = [subprocess.Popen([sys.executable, "-c", program, store]) for _ in range(WRITERS)]
    assert [process.wait() for process in processes] == [0] * WRITERS
    with Memory.open(store) as memory:
        assert memory.stats().turns == WRITERS
        assert memory.verify().status == "intact"
