"""The examples of the README, and of the page on agents, run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "docs" / "agent.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```python\n(.*?)```", README + AGENTS, re.DOTALL)


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 4


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_runs_as_it_stands(example: str, tmp_path: Path) -> None:
    script = tmp_path / "example.py"
    script.write_text(example, encoding="utf-8")
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data")}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def test_every_command_is_in_the_readme_or_the_docs() -> None:
    from recollect.serve.cli.arguments import COMMANDS

    written = README + "".join(page.read_text(encoding="utf-8") for page in (ROOT / "docs").glob("*.md"))
    missing = [name for name in COMMANDS if f"recollect {name}" not in written and f"`{name}" not in written]
    assert missing == []
