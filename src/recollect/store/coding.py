"""An index of code: the symbols of a project's files, what they are found by, and who speaks of them; for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.placing import checksum
from recollect.store.coded import WordedScope
from recollect.text import term_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from recollect.model import Reference, Scope
    from recollect.store.coded import IndexedFile, ReadFile, Stamp, Unstamped
    from recollect.store.protocol import Engine, Transaction


class Code:
    """Code files and the scopes in them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def root(self, workspace: str, project_id: str) -> str | None:
        """Return the folder that a project's index was made of, or None."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.root(project_id))

    async def set_root(self, workspace: str, project_id: str, root: str) -> None:
        """Write the folder that a project's index is made of."""
        await self._engine.write(workspace, lambda transaction: transaction.code.set_root(project_id, root))

    async def files(self, workspace: str, project_id: str) -> dict[str, IndexedFile]:
        """Return the files of a project's index, by path."""
        found = await self._engine.read(workspace, lambda transaction: transaction.code.files(project_id))
        return {file.path: file for file in found}

    async def put_files(self, workspace: str, project_id: str, files: Sequence[ReadFile]) -> None:
        """Write files with all their scopes, whole or not at all; scopes that a file had before and has no more are gone."""
        await self._engine.write(workspace, lambda transaction: _put_files(transaction, workspace, project_id, files))

    async def drop_files(self, workspace: str, project_id: str, paths: list[str]) -> None:
        """Take files that are gone out of a project's index, with their scopes."""
        await self._engine.write(workspace, lambda transaction: _drop_files(transaction, project_id, paths))

    async def forget(self, workspace: str, project_ids: Sequence[str]) -> None:
        """Forget the code of projects: every symbol, every path that nothing else names, and where it was."""
        await self._engine.write(workspace, lambda transaction: _forget(transaction, project_ids))

    async def put_scopes(self, workspace: str, scopes: list[Scope]) -> None:
        """Write scopes of projects; one that exists is replaced."""
        await self._engine.write(workspace, lambda transaction: _put_scopes(transaction, workspace, scopes))

    async def scopes(self, workspace: str, project_id: str, name: str | None) -> list[Scope]:
        """Return the scopes of a project by path and line: all, or those of one name, qualified or not."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.scopes(project_id, name))

    async def count(self, workspace: str, project_id: str) -> int:
        """Count the scopes of a project."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.count(project_id))

    async def named(self, workspace: str, project_id: str, names: list[str]) -> list[Scope]:
        """Return the scopes of some names, qualified or not, by path and line."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.named(project_id, names)) if names else []

    async def in_files(self, workspace: str, project_id: str, paths: list[str]) -> list[Scope]:
        """Return the scopes of some files of a project, named by their paths or by the ends of those, by path and line."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.in_files(project_id, paths)) if paths else []

    async def having(self, workspace: str, project_ids: Sequence[str] | None, terms: Sequence[str], limit: int) -> list[WordedScope]:
        """Return scopes of some projects, or of all, that have one of some terms, the most promising first."""
        if not terms:
            return []
        projects = None if project_ids is None else list(project_ids)
        return await self._engine.read(workspace, lambda transaction: transaction.code.having(projects, list(terms), limit))

    async def near(
        self, workspace: str, project_ids: Sequence[str] | None, embedder: str, vector: NDArray[np.float32], limit: int
    ) -> list[WordedScope]:
        """Return scopes of some projects, or of all, whose vectors by an embedder are about the closest to one, by path and line."""
        projects = None if project_ids is None else list(project_ids)
        return await self._engine.read(workspace, lambda transaction: _near(transaction, projects, embedder, vector, limit))

    async def unstamped(self, workspace: str, conversation_id: str, newest: int, limit: int) -> list[Unstamped]:
        """Return files that the newest turns of a conversation accessed, and of which it is not told yet what they were then."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.unstamped(conversation_id, newest, limit))

    async def unstamped_of(self, workspace: str, project_id: str, limit: int) -> list[Unstamped]:
        """Return files that turns of a project accessed, and of which it is not told yet what they were then."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.unstamped_of(project_id, limit))

    async def stamp(self, workspace: str, stamps: list[Stamp]) -> None:
        """Keep, with accesses to files, what the files were then, or that nobody can tell; what is told already stays."""
        await self._engine.write(workspace, lambda transaction: transaction.code.stamp(stamps))

    async def put_references(self, workspace: str, references: list[Reference]) -> None:
        """Write that messages speak of scopes; each is kept once, and goes with its message or its scope."""
        await self._engine.write(workspace, lambda transaction: transaction.code.put_references(references))

    async def references(self, workspace: str, scope_ids: list[str]) -> list[Reference]:
        """Return who speaks of scopes, by scope, conversation and message."""
        return await self._engine.read(workspace, lambda transaction: transaction.code.references(scope_ids))


def worded(scope: Scope) -> WordedScope:
    """Return a scope with what it is found by: its name and its parts, where it is, and what it says of itself."""
    words = "\n".join(dict.fromkeys((scope.name, scope.qualified, scope.file_path, scope.signature, scope.docstring)))
    return WordedScope(scope, term_text(words), checksum(scope))


async def _near(
    transaction: Transaction, project_ids: list[str] | None, embedder: str, vector: NDArray[np.float32], limit: int
) -> list[WordedScope]:
    packs = await transaction.code.signs(project_ids, embedder)
    if not packs:
        return []
    from recollect.store.nearness import nearest  # noqa: PLC0415  only those who ask by meaning need NumPy

    return await transaction.code.by_id(nearest(packs, vector, limit))


async def _put_files(transaction: Transaction, workspace: str, project_id: str, files: Sequence[ReadFile]) -> None:
    await _checked(transaction, workspace, project_id)
    scopes = [worded(scope) for one in files for scope in one.scopes]
    await transaction.code.drop_scopes(project_id, [one.file.path for one in files], [one.scope.id for one in scopes])
    await transaction.code.put_files(project_id, list(files))
    if scopes:
        await transaction.code.put_scopes(project_id, scopes)


async def _drop_files(transaction: Transaction, project_id: str, paths: list[str]) -> None:
    await transaction.code.drop_scopes(project_id, paths, [])
    await transaction.code.drop_files(project_id, paths)
    await transaction.conversations.drop_unused([project_id])


async def _forget(transaction: Transaction, project_ids: Sequence[str]) -> None:
    for project_id in project_ids:
        await transaction.code.clear(project_id)
    await transaction.conversations.drop_unused(sorted(project_ids))


async def _put_scopes(transaction: Transaction, workspace: str, scopes: list[Scope]) -> None:
    for project_id in dict.fromkeys(scope.project_id for scope in scopes):
        await _checked(transaction, workspace, project_id)
        await transaction.code.put_scopes(project_id, [worded(scope) for scope in scopes if scope.project_id == project_id])


async def _checked(transaction: Transaction, workspace: str, project_id: str) -> None:
    if all(project.id != project_id for project in await transaction.conversations.projects()):
        msg = f"there is no project {project_id!r} in workspace {workspace!r}"
        raise NotFoundError(msg)
