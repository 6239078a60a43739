"""How an agent works and remembers, and what one that sees and does is told of it: data only, below all else of `agent`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from recollect.compose.context import Context, Strategy
from recollect.errors import ConfigError
from recollect.model import Json, Node, ToolCall, Turn

if TYPE_CHECKING:
    from recollect.settings import Settings

_replace = msgspec.structs.replace
_Count = Annotated[int, Meta(ge=1)]
_Seconds = Annotated[float, Meta(gt=0, le=86_400)]


class AgentConfig(Node, frozen=True, kw_only=True):
    """How an agent talks, remembers and uses tools; None stands for what the user's settings say.

    `summarize_every` counts messages. Tools that write or run commands are there only when that is permitted.
    """

    system_prompt: str | None = None
    strategy: Strategy = "hybrid"
    budget_chars: Annotated[int, Meta(ge=0, le=10_000_000)] | None = None
    budget_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] | None = None
    max_context_messages: _Count | None = None
    other_conversations: bool = True
    enable_summarization: bool | None = None
    summarize_every: _Count | None = None
    embed_messages: bool | None = None
    tool_rounds_max: Annotated[int, Meta(ge=0, le=1_000)] = 5
    tool_seconds_max: _Seconds = 120.0
    model_seconds_max: _Seconds = 300.0
    code_tools: bool = True
    may_write: bool = False
    may_run: bool = False


class Reply(Node, frozen=True, kw_only=True):
    """What an agent answered, what it did for it, and what it was shown of its memory."""

    content: str
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning: str | None = None
    context_used: Context
    turn: Turn


class ContextComposed(Node, frozen=True, kw_only=True):
    """The memory that the model is about to be shown."""

    context: Context


class TextPiece(Node, frozen=True, kw_only=True):
    """A piece of the answer."""

    text: str


class ReasoningPiece(Node, frozen=True, kw_only=True):
    """A piece of what the model thinks."""

    text: str


class ToolBegun(Node, frozen=True, kw_only=True):
    """A tool that is called; its arguments as the model gave them."""

    id: str
    tool_name: str
    arguments: Json = None


class ToolEnded(Node, frozen=True, kw_only=True):
    """What a tool brought back."""

    id: str
    tool_name: str
    is_failed: bool
    result: str


Event = ContextComposed | TextPiece | ReasoningPiece | ToolBegun | ToolEnded | Reply


def checked_config(config: AgentConfig) -> AgentConfig:
    """Return a configuration whose values are possible; structs are not checked when they are made."""
    try:
        return msgspec.convert(msgspec.structs.asdict(config), AgentConfig)
    except msgspec.ValidationError as error:
        msg = f"in the agent's configuration: {error}"
        raise ConfigError(msg) from error


def settings_with(settings: Settings, config: AgentConfig) -> Settings:
    """Return the settings with what an agent's configuration says of its memory over them."""
    memory = settings.agent.memory
    summarization, embeddings = memory.summarization, memory.embeddings
    if config.enable_summarization is not None:
        summarization = _replace(summarization, enabled=config.enable_summarization)
    if config.summarize_every is not None:
        summarization = _replace(summarization, every_n_messages=config.summarize_every)
    if config.embed_messages is not None:
        embeddings = _replace(embeddings, enabled=config.embed_messages)
    most = memory.max_context_messages if config.max_context_messages is None else config.max_context_messages
    own = _replace(memory, summarization=summarization, embeddings=embeddings, max_context_messages=most)
    return _replace(settings, agent=_replace(settings.agent, memory=own))
