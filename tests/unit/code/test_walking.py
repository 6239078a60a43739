"""Walking a project: what Git ignores is left out, nothing leads out of the root, and the order is stable."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from recollect.code.walking import FOLDER_DEPTH_MAX, Skipped, SourceFile, lines_in, source_files, source_text
from recollect.errors import ConfigError


def make(root: Path, *paths: str, **ignores: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("x = 1\n")
    for name, text in ignores.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def walked(root: Path) -> list[str]:
    return [file.path for file in source_files(root)]


def test_files_of_known_languages_in_a_stable_order(tmp_path: Path) -> None:
    make(tmp_path, "b.py", "a/z.go", "a/b.rs", "a.py", "README.md", "c/data.bin", "dist/x.js")
    assert walked(tmp_path) == ["a/b.rs", "a/z.go", "a.py", "b.py", "dist/x.js"]


def test_a_file_is_told_with_its_size_and_time(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    os.utime(tmp_path / "a.py", ns=(1, 1_700_000_000_000_000_000))
    assert list(source_files(tmp_path)) == [SourceFile("a.py", "python", 6, 1_700_000_000_000_000_000)]


def test_folders_of_tools_are_never_walked(tmp_path: Path) -> None:
    make(tmp_path, ".git/hooks/a.py", "node_modules/x/a.js", "sub/node_modules/a.js", ".venv/a.py", "p/__pycache__/a.py", "p/a.py")
    assert walked(tmp_path) == ["p/a.py"]


def test_ignore_files_at_every_level_with_negations(tmp_path: Path) -> None:
    make(
        tmp_path,
        *"a.py gen/a.py gen/keep.py sub/a.py sub/b.py sub/deep/b.py sub/deep/c.py".split(),
        *"build/x.py other/build/x.py only/top.py x/only/top.py".split(),
        **{
            ".gitignore": "# generated\n\nbuild/\n/only\ngen/*\n!gen/keep.py\n*_pb2.py\n",
            "sub/.gitignore": "/b.py\nc.py\n",
            "sub/deep/.gitignore": "!c.py\n",
        },
    )
    make(tmp_path, "m_pb2.py", "sub/m_pb2.py")
    assert walked(tmp_path) == ["a.py", "gen/keep.py", "sub/a.py", "sub/deep/b.py", "sub/deep/c.py", "x/only/top.py"]


def test_a_file_of_an_ignored_folder_cannot_come_back(tmp_path: Path) -> None:
    make(tmp_path, "gen/keep.py", "a.py", **{".gitignore": "gen/\n!gen/keep.py\n"})
    assert walked(tmp_path) == ["a.py"]


def test_other_ignore_files_count_too_and_ours_decides_first(tmp_path: Path) -> None:
    make(
        tmp_path,
        *"a.py b.py c.py d.py e.py".split(),
        **{".gitignore": "a.py\ne.py\n", ".ignore": "b.py\n", ".recollectignore": "c.py\n!e.py\n", ".git/info/exclude": "d.py\n"},
    )
    assert walked(tmp_path) == ["e.py"]


def test_git_agrees(tmp_path: Path) -> None:
    make(
        tmp_path,
        *"a.py b/a.py b/c/a.py b/c/d.py foo.py b/foo.py x/y/z.py x/y/w.py lib/a.py src/lib/a.py t[1].py #h.py".split(),
        **{
            ".gitignore": "b/**/d.py\nfoo.py\n!/foo.py\nx/*\n!x/y\n/lib/\nt\\[1\\].py\n\\#h.py\ntrailing.py   \n",
            "x/.gitignore": "w.py\n",
            "b/.gitignore": "!foo.py\n",
        },
    )
    make(tmp_path, "trailing.py")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)  # noqa: S607  the git of whoever runs the tests
    listed = subprocess.run(
        ["git", "-C", str(tmp_path), "ls-files", "-co", "--exclude-standard", "*.py"],  # noqa: S607  as above
        capture_output=True,
        text=True,
        check=True,
    )
    assert sorted(walked(tmp_path)) == sorted(listed.stdout.split())


def test_unsound_patterns_are_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "b.py", "a" * 200 + ".py", **{".gitignore": f"!\n{'*a' * 60}b\n{'x' * 5_000}\n\\\n[\nb.py\n"})
    assert walked(tmp_path) == ["a.py", "a" * 200 + ".py"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "out/secret.py", "root/a.py", "root/sub/b.py")
    root = tmp_path / "root"
    (root / "loop").symlink_to(root)
    (root / "out").symlink_to(tmp_path / "out")
    (root / "link.py").symlink_to(tmp_path / "out" / "secret.py")
    (root / "sub" / "gone.py").symlink_to("nowhere.py")
    (root / ".gitignore").symlink_to(tmp_path / "out" / "secret.py")
    assert walked(root) == ["a.py", "sub/b.py"]
    assert source_text(root, SourceFile("link.py", "python", 6, 0)) is None


def test_the_root_itself_may_be_a_link(tmp_path: Path) -> None:
    make(tmp_path, "real/a.py")
    (tmp_path / "root").symlink_to(tmp_path / "real")
    assert walked(tmp_path / "root") == ["a.py"]


def test_what_cannot_be_listed_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.py", "closed/b.py", "z.py")
    scandir = os.scandir

    def refusing(path: Path) -> object:
        if path.name == "closed":
            raise PermissionError
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    skipped = Skipped()
    assert [file.path for file in source_files(tmp_path, skipped)] == ["a.py", "z.py"]
    assert skipped == Skipped(folders=1)


def test_a_root_that_is_not_there_is_counted(tmp_path: Path) -> None:
    skipped = Skipped()
    assert list(source_files(tmp_path / "gone", skipped)) == []
    assert skipped.folders == 1


def test_names_that_are_no_text_are_counted(tmp_path: Path) -> None:
    make(tmp_path, "a.py")
    with open(os.fsencode(tmp_path) + b"/\xff.py", "wb"):  # noqa: PTH123  pathlib knows no such names
        pass
    skipped = Skipped()
    assert [file.path for file in source_files(tmp_path, skipped)] == ["a.py"]
    assert skipped.files == 1


def test_folders_beyond_reason_are_counted(tmp_path: Path) -> None:
    make(tmp_path, "a.py", "d/" * (FOLDER_DEPTH_MAX + 5) + "a.py")
    skipped = Skipped()
    assert [file.path for file in source_files(tmp_path, skipped)] == ["a.py"]
    assert skipped.folders == 1


def test_pipes_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    assert walked(tmp_path) == []
    assert source_text(tmp_path, SourceFile("pipe.py", "python", 0, 0)) == ""


def test_the_text_of_a_file_keeps_its_line_ends(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx = '\xff'\r\n")
    (file,) = source_files(tmp_path)
    assert source_text(tmp_path, file) == "x = '�'\r\n"
    (tmp_path / "a.py").write_bytes(b"x" * 2_000_000)
    (file,) = source_files(tmp_path)
    assert source_text(tmp_path, file) is None
    (tmp_path / "a.py").unlink()
    assert source_text(tmp_path, SourceFile("a.py", "python", 1, 0)) is None


@pytest.mark.parametrize(("text", "count"), [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\nb\n", 2), ("\n", 1), ("\n\n", 2)])
def test_the_end_of_the_last_line_begins_no_other(text: str, count: int) -> None:
    assert lines_in(text) == count


def test_a_missing_package_names_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "a.py", **{".gitignore": "b.py\n"})
    monkeypatch.setitem(sys.modules, "pathspec", None)
    with pytest.raises(ConfigError, match=r"pip install 'recollect\[code\]'"):
        walked(tmp_path)
