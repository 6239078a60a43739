"""One graph in a store: the contract, what all stores share, and the one place where the backends are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.checks import masked
from recollect.clock import SystemClock
from recollect.errors import InputError, StoreUnavailableError
from recollect.settings import Settings
from recollect.store.retention import Fresh
from recollect.store.store import Store

if TYPE_CHECKING:
    from recollect.clock import Clock
    from recollect.store.protocol import Engine

__all__ = ["Store", "open_store", "waits_for_a_server"]

_SERVERS = ("neo4j", "bolt")


async def open_store(url: str, settings: Settings | None = None, *, clock: Clock | None = None, threads: bool = True) -> Store:
    """Open the store a URL names: `sqlite:///absolute/path.db`, a plain path, `neo4j://host:7687/database`, `bolt://…`.

    `threads=False` lets a file be read and written in the caller's thread, for doors that have no event loop; the clock
    says what has expired.
    """
    return Store(Fresh(await _engine(url, settings or Settings(), threads=threads), clock or SystemClock()))


def waits_for_a_server(url: str) -> bool:
    """Tell whether a store is reached over a network, so that its coroutines need an event loop."""
    return _scheme(url)[0].partition("+")[0] in _SERVERS


def _scheme(url: str) -> tuple[str, str]:
    scheme, separator, rest = url.partition(":")
    is_path = not separator or len(scheme) == 1  # a plain path, perhaps with a drive letter
    return ("sqlite", url) if is_path else (scheme.lower(), rest)


async def _engine(url: str, settings: Settings, *, threads: bool) -> Engine:
    scheme, rest = _scheme(url)
    if scheme == "sqlite":
        from recollect.store.sqlite import open_sqlite  # noqa: PLC0415  a backend is imported when it is named

        return await open_sqlite(rest.removeprefix("//"), durability=settings.durability, threads=threads)
    if waits_for_a_server(url):
        try:
            from recollect.store.neo4j import open_neo4j  # noqa: PLC0415  as above
        except ModuleNotFoundError as error:
            msg = "a Neo4j store needs the official driver: pip install 'recollect[neo4j]'"
            raise StoreUnavailableError(msg) from error
        return await open_neo4j(url, settings.neo4j)
    msg = f"no store speaks {scheme!r} (in {masked(url)!r}): use sqlite:///path/to/memory.db or neo4j://host:7687"
    raise InputError(msg)
