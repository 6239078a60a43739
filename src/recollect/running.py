"""Coroutines run to their end without an event loop, for doors that have none; a leaf of the import graph.

A store that is opened with `threads=False` never waits for anything but its own work, so its coroutines finish in one
step. That saves a command line or a script the import of asyncio, which is most of its start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Coroutine

_T = TypeVar("_T")


def run_now(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine that never waits, and return its result."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: _T = stop.value
        return result
    coroutine.close()
    msg = "this coroutine waits for something outside: it needs an event loop"
    raise RuntimeError(msg)
