"""The command line as a person and as a script use it: real processes, real files, exit codes, JSON on standard output."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from recollect import __version__
from tests.kit import said


class Shell:
    """Runs `recollect` in a folder of its own."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.folder = folder
        own = store or f"sqlite://{folder / 'memory.db'}"
        self.environment = {**os.environ, "RECOLLECT_STORE": own, "COLUMNS": "100", "HOME": str(folder)}

    def run(self, *arguments: str, code: int = 0, text: str | None = None) -> str:
        done = self.raw(*arguments, text=text)
        assert done.returncode == code, (arguments, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout

    def raw(self, *arguments: str, text: str | bytes | None = None) -> subprocess.CompletedProcess[str]:
        given = text.encode(errors="surrogateescape") if isinstance(text, str) else text
        done = subprocess.run(
            [sys.executable, "-m", "recollect", *arguments],
            input=given,
            capture_output=True,
            cwd=self.folder,
            env=self.environment,
            check=False,
        )
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    def redirected(self, how: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", "-c", f'exec "$@" {how}', "sh", sys.executable, "-m", "recollect", *arguments]
        return subprocess.run(command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False)

    def refused(self, *arguments: str, code: int) -> str:
        """Return the sentence of an error, which both streams have."""
        done = self.raw("--json", *arguments)
        told = json.loads(done.stdout)["error"]
        assert (done.returncode, done.stderr) == (code, f"recollect: {told}\n")
        return told

    def stopped(self, sign: signal.Signals, *arguments: str) -> tuple[int, str, str]:
        """Run it until its first line, and say how it ends when it is sent a signal: its code, that line, its standard error."""
        command = [sys.executable, "-u", "-m", "recollect", *arguments]
        with subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            first = process.stdout.readline()
            process.send_signal(sign)
            _, told = process.communicate(timeout=60)
            return process.returncode, first, told

    def json(self, *arguments: str, code: int = 0) -> Any:
        return json.loads(self.run("--json", *arguments, code=code))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


@pytest.fixture(params=["neo4j", "sqlite"])
def any_shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    """Run on either store; a server's tests each have a workspace of their own."""
    shell = Shell(tmp_path, request.getfixturevalue("neo4j_url") if request.param == "neo4j" else None)
    shell.environment["RECOLLECT_WORKSPACE"] = f"test-{uuid4()}"
    return shell


def payload(request: str = "r1", **parts: Any) -> dict[str, Any]:
    return {
        "request_id": request,
        "project_id": "shop",
        "chat_id": "c",
        "title": "Fix login",
        "messages": said("why does login crash", "the token expired"),
        **parts,
    }


def ingested(shell: Shell) -> str:
    (shell.folder / "in.json").write_text(json.dumps(payload()))
    return shell.json("ingest", "in.json")["conversation_id"]


def test_the_tour_records_lists_shows_finds_branches_exports_and_verifies(shell: Shell) -> None:
    told = shell.run("demo")
    expected = ("4 created", "$ recollect conversations", "Fix login crash", "$ recollect search", "**token**", "$ recollect branch")
    for part in (
        *expected,
        "$ recollect export",
        "1 of level 2",
        "turns 0–47 · level 2 · extractive",
        "intact: 87 records checked",
        "What next?",
        "[redacted:url-password]",
    ):
        assert part in told, part
    assert "s3cr3t-pw" not in told
    assert not (shell.folder / "memory.db").exists(), "the tour has a file of its own"


def test_version_and_help(shell: Shell) -> None:
    assert shell.run("--version") == f"recollect {__version__}\n"
    for words in (("--version", "--json"), ("--json", "--version"), ("--json", "--version", "stats")):
        assert json.loads(shell.run(*words)) == {"version": __version__}
    assert shell.run("--version", "stats") == f"recollect {__version__}\n"
    assert not list(shell.folder.iterdir())
    assert "conversations" in shell.run("--help")
    assert "COMMAND" in shell.run(code=2)
    assert "--limit" in shell.run("search", "--help")
    shell.run("frobnicate", code=2)
    shell.run("show", code=2)


def test_a_conversation_from_beginning_to_end(any_shell: Shell) -> None:
    ident = any_shell.run("new", "--project", "shop", "--title", "Fix login", "--tag", "auth").strip()
    assert f"created: turn 0 of {ident}" in any_shell.run(
        "record", ident, "--user", "why does login crash", "--assistant", "the token expired"
    )
    assert "created: turn 1" in any_shell.run("record", ident[:8], "--messages", "-", text=json.dumps(said("and now?", "fixed")))
    listed = any_shell.run("conversations")
    assert "Fix login #auth" in listed
    assert ident[:8] in listed
    shown = any_shell.run("show", ident[:8])
    assert "you    why does login crash" in shown
    assert any_shell.json("show", ident)["turns"][1]["assistant"] == "fixed"
    assert "**login** **crash**" in any_shell.run("search", "login", "crash")
    branch = any_shell.json("branch", ident, "--turn", "0", "--title", "other way")
    assert branch["branch_of"] == ident
    assert any_shell.json("edit", ident, "--title", "Better title", "--tag", "x")["tags"] == ["x"]
    assert any_shell.json("archive", ident)["status"] == "archived"
    assert [info["id"] for info in any_shell.json("conversations", "--status", "archived")] == [ident]
    assert any_shell.json("archive", ident, "--undo")["status"] == "active"
    any_shell.run("export", ident, "--output", "out.json")
    assert "## Turn 0" in any_shell.run("export", ident, "--format", "markdown")
    any_shell.run("delete", ident)
    any_shell.run("show", ident, code=1)
    assert any_shell.json("import", "recollect", "out.json")["conversations"] == [ident]
    assert any_shell.run("export", ident) == (any_shell.folder / "out.json").read_text()
    assert any_shell.json("forget", "--project", "shop")["conversations"] == 2
    any_shell.run("conversations", code=1)


def test_tools_files_and_sessions(any_shell: Shell) -> None:
    (any_shell.folder / "work").mkdir()
    ident = any_shell.run("new", "--cwd", "work").strip()
    call = [
        {"id": "a", "name": "Read", "arguments": {"file_path": "a.py"}, "result": "x"},
        {"id": "b", "name": "Bash", "arguments": {"command": "make"}, "error": "no"},
    ]
    (any_shell.folder / "m.json").write_text(
        json.dumps([{"role": "user", "content": "go"}, {"role": "assistant", "content": "ok", "tool_calls": call}])
    )
    any_shell.run("record", ident, "--messages", "m.json")
    assert [one["path"] for one in any_shell.json("files", ident)] == ["a.py"]
    assert "read" in any_shell.run("files", ident)
    assert [one["tool_name"] for one in any_shell.json("tool-calls", ident, "--failed")] == ["Bash"]
    assert "✓ Read" in any_shell.run("tool-calls", ident, "--tool", "Read")
    any_shell.run("tool-calls", ident, "--tool", "Nobody", code=1)
    assert [one["id"] for one in any_shell.json("sessions", "--cwd", "work")] == [ident]
    assert "ok" in any_shell.run("sessions", "--cwd", "work/../work")
    assert any_shell.json("sessions", "--cwd", "elsewhere", code=1) == []


def test_ingest_keeps_the_good_and_reports_the_bad(any_shell: Shell) -> None:
    lines = [
        json.dumps(payload("r1")),
        "{broken",
        json.dumps(payload("r2", messages=said("new", "turn"))),
        json.dumps({"messages": []}),
        json.dumps(payload("r1")),
    ]
    (any_shell.folder / "in.jsonl").write_text("\n".join(lines))
    done = any_shell.raw("ingest", "in.jsonl")
    assert done.returncode == 2
    assert "line 2" in done.stderr
    assert "line 4" in done.stderr
    assert done.stdout.strip() == "2 created, 1 unchanged, 2 bad"
    results = [json.loads(line) for line in any_shell.raw("--json", "ingest", "in.jsonl").stdout.splitlines()]
    assert [result.get("status", "error") for result in results] == ["unchanged", "error", "unchanged", "error", "unchanged"]
    assert any_shell.json("stats")["turns"] == 2
    (any_shell.folder / "array.json").write_text(
        json.dumps([payload("r3", messages=said("third")), payload("r4", messages=said("fourth"))])
    )
    assert "2 created" in any_shell.run("ingest", "array.json")
    assert "1 created" in any_shell.run("ingest", "-", text=json.dumps(payload("r5", messages=said("fifth")), indent=2))
    conflicting = json.dumps(payload("r5", messages=said("other")))
    assert "with replace" in any_shell.raw("ingest", "-", text=conflicting).stderr
    assert "1 replaced" in any_shell.run("ingest", "--replace", "-", text=conflicting)


def test_imports_of_plain_message_lists(any_shell: Shell) -> None:
    (any_shell.folder / "chat.json").write_text(json.dumps(said("a", "b", "c", "d")))
    first = any_shell.json("import", "openai", "chat.json", "--project", "p")
    assert any_shell.json("import", "openai", "chat.json", "--project", "p") == {**first, "unchanged": 1}
    assert any_shell.json("import", "openai", "chat.json", "--project", "p", "--new-id")["conversations"] != first["conversations"]
    assert len(any_shell.json("show", first["conversations"][0])["turns"]) == 2
    (any_shell.folder / "bad.json").write_text("7")
    done = any_shell.raw("import", "openai", "bad.json", "chat.json", "--project", "p")
    assert done.returncode == 2
    assert "0 conversations imported, 1 unchanged, 1 bad" in done.stdout


def test_verify_stats_doctor_and_config(any_shell: Shell) -> None:
    ident = ingested(any_shell)
    message = any_shell.json("show", ident)["turns"][0]["messages"][0]["id"]
    (any_shell.folder / "said.txt").write_text("why does login crash")
    assert any_shell.json("verify", message, "--content", "said.txt")["status"] == "matches"
    assert any_shell.json("verify", message, "--content", "in.json", code=1)["status"] == "differs"
    assert any_shell.json("verify", "nobody", "--content", "in.json", code=1)["status"] == "unknown"
    assert any_shell.json("verify")["status"] == "intact"
    any_shell.run("verify", message, code=2)
    assert "turns          1" in any_shell.run("stats")
    assert "ok  store" in any_shell.run("doctor")
    assert any_shell.json("doctor")["ok"]
    assert any_shell.run("config", "path").strip().endswith("config.yaml")
    assert json.loads(any_shell.run("config", "show"))["workspace"] == any_shell.environment["RECOLLECT_WORKSPACE"]


def test_a_store_that_cannot_be_used_is_exit_code_3(shell: Shell) -> None:
    (shell.folder / "other.db").write_bytes(b"not a database, but long enough to be looked at" * 50)
    for arguments in (("conversations",), ("doctor",), ("ingest", "-")):
        done = shell.raw("--store", "other.db", *arguments, text=json.dumps(payload()))
        assert done.returncode == 3, done
        assert "Traceback" not in done.stderr
    assert shell.raw("--store", "mysql://x", "conversations").returncode == 2


@pytest.mark.parametrize("source", ["nobody.db", "sqlite:nobody.db", "sqlite:///nobody/nobody.db", "SQLite://nobody.db", "~/nobody.db"])
def test_a_store_that_is_not_there_is_not_copied_and_not_created(shell: Shell, source: str) -> None:
    assert "name a file that exists" in shell.refused("copy", source, "there.db", code=3)
    assert not list(shell.folder.iterdir())


def test_a_store_is_copied_by_its_path_and_by_its_address(shell: Shell) -> None:
    ingested(shell)
    assert shell.json("copy", "memory.db", "there.db")["new_turns"] == 1
    assert shell.json("copy", f"sqlite://{shell.folder}/memory.db", "there.db")["new_turns"] == 0
    assert shell.json("copy", "sqlite:~/there.db", "again.db")["new_turns"] == 1
    assert "no store speaks 'mysql'" in shell.refused("copy", "mysql://x", "there.db", code=2)


def test_numbers_that_make_no_sense_are_refused(shell: Shell) -> None:
    ident = ingested(shell)
    for arguments in (
        ("conversations", "--limit", "9" * 30),
        ("show", ident, "--first", "-1"),
        ("show", ident, "--last", "9" * 30),
        ("search", "x", "--limit", "x"),
        ("why", "a.py", "--limit", "0"),
        ("context", "x", "--wait", "-1"),
        ("context", "x", "--wait", "nan"),
        ("context", "x", "--wait", "inf"),
        ("context", "x", "--wait", "soon"),
    ):
        shell.run(*arguments, code=2)
    shell.run("--store", str(shell.folder), "conversations", code=2)
    shell.run("--store", "m.db?mode=ro", "conversations", code=2)
    assert "No conversation matches." in shell.run("conversations", "--project", "nobody", code=1)
    assert shell.json("context", "login", "--wait", "0.5")["items"]


def test_what_a_command_says_it_recorded_is_there_also_without_auto_save(any_shell: Shell) -> None:
    (any_shell.folder / "c.yaml").write_text("agent: {memory: {persistence: {auto_save: false}}}\n")
    any_shell.environment["RECOLLECT_CONFIG"] = str(any_shell.folder / "c.yaml")
    ident = any_shell.run("new", "--project", "p").strip()
    any_shell.run("record", ident, "--user", "kept")
    assert any_shell.json("show", ident)["turns"][0]["user"] == "kept"


def test_code_is_indexed_and_its_symbols_are_shown_with_who_speaks_of_them(any_shell: Shell) -> None:
    root = any_shell.folder / "shop"
    root.mkdir()
    (root / "auth.py").write_text('def login_user(name):\n    """Greet somebody."""\n    return name\n')
    made = any_shell.json("new", "--cwd", str(root), "--title", "Fix login")
    any_shell.run("record", made["id"], "--user", "Why does login_user crash?", "--assistant", "It reads no name.")
    assert any_shell.run("index", str(root)) == "shop: 1 symbol in 1 file (1 read anew)\n"
    assert any_shell.json("index", str(root)) == {
        "project": "shop", "root": str(root), "files": 1, "scopes": 1, "changed": 0, "gone": 0, "unreadable": 0,
    }  # fmt: skip
    told = any_shell.run("scopes", "login_user", "--cwd", str(root))
    assert told.splitlines()[:3] == ["function login_user · auth.py:1–3", "    def login_user(name)", "    Greet somebody."]
    assert told.splitlines()[3].startswith(f"    spoken of in {made['id'][:8]} ·")
    assert told.splitlines()[3].endswith("· Fix login")
    (found,) = any_shell.json("scopes", "login_user", "--cwd", str(root))
    assert (found["scope"]["line_end"], found["conversations"][0]["id"]) == (3, made["id"])
    any_shell.run("scopes", "nobody", "--cwd", str(root), code=1)
    assert any_shell.json("scopes", "nobody", "--cwd", str(root), code=1) == []
    any_shell.run("index", str(root / "nothing"), code=1)


def test_watching_reads_again_what_changes_until_it_is_stopped(shell: Shell) -> None:
    root = shell.folder / "shop"
    root.mkdir()
    (root / "a.py").write_text("def one(): pass\n")
    command = [sys.executable, "-u", "-m", "recollect", "index", str(root), "--watch"]
    with subprocess.Popen(
        command, cwd=shell.folder, env=shell.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as watching:
        assert watching.stdout is not None
        assert watching.stderr is not None
        assert watching.stdout.readline() == "shop: 1 symbol in 1 file (1 read anew)\n"
        assert watching.stderr.readline().startswith("following ")
        told = threading.Event()
        threading.Thread(target=_touch_until, args=(root / "b.py", told), daemon=True).start()
        assert watching.stdout.readline() == "shop: 2 symbols in 2 files (1 read anew)\n"
        told.set()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(60) in {0, 130}
        assert "Traceback" not in watching.stderr.read()


def _touch_until(path: Path, told: threading.Event) -> None:
    """Write a file, again and again, because nobody can tell when the watching has begun."""
    number = 0
    while not told.wait(0.5):
        path.write_text("def two(): pass\n" + "\n" * (number % 2))
        number += 1


def test_workspaces_are_apart(any_shell: Shell) -> None:
    ident = ingested(any_shell)
    assert any_shell.json("--workspace", "other", "conversations", code=1) == []
    any_shell.run("--workspace", "other", "show", ident, code=1)
    assert any_shell.json("--workspace", "other", "search", "login", code=1)["hits"] == []


@pytest.mark.parametrize("name", ["demo", "search", "tools", "show", "serve", "stats"])
def test_a_workspace_and_a_store_may_be_called_like_a_command(shell: Shell, name: str) -> None:
    assert shell.json("--workspace", name, "stats")["workspace"] == name
    assert shell.json("stats", "--workspace", name)["workspace"] == name
    assert shell.json(f"--workspace={name}", "--store", name, "stats")["store"] == f"sqlite://{shell.folder / name}"


@pytest.mark.parametrize("words", [("stats",), ("worker", "--once"), ("chat", "--offline", "x"), ("serve", "--port", "0"), ("doctor",)])
def test_a_store_that_is_named_by_nothing_is_refused_and_not_the_users_own(shell: Shell, words: tuple[str, ...]) -> None:
    del shell.environment["RECOLLECT_STORE"]
    shell.run("--store", "", *words, code=2)
    assert not list(shell.folder.iterdir())


@pytest.mark.parametrize("words", [("token", "create", "--role", "admin"), ("token", "list"), ("stats",), ("demo",)])
def test_a_workspace_that_is_named_by_nothing_is_refused_and_not_the_default_one(shell: Shell, words: tuple[str, ...]) -> None:
    shell.run(*words, "--workspace", "", code=2)
    assert not list(shell.folder.iterdir())


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("show", "nobody"), 1),
        (("flow", "nothing"), 1),
        (("forget", "--conversation", "nobody"), 1),
        (("tools", "--project", "nothing"), 1),
        (("chat", "--offline", "--resume", "nobody", "hi"), 1),
        (("search", "x", "--levels", "x"), 2),
        (("ingest", "nothing.json"), 2),
        (("ingest", "no-text-\udcff.json"), 2),
        (("--workspace", "", "stats"), 2),
        ((), 2),
        (("--store", "other.db", "stats"), 3),
    ],
)
def test_an_error_is_one_json_document_for_a_program(shell: Shell, words: tuple[str, ...], code: int) -> None:
    (shell.folder / "other.db").write_bytes(b"not a database, but long enough to be looked at" * 50)
    assert shell.refused(*words, code=code)


def test_an_export_is_one_json_document_or_says_where_it_is(shell: Shell) -> None:
    ident = ingested(shell)
    told = {"conversation": ident, "turns": 1}
    assert shell.json("export", ident)["conversation"]["id"] == ident
    assert shell.json("export", ident, "--output", "o.json") == {**told, "format": "json", "output": "o.json"}
    assert json.loads((shell.folder / "o.json").read_text()) == shell.json("export", ident)
    assert shell.json("export", ident, "--format", "markdown", "--output", "o.md") == {**told, "format": "markdown", "output": "o.md"}
    assert "--output" in shell.refused("export", ident, "--format", "markdown", code=2)
    assert not shell.run("export", ident, "--output", "o.json")


def test_a_server_says_where_it_is_as_one_json_document(shell: Shell) -> None:
    _, first, _ = shell.stopped(signal.SIGTERM, "--json", "serve", "--port", "0")
    told = json.loads(first)
    assert told["serving"] == "default"
    assert told["address"].startswith("http://127.0.0.1:")
    assert told["key_address"].startswith(f"{told['address']}/?key=")
    shell.run("token", "create")
    _, first, _ = shell.stopped(signal.SIGTERM, "--json", "serve", "--port", "0")
    assert json.loads(first)["key_address"] is None


def test_options_may_stand_after_the_command_and_a_closed_pipe_is_quiet(shell: Shell) -> None:
    ingested(shell)
    assert json.loads(shell.run("conversations", "--json"))
    process = subprocess.Popen(
        [sys.executable, "-m", "recollect", "export", ingested(shell)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=shell.folder,
        env=shell.environment,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    process.wait()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no file that is always full")
@pytest.mark.parametrize("buffered", ["", "1"])
@pytest.mark.parametrize("words", [("search", "login"), ("stats",), ("--json", "stats"), ("--version",), ("demo",)])
def test_an_answer_that_cannot_be_written_is_one_sentence_and_exit_code_3(shell: Shell, words: tuple[str, ...], buffered: str) -> None:
    shell.environment["PYTHONUNBUFFERED"] = buffered
    done = shell.redirected(">/dev/full", *words)
    assert (done.returncode, done.stderr) == (3, "recollect: cannot use standard input or output: No space left on device\n")


@pytest.mark.parametrize("words", [("search", "login"), ("stats",), ("--json", "stats"), ("--help",), ("demo",)])
def test_a_closed_standard_output_is_a_pipe_that_nobody_reads(shell: Shell, words: tuple[str, ...]) -> None:
    done = shell.redirected(">&-", *words)
    assert (done.returncode, done.stderr) == (141, "")


def test_what_is_for_a_closed_standard_error_is_no_part_of_the_answer(shell: Shell) -> None:
    done = shell.redirected("2>&-", "show", "nobody")
    assert (done.returncode, done.stdout) == (1, "")
    done = shell.redirected("<&-", "ingest", "-")
    assert (done.returncode, "there is nothing to read" in done.stderr) == (2, True)


@pytest.mark.parametrize(
    "text",
    ["", "null", "7", '"x"', "[]", "[[]]", "{}", '{"messages": 3}', '{"messages": [[]]}', "[" * 200_000, '{"a":' * 200_000, "\0",
     "{\ud800}",
     '{"messages": [{"role": "user", "content": NaN}]} x', "nonsense\nmore nonsense"],
)  # fmt: skip
def test_malformed_input_is_exit_code_2_and_never_a_traceback(shell: Shell, text: str) -> None:
    done = shell.raw("ingest", "-", text=text.encode(errors="surrogatepass"))
    assert (done.returncode, "Traceback" in done.stderr) == (2, False) or (text == "[]" and done.returncode == 0), done
    assert shell.raw("import", "recollect", "-", text=text.encode(errors="surrogatepass")).returncode == 2


@pytest.mark.parametrize(
    "message",
    [
        {"role": "user", "content": "a\ud800b\0c"},
        {"role": "user", "content": 2**70},
        {"role": "user", "content": float("nan")},
        {"role": "user", "content": "x", "timestamp": "9999-99-99"},
        {"role": "user", "content": "x", "timestamp": "2999-01-01T00:00:00Z"},
        {"role": "wizard", "content": "x"},
        {"role": "tool", "tool_call_id": "nobody", "content": "x"},
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "x"}, {"id": "a", "name": "x"}]},
        {"role": "assistant", "content": {"unexpected": {"shape": [1, 2]}}},
        {"role": "user", "content": "x", "token_count": 2**80, "usage": {"prompt_tokens": "many"}},
    ],
)
def test_strange_messages_are_recorded_with_tolerance_and_hide_no_neighbour(shell: Shell, message: dict[str, Any]) -> None:
    document = payload(
        messages=[{"role": "user", "content": "before"}, message, {"role": "user", "content": "after"}], cwd="/nowhere/at/all"
    )
    recorded = json.loads(shell.run("--json", "ingest", "-", text=json.dumps(document)))
    shown = shell.json("show", recorded["conversation_id"])
    users = [turn["user"] for turn in shown["turns"]]
    assert users[0] == "before"
    assert users[-1] == "after"
    assert shell.json("verify")["status"] == "intact"


def test_a_200_mb_message_is_cut_and_keeps_its_size(shell: Shell) -> None:
    big = shell.folder / "big.json"
    with big.open("w") as file:
        file.write('{"project_id": "p", "messages": [{"role": "user", "content": "')
        for _ in range(200):
            file.write("word " * 200_000)
        file.write('"}, {"role": "assistant", "content": "ok"}]}')
    recorded = json.loads(shell.run("--json", "ingest", "big.json"))
    message = shell.json("show", recorded["conversation_id"])["turns"][0]["messages"][0]
    assert message["content_bytes"] == 200_000_000
    assert len(message["content"]) <= 1_000_000
    assert "cut:" in message["content"]


@pytest.mark.parametrize("query", ["", '"', "src/auth.py:12", "-", "AND", "*", "\n", "🙂", "a" * 10_000])
def test_any_string_is_a_legal_search(shell: Shell, query: str) -> None:
    ingested(shell)
    assert shell.raw("search", "--", query).returncode in {0, 1}


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_server_that_is_told_to_stop_ends_well(shell: Shell, sign: signal.Signals) -> None:
    code, first, told = shell.stopped(sign, "serve", "--port", "0")
    assert (code, "Traceback" in told) == (0, False)
    assert first.startswith("serving 'default' at http://127.0.0.1:")


def test_a_tour_that_is_interrupted_ends_quietly(shell: Shell) -> None:
    code, _, told = shell.stopped(signal.SIGINT, "demo")
    assert (code, told) == (130, "")


def test_a_port_that_is_none_is_refused_before_anything_is_opened(shell: Shell) -> None:
    refused = shell.raw("serve", "--port", "99999")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == "recollect: a port is a number from 0, which takes a free one, to 65535, not 99999\n"
    assert not list(shell.folder.iterdir())
