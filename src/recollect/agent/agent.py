"""An agent that remembers: its conversations, its model with a purse, its tools; the outer door of `agent`."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from recollect.agent.settings import AgentConfig, checked_config, settings_with
from recollect.capture.paths import place_of
from recollect.errors import ConfigError, InputError
from recollect.halves.indexing import checkout

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pydantic_ai import Agent
    from pydantic_ai.models import Model

    from recollect.agent.conversing import AgentConversation
    from recollect.answers import SimilarConversation
    from recollect.memory import Memory
    from recollect.model import ConversationInfo, ConversationStatus

_AGENT = "recollect"
_USE = "agent"
SYSTEM_PROMPT = """You are a coding agent that remembers. Answer the user's last message. Use the tools to look at the project and at what \
was said and done before, instead of guessing; say so when you do not know."""


class ConversationAgent:
    """Holds conversations with a model, in one memory."""

    def __init__(
        self,
        memory: Memory,
        model: Model | str | None = None,
        tools: Sequence[Any] = (),
        config: AgentConfig | None = None,
    ) -> None:
        """`model` is one of pydantic-ai's or its name there, by default the one that the settings name for `models.agent`.

        `tools` are functions, or tools and toolsets of pydantic-ai; they come beside those that ship. A function or tool takes
        the place of a shipped one of its name; the tools of a toolset have other names (`toolset.prefixed("own")`).

        What the configuration says of summaries and vectors holds for the memory from now on. Raises `InputError` for what
        is no model, `ConfigError` where there is none of that name, none is configured, or a package is missing.
        """
        self.memory = memory
        self.config = checked_config(config or AgentConfig())
        self._model = model
        self._tools = tools
        if isinstance(tools, str | bytes) or not isinstance(cast("object", tools), Sequence):
            msg = f"tools is a list of functions, not {type(tools).__name__}"
            raise InputError(msg)
        if model is None and memory.settings.models.agent.name is None:
            msg = (
                "no model is configured for the agent: set models.agent.name, and its endpoint or key_variable, in your configuration "
                "(`recollect config path` prints where that is), or give the agent a model"
            )
            raise ConfigError(msg)
        load_packages()
        _refuse_unknown(model)
        if memory.settings != (own := settings_with(memory.settings, self.config)):
            memory.adopt(own)

    async def create_conversation(
        self,
        cwd: str | os.PathLike[str] | None = None,
        *,
        project: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
    ) -> AgentConversation:
        """Begin a conversation in the project of a directory, whose files its tools may read, or in one that is named."""
        made = await self.memory.create_conversation(cwd, project=project, title=title, tags=tags, agent=_AGENT)
        return self._answering(made.info, cwd)

    async def load_conversation(self, conversation_id: str, *, cwd: str | os.PathLike[str] | None = None) -> AgentConversation:
        """Go on with a conversation, whoever had it; `NotFoundError` when the workspace has none of that id.

        Its tools see the files of `cwd`'s project, and none without it: where a recorded conversation says that it was held
        may have been told by anybody.
        """
        return self._answering(await self.memory.get_info(conversation_id), cwd)

    async def list_conversations(
        self,
        *,
        status: ConversationStatus | None = None,
        tags: Sequence[str] = (),
        cwd: str | os.PathLike[str] | None = None,
        project: str | None = None,
        limit: int = 50,
    ) -> list[ConversationInfo]:
        """Return conversations, the latest change first."""
        return await self.memory.list_conversations(status=status, tags=tags, cwd=cwd, project=project, limit=limit)

    async def find_similar_conversations(
        self, query: str, limit: int = 5, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None
    ) -> list[SimilarConversation]:
        """Return the conversations that come closest to a text, best first."""
        return await self.memory.find_similar_conversations(query, limit, project=project, cwd=cwd)

    async def import_conversation(
        self, document: Any, *, replace: bool = False, new_id: bool = False, cwd: str | os.PathLike[str] | None = None
    ) -> AgentConversation:
        """Read an exported conversation back, to go on with it; `cwd` as for `load_conversation`."""
        return self._answering((await self.memory.import_conversation(document, replace=replace, new_id=new_id)).info, cwd)

    @property
    def model_name(self) -> str:
        """What the model is called that it talks with."""
        name = self.memory.settings.models.agent.name if self._model is None else getattr(self._model, "model_name", self._model)
        return str(name)

    def explained(self, error: Exception) -> str:
        """Return a sentence for what its model's client raised."""
        from recollect.models.explaining import explained, place_of_model  # noqa: PLC0415  as below

        return explained(self.model_name, place_of_model(_USE, self.memory.settings.models.agent, self._model), error)

    def _answering(self, info: ConversationInfo, cwd: str | os.PathLike[str] | None) -> AgentConversation:
        from recollect.agent.conversing import AgentConversation  # noqa: PLC0415  pydantic-ai is loaded by those who have a model

        return AgentConversation(self.memory, info, self, None if cwd is None else _folder(cwd))

    @asynccontextmanager
    async def opened(self, info: ConversationInfo, folder: Path | None) -> AsyncGenerator[Agent[Any, str]]:
        """Give the agent of pydantic-ai for a conversation, with connections of its own that end with it."""
        from pydantic_ai import Agent  # noqa: PLC0415  as above

        from recollect.agent.guarding import Guarded  # noqa: PLC0415  as above
        from recollect.agent.toolbox import toolbox  # noqa: PLC0415  as above

        tools = toolbox(self.memory, folder, info, self._tools, self.config)
        async with self._metered() as model:
            agent = Agent(
                model,
                instructions=SYSTEM_PROMPT if self.config.system_prompt is None else self.config.system_prompt,
                tools=tools.tools,
                toolsets=tools.toolsets,
                retries={"tools": self.config.tool_rounds_max + 1, "output": 1},
                model_settings={"max_tokens": self.memory.settings.models.agent.output_tokens_max},
                capabilities=[Guarded(self.config, tools.reading)],
            )
            yield agent

    @asynccontextmanager
    async def _metered(self) -> AsyncGenerator[Model]:
        from pydantic_ai.models import infer_model  # noqa: PLC0415  as above
        from pydantic_ai.models.function import FunctionModel  # noqa: PLC0415  as above
        from pydantic_ai.models.test import TestModel  # noqa: PLC0415  as above

        from recollect.models.metered import Metered  # noqa: PLC0415  as above
        from recollect.models.providers import open_model  # noqa: PLC0415  as above
        from recollect.models.spending import Purse  # noqa: PLC0415  as above

        memory, use = self.memory, self.memory.settings.models.agent
        if self._model is None:
            purse = Purse(memory.store, memory.workspace, _USE, use, memory.clock, memory.ids)
            async with open_model(use, _USE) as model:
                yield Metered(model, purse)
            return
        given = infer_model(cast("Any", self._model))
        if isinstance(given, FunctionModel | TestModel):  # nobody is asked, so there is nothing to pay
            yield given
            return
        purse = Purse(memory.store, memory.workspace, _USE, use, memory.clock, memory.ids, model=given.model_name)
        yield Metered(given, purse)


def load_packages() -> None:
    """Load what every agent needs, whatever its model; `ConfigError` where it is not installed."""
    try:
        import_module("pydantic_ai")
    except ModuleNotFoundError as error:
        msg = "an agent needs one more package: pip install 'recollect[models]'"
        raise ConfigError(msg) from error


def _refuse_unknown(model: object) -> None:
    """Refuse what is no model, or a name that no provider has; whether the provider knows it is for the provider to say."""
    from pydantic_ai.models import Model, parse_model_id  # noqa: PLC0415  as above
    from pydantic_ai.providers import infer_provider_class  # noqa: PLC0415  as above

    if model is None or isinstance(model, Model) or model == "test":
        return
    if not isinstance(model, str):
        msg = f"model is a model of pydantic-ai or its name there, not {type(model).__name__}: leave it out for the configured one"
        raise InputError(msg)
    provider, _ = parse_model_id(model)
    try:
        if provider is not None:
            infer_provider_class(provider)
            return
    except ImportError as error:
        msg = f"the model {model[:100]!r} needs one more package: pip install 'pydantic-ai-slim[{provider}]'"
        raise ConfigError(msg) from error
    except ValueError:
        pass
    msg = (
        f"there is no model {model[:100]!r}: name one with its provider, such as openai:gpt-5-mini, or leave it out for the configured one "
        "(models.agent)"
    )
    raise ConfigError(msg)


def _folder(cwd: str | os.PathLike[str]) -> Path | None:
    """Return the folder whose files the tools of a conversation may read: the checkout that a directory belongs to."""
    place = place_of(os.fspath(cwd))
    if place.root is None or place.cwd is None:
        return None
    own = checkout(Path(place.cwd), Path(place.root))
    return own if own.is_dir() else None
