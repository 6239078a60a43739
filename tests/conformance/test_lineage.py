"""Lineage: a branch shows its ancestors' turns up to the fork, then its own, and outlives its parent."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.conversation import Conversation
from recollect.errors import InputError, NotFoundError, TooLargeError
from recollect.limits import BRANCH_DEPTH_MAX
from recollect.memory import Memory


async def three_turns(memory: Memory) -> Conversation:
    conversation = await memory.create_conversation(project="p", title="parent", tags=["x"])
    for text in ("apples", "bananas", "cherries"):
        await conversation.record(user=text, assistant=f"about {text}", tool_calls=[{"name": "ls", "result": text}])
    return conversation


async def users(conversation: Conversation) -> list[str]:
    return [turn.user for turn in await conversation.turns()]


async def test_a_branch_inherits_by_reference_and_goes_its_own_way(memory: Memory) -> None:
    parent = await three_turns(memory)
    branch = await parent.branch(from_turn=1, title="other")
    await branch.record(user="dates", assistant="about dates")
    await parent.record(user="elderberries", assistant="later in the parent")
    assert await users(branch) == ["apples", "bananas", "dates"]
    assert await users(parent) == ["apples", "bananas", "cherries", "elderberries"]
    assert [turn.index for turn in await branch.turns()] == [0, 1, 2]
    info = await memory.get_info(branch.id)
    assert (info.turn_count, info.message_count, info.branch_of, info.from_turn) == (3, 6, parent.id, 1)
    assert (await memory.stats()).turns == 5, "inherited turns are not copied"


async def test_a_branch_of_a_branch_sees_only_its_own_line(memory: Memory) -> None:
    parent = await three_turns(memory)
    child = await parent.branch(from_turn=1)
    await child.record(user="dates")
    grandchild = await child.branch(from_turn=0)
    await grandchild.record(user="figs")
    assert await users(grandchild) == ["apples", "figs"]


async def test_search_in_a_branch_sees_ancestors_up_to_the_fork_and_never_siblings(memory: Memory) -> None:
    parent = await three_turns(memory)
    branch, sibling = await parent.branch(from_turn=1), await parent.branch(from_turn=1)
    await branch.record(user="dates")
    await sibling.record(user="figs")

    async def finds(word: str) -> bool:
        return bool((await branch.search_history(word)).hits)

    assert [await finds(word) for word in ("apples", "bananas", "cherries", "dates", "figs")] == [True, True, False, True, False]


async def test_a_branch_can_fork_after_a_message(memory: Memory) -> None:
    parent = await three_turns(memory)
    assert await users(await parent.branch(from_message=3)) == ["apples", "bananas"]
    assert await users(await parent.branch()) == ["apples", "bananas", "cherries"]
    wrongs: tuple[dict[str, Any], ...] = ({"from_turn": 9}, {"from_message": 99}, {"from_turn": -1}, {"from_turn": 0, "from_message": 0})
    for wrong in wrongs:
        with pytest.raises(InputError):
            await parent.branch(**wrong)


async def test_deleting_a_parent_leaves_its_branches_what_they_inherited(memory: Memory) -> None:
    parent = await three_turns(memory)
    branch = await parent.branch(from_turn=1)
    await branch.record(user="dates")
    await parent.delete()
    with pytest.raises(NotFoundError):
        await memory.load_conversation(parent.id)
    assert await users(branch) == ["apples", "bananas", "dates"]
    assert [info.id for info in await memory.list_conversations()] == [branch.id]
    assert (await memory.search("cherries")).hits == ()
    assert [hit.conversation_id for hit in (await memory.search("bananas")).hits] == [branch.id]
    assert (await memory.verify()).status == "intact"
    await branch.delete()
    stats = await memory.stats()
    assert (stats.turns, stats.messages, stats.tool_calls, stats.passages) == (0, 0, 0, 0)


async def test_a_deleted_parent_can_come_back_beside_its_branches(memory: Memory) -> None:
    parent = await memory.create_conversation(project="p", external_id="s1")
    await parent.record(user="apples", assistant="x", request_id="r")
    document = await parent.export()
    branch = await parent.branch(from_turn=0)
    await parent.delete()
    again = await memory.create_conversation(project="p", external_id="s1")
    assert (again.id, again.info.turn_count) == (parent.id, 0)
    await memory.import_conversation(document, replace=True)
    assert await users(branch) == ["apples"]
    assert {hit.conversation_id for hit in (await memory.search("apples")).hits} == {parent.id, branch.id}
    await branch.delete()
    assert await users(again) == ["apples"]
    assert (await memory.verify()).status == "intact"


async def test_a_branch_of_a_deleted_branch_stays_whole(memory: Memory) -> None:
    parent = await three_turns(memory)
    child = await parent.branch(from_turn=1)
    await child.record(user="dates")
    await child.record(user="figs")
    one, two = await child.branch(from_turn=2), await child.branch(from_turn=3)
    await child.delete()
    assert (await users(one), await users(two)) == (["apples", "bananas", "dates"], ["apples", "bananas", "dates", "figs"])
    await parent.delete()
    assert (await users(one), await users(two)) == (["apples", "bananas", "dates"], ["apples", "bananas", "dates", "figs"])
    await two.delete()
    assert await users(one) == ["apples", "bananas", "dates"]
    assert (await memory.stats()).turns == 3
    assert (await memory.verify()).status == "intact"


async def test_deleting_one_of_two_branches_keeps_what_the_other_shows(memory: Memory) -> None:
    parent = await three_turns(memory)
    early, late = await parent.branch(from_turn=0), await parent.branch(from_turn=1)
    await parent.delete()
    await late.delete()
    assert await users(early) == ["apples"]
    assert (await memory.search("bananas")).hits == ()


async def test_forgetting_a_parent_takes_its_turns_from_the_branches_too(memory: Memory) -> None:
    parent = await three_turns(memory)
    branch = await parent.branch(from_turn=1)
    await branch.record(user="dates")
    await memory.forget(conversation=parent.id)
    assert await users(branch) == ["dates"]
    info = await memory.get_info(branch.id)
    assert (info.turn_count, info.message_count) == (1, 1)
    await branch.record(user="figs")
    assert [turn.index for turn in await branch.turns()] == [2, 3], "an index is never given out twice"


async def test_tool_calls_and_files_of_a_branch_include_what_it_inherits(memory: Memory) -> None:
    parent = await three_turns(memory)
    branch = await parent.branch(from_turn=1)
    await branch.record(user="more", tool_calls=[{"name": "Read", "arguments": {"file_path": "a.py"}, "result": "x"}])
    assert [call.tool_name for call in await branch.get_tool_calls()] == ["Read", "ls", "ls"]
    assert [file.path for file in await branch.accessed_files()] == ["a.py"]


async def test_a_branch_that_forks_before_its_parents_own_turns_shows_the_same_after_its_parent_goes(memory: Memory) -> None:
    root = await memory.create_conversation(project="p")
    for n in range(5):
        await root.record(user=f"r{n}")
    middle = await root.branch(from_turn=3)
    leaf = await middle.branch(from_turn=1)
    await leaf.record(user="c2")
    await middle.delete()
    assert [(turn.index, turn.user) for turn in await leaf.turns()] == [(0, "r0"), (1, "r1"), (2, "c2")]
    assert (await memory.get_info(leaf.id)).turn_count == 3


async def test_forgetting_a_branch_leaves_its_branches_what_they_have_of_its_parent(memory: Memory) -> None:
    root = await three_turns(memory)
    middle = await root.branch(from_turn=1)
    await middle.record(user="forgotten")
    leaf = await middle.branch(from_turn=2)
    await leaf.record(user="own")
    await memory.forget(conversation=middle.id)
    assert await users(leaf) == ["apples", "bananas", "own"]
    assert (await memory.verify()).status == "intact"


async def test_branches_are_refused_beyond_a_named_depth_and_never_lose_turns(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="first")
    for depth in range(BRANCH_DEPTH_MAX - 1):
        conversation = await conversation.branch()
        await conversation.record(user=f"level {depth}")
    with pytest.raises(TooLargeError, match="deep"):
        await conversation.branch()
    assert len(await conversation.turns()) == BRANCH_DEPTH_MAX


async def test_an_open_turn_that_a_branch_inherited_may_go_on_growing(memory: Memory) -> None:
    parent = await memory.create_conversation(project="p")
    turn = await parent.begin("question")
    branch = await parent.branch()
    await branch.record(user="own", assistant="answer")
    await parent.finish(turn, [{"role": "assistant", "content": "a"}, {"role": "assistant", "content": "b"}])
    turns = await branch.turns()
    assert [m.sequence for turn in turns for m in turn.messages] == [0, 1, 2, 3, 4]
    assert (await memory.get_info(branch.id)).message_count == 5
    await branch.record(user="later")
    assert (await branch.turns())[-1].messages[0].sequence == 5
