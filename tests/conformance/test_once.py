"""Once: the same turn sent again changes nothing; the same id with other content is a conflict, never an overwrite."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.errors import ConflictError
from recollect.memory import Memory


async def test_the_same_request_sent_again_changes_nothing(memory: Memory, everything: dict[str, Any]) -> None:
    first = await memory.record(everything)
    before = await (await memory.load_conversation(first.conversation_id)).export()
    again = await memory.record(everything)
    assert (first.status, again.status) == ("created", "unchanged")
    assert again.turn_ids == first.turn_ids
    assert await (await memory.load_conversation(first.conversation_id)).export() == before
    assert (await memory.stats()).turns == 1


async def test_the_same_id_with_other_content_is_a_conflict_and_overwrites_nothing(memory: Memory, everything: dict[str, Any]) -> None:
    first = await memory.record(everything)
    other = {**everything, "messages": [{"role": "user", "content": "Something else"}]}
    with pytest.raises(ConflictError, match="req_1"):
        await memory.record(other)
    assert (await (await memory.load_conversation(first.conversation_id)).turns())[0].user == "Fix the login bug"


async def test_a_request_that_is_refused_begins_no_conversation(memory: Memory, everything: dict[str, Any]) -> None:
    await memory.record(everything)
    elsewhere = {**everything, "chat_meta": {"chat_id": "another"}, "messages": [{"role": "user", "content": "Something else"}]}
    with pytest.raises(ConflictError, match="req_1"):
        await memory.record(elsewhere)
    assert len(await memory.list_conversations()) == 1


async def test_replace_replaces_in_place(memory: Memory, everything: dict[str, Any]) -> None:
    first = await memory.record(everything)
    conversation = await memory.load_conversation(first.conversation_id)
    await conversation.record(user="next", assistant="later turn")
    longer = {
        **everything,
        "messages": [{"role": "user", "content": "Something else"}, *[{"role": "assistant", "content": str(n)} for n in range(9)]],
    }
    replaced = await memory.record(longer, replace=True)
    assert replaced.status == "replaced"
    assert replaced.turn_ids == first.turn_ids
    turns = await conversation.turns()
    assert [turn.user for turn in turns] == ["Something else", "next"]
    assert [m.sequence for turn in turns for m in turn.messages] == list(range(12))
    assert (await memory.verify()).status == "intact"
    assert (await memory.search("login")).hits == ()


async def test_a_request_of_several_turns_shares_its_id_and_is_recognised(memory: Memory) -> None:
    payload = {
        "request_id": "r",
        "project_id": "p",
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}],
    }
    first = await memory.record(payload)
    assert len(set(first.turn_ids)) == 2
    assert (await memory.record(payload)).status == "unchanged"
    turns = await (await memory.load_conversation(first.conversation_id)).turns()
    assert [(turn.request_id, turn.request_ordinal) for turn in turns] == [("r", 0), ("r", 1)]


async def test_a_request_id_is_unique_within_a_project_and_free_in_another(memory: Memory) -> None:
    message = [{"role": "user", "content": "a"}]
    first = await memory.record({"request_id": "r", "project_id": "p", "chat_id": "one", "messages": message})
    again = await memory.record({"request_id": "r", "project_id": "p", "chat_id": "two", "messages": message})
    assert (again.status, again.conversation_id) == ("unchanged", first.conversation_id)
    with pytest.raises(ConflictError, match="recorded in conversation"):
        await memory.record({"request_id": "r", "project_id": "p", "chat_id": "two", "messages": [{"role": "user", "content": "b"}]})
    assert (await memory.record({"request_id": "r", "project_id": "q", "messages": message})).status == "created"


async def test_turns_without_a_request_id_are_all_kept_even_when_alike(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    for _ in range(3):
        await conversation.record(user="yes", assistant="ok")
    assert [turn.index for turn in await conversation.turns()] == [0, 1, 2]


async def test_ids_follow_from_identity_so_another_store_gives_the_same(
    memory: Memory, everything: dict[str, Any], elsewhere: Memory
) -> None:
    first = await memory.record(everything)
    second = await elsewhere.record(everything)
    assert (first.conversation_id, first.turn_ids) == (second.conversation_id, second.turn_ids)


async def test_replacing_what_a_branch_inherits_is_refused(memory: Memory, everything: dict[str, Any]) -> None:
    first = await memory.record(everything)
    conversation = await memory.load_conversation(first.conversation_id)
    await conversation.branch(from_turn=0)
    with pytest.raises(ConflictError, match="branch"):
        await memory.record({**everything, "messages": [{"role": "user", "content": "x"}]}, replace=True)
