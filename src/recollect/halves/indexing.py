"""The code that conversations are about: read from a project's files, found by name and in words; the code half of `Memory`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from recollect.answers import Indexed, ScopeUse
from recollect.capture.paths import place_of
from recollect.checks import checked_count, checked_name
from recollect.errors import InputError, NotFoundError
from recollect.halves.core import Core
from recollect.policies import policy_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from recollect.answers import ScopeHit

_NAMED_MAX = 200


class Coded(Core):
    """What a memory knows of code; without `project` or `cwd` the project of the current directory is meant."""

    async def index(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        project: str | None = None,
        again: bool = False,
        progress: Callable[[int, str], None] | None = None,
    ) -> Indexed:
        """Read the symbols of a project's files: those that changed since the last time, by their content; what is gone is let go.

        `again` reads every file anew. `progress` is called with how many files were looked at, and the last one's path.
        """
        place = place_of(self._projects.path(cwd))
        if place.root is None or not _is_folder(place.root):
            msg = f"{str(cwd)[:200]!r} is no directory: name the one whose code is to be indexed"
            raise NotFoundError(msg)
        owner = self._projects.of(project, place)
        policy = policy_of(self.settings, owner, place.root)
        if policy.excludes:
            await self.store.code.forget(self.workspace, [owner.id])
            msg = f"nothing of project {owner.name!r} is recorded, as the settings say: its code is not indexed"
            raise InputError(msg)
        await self.store.conversations.put_project(self.workspace, owner)
        from recollect.distill.indexer import Indexer  # noqa: PLC0415  only those who index need it

        folder = checkout(Path(place.cwd or place.root), Path(place.root))
        embedder = self.recall.code_embedder()
        return await Indexer(self.store, self.workspace, owner, folder, policy, self._clean, embedder).run(progress, again=again)

    async def scopes(self, name: str, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None) -> list[ScopeUse]:
        """Return the symbols of a name, qualified or not, by path and line, each with the conversations that speak of it."""
        given = checked_name("a symbol", name)
        found = [
            scope for project_id in await self._code_projects(project, cwd)
            for scope in await self.store.code.scopes(self.workspace, project_id, given)
        ][:_NAMED_MAX]  # fmt: skip
        spoken = await self.store.code.references(self.workspace, [scope.id for scope in found])
        infos = {own_id: await self.store.conversations.get(self.workspace, own_id) for own_id in {one.conversation_id for one in spoken}}
        uses: list[ScopeUse] = []
        for scope in found:
            known = [infos[own_id] for own_id in {one.conversation_id for one in spoken if one.scope_id == scope.id}]
            latest = sorted((info for info in known if info is not None), key=lambda info: (info.updated_at, info.id), reverse=True)
            uses.append(ScopeUse(scope=scope, conversations=tuple(latest)))
        return uses

    async def find_scopes(
        self, query: str, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None, limit: int = 10
    ) -> list[ScopeHit]:
        """Return the symbols of the code that a question may be about, best first."""
        checked_count("limit", limit)
        projects = await self._code_projects(project, cwd)
        return await self.recall.scopes(query, projects, limit=limit) if projects and limit else []

    async def _code_projects(self, project: str | None, cwd: str | os.PathLike[str] | None) -> list[str]:
        found = await self._projects.ids(project, "." if project is None and cwd is None else cwd)
        return list(found or ())


def _is_folder(path: str) -> bool:
    return Path(path).is_dir()


def checkout(cwd: Path, root: Path) -> Path:
    """Return the folder whose files are a project's, as somebody there sees them: a linked worktree of a repository has its own."""
    return next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), root)
