"""What an index of code is made of, and the queries a store answers about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from recollect.model import Scope

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Reference


class IndexedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file as it was when its symbols were read, and which embedder made the vectors of those, if one did."""

    path: str
    content_hash: str
    line_count: int
    embedder: str | None = None


class ReadFile(msgspec.Struct, frozen=True):
    """A file with all its scopes, and the signs of their vectors, packed (`nearness`)."""

    file: IndexedFile
    scopes: tuple[Scope, ...]
    signs: bytes = b""


class WordedScope(msgspec.Struct, frozen=True):
    """A scope with the terms it is found by, and the checksum of the scope."""

    scope: Scope
    terms: str
    checksum: int


class Stretch(NamedTuple):
    """Some turns of a conversation, and the id of what tells of them."""

    id: str
    conversation_id: str
    first_turn: int
    last_turn: int


class Whereabouts(NamedTuple):
    """Where the files of a conversation may be: the folder it is held in, that of its project, and that of the project's index."""

    cwd: str | None
    root: str | None
    code_root: str | None


class Unstamped(NamedTuple):
    """A file that a turn accessed, whose hash of then is not known yet."""

    conversation_id: str
    turn_id: str
    path: str
    ended_at: datetime | None
    where: Whereabouts


class Stamp(NamedTuple):
    """The hash that a file had when a turn that accessed it ended; empty when nobody can tell."""

    conversation_id: str
    turn_id: str
    path: str
    file_hash: str


class Cited(NamedTuple):
    """A file that some turns accessed, with its hash of then, the last that is told, and the one it has in the index."""

    owner_id: str
    path: str
    file_hash: str
    indexed_hash: str | None
    where: Whereabouts


class CodeRows(Protocol):
    """Code files and the scopes in them, by query."""

    async def root(self, project_id: str) -> str | None:
        """Return the folder that a project's index was made of, or None."""
        ...

    async def set_root(self, project_id: str, root: str) -> None:
        """Write the folder that a project's index is made of."""
        ...

    async def files(self, project_id: str) -> list[IndexedFile]:
        """Return the files of a project's index, by path."""
        ...

    async def put_files(self, project_id: str, files: list[ReadFile]) -> None:
        """Write files, each in the place of the one with its path; their scopes are written by `put_scopes`."""
        ...

    async def drop_files(self, project_id: str, paths: list[str]) -> None:
        """Take files out of an index; their scopes are dropped by `drop_scopes`."""
        ...

    async def clear(self, project_id: str) -> None:
        """Take everything out of a project's index, and where it was made of."""
        ...

    async def put_scopes(self, project_id: str, scopes: list[WordedScope]) -> None:
        """Write scopes, each in the place of one with its id."""
        ...

    async def drop_scopes(self, project_id: str, paths: list[str], kept_ids: list[str]) -> None:
        """Delete the scopes of some files, but for those of some ids."""
        ...

    async def scopes(self, project_id: str, name: str | None) -> list[Scope]:
        """Return scopes by path, line and id: all, or those of one name, qualified or not."""
        ...

    async def count(self, project_id: str) -> int:
        """Count the scopes of a project."""
        ...

    async def named(self, project_id: str, names: list[str]) -> list[Scope]:
        """Return the scopes of some names, qualified or not, by path, line and id."""
        ...

    async def in_files(self, project_id: str, paths: list[str]) -> list[Scope]:
        """Return the scopes of some files, named by their paths or by the ends of those, by path, line and id."""
        ...

    async def having(self, project_ids: list[str] | None, terms: list[str], limit: int) -> list[WordedScope]:
        """Return scopes that have one of some terms, those with the most of what is rare first."""
        ...

    async def signs(self, project_ids: list[str] | None, embedder: str) -> list[bytes]:
        """Return the packed signs of the files of some projects, or of all, as far as an embedder made them."""
        ...

    async def by_id(self, scope_ids: list[str]) -> list[WordedScope]:
        """Return scopes by path, line and id; unknown ones are left out."""
        ...

    async def unstamped(self, conversation_id: str, newest: int, limit: int) -> list[Unstamped]:
        """Return files that the newest turns of a conversation accessed and that are not stamped; none temporary or generated."""
        ...

    async def unstamped_of(self, project_id: str, limit: int) -> list[Unstamped]:
        """Return files that turns of a project accessed and that are not stamped; none temporary or generated."""
        ...

    async def stamp(self, stamps: list[Stamp]) -> None:
        """Write the hash of a file at each access of a turn to it that has none."""
        ...

    async def cited(self, owners: list[Stretch]) -> list[Cited]:
        """Return the files that turns accessed, each as the last of the turns that accessed it saw it, if that is known."""
        ...

    async def put_references(self, references: list[Reference]) -> None:
        """Write that messages speak of scopes; what is known already, or names something that is not there, is left."""
        ...

    async def references(self, scope_ids: list[str]) -> list[Reference]:
        """Return who speaks of scopes, by scope, conversation and message."""
        ...
