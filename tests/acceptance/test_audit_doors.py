"""The five questions through the command line and over HTTP, on both stores: the answers of the library, and a text that reads well."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from recollect.memory import Memory
from recollect.model import Json
from tests import scenario
from tests.scenario import LINE, QUESTIONS
from tests.serving import as_lines, served

SERVICE = "src/auth/service.py"


class Doors:
    """A store with the scenario in one workspace and canaries in another, and the ways into it."""

    def __init__(self, folder: Path, store: str, workspace: str) -> None:
        self.folder = folder
        self.store = store
        self.workspace = workspace

    def run(self, *arguments: str, workspace: str | None = None, text: str | None = None, cwd: Path | None = None) -> tuple[str, int]:
        """Run a command in a shell's place; returns what it printed, and its exit code."""
        own = {"RECOLLECT_STORE": self.store, "RECOLLECT_WORKSPACE": workspace or self.workspace, "COLUMNS": "100"}
        done = subprocess.run(
            [sys.executable, "-m", "recollect", *arguments], input=text, capture_output=True, text=True, encoding="utf-8",
            cwd=cwd or self.folder, env={**os.environ, "HOME": str(self.folder), **own}, check=False,
        )  # fmt: skip
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout, done.returncode

    def told(self, *arguments: str) -> str:
        """Return what a command prints to somebody who looks, without how long ago things were."""
        printed, code = self.run(*arguments)
        assert code == 0, printed
        return re.sub(r"\d+ (?:day|month|year)s? ago", "a while ago", printed)

    async def library(self) -> dict[str, Json]:
        """Return what the library answers."""
        async with await Memory.open(self.store, workspace=self.workspace, worker=False) as memory:
            return {name: await one.ask(memory) for name, one in QUESTIONS.items()}


@pytest.fixture(scope="module", params=["neo4j", "sqlite"])
def doors(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Doors:
    """Record the scenario through the command line, once for the tests of this file, which only ask."""
    folder = tmp_path_factory.mktemp("shop")
    store = request.getfixturevalue("neo4j_url") if request.param == "neo4j" else f"sqlite://{folder / 'memory.db'}"
    made = Doors(folder, store, f"test-{uuid4()}")
    root = folder / "work"
    (root / "src" / "auth").mkdir(parents=True)
    (root / ".git").mkdir()
    (root / SERVICE).write_text("import logging\n\nimport jwt\n\n\ndef login_user(user):\n    if user.token is None:\n        raise\n")
    for workspace, payloads in ((made.workspace, scenario.payloads(str(root))), (f"{made.workspace}-theirs", scenario.canaries())):
        printed, code = made.run("ingest", "-", workspace=workspace, text="\n".join(map(json.dumps, payloads)))
        assert (printed, code) == (f"{len(payloads)} created\n", 0)
    return made


@pytest.fixture(scope="module")
def client(doors: Doors, tmp_path_factory: pytest.TempPathFactory) -> Generator[httpx.Client]:
    """Ask a server on the same store, with a token that may only read."""
    with (
        served(tmp_path_factory.mktemp("server"), store=doors.store) as serving,
        serving.client(serving.token(doors.workspace, "read")) as one,
    ):
        yield one


async def test_the_command_line_answers_every_question_as_the_library_does(doors: Doors) -> None:
    answers: dict[str, Json] = {}
    for name, question in QUESTIONS.items():
        printed, code = doors.run("--json", *question.line)
        assert (printed.count("\n"), code) == (1, 0), name
        answers[name] = json.loads(printed)
    assert answers == await doors.library()
    scenario.check_answers(answers)


def answers_of(client: httpx.Client) -> dict[str, Json]:
    replies = {name: client.get(one.route, params={**one.query, **one.within}) for name, one in QUESTIONS.items()}
    assert {reply.status_code for reply in replies.values()} == {200}
    return {name: one.of_route(replies[name].json()) for name, one in QUESTIONS.items()}


async def test_http_answers_every_question_as_the_library_does(doors: Doors, client: httpx.Client) -> None:
    answers = answers_of(client)
    assert answers == await doors.library()
    scenario.check_answers(answers)


def test_a_request_its_context_and_the_projects_are_there_over_http(client: httpx.Client) -> None:
    assert scenario.told_context(client.get("/requests/req_check/context").json()["context_files"]) == scenario.WHY_CONTEXT
    request = client.get("/requests/req_check").json()
    assert [turn["index"] for turn in request["turns"]] == [1, 2, 3]
    assert [one["name"] for one in client.get("/projects").json()["items"]] == ["blog", "shop"]


def test_what_is_not_there_is_said_so_over_http(client: httpx.Client) -> None:
    assert client.get("/projects/shop/why", params={"path": "src/nobody.py"}).json()["changes"] == []
    assert client.get("/projects/shop/files/usage", params={"path": "src/nobody.py"}).json()["count"] == 0
    for path in ("/requests/req_nobody/flow", "/projects/nowhere/tools", "/projects/nowhere/checkpoints"):
        assert client.get(path).status_code == 404
    assert client.get("/projects/shop/files/usage", params={"path": ""}).status_code == 422
    for query in (
        {"path": ""},
        {"path": " "},
        {"path": "a", "line": 0},
        {"path": "a", "line": "x"},
        {},
        {"path": "a", "days": -1},
        {"path": "a", "since": "soon"},
    ):
        assert client.get("/projects/shop/why", params=query).status_code == 422, query


def test_http_reads_no_file_of_the_server_for_anybody(client: httpx.Client) -> None:
    """The directory of a project is what a sender said it is: a question about its lines must not be a way to read it."""
    found = client.get("/projects/shop/why", params={"path": SERVICE, "line": 1}).json()
    assert (found["line_text"], found["found_by"]) == (None, "range")
    assert client.get("/projects/shop/why", params={"path": SERVICE, "line": 6}).json()["line_text"] is None


def test_requests_that_come_in_over_http_are_answered_alike(tmp_path: Path) -> None:
    with served(tmp_path) as serving, serving.client(serving.token()) as client:
        recorded = client.post("/ingest/conversation", **as_lines([json.dumps(one).encode() for one in scenario.payloads()])).json()
        assert recorded["bad"] == 0
        scenario.check_answers(answers_of(client))


def test_why_a_line_reads_like_an_answer(doors: Doors) -> None:
    assert doors.told("why", f"{SERVICE}:7", "--text", LINE, "--project", "shop", "--until", "2026-03-02") == (
        "line 7   if user.token is None:\n"
        'changed  a while ago by update_textdoc in turn 2 of "Fix login bug" (req_check)              +2 −0\n'
        "where    src/auth.py\n"
        "asked    Then add a null check\n"
        "context  0.92 src/auth.py 1–6 (vecdb) · 0.78 docs/errors.md (vecdb) · tests/test_auth.py (ast)\n"
        'because  "auth.py reads user.token without a null check, and errors.md asks for defensive code"\n'
    )


def test_why_a_file_reads_like_an_answer(doors: Doors) -> None:
    told = doors.told("why", SERVICE, "--project", "shop", "--limit", "4")
    assert told.startswith(f"file     {SERVICE} · the 4 newest changes\n\n")
    assert doors.told("why", SERVICE, "--project", "shop").startswith(f"file     {SERVICE} · 6 changes, the newest first\n\n")
    assert (
        'changed  a while ago by update_textdoc in turn 7 of "Fix login bug" (req_limit)               +3 −1\n'
        "where    login_user\n"
        "asked    Limit attempts\n"
        "context  0.62 docs/errors.md (manual) · 0.10 CHANGELOG.md (vecdb) · 0.05 CHANGELOG.md (vecdb)\n"
        "agent    Limited\n"
    ) in told
    assert "renamed  from src/auth.py a while ago by apply_patch in turn 4" in told


def test_a_line_that_was_found_by_its_number_says_so(doors: Doors) -> None:
    told = doors.told("why", "src/pay.py:18", "--project", "shop")
    assert told.startswith("line 18  of src/pay.py (found by its number)\nchanged  a while ago in turn 1 of")


def test_a_file_that_is_in_the_current_directory_is_the_one_that_is_meant(doors: Doors) -> None:
    """No project is named, the line is read from the file, and its path is told as it is kept."""
    printed, code = doors.run("--json", "why", "service.py:7", cwd=doors.folder / "work" / "src" / "auth")
    assert code == 0, printed
    found = json.loads(printed)
    assert (found["path"], found["line_text"], found["found_by"]) == (SERVICE, f"    {LINE}", "content")
    assert scenario.told_why(found) == scenario.WHY_LINE


def test_a_file_in_a_linked_worktree_is_the_one_of_its_project(doors: Doors) -> None:
    tree, kept = doors.folder / "work-wt", doors.folder / "work" / ".git" / "worktrees" / "work-wt"
    (tree / "src" / "auth").mkdir(parents=True)
    kept.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {kept}\n")
    (kept / "gitdir").write_text(f"{tree}/.git\n")
    (tree / SERVICE).write_text("changed = 1\n")
    for cwd, path in ((tree, SERVICE), (tree / "src", "auth/service.py")):
        printed, code = doors.run("--json", "why", path, cwd=cwd)
        assert code == 0, printed
        assert scenario.told_why(json.loads(printed)) == scenario.WHY_FILE


def test_a_flow_reads_like_a_conversation(doors: Doors) -> None:
    told = doors.told("flow", "req_check")
    assert re.sub(r"[0-9a-f-]{36}", "…", told) == (
        "request req_check · 3 turns of conversation … · complete\n"
        "context  0.92 src/auth.py 1–6 (vecdb) · 0.78 docs/errors.md (vecdb) · tests/test_auth.py (ast)\n"
        "you      Why does login crash when the token has expired?\n"
        "tool     cat src/auth.py success\n"
        "agent    The token is None after expiry\n"
        "you      Then add a null check\n"
        "thought  auth.py reads user.token without a null check, and errors.md asks for defensive code\n"
        "agent    I'll check the token first\n"
        "tool     update_textdoc src/auth.py success in 41 ms\n"
        "         updated src/auth.py +2 −0, high severity\n"
        "agent    Added a null check\n"
        "you      Is there a test for it?\n"
        "agent    Not yet\n"
        "saved    checkpoint k2\n"
    )


def test_usage_reads_like_a_sentence_and_like_tables(doors: Doors) -> None:
    assert doors.told("usage", "src/models.py", "--project", "shop") == (
        "src/models.py was used 47 times, average usefulness 0.89, sources ast and vecdb; last a while ago\n"
        "followed by 2 changes in those requests, the newest first:\n"
        "         a while ago updated src/views.py +1 −1 in turn 1 (req_models_2)\n"
        "         a while ago updated src/models.py +12 −2 in turn 0 (req_models_1)\n"
    )
    told = doors.told("usage", "--project", "shop")
    assert "most used\nuses  useful  file                 sources\n47    0.89    src/models.py        ast, vecdb\n" in told
    assert "never useful\nuses  useful  file          sources\n2     0.07    CHANGELOG.md  vecdb\n" in told
    assert told.endswith("source    uses  files  useful\nast       21    2      0.90\nvecdb     31    4      0.81\n"
                         "manual    1     1      0.62\ntool      1     1      ?\n")  # fmt: skip


def test_tools_say_how_many_of_how_many_failed(doors: Doors) -> None:
    told = doors.told("tools", "--project", "shop")
    assert told.startswith(
        "tool            calls  failed  rate  p50     p95     trend\n"
        "run_tests       25     3       12 %  100 ms  190 ms  steady\n"
        "update_textdoc  5      0       0 %   41 ms   59 ms\n"
    )
    assert told.endswith("\nrun_tests · 3 of 25 failed: 12 %\n2 times  Error: 7 tests failed\nonce     Timeout after 30 s\n")


def test_checkpoints_read_like_a_timeline(doors: Doors) -> None:
    told = re.sub(r"\b[0-9a-f]{8}\b", "…", doors.told("checkpoints", "--project", "shop"))
    assert told == (
        "aa01 · a while ago · turn 0 of …\n"
        "         created src/auth.py +6 −0\n"
        "         updated src/auth.py +2 −0\n"
        "k2 · a while ago · turn 3 of … · commit ab02 · after aa01 (by order)\n"
        "         renamed src/auth/service.py +1 −1\n"
        "         created src/auth.py +1 −0\n"
        "         updated src/auth/service.py +2 −0\n"
        "m1 · a while ago · turn 2 of …\n"
        "k3 · a while ago · turn 7 of … · commit ab03 · after k2\n"
        "         updated src/auth/service.py +3 −1\n"
        "bb04 · a while ago · turn 8 of … · after k3 (by order)\n"
        "         updated src/auth/service.py +6 −0\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("why", "src/nobody.py"), "no change of src/nobody.py is recorded\n"),
        (("why", "src/pay.py:28"), "no change of src/pay.py:28 is recorded\n"),
        (("usage", "src/nobody.py"), "src/nobody.py was never given as context\n"),
        (("usage", "--until", "2026-01-01"), "no file was given as context\n"),
        (("tools", "--tool", "nobody"), "nobody was not called\n"),
        (("tools", "--until", "2026-01-01"), "no tool was called\n"),
        (("checkpoints", "--until", "2026-01-01"), "no checkpoint is recorded\n"),
        (("flow", "req_nobody"), ""),
    ],
)
def test_where_nothing_is_found_a_command_says_so_and_ends_with_1(doors: Doors, arguments: tuple[str, ...], said: str) -> None:
    assert doors.run(*arguments, "--project", "shop") == (said, 1)
    printed, code = doors.run("--json", *arguments, "--project", "shop")
    told: Any = json.loads(printed or "null")
    assert code == 1
    assert not told or not (told.get("changes") or told.get("count") or told.get("most_used"))


def test_a_question_that_is_not_clear_ends_with_2(doors: Doors) -> None:
    assert doors.run("tools") == ("", 2), "the current directory is no project, and there are two"
    assert doors.run("flow", "req_log") == ("", 2), "two projects have one"
    assert doors.run("why", SERVICE, "--project", "shop", "--since", "soon") == ("", 2)
    assert doors.run("why", f"{SERVICE}:0", "--project", "shop") == ("", 2)
    assert doors.run("why", "", "--project", "shop") == doors.run("usage", "", "--project", "shop") == ("", 2)
    assert doors.run("tools", "--project", "nowhere") == ("", 1)
