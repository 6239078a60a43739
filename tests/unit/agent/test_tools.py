"""The tools of a coding agent: what they return, what they refuse, and that each of their limits holds."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Tool

from recollect.agent import commands, files, searching
from recollect.agent.tools import code_tools, memory_tools
from recollect.errors import InputError, NotAllowedError, NotFoundError, TooLargeError
from recollect.memory import Memory
from tests.kit import said

READING = ["read_file", "list_directory", "glob_files", "grep_files"]
Named = dict[str, Callable[..., Awaitable[Any]]]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    for path, text in {
        "src/app.py": "def login(user):\n    return check(user)\n",
        "src/deep/er/door.py": "class Door:\n    pass\n",
        "README.md": "# Shop\nlogin with a key\n",
        "node_modules/x/index.js": "login()\n",
        ".github/ci.yml": "run: login\n",
        "build/out.txt": "login\n",
        ".gitignore": "build/\n",
    }.items():
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(text)
    return made


@pytest.fixture
def tools(root: Path) -> Named:
    return named(code_tools(root, may_write=True, may_run=True))


def named(made: list[Callable[..., Awaitable[Any]]]) -> Named:
    return {one.__name__: one for one in made}


def left_behind(root: Path) -> list[str]:
    return [path.name for path in root.rglob("*.tmp")]


async def test_only_what_is_permitted_is_there(root: Path) -> None:
    assert list(named(code_tools(root))) == READING
    assert list(named(code_tools(root, may_write=True))) == [*READING, "write_file", "edit_file"]
    assert list(named(code_tools(root, may_run=True))) == [*READING, "run_command"]
    async with await Memory.open(root.parent / "m.db") as memory:
        assert list(named(memory_tools(memory, "shop"))) == ["search_code", "search_memory"]


def test_a_model_is_told_what_each_tool_and_parameter_is_for(tools: Named) -> None:
    for name, function in tools.items():
        schema = Tool(function).tool_def
        assert schema.name == name
        assert schema.description
        assert all(one["description"] for one in schema.parameters_json_schema["properties"].values()), name


def test_the_root_is_a_directory(root: Path) -> None:
    with pytest.raises(NotFoundError, match="is no directory"):
        code_tools(root / "README.md")


async def test_a_file_is_read_by_lines(tools: Named, root: Path) -> None:
    (root / "lines.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\nthr\xc3\xa9e\r\nfour\r\n")
    whole = await tools["read_file"]("lines.txt")
    assert whole == {
        "path": "lines.txt", "first_line": 1, "last_line": 4, "lines_in_file": 4, "is_cut": False, "text": "one\ntwo\nthrée\nfour",
    }  # fmt: skip
    part = await tools["read_file"](str(root / "lines.txt"), 2, 3)
    assert (part["text"], part["first_line"], part["last_line"], part["is_cut"]) == ("two\nthrée", 2, 3, False)
    assert (await tools["read_file"]("lines.txt", 4, 99))["text"] == "four"
    for first, last in ((9, None), (3, 2), (-1, None)):
        with pytest.raises(InputError):
            await tools["read_file"]("lines.txt", first, last)


async def test_an_empty_file_has_no_lines(tools: Named, root: Path) -> None:
    (root / "empty").touch()
    assert (await tools["read_file"]("empty"))["lines_in_file"] == 0


async def test_long_files_are_read_in_pieces(tools: Named, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "long.txt").write_text("x" * 50 + "\n" + "y\n" * 20)
    monkeypatch.setattr(files, "LINE_CHARS_MAX", 10)
    monkeypatch.setattr(files, "LINES_MAX", 5)
    piece = await tools["read_file"]("long.txt")
    assert (piece["last_line"], piece["is_cut"]) == (5, True)
    assert len(piece["text"].splitlines()[0]) == 10
    monkeypatch.setattr(files, "READ_CHARS_MAX", 14)
    assert (await tools["read_file"]("long.txt"))["last_line"] == 2


async def test_what_cannot_be_read_is_an_error(tools: Named, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "image.png").write_bytes(b"\x89PNG\0\0")
    monkeypatch.setattr(files, "FILE_BYTES_MAX", 10)
    with pytest.raises(InputError, match="binary"):
        await tools["read_file"]("image.png")
    with pytest.raises(TooLargeError, match="more than 10 bytes"):
        await tools["read_file"]("README.md")
    with pytest.raises(InputError, match="is a directory"):
        await tools["read_file"]("src")
    with pytest.raises(NotFoundError, match=r"no 'nothing\.py'"):
        await tools["read_file"]("nothing.py")
    with pytest.raises(NotAllowedError):
        await tools["list_directory"]("README.md/x")


async def test_a_directory_is_listed(tools: Named, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "link").symlink_to("README.md")
    listed = await tools["list_directory"]()
    kinds = {one["name"]: one["kind"] for one in listed["entries"]}
    assert list(kinds) == sorted(kinds)
    assert (kinds["src"], kinds["README.md"], kinds["link"]) == ("directory", "file", "link")
    assert (await tools["list_directory"]("src"))["entries"][0] == {"name": "app.py", "kind": "file", "bytes": 40}
    monkeypatch.setattr(files, "ENTRIES_MAX", 2)
    cut = await tools["list_directory"](".")
    assert (len(cut["entries"]), cut["is_cut"]) == (2, True)


@pytest.mark.parametrize(
    ("pattern", "path", "found"),
    [
        ("**/*.py", ".", ["src/app.py", "src/deep/er/door.py"]),
        ("*.py", ".", ["src/app.py", "src/deep/er/door.py"]),
        ("src/*.py", ".", ["src/app.py"]),
        ("./src/**/d?or.[pq]y", ".", ["src/deep/er/door.py"]),
        ("**/*.{md,yml}", ".", [".github/ci.yml", "README.md"]),
        ("[!R]*.md", ".", []),
        ("deep/**", "src", ["src/deep/er/door.py"]),
        ("*.js", ".", []),
        ("*.txt", "build", []),
        ("[", ".", []),
        ("a}b,c", ".", []),
    ],
)
async def test_files_are_found_by_name(tools: Named, pattern: str, path: str, found: list[str]) -> None:
    assert (await tools["glob_files"](pattern, path))["files"] == found


async def test_without_ignore_rules_hidden_names_are_left_out(tools: Named, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searching, "find_spec", lambda _: None)
    assert (await tools["glob_files"]("**"))["files"] == ["README.md", "build/out.txt", "src/app.py", "src/deep/er/door.py"]


async def test_names_are_looked_for_in_a_directory_that_is_there(tools: Named) -> None:
    with pytest.raises(NotFoundError):
        await tools["glob_files"]("*", "nowhere")
    with pytest.raises(InputError, match="no directory"):
        await tools["glob_files"]("*", "README.md")
    with pytest.raises(InputError, match="no pattern"):
        await tools["glob_files"]("{a")


async def test_lines_are_found(tools: Named) -> None:
    found = await tools["grep_files"](r"\blogin\b")
    assert found["matches"] == [
        {"file": ".github/ci.yml", "line": 1, "text": "run: login"},
        {"file": "README.md", "line": 2, "text": "login with a key"},
        {"file": "src/app.py", "line": 1, "text": "def login(user):"},
    ]
    assert (found["is_cut"], found["searched_files"], found["skipped_files"]) == (False, 5, 0)
    assert [one["file"] for one in (await tools["grep_files"]("(?i)LOGIN", "src"))["matches"]] == ["src/app.py"]
    assert [one["file"] for one in (await tools["grep_files"]("login", glob="*.md"))["matches"]] == ["README.md"]
    assert (await tools["grep_files"]("login", "build/out.txt"))["matches"][0]["line"] == 1


async def test_a_pattern_is_of_one_line(tools: Named, root: Path) -> None:
    (root / "dos.txt").write_bytes(b"first\r\nlast end\r\nlast\r\n")
    assert [one["line"] for one in (await tools["grep_files"]("last$", "dos.txt"))["matches"]] == [3]
    assert [one["line"] for one in (await tools["grep_files"](r"\Alast", "dos.txt"))["matches"]] == [2, 3]
    assert (await tools["grep_files"](r"first\s+last", "dos.txt"))["matches"] == []
    with pytest.raises(NotFoundError):
        await tools["grep_files"]("x", "nowhere")


async def test_matches_have_limits(tools: Named, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "many.txt").write_text(("x" * 5_000 + "\n") * 300)
    (root / "zero.bin").write_bytes(b"\0x")
    found = await tools["grep_files"]("x", glob="{many.txt,zero.bin}")
    assert (len(found["matches"]), found["is_cut"]) == (searching.MATCHES_MAX, True)
    assert len(found["matches"][0]["text"]) == searching.MATCH_CHARS_MAX
    assert (await tools["grep_files"]("x", glob="*.bin"))["skipped_files"] == 1
    monkeypatch.setattr(searching, "FILES_MAX", 1)
    assert await tools["glob_files"]("*.py") == {"files": ["src/app.py"], "is_cut": True}
    monkeypatch.setattr(searching, "SEARCHED_FILES_MAX", 1)
    assert (await tools["grep_files"]("nothing at all"))["is_cut"]


@pytest.mark.parametrize("pattern", ["(", r"(a)\1", "(?=a)", "a" * 1_001, "((a{1000}){1000}){1000}", "\ud800"])
async def test_what_is_no_pattern_is_told(tools: Named, pattern: str) -> None:
    with pytest.raises(InputError):
        await tools["grep_files"](pattern)


async def test_a_file_is_written_whole(tools: Named, root: Path) -> None:
    assert await tools["write_file"]("new/deep/a.txt", "héllo\n") == {"path": "new/deep/a.txt", "bytes": 7, "status": "created"}
    assert (root / "new/deep/a.txt").read_text() == "héllo\n"
    (root / "run.sh").write_bytes(b"#!/bin/sh\r\n")
    (root / "run.sh").chmod(0o750)
    assert (await tools["write_file"]("run.sh", "one\ntwo\r\n"))["status"] == "updated"
    assert (root / "run.sh").read_bytes() == b"one\r\ntwo\r\n"
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o750
    (root / "bom.txt").write_bytes(b"\xef\xbb\xbfa\n")
    await tools["write_file"]("bom.txt", "b\n")
    assert (root / "bom.txt").read_bytes() == b"\xef\xbb\xbfb\n"
    assert left_behind(root) == []


async def test_what_cannot_be_written_leaves_the_file_as_it_was(tools: Named, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = (root / "README.md").read_bytes()
    with pytest.raises(InputError, match="surrogates"):
        await tools["write_file"]("README.md", "\ud800")
    with pytest.raises(InputError, match="directory"):
        await tools["write_file"]("src", "x")
    with pytest.raises(InputError, match="directory"):
        await tools["write_file"](".", "x")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        await tools["write_file"]("README.md", "x")
    monkeypatch.setattr(files, "FILE_BYTES_MAX", 3)
    with pytest.raises(TooLargeError):
        await tools["write_file"]("README.md", "long")
    assert (root / "README.md").read_bytes() == before
    assert left_behind(root) == []


async def test_one_place_is_edited(tools: Named, root: Path) -> None:
    assert await tools["edit_file"]("src/app.py", "check(user)", "user") == {"path": "src/app.py", "line": 2}
    assert (root / "src/app.py").read_text() == "def login(user):\n    return user\n"
    (root / "dos.txt").write_bytes(b"a\r\nb\r\nc\r\n")
    await tools["edit_file"]("dos.txt", "a\nb", "x\ny")
    assert (root / "dos.txt").read_bytes() == b"x\r\ny\r\nc\r\n"
    (root / "mixed.txt").write_bytes(b"a\r\nb\nc\r\n")
    await tools["edit_file"]("mixed.txt", "b", "B")
    assert (root / "mixed.txt").read_bytes() == b"a\r\nB\nc\r\n"


@pytest.mark.parametrize(("old", "told"), [("user", "stands 2 times"), ("nothing", "stands 0 times"), ("", "empty")])
async def test_an_edit_that_is_not_clear_is_refused(tools: Named, root: Path, old: str, told: str) -> None:
    before = (root / "src/app.py").read_text()
    with pytest.raises(InputError, match=told):
        await tools["edit_file"]("src/app.py", old, "x")
    assert (root / "src/app.py").read_text() == before


async def test_places_that_overlap_count(tools: Named, root: Path) -> None:
    (root / "a.txt").write_text("aaa")
    with pytest.raises(InputError, match="stands 2 times"):
        await tools["edit_file"]("a.txt", "aa", "b")
    (root / "latin.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match="not UTF-8"):
        await tools["edit_file"]("latin.txt", "caf", "b")


async def test_a_command_tells_its_output_and_how_it_ended(tools: Named, root: Path) -> None:
    done = await tools["run_command"]("pwd; echo trouble >&2; read line || echo no input; exit 3")
    assert done == {"exit_code": 3, "timed_out": False, "output": f"{root}\ntrouble\nno input\n"}


async def test_long_output_is_cut_in_the_middle(tools: Named) -> None:
    done = await tools["run_command"]("echo begin; yes 0123456789abcde | head -c 1600000; echo end")
    assert done["exit_code"] == 0
    assert done["output"].startswith("begin\n")
    assert done["output"].endswith("end\n")
    assert f"[cut: {1_600_010 - commands.OUTPUT_BYTES_MAX:,} bytes left out]" in done["output"]


@pytest.mark.parametrize(
    ("command", "seconds"), [("", 1), ("a\0b", 1), ("x" * 20_001, 1), ("true", 0), ("true", 601), ("true", float("nan"))]
)
async def test_a_command_that_makes_no_sense_is_refused(tools: Named, command: str, seconds: float) -> None:
    with pytest.raises(InputError):
        await tools["run_command"](command, seconds)


async def test_memory_is_asked_within_the_project(root: Path) -> None:
    async with await Memory.open(root.parent / "m.db") as memory:
        here = await memory.create_conversation(root)
        await here.record(messages=said("Which port does the shop use?", "The shop listens on port 8123. " + "More of it. " * 200))
        other = await memory.create_conversation(root.parent / "elsewhere")
        await other.record(messages=said("Which port does the bank use?", "The bank listens on port 9000."))
        await memory.index(root)
        tools = named(memory_tools(memory, here.info.project_id, here.id))
        hits = (await tools["search_memory"]("which port"))["hits"]
        assert [hit["conversation"] for hit in hits] == [here.id]
        assert hits[0]["is_this_conversation"]
        assert hits[0]["question"] == "Which port does the shop use?"
        assert "8123" in hits[0]["answer"]
        assert len(hits[0]["answer"]) <= 600
        symbols = (await tools["search_code"]("log a user in"))["symbols"]
        assert (symbols[0]["name"], symbols[0]["file"], symbols[0]["first_line"]) == ("login", "src/app.py", 1)
        with pytest.raises(InputError, match="limit"):
            await tools["search_memory"]("port", 21)


async def test_a_memory_without_the_project_finds_nothing(root: Path) -> None:
    async with await Memory.open(root.parent / "m.db") as memory:
        tools = named(memory_tools(memory, "shop"))
        assert await tools["search_memory"]("port") == {"hits": []}
        assert await tools["search_code"]("login") == {"symbols": []}
