"""Files by their hashes: what is read, what is not, and what is known again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from recollect.code import contents
from recollect.code.contents import Contents
from recollect.identity import content_hash
from recollect.limits import HASHED_BYTES_MAX


def hash_of(root: Path, path: str) -> str | None:
    content = Contents().look(str(root), path)
    return None if content is None else content.hash


def test_a_file_has_the_hash_that_an_index_has_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"\xef\xbb\xbfx = '\xff'\r\n")
    assert hash_of(tmp_path, "a.py") == content_hash("x = '�'\r\n")
    (tmp_path / "empty.py").write_text("")
    assert hash_of(tmp_path, "empty.py") == content_hash("")


def test_what_is_no_file_of_the_folder_has_none(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "folder").mkdir(parents=True)
    (tmp_path / "outside.py").write_text("x = 1\n")
    (root / "out.py").symlink_to("../outside.py")
    (root / "gone.py").symlink_to("nothing.py")
    (root / "linked").symlink_to(tmp_path)
    os.mkfifo(root / "pipe.py")
    (root / "large.py").write_bytes(b"x" * (HASHED_BYTES_MAX + 1))
    for path in ("folder", "out.py", "gone.py", "linked/outside.py", "../outside.py", "pipe.py", "large.py", "none.py", "large.py/x"):
        assert hash_of(root, path) == ""
    (root / "own.py").write_text("x = 1\n")
    (root / "in.py").symlink_to("own.py")
    assert hash_of(root, "in.py") == hash_of(root, "own.py") == content_hash("x = 1\n")


def test_what_cannot_be_looked_at_is_not_told(tmp_path: Path) -> None:
    (tmp_path / "loop.py").symlink_to("loop.py")
    assert hash_of(tmp_path, "loop.py") is None
    assert hash_of(tmp_path, "a\0b") is None


def test_a_file_is_read_again_only_when_it_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_SETTLED_NS", -1)
    known = Contents()
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    first = known.look(str(tmp_path), "a.py")
    with monkeypatch.context() as patched:
        patched.setattr(contents, "_read", lambda *_: pytest.fail("it is known"))
        assert known.look(str(tmp_path), "a.py") == first
    (tmp_path / "b.py").write_text("x = 2\n")
    (tmp_path / "b.py").replace(file)
    second = known.look(str(tmp_path), "a.py")
    assert second is not None
    assert second.hash == content_hash("x = 2\n")


def test_what_has_changed_just_now_is_not_taken_for_known(tmp_path: Path) -> None:
    known = Contents()
    for text in ("x = 1\n", "x = 2\n", "x = 3\n"):
        (tmp_path / "a.py").write_text(text)
        os.utime(tmp_path / "a.py", (1, 1))
        content = known.look(str(tmp_path), "a.py")
        assert content is not None
        assert content.hash == content_hash(text)


def test_a_file_is_as_new_as_what_was_done_to_it_last(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    os.utime(tmp_path / "a.py", (1, 1))
    content = Contents().look(str(tmp_path), "a.py")
    assert content is not None
    assert content.changed_ns == (tmp_path / "a.py").stat().st_ctime_ns
