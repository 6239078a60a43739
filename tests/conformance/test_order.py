"""Order is by index, never by time; clocks may go back."""

from __future__ import annotations

from recollect.clock import ManualClock
from recollect.conversation import Conversation
from recollect.memory import Memory


async def test_turns_keep_their_order_when_the_clock_goes_back(memory: Memory, clock: ManualClock) -> None:
    conversation = await memory.create_conversation(project="p")
    for text in ("first", "second", "third"):
        await conversation.record(user=text, assistant="ok")
        clock.advance(-3_600)
    assert [turn.user for turn in await conversation.turns()] == ["first", "second", "third"]
    assert [turn.user for turn in await conversation.recent_turns(limit=2)] == ["second", "third"]


async def test_recent_turns_are_the_newest_in_order(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    for n in range(10):
        await conversation.record(user=f"question {n}", assistant="ok", timestamp=f"2026-01-{20 - n:02}T00:00:00Z")
    assert [turn.index for turn in await conversation.recent_turns()] == [7, 8, 9]


async def test_indexes_and_sequences_count_through_the_conversation(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(
        messages=[{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}]
    )
    await conversation.record(user="d", assistant="e")
    turns = await conversation.turns()
    assert [turn.index for turn in turns] == [0, 1, 2]
    assert [m.sequence for turn in turns for m in turn.messages] == [0, 1, 2, 3, 4]


async def test_history_gives_the_last_messages_oldest_first_with_their_tool_calls(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="a", assistant="b", reasoning="because", tool_calls=[{"name": "ls", "result": "x"}])
    await conversation.record(user="c", assistant="d")
    assert [m.content for m in await conversation.get_history(limit=3)] == ["b", "c", "d"]
    answer = (await conversation.get_history())[1]
    assert (answer.reasoning, [call.tool_name for call in answer.tool_calls]) == ("because", ["ls"])
    bare = (await conversation.get_history(include_tool_calls=False, include_reasoning=False))[1]
    assert (bare.reasoning, bare.tool_calls) == (None, ())
    assert await conversation.get_history(limit=0) == []


async def test_lists_are_in_the_order_of_their_times_to_the_fraction_of_a_second(memory: Memory, clock: ManualClock) -> None:
    conversations: list[Conversation] = []
    for _ in range(4):
        conversations.append(await memory.create_conversation(project="p"))
        clock.advance(0.25)
    assert [info.id for info in await memory.list_conversations()] == [one.id for one in reversed(conversations)]
    await conversations[0].record(user="a")
    branches: list[str] = []
    for _ in range(4):
        branches.append((await conversations[0].branch()).id)
        clock.advance(0.25)
    found = await memory.store.conversations.branches(memory.workspace, conversations[0].id)
    assert [info.id for info in found] == branches
