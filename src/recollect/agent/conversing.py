"""A conversation that answers: each message is recorded, answered by a model with tools and memory, and kept as what it became."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic_ai.exceptions import AgentRunError, FallbackExceptionGroup, UserError
from pydantic_ai.messages import (
    FunctionToolCallEvent,
    FunctionToolResultEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
)
from pydantic_ai.usage import UsageLimits

from recollect.agent.remembering import Remembering, Streamed, Watch
from recollect.agent.settings import ContextComposed, ReasoningPiece, Reply, TextPiece, ToolBegun, ToolEnded
from recollect.agent.translating import result_text
from recollect.checks import checked_text
from recollect.conversation import Conversation
from recollect.errors import InputError, ModelError
from recollect.models.plain import plain_text
from recollect.text import shorten
from recollect.waiting import surely

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterable, Callable
    from pathlib import Path

    from pydantic_ai import RunContext
    from pydantic_ai.messages import AgentStreamEvent

    from recollect.agent.agent import ConversationAgent
    from recollect.agent.remembering import Kept
    from recollect.agent.settings import Event
    from recollect.compose.context import Context
    from recollect.memory import Memory
    from recollect.model import ConversationInfo

_RESULT_CHARS_SHOWN = 2_000


class AgentConversation(Conversation):
    """A conversation with an agent; one message is answered at a time."""

    def __init__(self, memory: Memory, info: ConversationInfo, agent: ConversationAgent, folder: Path | None) -> None:
        super().__init__(memory, info)
        self._agent = agent
        self._folder = folder
        self._turn_taking = asyncio.Lock()

    async def send_message(self, text: str) -> Reply:
        """Record what a user says, answer it, and record that.

        When the model cannot answer, is stopped or may not spend more, the turn is kept as failed, with what there is of
        it, and the error is raised: `ModelError` (`SpendingError` at the cap), or whatever stopped it.
        """
        return await self._answered(text, None)

    async def stream_message(self, text: str) -> AsyncGenerator[Event]:
        """Do the same and tell of it as it happens; the last event is the `Reply`. Who stops listening stops the answer."""
        events: asyncio.Queue[Event | None] = asyncio.Queue()

        async def answered() -> Reply:
            try:
                return await self._answered(text, events.put_nowait)
            finally:
                events.put_nowait(None)

        answering = asyncio.create_task(answered())
        self._memory.hold(answering)
        try:
            while (event := await events.get()) is not None:
                yield event
            yield await answering
        finally:
            if not answering.done():
                answering.cancel()
                await asyncio.wait([answering])

    async def branch(self, *, from_turn: int | None = None, from_message: int | None = None, title: str | None = None) -> AgentConversation:
        """Fork after a turn or a message; the branch answers, too."""
        forked = await super().branch(from_turn=from_turn, from_message=from_message, title=title)
        return AgentConversation(self._memory, forked.info, self._agent, self._folder)

    async def _answered(self, text: str, tell: Callable[[Event], None] | None) -> Reply:
        if not checked_text("text", text).strip():
            msg = "a message to an agent says something: give a text that is not blank"
            raise InputError(msg)
        async with self._turn_taking:
            return await self._run(plain_text(text), tell)

    async def _run(self, text: str, tell: Callable[[Event], None] | None) -> Reply:
        seen = _Seen(tell)
        watch = Watch(on_run=seen.run_is, on_context=seen.context_is, streamed=seen.streamed)
        try:
            async with self._agent.opened(self.info, self._folder) as agent:
                result = await agent.run(
                    text,
                    capabilities=[Remembering(self, self._agent.config, watch)],
                    event_stream_handler=None if tell is None else seen.handle,
                    usage_limits=UsageLimits(request_limit=None),  # rounds are what is limited
                )
        except (AgentRunError, UserError, FallbackExceptionGroup) as error:
            raise ModelError(self._agent.explained(error)) from error
        finally:
            await surely(self._settled(seen, text))
        return seen.reply(result.output)

    async def _settled(self, seen: _Seen, text: str) -> None:
        """Leave no turn open, and no message unrecorded that could not even be asked."""
        if seen.run is None:
            await self.finish(await self.begin(user=text), status="failed")
        else:
            await seen.run.fail()
        self.info = await self._memory.store.conversations.get(self._memory.workspace, self.id) or self.info


class _Seen:
    """What came of a message: told on as it happens, and put together in the end."""

    def __init__(self, tell: Callable[[Event], None] | None) -> None:
        self.run: Kept | None = None
        self._context: Context | None = None
        self._listener = tell
        self._texts: list[str] = []
        self._thoughts: list[str] = []

    def _tell(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(event)

    def context_is(self, context: Context) -> None:
        self._context = context
        self._tell(ContextComposed(context=context))

    def run_is(self, run: Kept) -> None:
        self.run = run

    def streamed(self) -> Streamed:
        return Streamed("".join(self._texts), "".join(self._thoughts))

    async def handle(self, _: RunContext[Any], events: AsyncIterable[AgentStreamEvent]) -> None:
        """Tell of events as they come."""
        async for event in events:
            self._event(event)

    def _event(self, event: AgentStreamEvent) -> None:
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart | ThinkingPart):
            self._piece(event.part.content, is_text=isinstance(event.part, TextPart))
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta | ThinkingPartDelta):
            self._piece(event.delta.content_delta, is_text=isinstance(event.delta, TextPartDelta))
        elif isinstance(event, FunctionToolCallEvent):
            part = event.part
            self._tell(ToolBegun(id=part.tool_call_id, tool_name=part.tool_name, arguments=_arguments(part.args)))
        elif isinstance(event, FunctionToolResultEvent):
            part = event.part
            failed = part.outcome != "success"
            shown = shorten(result_text(part), _RESULT_CHARS_SHOWN)
            self._tell(ToolEnded(id=part.tool_call_id, tool_name=part.tool_name or "", is_failed=failed, result=shown))

    def _piece(self, text: str | None, *, is_text: bool) -> None:
        if not text:
            return
        (self._texts if is_text else self._thoughts).append(text)
        self._tell(TextPiece(text=text) if is_text else ReasoningPiece(text=text))

    def reply(self, content: str) -> Reply:
        """Return the answer with all that led to it."""
        turn = None if self.run is None else self.run.turn
        if turn is None or self._context is None:
            msg = "the run ended without a turn: an agent's capabilities may not end a run before it begins"
            raise ModelError(msg)
        reasoning = "\n\n".join(message.reasoning for message in turn.messages if message.reasoning)
        return Reply(content=content, tool_calls=turn.tool_calls, reasoning=reasoning or None, context_used=self._context, turn=turn)


def _arguments(given: Any) -> Any:
    from recollect.capture.shapes import parsed_arguments  # noqa: PLC0415  only those who watch need it

    return parsed_arguments(given)
