"""One graph in a store: the contract, what all stores share, and the one place where the backends are named."""

from __future__ import annotations

from recollect.errors import InputError
from recollect.store.store import Store

__all__ = ["Store", "open_store"]


async def open_store(url: str, *, durability: str = "process", threads: bool = True) -> Store:
    """Open the store a URL names: `sqlite:///absolute/path.db`, `sqlite:relative.db`, or a plain path.

    `threads=False` runs everything in the caller's thread, for doors that have no event loop.
    """
    scheme, separator, rest = url.partition(":")
    if not separator or len(scheme) == 1:  # a plain path, perhaps with a drive letter
        scheme, rest = "sqlite", url
    if scheme == "sqlite":
        from recollect.store.sqlite import open_sqlite  # noqa: PLC0415  a backend is imported when it is named

        return Store(await open_sqlite(rest.removeprefix("//"), durability=durability, threads=threads))
    msg = f"no store speaks {scheme!r} (in {url!r}): use sqlite:///path/to/memory.db"
    raise InputError(msg)
