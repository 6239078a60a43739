"""The code that conversations are about: read from a project's files, found by name and in words; the code half of `Memory`."""

from __future__ import annotations

import os
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.answers import Indexed, ScopeUse
from recollect.capture.paths import place_of
from recollect.checks import checked_count, checked_text
from recollect.distill.linking import Linker
from recollect.errors import InputError, NotFoundError
from recollect.identity import content_hash, identity
from recollect.model import Scope
from recollect.policies import policy_of
from recollect.store.coded import IndexedFile
from recollect.store.shapes import ConversationFilter, Probe, SearchScope, TurnRange
from recollect.text import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from recollect.answers import ScopeHit
    from recollect.code.walking import SourceFile
    from recollect.config import Settings
    from recollect.model import Project
    from recollect.policies import Policy
    from recollect.projects import Projects
    from recollect.recalling import Recall
    from recollect.store import Store

_FILES_AT_ONCE = 50
_TURNS_AT_ONCE = 50
_ALL = 1_000_000
_NAMED_MAX = 200


class Coded:
    """What a memory knows of code; without `project` or `cwd` the project of the current directory is meant."""

    store: Store
    workspace: str
    settings: Settings
    _projects: Projects

    @cached_property
    def recall(self) -> Recall:
        """What is asked in words."""
        raise NotImplementedError

    def _clean(self, text: str) -> str:
        raise NotImplementedError

    async def index(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        project: str | None = None,
        progress: Callable[[int, str], None] | None = None,
    ) -> Indexed:
        """Read the symbols of a project's files: those that changed since the last time, by their content; what is gone is let go.

        `progress` is called with how many files were looked at, and the last one's path.
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
        return await _Indexer(self.store, self.workspace, owner, Path(place.root), policy, self._clean).run(progress)

    async def scopes(self, name: str, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None) -> list[ScopeUse]:
        """Return the symbols of a name, qualified or not, by path and line, each with the conversations that speak of it."""
        given = checked_text("name", name)
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


class _Indexer:
    """One reading of a project's files."""

    def __init__(self, store: Store, workspace: str, project: Project, root: Path, policy: Policy, clean: Callable[[str], str]) -> None:
        self._store = store
        self._workspace = workspace
        self._project = project
        self._root = root
        self._policy = policy
        self._clean = clean
        self._linker = Linker(store, workspace)
        self._is_linked = False
        self._changed = 0
        self._unreadable = 0

    async def run(self, progress: Callable[[int, str], None] | None) -> Indexed:
        from recollect.code.walking import Skipped, source_files  # noqa: PLC0415  only those who index need it

        known = await self._store.code.files(self._workspace, self._project.id)
        self._is_linked = await self._store.code.root(self._workspace, self._project.id) is not None
        skipped = Skipped()
        seen: set[str] = set()
        waiting: list[tuple[IndexedFile, Sequence[Scope]]] = []
        for count, file in enumerate(source_files(self._root, skipped), 1):
            read = self._read(file)
            seen.add(file.path)
            if read is not None and known.get(file.path) != read[1]:
                waiting.append((read[1], self._scopes(file, read[0])))
                waiting = await self._written(waiting, _FILES_AT_ONCE)
            if progress is not None:
                progress(count, file.path)
        await self._written(waiting, 1)
        gone = sorted(path for path in set(known) - seen if self._is_gone(path))
        if gone:
            await self._store.code.drop_files(self._workspace, self._project.id, gone)
        await self._store.code.stamp(self._workspace, self._project.id)
        if not self._is_linked:
            await self._link_all()
        await self._store.code.set_root(self._workspace, self._project.id, str(self._root))  # last: what broke off is joined again
        return Indexed(
            project=self._project.name,
            root=str(self._root),
            files=len(await self._store.code.files(self._workspace, self._project.id)),
            scopes=await self._store.code.count(self._workspace, self._project.id),
            changed=self._changed,
            gone=len(gone),
            unreadable=self._unreadable + skipped.files + skipped.folders,
        )

    def _is_gone(self, path: str) -> bool:
        """Tell whether a file that was not come across is gone, or ignored now; not one that cannot be looked at for the moment."""
        try:
            (self._root / path).lstat()
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return False
        return os.access((self._root / path).parent, os.R_OK)

    async def _link_all(self) -> None:
        """Find out who speaks of the project's code."""
        where = ConversationFilter(project_ids=(self._project.id,))
        for info in await self._store.conversations.find(self._workspace, where, _ALL):
            first = 0
            while page := await self._store.turns.own(self._workspace, info.id, TurnRange(first=first, limit=_TURNS_AT_ONCE)):
                await self._linker.link(self._project.id, [draft.turn for draft in page])
                first = page[-1].turn.index + 1

    async def _link(self, scopes: Iterable[Scope]) -> None:
        """Find out who speaks of some symbols: those whose words name one."""
        turn_ids: dict[str, None] = {}
        scope = SearchScope(project_ids=(self._project.id,), levels=(0,))
        for name in dict.fromkeys(one.name for one in scopes):
            probe = Probe(terms=tuple(dict.fromkeys(terms(name))), limit=_TURNS_AT_ONCE)
            if probe.terms:
                found = await self._store.search.candidates(self._workspace, scope, probe)
                turn_ids |= dict.fromkeys(one.owner_id for one in found.passages)
        named = list(turn_ids)
        for first in range(0, len(named), _TURNS_AT_ONCE):
            turns = await self._store.turns.by_id(self._workspace, named[first : first + _TURNS_AT_ONCE])
            await self._linker.link(self._project.id, turns)

    def _read(self, file: SourceFile) -> tuple[str, IndexedFile] | None:
        from recollect.code.walking import source_text  # noqa: PLC0415  only those who index need it

        text = source_text(self._root, file)
        if text is None:  # gone since it was listed, or not to be read
            self._unreadable += 1
            return None
        kept = "names" if self._policy.withholds else "all"  # what is kept of it changes with the policy
        return text, IndexedFile(path=file.path, content_hash=f"{content_hash(text)}:{kept}", line_count=text.count("\n") + 1)

    def _scopes(self, file: SourceFile, text: str) -> list[Scope]:
        return list(scopes_of(self._project.id, file.path, file.language, text, self._policy, self._clean))

    async def _written(
        self, waiting: list[tuple[IndexedFile, Sequence[Scope]]], at_least: int
    ) -> list[tuple[IndexedFile, Sequence[Scope]]]:
        """Write what waits, when it is enough, and return what still waits."""
        if len(waiting) < at_least:
            return waiting
        await self._store.code.put_files(self._workspace, self._project.id, waiting)
        self._changed += len(waiting)
        if self._is_linked:
            await self._link([scope for _, scopes in waiting for scope in scopes])
        return []


def scopes_of(project_id: str, path: str, language: str, text: str, policy: Policy, clean: Callable[[str], str]) -> Iterator[Scope]:
    """Read the symbols of a file; where contents are withheld, without what they say of themselves."""
    from recollect.code.symbols import symbols_of  # noqa: PLC0415  only those who index need it

    seen: Counter[tuple[str, str]] = Counter()
    for symbol in symbols_of(text, language, clean):
        number = seen[symbol.qualified, symbol.kind]
        seen[symbol.qualified, symbol.kind] += 1
        yield Scope(
            id=identity("scope", project_id, path, symbol.qualified, symbol.kind, number),
            project_id=project_id,
            name=clean(symbol.name),
            qualified=clean(symbol.qualified),
            kind=symbol.kind,
            file_path=path,
            line_start=symbol.line_start,
            line_end=symbol.line_end,
            signature="" if policy.withholds else symbol.signature,
            docstring="" if policy.withholds else symbol.docstring,
            content_hash=symbol.content_hash,
        )


def _is_folder(path: str) -> bool:
    return Path(path).is_dir()
