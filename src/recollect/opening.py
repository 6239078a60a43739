"""How a memory is opened: the settings it gets, whether it needs an event loop, and how it waits for what blocks."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from recollect.checks import checked_name, checked_text
from recollect.config import load_settings
from recollect.errors import InputError
from recollect.running import runner
from recollect.settings import Settings, model_uses
from recollect.store import waits_for_a_server

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

_T = TypeVar("_T")


def needs_a_loop(settings: Settings) -> bool:
    """Tell whether something outside is waited for, a server, an endpoint or a model, so that coroutines need an event loop."""
    named = (settings.models.embeddings.name, *(use.name for _, use in model_uses(settings)))
    return waits_for_a_server(settings.store) or any(one is not None for one in named)


async def off_the_loop(work: Callable[[], None]) -> None:
    """Wait for something that blocks, without blocking an event loop, if there is one."""
    import asyncio  # noqa: PLC0415  who has a background has it loaded

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        work()
    else:
        await asyncio.to_thread(work)


async def on_a_loop(work: Coroutine[Any, Any, _T]) -> _T:
    """Wait for what needs an event loop; where the caller has none, it gets one of its own until it is done."""
    import asyncio  # noqa: PLC0415  as above

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        by = runner(waits=True)
        try:
            return by.run(work)
        finally:
            by.close()
    return await work


def settings_of(store: str | os.PathLike[str] | None, workspace: str | None, settings: Settings | None) -> Settings:
    """Return the settings a memory is opened with: what is not given comes from the user's configuration."""
    chosen = settings or load_settings()
    if store is not None:
        chosen = msgspec.structs.replace(chosen, store=_checked_store(os.fspath(store)))
    if workspace is not None:
        chosen = msgspec.structs.replace(chosen, workspace=checked_name("workspace", workspace))
    return chosen if chosen.store else msgspec.structs.replace(chosen, store=load_settings().store)


def _checked_store(store: object) -> str:
    """Return where a store is; an empty text is not to stand for the user's own."""
    given = checked_text("store", store)
    if not given.strip():
        msg = f"store is a file or the address of a server, not {given[:60]!r}: name one, or leave it out"
        raise InputError(msg)
    return given
