"""A project's files → the symbols in them, kept up to date: what changed is read anew, what is gone is let go."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Indexed
from recollect.distill.linking import Linker
from recollect.distill.versions import Stamper
from recollect.identity import content_hash, identity
from recollect.model import Scope
from recollect.quoting import scope_text
from recollect.store.coded import IndexedFile, ReadFile
from recollect.store.shapes import ConversationFilter, Probe, SearchScope, TurnRange
from recollect.text import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from recollect.code.walking import SourceFile
    from recollect.distill.embedders import Embedder
    from recollect.model import Project
    from recollect.policies import Policy
    from recollect.store import Store

_FILES_AT_ONCE = 50
_TURNS_AT_ONCE = 50
_ALL = 1_000_000


class Indexer:
    """One reading of a project's files; with an embedder the symbols in them are found by meaning, too."""

    def __init__(
        self,
        store: Store,
        workspace: str,
        project: Project,
        root: Path,
        policy: Policy,
        clean: Callable[[str], str],
        embedder: Embedder | None,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._project = project
        self._root = root
        self._policy = policy
        self._clean = clean
        self._embedder = embedder
        self._linker = Linker(store, workspace, str(root))
        self._is_linked = False
        self._changed = 0
        self._unreadable = 0

    async def run(self, progress: Callable[[int, str], None] | None, *, again: bool) -> Indexed:
        """Read what has changed, let go of what is gone, and find out who speaks of it."""
        from recollect.code.walking import Skipped, source_files  # noqa: PLC0415  only those who index need it

        known = await self._store.code.files(self._workspace, self._project.id)
        self._is_linked = await self._store.code.root(self._workspace, self._project.id) is not None
        skipped = Skipped()
        seen: set[str] = set()
        waiting: list[ReadFile] = []
        for count, file in enumerate(source_files(self._root, skipped), 1):
            read = self._read(file)
            seen.add(file.path)
            if read is not None and (again or not self._is_kept(known.get(file.path), read[1])):
                waiting.append(ReadFile(read[1], self._scopes(file, read[0])))
                waiting = await self._written(waiting, _FILES_AT_ONCE)
            if progress is not None:
                progress(count, file.path)
        await self._written(waiting, 1)
        gone = sorted(path for path in set(known) - seen if self._is_gone(path))
        if gone:
            await self._store.code.drop_files(self._workspace, self._project.id, gone)
        await Stamper(self._store, self._workspace, str(self._root)).stamp_project(self._project.id)
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

    def _is_kept(self, known: IndexedFile | None, file: IndexedFile) -> bool:
        """Tell whether a file is in the index as it is, and with its meaning, unless there is nobody to tell that."""
        if known is None or known.content_hash != file.content_hash:
            return False
        return self._embedder is None or known.embedder == self._embedder.name

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
        from recollect.code.walking import lines_in, source_text  # noqa: PLC0415  only those who index need it

        text = source_text(self._root, file)
        if text is None:  # gone since it was listed, or not to be read
            self._unreadable += 1
            return None
        kept = "names" if self._policy.withholds else "all"  # what is kept of it changes with the policy
        return text, IndexedFile(path=file.path, content_hash=f"{content_hash(text)}:{kept}", line_count=lines_in(text))

    def _scopes(self, file: SourceFile, text: str) -> tuple[Scope, ...]:
        return tuple(scopes_of(self._project.id, file.path, file.language, text, self._policy, self._clean))

    async def _written(self, waiting: list[ReadFile], at_least: int) -> list[ReadFile]:
        """Write what waits, when it is enough, and return what still waits."""
        if len(waiting) < at_least:
            return waiting
        await self._store.code.put_files(self._workspace, self._project.id, await self._meant(waiting))
        self._changed += len(waiting)
        if self._is_linked:
            await self._link([scope for one in waiting for scope in one.scopes])
        return []

    async def _meant(self, files: list[ReadFile]) -> list[ReadFile]:
        """Return files with what their symbols mean."""
        if self._embedder is None:
            return files
        from recollect.store.nearness import packed  # noqa: PLC0415  only those who index by meaning need NumPy

        vectors = await self._embedder.embed([scope_text(scope) for one in files for scope in one.scopes])
        meant: list[ReadFile] = []
        first = 0
        for one in files:
            own = vectors[first : first + len(one.scopes)]
            first += len(own)
            signs = packed([scope.id for scope in one.scopes], own)
            meant.append(ReadFile(msgspec.structs.replace(one.file, embedder=self._embedder.name), one.scopes, signs))
        return meant


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
