"""The shape of the house: imports point one way, importing costs little, public names are the promised ones."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import recollect

ROOT = Path(__file__).parent.parent.parent
SOURCES = sorted((ROOT / "src" / "recollect").rglob("*.py"))


def in_fresh_python(program: str) -> str:
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_imports_point_one_way() -> None:
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports"), "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stdout


def test_importing_recollect_loads_nothing_heavy() -> None:
    loaded = set(in_fresh_python("import sys, recollect; recollect.Memory; print(*sys.modules)").split())
    heavy = {"pydantic", "numpy", "asyncio", "fastapi", "uvicorn", "yaml", "re2", "Stemmer", "http.server"}
    assert loaded & heavy == set()
    assert "recollect.memory" in loaded


def test_importing_the_bare_package_loads_no_module_of_ours() -> None:
    loaded = in_fresh_python("import sys, recollect; print(*[name for name in sys.modules if name.startswith('recollect.')])").split()
    assert loaded == []


def test_a_command_needs_no_event_loop(tmp_path: Path) -> None:
    program = (
        "import sys; from recollect.serve.cli import main; "
        f"main(['--store', '{tmp_path / 'm.db'}', 'new', '--project', 'p']); main(['--store', '{tmp_path / 'm.db'}', 'conversations']); "
        "print('asyncio' in sys.modules)"
    )
    assert in_fresh_python(program).splitlines()[-1] == "False"


def test_every_public_name_is_there_and_documented() -> None:
    for name in recollect.__all__:
        value = getattr(recollect, name)
        assert name == "__version__" or value.__doc__, name
    assert set(dir(recollect)) == set(recollect.__all__)
    with pytest.raises(AttributeError, match="no_such_name"):
        recollect.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_the_promised_names_are_public() -> None:
    memory = set(
        "open close create_conversation load_conversation list_conversations sessions record search "
        "import_conversation verify forget stats".split()
    )
    conversation = set(
        "record get_history search_history get_tool_calls recent_turns accessed_files summaries raw_char_count "
        "branch export archive delete".split()
    )
    from recollect import sync

    for names, classes in ((memory, (recollect.Memory, sync.Memory)), (conversation, (recollect.Conversation, sync.Conversation))):
        for owner in classes:
            assert names <= set(dir(owner)), owner


def test_generated_files_are_up_to_date() -> None:
    done = subprocess.run([sys.executable, "tools/generate.py", "--check"], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.relative_to(ROOT / "src").as_posix())
def test_every_file_says_its_job_in_one_docstring_and_stays_readable(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text)), "a module says what it is for"
    if path.name != "sync.py":
        assert text.count("\n") <= 450, "one file, one job"


def test_only_the_backends_know_their_database() -> None:
    outside = [path for path in SOURCES if "sqlite" not in path.parts and "import apsw" in path.read_text(encoding="utf-8")]
    assert outside == []


def test_no_query_is_assembled_from_values() -> None:
    """Every query is a literal: the methods that run one take `LiteralString`, and no f-string stands where they are called."""
    for path in (ROOT / "src" / "recollect" / "store").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in {"run", "run_many", "rows", "row", "value", "inserted", "execute"}
            ):
                assert not any(isinstance(part, ast.JoinedStr) for argument in node.args for part in ast.walk(argument)), (
                    f"{path.name}:{node.lineno}"
                )
