"""Where a path lies: its project, its place below the project's root, and whether it is worth remembering."""

from __future__ import annotations

import os
import re
from functools import lru_cache
from itertools import islice
from pathlib import Path, PurePosixPath

import msgspec

from recollect.errors import InputError
from recollect.limits import PATH_CHARS_MAX

_LINE_SUFFIX = re.compile(r":\d+(?:[-:]\d+)?$")
_DRIVE = re.compile(r"^[A-Za-z]:[\\/]")
_TEMPORARY = re.compile(r"(?:^|/)(?:\.cache|\.Trash|tmp|temp)/|\.(?:tmp|temp|swp|swo|bak|orig|rej)$|~$|(?:^|/)\.#", re.IGNORECASE)
_TEMPORARY_ROOTS = ("/tmp/", "/var/tmp/", "/private/tmp/", "/var/folders/", "/private/var/folders/", "/dev/")  # noqa: S108  names, not uses
_GENERATED = re.compile(
    r"(?:^|/)(?:node_modules|__pycache__|\.git|\.hg|\.svn|\.venv|venv|\.tox|\.nox|\.mypy_cache|\.pytest_cache|\.ruff_cache|dist|build|target"
    r"|\.next|\.nuxt|coverage|htmlcov|\.gradle|\.idea|[^/]+\.egg-info)/"
    r"|(?:^|/)(?:package-lock\.json|yarn\.lock|pnpm-lock\.yaml|poetry\.lock|uv\.lock|Cargo\.lock|go\.sum|Gemfile\.lock|composer\.lock)$"
    r"|\.(?:pyc|pyo|class|o|so|a|dll|exe|min\.js|min\.css|map|wasm|log)$"
)
_GIT_FILE_BYTES_MAX = 4_096
_COMMON_DIR_DEPTH = 2  # <repository>/.git/worktrees/<name>
_WORKTREES_MAX = 100
_FOLDERS_REMEMBERED = 4_096


class Place(msgspec.Struct, frozen=True):
    """The directories that paths of one conversation are read against; all absolute, or None when unknown.

    A path in a linked worktree is one of the project, too: one file has one path, whichever worktree it is changed in.
    """

    root: str | None = None
    cwd: str | None = None
    worktrees: tuple[str, ...] = ()

    def locate(self, path: str) -> str:
        """Return a path relative to the project's root, or absolute when it lies outside."""
        text = path.strip().strip("'\"`")
        text = _LINE_SUFFIX.sub("", text).removeprefix("file://")
        if _DRIVE.match(text):
            text = text.replace("\\", "/")
        if not text or len(text) > PATH_CHARS_MAX:
            return ""
        if not (text.startswith(("/", "~")) or _DRIVE.match(text)):
            base = self.cwd or self.root
            if base is None:
                return os.path.normpath(text)
            text = f"{base}/{text}"
        text = os.path.normpath(text)
        trees = (*self.worktrees, *[known for known in (self.root or self.cwd,) if known is not None])
        within = [tree for tree in trees if text == tree or text.startswith(tree.rstrip("/") + "/")]
        tree = max(within, key=len) if within else _linked(text, trees)
        return text if tree is None else os.path.relpath(text, tree)


def _linked(path: str, trees: tuple[str, ...]) -> str | None:
    """Return the folder of an absolute path that is, symlinks resolved, one of some."""
    return _linked_folder(str(Path(path).parent), trees) if trees and path.startswith("/") else None


@lru_cache(maxsize=_FOLDERS_REMEMBERED)
def _linked_folder(folder: str, trees: tuple[str, ...]) -> str | None:
    """Return a folder, or one above it, that is one of some; looks where links lead, once, and reads no file."""
    try:
        return next((str(one) for one in (Path(folder), *Path(folder).parents) if os.path.realpath(one) in trees), None)
    except (OSError, ValueError):  # a path that no system could have
        return None


def place_of(cwd: str | None) -> Place:
    """Return the place of a working directory: symlinks resolved, and the root of its repository."""
    if cwd is None:
        return Place()
    try:
        resolved = str(Path(cwd).expanduser().resolve())
    except (RuntimeError, OSError, ValueError) as error:
        msg = f"{cwd[:60]!r} is no directory: {error}"
        raise InputError(msg) from error
    tree, root = _repository(resolved)
    return Place(root=root, cwd=resolved, worktrees=_worktrees(root, tree))


def place_of_root(root: str) -> Place:
    """Return the place of a project by the root it is known by, whatever lies around it now."""
    return Place(root=root, cwd=root, worktrees=_worktrees(root, root))


def repository_root(directory: str) -> str:
    """Return the root of the repository a directory belongs to, one for all its worktrees; else the directory itself."""
    return _repository(directory)[1]


def _repository(directory: str) -> tuple[str, str]:
    """Return the worktree a directory belongs to, and the root of its repository; the directory itself where there is none."""
    for folder in (Path(directory), *Path(directory).parents):
        marker = folder / ".git"
        try:
            if marker.is_dir():
                return str(folder), str(folder)
            if marker.is_file():
                return str(folder), _main_worktree(folder, _pointer(marker))
        except OSError:
            break
    return directory, directory


def _worktrees(root: str, own: str) -> tuple[str, ...]:
    """Return the linked worktrees of a repository: the one at hand, and those that git keeps a folder each of."""
    git_dir = Path(root, ".git")
    try:
        kept = (git_dir if git_dir.is_dir() else Path(root)).glob("worktrees/*/gitdir")  # a bare repository is its own folder of git
        named = [os.path.realpath(one.parent / _pointer(one).strip()) for one in islice(kept, _WORKTREES_MAX)]
    except (OSError, ValueError):
        named = []
    return tuple(sorted({own, *(one.removesuffix("/.git") for one in named if one.endswith("/.git"))} - {root, ""}))


def _pointer(file: Path) -> str:
    """Return what a file of git says that holds nothing but a path."""
    with file.open(errors="replace") as opened:
        return opened.read(_GIT_FILE_BYTES_MAX)


def _main_worktree(folder: Path, pointer: str) -> str:
    """Follow the `gitdir:` of a linked worktree to the repository it belongs to; a submodule is its own project."""
    target = PurePosixPath(pointer.partition("gitdir:")[2].strip())
    git_dir = Path(os.path.normpath(folder / target))
    if git_dir.parent.name == "worktrees" and len(git_dir.parents) > _COMMON_DIR_DEPTH:
        common = git_dir.parent.parent
        return str((common.parent if common.name == ".git" else common).resolve())
    return str(folder)


def is_temporary(path: str) -> bool:
    """Tell whether a file is not meant to last."""
    return path.startswith(_TEMPORARY_ROOTS) or _TEMPORARY.search(path) is not None


def is_generated(path: str) -> bool:
    """Tell whether a file is made by a program from others."""
    return _GENERATED.search(path) is not None
