"""The address of a Neo4j server, and who asks: read from a URL and the user's settings; pure."""

from __future__ import annotations

from urllib.parse import SplitResult, unquote, urlsplit

import msgspec

from recollect.checks import masked
from recollect.errors import InputError

SCHEMES = ("neo4j", "neo4j+s", "neo4j+ssc", "bolt", "bolt+s", "bolt+ssc")


class Address(msgspec.Struct, frozen=True, kw_only=True):
    """Where a server is, without any password; no database means the server's own choice."""

    server: str
    database: str | None = None
    user: str | None = None

    @property
    def url(self) -> str:
        """The address as it may be shown."""
        return self.server if self.database is None else f"{self.server}/{self.database}"


def address_of(url: str) -> Address:
    """Read `scheme://[user@]host[:port][/database]`; a password does not belong there, and is not repeated."""
    parts = _split(url)
    if parts.scheme not in SCHEMES:
        msg = f"no Neo4j server speaks {parts.scheme!r} (in {masked(url)!r}): use {', '.join(SCHEMES)}"
        raise InputError(msg)
    if parts.password is not None or "@" in parts.path + parts.query + parts.fragment:
        msg = "a password in the store's address would be seen by others: set RECOLLECT_NEO4J_PASSWORD, or neo4j.password in the settings"
        raise InputError(msg)
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        msg = f"{masked(url)!r} is no address of a Neo4j server ({error}): use neo4j://host:7687"
        raise InputError(msg) from error
    database = unquote(parts.path.strip("/"))
    if not host or parts.query or parts.fragment or "/" in database:
        msg = f"{masked(url)!r} is no address of a Neo4j server: use neo4j://host:7687, or neo4j://host:7687/database"
        raise InputError(msg)
    shown = f"[{host}]" if ":" in host else host
    server = f"{parts.scheme}://{shown}" + ("" if port is None else f":{port}")
    return Address(server=server, database=database or None, user=None if parts.username is None else unquote(parts.username))


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        msg = f"{masked(url)!r} is no address of a Neo4j server ({error}): use neo4j://host:7687"
        raise InputError(msg) from error
