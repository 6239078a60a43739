"""A memory belongs to the process that opened it: what is forked from it touches nothing, and says what to do."""

from __future__ import annotations

import subprocess
import sys

SYNC = """
import os, sys
from recollect.errors import StoreUnavailableError
from recollect.sync import Memory

with Memory.open(sys.argv[1], workspace=sys.argv[2]) as memory:
    conversation = memory.create_conversation(project="p")
    conversation.record(user="before the fork")
    child = os.fork()
    if child == 0:
        try:
            conversation.record(user="from the child")
        except StoreUnavailableError as error:
            print(error, flush=True)
        memory.close()
        with Memory.open(sys.argv[1], workspace=sys.argv[2]) as own:
            own.load_conversation(conversation.id).record(user="from the child's own memory")
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    conversation.record(user="after the fork")
    print([turn.user for turn in conversation.turns()])
    print(memory.verify().status)
"""

ASYNC = """
import asyncio, os, sys
from recollect import Memory
from recollect.errors import StoreUnavailableError

async def main():
    async with await Memory.open(sys.argv[1], workspace=sys.argv[2], worker=False) as memory:
        conversation = await memory.create_conversation(project="p")
        await conversation.record(user="before the fork")
        child = os.fork()
        if child == 0:
            try:
                conversation.record(user="from the child").send(None)
            except StoreUnavailableError as error:
                print(error, flush=True)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        await conversation.record(user="after the fork")
        print([turn.user for turn in await conversation.turns()])

asyncio.run(main())
"""


def printed(program: str, *arguments: str) -> list[str]:
    command = [sys.executable, "-W", "ignore", "-c", program, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)  # a fork that goes wrong waits for ever
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_a_forked_process_touches_nothing_of_the_memory_it_inherited_and_may_open_its_own(store_url: str, workspace: str) -> None:
    refusal, turns, verified = printed(SYNC, store_url, workspace)
    assert refusal == "this memory was opened by the process that this one was forked from: open it again here"
    assert turns == "['before the fork', \"from the child's own memory\", 'after the fork']"
    assert verified == "intact"


def test_a_forked_event_loop_is_refused_the_memory_too(store_url: str, workspace: str) -> None:
    refusal, turns = printed(ASYNC, store_url, workspace)
    assert refusal == "this memory was opened by the process that this one was forked from: open it again here"
    assert turns == "['before the fork', 'after the fork']"
