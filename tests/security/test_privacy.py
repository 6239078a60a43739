"""Privacy: what a project of summaries does not keep is in no byte of a store, index, log, export, mirror, copy or error message.

A thousand canary words, each planted once, go through every door in the places that no summary may quote: beyond the first
200 characters of a message, in arguments, results, diffs, file texts and reasoning. In `full` the same words are found, so
that the test can fail. Secrets of all kinds, planted in every field, are found in neither.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote
from uuid import uuid4

import httpx
import pytest

from recollect.client import Client
from recollect.config import settings_from
from recollect.documents.copying import copy_store
from recollect.errors import RecollectError
from recollect.memory import Memory
from recollect.model import CodeChange, Message, ToolCall, ToolResult, Turn
from tests.kit import said
from tests.left import said_in
from tests.planted import PLANTED
from tests.serving import Serving, served

SAID_CHARS = 200
CANARIES_MIN = 1_000
WORDS_PER_FIELD = 7
_CANARY, _SEEN = re.compile(rb"cnry\d{4}"), re.compile(rb"seen\d{3}")


class Filler(Protocol):
    """What stands in the fields of a payload, by what kind of field it is."""

    def message(self) -> str: ...
    def content(self) -> str: ...
    def file(self) -> str: ...
    def name(self, usual: str) -> str: ...


class Canaries:
    """Words that occur once: after the first 200 characters of a message, and in contents; names are left as usual."""

    def __init__(self) -> None:
        self.kept: list[str] = []  # where `full` keeps them
        self.lost: list[str] = []  # in the texts of files and the like, of which even `full` keeps but a hash
        self.seen: list[str] = []

    def _words(self, into: list[str]) -> str:
        first = len(self.kept) + len(self.lost)
        words = [f"cnry{n:04d}" for n in range(first, first + WORDS_PER_FIELD)]
        into += words
        return " ".join(words)

    def message(self) -> str:
        self.seen.append(f"seen{len(self.seen):03d}")
        return f"{self.seen[-1]}\n\n  ".ljust(SAID_CHARS - 5, "o") + " and " + self._words(self.kept)

    def content(self) -> str:
        return self._words(self.kept)

    def file(self) -> str:
        return self._words(self.lost)

    def name(self, usual: str) -> str:
        return usual


class Secrets:
    """All kinds of secrets in every text, and in every name one after the other."""

    def __init__(self) -> None:
        self._each = cycle(PLANTED.values())

    def message(self) -> str:
        return "\n".join(text for text, _ in PLANTED.values())

    content = file = message

    def name(self, usual: str) -> str:
        return f"{usual} {next(self._each)[0]}"


# What is said


def payload(fill: Filler, context: str = "context_files") -> dict[str, Any]:
    """A request as the memory layer takes it (FORMATS §1); the webhook variant names its context otherwise."""
    return {
        "request_id": fill.name(f"req-{uuid4()}"),
        "project_id": fill.name("shop"),
        "title": fill.name("title"),
        "agent": fill.name("engine"),
        "chat_meta": {"chat_id": fill.name(f"chat-{uuid4()}"), "chat_mode": fill.name("AGENT"), "base_chat_id": fill.name("b")},
        "messages": [
            {"role": "system", "content": fill.message()},
            {"role": "user", "content": fill.message()},
            {
                "role": "assistant",
                "content": fill.message(),
                "reasoning_content": fill.content(),
                "citations": [fill.file()],
                "tool_calls": [
                    {"id": "t1", "function": {"name": fill.name("shell"), "arguments": json.dumps({"command": fill.content()})}},
                    {"id": "t2", "name": "x", "arguments": json.dumps(json.dumps({"deep": {"er": [fill.content()]}}))},
                    {"id": "t3", "tool": "update_textdoc", "args": {"path": "a.py", "old_str": fill.content(), "new_str": fill.content()}},
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": fill.content()},
            {"role": "user", "content_summary": fill.name("in short"), "content_hash": fill.name("sha256:00")},
            {"role": "assistant", "content": "done"},
        ],
        "tool_calls": [
            {"tool_call_id": "t2", "tool_name": "x", "result": {"deep": fill.content()}, "diff_chunk_id": fill.name("d1")},
            {"tool_call_id": "t9", "tool_name": "y", "arguments": {"note": fill.content()}, "error": fill.content(), "status": "failed"},
        ],
        context: [
            {"file_path": f"src/{fill.name('a.py')}", "file_content": fill.file(), "content": fill.file(), "source": fill.name("vecdb"),
             "symbols": [fill.name("login")], "language": fill.name("python"), "content_hash": fill.name("sha256:aa")},
        ],
        "code_changes": [
            {"file_path": "b.py", "diff": f"--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-{fill.content()}\n+{fill.content()}\n",
             "code": fill.file(), "function_name": fill.name("f"), "change_summary": fill.name("changed"), "severity": fill.name("low"),
             "git_commit": fill.name("c")},
        ],
        "checkpoints": [
            {"checkpoint_id": fill.name("k1"), "git_hash": fill.name("ae"), "workspace_dir": fill.name("/w"), "message": fill.file()},
        ],
        "model_response": {"model": fill.name("m"), "finish_reason": fill.name("stop")},
        "related_artifacts": [fill.name("issue-7"), {"text": fill.content()}],
    }  # fmt: skip


def wire(fill: Filler) -> dict[str, Any]:
    """A request in the engine's own format (FORMATS §2)."""
    chunk = {"file_name": "/w/a.py", "file_action": "edit", "line1": 1, "line2": 1, "file_name_rename": None}
    return {
        "request_id": f"req-{uuid4()}",
        "project_id": "shop",
        "chat_meta": {"chat_id": f"chat-{uuid4()}"},
        "messages": [
            {"role": "user", "content": [{"m_type": "text", "m_content": fill.message()}], "checkpoints": [
                {"workspace_folder": "/w", "commit_hash": fill.name("ae09")}]},
            {"role": "context_file", "content": json.dumps([{"file_name": "a.py", "file_content": fill.file(), "line1": 1, "line2": 39}])},
            {"role": "context_file", "content": [{"file_name": "b.py", "file_content": fill.file(), "line1": 1, "line2": 39}]},
            {"role": "assistant", "content": None, "thinking_blocks": [
                {"type": "thinking", "thinking": fill.content(), "signature": fill.file()}],
             "tool_calls": [{"id": "t1", "type": "function", "index": 0, "function": {
                 "name": "cat", "arguments": json.dumps({"paths": "a.py:10-40,b.py", "why": fill.content()})}}]},
            {"role": "tool", "tool_call_id": "t1", "content": [{"m_type": "text", "m_content": fill.content()}], "tool_failed": False},
            {"role": "tool", "content": {"tool_call_id": "t2", "content": fill.content(), "tool_failed": True}},
            {"role": "diff", "tool_call_id": "t3", "content": json.dumps([
                {**chunk, "lines_remove": fill.content(), "lines_add": fill.content(), "application_details": fill.content()}])},
            {"role": "diff", "content": {"tool_call_id": "t4", "content": [{**chunk, "lines_remove": "", "lines_add": fill.content()}]}},
            {"role": "plain_text", "content": fill.message()},
            {"role": "cd_instruction", "content": fill.message()},
            {"role": "assistant", "content": fill.message()},
        ],
    }  # fmt: skip


def blocks(fill: Filler) -> list[dict[str, Any]]:
    """Messages as agents of the Anthropic and the OpenAI family hold them."""
    return [
        {"role": "user", "content": [{"type": "text", "text": fill.message()}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": fill.content()}, {"type": "text", "text": fill.message()},
            {"type": "tool_use", "id": "t1", "name": "Write", "input": {"file_path": "a.py", "content": fill.content()}},
            {"type": "tool_use", "id": "t2", "name": "Bash", "input": {"command": fill.content()}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": fill.content()}]},
            {"type": "tool_result", "tool_use_id": "t2", "content": fill.content(), "is_error": True}]},
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": fill.content()}]},
        {"type": "function_call", "call_id": "t3", "name": "x", "arguments": json.dumps({"a": fill.content()})},
        {"type": "function_call_output", "call_id": "t3", "output": fill.content()},
        {"role": "assistant", "content": fill.message()},
    ]  # fmt: skip


def pieces(fill: Filler) -> list[tuple[Any, Any]]:
    """A request in pieces, every kind of them."""
    first, *rest = [{**message, "sequence": n} for n, message in enumerate(wire(fill)["messages"])]
    return [
        ("context", {"context_files": [
            {"file_path": "a.py", "file_content": fill.file(), "symbols": [fill.name("f")], "note": fill.file()}]}),
        ("messages", {"messages": [first]}),
        ("messages", {"messages": rest}),
        ("model-response", {"model": fill.name("m"), "finish_reason": "stop", "content": fill.file(), "choices": [{"text": fill.file()}]}),
        ("tool-calls", {"tool_calls": [
            {"id": "c1", "name": fill.name("write_file"), "arguments": {"path": "c.py", "content": fill.content()}, "message_sequence": 0},
            {"id": "c2", "name": "Bash", "arguments": json.dumps({"command": fill.content()})}]}),
        ("tool-results", {"tool_results": [
            {"tool_call_id": "c1", "content": fill.content(), "success": True},
            {"tool_call_id": "c2", "error": fill.content(), "duration_ms": 3}]}),
        ("code-changes", {"code_changes": [{"file_path": "d.py", "diff": f"+{fill.content()}", "tool_call_id": "c1"}]}),
        ("checkpoints", {"checkpoints": [{"checkpoint_id": fill.name("k"), "git_hash": "ae", "message": fill.file()}]}),
    ]  # fmt: skip


def built(fill: Filler) -> Turn:
    """A turn that a program put together by itself."""
    return Turn(
        messages=(
            Message(role="user", content=fill.message()),
            Message(role="assistant", content=fill.message(), reasoning=fill.content()),
        ),
        tool_calls=(
            ToolCall(tool_name="x", arguments={"a": fill.content()}, result=ToolResult(result=fill.content(), error=fill.content())),
        ),
        changes=(CodeChange(file_path="a.py", diff=fill.content()),),
    )


# The doors

Trace = dict[str, bytes]
Exporting = Callable[[Filler], Coroutine[Any, Any, Any]]


class World:
    """A store, a server in front of it, a mirror beside it, and all that any of them ever wrote or answered."""

    def __init__(self, folder: Path, store: str, privacy: str) -> None:
        self.folder = folder
        self.store = store
        self.workspace = f"privacy-{uuid4()}"
        self.mirror = folder / "mirror"
        self.values: dict[str, Any] = {
            "store": store,
            "workspace": self.workspace,
            "projects": {"*": {"privacy": privacy}},
            "agent": {"memory": {"persistence": {"mirror": str(self.mirror)}}},
        }
        (folder / "config.yaml").write_text(json.dumps(self.values))
        self.answers: list[str] = []
        self.errors: list[str] = []

    def command(self, *arguments: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "recollect", *arguments],
            env={**os.environ, "RECOLLECT_CONFIG": str(self.folder / "config.yaml")},
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )

    def run(self, work: Callable[[Memory], Awaitable[None]]) -> None:
        async def opened() -> None:
            async with await Memory.open(settings=settings_from(self.values), worker=False) as memory:
                await work(memory)

        asyncio.run(opened())

    def files(self, *folders: Path) -> Trace:
        return {str(file): file.read_bytes() for folder in folders for file in sorted(folder.rglob("*")) if file.is_file()}


async def through_the_library(memory: Memory, fill: Filler, exported: Exporting) -> None:
    await memory.record(payload(fill))
    await memory.record(payload(fill, "context"))
    await memory.record(wire(fill))
    conversation = await memory.create_conversation(project=fill.name("shop"), title=fill.name("own"), tags=[fill.name("tag")[:90]])
    await conversation.record(
        user=fill.message(), assistant=fill.message(), system=fill.message(), reasoning=fill.content(), request_id=fill.name("r"),
        tool_calls=[{"name": fill.name("x"), "arguments": {"a": [fill.content()]}, "result": fill.content(), "error": fill.content()}],
        changes=[{"file_path": "a.py", "diff": fill.content(), "change_summary": fill.name("s")}],
        context_files=[{"file_path": fill.name("a.md"), "file_content": fill.file()}], checkpoints=[{"git_hash": fill.name("ae")}],
    )  # fmt: skip
    await conversation.record(messages=blocks(fill))
    await memory.record(built(fill), conversation=conversation.id)
    begun, asked, answered, *rest = blocks(fill)
    turn = await conversation.begin(begun["content"][0]["text"], system=fill.message())
    await conversation.add(turn, [asked])
    await conversation.add(turn, [answered])
    await conversation.finish(turn, rest)
    await memory.import_conversation(await exported(fill))
    own = fill.name(f"stream-{uuid4()}")
    head = {"project_id": fill.name("shop"), "chat_meta": {"chat_id": fill.name(f"c-{uuid4()}")}, "title": fill.name("t")}
    await memory.requests.start(own, head)
    for piece, body in pieces(fill):
        await memory.requests.add(own, piece, body)
    await memory.requests.finalize(own)
    left_open = f"open-{uuid4()}"
    await memory.requests.start(left_open, {"project_id": "shop"})
    for piece, body in pieces(fill):
        await memory.requests.add(left_open, piece, body)


def through_the_command_line(world: World, fill: Filler) -> None:
    lines = [json.dumps(payload(fill)), json.dumps(wire(fill))]
    done = world.command("--json", "ingest", "-", text="\n".join(lines) + "\n")
    assert done.returncode == 0, done.stderr
    world.answers += [done.stdout, done.stderr]


def through_http(world: World, serving: Serving, fill: Filler, document: Any) -> None:
    token = serving.token(world.workspace, "admin")
    with serving.client(token) as client:
        for body in (payload(fill), wire(fill)):
            world.answers.append(_answered(client.post("/ingest/conversation", json=body), 201))
        lines = "\n".join(json.dumps(body) for body in (payload(fill, "context"), wire(fill)))
        answer = client.post("/ingest/conversation", content=lines.encode(), headers={"Content-Type": "application/x-ndjson"})
        world.answers.append(_answered(answer, 200))
        own = f"http-{uuid4()}"
        world.answers.append(_answered(client.post(f"/requests/{own}/start", json={"project_id": "shop", "title": fill.name("t")}), 201))
        for piece, body in pieces(fill):
            world.answers.append(_answered(client.post(f"/requests/{own}/{piece}", json=body), 200))
        world.answers.append(_answered(client.post(f"/requests/{own}/finalize", json={}), 200))
        world.answers.append(_answered(client.post("/conversations/import", json=document), 201))
    through_the_client(serving.address, token, fill)


def _answered(answer: httpx.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    return answer.text


def through_the_client(address: str, token: str, fill: Filler) -> None:
    with Client(address, token, background=False, raises=True, timeout_seconds=120) as client:
        for live in (False, True):
            with client.request(project_id=fill.name("shop"), chat_id=fill.name(f"cl-{uuid4()}"), live=live) as request:
                request.system(fill.message())
                request.user(fill.message())
                request.context(fill.name("a.py"), source=fill.name("ast"), symbols=[fill.name("f")])
                request.assistant(fill.message(), model=fill.name("m"), reasoning=fill.content())
                with request.tool_call(fill.name("shell"), {"command": fill.content()}) as call:
                    call.result(fill.content(), success=True)
                with contextlib.suppress(ZeroDivisionError), request.tool_call("x", fill.content()):
                    raise ZeroDivisionError(fill.content())
                request.change("a.py", diff=fill.content(), change_summary=fill.name("s"))
                request.checkpoint(git_hash=fill.name("ae"))


def exporting(folder: Path) -> Exporting:
    """Return what exports a conversation of a store that kept everything, as it is before anybody redacted it."""

    async def exported(fill: Filler) -> Any:
        async with await Memory.open(folder / "source.db", worker=False) as source:
            made = await source.create_conversation(project="shop")
            await source.record(Turn(messages=(Message(role="user", content="a"),)), conversation=made.id)
            document = json.loads(await made.export())
        turn = document["turns"][0]
        turn["messages"] = [
            {"role": "user", "content": fill.message(), "sequence": 0, "content_bytes": 10**6},
            {"role": "assistant", "content": fill.message(), "sequence": 1, "reasoning": fill.content(), "content_bytes": 10**6},
        ]
        result = {"result": fill.content(), "error": fill.content()}
        turn["tool_calls"] = [{"tool_name": fill.name("x"), "arguments": {"a": fill.content()}, "message": 1, "result": result}]
        turn["changes"] = [{"file_path": "a.py", "diff": fill.content()}]
        document["conversation"] |= {"id": str(uuid4()), "title": fill.name("t"), "summary": fill.content()}
        return document

    return exported


# What goes wrong


async def wrong_for_the_library(memory: Memory, fill: Filler, errors: list[str]) -> None:
    """Hand in what cannot be read, and gather what is said about it."""
    conversation = await memory.create_conversation(project="shop")
    await conversation.record(user="x", request_id="taken")
    started = f"bad-{uuid4()}"
    await memory.requests.start(started, {"project_id": "shop"})
    text = fill.file
    attempts: list[Callable[[], Awaitable[object]]] = [
        lambda: memory.record(text()),
        lambda: memory.record({"messages": text()}),
        lambda: memory.record({"messages": [text()]}),
        lambda: conversation.record(user=[text()]),  # type: ignore[arg-type]
        lambda: conversation.record(user="x", tool_calls=text()),
        lambda: conversation.record(user="x", tool_calls=[text()]),
        lambda: conversation.record(user="x", changes=[{"diff": text()}]),
        lambda: conversation.record(messages=text()),
        lambda: conversation.record(messages=said("x"), reasoning=text()),
        lambda: conversation.record(user=text(), request_id="taken"),
        lambda: memory.import_conversation(text()),
        lambda: memory.import_conversation({"format": "other", "turns": [{"messages": [{"content": text()}]}]}),
        lambda: memory.import_conversation(_document([{"messages": [{"role": "user", "content": {"x": text()}}], "tool_calls": []}])),
        lambda: memory.import_conversation(_document([{"messages": [{"content": text(), "content_bytes": 69, "content_hash": "x"}]}])),
        lambda: memory.import_conversation(_document([{"messages": [{"content": text()}], "tool_calls": [{"arguments": text()}]}])),
        lambda: memory.requests.add(started, "messages", text()),
        lambda: memory.requests.add(started, "messages", {"messages": [text()]}),
        lambda: memory.requests.add(started, "model-response", [text()]),
        lambda: memory.requests.add("nobody", "tool-results", {"tool_results": [{"content": text()}]}),
    ]
    for attempt in attempts:
        with pytest.raises(RecollectError) as caught:
            await attempt()
        errors.append(f"{caught.value} {caught.value!r}")
    known = (await conversation.turns())[0].id
    errors += [str(await memory.verify(record_id, text())) for record_id in ("nobody", known)]


def _document(turns: list[Any]) -> dict[str, Any]:
    times = {"created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}
    head = {"format": "recollect-conversation", "version": 1, "project": {"name": "shop", "root": None, "external_id": "shop"}}
    return {**head, "conversation": {"id": "broken", **times}, "turns": [{"index": 0, **turn} for turn in turns]}


def wrong_for_other_doors(world: World, serving: Serving, fill: Filler) -> None:
    bad = [json.dumps({"messages": fill.file()}), f'{{"messages": "{fill.file()}', fill.file(), json.dumps([fill.file()])]
    done = world.command("ingest", "-", text="\n".join(bad) + "\n")
    assert done.returncode == 2
    world.errors += [done.stdout, done.stderr]
    content = world.folder / "content.txt"
    content.write_text(fill.file())
    done = world.command("verify", "nobody", "--content", str(content))
    content.unlink()
    assert done.returncode == 1
    world.errors += [done.stdout, done.stderr]
    with serving.client(serving.token(world.workspace, "admin")) as client:
        own = f"bad-{uuid4()}"
        client.post(f"/requests/{own}/start", json={"project_id": "shop"})
        for path, body in (
            ("/ingest/conversation", json.dumps({"messages": fill.file()})),
            ("/ingest/conversation", f'{{"messages": "{fill.file()}'),
            ("/ingest/conversation", json.dumps([fill.file()])),
            ("/conversations/import", json.dumps({"format": "x", "turns": [fill.file()]})),
            (
                "/conversations/import",
                json.dumps(_document([{"messages": [{"role": "user", "content": [fill.file()]}], "tool_calls": []}])),
            ),
            (f"/requests/{own}/messages", json.dumps(fill.file())),
            (f"/requests/{own}/code-changes", json.dumps({"code_changes": [fill.file()]})),
            ("/requests/nobody/messages", json.dumps({"messages": [{"role": "user", "content": fill.file()}]})),
            ("/conversations", json.dumps({"title": [fill.file()]})),
            ("/search", json.dumps({"query": {"x": fill.file()}})),
            ("/verify", json.dumps({"id": "nobody", "content": [fill.file()]})),
        ):
            answer = client.post(path, content=body.encode(), headers={"Content-Type": "application/json"})
            assert 400 <= answer.status_code < 500, (path, answer.text)
            world.errors.append(answer.text)
        world.errors.append(client.post("/verify", json={"id": "nobody", "content": fill.file()}).text)


# What is read afterwards


async def read_back(memory: Memory, answers: list[str], others: list[bytes]) -> None:
    """Distil, and ask for everything in every form."""
    await memory.distill()
    for info in await memory.list_conversations(limit=1_000):
        conversation = await memory.load_conversation(info.id)
        answers += [await conversation.export(), await conversation.export("markdown"), str(await conversation.summaries())]
        answers.append((await conversation.build_context()).render())
    for query in ("seen and done", "shell", "error"):
        answers.append(str(await memory.search(query, limit=100)))
    assert (await memory.verify()).status == "intact"
    others += said_in(memory.store.url, memory.workspace).values()  # while the journal is still there


def lived_through(world: World, target: str, fill: Filler) -> Trace:
    """Send everything through every door, read it in every form, and return all that was ever written or said."""
    exported = exporting(world.folder.parent)
    seen_on_the_way: list[bytes] = []

    async def recorded(memory: Memory) -> None:
        await through_the_library(memory, fill, exported)
        await wrong_for_the_library(memory, fill, world.errors)

    world.run(recorded)
    through_the_command_line(world, fill)
    with served(
        world.folder.parent / "server", store=world.store, projects=world.values["projects"], agent=world.values["agent"]
    ) as serving:
        through_http(world, serving, fill, asyncio.run(exported(fill)))
        wrong_for_other_doors(world, serving, fill)
        serving.stop()
    world.run(lambda memory: read_back(memory, world.answers, seen_on_the_way))
    asyncio.run(copy_store(world.store, target, workspace=world.workspace))
    return {
        **{f"store: {place}": content for place, content in said_in(world.store, world.workspace).items()},
        **{f"journal: {n}": content for n, content in enumerate(seen_on_the_way)},
        **{f"copy: {place}": content for place, content in said_in(target, world.workspace).items()},
        **world.files(world.mirror, world.folder.parent / "server"),
        "answers": "\n".join(world.answers).encode(),
        "errors": "\n".join(world.errors).encode(),
    }


STORES = ["sqlite", "neo4j"]


@pytest.fixture(params=STORES)
def urls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """Return a store, and one of the other kind to copy it to."""
    file, server = f"sqlite://{tmp_path / 'own' / 'store' / 'memory.db'}", request.getfixturevalue("neo4j_url")
    return (file, server) if request.param == "sqlite" else (server, file)


@pytest.fixture
def world(urls: tuple[str, str], tmp_path: Path, request: pytest.FixtureRequest) -> World:
    (tmp_path / "own").mkdir()
    return World(tmp_path / "own", urls[0], request.param)


in_both = pytest.mark.parametrize("world", ["full", "summary"], indirect=True)


def words(pattern: re.Pattern[bytes], content: bytes) -> set[str]:
    return {word.decode() for word in pattern.findall(content.lower())}


def places(found: Iterator[tuple[str, set[str]]]) -> dict[str, list[str]]:
    return {place: sorted(one)[:5] for place, one in found if one}


@pytest.mark.parametrize("world", ["summary"], indirect=True)
def test_in_summary_none_of_a_thousand_canaries_is_anywhere_and_the_first_200_characters_are(world: World, urls: tuple[str, str]) -> None:
    canaries = Canaries()
    trace = lived_through(world, urls[1], canaries)
    assert len({*canaries.kept, *canaries.lost}) >= CANARIES_MIN
    assert places((place, words(_CANARY, content)) for place, content in trace.items()) == {}
    stored = b"".join(content for place, content in trace.items() if place.startswith("store: "))
    assert words(_SEEN, stored) == set(canaries.seen)


@pytest.mark.parametrize("world", ["full"], indirect=True)
def test_in_full_the_same_canaries_are_found_so_that_the_search_can_fail(world: World, urls: tuple[str, str]) -> None:
    canaries = Canaries()
    trace = lived_through(world, urls[1], canaries)
    for kind in ("store: ", "copy: "):
        stored = b"".join(content for place, content in trace.items() if place.startswith(kind))
        assert sorted({*canaries.kept} - words(_CANARY, stored)) == [], kind
    exported = words(_CANARY, trace["answers"])
    assert len(exported) > len(canaries.kept) // 2
    assert words(_CANARY, b"".join(content for place, content in trace.items() if "mirror" in place))
    assert words(_CANARY, trace["errors"]) == set()
    logged = {place: content for place, content in trace.items() if "/server/" in place}
    assert len(logged) >= 3
    assert places((place, words(_CANARY, content)) for place, content in logged.items()) == {}


@in_both
def test_no_secret_of_any_kind_in_any_field_of_any_door_is_anywhere(world: World, urls: tuple[str, str]) -> None:
    trace = lived_through(world, urls[1], Secrets())
    found = {(kind, place) for kind, (_, secret) in PLANTED.items() for place, content in trace.items() if secret.encode() in content}
    assert sorted(found) == []
    assert b"[redacted:" in b"".join(trace.values())


@pytest.mark.parametrize("world", ["full"], indirect=True)
@pytest.mark.parametrize("urls", ["sqlite"], indirect=True)
def test_a_secret_in_the_address_of_a_request_is_in_no_log(world: World) -> None:
    _, secret = PLANTED["github-pat"]
    with served(world.folder.parent / "server", store=world.store) as serving, serving.client(serving.token(world.workspace)) as client:
        for path in (f"/requests/{secret}/start", f"/requests/{quote(PLANTED['url-password'][0], safe='')}/start", f"/{secret}"):
            client.post(path, json={"project_id": "shop"})
        client.get(f"/conversations/{secret}?query={secret}")
        serving.stop()
    trace = {**world.files(world.folder.parent / "server"), **said_in(world.store, world.workspace)}
    assert [place for place, content in trace.items() if secret.encode() in content or PLANTED["url-password"][1].encode() in content] == []


@pytest.mark.parametrize("world", ["summary"], indirect=True)
@pytest.mark.parametrize("urls", ["sqlite"], indirect=True)
def test_in_summary_the_head_of_a_request_that_comes_in_pieces_quotes_nothing_either(world: World) -> None:
    canaries = Canaries()

    async def begun(memory: Memory) -> None:
        artifacts = [{"text": canaries.content()}, canaries.content()]
        await memory.requests.start(
            "r1", {"project_id": "shop", "related_artifacts": artifacts, "meta": {"chat_id": "c", "x": canaries.file()}}
        )
        await memory.requests.add("r1", "model-response", {"usage": {"note": canaries.file()}, "created": canaries.file()})

    world.run(begun)
    assert places((place, words(_CANARY, content)) for place, content in said_in(world.store, world.workspace).items()) == {}
