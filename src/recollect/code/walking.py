"""A folder → its source files, in a stable order, one folder's listing at a time; what Git ignores is left out."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recollect.code.ignoring import rules_of
from recollect.code.languages import language_of
from recollect.code.symbols import SOURCE_BYTES_MAX
from recollect.limits import PATH_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from recollect.code.ignoring import Rules

FOLDER_DEPTH_MAX = 100
FOLDERS_NEVER_WALKED = frozenset(
    ".git .hg .svn .jj node_modules .venv __pycache__ .tox .nox .mypy_cache .pytest_cache .ruff_cache .hypothesis".split()
)


class SourceFile(msgspec.Struct, frozen=True):
    """A file of a known language; the path is relative to the root, with slashes."""

    path: str
    language: str
    size: int
    mtime_ns: int


class Skipped(msgspec.Struct):
    """How much of a walk was left out because it could not be read."""

    folders: int = 0
    files: int = 0


class _Folder(NamedTuple):
    """A folder that is being listed."""

    rules: Rules | None
    entries: Iterator[os.DirEntry[str]]
    path: str


def source_files(root: Path, skipped: Skipped | None = None) -> Iterator[SourceFile]:
    """Yield the source files below a folder; symbolic links are not followed, what cannot be read is counted in `skipped`."""
    counted = skipped if skipped is not None else Skipped()
    base = root.resolve()
    waiting = [_listed(base, "", None, counted)]
    while waiting:
        folder = waiting[-1]
        entry = next(folder.entries, None)
        if entry is None:
            waiting.pop()
            continue
        path = folder.path + entry.name
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in FOLDERS_NEVER_WALKED and not (folder.rules is not None and folder.rules.ignores(path + "/")):
                if len(waiting) < FOLDER_DEPTH_MAX and _is_sayable(path):
                    waiting.append(_listed(base, path + "/", folder.rules, counted))
                else:
                    counted.folders += 1
        elif (found := _file(entry, path, folder.rules, counted)) is not None:
            yield found


def _listed(base: Path, path: str, above: Rules | None, counted: Skipped) -> _Folder:
    try:
        with os.scandir(base / path) as opened:
            entries = sorted(opened, key=lambda entry: entry.name)
    except OSError:
        counted.folders += 1
        return _Folder(above, iter(()), path)
    return _Folder(rules_of(base, path, {entry.name for entry in entries}, above), iter(entries), path)


def _file(entry: os.DirEntry[str], path: str, rules: Rules | None, counted: Skipped) -> SourceFile | None:
    language = language_of(entry.name)
    if language is None or (rules is not None and rules.ignores(path)):
        return None
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        counted.files += 1
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    if not _is_sayable(path):
        counted.files += 1
        return None
    return SourceFile(path=path, language=language, size=status.st_size, mtime_ns=status.st_mtime_ns)


def _is_sayable(path: str) -> bool:
    """Tell whether a path is text: a file system may hold names that are not."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return len(path) <= PATH_CHARS_MAX


def source_text(root: Path, file: SourceFile) -> str | None:
    """Return the text of a source file with its line ends; None when it is gone, too large, or not to be read."""
    if file.size > SOURCE_BYTES_MAX:
        return None
    try:
        descriptor = os.open(
            root / file.path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        )
        with open(descriptor, "rb") as opened:  # noqa: PTH123  a link that took the file's place is not followed
            raw = opened.read(SOURCE_BYTES_MAX + 1)
    except OSError:
        return None
    return None if len(raw) > SOURCE_BYTES_MAX else raw.decode("utf-8-sig", "replace")
