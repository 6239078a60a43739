"""Connections of a real server, as those have them who mean no good and those who only send much: answers arrive, and waiting ends."""

from __future__ import annotations

import contextlib
import json
import resource
import socket
import subprocess
import sys
import threading
from collections.abc import Generator
from datetime import UTC, datetime
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
import uvicorn

from recollect.serve.http.connections import CONNECTIONS_MAX, Connection, Room
from tests.serving import WAIT_SECONDS_MAX, Serving, eventually, served

LARGE = b"x" * 8_000_000


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    server = {"body_bytes_max": 4_000_000, "requests_at_once_max": 8}
    with served(tmp_path_factory.mktemp("connections"), server=server) as serving:
        yield serving


def where(serving: Serving) -> tuple[str, int]:
    parts = urlsplit(serving.address)
    return str(parts.hostname), int(parts.port or 80)


def posted(serving: Serving, token: str | None, body: bytes) -> tuple[int, dict[str, Any]]:
    """Post as an ordinary client does: the whole body first, and then the answer is read."""
    connection = HTTPConnection(*where(serving), timeout=WAIT_SECONDS_MAX)
    headers = {"Content-Type": "application/json"} | ({} if token is None else {"Authorization": f"Bearer {token}"})
    connection.request("POST", "/ingest/conversation", body, headers)
    with contextlib.closing(connection), connection.getresponse() as answer:
        return answer.status, json.loads(answer.read())


def test_a_client_that_sends_its_whole_body_first_reads_why_it_was_refused(serving: Serving) -> None:
    refused = {
        "too large": (413, serving.token("w"), LARGE),
        "unknown": (401, "rcl_unknown", LARGE),
        "too low": (403, serving.token("w", "read"), LARGE),
        "nowhere": (401, None, LARGE),
    }
    for _ in range(3):
        for status, token, body in refused.values():
            answered, problem = posted(serving, token, body)
            assert (answered, problem["status"]) == (status, status)


def test_what_is_no_http_is_answered_with_a_problem_document_and_written_down_as_json(serving: Serving) -> None:
    with socket.create_connection(where(serving), WAIT_SECONDS_MAX) as connection:
        connection.sendall(b"NOTHING LIKE\x00 IT\r\n\r\n" + b"x" * 100_000)
        with HTTPResponse(connection) as answer:
            answer.begin()
            assert (answer.status, answer.getheader("content-type")) == (400, "application/problem+json")
            assert json.loads(answer.read())["status"] == 400
    eventually(lambda: '"from":"uvicorn.error"' in serving.logged)
    lines = [json.loads(line) for line in serving.logged.splitlines()]
    assert {line["event"] for line in lines if "event" in line} == {"Invalid HTTP request received."}


def test_connections_that_say_nothing_keep_nobody_out(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with served(tmp_path) as serving, contextlib.ExitStack() as held:
        rooms = CONNECTIONS_MAX + 200
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, rooms + 500)), hard))
        held.callback(resource.setrlimit, resource.RLIMIT_NOFILE, (soft, hard))
        for number in range(rooms):
            silent = held.enter_context(socket.create_connection(where(serving), WAIT_SECONDS_MAX))
            if number % 2:
                silent.sendall(b"POST /ingest/conversation HTTP/1.1\r\nHost: 127")
        with serving.client(serving.token("w")) as client:
            assert client.get("/stats").status_code == 200
        assert serving.is_running
        assert "Traceback" not in serving.logged


class Small(Connection):
    """A connection that waits for a head as long as a test does."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, head_seconds_max=0.05, **options)


class Yes:
    """An app that reads what it is sent and says yes."""

    def __init__(self) -> None:
        self.begun = threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "http"
        self.begun.set()
        while (await receive())["more_body"]:
            pass
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"3")]})
        await send({"type": "http.response.body", "body": b"yes"})


@contextlib.contextmanager
def quick(app: Yes, kind: type[Connection], room: Room) -> Generator[tuple[str, int]]:
    """Serve an app on connections of a kind."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        http = cast("Any", partial(kind, room=room))
        server = uvicorn.Server(uvicorn.Config(app, http=http, log_config=None, access_log=False, lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            eventually(lambda: server.started)
            yield listening.getsockname()
        finally:
            server.should_exit = True
            thread.join(WAIT_SECONDS_MAX)


@pytest.mark.parametrize("begun", [b"", b"GET / HTTP/1.1\r\nHost: loc"])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_head_that_does_not_come_is_not_waited_for(begun: bytes, is_first: bool) -> None:
    with quick(Yes(), Small, Room()) as address, socket.create_connection(address, WAIT_SECONDS_MAX) as connection:
        if not is_first:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            with HTTPResponse(connection) as answer:
                answer.begin()
                assert answer.read() == b"yes"
        connection.sendall(begun)
        told = b""
        while more := connection.recv(65_536):  # until the server ends it
            told += more
        assert told.startswith(b"HTTP/1.1 408") == (is_first or bool(begun)), "who asked before may be silent for longer"


def test_of_too_many_connections_one_that_is_silent_goes_and_none_that_is_at_work() -> None:
    app = Yes()
    with quick(app, Connection, Room(connections_max=2)) as address, contextlib.ExitStack() as held:
        busy, silent = (held.enter_context(socket.create_connection(address, WAIT_SECONDS_MAX)) for _ in range(2))
        busy.sendall(b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nx")
        assert app.begun.wait(WAIT_SECONDS_MAX)
        newest = HTTPConnection(*address, timeout=WAIT_SECONDS_MAX)
        newest.request("GET", "/")
        assert newest.getresponse().read() == b"yes"
        newest.close()
        with contextlib.suppress(ConnectionResetError):
            assert silent.recv(1) == b""
        busy.sendall(b"x")
        assert busy.recv(65_536).startswith(b"HTTP/1.1 200")


def test_answers_that_nobody_reads_are_under_way_until_they_are_read(serving: Serving) -> None:
    token = serving.token("unread")
    said = [{"role": "assistant", "content": f"{n}" + "y" * 900_000} for n in range(3)]
    with serving.client(token) as client:
        for number in range(6):  # more than the kernel holds for both sides
            messages = [{"role": "user", "content": f"{number}"}, *said]
            answer = client.post(
                "/ingest/conversation", json={"request_id": f"r{number}", "chat_meta": {"chat_id": "c"}, "messages": messages}
            )
            assert answer.status_code == 201
        (held,) = client.get("/conversations").json()["items"]
        asking = f"GET /conversations/{held['id']}/export HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\r\n"
        with contextlib.ExitStack() as unread:

            def is_full() -> bool:
                unread.enter_context(socket.create_connection(where(serving), WAIT_SECONDS_MAX)).sendall(asking.encode())
                return client.get("/ready").status_code == 429

            eventually(is_full)
        eventually(lambda: client.get("/ready").status_code == 200)


def test_a_server_that_stops_waits_for_no_body_and_says_so(tmp_path: Path) -> None:
    with served(tmp_path) as serving, socket.create_connection(where(serving), WAIT_SECONDS_MAX) as connection:
        token = serving.token("w")
        head = f"POST /ingest/conversation HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n\r\n"
        connection.sendall(head.encode() + b"x")
        with serving.client(token) as client:
            assert client.get("/ready").status_code == 200
        serving.ask_to_stop()
        with HTTPResponse(connection) as answer:
            answer.begin()
            assert (answer.status, answer.getheader("retry-after")) == (503, "1")
            assert json.loads(answer.read())["status"] == 503
        eventually(lambda: not serving.is_running)
        lines = [json.loads(line) for line in serving.logged.splitlines()]
    assert [line["status"] for line in lines if line.get("path") == "/ingest/conversation"] == [503]
    assert not [line for line in lines if "event" in line]


def test_who_runs_the_server_reads_in_its_log_why_nobody_is_let_in(tmp_path: Path) -> None:
    with served(tmp_path) as serving:
        token = serving.token("w")
        serving.tokens.path.chmod(0o644)
        with serving.client(token) as client:
            answer = client.get("/stats")
        assert answer.status_code == 500
        assert "chmod" not in answer.text
        eventually(lambda: "run chmod 600 on it" in serving.logged)


def test_tokens_that_no_longer_hold_are_none(tmp_path: Path) -> None:
    serving = Serving(tmp_path, server={"host": "0.0.0.0"})  # noqa: S104  it is refused
    revoked, _ = serving.tokens.create("w", "admin", None, datetime.now(UTC))
    serving.tokens.revoke(revoked.id)
    ended = subprocess.run(
        [sys.executable, "-m", "recollect", "serve", "--port", "0", "--no-worker"],
        env={"RECOLLECT_CONFIG": str(tmp_path / "config.yaml"), "HOME": str(tmp_path)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "create a token first" in ended.stderr
