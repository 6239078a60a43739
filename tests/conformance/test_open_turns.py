"""A turn can be recorded message by message; it is kept from its first word, whatever happens next."""

from __future__ import annotations

import asyncio

import pytest

from recollect.errors import InputError, NotFoundError, StoreUnavailableError
from recollect.memory import Memory
from tests.kit import OpenMemory, configured


async def test_a_turn_grows_message_by_message_and_is_finished_once(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.begin("Fix it", request_id="r")
    assert turn.status == "open"
    call = {"id": "t", "function": {"name": "Read", "arguments": '{"file_path": "a.py"}'}}
    turn = await conversation.add(turn, [{"role": "assistant", "content": "Looking", "tool_calls": [call]}])
    turn = await conversation.add(turn, [{"role": "tool", "tool_call_id": "t", "content": "x = 1"}])
    turn = await conversation.add(turn, [{"role": "assistant", "content": None, "tool_calls": [{**call, "id": "t2"}]}])
    done = await conversation.finish(turn, [{"role": "assistant", "content": "Done"}])
    assert (await conversation.turns()) == [done]
    assert (done.status, done.request_id, done.user, done.assistant) == ("complete", "r", "Fix it", "Looking\n\nDone")
    assert [(c.order, c.iteration, c.status) for c in done.tool_calls] == [(0, 0, "success"), (1, 1, "unknown")]
    assert [done.messages[n].id for n in (1, 2)] == [c.message_id for c in done.tool_calls]
    with pytest.raises(InputError, match="only an open turn"):
        await conversation.finish(done)
    assert (await memory.search("Looking")).hits[0].turn_index == 0
    assert (await memory.verify()).status == "intact"


async def test_what_messages_bring_beside_their_words_is_kept(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.begin("Fix it")
    call = {"id": "t", "function": {"name": "create_textdoc", "arguments": '{"path": "a.py", "content": "x = 1"}'}}
    asked = {"role": "assistant", "content": "I write", "tool_calls": [call], "checkpoints": [{"commit_hash": "ae09"}]}
    turn = await conversation.add(turn, [{"role": "context_file", "content": [{"file_name": "b.py", "file_content": "y"}]}])
    turn = await conversation.add(turn, [asked])
    await conversation.finish(turn, [{"role": "tool", "tool_call_id": "t", "content": "done"}])
    (done,) = await conversation.turns()
    assert [(change.file_path, change.tool_call_id) for change in done.changes] == [("a.py", "t")]
    assert [part.file_path for part in done.context_files] == ["b.py"]
    assert [part.git_hash for part in done.checkpoints] == ["ae09"]
    assert (await memory.verify()).status == "intact"


async def test_the_files_a_call_touched_stay_where_its_arguments_are_not_kept(memory: Memory) -> None:
    own = configured(memory, projects={"*": {"privacy": "summary"}})
    conversation = await own.create_conversation(project="p")
    turn = await conversation.begin("Fix it")
    call = {"id": "t", "function": {"name": "Read", "arguments": '{"file_path": "a.py"}'}}
    turn = await conversation.add(turn, [{"role": "assistant", "content": "Looking", "tool_calls": [call]}])
    await conversation.finish(turn, [{"role": "tool", "tool_call_id": "t", "content": "x = 1"}])
    (done,) = await conversation.turns()
    assert [[access.path for access in call.accessed] for call in done.tool_calls] == [["a.py"]]


async def test_an_open_turn_survives_its_process(memory: Memory, reopen: OpenMemory) -> None:
    conversation = await memory.create_conversation(project="p")
    begun = await conversation.begin("Fix it")
    other = await (await reopen()).load_conversation(conversation.id)
    await other.finish(begun, [{"role": "assistant", "content": "resumed"}], status="failed")
    turn = (await conversation.turns())[0]
    assert (turn.status, turn.assistant) == ("failed", "resumed")


async def test_two_writers_of_one_open_turn_lose_nothing(memory: Memory, reopen: OpenMemory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.begin("Fix it")
    other = await (await reopen()).load_conversation(conversation.id)
    await asyncio.gather(
        *(conversation.add(turn, [{"role": "assistant", "content": f"a{n}"}]) for n in range(5)),
        *(other.add(turn, [{"role": "assistant", "content": f"b{n}"}]) for n in range(5)),
    )
    said = {message.content for message in (await conversation.turns())[0].messages}
    assert said == {"Fix it", *(f"a{n}" for n in range(5)), *(f"b{n}" for n in range(5))}


async def test_a_users_message_does_not_fit_into_an_open_turn(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.begin("Fix it")
    with pytest.raises(InputError, match="begins a new turn"):
        await conversation.add(turn, [{"role": "user", "content": "another"}])
    await conversation.delete()
    with pytest.raises(NotFoundError):
        await conversation.finish(turn)


async def test_later_turns_keep_their_sequence_when_an_earlier_one_grows(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.begin("first")
    await conversation.record(user="second", assistant="ok")
    await conversation.finish(turn, [{"role": "assistant", "content": "x"}, {"role": "assistant", "content": "y"}])
    assert [m.sequence for turn in await conversation.turns() for m in turn.messages] == [0, 1, 2, 3, 4]
    await conversation.record(user="third")
    assert (await conversation.turns())[-1].messages[0].sequence == 5


async def test_an_open_turn_that_grows_often_does_not_use_up_the_conversation(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.begin("question")
    for n in range(30):
        turn = await conversation.add(turn, [{"role": "assistant", "content": f"word{n}"}])
    await conversation.finish(turn)
    assert (await memory.stats()).passages == 31
    assert (await memory.search("word29")).hits
    assert (await memory.verify()).status == "intact"


async def test_a_closed_memory_says_so(reopen: OpenMemory) -> None:
    memory = await reopen()
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="x")
    await memory.close()
    for refused in (memory.stats(), conversation.record(user="y")):
        with pytest.raises(StoreUnavailableError, match="closed"):
            await refused
