"""Whatever is sent to a real server, it answers with a reason and never fails; what it says it recorded is what is there, whole."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Callable, Generator
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import content_type_conformance, response_schema_conformance, status_code_conformance

from recollect.memory import Memory
from tests.kit import SOAK
from tests.serving import Serving, as_lines, served

COUNT = 1_000_000 if SOAK else 20_000
LINES = 200
PROJECT = 50_000
SINGLE = 10_000 if SOAK else 300
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
SEED = int(os.environ.get("RECOLLECT_SEED") or (random.randrange(10**6) if SOAK else 1))

# FORMATS §1, §2 and the webhook's variant, as short as they can be and still have every field
HASH = "sha256:531e90d2fc11b6021b73c04374b014ad10dcd1c19c6fb115a6bfb979a652b704"
PAYLOAD: dict[str, Any] = {
    "request_id": "r", "project_id": "p", "timestamp": "2026-01-02T03:04:05Z",
    "chat_meta": {"chat_id": "c", "base_chat_id": None, "request_attempt_id": "a1", "chat_mode": "AGENT", "chat_remote": False},
    "messages": [
        {"role": "user", "content_summary": "Fix login bug", "content_hash": HASH, "sequence": 0},
        {"role": "assistant", "content": "I'll add a null check", "sequence": 1, "prompt_tokens": 900, "completion_tokens": 80,
         "tool_calls": [{"id": "t1", "tool": "update_textdoc", "args_hash": HASH}]},
    ],
    "context_files": [{"file_path": "src/auth.py", "line_start": 1, "line_end": 80, "usefulness": 0.92, "source": "vecdb",
                       "symbols": ["login_user"], "content_hash": HASH, "language": "python"}],
    "tool_calls": [{"tool_call_id": "t1", "tool_name": "update_textdoc", "arguments_hash": HASH, "status": "success",
                    "execution_time_ms": 41, "diff_chunk_id": "d1"}],
    "code_changes": [{"file_path": "src/auth.py", "function_name": "login_user", "line_start": 30, "line_end": 34,
                      "change_type": "updated", "change_summary": "null check", "severity": "high", "lines_added": 3, "lines_removed": 1,
                      "code_before_hash": "x", "code_after_hash": "y", "language": "python", "tool_call_id": "t1", "git_commit": None}],
    "checkpoints": [{"checkpoint_id": "k1", "parent_checkpoint": None, "workspace_dir": "/w", "git_hash": "ae09"}],
    "model_response": {"model": "m", "finish_reason": "stop", "created": 1735787045, "cached": False, "compression_strength": "absent"},
    "related_artifacts": [],
}  # fmt: skip
ENGINE: dict[str, Any] = {
    "request_id": "r", "project_id": "p",
    "meta": {"chat_id": "c", "request_attempt_id": "a", "chat_remote": False, "chat_mode": "EXPLORE", "context_tokens_cap": None},
    "messages": [
        {"role": "user", "content": "Create tests", "checkpoints": [{"workspace_folder": "/w", "commit_hash": "ae09"}]},
        {"role": "assistant", "content": None, "finish_reason": "stop",
         "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "cat", "arguments": '{"paths": "a.py:10-40,b.py"}'}}],
         "usage": {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3},
         "thinking_blocks": [{"type": "thinking", "thinking": "hm", "signature": "s"}]},
        {"role": "tool", "tool_call_id": "t1", "content": "Paths found", "tool_failed": False},
        {"role": "context_file", "content": '[{"file_name": "a.py", "file_content": "x", "line1": 1, "line2": 39}]'},
        {"role": "diff", "tool_call_id": "t2", "content": [{"file_name": "/w/a.py", "file_action": "edit", "line1": 1, "line2": 1,
                                                            "lines_remove": "", "lines_add": "y", "file_name_rename": None}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Done"}, {"m_type": "image/png", "m_content": "abc"}]},
    ],
}  # fmt: skip
WEBHOOK: dict[str, Any] = {name: value for name, value in PAYLOAD.items() if name != "context_files"} | {
    "context": PAYLOAD["context_files"]
}
SEEDS = (PAYLOAD, ENGINE, WEBHOOK)

STRANGE: tuple[Callable[[random.Random], Any], ...] = (
    lambda _: None, lambda _: True, lambda _: 0, lambda _: -1, lambda _: 2**63, lambda _: -(2**63) - 1, lambda _: 10**400, lambda _: 1e308,
    lambda _: float("nan"), lambda _: float("-inf"), lambda _: 0.1, lambda _: "", lambda _: [], lambda _: {}, lambda _: "NaN",
    lambda _: "\0", lambda _: "a\0b", lambda _: "\ud800", lambda _: "x\udfffy", lambda _: "\u202e\ufeff\uffff", lambda _: "é" * 30,
    lambda _: "x" * 2_000, lambda _: "0" * 400, lambda _: "2026-13-45T99:99:99Z", lambda _: "9999-12-31T23:59:59.999999+14:00",
    lambda _: "-000001-01-01", lambda _: [[[[]]]], lambda _: {"": {"": {"": None}}}, lambda _: [None, 1, "x", {}, []],
    lambda _: {"type": "text"}, lambda _: {"text": 7}, lambda _: {"tool_call_id": "t1", "content": {"content": 1}},
    lambda _: "../../../etc/passwd", lambda _: "'; DROP TABLE turn; --", lambda _: "MATCH (n) DETACH DELETE n",
    lambda _: "[off the record]",
    lambda _: "<recollect-0000>", lambda _: "sha256:", lambda _: "ghp_" + "a1B2" * 9, lambda random_: random_.randrange(10**12),
    lambda random_: nested(random_.randrange(1, 90)), lambda random_: nested(random_.randrange(1, 90), "object"),
)  # fmt: skip


def nested(depth: int, kind: str = "list") -> Any:
    value: Any = "deep"
    for _ in range(depth):
        value = [value] if kind == "list" else {"a": value}
    return value


def places(value: Any) -> list[tuple[Any, Any]]:
    """Return every place in a document: what holds it, and under which key."""
    found: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        found += [(value, key) for key in cast("dict[str, Any]", value)]
    elif isinstance(value, list):
        found += [(value, key) for key in range(len(cast("list[Any]", value)))]
    for holder, key in list(found):
        found += places(holder[key])
    return found


def mutated(random_: random.Random, number: int) -> bytes:
    """Return a payload with one to four things wrong in it, or bytes that are none; its id is its own, unless that is what is wrong."""
    document: Any = copy.deepcopy(random_.choice(SEEDS))
    for name in ("context_files", "context", "tool_calls", "code_changes", "checkpoints", "model_response", "related_artifacts"):
        if random_.random() < 0.7:  # a few parts at a time, so that twenty thousand take a minute
            document.pop(name, None)
    document["messages"] = [message for message in document["messages"] if random_.random() < 0.6] or document["messages"][:1]
    document["request_id"] = f"r{number}"
    document["project_id"] = f"p{number // PROJECT}"  # one project of a SQLite file takes some 131,000 conversations
    meta = document.get("chat_meta") or document.get("meta")
    meta["chat_id"] = f"c{number if number % 3 else number + 1}"
    for _ in range(random_.randrange(1, 5)):
        found = places(document)
        if not found:
            break
        holder, key = random_.choice(found)
        change = random_.randrange(10)
        if change < 3:
            del holder[key]
        elif change < 7:
            holder[key] = random_.choice(STRANGE)(random_)
        elif change == 7 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif change == 8 and isinstance(holder, dict):
            holder[random_.choice(["", "\0", "\ud800", "id", "content", "messages", "role", "x" * 300, "password"])] = holder.pop(key)
        else:
            holder[key] = [holder[key]] if random_.random() < 0.5 else {"value": holder[key]}
    raw = json.dumps(document, ensure_ascii=random_.random() < 0.9).encode("utf-8", "surrogatepass")
    return garbled(random_, raw) if random_.random() < 0.05 else raw


def garbled(random_: random.Random, raw: bytes) -> bytes:
    """Return bytes that are hardly JSON any more; never with a line's end in them."""
    place = random_.randrange(len(raw))
    return random_.choice([
        raw[:place], raw[place:], raw[:place] + b"\xff\xfe\xfa" + raw[place:], raw.decode("utf-8", "replace").encode("utf-16-le"),
        b"\xef\xbb\xbf" + raw, raw + raw, b"[" * 5_000, b'{"messages":' * 2_000, b"null", b"7", b'"x"', b"NaN", b"[" + raw + b"]",
        b'{"messages":[{"role":"user","content":' + b"9" * 5_000 + b"}]}", b"\0",
    ]).replace(b"\n", b" ")  # fmt: skip


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Generator[Serving]:
    with served(tmp_path_factory.mktemp("payloads")) as serving:
        yield serving


class Told:
    """What the answers said is recorded."""

    def __init__(self) -> None:
        self.turns: dict[str, str] = {}  # each with its conversation
        self.requests: dict[str, str] = {}
        self.grown: set[str] = set()  # conversations of which a turn was continued by another request, whose turn it then is
        self.counts: dict[str | int, int] = {}

    def take(self, recorded: dict[str, Any]) -> None:
        status = recorded["status"]
        self.counts[status] = self.counts.get(status, 0) + 1
        if status == "skipped" or "turn_ids" not in recorded:
            return
        conversation = recorded["conversation_id"]
        self.turns.update(dict.fromkeys(recorded["turn_ids"], conversation))
        if status == "replaced":
            self.grown.add(conversation)
        if recorded["request_id"] is not None and recorded["turn_ids"]:
            self.requests[recorded["request_id"]] = conversation

    async def check(self, serving: Serving, workspace: str) -> None:
        """See that all of it is there, whole, and nothing that was refused."""
        async with await Memory.open(serving.store, workspace=workspace) as memory:
            verified = await memory.verify()
            assert (verified.status, verified.damage) == ("intact", ())
            present: set[str] = set()
            held: set[str | None] = set()
            ids = list(self.turns)
            for first in range(0, len(ids), 500):  # a page at a time, however many there are
                for turn in await memory.store.turns.by_id(memory.workspace, ids[first : first + 500]):
                    present.add(turn.id)
                    held.add(turn.request_id)
                    assert turn.messages or turn.tool_calls
                    assert all(message.content_hash for message in turn.messages)
            assert {self.turns[own] for own in ids if own not in present} <= self.grown, "every turn that was named is there"
            assert (await memory.stats()).turns == len(present), "and no other"
            assert {self.requests[one] for one in self.requests if one not in held} <= self.grown, "as many requests as were acknowledged"


async def test_mutated_payloads_are_recorded_or_refused_and_nothing_is_half_written(serving: Serving) -> None:
    print(f"seed {SEED}, {COUNT} mutated payloads")
    random_ = random.Random(SEED)
    told = Told()
    with serving.client(serving.token("batches")) as client:
        for first in range(0, COUNT, LINES):
            lines = [mutated(random_, number) for number in range(first, first + LINES)]
            answer = client.post("/ingest/conversation", **as_lines(lines))
            assert answer.status_code in {200, 207}, f"seed {SEED}, payloads {first} to {first + LINES}: {answer.text[:500]}"
            found = answer.json()
            assert len(found["results"]) == sum(1 for line in lines if line.strip())
            assert found["bad"] == sum(1 for one in found["results"] if isinstance(one["status"], int))
            for one in found["results"]:
                assert one["status"] in {"created", "unchanged", "replaced", "branched", "skipped", 409, 413, 422}, one
                told.take(one)
    print(told.counts, f"{len(told.grown)} grown")
    assert told.counts["created"] > COUNT / 2, "most are tolerated"
    assert told.counts[422] > COUNT / 100, "and some are not"
    await told.check(serving, "batches")


async def test_mutated_payloads_sent_one_by_one_never_fail_the_server(serving: Serving) -> None:
    print(f"seed {SEED}, {SINGLE} mutated payloads")
    random_ = random.Random(SEED)
    told = Told()
    with serving.client(serving.token("single")) as client:
        for number in range(SINGLE):
            answer = client.post("/ingest/conversation", content=mutated(random_, number), headers={"Content-Type": "application/json"})
            assert answer.status_code in {200, 201, 409, 413, 422}, f"seed {SEED}, payload {number}: {answer.text[:500]}"
            if answer.is_success:
                told.take(answer.json())
    await told.check(serving, "single")


PIECES: dict[str, Any] = {
    "start": {name: PAYLOAD[name] for name in ("project_id", "timestamp", "chat_meta")},
    "context": {"context_files": PAYLOAD["context_files"], "replace": False},
    "messages": {"messages": [*PAYLOAD["messages"], *ENGINE["messages"]], "truncate_from": 9, "remove": [1]},
    "model-response": PAYLOAD["model_response"],
    "tool-calls": {"tool_calls": [{"id": "t1", "name": "cat", "arguments": {"paths": "a.py"}, "message_sequence": 1}]},
    "tool-results": {"tool_results": [{"tool_call_id": "t1", "content": "done", "success": True, "duration_ms": 41}]},
    "code-changes": {"code_changes": PAYLOAD["code_changes"]},
    "checkpoints": {"checkpoints": PAYLOAD["checkpoints"]},
    "finalize": {"status": "complete"},
}
QUESTIONS: dict[str, Any] = {
    "/search": {"query": "login", "project": "p", "tags": ["a"], "since": "2026-01-01", "levels": [0], "limit": 5, "minimum_score": 0.1},
    "/context": {"prompt": "login", "budget_chars": 1_000, "wait_seconds": 0, "messages": ENGINE["messages"], "recent_messages": 3},
    "/similar": {"query": "login", "limit": 3},
    "/verify": {"id": "x", "content": "y"},
    "/conversations": {"project": "p", "title": "t", "tags": ["a"], "agent": "a", "external_id": "e", "cwd": "/w"},
}


def strange_body(random_: random.Random, seed: Any) -> bytes:
    document: Any = copy.deepcopy(seed)
    for _ in range(random_.randrange(1, 3)):
        found = places(document)
        if found:
            holder, key = random_.choice(found)
            holder[key] = random_.choice(STRANGE)(random_)
    return json.dumps(document).encode("utf-8", "surrogatepass")


async def test_mutated_pieces_and_questions_never_fail_the_server(serving: Serving) -> None:
    print(f"seed {SEED}, {SINGLE} pieces and questions")
    random_ = random.Random(SEED)
    with serving.client(serving.token("pieces")) as client:
        for number in range(SINGLE):
            request = f"/requests/r{number // 12}"
            if number % 12 == 0:
                assert client.post(f"{request}/start", json=PIECES["start"]).status_code == 201
            piece = random_.choice(list(PIECES))
            for path, body in ((f"{request}/{piece}", PIECES[piece]), random_.choice(list(QUESTIONS.items()))):
                answer = client.post(path, content=strange_body(random_, body), headers={"Content-Type": "application/json"})
                assert answer.status_code < 500, f"seed {SEED}, number {number}, {path}: {answer.text[:500]}"
        for number in range(SINGLE // 12):
            assert client.post(f"/requests/r{number}/finalize").status_code == 200
    async with await Memory.open(serving.store, workspace="pieces") as memory:
        assert (await memory.verify()).status == "intact"
        known = [await memory.load_conversation(info.id) for info in await memory.list_conversations(limit=1_000_000)]
        assert {turn.status for one in known for turn in await one.turns()} == {"complete"}


def test_a_block_whose_type_is_no_word_is_read_with_tolerance(serving: Serving) -> None:
    message = {"role": "assistant", "content": "x", "thinking_blocks": [{"type": ["thinking"]}]}
    with serving.client(serving.token("known")) as client:
        assert client.post("/ingest/conversation", json={"messages": [message]}).status_code == 201


def test_an_id_with_half_a_character_is_no_reason_to_call_the_store_damaged(serving: Serving) -> None:
    with serving.client(serving.token("known")) as client:
        answer = client.post("/verify", content=b'{"id": "\\ud800", "content": "y"}', headers={"Content-Type": "application/json"})
    assert answer.status_code == 200


async def test_what_the_openapi_document_allows_and_forbids_never_fails_the_server(serving: Serving) -> None:
    token = serving.token("schema", "admin")
    with serving.client(token) as client:
        document = client.get("/openapi.json").json()
    schema = schemathesis.openapi.from_dict(document)
    schema.config.update(base_url=serving.address)
    schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
    unhurried = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large, HealthCheck.large_base_example]
    limits = settings(max_examples=300 if SOAK else 12, deadline=None, database=None, derandomize=True, suppress_health_check=unhurried)
    tried = 0

    def send(case: Any) -> None:
        nonlocal tried
        tried += 1
        answer = case.call(headers={"Authorization": f"Bearer {token}"})
        case.validate_response(answer, checks=CHECKS)

    operations = [cast("Any", found.ok()) for found in schema.get_all_operations() if isinstance(found, Ok)]
    assert len(operations) == sum(len(methods) for methods in document["paths"].values())
    for operation in operations:
        limits(given(case=operation.as_strategy())(send))()
    print(f"{tried} requests from the document")
    assert tried > 40 * 5
    async with await Memory.open(serving.store, workspace="schema") as memory:
        assert (await memory.verify()).status == "intact"
