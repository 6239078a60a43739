"""A path that somebody names → a file below one folder, or a refusal; nothing outside that folder is opened, listed or written.

A path is resolved first. Then the folders on the way are opened one by one from the root, and none of them may be a link any more: what is
put in the way between the look and the use is refused, too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.checks import checked_text
from recollect.errors import ConfigError, InputError, NotAllowedError, NotFoundError, TooLargeError
from recollect.limits import PATH_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Generator

_NAME_SHOWN_MAX = 200
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0)
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | _NO_LINK
_WRITTEN_NEVER = ".git"
_LINKS = {errno.ELOOP, errno.ENOTDIR, errno.EMLINK}


def real_root(root: str | os.PathLike[str]) -> Path:
    """Return the folder that paths are confined to, without links."""
    if os.open not in os.supports_dir_fd:
        msg = "the code tools need a system that opens files relative to a folder: use Linux or macOS"
        raise ConfigError(msg)
    found = Path(root).resolve()
    if not found.is_dir():
        msg = f"{_shown(os.fspath(root))} is no directory: name the one an agent works in"
        raise NotFoundError(msg)
    return found


def safe_path(root: str | os.PathLike[str], path: str, *, writing: bool = False) -> Path:
    """Return the file or folder a path means, without links; what is outside of the root, or neither file nor folder, is refused.

    A relative path begins at the root. What is not there yet is fine; with `writing`, what belongs to Git is refused.
    """
    given = checked_text("path", path)
    if not given or "\0" in given or len(given) > PATH_CHARS_MAX:
        msg = f"a path has 1 to {PATH_CHARS_MAX:,} characters and no NUL, not {_shown(given)}: name a file of the project"
        raise InputError(msg)
    base = Path(root).resolve()
    with telling(given):
        try:
            found = (base / given).resolve()
        except (RuntimeError, UnicodeEncodeError) as error:
            msg = f"{_shown(given)} leads nowhere: name a file of the project"
            raise InputError(msg) from error
        if not found.is_relative_to(base):
            msg = f"{_shown(given)} is outside of the project: name a path below its root"
            raise NotAllowedError(msg)
        if writing and any(part.rstrip(". ").casefold() == _WRITTEN_NEVER for part in found.relative_to(base).parts):
            msg = f"{_shown(given)} belongs to Git and is not written: use the git command"
            raise NotAllowedError(msg)
        with contextlib.suppress(FileNotFoundError):
            _checked_kind(given, found.lstat().st_mode)
    return found


def read_bytes(root: Path, path: Path, bytes_max: int) -> bytes:
    """Return what a file holds; `root` and `path` are resolved ones, and a file of more than `bytes_max` bytes is refused."""
    shown = path.relative_to(root).as_posix()
    with telling(shown), _holding(root, path) as folder:
        descriptor = os.open(path.name, os.O_RDONLY | _NO_LINK, dir_fd=folder)
        with open(descriptor, "rb") as opened:  # noqa: PTH123  a descriptor, not a path
            mode = os.fstat(descriptor).st_mode
            _checked_kind(shown, mode)
            if stat.S_ISDIR(mode):
                raise IsADirectoryError
            raw = opened.read(bytes_max + 1)
    if len(raw) > bytes_max:
        msg = f"{_shown(shown)} has more than {bytes_max:,} bytes: search it with another tool, or read a smaller file"
        raise TooLargeError(msg)
    return raw


def replace_bytes(root: Path, path: Path, raw: bytes) -> bool:
    """Write a file at once or not at all, keeping the mode of the one it replaces; returns whether there was none."""
    shown = path.relative_to(root).as_posix()
    with telling(shown), _holding(root, path, creating=True) as folder:
        mode = _mode(shown, path.name, folder)
        temporary = f".recollect-{secrets.token_hex(8)}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
        descriptor = os.open(temporary, flags, 0o666 if mode is None else 0o600, dir_fd=folder)
        try:
            with open(descriptor, "wb") as opened:  # noqa: PTH123  as above
                opened.write(raw)
                opened.flush()
                if mode is not None:
                    os.fchmod(descriptor, mode)
                os.fsync(descriptor)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
    return mode is None


def listed(root: Path, path: Path) -> list[tuple[str, os.stat_result]]:
    """Return the names in a folder and what each is; links are told as links."""
    found: list[tuple[str, os.stat_result]] = []
    with telling(path.relative_to(root).as_posix()), _opened(root, path) as folder, os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(FileNotFoundError):
                found.append((entry.name, entry.stat(follow_symlinks=False)))
    return found


@contextlib.contextmanager
def telling(shown: str) -> Generator[None]:
    """Turn what the system says about a path into an error of ours."""
    try:
        yield
    except FileNotFoundError as error:
        msg = f"there is no {_shown(shown)} in the project: list_directory and glob_files tell what there is"
        raise NotFoundError(msg) from error
    except IsADirectoryError as error:
        msg = f"{_shown(shown)} is a directory: name a file, or list it"
        raise InputError(msg) from error
    except OSError as error:
        if error.errno in _LINKS:
            msg = f"{_shown(shown)} goes through something that is no folder, or through a link: name the place it leads to"
            raise NotAllowedError(msg) from error
        msg = f"{_shown(shown)} cannot be used ({error.strerror or type(error).__name__}): choose another file"
        raise (NotAllowedError if isinstance(error, PermissionError) else InputError)(msg) from error


def _holding(root: Path, path: Path, *, creating: bool = False) -> contextlib.AbstractContextManager[int]:
    """Open the folder that a file is in."""
    if path == root:
        raise IsADirectoryError
    return _opened(root, path.parent, creating=creating)


@contextlib.contextmanager
def _opened(root: Path, path: Path, *, creating: bool = False) -> Generator[int]:
    """Open a folder below the root, one step at a time, and through no link."""
    folder = os.open(root, _FOLDER)
    try:
        for name in path.relative_to(root).parts:
            if creating:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, dir_fd=folder)
            inner = os.open(name, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = inner
        yield folder
    finally:
        os.close(folder)


def _mode(shown: str, name: str, folder: int) -> int | None:
    """Return the mode of the file that is to be replaced, or None when there is none."""
    try:
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return None
    _checked_kind(shown, mode)
    if stat.S_ISDIR(mode):
        raise IsADirectoryError
    return stat.S_IMODE(mode)


def _checked_kind(shown: str, mode: int) -> None:
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        msg = f"{_shown(shown)} is neither a file nor a directory: name one that is"
        raise NotAllowedError(msg)


def _shown(path: str) -> str:
    return repr(path[:_NAME_SHOWN_MAX])
