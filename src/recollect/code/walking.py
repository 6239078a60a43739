"""A folder → its files, in a stable order, one folder's listing at a time; what Git ignores is left out."""

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
    from collections.abc import Callable, Iterator
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
    for path, entry in project_files(root, counted, wanted=lambda name: language_of(name) is not None):
        language = language_of(entry.name)
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:
            counted.files += 1
            continue
        if language is not None and stat.S_ISREG(status.st_mode):
            yield SourceFile(path=path, language=language, size=status.st_size, mtime_ns=status.st_mtime_ns)


def project_files(
    root: Path, skipped: Skipped, *, wanted: Callable[[str], bool], below: str = "", heeds_ignore_files: bool = True
) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the path and the entry of all that is no folder and has a wanted name, in the folder `below` the root, slash at its end.

    Ignore files are heeded from the root on; where they cannot be, hidden names are left out in their place.
    """
    base = root.resolve()
    waiting = [_listed(base, "", None, skipped, heeds_ignore_files=heeds_ignore_files)]
    while waiting:
        folder = waiting[-1]
        entry = next(folder.entries, None)
        if entry is None:
            waiting.pop()
            continue
        path = folder.path + entry.name
        if entry.is_dir(follow_symlinks=False):
            inner = path + "/"
            if not (inner.startswith(below) or below.startswith(inner)) or entry.name in FOLDERS_NEVER_WALKED or _ignores(folder, inner):
                continue
            if len(waiting) < FOLDER_DEPTH_MAX and _is_sayable(path):
                waiting.append(_listed(base, inner, folder.rules, skipped, heeds_ignore_files=heeds_ignore_files))
            else:
                skipped.folders += 1
        elif path.startswith(below) and wanted(entry.name) and not _ignores(folder, path):
            if _is_sayable(path):
                yield path, entry
            else:
                skipped.files += 1


def _ignores(folder: _Folder, path: str) -> bool:
    return folder.rules is not None and folder.rules.ignores(path)


def _listed(base: Path, path: str, above: Rules | None, skipped: Skipped, *, heeds_ignore_files: bool) -> _Folder:
    try:
        with os.scandir(base / path) as opened:
            entries = sorted(opened, key=lambda entry: entry.name)
    except OSError:
        skipped.folders += 1
        return _Folder(above, iter(()), path)
    if not heeds_ignore_files:
        return _Folder(None, iter([entry for entry in entries if not entry.name.startswith(".")]), path)
    return _Folder(rules_of(base, path, {entry.name for entry in entries}, above), iter(entries), path)


def _is_sayable(path: str) -> bool:
    """Tell whether a path is text: a file system may hold names that are not."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return len(path) <= PATH_CHARS_MAX


def lines_in(text: str) -> int:
    """Return how many lines a text has; the end of the last one begins no other."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


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
