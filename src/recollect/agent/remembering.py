"""The memory of an agent of pydantic-ai: a run is a turn, kept from its first word on, that begins with what matters from before.

It is a capability, so that any agent of pydantic-ai remembers with `Agent(…, capabilities=[Remembering(conversation)])`.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, UserPromptPart

from recollect.agent.settings import AgentConfig
from recollect.agent.translating import answer_message, context_message, outcome_message, prompt_text, related_to, result_messages
from recollect.compose.rendering import HOW_TO_READ
from recollect.conversation import Conversation
from recollect.errors import InputError
from recollect.models.plain import plain_text
from recollect.waiting import surely

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic_ai import RunContext
    from pydantic_ai.capabilities.abstract import WrapRunHandler, WrapToolExecuteHandler
    from pydantic_ai.messages import ModelResponse, ToolCallPart
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.run import AgentRunResult
    from pydantic_ai.tools import ToolDefinition

    from recollect.compose.context import Context
    from recollect.model import Turn, TurnStatus

_DEFAULTS = AgentConfig()
_TOLD_CHARS_MAX = 200_000
_STOPPED = "stopped with the answer, before it ended: what it did until then is done"


class Streamed(NamedTuple):
    """What has come of a run's answers so far: their words, and what was thought."""

    text: str = ""
    reasoning: str = ""


class Watch(NamedTuple):
    """Who is told of a run: that it begins, and its context once that is composed.

    `streamed` says all that has come so far, so that what breaks off is kept, too.
    """

    on_run: Callable[[Kept], None] = lambda _: None
    on_context: Callable[[Context], None] = lambda _: None
    streamed: Callable[[], Streamed] = Streamed


_UNWATCHED = Watch()


@dataclass
class Remembering(AbstractCapability[Any]):
    """Gives each run the context of a conversation, and records the run as a turn of it, whatever becomes of it.

    The context stands before the user's message and is in no history; a run without a prompt is not recorded.
    """

    conversation: Conversation
    config: AgentConfig = _DEFAULTS
    watch: Watch = _UNWATCHED
    _run: Kept | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Refuse at once what is no conversation, before a run finds out."""
        given: tuple[tuple[object, type, str], ...] = (
            (self.conversation, Conversation, "memory.create_conversation(…)"),
            (self.config, AgentConfig, "AgentConfig()"),
        )
        for value, kind, example in given:
            if not isinstance(value, kind):  # pyright: ignore[reportUnnecessaryIsInstance]  types are not checked when a program runs
                msg = f"Remembering takes a {kind.__name__}, not {type(value).__name__}: give {example}"
                raise InputError(msg)

    async def for_run(self, ctx: RunContext[Any]) -> Remembering:
        """Give each run a turn of its own."""
        if not prompt_text(ctx.prompt).strip():
            return replace(self, _run=None)
        run = Kept(self.conversation, self.config, self.watch, ctx.prompt)
        self.watch.on_run(run)
        return replace(self, _run=run)

    def get_instructions(self) -> str:
        """Say how memory is to be read; what it says never stands here."""
        return HOW_TO_READ

    async def wrap_run(self, ctx: RunContext[Any], *, handler: WrapRunHandler) -> AgentRunResult[Any]:
        """Begin the turn before anything is asked, and close it as what it was."""
        run = self._run
        if run is None:
            return await handler()
        try:
            await run.begin()
            result = await handler()
            await run.finish(result)
        except BaseException:
            await run.fail()
            raise
        return result

    async def before_model_request(self, ctx: RunContext[Any], request_context: ModelRequestContext) -> ModelRequestContext:
        """Keep what tools brought back, and put the context before the user's message."""
        if self._run is None:
            return request_context
        last = request_context.messages[-1]
        if isinstance(last, ModelRequest):
            await self._run.returned(last)
        return replace(request_context, messages=self._run.with_context(request_context.messages))

    async def after_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, response: ModelResponse
    ) -> ModelResponse:
        """Keep what the model said before any tool runs."""
        if self._run is not None:
            await self._run.answered(response)
        return response

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], handler: WrapToolExecuteHandler
    ) -> Any:
        """Time a tool, and hold on to what came of it until the model is told."""
        if self._run is None:
            return await handler(args)
        self._run.runs(call)
        outcome: tuple[Any, bool] = _STOPPED, True
        try:
            result = await handler(args)
            outcome = result, False
        except Exception as error:
            outcome = error, True
            raise
        finally:
            self._run.ran(call, *outcome)
        return result


class Kept:
    """One run as a turn: what was shown, and what is to be written."""

    def __init__(self, conversation: Conversation, config: AgentConfig, watch: Watch, prompt: Any) -> None:
        self.turn: Turn | None = None
        self._conversation = conversation
        self._config = config
        self._watch = watch
        self._prompt = prompt
        self._text = prompt_text(prompt)
        self._is_closed = False
        self._rendered = ""
        self._running: dict[str, tuple[ToolCallPart, float]] = {}
        self._durations_ms: dict[str, float] = {}
        self._outcomes: dict[str, dict[str, Any]] = {}
        self._waiting: list[dict[str, Any]] = []
        self._related: list[str] = []
        self._answer_chars = 0
        self._kept = Streamed()

    async def begin(self) -> None:
        """Record the user's message, and compose what goes before it."""
        turn = await surely(self._begun())
        context = await self._composed(turn)
        self._rendered = context.render()
        self._related = related_to(context)
        given = context_message(context)
        self._waiting = [] if given is None else [given]
        self._watch.on_context(context)

    async def _begun(self) -> Turn:
        self.turn = await self._conversation.begin(user=self._text)
        return self.turn

    async def _composed(self, turn: Turn) -> Context:
        config = self._config
        return await self._conversation.build_context(
            config.strategy, query=self._text, budget_chars=config.budget_chars, budget_tokens=config.budget_tokens,
            other_conversations=config.other_conversations, before_turn=turn.index,
        )  # fmt: skip

    def with_context(self, messages: list[Any]) -> list[Any]:
        """Return messages with the context right before the prompt of this run, after what else its request says."""
        if not self._rendered:
            return messages
        for n in range(len(messages) - 1, -1, -1):
            request = messages[n]
            parts = list(request.parts) if isinstance(request, ModelRequest) else []
            at = next((i for i, part in enumerate(parts) if isinstance(part, UserPromptPart) and part.content == self._prompt), None)
            if at is not None:
                shown = replace(request, parts=[*parts[:at], UserPromptPart(self._rendered), *parts[at:]])
                return [*messages[:n], shown, *messages[n + 1 :]]
        return messages  # somebody took the prompt out: what it was to be answered with goes, too

    def runs(self, call: ToolCallPart) -> None:
        """Note that a tool begins: the run may end before it does."""
        self._running[call.tool_call_id] = call, time.perf_counter()

    def ran(self, call: ToolCallPart, result: Any, is_failed: bool) -> None:  # noqa: FBT001  as it comes
        """Hold on to what came of a tool."""
        if (found := self._running.pop(call.tool_call_id, None)) is None:
            return  # it was told as stopped when the run ended
        _, began = found
        took_ms = round(1_000 * (time.perf_counter() - began), 3)
        self._durations_ms[call.tool_call_id] = took_ms
        self._outcomes[call.tool_call_id] = outcome_message(call, took_ms, result, is_failed)

    async def returned(self, request: ModelRequest) -> None:
        """Keep what tools brought back, as the model is told it."""
        results = result_messages(request, self._durations_ms)
        for result in results:
            self._outcomes.pop(result["tool_call_id"], None)
        self._waiting += results
        if results:
            await self._write()

    async def answered(self, response: ModelResponse) -> None:
        """Keep what the model said."""
        message = answer_message(response)
        self._answer_chars, self._kept = len(message["content"]), self._watch.streamed()
        self._waiting.append(message)
        await self._write()

    async def _write(self) -> None:
        await surely(self._written())

    async def _written(self) -> None:
        if self.turn is None or self._is_closed:
            return
        written = len(self._waiting)
        self.turn = await self._conversation.add(self.turn, self._waiting[:written], related=self._related)
        del self._waiting[:written]
        self._related = []

    async def finish(self, result: AgentRunResult[Any]) -> None:
        """Close the turn as complete; an answer that is no text is kept as JSON."""
        messages = result.all_messages()
        if messages and isinstance(messages[-1], ModelRequest):
            await self.returned(messages[-1])
        if not self._answer_chars:
            told = plain_text(result.output)
            self._waiting += [{"role": "assistant", "content": told[:_TOLD_CHARS_MAX]}] if told else []
        await surely(self._closed("complete"))

    async def fail(self) -> None:
        """Close the turn as failed, with what there is of it, unless it is closed already."""
        await surely(self._failed())

    async def _failed(self) -> None:
        if self.turn is not None and not self._is_closed:
            come = self._watch.streamed()
            said, thought = come.text[len(self._kept.text) :], come.reasoning[len(self._kept.reasoning) :]
            for call, _ in list(self._running.values()):
                self.ran(call, _STOPPED, is_failed=True)
            self._waiting += self._outcomes.values()
            rest = {"role": "assistant", "content": said, "reasoning": thought or None}
            self._waiting += [rest] if said.strip() or thought.strip() else []
            await self._closed("failed")

    async def _closed(self, status: TurnStatus) -> None:
        if self.turn is not None and not self._is_closed:
            if self._related:
                await self._written()
            self.turn = await self._conversation.finish(self.turn, self._waiting, status=status)
            self._is_closed = True
