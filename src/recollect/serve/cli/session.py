"""What every command does first: open the memory that the options name, find the conversation that is meant."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from recollect.errors import InputError, NotFoundError
from recollect.memory import Memory
from recollect.opening import needs_a_loop, settings_of
from recollect.running import runner

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Awaitable, Callable

    from recollect.conversation import Conversation
    from recollect.settings import Settings

_T = TypeVar("_T")

_PREFIX_CHARS_MIN = 4
_LISTED_MAX = 1_000_000


def with_memory(options: Namespace, work: Callable[[Memory, Namespace], Awaitable[_T]]) -> _T:
    """Open the memory that the options name, for the length of some work on it."""
    settings = settings_of(getattr(options, "store", None), getattr(options, "workspace", None), None)
    by = runner(waits=needs_a_loop(settings))
    try:
        return by.run(_opened(settings, options, work))
    finally:
        by.close()


async def _opened(settings: Settings, options: Namespace, work: Callable[[Memory, Namespace], Awaitable[_T]]) -> _T:
    memory = await Memory.open(settings=settings, worker=False, threads=False)
    try:
        result = await work(memory, options)
        await memory.save()
    finally:
        await memory.close()
    return result


def command(work: Callable[[Memory, Namespace], Awaitable[int]]) -> Callable[[Namespace], int]:
    """Make a command of a function that works on an open memory."""
    return lambda options: with_memory(options, work)


async def conversation_of(memory: Memory, given: str) -> Conversation:
    """Return the conversation of an id, or of the beginning of one."""
    try:
        return await memory.load_conversation(given)
    except NotFoundError:
        if len(given) < _PREFIX_CHARS_MIN:
            msg = f"there is no conversation {given!r}: give its whole id, or at least {_PREFIX_CHARS_MIN} characters of it"
            raise NotFoundError(msg) from None
        found = [info for info in await memory.list_conversations(limit=_LISTED_MAX) if info.id.startswith(given)]
        if len(found) > 1:
            msg = f"{len(found)} conversations begin with {given!r}: give more of the id"
            raise InputError(msg) from None
        if not found:
            raise
        return await memory.load_conversation(found[0].id)


def wants_json(options: Namespace) -> bool:
    """Whether the answer is for a program."""
    return bool(getattr(options, "json", False))


def read_file(name: str) -> bytes:
    """Return the bytes of a file, or of standard input for `-`."""
    if name == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(name).read_bytes()
    except OSError as error:
        msg = f"cannot read {name}: {error.strerror or error}"
        raise InputError(msg) from error
