"""The guard of the HTTP door, around an app that echoes, on a real server: who is let in, what is read, what is given away."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Generator
from datetime import timedelta
from functools import partial
from http.client import HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple, cast

import httpx
import pytest
import uvicorn

from recollect.clock import CountedIds, ManualClock
from recollect.errors import ConfigError
from recollect.serve.http.connections import Connection, Room
from recollect.serve.http.guard import Guard, Message, Receive, Scope, Send
from recollect.serve.http.log import AuditLog, Entry, Logs, RequestLog
from recollect.serve.http.tokens import ROLES, FirstKey, Role, TokenFile
from recollect.serve.http.traffic import Limits
from tests.kit import START

HOSTS = frozenset({"Memory.Example", "pinned.example:8443"})
WAIT_SECONDS_MAX = 60
PLENTY: dict[str, Any] = {"per_second": 1_000_000.0, "burst": 1_000_000, "hosts": HOSTS}


class Echo:
    """An app that says what it was given, and fails or waits where it is asked to."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.states: list[dict[str, Any]] = []
        self.body_bytes = 0
        self.whole_bodies = 0
        self.entered = threading.Event()
        self.left = threading.Event()
        self.lived: list[str] = []
        self._gate = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def open_gate(self) -> None:
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._gate.set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        path = scope["path"]
        self.calls.append(path)
        self.states.append(scope["state"])
        if path == "/fail":
            msg = "the reason that nobody sees"
            raise RuntimeError(msg)
        if path == "/silent":
            return
        if path == "/wait":
            await self._wait()
        if path != "/unread":
            with contextlib.suppress(*([Exception] if path == "/stubborn" else [])):
                await self._read(receive)
        told = {"path": path, "method": scope["method"], "body_bytes": self.body_bytes}
        await send(
            {
                "type": "http.response.start",
                "status": 200,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"Server", b"echo/1.0"),
                    (b"Access-Control-Allow-Origin", b"*"),
                    (b"cache-control", b"public"),
                    (b"x-request-id", b"the-app's-own"),
                ],
            }
        )
        if path == "/slow":
            await asyncio.sleep(0.2)
        if path == "/fail-late":
            msg = "the reason that nobody sees"
            raise RuntimeError(msg)
        await send({"type": "http.response.body", "body": json.dumps(told).encode()})

    async def _live(self, receive: Receive, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        for word in ("startup", "shutdown"):
            assert (await receive())["type"] == f"lifespan.{word}"
            self.lived.append(word)
            await send({"type": f"lifespan.{word}.complete"})

    async def _wait(self) -> None:
        self.entered.set()
        try:
            await self._gate.wait()
        finally:
            self.left.set()

    async def _read(self, receive: Receive) -> None:
        self.body_bytes = 0
        is_more = True
        while is_more:
            message = await receive()
            self.body_bytes += len(message.get("body", b""))
            is_more = message.get("more_body", False)
        self.whole_bodies += 1


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> dict[str, Any]:
        assert self.headers["content-type"] == "application/problem+json"
        problem = json.loads(self.body)
        assert problem.keys() == {"type", "title", "status", "detail", "request_id"}
        assert (problem["type"], problem["status"]) == ("about:blank", self.status)
        assert problem["request_id"] == self.headers["x-request-id"]
        return problem


class Door:
    """A guarded app that is being served, and the tokens that open it."""

    def __init__(self, folder: Path, port: int, limits: Limits, first_key: FirstKey | None) -> None:
        self.port = port
        self.app = Echo()
        self.clock = ManualClock(START)
        self.ticks = 0.0
        self.tokens = TokenFile(folder / "tokens.json")
        self.secrets = {role: self.tokens.create("w", role, None, START)[1] for role in ROLES}
        revoked, self.revoked = self.tokens.create("w", "admin", None, START)
        self.tokens.revoke(revoked.id)
        _, self.expired = self.tokens.create("w", "admin", None, START - timedelta(days=2), days=1)
        self.stream = io.StringIO()
        self.audit = AuditLog(folder / "audit.jsonl")
        self.guard = Guard(
            self.app,
            self.tokens,
            limits=limits,
            first_key=first_key,
            logs=Logs(RequestLog(self.stream).write, self.audit.write),
            clock=self.clock,
            ids=CountedIds(),
            monotonic=lambda: self.ticks,
        )

    def head(self, line: str, *headers: str, role: Role | None = "write", host: str = "localhost") -> bytes:
        own = [f"Host: {host}"] + ([] if role is None else [f"Authorization: Bearer {self.secrets[role]}"])
        return "\r\n".join([f"{line} HTTP/1.1", *own, *headers, "", ""]).encode("latin-1")

    def connected(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=WAIT_SECONDS_MAX)

    def ask(self, raw: bytes) -> Answer:
        with self.connected() as connection:
            connection.sendall(raw)
            return answered(connection, raw)

    def client(self, role: Role | None = "write", **options: Any) -> httpx.Client:
        headers = {} if role is None else {"Authorization": f"Bearer {self.secrets[role]}"}
        return httpx.Client(base_url=f"http://127.0.0.1:{self.port}", headers=headers, timeout=WAIT_SECONDS_MAX, trust_env=False, **options)

    def lines(self, count: int) -> list[dict[str, Any]]:
        """Return the lines of the log, as many as there will be: the last is written after its answer has left."""
        eventually(lambda: self.stream.getvalue().count("\n") >= count)
        return [json.loads(line) for line in self.stream.getvalue().splitlines()]

    def audited(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.audit.path.read_text().splitlines()]


def answered(connection: socket.socket, asked: bytes) -> Answer:
    with HTTPResponse(connection, method=asked.split(b" ", 1)[0].decode()) as response:
        response.begin()
        return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, response.read())


def is_closed(connection: socket.socket) -> bool:
    """Tell whether the server ends the connection; one that stays open would run into the time limit of the socket."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True


def eventually(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + WAIT_SECONDS_MAX
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.002)


@contextlib.contextmanager
def served(folder: Path, first_key: FirstKey | None = None, **limits: Any) -> Generator[Door]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        door = Door(folder, listening.getsockname()[1], Limits(**{**PLENTY, **limits}), first_key)
        connection = cast("Any", partial(Connection, room=Room()))
        config = uvicorn.Config(
            door.guard, http=connection, log_config=None, access_log=False, server_header=False, proxy_headers=False, ws="none",
            lifespan="on",
        )  # fmt: skip
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            eventually(lambda: server.started)
            yield door
        finally:
            server.should_exit = True
            thread.join(WAIT_SECONDS_MAX)
        assert door.app.lived == ["startup", "shutdown"]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Generator[Door]:
    """Return a door whose limits nobody reaches."""
    with served(tmp_path_factory.mktemp("door"), body_bytes_max=1_000) as door:
        yield door


# the rules of who is let in, as tables: the matrix below asks for every combination of their rows

LOOPBACK, CONFIGURED, FOREIGN = "loopback", "configured", "foreign"
HOST_RULES = {
    "localhost": LOOPBACK,
    "localhost:8722": LOOPBACK,
    "LocalHost:8722": LOOPBACK,
    "127.0.0.1": LOOPBACK,
    "127.0.0.1:1": LOOPBACK,
    "[::1]": LOOPBACK,
    "[::1]:8722": LOOPBACK,
    "memory.example": CONFIGURED,
    "MEMORY.example:9": CONFIGURED,
    "pinned.example:8443": CONFIGURED,
    "pinned.example": FOREIGN,
    "pinned.example:8444": FOREIGN,
    "evil.example": FOREIGN,
    "evil.example:8722": FOREIGN,
    "localhost.evil.example": FOREIGN,
    "evil.example.localhost": FOREIGN,
    "127.0.0.1.evil.example": FOREIGN,
    "localhost.": FOREIGN,
    "localhost:": FOREIGN,
    "localhost:99999": FOREIGN,
    "localhost:80:80": FOREIGN,
    "localhost, evil.example": FOREIGN,
    "user@localhost": FOREIGN,
    "http://localhost": FOREIGN,
    "::1": FOREIGN,
    "0.0.0.0": FOREIGN,  # noqa: S104  asked for, not bound to
    "127.1": FOREIGN,
    "2130706433": FOREIGN,
    "": FOREIGN,
}
OWN, OTHER, NONE = "own", "other", "none"
ORIGIN_RULES = {
    None: NONE,
    "http://{host}": OWN,
    "https://{host}": OTHER,
    "http://{host}/": OTHER,
    "http://{host}.evil.example": OTHER,
    "http://user@{host}": OTHER,
    "http://localhost:4": OTHER,
    "http://evil.example": OTHER,
    "null": OTHER,
    "file://": OTHER,
    "": OTHER,
    "http://{host}\r\nOrigin: http://{host}": OTHER,
}
TOKEN_RULES = {
    "": False,
    "Authorization: Bearer {read}": True,
    "authorization: bEARER  {read}": True,
    "Authorization: Bearer {revoked}": False,
    "Authorization: Bearer {expired}": False,
    "Authorization: Bearer {read}x": False,
    "Authorization: Bearer": False,
    "Authorization: {read}": False,
    "Authorization: Basic {read}": False,
    "Authorization: Bearer {read}\r\nAuthorization: Bearer {read}": False,
    "Cookie: recollect_token={read}": False,
    "X-Api-Key: {read}": False,
}


def expected(host: str, origin: str | None, token: str) -> int:
    if HOST_RULES[host] == FOREIGN:
        return 421
    if ORIGIN_RULES[origin] == OTHER or (ORIGIN_RULES[origin] == OWN and HOST_RULES[host] != LOOPBACK):
        return 403
    return 200 if TOKEN_RULES[token] else 401


@pytest.mark.parametrize("origin", ORIGIN_RULES)
@pytest.mark.parametrize("host", HOST_RULES)
def test_only_a_known_host_an_own_origin_and_a_valid_token_together_are_let_in(shared: Door, host: str, origin: str | None) -> None:
    secrets = {"read": shared.secrets["read"], "revoked": shared.revoked, "expired": shared.expired}
    for token in TOKEN_RULES:
        calls = len(shared.app.calls)
        lines = [token.format(**secrets)] if token else []
        if origin is not None:
            lines.append("Origin: " + origin.format(host=host))
        answer = shared.ask(shared.head("GET /conversations", *lines, role=None, host=host))
        assert answer.status == expected(host, origin, token), token
        assert (len(shared.app.calls) > calls) == (answer.status == 200)
        if answer.status != 200:
            assert answer.problem["detail"]
        assert ("www-authenticate" in answer.headers) == (answer.status == 401)
        assert not [name for name in answer.headers if name.startswith("access-control") or name in {"server", "set-cookie"}]
        assert (answer.headers["x-content-type-options"], answer.headers["cache-control"]) == ("nosniff", "no-store")


def test_a_request_that_names_no_host_or_two_reaches_nobody(shared: Door) -> None:
    calls = len(shared.app.calls)
    bearer = f"Authorization: Bearer {shared.secrets['admin']}\r\n"
    for head in ("GET / HTTP/1.1\r\n", "GET / HTTP/1.0\r\n", "GET / HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n"):
        assert shared.ask(f"{head}{bearer}\r\n".encode()).status in {400, 421}  # 400 is the server's own, before it asks the guard
    assert shared.ask(shared.head("GET http://evil.example/")).status == 421
    assert len(shared.app.calls) == calls


async def asked(guard: Guard, *headers: tuple[bytes, bytes], kind: str = "http", **scope: Any) -> list[Message]:
    """Ask a guard without a server, as one that checks less than ours would."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    own: dict[str, Any] = {"type": kind, "http_version": "1.1", "method": "GET", "path": "/", "query_string": b"", "headers": [*headers]}
    await guard({**own, **scope}, receive, send)
    return sent


@pytest.mark.parametrize("names", [[], [b"localhost", b"localhost"], [b"localhost", b"evil.example"], [b"local\xffhost"]])
async def test_whatever_the_server_lets_through_one_host_must_be_named(shared: Door, names: list[bytes]) -> None:
    bearer = (b"authorization", f"Bearer {shared.secrets['admin']}".encode())
    assert (await asked(shared.guard, bearer, *((b"host", name) for name in names)))[0]["status"] == 421
    assert (await asked(shared.guard, bearer, (b"host", b"localhost")))[0]["status"] == 200


@pytest.mark.parametrize("lengths", [[b"1", b"2"], [b"-1"], [b"1e3"], [b"\xb2"], [b""]])
async def test_whatever_the_server_lets_through_one_length_must_be_named(shared: Door, lengths: list[bytes]) -> None:
    own = ((b"authorization", f"Bearer {shared.secrets['admin']}".encode()), (b"host", b"localhost"))
    assert (await asked(shared.guard, *own, *((b"content-length", length) for length in lengths)))[0]["status"] == 400
    assert (await asked(shared.guard, *own, (b"content-length", b"9" * 5_000)))[0]["status"] == 413
    assert (await asked(shared.guard, *own, (b"content-length", b"0" * 5_000)))[0]["status"] == 200


async def test_a_websocket_is_closed_before_it_opens(shared: Door) -> None:
    calls = len(shared.app.calls)
    assert await asked(shared.guard, kind="websocket") == [{"type": "websocket.close", "code": 1008}]
    assert len(shared.app.calls) == calls


@pytest.mark.parametrize("host", ["*", "", "a b", "http://x", "x:y", "x:99999", "*.example"])
def test_a_host_that_could_be_anything_cannot_be_configured(host: str) -> None:
    with pytest.raises(ConfigError, match="a host is a name"):
        Limits(hosts=frozenset({host}))


@pytest.mark.parametrize(
    "name", ["body_bytes_max", "requests_at_once_max", "per_second", "burst", "body_seconds_max", "request_seconds_max"]
)
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_no_limit_can_be_left_out(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=name):
        Limits(**{name: value})  # type: ignore[arg-type]


def test_health_alone_needs_no_token(shared: Door) -> None:
    assert shared.ask(shared.head("GET /health", role=None)).status == 200
    assert shared.ask(shared.head("HEAD /health", role=None)).status == 200
    assert shared.app.states[-1]["token"] is None
    for line in (
        "POST /health",
        "DELETE /health",
        "GET /health/",
        "GET /healthy",
        "GET //health",
        "GET /ready",
        "GET /",
        "GET /openapi.json",
    ):
        assert shared.ask(shared.head(line, role=None)).status == 401, line
    assert shared.ask(shared.head("GET /health", role=None, host="evil.example")).status == 421
    assert shared.ask(shared.head("GET /health", "Origin: http://evil.example", role=None)).status == 403
    assert shared.ask(shared.head("GET /health", "Content-Length: 1", role=None)).status == 413


ROLE_RULES: dict[str, Role] = {
    "GET /conversations": "read",
    "HEAD /conversations/1": "read",
    "GET /metrics": "read",
    "GET /requests/1/context": "read",
    "POST /search": "read",
    "POST /context": "read",
    "POST /similar": "read",
    "POST /verify": "read",
    "POST /search?x=/admin": "read",
    "POST /search/": "write",
    "POST /requests/1/context": "write",
    "POST /ingest/conversation": "write",
    "PUT /search": "write",
    "PATCH /conversations/1": "write",
    "DELETE /conversations/1": "write",
    "DELETE /requests/1": "write",
    "POST /metrics": "write",
    "GET /administer": "read",
    "GET /admin": "admin",
    "GET /admin/tokens": "admin",
    "POST /admin/backup": "admin",
    "GET //admin/tokens": "admin",
    "GET /%61dmin/tokens": "admin",
    "GET /Admin": "admin",
}


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("line", ROLE_RULES)
def test_a_role_may_do_what_it_is_for_and_no_more(shared: Door, line: str, role: Role) -> None:
    calls = len(shared.app.calls)
    answer = shared.ask(shared.head(line, role=role))
    is_enough = ROLES.index(role) >= ROLES.index(ROLE_RULES[line])
    assert answer.status == (200 if is_enough else 403)
    assert len(shared.app.calls) == calls + is_enough
    if not is_enough and not line.startswith("HEAD"):
        assert f"of the role {ROLE_RULES[line]}" in answer.problem["detail"]


async def test_a_role_is_asked_of_the_path_below_the_mount(shared: Door) -> None:
    own = ((b"authorization", f"Bearer {shared.secrets['write']}".encode()), (b"host", b"localhost"))
    for path, status in (("/api/admin/x", 403), ("/api/conversations", 200), ("/apiadmin", 200)):
        assert (await asked(shared.guard, *own, path=path, root_path="/api"))[0]["status"] == status


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PROPFIND", "get"])
def test_other_methods_are_served_to_nobody(shared: Door, method: str) -> None:
    preflight = ("Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization")
    for role, origin, status in (
        (None, [], 405),
        ("admin", [], 405),
        (None, ["Origin: http://localhost"], 405),
        (None, ["Origin: http://evil.example"], 403),
    ):
        with shared.connected() as connection:
            connection.sendall(shared.head(f"{method} /search", *preflight, *origin, role=role))  # type: ignore[arg-type]
            head = connection.recv(65_536).lower()
        assert head.startswith(f"http/1.1 {status} ".encode())
        assert b"access-control" not in head
        assert (b"allow: get, head, post" in head) == (status == 405)


REFUSED = {
    "a foreign host": (421, {"host": "evil.example"}),
    "a foreign origin": (403, {"headers": ["Origin: http://evil.example"]}),
    "no token": (401, {"role": None}),
    "too low a role": (403, {"role": "read"}),
    "too large a body": (413, {"headers": ["Content-Length: 1001"]}),
}


@pytest.mark.parametrize("why", REFUSED)
@pytest.mark.parametrize("body", ["Content-Length: 10", "Transfer-Encoding: chunked"])
def test_a_refusal_reads_no_body_and_waits_for_none(shared: Door, why: str, body: str) -> None:
    status, given = REFUSED[why]
    options: dict[str, Any] = dict(given)
    calls = len(shared.app.calls)
    headers = options.pop("headers", [])
    own = [] if any("Content-Length" in header for header in headers) else [body]
    with shared.connected() as connection:
        asking = shared.head("POST /ingest/conversation", *headers, *own, "Expect: 100-continue", **options)
        connection.sendall(asking)  # the head alone
        answer = answered(connection, asking)
        assert answer.status == answer.problem["status"] == status
        assert answer.headers["connection"] == "close"
        assert is_closed(connection)
    assert len(shared.app.calls) == calls


def test_a_refusal_without_a_body_keeps_the_connection(shared: Door) -> None:
    with shared.connected() as connection:
        for _ in range(3):
            asking = shared.head("GET /", role=None)
            connection.sendall(asking)
            answer = answered(connection, asking)
            assert (answer.status, answer.headers.get("connection")) == (401, None)


def test_an_answer_that_did_not_wait_for_the_body_closes_the_connection(shared: Door) -> None:
    with shared.connected() as connection:
        asking = shared.head("POST /unread", "Content-Length: 10")
        connection.sendall(asking)
        answer = answered(connection, asking)
        assert (answer.status, answer.headers["connection"]) == (200, "close")
        assert is_closed(connection)


def test_a_body_of_the_largest_size_is_taken_whole(shared: Door) -> None:
    with shared.client() as client:
        assert client.post("/x", content=b"x" * 1_000).json()["body_bytes"] == 1_000
        assert client.post("/x", content=iter([b"x" * 400, b"x" * 600])).json()["body_bytes"] == 1_000


def test_a_body_in_chunks_is_cut_off_where_it_gets_too_large(shared: Door) -> None:
    with shared.connected() as connection:
        asking = shared.head("POST /x", "Transfer-Encoding: chunked")
        connection.sendall(asking + b"3e8\r\n" + b"x" * 1_000 + b"\r\n1\r\nx\r\n")  # and its end is never sent
        answer = answered(connection, asking)
        assert "1,000 bytes" in answer.problem["detail"]
        assert (answer.status, answer.headers["connection"]) == (413, "close")
        assert is_closed(connection)


def test_a_body_that_does_not_arrive_in_time_is_given_up(tmp_path: Path) -> None:
    with served(tmp_path, body_seconds_max=0.05) as door:
        for body in ("Content-Length: 10", "Transfer-Encoding: chunked"):
            with door.connected() as connection:
                asking = door.head("POST /x", body)
                connection.sendall(asking + (b"1\r\nx\r\n" if "chunked" in body else b"x"))
                answer = answered(connection, asking)
                assert answer.status == answer.problem["status"] == 408
                assert is_closed(connection)
        assert door.ask(door.head("GET /x")).status == 200


def test_an_app_cannot_take_a_part_of_a_body_for_the_whole(tmp_path: Path) -> None:
    with served(tmp_path, body_bytes_max=10) as door:
        assert door.ask(door.head("POST /x", "Transfer-Encoding: chunked") + b"5\r\nxxxxx\r\n6\r\nxxxxxx\r\n0\r\n\r\n").status == 413
        assert door.app.whole_bodies == 0
        assert [line["status"] for line in door.lines(1)] == [413]


def test_what_an_app_says_after_a_refusal_is_heard_by_nobody(tmp_path: Path) -> None:
    with served(tmp_path, body_bytes_max=10) as door:
        asking = door.head("POST /stubborn", "Transfer-Encoding: chunked")
        with door.connected() as connection:
            connection.sendall(asking + b"b\r\n" + b"x" * 11 + b"\r\n")
            assert answered(connection, asking).problem["status"] == 413
            assert is_closed(connection)
        assert [line["status"] for line in door.lines(1)] == [line["status"] for line in door.audited()] == [413]


def test_a_token_that_asks_too_fast_is_told_when_to_come_again(tmp_path: Path) -> None:
    with served(tmp_path, per_second=0.25, burst=2) as door:
        asking = door.head("GET /x", role="read")
        assert [door.ask(asking).status for _ in range(2)] == [200, 200]
        refused = door.ask(asking)
        assert (refused.problem["status"], refused.headers["retry-after"]) == (429, "4")
        assert door.ask(door.head("GET /x", role="write")).status == 200, "each token has a bucket of its own"
        for ticks, seconds in ((2.5, "2"), (3.0, "1"), (3.5, "1")):
            door.ticks = ticks
            assert door.ask(asking).headers["retry-after"] == seconds
        door.ticks = 4.0
        assert [door.ask(asking).status for _ in range(2)] == [200, 429]
        door.ticks = -100.0
        assert door.ask(asking).status == 429, "time that goes backwards fills nothing"
        door.ticks = -96.0
        assert door.ask(asking).status == 200, "and takes nothing away"
        assert door.ask(door.head("GET /health", role=None)).status == 200
        assert len(door.app.calls) == 6


def test_more_requests_at_once_than_are_taken_are_sent_away_and_not_kept_waiting(tmp_path: Path) -> None:
    with served(tmp_path, requests_at_once_max=1) as door, door.connected() as first:
        waiting = door.head("GET /wait")
        first.sendall(waiting)
        assert door.app.entered.wait(WAIT_SECONDS_MAX)
        refused = door.ask(door.head("GET /x", role="read"))
        assert (refused.problem["status"], refused.headers["retry-after"]) == (429, "1")
        assert door.ask(door.head("GET /health", role=None)).status == 200
        door.app.open_gate()
        assert answered(first, waiting).status == 200
        door.lines(3)
        assert door.ask(door.head("GET /x", role="read")).status == 200


def test_a_request_that_takes_too_long_is_given_up_and_its_work_cancelled(tmp_path: Path) -> None:
    with served(tmp_path, request_seconds_max=0.05, requests_at_once_max=1) as door:
        answer = door.ask(door.head("GET /wait"))
        assert (answer.problem["status"], answer.headers["retry-after"]) == (503, "1")
        assert door.app.left.wait(WAIT_SECONDS_MAX)
        door.lines(1)
        assert door.ask(door.head("GET /x")).status == 200, "its place is free again"


def test_an_answer_that_has_begun_is_never_cancelled(tmp_path: Path) -> None:
    with served(tmp_path, request_seconds_max=0.05) as door:
        answer = door.ask(door.head("GET /slow"))
        assert (answer.status, json.loads(answer.body)["path"]) == (200, "/slow")


def test_a_revoked_token_opens_nothing_from_the_next_request_on(tmp_path: Path) -> None:
    with served(tmp_path) as door, door.client("read") as client:
        assert client.get("/x").status_code == 200
        TokenFile(door.tokens.path).revoke(door.tokens.list()[0].id)
        assert client.get("/x").status_code == 401
        assert door.ask(door.head("GET /x", role="write")).status == 200


def test_an_expired_token_opens_nothing(tmp_path: Path) -> None:
    with served(tmp_path) as door:
        _, door.secrets["read"] = door.tokens.create("w", "read", None, START, days=1)
        assert door.ask(door.head("GET /x", role="read")).status == 200
        door.clock.advance(86_400)
        assert door.ask(door.head("GET /x", role="read")).status == 401


def test_without_tokens_that_can_be_read_nobody_is_let_in(tmp_path: Path) -> None:
    with served(tmp_path) as door:
        door.tokens.path.write_text("{")
        answer = door.ask(door.head("GET /x"))
        assert answer.status == answer.problem["status"] == 500
        assert "tokens" not in answer.body.decode()
        (line,) = door.lines(1)
        assert line["error"].startswith("ConfigError: the tokens "), "who runs the server learns what to do"
        assert door.app.calls == []


def test_the_app_learns_whose_request_it_is(shared: Door) -> None:
    shared.ask(shared.head("GET /x", "X-Request-Id: my-own_1.x", role="read"))
    state = shared.app.states[-1]
    assert (state["token"].workspace, state["token"].role, state["request_id"], state["first_key"]) == ("w", "read", "my-own_1.x", False)


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "é", "<script>", 'a"b', "a\r\nX-Request-Id: b"])
def test_a_request_id_of_another_shape_is_replaced(shared: Door, given: str) -> None:
    answers = [shared.ask(shared.head(line, f"X-Request-Id: {given}")) for line in ("GET /x", "GET /x", "OPTIONS /x")]
    found = [answer.headers["x-request-id"] for answer in answers]
    assert len(set(found)) == 3
    assert given not in found
    assert shared.app.states[-1]["request_id"] == found[1]


def test_a_request_id_of_the_right_shape_is_kept(shared: Door) -> None:
    for line in ("GET /x", "OPTIONS /x", "GET /fail"):
        assert shared.ask(shared.head(line, f"X-Request-Id: {'a.B_-9' * 10}")).headers["x-request-id"] == "a.B_-9" * 10


def test_a_failure_gives_nothing_away(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with served(tmp_path) as door:
        for count, (path, error) in enumerate((("/fail", "RuntimeError"), ("/silent", "NoAnswer")), start=1):
            answer = door.ask(door.head(f"GET {path}"))
            assert answer.status == answer.problem["status"] == 500
            assert [door.lines(count)[-1][name] for name in ("status", "error")] == [500, error]
            assert b"reason" not in answer.body
        with door.connected() as connection:
            connection.sendall(door.head("GET /fail-late"))
            received = b"".join(iter(lambda: connection.recv(65_536), b""))
        assert received.startswith(b"HTTP/1.1 200 ")
        assert b"0\r\n\r\n" not in received, "a part must not look like the whole"
        assert door.lines(3)[-1]["error"] == "RuntimeError"
    for text in (caplog.text, door.stream.getvalue(), received.decode()):
        assert "reason" not in text
        assert "Traceback" not in text


def test_a_client_that_goes_away_before_its_request_is_whole_is_written_down_as_such(tmp_path: Path) -> None:
    with served(tmp_path) as door:
        for path in ("/x", "/fail-late"):
            with door.connected() as connection:
                connection.sendall(door.head(f"POST {path}", "Content-Length: 9") + b"part")
        found = door.lines(2)
        assert [(line["status"], line.get("error"), line["bytes_in"], line["bytes_out"]) for line in found] == [(499, None, 4, 0)] * 2
        assert [line["status"] for line in door.audited()] == [499, 499]


def test_the_first_key_opens_the_front_page_once(tmp_path: Path) -> None:
    first = FirstKey.create(START, "home")
    with served(tmp_path, first) as door:
        for line in (
            "GET /?key=wrong",
            "GET /?key=",
            f"GET /?key={first.key}&key={first.key}",
            f"HEAD /?key={first.key}",
            f"POST /?key={first.key}",
            f"GET /conversations?key={first.key}",
            f"GET //?key={first.key}",
            "GET /?" + "a=1&" * 50 + f"key={first.key}",
            "GET /",
        ):
            assert door.ask(door.head(line, role=None)).status == 401, line
        assert door.ask(door.head(f"GET /?key={first.key}", role=None, host="evil.example")).status == 421
        assert door.ask(door.head(f"GET /?key={first.key}", "Origin: null", role=None)).status == 403
        assert door.ask(door.head(f"GET /?key={first.key}", "Authorization: Bearer wrong", role=None)).status == 401
        assert door.app.calls == []
        assert door.ask(door.head(f"GET /?key={first.key}", role=None)).status == 200
        state = door.app.states[-1]
        assert (state["token"].workspace, state["token"].role, state["first_key"]) == ("home", "admin", True)
        assert door.ask(door.head(f"GET /?key={first.key}", role=None)).status == 401
        assert door.app.calls == ["/"]
    assert first.key not in door.stream.getvalue() + door.audit.path.read_text()


def test_the_first_key_is_of_no_use_after_fifteen_minutes_or_where_there_is_none(tmp_path: Path, shared: Door) -> None:
    first = FirstKey.create(START, "home")
    with served(tmp_path, first) as door:
        door.clock.advance(15 * 60)
        assert door.ask(door.head(f"GET /?key={first.key}", role=None)).status == 401
    assert shared.ask(shared.head("GET /?key=", role=None)).status == 401


def test_every_request_leaves_a_line_and_every_authenticated_one_a_line_in_the_audit(tmp_path: Path) -> None:
    with served(tmp_path) as door:
        door.ask(door.head("POST /search?q=secret-word", "Content-Length: 11", "X-Note: secret-word", role="read") + b"secret-word")
        door.ask(door.head("DELETE /conversations/1?q=secret-word", role="read"))
        door.ask(door.head("GET /x?q=secret-word", role=None))
        token_id = door.tokens.list()[0].id
        found = door.lines(3)
        assert [(line["method"], line["path"], line["status"], line["token"], line["workspace"]) for line in found] == [
            ("POST", "/search", 200, token_id, "w"),
            ("DELETE", "/conversations/1", 403, token_id, "w"),
            ("GET", "/x", 401, None, None),
        ]
        assert (found[0]["time"], found[0]["bytes_in"], found[0]["duration_ms"]) == ("2026-03-02T09:00:00.000000Z", 11, 0)
        assert all(line["bytes_out"] > 0 for line in found)
        assert door.audited() == [
            {name: line[name] for name in ("time", "token", "workspace", "method", "path", "status")} for line in found[:2]
        ]
        assert door.audit.path.stat().st_mode & 0o777 == 0o600
        written = door.stream.getvalue() + door.audit.path.read_text()
        assert not [word for word in ("secret-word", *door.secrets.values()) if word in written]


def test_an_answer_that_the_audit_cannot_hold_is_withheld(tmp_path: Path) -> None:
    with served(tmp_path) as door:
        door.audit.path.mkdir()
        answer = door.ask(door.head("GET /x"))
        assert "withheld" in answer.problem["detail"]
        assert answer.status == 500
        assert door.ask(door.head("GET /health", role=None)).status == 200
        assert door.ask(door.head("GET /x", role=None)).status == 401


def entry(path: str, route: str | None = None) -> Entry:
    return Entry(
        time=START, request_id="r", method="GET", path=path, route=route, status=200, duration_ms=1.0, token_id="t",
        workspace="w", bytes_in=0, bytes_out=0,
    )  # fmt: skip


def test_a_line_is_one_line_of_plain_characters_whatever_stands_in_a_path(tmp_path: Path) -> None:
    stream, audit = io.StringIO(), AuditLog(tmp_path / "deep" / "audit.jsonl")
    for path in ("/a\nb", "/\x1b[31m\x7f\x9b", "/\ud800", "/é\u2028", "/" + "x" * 100_000):
        RequestLog(stream).write(entry(path))
        audit.write(entry(path))
    for text in (stream.getvalue(), audit.path.read_text()):
        assert text.count("\n") == 5
        assert all(" " <= character <= "~" for character in text.replace("\n", ""))
        assert len(text) < 5_000


def test_a_line_names_the_route_where_it_is_known() -> None:
    stream = io.StringIO()
    RequestLog(stream).write(entry("/conversations/1", "/conversations/{id}"))
    assert json.loads(stream.getvalue())["path"] == "/conversations/{id}"


def test_a_log_that_nobody_reads_any_more_fails_no_request() -> None:
    stream = io.StringIO()
    stream.close()
    RequestLog(stream).write(entry("/x"))


def test_a_full_audit_is_put_aside_and_the_oldest_goes(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl", bytes_max=300, files_max=3)
    for n in range(40):
        audit.write(entry(f"/{n}"))
    files = [audit.path, *(tmp_path / f"audit.jsonl.{n}" for n in (1, 2, 3))]
    assert sorted(tmp_path.iterdir()) == sorted(files)
    assert all(file.stat().st_size <= 300 and file.stat().st_mode & 0o777 == 0o600 for file in files)
    paths = [json.loads(line)["path"] for file in reversed(files) for line in file.read_text().splitlines()]
    assert paths == [f"/{n}" for n in range(40 - len(paths), 40)]


def test_an_audit_that_others_could_read_becomes_private(tmp_path: Path) -> None:
    audit = AuditLog(tmp_path / "audit.jsonl")
    audit.path.touch(0o644)
    audit.write(entry("/x"))
    assert audit.path.stat().st_mode & 0o777 == 0o600
