"""Two workspaces on one server: whatever one asks, under whichever id, it sees and touches nothing of the other's."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Generator
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest

from recollect.model import Turn
from recollect.serve.http.tokens import Role
from recollect.sync import Memory
from tests.serving import Serving, served

CANARY = "kanarienvogel"
STORES: dict[str, Callable[[pytest.FixtureRequest], str | None]] = {
    "sqlite": lambda _: None,
    "neo4j": lambda request: request.getfixturevalue("neo4j_url"),
}
_numbers = itertools.count()


def canary() -> str:
    """Return a word that nobody else says, in a shape that a search finds."""
    return f"{CANARY}{next(_numbers)}"


def planted() -> dict[str, Any]:
    """Return a request with a canary in everything that is kept of it."""
    return {
        "request_id": "mine",
        "project_id": f"shop-{uuid4()}",  # a name that is asked for is repeated in the answer
        "title": canary(),
        "agent": canary(),
        "timestamp": "2026-03-02T09:00:00Z",
        "chat_meta": {"chat_id": canary(), "chat_mode": canary(), "request_attempt_id": canary(), "base_chat_id": canary()},
        "messages": [
            {"role": "system", "content": canary()},
            {"role": "user", "content": f"Never say {canary()} about the login"},
            {"role": "assistant", "content": f"I decided on {canary()}", "reasoning_content": canary(),
             "tool_calls": [{"id": "t1", "name": canary(), "arguments": {"path": f"{canary()}.py", "input": canary()}}]},
            {"role": "tool", "tool_call_id": "t1", "content": f"Error: {canary()}", "tool_failed": True},
            {"role": "assistant", "content": f"The login needs {canary()} and more words, so that it is summarised. " * 3},
        ],
        "context_files": [{"file_path": f"{canary()}.py", "usefulness": 0.9, "source": canary(), "symbols": [canary()]}],
        "code_changes": [{"file_path": f"{canary()}.py", "change_summary": canary(), "diff": f"+ {canary()}", "tool_call_id": "t1",
                          "function_name": canary()}],
        "checkpoints": [{"checkpoint_id": canary(), "git_hash": canary(), "workspace_dir": f"/{canary()}"}],
        "model_response": {"model": canary(), "finish_reason": canary()},
        "related_artifacts": [canary()],
    }  # fmt: skip


class Pair(NamedTuple):
    """The server, who owns the canaries, who does not, and every id and name of the owner's."""

    serving: Serving
    owner: httpx.Client
    other: httpx.Client
    workspace: str
    names: list[str]
    conversation: str
    snapshot: Callable[[], Any]


def done(answer: httpx.Response) -> httpx.Response:
    assert answer.is_success, answer.text
    return answer


@pytest.fixture(scope="module", params=sorted(STORES))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Generator[Pair]:
    with served(tmp_path_factory.mktemp("workspaces"), store=STORES[request.param](request)) as serving:
        mine, theirs = f"mine-{uuid4()}", f"theirs-{uuid4()}"
        with serving.client(serving.token(mine, "admin")) as owner, serving.client(serving.token(theirs, "admin")) as other:
            payload = planted()
            made = done(owner.post("/ingest/conversation", json=payload)).json()
            conversation = made["conversation_id"]
            for n in range(12):  # enough to be summarised
                body = {"project_id": payload["project_id"], "chat_meta": payload["chat_meta"], "agent": payload["agent"],
                        "request_id": f"mine-{n}", "messages": [{"role": "user", "content": f"login {n} {canary()}"},
                                                                {"role": "assistant", "content": f"answer {n} {canary()}"}]}  # fmt: skip
                done(owner.post("/ingest/conversation", json=body))
            done(owner.patch(f"/conversations/{conversation}", json={"tags": [canary()], "title": canary()}))
            branch = done(owner.post(f"/conversations/{conversation}/branch", json={"from_turn": 0, "title": canary()})).json()["id"]
            done(owner.post("/requests/open/start", json={"project_id": payload["project_id"], "chat_meta": {"chat_id": canary()}}))
            done(owner.post("/requests/open/messages", json={"role": "user", "content": canary()}))
            done(owner.post(f"/conversations/{conversation}/summarize"))
            with Memory.open(serving.store, workspace=mine) as memory:
                memory.distill()
                memory.analyze([conversation])
                ids = _ids(memory.load_conversation(conversation).turns())
                ids += [summary.id for summary in memory.load_conversation(conversation).summaries()[:1]]
                ids += [insight.id for insight in memory.insights()]
                ids += [project.id for project in memory.projects()]

            def snapshot() -> Any:
                with Memory.open(serving.store, workspace=mine) as memory:
                    known = memory.list_conversations(limit=1_000)
                    return sorted((one.id, memory.load_conversation(one.id).export()) for one in known), memory.verify().status

            names = [conversation, branch, "mine", "open", payload["project_id"], *ids]
            yield Pair(serving, owner, other, mine, names, conversation, snapshot)


def _ids(turns: list[Turn]) -> list[str]:
    """Return an id of each kind of record."""
    first = turns[0]
    return [first.id, *(kind[0].id for kind in (first.messages, first.tool_calls, first.context_files, first.changes, first.checkpoints))]


def asked_of(document: dict[str, Any], name: str, method: str) -> list[str]:
    """Return every address of a method, with one of the owner's names wherever it takes one."""
    return [path.replace(path[path.index("{") : path.index("}") + 1], name) for path in document["paths"]
            if method in document["paths"][path] and "{" in path]  # fmt: skip


def clean(answer: httpx.Response) -> None:
    assert answer.status_code < 500, answer.text
    assert CANARY not in answer.text, f"{answer.request.method} {answer.request.url}"
    assert CANARY not in str(answer.headers)


def test_the_owner_sees_the_canaries(pair: Pair) -> None:
    """Show that what follows would find them."""
    assert CANARY in pair.owner.get("/conversations").text
    assert CANARY in pair.owner.get(f"/conversations/{pair.conversation}/summaries").text
    assert CANARY in pair.owner.get(f"/conversations/{pair.conversation}/insights").text
    assert CANARY in pair.owner.post("/search", json={"query": "login"}).text
    assert CANARY in pair.owner.get("/requests/open").text
    assert pair.snapshot()[1] == "intact"


def test_no_get_route_shows_anything_of_another_workspace_under_any_of_its_ids(pair: Pair) -> None:
    document = pair.other.get("/openapi.json").json()
    for path in (path for path, methods in document["paths"].items() if "get" in methods and "{" not in path):
        clean(pair.other.get(path))
    for name in pair.names:
        for path in asked_of(document, name, "get"):
            answer = pair.other.get(path, params={"path": "a.py"} if path.endswith("/why") else {})
            clean(answer)
            assert answer.status_code == 404, path
    for query in ({"conversation": pair.conversation}, {"days": 100_000}):
        clean(pair.other.get(f"/projects/{pair.names[4]}/checkpoints", params=query))


def test_no_question_in_words_finds_anything_of_another_workspace(pair: Pair) -> None:
    words = ["login", CANARY, "decided", f"{CANARY}1", pair.conversation, "*", '"', "a OR b"]
    places: list[dict[str, Any]] = [{}, {"conversation": pair.conversation}, {"project": pair.names[4]}, {"project": pair.names[-1]}]
    for word, place in itertools.product(words, places):
        found = pair.other.post("/search", json={"query": word, **place})
        clean(found)
        assert found.status_code != 200 or not found.json()["hits"]
        composed = pair.other.post("/context", json={"prompt": word, **place})
        assert composed.status_code in {200, 404}
        clean(composed)
        similar = pair.other.post("/similar", json={"query": word, **{name: value for name, value in place.items() if name == "project"}})
        clean(similar)
        assert not similar.json()["items"]
    for where in ({"agent": CANARY}, {"tags": [CANARY]}, {"file": f"{CANARY}.py"}, {"tool": CANARY}):
        clean(pair.other.post("/search", json={"query": "login", **where}))


def test_nobody_learns_whether_a_content_is_in_another_workspace(pair: Pair) -> None:
    for name in pair.names:
        answer = pair.other.post("/verify", json={"id": name, "content": "Fix the login bug"})
        clean(answer)
        assert answer.json()["status"] == "unknown"


def test_no_write_route_touches_anything_of_another_workspace(pair: Pair) -> None:
    before = pair.snapshot()
    document = pair.other.get("/openapi.json").json()
    bodies: dict[str, Any] = {
        "start": {"project_id": pair.names[4]}, "messages": {"replace": True, "messages": [{"role": "user", "content": "overwritten"}]},
        "context": {"context_files": [{"file_path": "x"}]}, "branch": {"from_turn": 0}, "finalize": {"status": "failed"},
    }  # fmt: skip
    for name in pair.names:
        for path in asked_of(document, name, "post"):
            if path.endswith("/start"):
                continue
            answer = pair.other.post(path, json=bodies.get(path.rpartition("/")[2], {}))
            clean(answer)
            assert answer.status_code == 404, path
        for path in asked_of(document, name, "patch"):
            problem = pair.other.patch(path, json={"title": "overwritten", "status": "archived"})
            clean(problem)
            assert problem.status_code == 404
        for path in asked_of(document, name, "delete"):
            for query in ({}, {"forget": "true"}):
                gone = pair.other.delete(path, params=query)
                clean(gone)
                assert gone.status_code == 404
    assert pair.snapshot() == before


def test_the_same_names_in_two_workspaces_are_two_things(pair: Pair) -> None:
    before = pair.snapshot()
    payload = {**planted(), "request_id": "mine"}
    for name in ("project_id", "chat_meta", "agent"):
        payload[name] = "shared"
    payload["chat_meta"] = {"chat_id": "shared"}
    plain = json.loads(json.dumps(payload).replace(CANARY, "own"))
    made = pair.other.post("/ingest/conversation", json=plain)
    assert made.status_code == 201
    for path in ("/requests/open/start", "/requests/mine-1/start"):
        begun = pair.other.post(path, json={"project_id": pair.names[4], "chat_meta": {"chat_id": "shared"}})
        assert (begun.status_code, begun.json()["status"]) == (201, "created")
    assert pair.other.post("/requests/open/messages", json={"role": "user", "content": "of the other"}).status_code == 200
    for path in ("/requests/mine", "/requests/mine/flow", "/requests/mine/context", "/requests/open"):
        clean(pair.other.get(path))
    for path in ("/requests/open/finalize", "/requests/mine-1/finalize"):
        assert pair.other.post(path).status_code == 200
    for name in ("mine", "open", "mine-1"):
        assert pair.other.delete(f"/requests/{name}").status_code == 200
    assert pair.snapshot() == before
    assert pair.owner.get("/requests/open").json()["status"] == "open"


def test_a_document_that_is_imported_elsewhere_is_a_copy_and_leaves_the_original_alone(pair: Pair) -> None:
    """Import what bears the ids of the owner's own: whoever has the document has the content, and nothing else."""
    before = pair.snapshot()
    document = pair.owner.get(f"/conversations/{pair.conversation}/export").json()
    for query in ({}, {"replace": "true"}, {"new_id": "true"}):
        answer = pair.other.post("/conversations/import", params=query, json=document)
        assert answer.status_code < 500, answer.text
        assert pair.serving.store.removeprefix("sqlite://") not in answer.text
        assert pair.snapshot() == before
    for info in pair.other.get("/conversations", params={"limit": 1_000}).json()["items"]:
        assert pair.other.delete(f"/conversations/{info['id']}", params={"forget": "true"}).status_code == 200
    assert pair.snapshot() == before


def test_figures_count_ones_own_alone(pair: Pair) -> None:
    with pair.serving.client(pair.serving.token(f"empty-{uuid4()}")) as nobody:
        stats = nobody.get("/stats").json()
        assert (stats["conversations"], stats["turns"], stats["messages"], stats["passages"]) == (0, 0, 0, 0)
        assert "\nrecollect_turns 0\n" in nobody.get("/metrics").text
        assert nobody.get("/projects").json()["items"] == []


@pytest.mark.parametrize("role", ["read", "write"])
def test_a_lesser_role_of_another_workspace_sees_no_more(pair: Pair, role: Role) -> None:
    with pair.serving.client(pair.serving.token(f"lesser-{uuid4()}", role)) as lesser:
        for name in pair.names[:5]:
            for path in (f"/conversations/{name}", f"/requests/{name}", f"/projects/{name}/tools"):
                answer = lesser.get(path)
                clean(answer)
                assert answer.status_code == 404
