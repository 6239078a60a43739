"""The files of a project as they are on this machine now, told by their hashes; one is read again only when it has changed."""

from __future__ import annotations

import os
import stat
import time
from collections import OrderedDict
from typing import NamedTuple

from recollect.identity import content_hash
from recollect.limits import HASHED_BYTES_MAX

_REMEMBERED_MAX = 10_000
_SETTLED_NS = 2_000_000_000  # what changed later may change again without a later time: some file systems count in steps of two seconds
_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


class Content(NamedTuple):
    """What is at a path: its hash, empty where there is no file that is hashed, and when that came to be, as far as it can be told."""

    hash: str
    changed_ns: int


class _Version(NamedTuple):
    """What a file system tells apart."""

    device: int
    inode: int
    size: int
    mtime_ns: int
    ctime_ns: int


class Contents:
    """Looks at files; those it has read it knows until they change."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[_Version, str]] = OrderedDict()

    def look(self, root: str, path: str) -> Content | None:
        """Return what is at a path below a folder; None where it cannot be told.

        What a link leads to outside of the folder, what is no file and what is too large has no hash; nor has what is not there.
        """
        file = os.path.join(root, path)  # noqa: PTH118  once for each file of each hit
        try:
            own = status = os.lstat(file)
            if stat.S_ISLNK(own.st_mode):
                status = os.stat(file)  # noqa: PTH116  as above
        except (FileNotFoundError, NotADirectoryError):
            return Content("", time.time_ns())
        except (OSError, ValueError):
            return None
        changed_ns = max(status.st_mtime_ns, status.st_ctime_ns, own.st_mtime_ns, own.st_ctime_ns)
        if not stat.S_ISREG(status.st_mode) or status.st_size > HASHED_BYTES_MAX:
            return Content("", changed_ns)
        version = _version(status)
        known = self._known.get(file)
        if known is not None and known[0] == version:
            return Content(known[1], changed_ns)
        made = _read(root, file, version)
        if made is None:
            return None
        if time.time_ns() - changed_ns > _SETTLED_NS:
            self._remember(file, version, made)
        return Content(made, changed_ns)

    def _remember(self, file: str, version: _Version, made: str) -> None:
        self._known[file] = (version, made)
        self._known.move_to_end(file)
        while len(self._known) > _REMEMBERED_MAX:
            self._known.popitem(last=False)


def _version(status: os.stat_result) -> _Version:
    return _Version(status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def _read(root: str, file: str, version: _Version) -> str | None:
    """Return the hash of a file as an index has it; empty when it is outside of the folder, None when it is another one by now."""
    try:
        base, real = os.path.realpath(root), os.path.realpath(file)
        if os.path.commonpath((base, real)) != base:
            return ""
        with open(os.open(real, _FLAGS), "rb") as opened:  # noqa: PTH123  a link that took the file's place is not followed
            if _version(os.fstat(opened.fileno())) != version:
                return None
            raw = opened.read(version.size + 1)
    except (OSError, ValueError):
        return None
    return content_hash(raw.decode("utf-8-sig", "replace")) if len(raw) == version.size else None
