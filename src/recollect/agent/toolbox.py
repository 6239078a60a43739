"""Which tools an agent has in one conversation: its own, and those that ship, as far as they are permitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai import Tool
from pydantic_ai.toolsets import AbstractToolset

from recollect.agent.tools import READING, code_tools, memory_tools
from recollect.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from recollect.agent.settings import AgentConfig
    from recollect.memory import Memory
    from recollect.model import ConversationInfo


class Toolbox(NamedTuple):
    """Tools and toolsets of pydantic-ai, and the names of those that change nothing."""

    tools: list[Tool[Any]]
    toolsets: list[AbstractToolset[Any]]
    reading: frozenset[str]


def toolbox(
    memory: Memory,
    folder: Path | None,
    info: ConversationInfo,
    given: Sequence[Any],
    config: AgentConfig,
) -> Toolbox:
    """Return the tools of a conversation; a given function or tool takes the place of one that ships under the same name."""
    own = [_tool(one) for one in given if not isinstance(one, AbstractToolset)]
    taken = {tool.name for tool in own}
    if len(taken) < len(own):
        names = [tool.name for tool in own]
        msg = f"two of the given tools are called {next(name for name in names if names.count(name) > 1)!r}: rename one"
        raise InputError(msg)
    shipped = memory_tools(memory, info.project_id, info.id)
    if folder is not None and config.code_tools:
        shipped += code_tools(folder, may_write=config.may_write, may_run=config.may_run)
    # what may change a file runs alone: two edits of one file at once would lose one
    kept = [Tool(one, sequential=one.__name__ not in READING) for one in shipped if one.__name__ not in taken]
    return Toolbox([*own, *kept], [one for one in given if isinstance(one, AbstractToolset)], READING - taken)


def _tool(given: Any) -> Tool[Any]:
    if isinstance(given, Tool):
        return given
    if not callable(given):
        msg = f"a tool is a function, or a tool or toolset of pydantic-ai, not {type(given).__name__}"
        raise InputError(msg)
    return Tool(given)
