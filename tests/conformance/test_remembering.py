"""An agent of pydantic-ai that remembers: each of its runs is a turn, begins with what matters from before, and is kept as it ended."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, ModelRetry, RunContext
from pydantic_ai.messages import ImageUrl, ModelMessage, ModelRequest, ModelResponse, TextPart, UserPromptPart

from recollect.agent.remembering import Remembering
from recollect.agent.scripted import ScriptedAgentModel
from recollect.agent.settings import AgentConfig
from recollect.conversation import Conversation
from recollect.memory import Memory


class Sum(BaseModel):
    """A sum."""

    total: int


def shown(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for message in messages for part in message.parts if isinstance(part, UserPromptPart)]


@pytest.fixture
async def conversation(memory: Memory) -> Conversation:
    return await memory.create_conversation(project="shop")


async def test_two_lines_give_an_agent_a_memory(memory: Memory, conversation: Conversation) -> None:
    model = ScriptedAgentModel("The port is 8123.", "8123.")
    agent = Agent(model, capabilities=[Remembering(conversation)])
    await agent.run("Set the port of the shop to 8123")
    later = Agent(model, capabilities=[Remembering(await memory.create_conversation(project="shop"))])
    result = await later.run("Which port did we choose?")
    assert result.output == "8123."
    context, asked = shown(model.asked[1])
    assert context.startswith("<recollect-memory-")
    assert "8123" in context
    assert asked == "Which port did we choose?"
    (turn,) = await conversation.turns()
    assert (turn.user, turn.assistant, turn.status) == ("Set the port of the shop to 8123", "The port is 8123.", "complete")


async def test_the_context_is_in_no_history(conversation: Conversation) -> None:
    await conversation.record(user="Which port does the shop use?", assistant="8123")
    result = await Agent(ScriptedAgentModel("8123"), capabilities=[Remembering(conversation)]).run("Which port?")
    assert shown(result.all_messages()) == ["Which port?"]


async def test_a_history_of_ones_own_stays_before_the_context(conversation: Conversation) -> None:
    await conversation.record(user="Which port does the shop use?", assistant="8123")
    model = ScriptedAgentModel("ok")
    history = [ModelRequest(parts=[UserPromptPart("Hello")]), ModelResponse(parts=[TextPart("Hi")])]
    await Agent(model, capabilities=[Remembering(conversation)]).run("Which port?", message_history=history)
    first, context, asked = shown(model.asked[0])
    assert (first, asked) == ("Hello", "Which port?")
    assert context.startswith("<recollect-memory-")
    assert [turn.user for turn in await conversation.turns()] == ["Which port does the shop use?", "Which port?"]


async def test_tools_and_their_failures_are_kept_with_their_durations(conversation: Conversation) -> None:
    agent = Agent(ScriptedAgentModel([("divide", {"by": 0}), ("divide", {"by": 2})], "Five."), capabilities=[Remembering(conversation)])

    @agent.tool
    def divide(ctx: RunContext[Any], by: int) -> float:  # pyright: ignore[reportUnusedFunction]
        """Divide."""
        assert ctx.prompt == "Ten by what?"
        if by == 0:
            msg = "not by zero"
            raise ModelRetry(msg)
        return 10 / by

    await agent.run("Ten by what?")
    (turn,) = await conversation.turns()
    assert [call.status for call in turn.tool_calls] == ["failed", "success"]
    assert all(call.duration_ms is not None for call in turn.tool_calls)
    assert turn.assistant == "Five."


async def test_an_answer_that_is_no_text_is_kept_as_json(conversation: Conversation) -> None:
    agent = Agent(ScriptedAgentModel(("final_result", {"total": 3})), output_type=Sum, capabilities=[Remembering(conversation)])
    assert (await agent.run("1 + 2?")).output == Sum(total=3)
    (turn,) = await conversation.turns()
    assert turn.assistant == '{"total":3}'
    assert turn.status == "complete"


async def test_a_streamed_run_is_kept_too(conversation: Conversation) -> None:
    agent = Agent(ScriptedAgentModel("One two three four."), capabilities=[Remembering(conversation)])
    async with agent.run_stream("Count") as stream:
        assert await stream.get_output() == "One two three four."
    (turn,) = await conversation.turns()
    assert (turn.assistant, turn.status) == ("One two three four.", "complete")


async def test_a_run_that_fails_or_is_stopped_is_kept_as_failed(conversation: Conversation) -> None:
    asked = asyncio.Event()

    async def hang(_: list[ModelMessage]) -> str:
        asked.set()
        await asyncio.sleep(600)
        return "never"

    with pytest.raises(RuntimeError, match="no"):
        await Agent(ScriptedAgentModel(RuntimeError("no")), capabilities=[Remembering(conversation)]).run("One")
    running = asyncio.create_task(Agent(ScriptedAgentModel(hang), capabilities=[Remembering(conversation)]).run("Two"))
    await asked.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert [(turn.user, turn.status) for turn in await conversation.turns()] == [("One", "failed"), ("Two", "failed")]


async def test_a_run_without_a_prompt_is_neither_recorded_nor_given_a_context(conversation: Conversation) -> None:
    await conversation.record(user="Which port does the shop use?", assistant="8123")
    model = ScriptedAgentModel("ok")
    history = [ModelRequest(parts=[UserPromptPart("Go on")])]
    await Agent(model, capabilities=[Remembering(conversation)]).run(message_history=history)
    assert shown(model.asked[0]) == ["Go on"]
    assert len(await conversation.turns()) == 1


async def test_pictures_are_named_and_not_kept(conversation: Conversation) -> None:
    agent = Agent(ScriptedAgentModel("A cat."), capabilities=[Remembering(conversation)])
    await agent.run(["What is this?", ImageUrl(url="https://example.org/cat.png")])
    (turn,) = await conversation.turns()
    assert turn.user == "What is this?\n[image: https://example.org/cat.png]"


async def test_its_budget_is_kept(conversation: Conversation) -> None:
    for n in range(20):
        await conversation.record(user=f"Question {n} about ports?", assistant="A long answer about ports. " * 60)
    model = ScriptedAgentModel("ok")
    await Agent(model, capabilities=[Remembering(conversation, AgentConfig(budget_chars=2_000))]).run("ports?")
    assert len(shown(model.asked[0])[0]) <= 2_000


async def test_one_agent_may_run_for_several_conversations_at_once(memory: Memory) -> None:
    agent = Agent(ScriptedAgentModel("ok"))
    several = [await memory.create_conversation(project="shop") for _ in range(3)]
    await asyncio.gather(*(agent.run(f"message {n}", capabilities=[Remembering(one)]) for n, one in enumerate(several)))
    assert [[turn.user for turn in await one.turns()] for one in several] == [["message 0"], ["message 1"], ["message 2"]]
