"""An agent's tools stay in their folder: no path, link, special file, pattern or command gets them out, or to a standstill."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import threading
import time
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path
from typing import Any

import pytest

from recollect.agent import files
from recollect.agent.confinement import read_bytes, replace_bytes, safe_path
from recollect.agent.tools import code_tools
from recollect.errors import InputError, NotAllowedError, RecollectError, TooLargeError

Tools = dict[str, Callable[..., Awaitable[Any]]]
SECRET = "outside"
WAIT_SECONDS_MAX = 30


@pytest.fixture
def root(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / "src").mkdir(parents=True)
    (made / "src" / "a.py").write_text("inside\n")
    (made / ".git" / "hooks").mkdir(parents=True)
    (made / ".git" / "config").write_text("[core]\n")
    (tmp_path / "project-other").mkdir()
    for path in ("secret.txt", "project-other/secret.txt"):
        (tmp_path / path).write_text(SECRET)
    return made


@pytest.fixture
def tools(root: Path) -> Tools:
    return {one.__name__: one for one in code_tools(root, may_write=True, may_run=True)}


def test_paths_inside_are_resolved(root: Path) -> None:
    for path in ("src/a.py", "./src/../src/a.py", str(root / "src/a.py"), "missing/../src/a.py"):
        assert safe_path(root, path) == root / "src" / "a.py"
    assert safe_path(root, ".") == root
    assert safe_path(root, "src/new/b.py") == root / "src" / "new" / "b.py"
    (root / "inner").symlink_to("src")
    assert safe_path(root, "inner/a.py") == root / "src" / "a.py"
    (root.parent / "alias").symlink_to(root)
    assert safe_path(root.parent / "alias", str(root.parent / "alias" / "src/a.py")) == root / "src" / "a.py"


@pytest.mark.parametrize(
    "path",
    ["..", "../secret.txt", "src/../../secret.txt", "../project-other/secret.txt", "/etc/passwd", "/", "//etc/passwd",
     "/proc/self/root/etc/passwd", "missing/../../secret.txt", "src/a.py/../../../secret.txt"],
)  # fmt: skip
async def test_what_is_outside_is_refused(tools: Tools, root: Path, path: str) -> None:
    with pytest.raises(NotAllowedError, match="outside"):
        safe_path(root, path)
    for call in (
        tools["read_file"](path), tools["list_directory"](path), tools["glob_files"]("*", path), tools["grep_files"](".", path),
        tools["write_file"](path, "x"), tools["edit_file"](path, SECRET, "x"),
    ):  # fmt: skip
        with pytest.raises(RecollectError):
            await call


@pytest.mark.parametrize("path", ["", "a\0b", "src/a.py\0.txt", "x" * 5_000, "\ud800", 7])
def test_what_is_no_path_is_refused(root: Path, path: Any) -> None:
    with pytest.raises(InputError):
        safe_path(root, path)


@pytest.mark.parametrize("target", ["../secret.txt", "/etc/passwd", "../project-other", ".."])
async def test_links_do_not_lead_out(tools: Tools, root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    (root / "chain").symlink_to("link")
    for name in ("link", "chain", "link/secret.txt", "chain/new.txt"):
        for call in (tools["read_file"](name), tools["list_directory"](name), tools["write_file"](name, "x")):
            with pytest.raises(RecollectError):
                await call
    assert (await tools["grep_files"](SECRET))["matches"] == []
    assert not any("secret" in file for file in (await tools["glob_files"]("**"))["files"])
    assert (root.parent / "secret.txt").read_text() == SECRET


def test_links_that_go_round_are_refused(root: Path) -> None:
    (root / "one").symlink_to("two")
    (root / "two").symlink_to("one")
    with pytest.raises(RecollectError):
        safe_path(root, "one/x")


def test_what_takes_the_place_of_a_folder_after_the_look_is_not_followed(root: Path) -> None:
    """Between the look and the use, a folder on the way becomes a link that leads out."""
    (root / "deep" / "er").mkdir(parents=True)
    seen = safe_path(root, "deep/er/secret.txt", writing=True)
    (root / "deep" / "er").rmdir()
    (root / "deep" / "er").symlink_to(root.parent, target_is_directory=True)
    with pytest.raises(NotAllowedError, match="link"):
        read_bytes(root, seen, 100)
    with pytest.raises(NotAllowedError, match="link"):
        replace_bytes(root, seen, b"x")
    assert (root.parent / "secret.txt").read_text() == SECRET


def test_a_file_that_becomes_a_link_is_neither_read_nor_written_through(root: Path) -> None:
    seen = safe_path(root, "src/a.py", writing=True)
    seen.unlink()
    seen.symlink_to(root.parent / "secret.txt")
    with pytest.raises(NotAllowedError):
        read_bytes(root, seen, 100)
    with pytest.raises(NotAllowedError):
        replace_bytes(root, seen, b"x")
    assert (root.parent / "secret.txt").read_text() == SECRET


@contextlib.contextmanager
def swapping(root: Path) -> Generator[None]:
    """Have a thread swap the folder `d` for the link `out`, over and over; a folder that a writer makes in between is put aside."""
    is_over = threading.Event()
    aside = (root / f"aside-{number}" for number in itertools.count())

    def move(path: str, other: str) -> None:
        while True:
            try:
                (root / path).rename(root / other)
            except OSError:
                (root / other).rename(next(aside))
            else:
                return

    def swap() -> None:
        while not is_over.is_set():
            for path, other in (("d", "kept"), ("out", "d"), ("d", "out"), ("kept", "d")):
                move(path, other)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def test_nothing_gets_out_while_a_folder_is_swapped_all_the_time(root: Path) -> None:
    """Readers and writers see the inside, or an error."""
    (root / "d").mkdir()
    (root / "d" / "secret.txt").write_text("inside")
    (root / "out").symlink_to(root.parent, target_is_directory=True)
    with swapping(root):
        for _ in range(400):
            with contextlib.suppress(RecollectError):
                assert read_bytes(root, safe_path(root, "d/secret.txt"), 100) == b"inside"
            with contextlib.suppress(RecollectError):
                replace_bytes(root, safe_path(root, "d/new.txt", writing=True), b"new")
    assert (root.parent / "secret.txt").read_text() == SECRET
    assert not (root.parent / "new.txt").exists()


@pytest.mark.parametrize(
    "path", [".git/config", ".git/hooks/pre-commit", ".git", ".GIT/config", "src/../.git/config", "sub/.git/config", "g/x"]
)
async def test_what_belongs_to_git_is_read_but_not_written(tools: Tools, root: Path, path: str) -> None:
    (root / "g").symlink_to(".git")
    for call in (tools["write_file"](path, "x"), tools["edit_file"](path, "core", "x")):
        with pytest.raises(NotAllowedError, match="belongs to Git"):
            await call
    assert (await tools["read_file"](".git/config"))["text"] == "[core]"
    await tools["write_file"](".gitignore", "x\n")


async def test_special_files_are_refused_and_nobody_waits_for_them(tools: Tools, root: Path) -> None:
    os.mkfifo(root / "pipe")
    for call in (tools["read_file"]("pipe"), tools["write_file"]("pipe", "x"), tools["grep_files"]("x", "pipe")):
        with pytest.raises(RecollectError):
            await asyncio.wait_for(call, WAIT_SECONDS_MAX)
    with pytest.raises(NotAllowedError, match="neither"):
        read_bytes(root, root / "pipe", 100)
    assert (await asyncio.wait_for(tools["grep_files"]("inside"), WAIT_SECONDS_MAX))["matches"][0]["file"] == "src/a.py"
    with pytest.raises(NotAllowedError, match="neither"):
        safe_path("/dev", "null")


async def test_a_huge_file_is_neither_read_nor_searched(tools: Tools, root: Path) -> None:
    with (root / "huge.txt").open("wb") as made:
        made.truncate(1 << 40)
    with pytest.raises(TooLargeError, match=f"more than {files.FILE_BYTES_MAX:,} bytes"):
        await tools["read_file"]("huge.txt")
    found = await tools["grep_files"]("x", glob="huge.txt")
    assert (found["matches"], found["skipped_files"]) == ([], 1)


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"(.*)*b", r"(\w+\s?)*!$"])
async def test_no_pattern_takes_more_than_linear_time(tools: Tools, root: Path, pattern: str) -> None:
    (root / "evil.txt").write_text("a" * 50_000 + "X\n")
    found = await asyncio.wait_for(tools["grep_files"](pattern, "evil.txt"), WAIT_SECONDS_MAX)
    assert found["searched_files"] == 1
    evil = "*a" * 400 + "b"
    assert (await asyncio.wait_for(tools["glob_files"](evil), WAIT_SECONDS_MAX))["files"] == []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def ended(path: Path) -> bool:
    """Wait until the process whose id a file holds has ended."""
    pid = int(path.read_text())
    until = time.monotonic() + WAIT_SECONDS_MAX
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not is_alive(pid)


def begun(path: Path) -> None:
    """Wait until a file holds the id of a process."""
    until = time.monotonic() + WAIT_SECONDS_MAX
    while not (path.exists() and path.read_text().endswith("\n")) and time.monotonic() < until:
        time.sleep(0.01)


GRANDCHILD = "sh -c 'sleep 600 & echo $! > grandchild; wait' & wait"


async def test_a_command_that_is_late_ends_with_its_grandchildren(tools: Tools, root: Path) -> None:
    done = await tools["run_command"](f"echo begun; {GRANDCHILD}", 2)
    assert (done["exit_code"], done["timed_out"], done["output"]) == (None, True, "begun\n")
    assert ended(root / "grandchild")


async def test_a_command_that_is_cancelled_ends_with_its_grandchildren(tools: Tools, root: Path) -> None:
    running = asyncio.ensure_future(tools["run_command"](GRANDCHILD, 600))
    await asyncio.to_thread(begun, root / "grandchild")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert ended(root / "grandchild")


async def test_what_a_command_leaves_in_the_background_is_stopped(tools: Tools, root: Path) -> None:
    done = await asyncio.wait_for(tools["run_command"]("sleep 600 & echo $! > grandchild; echo over", 500), WAIT_SECONDS_MAX)
    assert (done["exit_code"], done["output"]) == (0, "over\n")
    assert ended(root / "grandchild")


async def test_a_command_that_closes_its_output_is_waited_for(tools: Tools) -> None:
    assert (await tools["run_command"]("echo told; exec >&- 2>&-; sleep 0.3; exit 4"))["exit_code"] == 4
