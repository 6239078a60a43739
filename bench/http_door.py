"""The HTTP door: requests a second on one worker, and CPU a request against a bare FastAPI route that validates and discards."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from bench.corpus import turns
from bench.record import bare_connection, insert, rows_by_turn
from recollect.sync import Memory
from tests.serving import Serving

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ROOT = Path(__file__).parent.parent
_REQUESTS = 600
_ROUNDS = 4
_CONNECTIONS = 4
_LINES = 200
_STREAMED = 100
_WAIT_SECONDS_MAX = 60
_BARE = "import sys; sys.path.insert(0, sys.argv[1]); from bench.http_door import serve_bare; serve_bare()"


def payloads(count: int) -> list[dict[str, Any]]:
    """Return engine payloads of about 4 kB, ten to a conversation, no two alike."""
    return [
        {
            "request_id": f"req_{n}",
            "project_id": "bench",
            "timestamp": "2026-01-02T03:04:05Z",
            "chat_meta": {"chat_id": f"c{n // 10}", "chat_mode": "AGENT"},
            "messages": [
                {"role": "user", "content": turn["user"], "sequence": 0},
                {"role": "assistant", "content": turn["assistant"], "sequence": 1},
            ],
            "context_files": [{"file_path": f"src/{n % 50}.py", "line_start": 1, "line_end": 80, "usefulness": 0.5, "source": "vecdb"}],
            "tool_calls": [
                {"tool_call_id": call["id"], "tool_name": call["name"], "arguments": call["arguments"], "execution_time_ms": 41,
                 "status": "failed" if "error" in call else "success", "result": call.get("result"), "error": call.get("error")}
                for call in turn["tool_calls"]
            ],
        }
        for n, turn in enumerate(turns(count))
    ]  # fmt: skip


def serve_bare() -> None:
    """Serve one route that validates the payload with a pydantic model and discards it, with the settings of `recollect serve`."""
    import uvicorn  # noqa: PLC0415  only the process that serves needs it
    from fastapi import FastAPI, Response  # noqa: PLC0415  as above
    from pydantic import BaseModel  # noqa: PLC0415  as above

    class Message(BaseModel):
        role: str
        content: str | None = None
        sequence: int | None = None

    class ContextFile(BaseModel):
        file_path: str
        line_start: int | None = None
        line_end: int | None = None
        usefulness: float | None = None
        source: str | None = None

    class Call(BaseModel):
        tool_call_id: str
        tool_name: str
        arguments: dict[str, Any] | None = None
        execution_time_ms: float | None = None
        status: str | None = None
        result: str | None = None
        error: str | None = None

    class Payload(BaseModel):
        request_id: str
        project_id: str
        timestamp: str
        chat_meta: dict[str, Any]
        messages: list[Message]
        context_files: list[ContextFile] = []
        tool_calls: list[Call] = []

    async def ingest(payload: Payload) -> Response:
        return Response(f'{{"request_id":"{payload.request_id}"}}', 201, media_type="application/json")

    ingest.__annotations__["payload"] = Payload
    ingest.__annotations__["return"] = Response
    app = FastAPI(docs_url=None, redoc_url=None)
    app.post("/ingest/conversation", status_code=201)(ingest)
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as taken:
        taken.bind(("127.0.0.1", 0))
        print(f"serving 'bare' at http://127.0.0.1:{taken.getsockname()[1]}", flush=True)
        config = uvicorn.Config(
            app, log_config=None, access_log=False, server_header=False, date_header=False, proxy_headers=False, lifespan="on", ws="none"
        )
        uvicorn.Server(config).run(sockets=[taken])


def _spent_seconds(pid: int) -> float:
    """Return the CPU time of a process and its threads, as Linux tells it."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class _Asked:
    """A server that is measured: its address, its process, and how it is asked."""

    def __init__(self, address: str, pid: int, token: str | None) -> None:
        parts = urlsplit(address)
        self._where = str(parts.hostname), int(parts.port or 80)
        self.pid = pid
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def post_all(self, sent: Sequence[tuple[str, bytes, str]]) -> tuple[float, float]:
        """Post everything over a few connections; returns seconds of the server's CPU, and of the clock."""
        shares = [sent[n::_CONNECTIONS] for n in range(_CONNECTIONS)]
        answered: list[int] = []
        threads = [threading.Thread(target=self._post, args=(share, answered)) for share in shares]
        before, began = _spent_seconds(self.pid), time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        wrong = [status for status in answered if not 200 <= status < 300]
        assert not wrong, f"answered {wrong[:3]}"
        assert len(answered) == len(sent), f"{len(sent) - len(answered)} of {len(sent)} requests were not answered"
        return _spent_seconds(self.pid) - before, time.perf_counter() - began

    def _post(self, sent: Sequence[tuple[str, bytes, str]], answered: list[int]) -> None:
        connection = HTTPConnection(*self._where, timeout=_WAIT_SECONDS_MAX)
        for path, body, kind in sent:
            connection.request("POST", path, body, {**self._headers, "Content-Type": kind})
            with connection.getresponse() as response:
                response.read()
                answered.append(response.status)
        connection.close()


def _whole(bodies: Sequence[dict[str, Any]]) -> list[tuple[str, bytes, str]]:
    return [("/ingest/conversation", json.dumps(body).encode(), "application/json") for body in bodies]


def _batches(bodies: Sequence[dict[str, Any]]) -> list[tuple[str, bytes, str]]:
    lines = [json.dumps(body).encode() for body in bodies]
    starts = range(0, len(lines), _LINES)
    return [("/ingest/conversation", b"\n".join(lines[n : n + _LINES]), "application/x-ndjson") for n in starts]


def _streamed(bodies: Sequence[dict[str, Any]]) -> list[list[tuple[str, bytes, str]]]:
    """Return requests in pieces, round by round: a piece of each request before the next of any."""
    names = ("start", "messages", "tool-calls", "finalize")
    made: list[list[tuple[str, bytes, str]]] = []
    for name in names:
        key = name.replace("-", "_")
        part = [{"status": "complete"} if name == "finalize" else {key: body[key]} if key in body else body for body in bodies]
        made.append(
            [
                (f"/requests/{body['request_id']}/{name}", json.dumps(own).encode(), "application/json")
                for body, own in zip(bodies, part, strict=True)
            ]
        )
    return made


def _measured(ours: _Asked, bare: _Asked) -> dict[str, float]:
    bodies = payloads(_REQUESTS * (_ROUNDS * 2 + 1) + _STREAMED)
    rounds = [bodies[n * _REQUESTS : (n + 1) * _REQUESTS] for n in range(_ROUNDS * 2 + 1)]
    ours.post_all(_whole(rounds[-1]))  # what is loaded at the first request is loaded
    bare.post_all(_whole(rounds[-1]))
    spent: dict[str, list[tuple[float, float]]] = {"ours": [], "bare": [], "batch": []}
    for n in range(_ROUNDS):  # in turns, so that noise is the same for all
        spent["bare"].append(bare.post_all(_whole(rounds[n])))
        spent["ours"].append(ours.post_all(_whole(rounds[n])))
        spent["batch"].append(ours.post_all(_batches(rounds[_ROUNDS + n])))
    count = _REQUESTS * _ROUNDS
    cpu = {name: sum(one for one, _ in found) / count * 1_000 for name, found in spent.items()}
    wall = {name: sum(one for _, one in found) for name, found in spent.items()}
    streamed = sum(ours.post_all(pieces)[0] for pieces in _streamed(bodies[-_STREAMED:])) / _STREAMED * 1_000
    return {
        "payload_bytes_mean": round(sum(len(body) for _, body, _ in _whole(bodies)) / len(bodies)),
        "requests_per_second": round(count / wall["ours"]),
        "batched_requests_per_second": round(count / wall["batch"]),
        "bare_requests_per_second": round(count / wall["bare"]),
        "request_cpu_ms": round(cpu["ours"], 3),
        "batched_request_cpu_ms": round(cpu["batch"], 3),
        "streamed_request_of_4_pieces_cpu_ms": round(streamed, 3),
        "bare_cpu_ms": round(cpu["bare"], 3),
        "ratio": round(cpu["ours"] / cpu["bare"], 2),
        "batched_ratio": round(cpu["batch"] / cpu["bare"], 2),
    }


def _with_bare(measure: Callable[[_Asked], dict[str, float]]) -> dict[str, float]:
    process = subprocess.Popen([sys.executable, "-P", "-c", _BARE, str(ROOT)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        return measure(_Asked(process.stdout.readline().split()[3], process.pid, None))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _recording_alone() -> float:
    """Return the CPU milliseconds that recording a payload takes in a process of one thread, without HTTP and without a worker."""
    bodies = payloads(_REQUESTS * 2)
    with tempfile.TemporaryDirectory() as folder, Memory.open(Path(folder) / "memory.db", worker=False) as memory:
        for body in bodies[:_REQUESTS]:
            memory.record(body)
        began = time.process_time()
        for body in bodies[_REQUESTS:]:
            memory.record(body)
        return (time.process_time() - began) / _REQUESTS * 1_000


def _statements_alone() -> float:
    """Return the CPU milliseconds of the bare statements that write the rows and terms of such a payload, a transaction each."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "memory.db"
        with Memory.open(source, worker=False) as memory:
            for body in payloads(_REQUESTS * 2):
                memory.record({**body, "chat_meta": {"chat_id": "c"}})
        groups = rows_by_turn(source)
        connection = bare_connection(Path(folder) / "bare.db", source)
        for group in groups[:_REQUESTS]:
            insert(connection, group)
        began = time.process_time()
        for group in groups[_REQUESTS:]:
            insert(connection, group)
        spent = time.process_time() - began
        connection.close()
    return spent / _REQUESTS * 1_000


def measure() -> dict[str, float]:
    """Measure both servers side by side, neither with a worker; and what recording takes without a door, and writing without reading.

    A door that did nothing but the bare route's work, and wrote the rows without having read them, would be at the least ratio.
    """
    found = _measured_both()
    statements = _statements_alone()
    return {
        **found,
        "recording_alone_cpu_ms": round(_recording_alone(), 3),
        "statements_alone_cpu_ms": round(statements, 3),
        "least_ratio": round(1 + statements / found["bare_cpu_ms"], 2),
    }


def _measured_both() -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        serving = Serving(Path(folder) / "server")
        token = serving.token()
        try:
            ours = _Asked(serving.start().address, serving.pid, token)
            return _with_bare(lambda bare: _measured(ours, bare))
        finally:
            if serving.is_running:
                serving.kill()
