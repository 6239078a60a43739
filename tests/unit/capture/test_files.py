from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.capture.files import accessed_files
from recollect.capture.paths import Place, is_generated, is_temporary, repository_root

HERE = Place(root="/p", cwd="/p/sub")


def touched(tool: str, arguments: dict[str, Any] | None = None, result: str | None = None) -> list[tuple[str, str]]:
    return [(part.kind, part.path) for part in accessed_files(tool, arguments, result, Place(root="/p", cwd="/p"))]


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("cat", {"paths": "a.py:10-40, b.py"}, [("read", "a.py"), ("read", "b.py")]),
        ("tree", {"path": "src"}, [("list", "src")]),
        ("rm", {"path": "a.py"}, [("write", "a.py")]),
        ("create_textdoc", {"path": "/p/a.py"}, [("write", "a.py")]),
        ("update_textdoc_regex", {"path": "a.py"}, [("write", "a.py")]),
        ("mv", {"source": "a.py", "destination": "b.py"}, [("write", "a.py"), ("write", "b.py")]),
        ("search_pattern", {"scope": "src/a.py"}, [("search", "src/a.py")]),
        ("search_semantic", {"scope": "workspace"}, []),
        ("strategic_planning", {"important_paths": "a.py,b.py"}, [("read", "a.py"), ("read", "b.py")]),
        ("create_knowledge", {"filenames": "a.py"}, [("read", "a.py")]),
        ("shell", {"workdir": "src", "command": "make"}, [("list", "src")]),
        ("ls", {"dirpath": "src"}, [("list", "src")]),
        ("read_file", {"file_path": "a.py"}, [("read", "a.py")]),
        ("edit_file", {"path": "a.py"}, [("write", "a.py")]),
        ("copy_file", {"source": "a.py", "destination": "b.py"}, [("read", "a.py"), ("write", "b.py")]),
        ("list_directory", {"path": "."}, []),
        ("Read", {"file_path": "/p/src/a.py"}, [("read", "src/a.py")]),
        ("MultiEdit", {"file_path": "a.py"}, [("write", "a.py")]),
        ("NotebookEdit", {"notebook_path": "n.ipynb"}, [("write", "n.ipynb")]),
        ("Glob", {"pattern": "*.py", "path": "src"}, [("list", "src")]),
        ("Grep", {"pattern": "x", "path": "src"}, [("search", "src")]),
        ("mcp__files__read_file", {"path": "a.py"}, [("read", "a.py")]),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n*** Add File: b.py\n*** Delete File: c.py\n*** Move to: d.py"},
         [("write", "a.py"), ("write", "b.py"), ("write", "c.py"), ("write", "d.py")]),
        ("unheard_of", {"path": "a.py"}, []),
        ("Read", None, []),
        ("Read", {"file_path": 7}, []),
        ("Read", {"file_path": "a\nb"}, []),
    ],
)  # fmt: skip
def test_paths_are_found_in_arguments(tool: str, arguments: dict[str, Any] | None, expected: list[tuple[str, str]]) -> None:
    assert touched(tool, arguments) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat a.py | head -5", [("read", "a.py")]),
        ("cd x && sed -n '1,5p' src/a.py", [("read", "src/a.py")]),
        ("sed -i s/a/b/ src/a.py", [("write", "src/a.py")]),
        ("echo hi > out.txt 2>/dev/null", [("write", "out.txt")]),
        ("grep -rn needle src/", [("search", "src")]),
        ("rg needle ./src tests/a.py", [("search", "src"), ("search", "tests/a.py")]),
        ("ls -la src/lib; rm -f a.tmp", [("list", "src/lib"), ("write", "a.tmp")]),
        ("cp a.py b.py", [("read", "a.py"), ("write", "b.py")]),
        ("pytest tests/test_a.py -k x", []),
        ("cat 'unbalanced", []),
        ("apply_patch <<EOF\n*** Begin Patch\n*** Update File: a.py\nEOF", [("write", "a.py")]),
        ("sed -n '/log.in/p' src/a.py; sed -e '/x.y/d' b.py", [("read", "src/a.py"), ("read", "b.py")]),
        ("grep -A 3 log.in src/a.py; rg -e a -e 'b.c' src/; grep -m 1 -- log.out c.py", [("search", "src/a.py"), ("search", "src"),
                                                                                        ("search", "c.py")]),
        ("find src/lib -path 'x/y' -name '*.py'", [("list", "src/lib")]),
        ("touch -d now.ish a.txt; head -n 1.5 b.txt", [("write", "a.txt"), ("read", "b.txt")]),
        ("cat > a.md <<'EOF'\nrm old/thing\nEOF\ncat b.md", [("write", "a.md"), ("read", "b.md")]),
        ("cat <<-EOF | tee a.md\n\trm old/thing\n\tEOF\nls lib/x", [("write", "a.md"), ("list", "lib/x")]),
        ("cat <<<EOF a.md\nrm old/thing", [("read", "a.md"), ("write", "old/thing")]),
    ],
)  # fmt: skip
def test_paths_are_found_in_shell_commands(command: str, expected: list[tuple[str, str]]) -> None:
    assert touched("Bash", {"command": command}) == expected
    assert touched("exec_command", {"cmd": command}) == expected
    assert touched("shell", {"command": ["bash", "-lc", command]}) == expected


def test_paths_are_found_in_results() -> None:
    assert touched("grep_files", {}, json.dumps({"matches": [{"file": "a.py"}, {"path": "b.py"}, 7]})) == [
        ("search", "a.py"),
        ("search", "b.py"),
    ]
    assert touched("search_files", {}, json.dumps([{"file": "a.py"}])) == [("search", "a.py")]
    assert touched("brain_search", {}, json.dumps({"results": [{"node": {"file": "a.py"}}]})) == [("search", "a.py")]
    assert touched("Grep", {}, "Found 2 files\n/p/src/a.py\nsrc/b.py:12:text\nnot a path at all\n") == [
        ("search", "src/a.py"),
        ("search", "src/b.py"),
    ]
    assert touched("Glob", {}, "a.py\nb/c.ts\n") == [("list", "a.py"), ("list", "b/c.ts")]
    assert touched("Grep", {}, "{broken json\na.py") == [("search", "a.py")]


def test_paths_are_relative_to_the_project_and_absolute_outside_it() -> None:
    assert HERE.locate("a.py") == "sub/a.py"
    assert HERE.locate("../a.py") == "a.py"
    assert HERE.locate("../../etc/passwd") == "/etc/passwd"
    assert HERE.locate("/p/./sub/../x.py") == "x.py"
    assert HERE.locate("/project-with-the-same-beginning/x.py") == "/project-with-the-same-beginning/x.py"
    assert HERE.locate("'/p/a.py:10-20'") == "a.py"
    assert HERE.locate("C:\\w\\a.py") == "C:/w/a.py"
    assert Place().locate("./a/../b.py") == "b.py"
    assert Place().locate("") == ""
    assert Place().locate("x" * 10_000) == ""


def test_temporary_and_generated_files_are_marked() -> None:
    assert [is_temporary(path) for path in ("/tmp/x.py", "a.tmp", "b.swp", "src/a.py", "/var/folders/x", ".cache/x")] == [
        True,
        True,
        True,
        False,
        True,
        True,
    ]
    assert [is_generated(path) for path in ("node_modules/a.js", "dist/a.js", "uv.lock", "a.pyc", "src/a.py", "builder/a.py")] == [
        True, True, True, True, False, False,
    ]  # fmt: skip
    part = accessed_files("Write", {"file_path": "/tmp/node_modules/x.js"}, None, Place(root="/p"))[0]
    assert (part.temporary, part.generated) == (True, True)


def test_the_stronger_of_two_accesses_stays() -> None:
    assert touched("Bash", {"command": "cat a.py; echo x > a.py"}) == [("write", "a.py")]


def test_a_repository_is_one_project_for_all_its_directories(tmp_path: Any) -> None:
    (tmp_path / "r" / ".git").mkdir(parents=True)
    (tmp_path / "r" / "deep" / "er").mkdir(parents=True)
    assert repository_root(str(tmp_path / "r" / "deep" / "er")) == str(tmp_path / "r")
    assert repository_root(str(tmp_path / "alone")) == str(tmp_path / "alone")
    (tmp_path / "r" / "module").mkdir()
    (tmp_path / "r" / "module" / ".git").write_text("gitdir: ../.git/modules/module\n")
    assert repository_root(str(tmp_path / "r" / "module")) == str(tmp_path / "r" / "module"), "a submodule is its own project"
