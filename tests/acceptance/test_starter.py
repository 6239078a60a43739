"""`recollect init`: the project that it writes runs as it is, and its own tests pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.agent.starter import FILES, write_starter
from recollect.errors import ConflictError, InputError

RECOLLECT = str(Path(sys.executable).parent / "recollect")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "RECOLLECT_STORE": str(folder.parent / "memory.db")}
    return subprocess.run(list(words), cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_a_project_runs_as_generated(tmp_path: Path) -> None:
    made = run(tmp_path, RECOLLECT, "init", "shop")
    assert made.returncode == 0
    assert "next: cd" in made.stdout
    folder = tmp_path / "shop"
    assert sorted(path.name for path in folder.iterdir()) == sorted(FILES)
    assert run(folder, sys.executable, "agent.py", "--example").returncode == 0
    assert run(folder, sys.executable, "agent.py", "--example").returncode == 0
    asked = run(folder, sys.executable, "agent.py", "Which port did we choose?")
    assert asked.returncode == 0, asked.stderr
    assert "8123" in asked.stdout
    listed = run(folder, RECOLLECT, "conversations", "--cwd", ".", "--json")
    assert [info["turn_count"] for info in json.loads(listed.stdout)] == [1, 2]
    tested = run(folder, sys.executable, "-m", "unittest")
    assert tested.returncode == 0, tested.stderr
    assert "Ran 3 tests" in tested.stderr


def test_nothing_that_is_there_is_touched(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("mine")
    refused = run(tmp_path, RECOLLECT, "init", ".")
    assert refused.returncode == 2
    assert "README.md already" in refused.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix != ".db"] == ["README.md"]
    with pytest.raises(ConflictError):
        write_starter(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        write_starter(tmp_path / "README.md" / "below")


def test_an_odd_name_makes_no_odd_program(tmp_path: Path) -> None:
    folder = tmp_path / 'a """ b\\ — ü'
    write_starter(folder)
    compile((folder / "agent.py").read_text(encoding="utf-8"), "agent.py", "exec")
    assert json.loads(run(tmp_path, RECOLLECT, "init", "next", "--json").stdout)["files"] == list(FILES)
