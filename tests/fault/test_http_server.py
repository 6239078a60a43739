"""A server that is killed or stopped while many stream to it: what was acknowledged is there, nothing is doubled, and all can go on."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx

from recollect.memory import Memory
from recollect.model import Turn
from tests.kit import SOAK
from tests.serving import Serving, eventually, served

REQUESTS = 20_000 if SOAK else 1_000
KILLS = 60 if SOAK else 5
SENDERS = 6
CHATS = 40
LEFT_OPEN = 10  # one in so many is never finalized by who began it


def pieces_of(number: int) -> list[tuple[str, Any]]:
    call = {"id": f"t{number}", "name": "Read", "arguments": {"file_path": f"{number}.py"}, "message_sequence": 1}
    return [
        ("start", {"project_id": "p", "chat_meta": {"chat_id": f"c{number % CHATS}"}}),
        ("messages", {"messages": [{"role": "user", "content": f"question {number}", "sequence": 0}]}),
        ("messages", {"messages": [{"role": "assistant", "content": f"answer {number}", "sequence": 1}]}),
        ("tool-calls", {"tool_calls": [call]}),
        ("finalize", {"status": "complete"}),
    ]


class Sending:
    """Threads that stream requests, each piece again and again until it is acknowledged, and what was acknowledged."""

    def __init__(self, serving: Serving, token: str, requests: int) -> None:
        self.serving = serving
        self.acknowledged: Counter[int] = Counter()
        self.count = 0
        self.troubles: list[str] = []
        self.is_over = threading.Event()
        self._token = token
        self._lock = threading.Lock()
        self._numbers: Iterator[int] = iter(range(requests))

    def run(self) -> None:
        """Send until there is nothing left, or it is over."""
        client = self.serving.client(self._token)
        while not self.is_over.is_set():
            with self._lock:
                number = next(self._numbers, None)
            if number is None:
                break
            for piece, body in pieces_of(number)[: -1 if number % LEFT_OPEN == 0 else None]:
                answer: httpx.Response | None = None
                while answer is None and not self.is_over.is_set():
                    try:
                        answer = client.post(f"/requests/q{number}/{piece}", json=body)
                    except httpx.TransportError:
                        client.close()
                        time.sleep(0.01)
                        client = self.serving.client(self._token)
                if answer is None:
                    break
                self._note(number, piece, answer)
        client.close()

    def _note(self, number: int, piece: str, answer: httpx.Response) -> None:
        with self._lock:
            if answer.is_success:
                self.acknowledged[number] += 1
                self.count += 1
            else:
                self.troubles.append(f"{number} {piece}: {answer.status_code} {answer.text[:200]}")


async def check(serving: Serving, acknowledged: Counter[int]) -> dict[str, Turn]:
    """See that every acknowledged piece is there, and every request once."""
    async with await Memory.open(serving.store) as memory:
        assert (await memory.verify()).status == "intact"
        turns: list[Turn] = []
        for info in await memory.list_conversations(limit=1_000_000):
            own = await (await memory.load_conversation(info.id)).turns()
            assert [turn.index for turn in own] == list(range(len(own)))
            turns += own
    by_request = {str(turn.request_id): turn for turn in turns}
    assert len(by_request) == len(turns), "no request is doubled"
    for number, count in acknowledged.items():
        turn = by_request[f"q{number}"]
        said = [message.content for message in turn.messages if message.content]
        assert said[: count - 1] == [f"question {number}", f"answer {number}"][: count - 1], "what was acknowledged is there"
        assert len(said) == len(set(said)) <= 2, "and nothing twice"
        assert len(turn.tool_calls) == 1 if count >= 4 else len(turn.tool_calls) <= 1
        assert turn.status == "complete" if count == 5 else turn.status in {"open", "complete"}
    return by_request


def reached(sending: Sending, wanted: int, senders: list[Any]) -> Callable[[], bool]:
    return lambda: sending.count >= wanted or all(one.done() for one in senders)


async def test_a_thousand_streamed_requests_survive_kill_9_of_the_server(tmp_path: Path) -> None:
    seed = random.randrange(10**6)
    print(f"seed {seed}, {REQUESTS} requests, {KILLS} kills")
    random_ = random.Random(seed)
    with served(tmp_path / "server") as serving:
        token = serving.token()
        sending = Sending(serving, token, REQUESTS)
        all_pieces = sum(len(pieces_of(n)) - (n % LEFT_OPEN == 0) for n in range(REQUESTS))
        with ThreadPoolExecutor(SENDERS) as pool:
            senders = [pool.submit(sending.run) for _ in range(SENDERS)]
            try:
                for wanted in sorted(random_.randrange(all_pieces) for _ in range(KILLS)):
                    eventually(reached(sending, wanted, senders))
                    serving.kill()
                    serving.start()
                for one in senders:
                    one.result()
            finally:
                sending.is_over.set()
        assert sending.troubles == []
        assert sending.count == all_pieces
        await check(serving, sending.acknowledged)
        with serving.client(token) as client:  # what was left open can still be finalized, and what was closed is so already
            for number in range(REQUESTS):
                if number % LEFT_OPEN == 0 or number % 50 == 1:
                    closed = client.post(f"/requests/q{number}/finalize").json()
                    assert closed["status"] == ("replaced" if number % LEFT_OPEN == 0 else "unchanged")
        turns = await check(serving, Counter(dict.fromkeys(range(REQUESTS), 5)))
        assert len(turns) == REQUESTS


async def test_a_server_that_is_asked_to_stop_loses_nothing_it_acknowledged(tmp_path: Path) -> None:
    requests = REQUESTS // 5
    with served(tmp_path / "server") as serving:
        sending = Sending(serving, serving.token(), requests)
        with ThreadPoolExecutor(SENDERS) as pool:
            senders = [pool.submit(sending.run) for _ in range(SENDERS)]
            try:
                eventually(reached(sending, requests, senders))
                assert serving.stop() == 0
            finally:
                sending.is_over.set()
        assert sending.troubles == []
        assert sending.count >= requests
        assert "Traceback" not in serving.logged
        await check(serving, sending.acknowledged)


async def test_whole_requests_and_batches_survive_kill_9_of_the_server(tmp_path: Path) -> None:
    with served(tmp_path / "server") as serving:
        token = serving.token()
        promised: set[str] = set()
        lock = threading.Lock()
        is_over = threading.Event()

        def send(sender: int) -> None:
            with serving.client(token) as client:
                for n in range(10**6):
                    if is_over.is_set():
                        return
                    said = [{"role": "user", "content": f"q {sender} {n}"}, {"role": "assistant", "content": "a"}]
                    body = {"project_id": "p", "chat_meta": {"chat_id": f"s{sender}"}, "request_id": f"w{sender}-{n}", "messages": said}
                    try:
                        answer = client.post("/ingest/conversation", json=body)
                    except httpx.TransportError:
                        return
                    assert answer.status_code == 201
                    with lock:
                        promised.add(str(body["request_id"]))

        for _ in range(KILLS):
            before = len(promised)
            with ThreadPoolExecutor(SENDERS) as pool:
                senders = [pool.submit(send, before * SENDERS + n) for n in range(SENDERS)]
                try:
                    eventually(lambda before=before: len(promised) >= before + 40)
                    serving.kill()
                finally:
                    is_over.set()
                for one in senders:
                    one.result()
            is_over.clear()
            serving.start()
        async with await Memory.open(serving.store) as memory:
            assert (await memory.verify()).status == "intact"
            known = [await memory.load_conversation(info.id) for info in await memory.list_conversations(limit=1_000_000)]
            turns = [turn for one in known for turn in await one.turns()]
        assert promised <= {str(turn.request_id) for turn in turns}
        assert len({turn.request_id for turn in turns}) == len(turns)
        assert all(len(turn.messages) == 2 for turn in turns)
