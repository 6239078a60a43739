"""What the OpenAPI document says is so: what a real server answers, and refuses, is what is declared, field by field."""

from __future__ import annotations

import copy
import json
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from jsonschema_rs import Draft202012Validator

from recollect import sync
from recollect.serve.http.answered import ANSWERS
from recollect.serve.http.guard import needed_role
from tests.serving import Serving, as_lines, served


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with served(tmp_path_factory.mktemp("openapi"), server={"body_bytes_max": 65_536}) as serving:
        yield serving


@pytest.fixture(scope="module")
def document(serving: Serving) -> dict[str, Any]:
    with serving.client(serving.token()) as client:
        return client.get("/openapi.json").json()


class Declared:
    """The document, and whether answers are as it says, with nothing that it does not say."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.seen: set[tuple[str, str]] = set()
        self._document = document
        self._components = copy.deepcopy(document["components"])
        for schema in self._components["schemas"].values():
            if "properties" in schema:
                schema["additionalProperties"] = False
        self._routes = [
            (method.upper(), path, re.compile(re.sub(r"\\{[a-z_]+\\}", "[^/]+", re.escape(path))))
            for path in document["paths"]
            for method in document["paths"][path]
        ]

    def validate(self, schema: dict[str, Any], value: Any) -> None:
        Draft202012Validator({**schema, "components": self._components}, validate_formats=True).validate(value)

    def check(self, answer: httpx.Response) -> None:
        answer.read()
        method, path = answer.request.method, answer.request.url.path
        route = next((own for verb, own, pattern in self._routes if verb == method and pattern.fullmatch(path)), None)
        if route is None:
            return
        told = self._document["paths"][route][method.lower()]["responses"]
        assert str(answer.status_code) in told, f"{method} {route} answers {answer.status_code}, which is not declared: {answer.text}"
        response = told[str(answer.status_code)]
        if "$ref" in response:
            response = self._document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        kind = answer.headers["content-type"].partition(";")[0]
        schema = response["content"][kind]["schema"]
        self.validate(schema, answer.json() if kind.endswith("json") else answer.text)
        assert {name for name, header in response.get("headers", {}).items() if header.get("required")} <= {
            name.title() for name in answer.headers
        }
        self.seen.add((f"{method} {route}", str(answer.status_code)))


def test_the_document_is_valid_and_every_reference_leads_somewhere(document: dict[str, Any]) -> None:
    schemathesis.openapi.from_dict(document).validate()
    assert document["openapi"].startswith("3.1")
    for kind, name in re.findall(r'"#/components/([a-zA-Z]+)/([^"]+)"', json.dumps(document)):
        assert name in document["components"][kind]
    assert "HTTPValidationError" not in json.dumps(document)


def test_every_route_but_health_says_which_token_it_needs(document: dict[str, Any]) -> None:
    assert document["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
    assert document["security"] == [{"token": []}]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            assert operation.get("security") == ([] if path == "/health" else None)
            role = "Needs no token" if path == "/health" else f"a token of the role `{needed_role(method.upper(), path)}`"
            assert role in operation["description"]
            assert ("401" in operation["responses"]) == (path != "/health")


def test_every_answer_has_a_schema_and_every_example_is_one(document: dict[str, Any]) -> None:
    declared = Declared(document)
    routes = {f"{method.upper()} {path}" for path, methods in document["paths"].items() for method in methods}
    assert routes == set(ANSWERS)
    operations = [operation for methods in document["paths"].values() for operation in methods.values()]
    responses = [response for one in operations for response in one["responses"].values() if "$ref" not in response]
    contents = [content for one in [*responses, *document["components"]["responses"].values()] for content in one["content"].values()]
    assert all(content["schema"] for content in contents)
    contents += [one["requestBody"]["content"]["application/json"] for one in operations if "requestBody" in one]
    examples = 0
    for content in contents:
        given = [content["example"]] if "example" in content else [one["value"] for one in content.get("examples", {}).values()]
        for example in given:
            declared.validate(content["schema"], example)
            examples += 1
    for name, schema in document["components"]["schemas"].items():
        if "example" in schema:
            declared.validate({"$ref": f"#/components/schemas/{name}"}, schema["example"])
            examples += 1
    assert examples > 70


def test_what_a_server_answers_is_what_is_declared(serving: Serving, document: dict[str, Any], everything: dict[str, Any]) -> None:
    declared = Declared(document)
    with serving.client(serving.token("told", "admin"), event_hooks={"response": [declared.check]}) as client:
        conversation = _recorded(client, everything)
        with sync.Memory.open(serving.store, workspace="told") as memory:
            memory.distill()
            memory.analyze([conversation])
        _stream(client)
        _ask(client, conversation)
        _refuse(client, conversation)
    with serving.client(None, event_hooks={"response": [declared.check]}) as nobody:
        nobody.get("/stats")
        nobody.get("/health")
        nobody.get("/health", headers={"Host": "evil.example"})
    with serving.client(serving.token("told", "read"), event_hooks={"response": [declared.check]}) as reader:
        reader.post("/ingest/conversation", json=everything)
    succeeded = {route for route, status in declared.seen if status.startswith("2")}
    assert succeeded == set(ANSWERS), "every route was seen to answer"
    assert {status for _, status in declared.seen} >= {"200", "201", "207", "401", "403", "404", "409", "413", "421", "422"}


def _recorded(client: httpx.Client, everything: dict[str, Any]) -> str:
    """Send requests whole and in lines, enough to be summarised; return the conversation."""
    made = client.post("/ingest/conversation", json=everything).json()["conversation_id"]
    client.post("/ingest/conversation", json=everything)
    client.post("/ingest/conversation", json={**everything, "messages": everything["messages"][1:2]})
    told = {"role": "assistant", "content": "An answer about the login token that goes on for a while. " * 5}
    lines = [
        json.dumps({**{name: everything[name] for name in ("project_id", "chat_meta")}, "request_id": f"line_{n}",
                    "messages": [{"role": "user", "content": f"login question {n}"}, told]}).encode()
        for n in range(12)
    ]  # fmt: skip
    client.post("/ingest/conversation", **as_lines([*lines, b"none"]))
    client.post("/ingest/conversation", **as_lines(lines))
    return str(made)


def _stream(client: httpx.Client) -> None:
    for _ in range(2):
        client.post("/requests/s/start", json={"project_id": "shop"})
    client.get("/requests/s")
    for piece, body in (
        ("messages", {"messages": [{"role": "user", "content": "Fix it", "sequence": 0}]}),
        ("context", {"context_files": [{"file_path": "a.py"}]}),
        ("model-response", {"model": "m"}),
        ("tool-calls", {"tool_calls": [{"id": "t", "name": "cat"}]}),
        ("tool-results", {"tool_results": [{"tool_call_id": "t", "content": "x"}]}),
        ("code-changes", {"code_changes": [{"file_path": "a.py", "tool_call_id": "t"}]}),
        ("checkpoints", {"checkpoints": [{"git_hash": "ae09"}]}),
        ("finalize", {}),
    ):
        client.post(f"/requests/s/{piece}", json=body)
    client.post("/requests/s/messages", json={"messages": []})
    client.post("/requests/none/messages", json={"messages": []})
    client.delete("/requests/s")


def _ask(client: httpx.Client, conversation: str) -> None:
    for path in ("", "/flow", "/context"):
        client.get(f"/requests/req_1{path}")
    own = f"/conversations/{conversation}"
    for path in ("", "/turns", "/messages?reasoning=true", "/tool-calls", "/summaries", "/insights", "/files", "/export?format=markdown"):
        client.get(f"{own}{path}")
    exported = client.get(f"{own}/export")
    client.post("/conversations/import?new_id=true", content=exported.content)
    client.get("/conversations", params={"limit": 1})
    client.post("/conversations", json={"project": "shop", "title": "new"})
    client.patch(own, json={"title": "changed"})
    branch = client.post(f"{own}/branch", json={"from_turn": 0}).json()["id"]
    client.post(f"{own}/summarize")
    client.post("/search", json={"query": "login", "project": "shop"})
    client.post("/context", json={"prompt": "Did we fix the login?", "conversation": conversation, "budget_chars": 3_000})
    client.post("/similar", json={"query": "login"})
    client.get("/projects")
    for path in ("files/usage", "files/usage?path=src/auth.py", "tools", "checkpoints", "why?path=src/auth.py&line=31"):
        client.get(f"/projects/shop/{path}")
    message = client.get("/requests/req_1").json()["turns"][0]["messages"][1]
    client.post("/verify", json={"id": message["id"], "content": "Fix the login bug"})
    for path in ("/ready", "/stats", "/metrics"):
        client.get(path)
    client.delete(f"/conversations/{branch}")
    client.delete(f"/conversations/{client.post(f'{own}/branch', json={}).json()['id']}", params={"forget": "true"})


def _refuse(client: httpx.Client, conversation: str) -> None:
    for path in ("/requests/none", "/conversations/none", "/conversations/none/turns", "/projects/none/tools", "/projects/shop/why"):
        client.get(path)
    client.get("/stats", headers={"Origin": "http://evil.example"})
    client.post("/search", json={"query": "x", "conversation": "none"})
    client.post("/context", json={"prompt": "x", "conversation": "none"})
    client.post("/search", json={"query": 7})
    client.post("/ingest/conversation", content=b"{")
    client.post("/conversations/import", json={"format": "other"})
    client.post(f"/conversations/{conversation}/branch", json={"from_turn": 999})
    assert client.post("/ingest/conversation", content=b"x" * 70_000).status_code == 413


def test_the_document_costs_nothing_until_it_is_asked_for() -> None:
    program = (
        "import sys; from recollect.serve.http.server import HttpServer; "
        "print(*[name for name in sys.modules if name.endswith(('http.document', 'http.answered', 'http.schemas'))])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split() == []


def test_too_much_at_once_is_declared(tmp_path: Path, document: dict[str, Any]) -> None:
    declared = Declared(document)
    with (
        served(tmp_path / "server", server={"burst": 1, "per_second": 0.01}) as serving,
        serving.client(serving.token(), event_hooks={"response": [declared.check]}) as client,
    ):
        assert [client.get("/stats").status_code for _ in range(2)] == [200, 429]
    assert declared.seen == {("GET /stats", "200"), ("GET /stats", "429")}
