"""Which version of a file a turn saw: its hash is kept with the access soon after, and compared when the turn is found again."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from recollect.capture.paths import place_of
from recollect.code.contents import Contents
from recollect.errors import InputError
from recollect.identity import HASH_PREFIX
from recollect.store.coded import Stamp

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.store import Store
    from recollect.store.coded import Cited, Unstamped, Whereabouts

FILES_LOOKED_AT_MAX = 64  # of one search
_TURNS_STAMPED_MAX = 200
_ACCESSES_AT_ONCE = 2_000
_HASH_CHARS = len(HASH_PREFIX) + 64  # an index adds what it kept of the file


class Stamper:
    """Keeps, with each access of a turn, the hash that the file had when the turn ended."""

    def __init__(self, store: Store, workspace: str, folder: str | None = None) -> None:
        """Files of a project that is nowhere else on this machine are looked for in `folder`."""
        self._store = store
        self._workspace = workspace
        self._contents = Contents()
        self._folder = folder

    async def stamp_newest(self, conversation_id: str) -> None:
        """Stamp the accesses of the last turns of a conversation."""
        await self._stamp(await self._store.code.unstamped(self._workspace, conversation_id, _TURNS_STAMPED_MAX, _ACCESSES_AT_ONCE))

    async def stamp_project(self, project_id: str) -> None:
        """Stamp every access of a project that is not stamped yet."""
        while await self._stamp(await self._store.code.unstamped_of(self._workspace, project_id, _ACCESSES_AT_ONCE)):
            pass

    async def _stamp(self, accesses: Sequence[Unstamped]) -> int:
        """Write the hash of each file that has not changed since the turn ended; of what has, that nobody can tell."""
        bases = _Bases(self._folder)
        stamps: list[Stamp] = []
        for one in accesses:
            base = bases.of(one.where)
            if base is not None:
                stamps.append(Stamp(one.conversation_id, one.turn_id, one.path, self._hash(base, one.path, one.ended_at)))
        if stamps:
            await self._store.code.stamp(self._workspace, stamps)
        return len(stamps)

    def _hash(self, base: str, path: str, ended_at: datetime | None) -> str:
        if ended_at is None or not _is_below(path):
            return ""
        content = self._contents.look(base, path)
        ended_ns = int(ended_at.timestamp() * 1e9)
        return content.hash if content is not None and content.changed_ns <= ended_ns <= time.time_ns() else ""


def changed_since(contents: Contents, cited: Sequence[Cited]) -> frozenset[str]:
    """Return the ids of those whose files have changed: as they are on this machine now, else as the index has them.

    At most `FILES_LOOKED_AT_MAX` files are looked at, those of the first ones; then the index has to do.
    """
    bases = _Bases(None)
    found: dict[tuple[str, str], str | None] = {}
    changed: set[str] = set()
    for one in cited:
        if one.owner_id in changed:
            continue
        now = _indexed(one)
        base = bases.of(one.where)
        if base is not None and _is_below(one.path) and ((base, one.path) in found or len(found) < FILES_LOOKED_AT_MAX):
            if (base, one.path) not in found:
                content = contents.look(base, one.path)
                found[base, one.path] = None if content is None else content.hash
            looked = found[base, one.path]
            now = now if looked is None else looked
        if now is not None and now != one.file_hash[:_HASH_CHARS]:
            changed.add(one.owner_id)
    return frozenset(changed)


def _indexed(one: Cited) -> str | None:
    """Return the hash that a file has in the index, empty where it was let go; None when the index cannot tell."""
    if one.indexed_hash is not None:
        return one.indexed_hash[:_HASH_CHARS]
    if one.where.code_root is None:
        return None
    from recollect.code.languages import language_of  # noqa: PLC0415  only where the files are not at hand

    return None if language_of(one.path) is None else ""


def _is_below(path: str) -> bool:
    return not os.path.isabs(path) and not path.startswith(("~", ".."))  # noqa: PTH117  once for each file of each hit


class _Bases:
    """Where the folders are that paths are told from; each is looked for once."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._known: dict[Whereabouts, str | None] = {}

    def of(self, where: Whereabouts) -> str | None:
        """Return the folder on this machine: of the conversation, else of the project, else of its index; None when there is none."""
        if where not in self._known:
            folders = (_root_of(where.cwd), where.root, where.code_root, self._folder)
            self._known[where] = next((folder for folder in folders if folder is not None and os.path.isdir(folder)), None)  # noqa: PTH112
        return self._known[where]


def _root_of(cwd: str | None) -> str | None:
    try:
        return place_of(cwd).root
    except InputError:
        return None
