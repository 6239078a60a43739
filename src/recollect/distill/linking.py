"""Which messages speak of which symbols of the code; worked out in the background, and anew when code is indexed."""

from __future__ import annotations

from collections import defaultdict
from pathlib import PurePath
from typing import TYPE_CHECKING

from recollect.model import Reference

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.model import Scope, Turn
    from recollect.store import Store


class Linker:
    """Writes the edges from messages to scopes; a project without an index costs one question."""

    def __init__(self, store: Store, workspace: str, root: str | None = None) -> None:
        """Paths are read against `root`, or against the folder that an index was made of."""
        self._store = store
        self._workspace = workspace
        self._root = root

    async def link(self, project_id: str, turns: Sequence[Turn]) -> int:
        """Write which messages of some turns speak of code; returns how many edges there are."""
        if not turns or not await self._store.code.count(self._workspace, project_id):
            return 0
        from recollect.code.mentions import mentions_of, referenced  # noqa: PLC0415  only where code was indexed

        root = self._root or await self._store.code.root(self._workspace, project_id)
        said = {message_id: mentions_of(text, root) for turn in turns for message_id, text in _texts(turn)}
        names = {message_id: one.names for message_id, one in said.items()}
        paths = sorted({path for one in said.values() for path, _ in one.places})
        having = await self._having(project_id, sorted(frozenset().union(*names.values())))
        in_files = await self._store.code.in_files(self._workspace, project_id, paths)
        home = "" if root is None else PurePath(root).name
        references: list[Reference] = []
        for message_id, one in said.items():
            named = {scope.id: scope for name in names[message_id] for scope in having[name]}
            found = referenced(one, named.values(), in_files, home)
            references += [Reference(message_id=message_id, scope_id=scope_id) for scope_id in found]
        if references:
            await self._store.code.put_references(self._workspace, references)
        return len(references)

    async def _having(self, project_id: str, names: list[str]) -> defaultdict[str, list[Scope]]:
        """Return the scopes of some names, by name and by qualified name."""
        found: defaultdict[str, list[Scope]] = defaultdict(list)
        for scope in await self._store.code.named(self._workspace, project_id, names):
            for name in {scope.name, scope.qualified}:
                found[name].append(scope)
        return found


def _texts(turn: Turn) -> Iterator[tuple[str, str]]:
    """Return what each message says, with what the tools it called were given."""
    given: defaultdict[str, list[str]] = defaultdict(list)
    for call in turn.tool_calls:
        texts = [value for value in (call.arguments or {}).values() if isinstance(value, str)]
        given[call.message_id or ""] += texts
    for message in turn.messages:
        if message.role in {"user", "assistant"}:
            yield message.id, "\n".join(filter(None, (message.text, *given.get(message.id, ()))))
