"""The client for engines, against a real server on loopback that can be told to misbehave."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest

import recollect.client
from recollect.capture.clean import Cleaner
from recollect.capture.payload import read_payload
from recollect.capture.reading import Reading
from recollect.capture.secrets import default_redactor
from recollect.capture.sketch import Piece, Sketch, payload_of, with_piece
from recollect.client import Client, ClientError, Request, Undelivered
from tests.kit import START

PATIENCE_SECONDS = 60.0  # never waited for by a test that passes


class Seen(NamedTuple):
    method: str
    path: str
    headers: dict[str, str]
    body: Any

    @property
    def piece(self) -> str:
        return self.path.rsplit("/", 1)[-1]


class Handler(BaseHTTPRequestHandler):
    @property
    def loopback(self) -> Loopback:
        return cast("Loopback", self.server)

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.loopback.seen.append(Seen(self.command, self.path, dict(self.headers), json.loads(content) if content else None))
        answer = self.loopback.script.pop(0) if self.loopback.script else reply(201, {"status": "created"})
        answer(self)

    do_GET = do_POST  # noqa: N815  the name that http.server asks for

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  the name that http.server gave it
        """Say nothing."""


class Loopback(ThreadingHTTPServer):
    """Answers as its script says, then 201, and remembers what it was sent."""

    daemon_threads = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.seen: list[Seen] = []
        self.script: list[Any] = []
        self.is_held = threading.Event()
        self.release = threading.Event()
        self.thread: threading.Thread | None = None
        self.server_bind()  # a port that is bound and does not listen refuses connections

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def start(self) -> None:
        self.server_activate()
        self.thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self.thread.start()

    def stop(self) -> None:
        self.release.set()
        if self.thread is not None:
            self.shutdown()
            self.thread.join()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that gave up is part of the test."""

    @property
    def pieces(self) -> list[str]:
        return [seen.piece for seen in self.seen]


def reply(status: int, body: object = None, **headers: str) -> Any:
    content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()

    def answer(handler: Handler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)

    return answer


def raw(content: bytes) -> Any:
    """Write bytes that are no HTTP, or nothing, and close the connection."""

    def answer(handler: Handler) -> None:
        handler.wfile.write(content)
        handler.close_connection = True

    return answer


def hold(handler: Handler) -> None:
    """Answer when the test lets it."""
    handler.loopback.is_held.set()
    handler.loopback.release.wait()
    reply(201)(handler)


@pytest.fixture
def stopped_server() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.stop()


@pytest.fixture
def server(stopped_server: Loopback) -> Loopback:
    stopped_server.start()
    return stopped_server


class Waits(list[float]):
    """A sleep that only notes how long it would have been."""

    def __call__(self, seconds: float) -> None:
        self.append(seconds)


@pytest.fixture
def waits() -> Waits:
    return Waits()


@pytest.fixture
def client(server: Loopback, waits: Waits) -> Iterator[Client]:
    with Client(server.url, "t0k", sleep=waits, random=lambda: 0.5, timeout_seconds=PATIENCE_SECONDS) as client:
        yield client
        client.close(PATIENCE_SECONDS)


@pytest.fixture
def strict(server: Loopback, waits: Waits) -> Client:
    return Client(server.url, "t0k", raises=True, sleep=waits, random=lambda: 0.5, timeout_seconds=PATIENCE_SECONDS)


def hashed(text: str) -> str:
    return "sha256:" + sha256(text.encode()).hexdigest()


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_times(item) for key, item in value.items() if key != "timestamp"}
    return [without_times(item) for item in value] if isinstance(value, list) else value


def record_everything(request: Request) -> None:
    request.user("Fix login")
    request.assistant("I add a null check", model="m", finish_reason="stop", usage={"prompt_tokens": 900, "completion_tokens": 80})
    request.context("src/auth.py", line_start=1, line_end=80, usefulness=0.92, source="vecdb", symbols=["login_user"])
    call = request.tool_call("update_textdoc", {"path": "src/auth.py"}, tool_call_id="t1")
    call.result("ok", success=True, duration_ms=41)
    request.change("src/auth.py", change_type="updated", change_summary="null check", lines_added=3, tool_call_id=call.id, diff="+x")
    request.checkpoint(git_hash="ae09")


PARTS = {
    "context_files": [
        {"file_path": "src/auth.py", "line_start": 1, "line_end": 80, "usefulness": 0.92, "source": "vecdb", "symbols": ["login_user"]}
    ],
    "code_changes": [
        {
            "file_path": "src/auth.py",
            "change_type": "updated",
            "change_summary": "null check",
            "lines_added": 3,
            "tool_call_id": "t1",
            "diff": "+x",
        }
    ],
    "checkpoints": [{"git_hash": "ae09"}],
}


# a whole request, sent once


def test_a_request_is_collected_and_sent_once(client: Client, server: Loopback) -> None:
    with client.request("req_1", project_id="shop", chat_id="c1", mode="AGENT", request_attempt_id="a1") as request:
        record_everything(request)
        assert server.seen == []
    assert client.flush(PATIENCE_SECONDS)
    sent = server.seen[0]
    assert (len(server.seen), sent.method, sent.path) == (1, "POST", "/ingest/conversation")
    assert (sent.headers["Authorization"], sent.headers["Content-Type"]) == ("Bearer t0k", "application/json")
    assert without_times(sent.body) == {
        "request_id": "req_1",
        "project_id": "shop",
        "chat_meta": {"chat_id": "c1", "chat_mode": "AGENT", "request_attempt_id": "a1"},
        "messages": [
            {"role": "user", "content": "Fix login", "sequence": 0},
            {
                "role": "assistant",
                "content": "I add a null check",
                "sequence": 1,
                "prompt_tokens": 900,
                "completion_tokens": 80,
                "tool_calls": [{"id": "t1", "tool": "update_textdoc"}],
            },
        ],
        "tool_calls": [
            {
                "tool_call_id": "t1",
                "tool_name": "update_textdoc",
                "arguments": {"path": "src/auth.py"},
                "result": "ok",
                "status": "success",
                "execution_time_ms": 41,
            }
        ],
        **PARTS,
        "model_response": {"model": "m", "finish_reason": "stop"},
    }
    assert sent.body["timestamp"].endswith("Z")
    assert (client.failed, client.dropped) == ([], 0)


def test_the_payload_is_one_that_recollect_reads_without_a_note(client: Client, server: Loopback) -> None:
    with client.request("req_1", project_id="shop", chat_id="c1") as request:
        record_everything(request)
    client.flush(PATIENCE_SECONDS)
    reading = Reading(Cleaner(default_redactor()), START)
    payload = read_payload(server.seen[0].body, reading)
    turn = payload.turns[0]
    assert (payload.request_id, payload.project, payload.chat_id, turn.status, turn.model) == ("req_1", "shop", "c1", "complete", "m")
    call = turn.tool_calls[0]
    assert (call.tool_name, call.arguments, call.status, call.duration_ms) == (
        "update_textdoc",
        {"path": "src/auth.py"},
        "success",
        41.0,
    )
    assert (turn.prompt_tokens, turn.completion_tokens) == (900, 80)
    assert [len(parts) for parts in (turn.messages, turn.tool_calls, turn.context_files, turn.changes, turn.checkpoints)] == [2, 1, 1, 1, 1]
    assert set(+reading.notes) <= {"times_in_the_future"}  # the clock of the test stands still


def test_an_exception_marks_the_request_as_failed_and_goes_on_untouched(client: Client, server: Loopback) -> None:
    boom = KeyError("boom")
    request = client.request(project_id="shop")
    request.user("Fix login")
    with pytest.raises(KeyError) as raised, request:
        raise boom
    assert raised.value is boom
    client.flush(PATIENCE_SECONDS)
    assert server.seen[0].body["status"] == "failed"


def test_a_request_without_an_id_gets_one_of_its_own(client: Client, server: Loopback) -> None:
    requests = [client.request(project_id="shop") for _ in range(2)]
    for request in requests:
        request.system("Be brief")
        request.finish()
        request.finish(failed=True)
    client.flush(PATIENCE_SECONDS)
    assert [seen.body["request_id"] for seen in server.seen] == [request.id for request in requests]
    assert requests[0].id != requests[1].id


def test_a_request_in_which_nothing_was_recorded_is_not_sent(client: Client, server: Loopback) -> None:
    with client.request(project_id="shop"):
        pass
    client.flush(PATIENCE_SECONDS)
    assert (server.seen, client.failed) == ([], [])


# piece by piece


def test_a_live_request_is_sent_piece_by_piece_in_order(client: Client, server: Loopback) -> None:
    with client.request("req/1", project_id="shop", chat_id="c1", live=True) as request:
        record_everything(request)
    client.flush(PATIENCE_SECONDS)
    assert {seen.path.rsplit("/", 1)[0] for seen in server.seen} == {"/requests/req%2F1"}
    assert [(seen.piece, without_times(seen.body)) for seen in server.seen] == [
        ("start", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}}),
        ("messages", {"messages": [{"role": "user", "content": "Fix login", "sequence": 0}]}),
        (
            "messages",
            {
                "messages": [
                    {
                        "role": "assistant",
                        "content": "I add a null check",
                        "sequence": 1,
                        "prompt_tokens": 900,
                        "completion_tokens": 80,
                    }
                ]
            },
        ),
        ("model-response", {"model": "m", "finish_reason": "stop", "usage": {"prompt_tokens": 900, "completion_tokens": 80}}),
        ("context", {"context_files": PARTS["context_files"]}),
        (
            "tool-calls",
            {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": {"path": "src/auth.py"}, "message_sequence": 1}]},
        ),
        ("tool-results", {"tool_results": [{"tool_call_id": "t1", "content": "ok", "error": None, "success": True, "duration_ms": 41}]}),
        ("code-changes", {"code_changes": PARTS["code_changes"]}),
        ("checkpoints", {"checkpoints": PARTS["checkpoints"]}),
        ("finalize", {"status": "complete"}),
    ]
    assert all(seen.body["timestamp"] for seen in server.seen if seen.piece == "start")


def test_a_live_call_that_came_before_any_answer_hangs_from_the_next(client: Client, server: Loopback) -> None:
    with client.request("r", project_id="shop", live=True) as request:
        request.user("one")
        request.tool_call("ls", tool_call_id="t1").result("a.py")
        request.assistant("I looked")
        request.user("two")
        request.assistant("done")
    client.flush(PATIENCE_SECONDS)
    calls = [seen.body["tool_calls"][0] for seen in server.seen if seen.piece == "tool-calls"]
    assert [(one["id"], one["message_sequence"]) for one in calls] == [("t1", None), ("t1", 1)]
    assert len({one["timestamp"] for one in calls}) == 1


def test_a_live_piece_leaves_before_the_request_ends(strict: Client, server: Loopback) -> None:
    request = strict.request(project_id="shop", live=True)
    assert server.pieces == ["start"]
    request.tool_call("ls")
    assert server.pieces == ["start", "tool-calls"]
    assert server.seen[1].body["tool_calls"][0]["message_sequence"] is None


def test_a_live_request_through_which_an_exception_passes_is_finalized_as_failed(client: Client, server: Loopback) -> None:
    with pytest.raises(KeyError), client.request(project_id="shop", live=True):
        raise KeyError
    client.flush(PATIENCE_SECONDS)
    assert (server.pieces, server.seen[-1].body) == (["start", "finalize"], {"status": "failed"})


def test_pieces_stay_in_order_while_one_is_tried_again(client: Client, server: Loopback, waits: Waits) -> None:
    server.script = [reply(503), reply(503)]
    with client.request(project_id="shop", live=True) as request:
        request.user("a")
    client.flush(PATIENCE_SECONDS)
    assert server.pieces == ["start", "start", "start", "messages", "finalize"]
    assert len(waits) == 2


@pytest.mark.parametrize("live", [False, True])
def test_what_comes_after_the_end_is_not_sent_and_known_as_failed(client: Client, server: Loopback, live: bool) -> None:
    with client.request("r", project_id="shop", live=live) as request:
        request.assistant("a")
        call = request.tool_call("ls")
    request.assistant("b")
    request.tool_call("ls")
    call.result("late")
    client.flush(PATIENCE_SECONDS)
    assert client.failed == [Undelivered("r", piece, "Finished") for piece in ("messages", "tool-calls", "tool-results")]
    assert (server.pieces[-1], len(server.seen)) == (("finalize", 4) if live else ("conversation", 1))
    assert live or len(server.seen[0].body["messages"][0]["tool_calls"]) == 1


# tool calls


@pytest.fixture
def ticking(server: Loopback) -> Iterator[Client]:
    ticks = iter(range(100))
    with Client(server.url, monotonic=lambda: float(next(ticks)) / 4, sleep=lambda _: None, timeout_seconds=PATIENCE_SECONDS) as client:
        yield client
        client.close(PATIENCE_SECONDS)


def calls_of(seen: Seen) -> list[Any]:
    given = ("result", "error", "status", "execution_time_ms")
    return [{name: call[name] for name in given if name in call} for call in seen.body["tool_calls"]]


def test_a_tool_call_with_a_with_has_its_duration(ticking: Client, server: Loopback) -> None:
    with ticking.request(project_id="shop") as request:
        with request.tool_call("ls") as call:
            call.result("a.py", success=True)
        with request.tool_call("rm"):
            pass
        with request.tool_call("cp") as call:
            call.result(error="no such file", duration_ms=7)
    ticking.flush(PATIENCE_SECONDS)
    assert calls_of(server.seen[0]) == [
        {"result": "a.py", "status": "success", "execution_time_ms": 250.0},
        {"status": "success", "execution_time_ms": 250.0},
        {"error": "no such file", "status": "failed", "execution_time_ms": 7},
    ]


def test_an_exception_marks_the_tool_call_as_failed_and_goes_on_untouched(ticking: Client, server: Loopback) -> None:
    boom = RuntimeError("disk full")
    with ticking.request(project_id="shop") as request:
        call = request.tool_call("cp")
        call.result("half of it", success=True)
        with pytest.raises(RuntimeError) as raised, call:
            raise boom
    assert raised.value is boom
    ticking.flush(PATIENCE_SECONDS)
    assert calls_of(server.seen[0]) == [
        {"result": "half of it", "error": "RuntimeError: disk full", "status": "failed", "execution_time_ms": 250.0}
    ]
    assert "status" not in server.seen[0].body


def test_a_live_tool_result_is_sent_on_leaving_the_with(ticking: Client, server: Loopback) -> None:
    with ticking.request(project_id="shop", live=True) as request, request.tool_call("ls", tool_call_id="t1") as call:
        call.result("a.py", success=True)
    ticking.flush(PATIENCE_SECONDS)
    assert server.pieces == ["start", "tool-calls", "tool-results", "finalize"]
    assert server.seen[2].body["tool_results"] == [
        {"tool_call_id": "t1", "content": "a.py", "error": None, "success": True, "duration_ms": 250.0}
    ]


def test_a_tool_call_hangs_from_an_answer_to_the_same_user(client: Client, server: Loopback) -> None:
    with client.request(project_id="shop") as request:
        request.user("a")
        request.tool_call("early", tool_call_id="t1")
        request.assistant("b")
        request.tool_call("late", tool_call_id="t2")
        request.user("c")
        request.tool_call("next", tool_call_id="t3")
        request.assistant("d")
    client.flush(PATIENCE_SECONDS)
    made = [[call["id"] for call in message.get("tool_calls", [])] for message in server.seen[0].body["messages"]]
    assert made == [[], ["t1", "t2"], [], ["t3"]]


@pytest.mark.parametrize("live", [False, True])
def test_a_call_that_nobody_answered_stays_in_the_turn_it_was_made_in(client: Client, server: Loopback, *, live: bool) -> None:
    with client.request("r", project_id="shop", live=live) as request:
        request.user("u")
        request.tool_call("ls", tool_call_id="t1")
        request.user("u2")
        request.tool_call("cat", tool_call_id="t2")
        request.assistant("done")
    client.flush(PATIENCE_SECONDS)
    payload = server.seen[0].body
    if live:
        sketch = Sketch(request_id="r", conversation_id="c")
        for seen in server.seen:
            sketch = sketch if seen.piece in {"start", "finalize"} else with_piece(sketch, cast("Piece", seen.piece), seen.body)
        payload = payload_of(sketch)
    turns = read_payload(payload, Reading(Cleaner(default_redactor()), START)).turns
    assert [(turn.user, [call.tool_call_id for call in turn.tool_calls]) for turn in turns] == [("u", ["t1"]), ("u2", ["t2"])]


def test_a_call_without_a_result_and_one_of_unknown_success_have_no_status(client: Client, server: Loopback) -> None:
    with client.request(project_id="shop") as request:
        request.tool_call("ls")
        request.tool_call("ls").result({"success": "of the tool's own", "a": 1})
    client.flush(PATIENCE_SECONDS)
    assert calls_of(server.seen[0]) == [{}, {"result": '{"a":1,"success":"of the tool\'s own"}'}]


# what a caller holds


class Hostile:
    def __str__(self) -> str:
        msg = "no"
        raise RuntimeError(msg)


def test_what_json_cannot_hold_is_sent_as_what_it_can(client: Client, server: Loopback) -> None:
    circle: list[Any] = []
    circle.append(circle)
    arguments: dict[Any, Any] = {1: Path("a"), "nan": float("nan"), "big": 2**70, "b": b"\xff", "set": {1}, "no": Hostile(), "o": circle}
    with client.request(project_id="shop") as request:
        request.user("lone \ud800 surrogate")
        request.tool_call("x", arguments)
        arguments["later"] = "changed by the caller"
    client.flush(PATIENCE_SECONDS)
    sent = server.seen[0].body
    assert sent["messages"][0]["content"] == "lone ? surrogate"
    given = sent["tool_calls"][0]["arguments"]
    assert json.dumps(given.pop("o")).strip("[]") == '"\\u2026"'
    assert given == {"1": "a", "nan": None, "big": str(2**70), "b": "�", "set": [1], "no": "[unreadable Hostile]"}


# only summaries


@pytest.mark.parametrize("where", ["client", "request"])
@pytest.mark.parametrize("live", [False, True])
def test_with_summaries_only_no_content_leaves_the_process(server: Loopback, where: str, live: bool) -> None:
    head, secret = "first line\n\n" + "x" * 300, "KEPT-HERE"
    with (
        Client(server.url, background=False, summaries_only=where == "client") as client,
        client.request(project_id="shop", live=live, summaries_only=True if where == "request" else None) as request,
    ):
        request.user(head + secret)
        request.assistant([{"type": "text", "text": head}, {"type": "text", "text": secret}], reasoning=secret)
        call = request.tool_call("write", {"b": secret, "a": 1}, tool_call_id="t1")
        call.result(secret + "é", success=True)
        with pytest.raises(ValueError, match=secret), request.tool_call("write", secret, tool_call_id="t2"):
            raise ValueError(secret)
        request.change("a.py", change_summary=head + secret, diff=secret, code=secret)  # type: ignore[call-arg]
        request.assistant(None)
    sent = {seen.piece: seen.body for seen in server.seen}
    text = json.dumps([seen.body for seen in server.seen])
    assert secret not in text
    assert hashed(head + secret) in text
    assert hashed(f"{head}\n{secret}") in text
    assert hashed(f'{{"a":1,"b":"{secret}"}}') in text
    assert hashed(secret) in text
    line = "first line " + "x" * 189
    if live:
        assert sent["tool-calls"]["tool_calls"][0]["arguments_hash"] == hashed(secret)
        results = [seen.body["tool_results"][0] for seen in server.seen if seen.piece == "tool-results"]
        expected = {"content_hash": hashed(secret + "é"), "result_size_bytes": 11}
        assert results[0] == {"tool_call_id": "t1", **expected, "success": True, "duration_ms": None}
        assert sent["code-changes"] == {"code_changes": [{"file_path": "a.py", "change_summary": line}]}
        return
    payload = sent["conversation"]
    assert without_times(payload["messages"][0]) == {
        "role": "user",
        "content_summary": line,
        "content_hash": hashed(head + secret),
        "sequence": 0,
    }
    assert payload["messages"][2]["content"] is None
    wrote = payload["tool_calls"][0]
    assert wrote["result"] == {"success": True, "content_hash": hashed(secret + "é"), "result_size_bytes": 11}
    assert (wrote["status"], payload["tool_calls"][1]["status"]) == ("success", "failed")


def test_a_request_can_send_content_where_the_client_would_not(server: Loopback) -> None:
    with (
        Client(server.url, background=False, summaries_only=True) as client,
        client.request(project_id="shop", summaries_only=False) as request,
    ):
        request.user("Fix login")
    assert server.seen[0].body["messages"][0]["content"] == "Fix login"


# trying again


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_what_may_pass_is_tried_again_with_back_off_and_full_jitter(client: Client, server: Loopback, waits: Waits, status: int) -> None:
    server.script = [reply(status)] * 3
    with client.request(project_id="shop") as request:
        request.user("a")
    client.flush(PATIENCE_SECONDS)
    assert waits == [0.25, 0.5, 1.0]  # half, as the injected chance is, of 0.5, 1 and 2 seconds
    assert client.failed == []
    assert len({json.dumps(seen.body) for seen in server.seen}) == 1


@pytest.mark.parametrize("status", [301, 307, 400, 401, 403, 404, 409, 413, 422])
def test_what_cannot_pass_is_not_tried_again(client: Client, server: Loopback, waits: Waits, status: int) -> None:
    server.script = [reply(status, Location="/elsewhere")]
    with client.request("r", project_id="shop") as request:
        request.user("a")
    client.flush(PATIENCE_SECONDS)
    assert (len(server.seen), waits) == (1, [])
    assert client.failed == [Undelivered("r", "conversation", status)]


def test_after_the_last_attempt_only_ids_are_kept(client: Client, server: Loopback, waits: Waits) -> None:
    server.script = [reply(500)] * 4
    with client.request("r", project_id="shop") as request:
        request.user("the content")
    client.flush(PATIENCE_SECONDS)
    assert client.failed == [Undelivered("r", "conversation", 500)]
    assert (len(server.seen), len(waits)) == (4, 3)
    assert list(client._delivery.lane._waiting) == []


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("7", 7.0),
        ("0", 0.0),
        ("86400", 30.0),
        ("Wed, 21 Oct 2099 07:28:00 GMT", 30.0),
        ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
        ("soon", 0.25),
        ("-3", 0.25),
    ],
)
def test_retry_after_is_honoured_up_to_thirty_seconds(strict: Client, server: Loopback, waits: Waits, given: str, seconds: float) -> None:
    server.script = [reply(429, Retry_After=given)]
    with strict.request(project_id="shop") as request:
        request.user("a")
    assert waits == [seconds]


@pytest.mark.parametrize(
    "misbehaving",
    [raw(b""), raw(b"\x00\xff garbage\r\n\r\n"), reply(200, b'{"sta', Content_Length="900", Connection="close")],
    ids=["closed", "garbage", "cut off"],
)
def test_a_broken_connection_is_tried_again(client: Client, server: Loopback, waits: Waits, misbehaving: Any) -> None:
    server.script = [misbehaving]
    with client.request(project_id="shop") as request:
        request.user("a")
    client.flush(PATIENCE_SECONDS)
    assert (len(server.seen), waits, client.failed) == (2, [0.25], [])


def test_a_server_that_is_not_there_yet_is_waited_for(stopped_server: Loopback) -> None:
    waited: list[float] = []

    def sleep(seconds: float) -> None:
        waited.append(seconds)
        if len(waited) == 2:
            stopped_server.start()

    with Client(stopped_server.url, sleep=sleep, random=lambda: 1.0, timeout_seconds=PATIENCE_SECONDS) as client:
        with client.request(project_id="shop") as request:
            request.user("a")
        client.close(PATIENCE_SECONDS)
    assert (waited, stopped_server.pieces, client.failed) == ([0.5, 1.0], ["conversation"], [])


def test_a_server_that_is_not_there_fails_by_name(stopped_server: Loopback, waits: Waits) -> None:
    with Client(stopped_server.url, sleep=waits, random=lambda: 0.0, background=False) as client:
        client.request("r", project_id="shop", live=True)
    assert (client.failed, waits) == ([Undelivered("r", "start", "ConnectionRefusedError")], [0.0, 0.0, 0.0])


def test_a_server_that_hangs_is_given_up_after_the_timeout(server: Loopback, waits: Waits) -> None:
    server.script = [hold, hold]
    with Client(server.url, sleep=waits, timeout_seconds=0.02, attempts_max=2, background=False) as client:
        client.request("r", project_id="shop", live=True)
        assert client.failed == [Undelivered("r", "start", "TimeoutError")]
    assert len(waits) == 1


def test_a_success_that_is_no_answer_of_ours_is_a_failure(client: Client, server: Loopback, waits: Waits) -> None:
    server.script = [reply(200, b"<html>It works!</html>"), reply(200, b"[]"), reply(204)]
    for request_id in ("a", "b", "c"):
        with client.request(request_id, project_id="shop") as request:
            request.user("x")
    client.flush(PATIENCE_SECONDS)
    assert client.failed == [Undelivered("a", "conversation", 200), Undelivered("b", "conversation", 200)]
    assert waits == []


def test_the_lane_goes_on_whatever_happens(server: Loopback) -> None:
    def broken_sleep(_: float) -> None:
        msg = "no sleep"
        raise LookupError(msg)

    server.script = [reply(503)]
    with Client(server.url, sleep=broken_sleep, timeout_seconds=PATIENCE_SECONDS) as client:
        client.request("r", project_id="shop", live=True).finish()
        client.close(PATIENCE_SECONDS)
    assert (client.failed, server.pieces) == ([Undelivered("r", "start", "LookupError")], ["start", "finalize"])


# the caller's work


def test_nothing_raises_into_the_callers_work(stopped_server: Loopback, waits: Waits) -> None:
    errors: list[ClientError] = []

    def listen(error: ClientError) -> None:
        errors.append(error)
        msg = "a listener that breaks"
        raise ValueError(msg)

    with (
        Client(stopped_server.url, sleep=waits, on_error=listen) as client,
        client.request("r", project_id="shop", live=True) as request,
    ):
        record_everything(request)
    assert len(client.failed) == len(errors) == 10
    assert {(error.status, error.title) for error in errors} == {(None, "ConnectionRefusedError")}


def test_a_full_queue_drops_the_newest_and_never_blocks(server: Loopback) -> None:
    server.script = [hold]
    with Client(server.url, queue_max=3, timeout_seconds=PATIENCE_SECONDS) as client:
        request = client.request("r", project_id="shop", live=True)
        assert server.is_held.wait(PATIENCE_SECONDS)
        for text in ("a", "b", "c", "d"):
            request.user(text)
        assert client.dropped == 2
        server.release.set()
        client.close(PATIENCE_SECONDS)
    assert [seen.body["messages"][0]["content"] for seen in server.seen[1:]] == ["a", "b"]
    assert client.failed == [Undelivered("r", "messages", "Full")] * 2


def test_the_queue_is_bounded_in_bytes_but_takes_any_single_piece(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("recollect.client.lane.QUEUE_BYTES_MAX", 1)
    server.script = [hold]
    with Client(server.url, timeout_seconds=PATIENCE_SECONDS) as client:
        request = client.request(project_id="shop", live=True)
        assert server.is_held.wait(PATIENCE_SECONDS)
        request.user("a")
        server.release.set()
        assert client.flush(PATIENCE_SECONDS)
        request.user("b")
        client.close(PATIENCE_SECONDS)
    assert (client.dropped, server.pieces) == (1, ["start", "messages"])


def test_only_the_last_thousand_failures_are_kept(stopped_server: Loopback) -> None:
    with Client(stopped_server.url, attempts_max=1, background=False) as client:
        client.close()
        for number in range(1_005):
            client.request(str(number), project_id="shop", live=True)
    assert (len(client.failed), client.failed[0].request_id, client.failed[-1].request_id) == (1_000, "5", "1004")


def test_closing_delivers_what_is_queued_and_drops_what_comes_later(server: Loopback) -> None:
    with Client(server.url, timeout_seconds=PATIENCE_SECONDS) as client:
        for number in range(20):
            with client.request(str(number), project_id="shop") as request:
                request.user("a")
        client.close(PATIENCE_SECONDS)
        assert [seen.body["request_id"] for seen in server.seen] == [str(number) for number in range(20)]
        client.request("late", project_id="shop", live=True)
    assert (client.failed, client.dropped) == ([Undelivered("late", "start", "Closed")], 1)
    assert not any(thread.name == "recollect-client" for thread in threading.enumerate())


def test_closing_waits_no_longer_than_told_and_ends_the_trying(server: Loopback) -> None:
    is_asleep, wake = threading.Event(), threading.Event()

    def sleep(_: float) -> None:
        is_asleep.set()
        wake.wait()

    server.script = [reply(503)]
    client = Client(server.url, sleep=sleep, timeout_seconds=PATIENCE_SECONDS)
    client.request("r", project_id="shop", live=True).finish()
    assert is_asleep.wait(PATIENCE_SECONDS)
    client.close(timeout_seconds=0.0)
    assert client.failed == [Undelivered("r", "finalize", "Closed")]
    wake.set()
    assert client.flush(PATIENCE_SECONDS)
    client.close(PATIENCE_SECONDS)
    assert client.failed[1:] == [Undelivered("r", "start", 503)]
    assert len(server.seen) == 1


def test_a_listener_may_close_the_client(server: Loopback) -> None:
    closed = threading.Event()
    server.script = [reply(400)]

    def listen(_: ClientError) -> None:
        client.close(PATIENCE_SECONDS)
        closed.set()

    client = Client(server.url, on_error=listen, timeout_seconds=PATIENCE_SECONDS)
    client.request(project_id="shop", live=True)
    assert closed.wait(PATIENCE_SECONDS)
    client.close(PATIENCE_SECONDS)


def test_a_thread_that_cannot_be_had_drops_the_piece(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        msg = "can't start new thread"
        raise RuntimeError(msg)

    with Client(server.url) as client:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            client.request("r", project_id="shop", live=True)
        assert (client.dropped, client.failed) == (1, [Undelivered("r", "start", "Full")])


def test_threads_may_share_a_client_and_a_request(client: Client, server: Loopback) -> None:
    def work(request: Request, name: str) -> None:
        for number in range(20):
            with request.tool_call("ls", tool_call_id=f"{name}{number}") as call:
                call.result(name, success=True)
            request.user(name)

    with client.request(project_id="shop") as request:
        threads = [threading.Thread(target=work, args=(request, name)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    client.flush(PATIENCE_SECONDS)
    body = server.seen[0].body
    assert sorted(message["sequence"] for message in body["messages"]) == list(range(80))
    assert {call["status"] for call in body["tool_calls"]} == {"success"}
    assert len(body["tool_calls"]) == 80


FORKING = """
import os, sys
from recollect.client import Client
client = Client(sys.argv[1], timeout_seconds=60)
client.request("parent", project_id="p", live=True).finish()
input()
child = os.fork()
if child == 0:
    client.request("child", project_id="p", live=True).finish()
    client.close(60)
    os._exit(len(client.failed))
print(os.waitpid(child, 0)[1], flush=True)
client.close(60)
assert client.failed == []
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_delivers_its_own_and_only_its_own(server: Loopback) -> None:
    """It forks while one piece of the parent's is under way and another waits."""
    server.script = [hold]
    command = [sys.executable, "-W", "ignore", "-c", FORKING, server.url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as program:
        assert program.stdin
        assert program.stdout
        assert server.is_held.wait(PATIENCE_SECONDS)
        program.stdin.write("go on\n")
        program.stdin.flush()
        assert program.stdout.readline() == "0\n"
        server.release.set()
    assert program.returncode == 0
    parent, child = ([f"/requests/{name}/{piece}" for piece in ("start", "finalize")] for name in ("parent", "child"))
    assert [seen.path for seen in server.seen] == [parent[0], *child, parent[1]]


# errors that were asked for


def test_a_client_that_raises_says_what_the_server_said(strict: Client, server: Loopback, waits: Waits) -> None:
    server.script = [reply(409, {"title": "Conflict", "detail": "req_1 was recorded with other content"})]
    with pytest.raises(ClientError) as raised, strict.request("req_1", project_id="shop") as request:
        request.user("a")
    error = raised.value
    assert (error.status, error.title, error.detail) == (409, "Conflict", "req_1 was recorded with other content")
    assert str(error) == "409 Conflict: req_1 was recorded with other content"
    assert waits == []
    assert strict.failed == [Undelivered("req_1", "conversation", 409)]


@pytest.mark.parametrize("problem", [b"", b"<html>", b"[1]", b'{"title": null}', b'"' + b"[" * 100_000])
def test_a_refusal_without_a_problem_document_is_named_by_its_status(strict: Client, server: Loopback, problem: bytes) -> None:
    server.script = [reply(404, problem)]
    with pytest.raises(ClientError, match="404 Not Found"):
        strict.request(project_id="shop", live=True)


def test_a_client_that_raises_tries_again_first(strict: Client, server: Loopback, waits: Waits) -> None:
    server.script = [reply(429, Retry_After="2")] * 4
    with pytest.raises(ClientError) as raised:
        strict.request(project_id="shop", live=True)
    assert (raised.value.status, raised.value.retry_after_seconds, waits) == (429, 2.0, [2.0, 2.0, 2.0])


@pytest.mark.parametrize("live", [False, True])
def test_the_callers_own_exception_is_never_replaced(strict: Client, server: Loopback, live: bool) -> None:
    server.script = [reply(201), reply(201)] if live else []
    server.script += [reply(400), reply(400)]
    with pytest.raises(KeyError), strict.request("r", project_id="shop", live=live) as request, request.tool_call("ls"):
        raise KeyError
    assert [failure.piece for failure in strict.failed] == (["tool-results", "finalize"] if live else ["conversation"])


@pytest.mark.parametrize("live", [False, True])
def test_a_client_that_raises_does_so_for_what_comes_too_late(strict: Client, live: bool) -> None:
    request = strict.request(project_id="shop", live=live)
    request.finish()
    with pytest.raises(ClientError, match="Finished"):
        request.user("a")
    strict.close()
    with pytest.raises(ClientError, match="Closed"):
        strict.request(project_id="shop", live=True)


# where the token goes


def test_a_redirect_is_not_followed_and_the_token_stays(strict: Client, server: Loopback) -> None:
    other = Loopback()
    other.start()
    try:
        server.script = [reply(307, Location=other.url)]
        with pytest.raises(ClientError, match="307"):
            strict.search("x")
        assert other.seen == []
    finally:
        other.stop()


def test_the_token_comes_from_the_environment_unless_it_is_given(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_TOKEN", "from-the-environment\n")
    monkeypatch.setenv("OTHER", "from-another")
    for client in (Client(server.url), Client(server.url, token_variable="OTHER"), Client(server.url, "given"), Client(server.url, "")):
        client.search("x")
    bearers = [seen.headers.get("Authorization") for seen in server.seen]
    assert bearers == ["Bearer from-the-environment", "Bearer from-another", "Bearer given", None]


def test_proxies_of_the_environment_are_not_used(strict: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    strict.search("x")


@pytest.mark.parametrize(
    "url", ["", "localhost:8722", "ftp://host", "file:///etc/passwd", "http://", "http://u:p@host", "http://host?x=1", "http://host:99999"]
)
def test_only_a_plain_http_or_https_address_is_taken(url: str) -> None:
    with pytest.raises(ValueError) as raised:  # noqa: PT011  the messages differ
        Client(url)
    assert "u:p" not in str(raised.value)


@pytest.mark.parametrize("token", ["a\nb", "tokén", "a\x00"])
def test_a_token_that_would_break_a_header_is_refused_and_not_shown(token: str) -> None:
    with pytest.raises(ValueError, match="token") as raised:
        Client(token=token)
    assert token not in str(raised.value)


def test_https_is_spoken_to_an_https_address(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, int | None]] = []

    class Spoken(HTTPConnection):
        def __init__(self, host: str, port: int | None = None, timeout: float | None = None) -> None:
            asked.append((host, port))
            super().__init__("127.0.0.1", server.server_port, timeout=timeout)

    monkeypatch.setattr("recollect.client.server.HTTPSConnection", Spoken)
    for url in ("https://memory.example/recollect/", "https://[::1]:9"):
        Client(url).search("x")
    assert (asked, [seen.path for seen in server.seen]) == ([("memory.example", 443), ("::1", 9)], ["/recollect/search", "/search"])


# reading


def test_the_questions_return_the_answer_as_it_is(client: Client, server: Loopback) -> None:
    server.script = [reply(200, {"hits": []}), reply(200, {"sections": []}), reply(200, {"path": "a"}), reply(200, {"path": "a"})]
    assert client.search("null check", project="shop", limit=3) == {"hits": []}
    assert client.context_for("Did we fix it?", budget_chars=9_000) == {"sections": []}
    assert client.why("my shop", "src/a b.py", 31) == {"path": "a"}
    assert client.why("shop", "a.py") == {"path": "a"}
    assert [(seen.method, seen.path, seen.body) for seen in server.seen] == [
        ("POST", "/search", {"query": "null check", "project": "shop", "limit": 3}),
        ("POST", "/context", {"prompt": "Did we fix it?", "budget_chars": 9_000}),
        ("GET", "/projects/my%20shop/why?path=src%2Fa+b.py&line=31", None),
        ("GET", "/projects/shop/why?path=a.py", None),
    ]


def test_a_question_raises_even_where_recording_does_not(client: Client, server: Loopback, waits: Waits) -> None:
    server.script = [reply(503), reply(401, {"title": "Unauthorized", "detail": "a token is needed"})]
    with pytest.raises(ClientError, match="401 Unauthorized: a token is needed"):
        client.search("x")
    assert (waits, client.failed) == ([0.25], [])
    server.script = [reply(200, b"no json")]
    with pytest.raises(ClientError, match="UnreadableAnswer"):
        client.why("shop", "a.py")


# alone


def test_the_folder_works_when_it_is_copied_alone(tmp_path: Path) -> None:
    folder = Path(recollect.client.__file__).parent
    copy = tmp_path / "memory_client"
    copy.mkdir()
    for path in folder.glob("*.py"):
        (copy / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    program = "import sys, memory_client; memory_client.Client(); print([name for name in sys.modules if 'recollect' in name])"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {program}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"


# the page for authors of engines

PAGE = (Path(__file__).parent.parent.parent / "docs" / "integration.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return [part.split("```", 1)[0] for part in PAGE.split(f"```{language}\n")[1:]]


def test_the_payloads_of_the_page_are_read_without_a_note() -> None:
    minimal, full = (json.loads(block) for block in blocks("json")[:2])
    for document in (minimal, full):
        reading = Reading(Cleaner(default_redactor()), START)
        payload = read_payload(document, reading)
        assert (payload.request_id, payload.project, payload.chat_id, len(payload.turns)) == ("req_1", "shop", "c1", 1)
        assert dict(+reading.notes) == {}


def test_the_client_of_the_page_has_twenty_lines_and_works(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECOLLECT_TOKEN", "t0k")
    program = blocks("python")[0]
    assert program.count("\n") <= 20
    names: dict[str, Any] = {}
    exec(program, names)  # noqa: S102  our own page
    cut_short = raw(b"HTTP/1.1 201 Created\r\nContent-Length: 99\r\n\r\n{")
    server.script = [reply(503, Retry_After="0"), raw(b""), cut_short, reply(201, {"status": "created"}), reply(409)]
    monkeypatch.setattr(names["time"], "sleep", lambda _: None)
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # where nobody is: the token is not for it
    assert names["send"]({"request_id": "r"}, server.url) == {"status": "created"}
    with pytest.raises(names["urllib"].error.HTTPError) as refused:
        names["send"]({"messages": []}, server.url, "/requests/r/messages")
    refused.value.close()
    assert [(seen.path, seen.headers["Authorization"], seen.body) for seen in server.seen] == [
        *[("/ingest/conversation", "Bearer t0k", {"request_id": "r"})] * 4,
        ("/requests/r/messages", "Bearer t0k", {"messages": []}),
    ]


def test_the_example_with_our_client_works(server: Loopback, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recollect.client, "Client", lambda: Client(server.url, raises=True))
    exec(blocks("python")[1], {})  # noqa: S102  our own page
    assert (server.pieces, server.seen[0].body["tool_calls"][0]["status"]) == (["conversation"], "success")
