"""Every route of the HTTP door through a real server and a real client: what it answers, and with which status."""

from __future__ import annotations

import gzip
import itertools
import json
import re
import socket
import subprocess
import textwrap
import threading
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from recollect.client import Client, Request
from recollect.clock import CountedIds, ManualClock
from recollect.config import settings_from
from recollect.errors import ConfigError, StoreUnavailableError
from recollect.memory import Memory
from recollect.serve.http.app import create_app
from recollect.serve.http.guard import Guard
from recollect.serve.http.server import HttpServer
from recollect.serve.http.tokens import FirstKey, Role, TokenFile
from recollect.serve.http.workspaces import Workspaces
from recollect.settings import Server, Settings
from tests.kit import START
from tests.serving import Serving, as_lines, eventually, served

STORES: dict[str, Callable[[pytest.FixtureRequest], str | None]] = {
    "sqlite": lambda _: None,
    "neo4j": lambda request: request.getfixturevalue("neo4j_url"),
}
DOCUMENT = Path(__file__).parents[2] / "docs" / "integration.md"


class Door:
    """A server, and a client for a workspace that nobody else uses."""

    def __init__(self, serving: Serving, workspace: str) -> None:
        self.serving = serving
        self.workspace = workspace
        self.client = serving.client(serving.token(workspace, "admin"))

    def as_role(self, role: Role) -> httpx.Client:
        return self.serving.client(self.serving.token(self.workspace, role))


@pytest.fixture(scope="module", params=sorted(STORES))
def either(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with served(tmp_path_factory.mktemp("either"), store=STORES[request.param](request)) as serving:
        yield serving


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with served(tmp_path_factory.mktemp("sqlite")) as serving:
        yield serving


_numbers = itertools.count()


@pytest.fixture
def any_door(either: Serving, tmp_path: Path) -> Generator[Door]:
    door = Door(either, f"{tmp_path.parent.parent.name}-{tmp_path.parent.name}-{next(_numbers)}")
    with door.client:
        yield door


@pytest.fixture
def door(sqlite: Serving) -> Generator[Door]:
    door = Door(sqlite, f"w{next(_numbers)}")
    with door.client:
        yield door


def problem(answer: httpx.Response, status: int) -> dict[str, Any]:
    """Return a problem document, having seen that it is one."""
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told.keys() == {"type", "title", "status", "detail", "request_id"}
    assert (told["type"], told["status"], told["request_id"]) == ("about:blank", status, answer.headers["x-request-id"])
    assert told["title"] not in {"", "Error"}
    assert "Traceback" not in answer.text
    return told


def record(client: httpx.Client, payload: dict[str, Any]) -> dict[str, Any]:
    answer = client.post("/ingest/conversation", json=payload)
    assert answer.status_code == 201, answer.text
    return answer.json()


def asked(number: int, chat: str = "c1") -> dict[str, Any]:
    return {
        "request_id": f"req_{number}",
        "project_id": "shop",
        "chat_meta": {"chat_id": chat},
        "messages": [
            {"role": "user", "content": f"question {number}"},
            {"role": "assistant", "content": f"answer {number}", "tool_calls": [{"id": f"t{number}", "name": "Read", "arguments": {}}]},
        ],
    }


# Whole requests


def test_a_whole_request_is_created_once_then_unchanged_then_a_conflict_unless_replaced(any_door: Door, everything: dict[str, Any]) -> None:
    client = any_door.client
    first = client.post("/ingest/conversation", json=everything)
    assert first.status_code == 201
    made = first.json()
    assert (made["status"], made["request_id"], len(made["turn_ids"])) == ("created", "req_1", 1)
    again = client.post("/ingest/conversation", json=everything)
    assert (again.status_code, again.json()["status"], again.json()["turn_ids"]) == (200, "unchanged", made["turn_ids"])
    other = {**everything, "messages": [*everything["messages"][:-1], {"role": "assistant", "content": "Something else"}]}
    assert "req_1" in problem(client.post("/ingest/conversation", json=other), 409)["detail"]
    replaced = client.post("/ingest/conversation", params={"replace": "true"}, json=other)
    assert (replaced.status_code, replaced.json()["status"]) == (200, "replaced")
    assert client.get("/requests/req_1").json()["turns"][0]["assistant"] == "Something else"


def test_a_request_shows_its_turns_its_flow_and_the_context_it_had(any_door: Door, everything: dict[str, Any]) -> None:
    client = any_door.client
    made = record(client, everything)
    shown = client.get("/requests/req_1").json()
    assert (shown["conversation_id"], shown["status"], len(shown["turns"])) == (made["conversation_id"], "complete", 1)
    flow = client.get("/requests/req_1/flow").json()
    assert [step["role"] for step in flow["steps"]] == ["system", "user", "assistant", "assistant"]
    calls = [call for step in flow["steps"] for call in step["tool_calls"]]
    assert {call["tool_name"]: len(call["changes"]) for call in calls} == {"cat": 0, "update_textdoc": 1}
    context = client.get("/requests/req_1/context").json()
    assert [file["file_path"] for file in context["context_files"]] == ["src/auth.py", "docs/errors.md"]
    for path in ("", "/flow", "/context"):
        problem(client.get(f"/requests/unknown{path}"), 404)


def test_of_json_lines_the_good_ones_are_kept_and_the_bad_ones_reported(any_door: Door) -> None:
    good = [json.dumps(asked(n, f"c{n}")).encode() for n in range(3)]
    bad = [b"not json", b'{"messages": 7}', b"\xff\xfe", b"[1]"]
    answer = any_door.client.post("/ingest/conversation", **as_lines([good[0], bad[0], b"", good[1], *bad[1:], good[2]]))
    assert answer.status_code == 207
    told = answer.json()
    assert (told["recorded"], told["bad"]) == (3, 4)
    assert [one["line"] for one in told["results"]] == list(range(1, 8))
    assert [one["status"] for one in told["results"]] == ["created", 422, "created", 422, 422, 422, "created"]
    assert all(one["error"] for one in told["results"] if isinstance(one["status"], int))
    again = any_door.client.post("/ingest/conversation", **as_lines(good))
    assert (again.status_code, {one["status"] for one in again.json()["results"]}) == (200, {"unchanged"})


def test_hundreds_of_requests_may_come_in_one_batch(door: Door) -> None:
    answer = door.client.post("/ingest/conversation", **as_lines([json.dumps(asked(n, f"c{n % 7}")).encode() for n in range(500)]))
    assert (answer.status_code, answer.json()["recorded"]) == (200, 500)
    assert door.client.get("/stats").json()["turns"] == 500


def test_a_payload_may_be_marked_as_something_else_than_json(door: Door) -> None:
    body = json.dumps(asked(1)).encode()
    for kind, status in (("text/plain", 201), ("application/json; charset=utf-8", 200), ("", 200)):
        assert door.client.post("/ingest/conversation", content=body, headers={"Content-Type": kind}).status_code == status


@pytest.mark.parametrize(
    "kind", ["x-ndjson", "ndjson", "jsonl", "x-jsonl", "jsonlines", "x-jsonlines", "json-lines", "NDJSON; charset=utf-8"]
)
def test_json_lines_are_known_under_every_name_that_senders_have_for_them(door: Door, kind: str) -> None:
    lines = b"\n".join(json.dumps(asked(n)).encode() for n in range(2))
    answer = door.client.post("/ingest/conversation", content=lines, headers={"Content-Type": f"application/{kind}"})
    assert (answer.status_code, answer.json()["recorded"]) == (200, 2)


def test_json_lines_sent_as_something_else_are_told_how_to_be_sent(door: Door) -> None:
    lines = b"\n".join(json.dumps(asked(n)).encode() for n in range(2))
    for kind in ("text/plain", "application/json", ""):
        told = problem(door.client.post("/ingest/conversation", content=lines, headers={"Content-Type": kind}), 422)["detail"]
        assert "application/x-ndjson" in told
        assert (kind or "nothing") in told
        assert "Extra data" not in told
    told = problem(door.client.post("/ingest/conversation", content=b"messages: []", headers={"Content-Type": "text/yaml"}), 422)["detail"]
    assert {"text/yaml", "application/json", "application/x-ndjson"} <= set(re.findall(r"[a-z]+/[a-z-]+", told))
    told = problem(door.client.post("/ingest/conversation", content=b'{"messages":\n', headers={"Content-Type": "application/json"}), 422)
    assert "application/" not in told["detail"]


# Streams


def test_a_request_comes_in_pieces_and_is_finalized(any_door: Door) -> None:
    client = any_door.client
    to = "/requests/req_2"
    begun = client.post(f"{to}/start", json={"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    assert (begun.status_code, begun.json()["status"]) == (201, "created")
    assert client.post(f"{to}/start", json={"project_id": "shop"}).status_code == 200
    assert client.get(to).json()["status"] == "open"
    pieces: dict[str, Any] = {
        "tool-results": {"tool_results": [{"tool_call_id": "t1", "content": "done", "success": True, "duration_ms": 41}]},
        "messages": {"messages": [{"role": "user", "content": "Fix the login bug", "sequence": 0}]},
        "context": {"context_files": [{"file_path": "src/auth.py", "usefulness": 0.92}]},
        "model-response": {"model": "m", "finish_reason": "stop"},
        "tool-calls": {"tool_calls": [{"id": "t1", "name": "update_textdoc", "message_sequence": 1}]},
        "code-changes": {"code_changes": [{"file_path": "src/auth.py", "tool_call_id": "t1"}]},
        "checkpoints": {"checkpoints": [{"git_hash": "ae09"}]},
    }
    for piece, body in [*pieces.items(), ("messages", {"messages": [{"role": "assistant", "content": "Done", "sequence": 1}]})]:
        answer = client.post(f"{to}/{piece}", json=body)
        assert (answer.status_code, answer.json()["status"]) == (200, "replaced"), piece
        assert client.post(f"{to}/{piece}", json=body).json()["status"] == "unchanged", piece
    problem(client.post(f"{to}/messages", json={"messages": "none"}), 422)
    problem(client.post(f"{to}/finalize", json={"status": "perhaps"}), 422)
    problem(client.post(f"{to}/finalize", json=[]), 422)
    assert client.post(f"{to}/finalize").status_code == 200
    assert client.post(f"{to}/finalize", json={"status": "failed"}).json()["status"] == "unchanged"
    assert client.post(f"{to}/messages", json=pieces["messages"]).json()["status"] == "unchanged", "sent once more, it says nothing new"
    problem(client.post(f"{to}/messages", json={"messages": [{"role": "user", "content": "and more", "sequence": 9}]}), 409)
    problem(client.post(f"{to}/start", json={"project_id": "shop"}), 409)
    shown = client.get(to).json()
    turn = shown["turns"][0]
    assert (shown["status"], turn["user"], turn["assistant"], turn["model"]) == ("complete", "Fix the login bug", "Done", "m")
    assert (turn["tool_calls"][0]["status"], turn["changes"][0]["tool_call_id"]) == ("success", "t1")
    assert client.delete(to).json() == {"request_id": "req_2", "turns": 1}
    for answer in (client.get(to), client.delete(to), client.post(f"{to}/messages", json={}), client.post(f"{to}/finalize")):
        problem(answer, 404)


def test_a_request_id_may_have_slashes_and_spaces(door: Door) -> None:
    name = "org%2Frepo%20%E2%9C%93%2F1"
    assert door.client.post(f"/requests/{name}/start", json={"project_id": "shop"}).status_code == 201
    assert door.client.post(f"/requests/{name}/messages", json={"role": "user", "content": "hello"}).status_code == 200
    assert door.client.post(f"/requests/{name}/finalize").json()["request_id"] == "org/repo ✓/1"
    assert door.client.get(f"/requests/{name}").json()["turns"][0]["user"] == "hello"
    assert door.client.get(f"/requests/{name}/flow").json()["request_id"] == "org/repo ✓/1"
    assert door.client.delete(f"/requests/{name}").status_code == 200


def test_what_is_never_finalized_is_closed_by_the_server_also_in_a_workspace_nobody_asks_for(tmp_path: Path) -> None:
    with served(tmp_path / "server", server={"open_seconds_max": 0.2}) as serving:
        with serving.client(serving.token("left")) as client:
            client.post("/requests/r/start", json={"project_id": "shop"})
            client.post("/requests/r/messages", json={"role": "user", "content": "left alone"})
        serving.kill()
        serving.start()
        log = serving.store.removeprefix("sqlite://")

        def is_closed() -> bool:
            import asyncio

            async def status() -> str:
                async with await Memory.open(log, workspace="left") as memory:
                    return (await memory.flow("r")).status

            return asyncio.run(status()) == "failed"

        eventually(is_closed)


# Conversations


def test_conversations_are_created_listed_changed_and_deleted(any_door: Door) -> None:
    client = any_door.client
    made = client.post("/conversations", json={"project": "shop", "title": "Fix login", "tags": ["auth"], "external_id": "e1"})
    assert made.status_code == 201
    own = f"/conversations/{made.json()['id']}"
    assert client.post("/conversations", json={"project": "shop", "external_id": "e1"}).json()["id"] == made.json()["id"]
    assert client.get(own).json()["title"] == "Fix login"
    changed = client.patch(own, json={"title": "Fix the login", "status": "archived"}).json()
    assert (changed["title"], changed["status"], changed["tags"]) == ("Fix the login", "archived", ["auth"])
    for query, count in (({}, 1), ({"status": "active"}, 0), ({"tag": ["auth", "other"]}, 1), ({"project": "none"}, 0)):
        assert len(client.get("/conversations", params=query).json()["items"]) == count
    assert client.delete(own).json() == {"conversations": 1}
    for answer in (client.get(own), client.delete(own), client.patch(own, json={}), client.get(f"{own}/turns"), client.get(f"{own}/files")):
        problem(answer, 404)


def test_a_conversation_shows_its_turns_messages_calls_files_and_summaries(any_door: Door, everything: dict[str, Any]) -> None:
    client = any_door.client
    own = f"/conversations/{record(client, everything)['conversation_id']}"
    assert [turn["user"] for turn in client.get(f"{own}/turns").json()["items"]] == ["Fix the login bug"]
    messages = client.get(f"{own}/messages", params={"reasoning": "true"}).json()["items"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "assistant"]
    assert "unchecked" in messages[2]["reasoning"]
    assert client.get(f"{own}/messages").json()["items"][2]["reasoning"] is None
    calls = client.get(f"{own}/tool-calls").json()["items"]
    assert [call["tool_name"] for call in calls] == ["update_textdoc", "cat"]
    assert [call["tool_name"] for call in client.get(f"{own}/tool-calls", params={"success": "false"}).json()["items"]] == ["cat"]
    assert [call["tool_name"] for call in client.get(f"{own}/tool-calls", params={"tool_name": "cat"}).json()["items"]] == ["cat"]
    assert {file["path"] for file in client.get(f"{own}/files").json()["items"]} == {"src/auth.py", "README.md"}
    assert client.get(f"{own}/summaries").json() == {"items": [], "next_cursor": None}
    assert "items" in client.post(f"{own}/summarize").json()


def test_a_conversation_is_exported_imported_and_branched(any_door: Door, everything: dict[str, Any]) -> None:
    client = any_door.client
    record(client, everything)
    made = record(client, {**asked(2), "chat_meta": everything["chat_meta"]})
    own = f"/conversations/{made['conversation_id']}"
    document = client.get(f"{own}/export")
    assert document.headers["content-type"] == "application/json"
    assert client.get(f"{own}/export", params={"format": "markdown"}).headers["content-type"].startswith("text/markdown")
    problem(client.get(f"{own}/export", params={"format": "pdf"}), 422)
    assert client.post("/conversations/import", content=document.content).json()["id"] == made["conversation_id"]
    copied = client.post("/conversations/import", params={"new_id": "true"}, content=document.content)
    assert copied.status_code == 201
    assert copied.json()["id"] != made["conversation_id"]
    problem(client.post("/conversations/import", json={"format": "other"}), 422)
    branch = client.post(f"{own}/branch", json={"from_turn": 0, "title": "another way"})
    assert (branch.status_code, branch.json()["branch_of"], branch.json()["turn_count"]) == (201, made["conversation_id"], 1)
    problem(client.post(f"{own}/branch", json={"from_turn": 9}), 422)
    forgotten = client.delete(own, params={"forget": "true"}).json()
    assert (forgotten["conversations"], forgotten["turns"]) == (1, 2)
    assert client.get(f"/conversations/{branch.json()['id']}").json()["turn_count"] == 0


# Recall and the audit


def test_memory_is_searched_composed_and_compared(any_door: Door, everything: dict[str, Any]) -> None:
    client = any_door.client
    made = record(client, everything)
    found = client.post("/search", json={"query": "login bug", "project": "shop"}).json()
    assert (found["hits"][0]["conversation_id"], found["hits"][0]["question"]) == (made["conversation_id"], "Fix the login bug")
    assert found["retrievers"]["terms"] == "ran"
    context = client.post("/context", json={"prompt": "Did we fix the login?", "conversation": made["conversation_id"]}).json()
    assert "null check" in context["rendered"]
    assert context["char_count"] <= context["budget_chars"]
    assert context["sections"]
    similar = client.post("/similar", json={"query": "login bug", "semantic": False}).json()["items"]
    assert similar[0]["conversation"]["id"] == made["conversation_id"]
    for path, body in (("/search", {}), ("/search", {"query": 7}), ("/context", {"prompt": "x", "strategy": "other"}), ("/similar", [])):
        problem(client.post(path, json=body), 422)
    assert "qeury" in problem(client.post("/search", json={"query": "x", "qeury": "y"}), 422)["detail"]


def test_a_context_takes_any_messages_the_agent_holds(door: Door) -> None:
    messages = b'[{"role": "user", "content": "a \\ud800 b"}, {"role": "\\udfff"}, {"content": [1, {"x": 1e999}]}, {}]'
    said = b'{"prompt": "x", "messages": ' + messages + b"}"
    answer = door.client.post("/context", content=said, headers={"Content-Type": "application/json"})
    assert answer.status_code == 200, answer.text
    assert "a ? b" in answer.json()["rendered"] or "a \ufffd b" in answer.json()["rendered"]


def test_the_audit_answers_for_a_project(any_door: Door, everything: dict[str, Any]) -> None:
    client = any_door.client
    record(client, everything)
    assert [project["external_id"] for project in client.get("/projects").json()["items"]] == ["shop"]
    usage = client.get("/projects/shop/files/usage", params={"path": "src/auth.py"}).json()
    assert (usage["count"], usage["average_usefulness"]) == (1, 0.92)
    assert client.get("/projects/shop/files/usage").status_code == 200
    tools = client.get("/projects/shop/tools", params={"days": 100_000}).json()["items"]
    assert {tool["tool_name"]: tool["failures"] for tool in tools} == {"cat": 1, "update_textdoc": 0}
    assert [one["tool_name"] for one in client.get("/projects/shop/tools", params={"tool": "cat"}).json()["items"]] == ["cat"]
    assert len(client.get("/projects/shop/checkpoints").json()["items"]) == 1
    why = client.get("/projects/shop/why", params={"path": "src/auth.py", "line": 31}).json()
    assert (why["changes"][0]["asked"], why["changes"][0]["request_id"]) == ("Fix the login bug", "req_1")
    for path in ("files/usage", "tools", "checkpoints", "why?path=a"):
        problem(client.get(f"/projects/none/{path}"), 404)
    problem(client.get("/projects/shop/why"), 422)
    problem(client.get("/projects/shop/tools", params={"days": -1}), 422)


def test_a_content_is_verified_against_its_hash(any_door: Door, everything: dict[str, Any]) -> None:
    client = any_door.client
    record(client, everything)
    message = client.get("/requests/req_1").json()["turns"][0]["messages"][1]
    assert client.post("/verify", json={"id": message["id"], "content": "Fix the login bug"}).json()["status"] == "matches"
    assert client.post("/verify", json={"id": message["id"], "content": "Fix the logout bug"}).json()["status"] == "differs"
    assert client.post("/verify", json={"id": "none", "content": "x"}).json()["status"] == "unknown"


# The server itself


def test_health_is_open_and_the_rest_needs_a_token(any_door: Door) -> None:
    with any_door.serving.client(None) as nobody:
        assert nobody.get("/health").json()["status"] == "ok"
        for path in ("/ready", "/metrics", "/openapi.json", "/conversations", "/"):
            assert problem(nobody.get(path), 401)
    assert any_door.client.get("/ready").json() == {"status": "ready"}
    assert any_door.client.get("/stats").json()["workspace"] == any_door.workspace


def test_a_reader_may_ask_and_not_write(door: Door) -> None:
    record(door.client, asked(1))
    with door.as_role("read") as reader:
        assert reader.post("/search", json={"query": "question"}).json()["hits"]
        assert reader.get("/requests/req_1").status_code == 200
        problem(reader.post("/ingest/conversation", json=asked(2)), 403)
        problem(reader.post("/requests/r/start", json={}), 403)
        problem(reader.delete("/requests/req_1"), 403)


def test_every_wrong_turn_is_answered_with_a_problem_document(door: Door) -> None:
    client = door.client
    problem(client.get("/nowhere"), 404)
    problem(client.get("/"), 404)
    assert problem(client.put("/search"), 405)
    assert client.put("/search").headers["allow"] == "POST"
    for body in (b"", b"{", b"\xff", b"[" * 200_000, b"NaN", b'{"messages": []}', b'{"messages": {}}', b"null"):
        problem(client.post("/ingest/conversation", content=body), 422)
    for body, status in ((b"", 422), (b"{", 422), (b"[" * 200_000, 400), (b'{"query": "x", "\\ud800": 1}', 422)):
        problem(client.post("/search", content=body, headers={"Content-Type": "application/json"}), status)
    problem(client.post("/ingest/conversation?replace=perhaps", json=asked(1)), 422)
    problem(client.post("/ingest/conversation?on_edit=other", json=asked(1)), 422)
    problem(client.post(f"/requests/{'x' * 201}/start", json={}), 422)


def test_lists_are_paged_by_cursor_and_give_everything_once(door: Door) -> None:
    client = door.client
    for n in range(7):
        record(client, asked(n))
        client.post("/conversations", json={"project": "shop", "title": f"empty {n}"})
    own = record(client, asked(7))["conversation_id"]

    def pages(path: str, limit: int) -> list[list[Any]]:
        found: list[list[Any]] = []
        cursor: dict[str, str] = {}
        while True:
            page = client.get(path, params={"limit": str(limit), **cursor}).json()
            found.append(page["items"])
            assert len(page["items"]) <= limit
            if page["next_cursor"] is None:
                return found
            cursor = {"cursor": page["next_cursor"]}

    assert [len(page) for page in pages("/conversations", 3)] == [3, 3, 2]
    assert len({info["id"] for page in pages("/conversations", 3) for info in page}) == 8
    assert [turn["index"] for page in pages(f"/conversations/{own}/turns", 3) for turn in page] == list(range(8))
    said = [[message["sequence"] for message in page] for page in pages(f"/conversations/{own}/messages", 6)]
    assert said == [[10, 11, 12, 13, 14, 15], [4, 5, 6, 7, 8, 9], [0, 1, 2, 3]]
    calls = [call["tool_call_id"] for page in pages(f"/conversations/{own}/tool-calls", 3) for call in page]
    assert calls == [f"t{n}" for n in range(7, -1, -1)]
    for cursor in ("", "x", "YXQ6LTU=", "YXQ6MTIzNDU2Nzg5MDEyMzQ1Ng==", "é", "MTI="):
        problem(client.get("/conversations", params={"cursor": cursor}), 422)


def test_pages_of_turns_go_on_after_those_that_were_forgotten(door: Door) -> None:
    client = door.client
    own = {record(client, asked(n))["conversation_id"] for n in range(6)}.pop()
    for n in (1, 2):
        client.delete(f"/requests/req_{n}")
    first = client.get(f"/conversations/{own}/turns", params={"limit": 2}).json()
    assert [turn["index"] for turn in first["items"]] == [0, 3]
    second = client.get(f"/conversations/{own}/turns", params={"limit": 2, "cursor": first["next_cursor"]}).json()
    assert [turn["index"] for turn in second["items"]] == [4, 5]
    assert second["next_cursor"] is None


def test_the_openapi_document_has_every_route_and_an_example_for_every_body(door: Door) -> None:
    document = door.client.get("/openapi.json").json()
    assert document["openapi"].startswith("3.")
    named = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    request = "/requests/{request_id}"
    pieces = ("start", "context", "messages", "model-response", "tool-calls", "tool-results", "code-changes", "checkpoints", "finalize")
    conversation = "/conversations/{conversation_id}"
    promised = {
        "POST /ingest/conversation", *(f"POST {request}/{piece}" for piece in pieces), f"DELETE {request}",
        f"GET {request}", f"GET {request}/flow", f"GET {request}/context",
        "GET /conversations", "POST /conversations", f"GET {conversation}", f"PATCH {conversation}", f"DELETE {conversation}",
        *(f"GET {conversation}/{part}" for part in ("turns", "messages", "tool-calls", "summaries", "files", "export")),
        f"POST {conversation}/branch", f"POST {conversation}/summarize", "POST /conversations/import",
        "POST /search", "POST /context", "POST /similar", "GET /projects",
        *(f"GET /projects/{{project_id}}/{part}" for part in ("files/usage", "tools", "checkpoints", "why")),
        "POST /verify", "GET /health", "GET /ready", "GET /metrics",
    }  # fmt: skip
    assert promised <= named
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content is None:
                continue
            schema = content.get("schema", {})
            named_schema = document["components"]["schemas"].get(schema.get("$ref", "").rpartition("/")[2], {})
            assert {"example", "examples"} & {*content, *named_schema}, f"{method} {path}"


def test_the_examples_of_the_document_can_be_sent_as_they_are(door: Door) -> None:
    document = door.client.get("/openapi.json").json()
    contents = {
        path: methods["post"]["requestBody"]["content"]
        for path, methods in document["paths"].items()
        if path.startswith(("/ingest", "/requests")) and "post" in methods
    }
    bodies = {path: content["application/json"] for path, content in contents.items()}
    assert len(bodies) == 10
    assert door.client.post("/ingest/conversation", json=bodies.pop("/ingest/conversation")["example"]).status_code == 201
    lines = contents["/ingest/conversation"]["application/x-ndjson"]["example"]
    sent = door.client.post("/ingest/conversation", content=lines, headers={"Content-Type": "application/x-ndjson"})
    assert (sent.status_code, sent.json()["recorded"]) == (200, 2)
    first, last = "/requests/{request_id}/start", "/requests/{request_id}/finalize"
    for path in (first, *(path for path in bodies if path not in {first, last}), last):
        named = bodies[path].get("examples", {"add": {"value": bodies[path].get("example")}})
        statuses = [door.client.post(path.format(request_id="req_9"), json=one["value"]).json()["status"] for one in named.values()]
        assert set(statuses) <= {"created", "replaced", "unchanged"}, path
    shown = door.client.get("/requests/req_9").json()
    assert (shown["status"], shown["turns"][0]["assistant"]) == ("complete", "I added a null check and a test")
    assert [len(shown["turns"][0][part]) for part in ("tool_calls", "context_files", "changes", "checkpoints")] == [1, 1, 1, 1]


_LABEL = r'[a-z_]+="[^"\\\n]*"'
_SAMPLE = re.compile(rf"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{{({_LABEL}(?:,{_LABEL})*)\}})? (-?[0-9.]+(?:e[+-]?[0-9]+)?)")


def test_metrics_are_what_prometheus_reads(door: Door) -> None:
    for n in range(3):
        record(door.client, asked(n))
    door.client.post("/search", json={"query": "question"})
    answer = door.client.get("/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert answer.text.endswith("\n")
    types: dict[str, str] = {}
    values: dict[str, float] = {}
    for line in answer.text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in types
            types[name] = kind
            continue
        match = _SAMPLE.fullmatch(line)
        assert match is not None, line
        last = list(types)[-1]
        of_last = {f"{last}_sum", f"{last}_count"} if types[last] == "summary" else {last}
        assert match[1] in of_last, "samples follow their type"
        values[match[0].rpartition(" ")[0]] = float(match[3])
    assert (values["recollect_turns"], values["recollect_messages"], values["recollect_record_total"]) == (3, 6, 3)
    assert (types["recollect_turns"], types["recollect_record_total"]) == ("gauge", "counter")
    assert values["recollect_size_bytes"] == door.client.get("/stats").json()["size_bytes"]
    assert values['recollect_jobs{state="ready"}'] > 0
    posted = 'method="POST",route="/ingest/conversation"'
    assert values[f'recollect_http_requests_total{{{posted},status="201"}}'] == 3
    assert values[f"recollect_http_request_duration_seconds_count{{{posted}}}"] == 3
    assert values[f"recollect_http_request_duration_seconds_sum{{{posted}}}"] > 0
    assert (types["recollect_http_requests_total"], values["recollect_http_throttled_total"]) == ("counter", 0)


def test_metrics_of_http_name_routes_and_nothing_of_another_workspace(tmp_path: Path) -> None:
    with served(tmp_path / "server", server={"burst": 3, "per_second": 0.001}) as serving:
        with serving.client(serving.token("theirs")) as other:
            other.get("/ready")
        with serving.client(None) as nobody:
            nobody.get("/canary-1")
        with serving.client(serving.token("mine")) as client:
            client.get("/requests/canary-2/flow")
            client.get("/canary-3")
            client.request("BREW", "/canary-4")
            client.get("/requests/canary-5")
            assert [client.get("/stats").status_code for _ in range(2)] == [429, 429]
        eventually(lambda: serving.logged.count("\n") >= 8)
        with serving.client(serving.token("mine")) as client:
            text = client.get("/metrics").text
    assert "canary" not in text
    counted = dict(re.findall(r"recollect_http_requests_total\{(.*)\} (.*)", text))
    assert counted == {
        'method="GET",route="/requests/{request_id}/flow",status="404"': "1",
        'method="GET",route="/requests/{request_id}",status="404"': "1",
        'method="GET",route="none",status="401"': "1",
        'method="GET",route="none",status="404"': "1",
        'method="GET",route="none",status="429"': "2",
        'method="other",route="none",status="405"': "1",
    }
    assert "recollect_http_throttled_total 2.0\n" in text


def test_too_many_requests_are_told_when_to_come_again(tmp_path: Path) -> None:
    with served(tmp_path / "server", server={"burst": 3, "per_second": 0.01}) as serving, serving.client(serving.token()) as client:
        answers = [client.post("/ingest/conversation", json=asked(n)) for n in range(6)]
        assert [answer.status_code for answer in answers] == [201, 201, 201, 429, 429, 429]
        for answer in answers[3:]:
            problem(answer, 429)
            assert int(answer.headers["retry-after"]) >= 1


def test_the_first_start_prints_one_address_with_a_key_that_opens_once(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "server")
    try:
        serving.start()
        assert serving.printed.count("\n") == 1
        address = serving.printed.split()[3]
        key = address.partition("/?key=")[2]
        assert key
        with serving.client(None) as client:
            problem(client.get("/?key=wrong"), 401)
            given = client.get(address).json()
            assert (given["role"], given["workspace"]) == ("admin", "default")
            problem(client.get(address), 401)
        with serving.client(given["token"]) as client:
            assert client.post("/ingest/conversation", json=asked(1)).status_code == 201
        assert key not in serving.logged + serving.audit.read_text()
        assert given["token"] not in serving.logged + serving.audit.read_text() + (tmp_path / "server" / "tokens.json").read_text()
        serving.stop()
        serving.start()
        assert "key" not in serving.printed
        with serving.client(given["token"]) as client:
            assert client.get("/requests/req_1").status_code == 200
    finally:
        serving.kill()


def test_logs_have_a_line_for_each_request_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    canaries = [f"canary{n}" for n in range(5)]
    with served(tmp_path / "server") as serving, serving.client(serving.token()) as client:
        answers = [
            client.post("/ingest/conversation", json={**asked(1), "messages": [{"role": "user", "content": canaries[0]}]}),
            client.post("/search", json={"query": canaries[1]}, headers={"X-Request-Id": "mine-1"}),
            client.get("/projects/shop/why", params={"path": canaries[2], "text": canaries[3]}),
            client.post("/ingest/conversation", content=canaries[4].encode()),
            client.get("/requests/unknown"),
        ]
        assert [answer.status_code for answer in answers] == [201, 200, 200, 422, 404]
        eventually(lambda: serving.logged.count("\n") >= len(answers))
        lines = [json.loads(line) for line in serving.logged.splitlines()]
        assert [line["request_id"] for line in lines] == [answer.headers["x-request-id"] for answer in answers]
        assert lines[1]["request_id"] == "mine-1"
        assert [line["status"] for line in lines] == [201, 200, 200, 422, 404]
        assert all(line["duration_ms"] > 0 and line["token"] and line["workspace"] == "default" for line in lines)
        assert serving.stop() == 0
        written = serving.logged + serving.audit.read_text() + serving.printed
        assert not [canary for canary in canaries if canary in written]


def test_a_client_that_goes_away_in_the_middle_is_no_failure_of_the_server(tmp_path: Path) -> None:
    routes = ("/ingest/conversation", "/search", "/requests/{request_id}/start", "/conversations/import")
    with served(tmp_path / "server") as serving:
        token, port = serving.token(), int(serving.address.rpartition(":")[2])
        for route in routes:
            path = route.replace("{request_id}", "r")
            head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\n"
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(f'{head}Content-Length: 1000\r\n\r\n{{"messages": ['.encode())
        eventually(lambda: serving.logged.count("\n") >= len(routes))
        lines = [json.loads(line) for line in serving.logged.splitlines()]
        assert sorted((line["path"], line["status"]) for line in lines) == sorted((route, 499) for route in routes)
        assert not [line for line in lines if "error" in line]
        assert {json.loads(line)["status"] for line in serving.audit.read_text().splitlines()} == {499}
        with serving.client(token) as client:
            assert client.get("/stats").json()["turns"] == 0


# In this process


def test_answers_leave_at_once_and_a_port_that_is_taken_is_said_so(tmp_path: Path) -> None:
    """See that asyncio knows the socket for TCP: else it leaves Nagle's delay on, and every answer takes 40 ms."""
    own = {"tokens": str(tmp_path / "tokens.json"), "audit_log": str(tmp_path / "audit.jsonl")}
    with HttpServer(settings_from({"store": "unused", "server": {**own, "port": 0}})).listening() as taken:
        assert taken.proto == socket.IPPROTO_TCP
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(StoreUnavailableError, match=f"cannot listen on 127.0.0.1:{port}"):
            HttpServer(settings_from({"store": "unused", "server": {**own, "port": port}})).listening()


@pytest.mark.parametrize("port", [-1, 65_536, 99_999])
def test_a_port_that_is_none_is_refused_with_a_sentence(tmp_path: Path, port: int) -> None:
    settings = Settings(store="unused", server=Server(port=port, tokens=str(tmp_path / "tokens.json")))
    with pytest.raises(ConfigError, match=f"not {port}"):
        HttpServer(settings)


def test_a_name_that_nobody_could_look_up_is_refused_with_a_sentence(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    tokens.create("default", "read", None, START)
    with pytest.raises(ConfigError, match="no address to listen on"):
        HttpServer(Settings(store="unused", server=Server(host="a..b", port=0, tokens=str(tokens.path)))).listening()


def test_a_server_for_every_address_prints_one_that_works_and_the_names_it_answers_to(tmp_path: Path) -> None:
    with served(tmp_path / "server", server={"host": "0.0.0.0", "hosts": ["memory.example"]}) as serving:  # noqa: S104  what is tested
        assert serving.address.startswith("http://127.0.0.1:")
        with serving.client(serving.token()) as client:
            assert client.get("/ready").status_code == 200
            assert client.get("/ready", headers={"Host": "memory.example"}).status_code == 200
            problem(client.get("/ready", headers={"Host": "0.0.0.0"}), 421)  # noqa: S104  asked for, not bound to
        assert "it answers to localhost, 127.0.0.1, [::1], memory.example as Host: name others under server.hosts" in serving.logged


def test_a_server_for_one_address_answers_to_it(tmp_path: Path) -> None:
    with served(tmp_path / "server", server={"host": "127.0.0.2"}) as serving, serving.client(serving.token()) as client:
        assert serving.address.startswith("http://127.0.0.2:")
        assert client.get("/ready").status_code == 200


class Inside:
    """The application behind its guard, asked without a network."""

    def __init__(self, folder: Path, clock: ManualClock) -> None:
        self.settings = settings_from({"store": f"sqlite://{folder / 'memory.db'}"})
        self.tokens = TokenFile(folder / "tokens.json")
        _, self.token = self.tokens.create("default", "write", None, START)
        self.clock = clock
        self.key = FirstKey.create(START, "default")
        self.lines: list[Any] = []

    async def ask(self, method: str, path: str, token: str | None = None, **options: Any) -> httpx.Response:
        workspaces = await Workspaces.open(self.settings, self.clock, CountedIds(), worker=False)
        guard = Guard(create_app(workspaces, self.tokens, self.clock), self.tokens, first_key=self.key, clock=self.clock)
        headers = {"Authorization": f"Bearer {token or self.token}"} if token != "" else {}
        try:
            transport = httpx.ASGITransport(guard)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
                return await client.request(method, path, **options)
        finally:
            await workspaces.close()


async def test_spans_name_the_route_and_tell_nothing_of_what_was_asked(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    inside = Inside(tmp_path, clock)
    parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    for path in ("/requests/canary/flow", "/projects/canary/tools", "/conversations/canary", "/canary", "/requests/canary%2Fcanary"):
        assert (await inside.ask("GET", path)).status_code == 404
    written = "".join(span.to_json() for span in exporter.get_finished_spans())
    assert (len(exporter.get_finished_spans()), "canary" in written, "{request_id}" in written) == (5, False, True)
    exporter.clear()
    assert (await inside.ask("POST", "/ingest/conversation", json=asked(1), headers=parent)).status_code == 201
    assert (await inside.ask("GET", "/projects/shop/why?path=canary.py&text=canary")).status_code == 200
    assert (await inside.ask("POST", "/search", json={"query": "canary"})).status_code == 200
    assert (await inside.ask("GET", f"/?key={inside.key.key}", token="")).status_code == 200
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["POST /ingest/conversation", "GET /projects/{project_id}/why", "POST /search", "GET /"]
    assert spans[0].context is not None
    assert f"{spans[0].context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
    written = "".join(span.to_json() for span in spans)
    assert "canary" not in written
    assert inside.key.key not in written
    assert [(span.attributes or {})["http.response.status_code"] for span in spans] == [201, 200, 200, 200]


async def test_what_nobody_foresaw_is_a_problem_document_without_a_trace(
    tmp_path: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*_: Any, **__: Any) -> None:
        msg = "the reason that nobody sees"
        raise RuntimeError(msg)

    monkeypatch.setattr(Memory, "search", broken)
    answer = await Inside(tmp_path, clock).ask("POST", "/search", json={"query": "x"})
    assert "reason" not in problem(answer, 500)["detail"]


class Collector(BaseHTTPRequestHandler):
    """Takes what an exporter of spans sends."""

    received: ClassVar[list[tuple[str, bytes]]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        type(self).received.append((self.path, gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, format: str, *_: Any) -> None:  # noqa: A002, ARG002  the name is the base class's
        return


def test_spans_reach_the_collector_that_the_environment_names(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "server")
    with HTTPServer(("127.0.0.1", 0), Collector) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        serving.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}"}
        try:
            with serving.start().client(serving.token()) as client:
                assert client.post("/ingest/conversation", json=asked(1)).status_code == 201
                assert client.get("/projects/shop/why?path=canary.py").status_code == 200
                assert client.get("/requests/canary").status_code == 404
            serving.stop()  # what is on its way is sent first
        finally:
            serving.kill()
            collector.shutdown()
    sent = b"".join(body for path, body in Collector.received if path == "/v1/traces")
    assert b"POST /ingest/conversation" in sent
    assert b"/projects/{project_id}/why" in sent
    assert b"/requests/{request_id}" in sent
    assert b"/projects/shop" not in sent
    assert b"canary" not in sent


def test_a_server_that_cannot_reach_its_exporter_serves_all_the_same(tmp_path: Path) -> None:
    serving = Serving(tmp_path / "server")
    serving.environment = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_TRACES_EXPORTER": "otlp"}
    try:
        with serving.start().client(serving.token()) as client:
            assert client.post("/ingest/conversation", json=asked(1)).status_code == 201
    finally:
        serving.kill()


def test_a_project_whose_id_has_slashes_is_asked_about_like_any_other(any_door: Door) -> None:
    project = "/home/me/shop"
    assert any_door.client.post("/ingest/conversation", json={**asked(1), "project_id": project}).status_code == 201
    for name in (project, project.replace("/", "%2F")):
        for route in ("tools", "checkpoints", "files/usage"):
            assert any_door.client.get(f"/projects/{name}/{route}").status_code == 200
    assert any_door.client.get("/projects/%2Fhome%2Fme%2Fshop/tools").json()["items"]


# The client


def test_the_client_sends_a_whole_request_a_live_one_and_one_of_summaries(any_door: Door) -> None:
    token = any_door.serving.token(any_door.workspace)
    with Client(any_door.serving.address, token) as client:
        for request_id, options in (("whole", {}), ("live", {"live": True}), ("short", {"summaries_only": True})):
            with client.request(request_id, project_id="shop", chat_id=request_id, mode="AGENT", **options) as request:
                request.system("You are helpful.")
                request.user("Fix login bug. " + "padding " * 40 + "canary of the content")
                request.context("src/auth.py", line_start=1, line_end=80, usefulness=0.92, source="vecdb")
                request.assistant("I'll add a null check", model="m", usage={"prompt_tokens": 900, "completion_tokens": 80})
                with request.tool_call("update_textdoc", {"path": "src/auth.py"}) as call:
                    call.result("1 file changed", success=True)
                with pytest.raises(ZeroDivisionError), request.tool_call("shell", {"command": "false"}):
                    _ = 1 / 0
                request.change("src/auth.py", change_type="updated", lines_added=3, lines_removed=1, tool_call_id=call.id)
                request.checkpoint(git_hash="ae09")
        assert client.flush(60)
        assert (client.failed, client.dropped) == ([], 0)
        for request_id in ("whole", "live", "short"):
            shown = any_door.client.get(f"/requests/{request_id}").json()
            turn = shown["turns"][0]
            assert (shown["status"], len(shown["turns"]), turn["model"], turn["chat_mode"]) == ("complete", 1, "m", "AGENT")
            assert [message["role"] for message in turn["messages"]] == ["system", "user", "assistant"]
            assert turn["messages"][2]["token_count"] == 80
            assert [(one["tool_name"], one["status"]) for one in turn["tool_calls"]] == [
                ("update_textdoc", "success"), ("shell", "failed")
            ]  # fmt: skip
            assert all(one["duration_ms"] is not None for one in turn["tool_calls"])
            assert (turn["context_files"][0]["usefulness"], turn["changes"][0]["lines_added"]) == (0.92, 3)
            assert turn["checkpoints"][0]["git_hash"] == "ae09"
            assert ("canary of the content" in json.dumps(shown)) == (request_id != "short")
            assert ("1 file changed" in json.dumps(shown)) == (request_id != "short")
        assert client.search("login bug", project="shop")["hits"]
        assert client.context_for("Did we fix login?", project="shop")["rendered"]
        assert client.why("shop", "src/auth.py")["changes"]


def fail(request: Request) -> None:
    request.user("Fix login")
    _ = 1 / 0


def test_what_fails_in_the_callers_work_is_recorded_as_failed(door: Door) -> None:
    token = door.serving.token(door.workspace)
    with Client(door.serving.address, token, raises=True) as client:
        for request_id, live in (("whole", False), ("live", True)):
            with pytest.raises(ZeroDivisionError), client.request(request_id, project_id="shop", live=live) as request:
                fail(request)
    assert [door.client.get(f"/requests/{name}").json()["status"] for name in ("whole", "live")] == ["failed", "failed"]


def blocks(language: str) -> list[str]:
    return [textwrap.dedent(found) for found in re.findall(rf"```{language}\n(.*?)```", DOCUMENT.read_text(), re.DOTALL)]


def test_what_the_guide_for_engines_shows_works(door: Door, monkeypatch: pytest.MonkeyPatch) -> None:
    token = door.serving.token(door.workspace)
    monkeypatch.setenv("RECOLLECT_TOKEN", token)
    least, everything_ = blocks("json")[:2]
    for text in (least, everything_):
        answer = door.client.post("/ingest/conversation", params={"replace": "true"}, json=json.loads(text))
        assert answer.is_success
        assert answer.json()["notes"] == {}
    lines, stream, corrected = (script.replace("http://127.0.0.1:8722", door.serving.address) for script in blocks("sh"))
    for script in (stream, corrected):
        assert subprocess.run(["/bin/sh", "-ec", script], check=True, capture_output=True).stdout
    assert door.client.get("/requests/req_2").json()["status"] == "complete"
    shown = door.client.get("/requests/req_6").json()
    assert (shown["status"], len(shown["turns"])) == ("complete", 1)
    turn = shown["turns"][0]
    assert [(one["role"], one["content"]) for one in turn["messages"]] == [("user", "Fix login bug"), ("assistant", "Done")]
    assert [one["tool_call_id"] for one in turn["tool_calls"]] == ["t1"]
    assert [one["file_path"] for one in turn["context_files"]] == ["src/auth.py"]
    told = json.loads(subprocess.run(["/bin/sh", "-ec", lines], check=True, capture_output=True).stdout)
    promised = json.loads(blocks("json")[2])
    assert [one.keys() for one in told["results"]] == [one.keys() for one in promised["results"]]
    assert [one["status"] for one in told["results"]] == [one["status"] for one in promised["results"]]
    assert {**told, "results": []} == {**promised, "results": []}
    names: dict[str, Any] = {}
    exec(blocks("python")[0], names)  # noqa: S102  our own document
    sent = names["send"](
        {"request_id": "req_20", "project_id": "shop", "messages": [{"role": "user", "content": "x"}]}, door.serving.address
    )
    assert sent["status"] == "created"
    exec(blocks("python")[1].replace("Client()", f"Client({door.serving.address!r})"), {})  # noqa: S102  our own document
    assert door.client.get("/requests/req_3").json()["turns"][0]["changes"]
