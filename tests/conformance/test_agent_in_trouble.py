"""What holds for an agent when things go wrong: no turn stays open, nothing that was done is lost, and nobody else's folder is opened."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent, Tool, ToolReturn
from pydantic_ai.messages import ModelMessage, SystemPromptPart, UserPromptPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.toolsets import FunctionToolset

from recollect.agent.agent import ConversationAgent
from recollect.agent.conversing import AgentConversation
from recollect.agent.remembering import Remembering
from recollect.agent.scripted import ScriptedAgentModel
from recollect.agent.settings import AgentConfig, Event, Reply, TextPiece
from recollect.errors import ConfigError, InputError, ModelError, SpendingError
from recollect.memory import Memory
from tests.endpoint import Endpoint, Line, StreamingEndpoint
from tests.kit import configured


async def never(_: list[ModelMessage]) -> str:
    await asyncio.sleep(600)
    return "never"


async def test_wherever_a_message_is_cancelled_its_turn_is_closed(memory: Memory) -> None:
    agent = ConversationAgent(memory, ScriptedAgentModel(("add", {}), "Done."), [_add])
    moments = random.Random(7)
    conversation = await agent.create_conversation(project="shop")
    for n in range(30):
        sending = asyncio.create_task(conversation.send_message(f"message {n}"))
        await asyncio.sleep(moments.uniform(0, 0.06))
        sending.cancel()
        await asyncio.wait([sending])
    turns = await conversation.turns()
    assert {turn.status for turn in turns} <= {"complete", "failed"}
    assert all(call.result is not None for turn in turns if turn.status == "complete" for call in turn.tool_calls)


def _add() -> int:
    """Add."""
    return 3


_add.__name__ = "add"


async def test_what_tools_did_before_the_end_came_is_kept(memory: Memory) -> None:
    began = asyncio.Event()

    async def hang() -> str:
        """Hang."""
        began.set()
        await asyncio.sleep(600)
        return "never"

    model = ScriptedAgentModel([("add", {}), ("hang", {})])
    first = Tool(_add, sequential=True)  # it has ended before the other one begins
    conversation = await ConversationAgent(memory, model, [first, hang]).create_conversation(project="shop")
    sending = asyncio.create_task(conversation.send_message("Do both"))
    await began.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    (turn,) = await conversation.turns()
    assert turn.status == "failed"
    done, hung = turn.tool_calls
    assert done.result is not None
    assert (done.tool_name, done.status, done.result.result) == ("add", "success", "3")
    assert hung.result is not None
    assert (hung.tool_name, hung.status) == ("hang", "failed")
    assert "stopped with the answer" in (hung.result.result or "")
    assert hung.duration_ms is not None


def refusal(said: str) -> bytes:
    """Return the body of an answer that refuses."""
    message = {"role": "assistant", "content": None, "refusal": said}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "small"}
    return json.dumps({**body, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}).encode()


async def told(own: Memory, message: str = "Tell me") -> tuple[AgentConversation, list[Event], ModelError | None]:
    """Ask the configured model, and return what came, and how it ended."""
    conversation = await ConversationAgent(own).create_conversation(project="shop")
    events: list[Event] = []
    try:
        async for event in conversation.stream_message(message):
            events.append(event)  # noqa: PERF401  those before an error are wanted, too
    except ModelError as error:
        return conversation, events, error
    return conversation, events, None


async def test_an_answer_that_breaks_off_is_kept_as_failed_with_what_came_however_politely_it_ended(memory: Memory) -> None:
    text = 'half an answer that says data: [DONE] and "finish_reason": "stop"'
    with StreamingEndpoint(text, end="cut", thought="let me see") as endpoint:
        own = configured(memory, models={"agent": {"name": "small", "endpoint": endpoint.url}})
        conversation, events, error = await told(own)
        assert f"{endpoint.url} broke off before the answer was whole" in str(error)
    assert "".join(event.text for event in events if isinstance(event, TextPiece)).strip() == text
    (turn,) = await conversation.turns()
    assert (turn.status, turn.finish_reason) == ("failed", None)
    assert [(one.role, one.content, one.reasoning) for one in turn.messages[1:]] == [("assistant", f"{text} ", "let me see")]
    (spent,) = await own.spending()
    assert (spent.calls, spent.failures) == (1, 1)


@pytest.mark.parametrize(("end", "reason"), [("stop", "stop"), ("done", None)])
async def test_an_answer_is_whole_when_its_server_says_so_and_keeps_no_reason_that_nobody_gave(
    memory: Memory, end: str, reason: str | None
) -> None:
    with StreamingEndpoint("a whole answer", end=end) as endpoint:
        own = configured(memory, models={"agent": {"name": "small", "endpoint": endpoint.url}})
        conversation, events, error = await told(own)
    assert error is None
    assert isinstance(events[-1], Reply)
    (turn,) = await conversation.turns()
    assert (turn.assistant, turn.status, turn.finish_reason) == ("a whole answer ", "complete", reason)


async def test_what_was_thought_before_a_listener_left_is_kept(memory: Memory) -> None:
    model = ScriptedAgentModel(["thinking: the port is in the settings", "The port is 8123, as ever."])
    conversation = await ConversationAgent(memory, model).create_conversation(project="shop")
    async with aclosing(conversation.stream_message("Which port?")) as events:
        async for event in events:
            if isinstance(event, TextPiece):
                break
    (turn,) = await conversation.turns()
    assert (turn.status, turn.messages[-1].reasoning) == ("failed", "the port is in the settings")
    assert turn.messages[-1].content


async def test_a_memory_that_closes_stops_the_answers_under_way(memory: Memory, reopen: Any) -> None:
    other = await reopen()
    conversation = await ConversationAgent(other, ScriptedAgentModel("One two three four five.")).create_conversation(project="shop")
    stream = conversation.stream_message("Count")
    async for event in stream:
        if isinstance(event, TextPiece):
            break
    own = await ConversationAgent(other, ScriptedAgentModel(never)).create_conversation(project="shop")
    waiting = asyncio.create_task(anext(own.stream_message("Think")))
    await waiting
    await other.close()
    left, hung = [(await (await memory.load_conversation(one.id)).turns())[0].status for one in (conversation, own)]
    assert left in {"complete", "failed"}
    assert hung == "failed"


@pytest.mark.parametrize("values", [{"projects": {"shop": {"exclude": True}}}, {"agent": {"memory": {"enabled": False}}}])
async def test_where_nothing_is_recorded_an_agent_answers_all_the_same(memory: Memory, values: dict[str, Any]) -> None:
    own = configured(memory, **values)
    conversation = await ConversationAgent(own, ScriptedAgentModel(("add", {}), "Three."), [_add]).create_conversation(project="shop")
    reply = await conversation.send_message("How much?")
    assert reply.content == "Three."
    assert [call.tool_name for call in reply.tool_calls] == ["add"]
    assert (await memory.stats()).turns == 0


async def test_a_system_prompt_stays_before_what_is_recalled_and_the_context_before_its_prompt(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="shop")
    await conversation.record(user="Which port?", assistant="Port 8123.")
    model = ScriptedAgentModel(("add", {}), "8123.")
    await Agent(model, system_prompt="Be exact.", tools=[_add], capabilities=[Remembering(conversation)]).run("Which port was it?")
    for asked in model.asked:
        system, context, prompt = asked[0].parts
        assert isinstance(system, SystemPromptPart)
        assert isinstance(context, UserPromptPart)
        assert str(context.content).startswith("<recollect-memory-")
        assert isinstance(prompt, UserPromptPart)
        assert prompt.content == "Which port was it?"


async def test_tests_may_be_run_again_after_each_change(memory: Memory, tmp_path: Path) -> None:
    runs: list[int] = []

    def run_tests() -> str:
        """Run the tests."""
        runs.append(1)
        return "1 failed" if len(runs) < 3 else "all passed"

    write = ("write_file", {"path": "a.py", "content": "x"})
    model = ScriptedAgentModel(("run_tests", {}), write, ("run_tests", {}), write, ("run_tests", {}), "It passes.")
    agent = ConversationAgent(memory, model, [run_tests], AgentConfig(may_write=True))
    reply = await (await agent.create_conversation(cwd=tmp_path)).send_message("Make it pass")
    assert reply.tool_calls[-1].result is not None
    assert reply.tool_calls[-1].result.result == "all passed"


async def test_a_look_that_ends_after_a_change_is_not_said_to_be_fresh(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("old")

    async def change() -> str:
        """Change the file."""
        await asyncio.sleep(0)
        (tmp_path / "a.txt").write_text("new")
        return "changed"

    look = ("read_file", {"path": "a.txt"})
    model = ScriptedAgentModel([look, ("change", {})], look, "ok")
    reply = await (await ConversationAgent(memory, model, [change]).create_conversation(cwd=tmp_path)).send_message("Look")
    assert reply.tool_calls[-1].result is not None
    last = json.loads(reply.tool_calls[-1].result.result or "")
    assert last.get("result", last)["text"] == "new"


@dataclass
class Odd:
    """A thing of a program's own."""

    inner: object


async def test_whatever_a_tool_brings_back_is_told_and_kept(memory: Memory) -> None:
    loop: list[Any] = []
    loop.append(loop)
    odd: list[Any] = [{1: "a", "b": 2}, {("a", "b"): 1}, loop, Odd(object()), object(), b"\xff", "\ud800 half", None, float("nan")]
    odd.append(ToolReturn(return_value="fine", metadata=object()))

    def give(n: int) -> Any:
        """Give."""
        return odd[n]

    calls: list[Any] = [("give", {"n": n}) for n in range(len(odd))]
    reply = await (await ConversationAgent(memory, ScriptedAgentModel(calls, "ok"), [give]).create_conversation(project="p")).send_message(
        "a half \ud800 character"
    )
    assert reply.content == "ok"
    assert [call.status for call in reply.tool_calls] == ["success"] * len(odd)


async def test_every_failure_of_a_model_is_an_error_of_ours_and_the_message_is_kept(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Endpoint(500) as endpoint:
        uses = {"agent": {"name": "small", "endpoint": endpoint.url, "key_variable": "SHOP_KEY"}}
        own = configured(memory, models=uses)
        monkeypatch.delenv("SHOP_KEY", raising=False)
        conversation = await ConversationAgent(own).create_conversation(project="shop")
        with pytest.raises(ModelError, match="SHOP_KEY"):
            await conversation.send_message("One")
    failing = FallbackModel(ScriptedAgentModel(RuntimeError("a")), ScriptedAgentModel(RuntimeError("b")), fallback_on=(RuntimeError,))
    other = await ConversationAgent(memory, failing).create_conversation(project="shop")
    with pytest.raises(ModelError, match="did not answer"):
        await other.send_message("Two")
    assert [(turn.user, turn.status) for one in (conversation, other) for turn in await one.turns()] == [
        ("One", "failed"),
        ("Two", "failed"),
    ]


SAID_OF: list[tuple[Line, str | None, str]] = [
    (401, None, r"does not accept the key \(401: scripted 401\): put the variable that holds its key into models\.agent\.key_variable$"),
    (401, "SHOP_KEY", r"put a key into SHOP_KEY$"),
    (404, None, r"no such model, .* \(404: scripted 404\): correct models\.agent\.name or models\.agent\.endpoint$"),
    (429, None, r"asked too often or its quota is used up \(429: scripted 429\): ask later$"),
    (500, None, r"the server at http://127.* failed \(500: scripted 500\): ask again, or look at what it logs$"),
    (302, None, r"sends elsewhere \(302\), which is not followed: put the address that answers into models\.agent\.endpoint$"),
    (400, None, r"does not take what it was sent \(400: scripted 400\)"),
    (b"<html>", None, r"gave no answer that can be used .*: ask again, or see that models\.agent\.endpoint"),
    ("", None, r"it said nothing, though it was asked again"),
    (refusal("I cannot help with that"), None, r"it refused \(Refusal: 'I cannot help with that'\): ask in other words, or another model$"),
]


@pytest.mark.parametrize(("line", "variable", "said"), SAID_OF)
async def test_a_failure_is_told_with_its_address_and_what_to_do_and_no_body(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, line: Line, variable: str | None, said: str
) -> None:
    monkeypatch.setenv("SHOP_KEY", "k")
    with Endpoint(line) as endpoint:
        use = {"name": "small", "endpoint": endpoint.url, **({"key_variable": variable} if variable else {})}
        conversation = await ConversationAgent(configured(memory, models={"agent": use})).create_conversation(project="shop")
        with pytest.raises(ModelError, match=r"the model 'small' did not answer: .*" + said) as raised:
            await conversation.send_message("Hi")
    assert not {"{", "[", "\n"} & set(str(raised.value))


async def test_a_server_that_is_away_is_told_with_its_address(memory: Memory) -> None:
    with Endpoint("") as endpoint:
        use = {"name": "small", "endpoint": endpoint.url}
    conversation = await ConversationAgent(configured(memory, models={"agent": use})).create_conversation(project="shop")
    with pytest.raises(ModelError) as raised:
        await conversation.send_message("Hi")
    assert str(raised.value) == (
        f"the model 'small' did not answer: {endpoint.url} cannot be reached (nothing listens there): start its server, or correct "
        "models.agent.endpoint"
    )


async def test_many_messages_at_once_keep_the_cap_together(memory: Memory) -> None:
    settled, everybody = [], asyncio.Event()

    def settle(_: object) -> None:
        settled.append(1)
        if len(settled) == 8:
            everybody.set()

    async def asked(messages: list[ModelMessage]) -> str:
        settle(messages)
        await everybody.wait()  # until each of them is being asked, or was refused
        return "Hello."

    use = {"name": "small", "endpoint": "http://localhost:1/v1", "daily_tokens_max": 5_200, "output_tokens_max": 1_000}
    own = configured(memory, models={"agent": use})
    agent = ConversationAgent(own, WrapperModel(ScriptedAgentModel(asked)))  # a model that asks nobody costs nothing; one around it does
    several = [await agent.create_conversation(project="shop") for _ in range(8)]
    sending = [asyncio.create_task(one.send_message("Hi")) for one in several]
    for task in sending:
        task.add_done_callback(lambda ended: settle(ended) if ended.exception() else None)
    told = await asyncio.gather(*sending, return_exceptions=True)
    refused = [one for one in told if isinstance(one, SpendingError)]
    assert 0 < len(refused) < 8
    assert "being asked for" in str(refused[0])
    (spent,) = await own.spending()
    assert spent.calls == 8 - len(refused)


async def test_a_server_that_counts_nothing_is_counted_all_the_same(memory: Memory) -> None:
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "small", "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "Hello there, you."}}]}  # fmt: skip
    with Endpoint(json.dumps(body).encode()) as endpoint:
        own = configured(memory, models={"agent": {"name": "small", "endpoint": endpoint.url}})
        await (await ConversationAgent(own).create_conversation(project="shop")).send_message("Hi")
    (spent,) = await own.spending()
    assert spent.input_tokens > 100
    assert spent.output_tokens >= 3


async def test_what_is_recorded_opens_no_folder(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "id_rsa").write_text("secret")
    source = await memory.create_conversation(cwd=tmp_path / "private")
    await source.record(user="hello", assistant="hi")
    document = await source.export()
    model = ScriptedAgentModel("ok")
    agent = ConversationAgent(memory, model)
    await (await agent.import_conversation(document, new_id=True)).send_message("Look")
    await (await agent.load_conversation(source.id)).send_message("Look")
    await (await agent.load_conversation(source.id, cwd=tmp_path)).send_message("Look")
    assert ["read_file" in tools for tools in model.tools] == [False, False, True]


async def test_tools_whose_names_clash_are_refused_by_name(memory: Memory) -> None:
    conversation = await ConversationAgent(memory, ScriptedAgentModel("ok"), [_add, _add]).create_conversation(project="p")
    with pytest.raises(InputError, match="'add'"):
        await conversation.send_message("Hi")
    named = FunctionToolset([_add]).prefixed("own")
    reply = await (
        await ConversationAgent(memory, ScriptedAgentModel(("own_add", {}), "ok"), [named]).create_conversation(project="p")
    ).send_message("Hi")
    assert [call.tool_name for call in reply.tool_calls] == ["own_add"]


async def test_a_command_that_ends_badly_is_a_failure_and_what_it_said_is_told(memory: Memory, tmp_path: Path) -> None:
    model = ScriptedAgentModel(("run_command", {"command": "echo 1 failed; exit 3"}), ("run_command", {"command": "true"}), "ok")
    agent = ConversationAgent(memory, model, config=AgentConfig(may_run=True))
    reply = await (await agent.create_conversation(cwd=tmp_path)).send_message("Test")
    assert [call.status for call in reply.tool_calls] == ["failed", "success"]
    assert reply.tool_calls[0].result is not None
    assert "1 failed" in str(reply.tool_calls[0].result.error or reply.tool_calls[0].result.result)


async def test_a_model_that_asks_nobody_is_neither_counted_nor_capped(memory: Memory) -> None:
    use = {"name": "small", "endpoint": "http://localhost:1/v1", "daily_tokens_max": 10, "output_tokens_max": 10, "input_price": 1.0}
    own = configured(memory, models={"agent": use})
    assert (
        await (await ConversationAgent(own, ScriptedAgentModel("ok")).create_conversation(project="p")).send_message("Hi")
    ).content == "ok"
    assert await own.spending() == []


async def test_what_is_no_model_is_refused_before_anything_is_said(memory: Memory) -> None:
    for wrong in (5, b"openai:gpt-5", ScriptedAgentModel):
        with pytest.raises(InputError, match="model is a model of pydantic-ai or its name there, not "):
            ConversationAgent(memory, wrong)  # type: ignore[arg-type]
    for unknown in ("nope", "", "nobody:gpt-5"):
        with pytest.raises(ConfigError, match=f"there is no model '{unknown}': name one with its provider"):
            ConversationAgent(memory, unknown)
    assert ConversationAgent(memory, "test").model_name == "test"


async def test_what_is_no_conversation_is_refused_at_once(memory: Memory) -> None:
    with pytest.raises(InputError, match="takes a Conversation, not NoneType"):
        Remembering(None)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="takes a AgentConfig, not str"):
        Remembering(await memory.create_conversation(project="p"), "x")  # type: ignore[arg-type]
