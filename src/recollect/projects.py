"""Where to look: which project is meant, by directory, id or name, and which of its turns."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, cast

from recollect.capture.paths import place_of
from recollect.checks import checked_name, checked_plain, checked_text, checked_time
from recollect.errors import InputError
from recollect.identity import identity
from recollect.limits import PATH_CHARS_MAX
from recollect.model import Project
from recollect.store.shapes import TurnFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.capture.paths import Place
    from recollect.store import Store


def filter_of(tags: tuple[str, ...], *, agent: object, since: object, until: object, tool: object, file: object) -> TurnFilter:
    """Return which turns count; a path is compared as it is kept, without a leading "./"."""
    path = checked_plain("file", file)
    return TurnFilter(
        agent=checked_plain("agent", agent),
        tags=tags,
        since=checked_time("since", since),
        until=checked_time("until", until),
        tool=checked_plain("tool", tool),
        file=None if path is None else path.removeprefix("./"),
    )


class Projects:
    """The projects of one workspace; `clean` takes secrets out of what is given."""

    def __init__(self, store: Store, workspace: str, clean: Callable[[str], str]) -> None:
        self._store = store
        self._workspace = workspace
        self._clean = clean

    def path(self, path: object) -> str:
        """Return a path that could be a directory, without secrets."""
        text = str(os.fspath(cast("str", path))) if isinstance(path, str | os.PathLike) else ""
        if not text or len(text) > PATH_CHARS_MAX or "\0" in text:
            msg = f"{str(path)[:60]!r} is no directory: give a path of 1 to {PATH_CHARS_MAX} characters"
            raise InputError(msg)
        return self._clean(text)

    def of(self, given: str | None, place: Place) -> Project:
        """Return the project that is named, else the one of a place, else the default one."""
        if given is not None:
            name = checked_name("project", self._clean(checked_text("project", given)))
            return Project(id=identity("project", self._workspace, "name", name), name=name, root=place.root, external_id=name)
        if place.root is None:
            return Project(id=identity("project", self._workspace, "name", "default"), name="default", external_id="default")
        return Project(id=identity("project", self._workspace, "root", place.root), name=Path(place.root).name or "/", root=place.root)

    async def ids(self, project: str | None, cwd: str | os.PathLike[str] | None) -> tuple[str, ...] | None:
        """Return the ids of the projects meant: None for all of them, none at all when nothing is recorded there."""
        if project is None and cwd is None:
            return None
        known = await self._store.conversations.projects(self._workspace)
        if project is None:
            root = place_of(self.path(cwd)).root
            return tuple(one.id for one in known if one.root is not None and one.root == root)
        given = checked_text("project", project)
        found = [one for one in known if given in {one.id, one.external_id, one.root}] or [one for one in known if one.name == given]
        if len(found) > 1 and not any(given in {one.id, one.external_id, one.root} for one in found):
            roots = ", ".join(one.root or one.id for one in found)
            msg = f"several projects are named {given!r}: name one by its directory ({roots})"
            raise InputError(msg)
        return tuple(one.id for one in found)
