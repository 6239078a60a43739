"""A whole store copied into another, of any kind: streaming, and as often as one likes.

Parents come before their branches, which go on inheriting by reference. Each page of turns is a transaction of its own,
and what is there already is left: a copy that broke off is taken up by copying again. What cannot be in both, another
turn in the same place, is refused.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.answers import Copied
from recollect.errors import InputError, StoreUnavailableError
from recollect.store import open_store
from recollect.store.shapes import ConversationFilter, TurnRange

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.settings import Settings
    from recollect.store import Store

_TURNS_PER_PAGE = 100
_SCOPES_PER_PAGE = 500
_ALL = 1_000_000_000
_FILE = re.compile(r"(?:sqlite:(?://)?)?(?!\w{2,}:)(.+)", re.IGNORECASE)  # what opening takes for a path, and no other scheme


async def copy_store(
    source: str,
    target: str,
    *,
    workspace: str | None = None,
    settings: Settings | None = None,
    progress: Callable[[int], None] | None = None,
    threads: bool = True,
) -> Copied:
    """Copy a store into another, all workspaces or one; `progress` is told how many turns have been seen.

    A file that is not there is no source (`StoreUnavailableError`); as a target it is created.
    """
    _refuse_missing(source)
    origin = await open_store(source, settings, threads=threads)
    try:
        copy = await open_store(target, settings, threads=threads)
        try:
            if origin.url == copy.url:
                msg = f"{origin.url} cannot be copied into itself: name another store"
                raise InputError(msg)
            return await _Copying(origin, copy, progress).run(workspace)
        finally:
            await copy.close()
    finally:
        await origin.close()


def _refuse_missing(source: str) -> None:
    """Refuse a file that is not there: to open it would be to create it."""
    file = _FILE.fullmatch(source)
    if file is not None and not Path(file[1]).expanduser().exists():
        msg = f"there is no store {source[:200]!r} to copy: name a file that exists, or a server"
        raise StoreUnavailableError(msg)


class _Copying:
    """A copy on its way."""

    def __init__(self, source: Store, target: Store, progress: Callable[[int], None] | None) -> None:
        self._source = source
        self._target = target
        self._progress = progress
        self._conversations = self._turns = self._new = 0

    async def run(self, workspace: str | None) -> Copied:
        """Copy workspace by workspace."""
        names = [name for name in await self._source.workspaces() if workspace in {None, name}]
        if workspace is not None and not names:
            msg = f"there is no workspace {workspace!r} in {self._source.url}"
            raise InputError(msg)
        for name in names:
            for project in await self._source.conversations.projects(name):
                await self._target.conversations.put_project(name, project)
            for own_id in await self._eldest_first(name):
                await self._conversation(name, own_id)
            for project in await self._source.conversations.projects(name):
                await self._scopes(name, project.id)
        return Copied(workspaces=len(names), conversations=self._conversations, turns=self._turns, new_turns=self._new)

    async def _eldest_first(self, workspace: str) -> list[str]:
        found = await self._source.conversations.find(workspace, ConversationFilter(), _ALL)
        held = [await self._source.conversations.held(workspace, info.id) for info in found]
        roots = [one.conversation.id for one in held if one is not None and one.parent_id is None]
        return [*roots, *(one.conversation.id for one in await self._source.conversations.below(workspace, roots))]

    async def _conversation(self, workspace: str, own_id: str) -> None:
        held = await self._source.conversations.held(workspace, own_id)
        if held is None:  # it went meanwhile
            return
        await self._target.conversations.put(workspace, held)
        first, last = 0, held.next_index - 1  # what is recorded from now on comes with the next copy
        while page := await self._source.turns.own(workspace, own_id, TurnRange(first=first, last=last, limit=_TURNS_PER_PAGE)):
            self._new += await self._target.turns.put(workspace, own_id, page)
            self._turns += len(page)
            first = page[-1].turn.index + 1
            if self._progress is not None:
                self._progress(self._turns)
        expiries = await self._source.retention.expiries(workspace, own_id)
        await self._target.derived.put_summaries(
            workspace, await self._source.derived.summaries(workspace, own_id, None), expiries=expiries
        )
        await self._target.derived.put_insights(workspace, await self._source.derived.insights(workspace, own_id), expiries=expiries)
        self._conversations += 1

    async def _scopes(self, workspace: str, project_id: str) -> None:
        scopes = await self._source.code.scopes(workspace, project_id, None)
        for start in range(0, len(scopes), _SCOPES_PER_PAGE):
            page = scopes[start : start + _SCOPES_PER_PAGE]
            await self._target.code.put_scopes(workspace, page)
            references = await self._source.code.references(workspace, [scope.id for scope in page])
            await self._target.code.put_references(workspace, references)
