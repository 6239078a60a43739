"""A payload may repeat the history so far: what is known is recognised, what was edited forks or replaces, nothing doubles."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.memory import Memory
from tests.kit import said


def payload(request: str | None, *texts: str) -> dict[str, Any]:
    return {"request_id": request, "project_id": "p", "chat_id": "c", "messages": said(*texts)}


async def users(memory: Memory, conversation_id: str) -> list[str]:
    return [turn.user for turn in await (await memory.load_conversation(conversation_id)).turns()]


async def test_each_request_that_repeats_the_history_adds_only_its_new_turn(memory: Memory) -> None:
    await memory.record(payload("r1", "a", "b"))
    await memory.record(payload("r2", "a", "b", "c", "d"))
    third = await memory.record(payload("r3", "a", "b", "c", "d", "e", "f"))
    assert await users(memory, third.conversation_id) == ["a", "c", "e"]
    assert (await memory.record(payload("r2", "a", "b", "c", "d"))).status == "unchanged"


async def test_a_payload_with_only_what_is_new_is_appended(memory: Memory) -> None:
    await memory.record(payload("r1", "a", "b"))
    second = await memory.record(payload("r2", "c", "d"))
    assert await users(memory, second.conversation_id) == ["a", "c"]


async def test_a_changed_system_prompt_does_not_hide_the_history(memory: Memory) -> None:
    first = payload("r1", "a", "b")
    first["messages"].insert(0, {"role": "system", "content": "It is Monday"})
    second = payload("r2", "a", "b", "c", "d")
    second["messages"].insert(0, {"role": "system", "content": "It is Tuesday"})
    await memory.record(first)
    recorded = await memory.record(second)
    assert await users(memory, recorded.conversation_id) == ["a", "c"]


async def test_a_new_request_id_always_adds_a_turn(memory: Memory) -> None:
    await memory.record(payload("r1", "yes", "ok"))
    second = await memory.record(payload("r2", "yes", "ok"))
    assert await users(memory, second.conversation_id) == ["yes", "yes"]


async def test_without_a_request_id_a_known_history_is_unchanged(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(messages=said("a", "b", "c", "d", "e", "f"))
    await conversation.record(messages=said("a", "b", "c", "d", "e", "f"))
    await conversation.record(messages=said("a", "b", "c", "d"))
    assert await users(memory, conversation.id) == ["a", "c", "e"]


async def test_a_list_that_grows_message_by_message_never_doubles(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    texts = ("a", "b", "c", "d", "e")
    for n in range(1, len(texts) + 1):
        await conversation.record(messages=said(*texts[:n]))
    turns = await conversation.turns()
    assert [(turn.user, turn.assistant) for turn in turns] == [("a", "b"), ("c", "d"), ("e", "")]
    assert turns[-1].status == "open"
    assert (await memory.stats()).messages == 5


async def test_an_edited_past_forks_a_branch_and_loses_nothing(memory: Memory) -> None:
    first = await memory.record(payload("r1", "a", "b", "c", "d"))
    edited = await memory.record(payload("r2", "a", "b", "c, but better", "d2"))
    assert edited.status == "branched"
    assert edited.conversation_id != first.conversation_id
    assert await users(memory, first.conversation_id) == ["a", "c"]
    assert await users(memory, edited.conversation_id) == ["a", "c, but better"]
    again = await memory.record(payload("r2", "a", "b", "c, but better", "d2"))
    assert (again.status, again.conversation_id) == ("unchanged", edited.conversation_id)
    onwards = await memory.record(payload("r3", "a", "b", "c, but better", "d2", "e", "f"))
    assert onwards.conversation_id == edited.conversation_id
    assert await users(memory, edited.conversation_id) == ["a", "c, but better", "e"]


async def test_an_edited_past_replaces_when_asked(memory: Memory) -> None:
    first = await memory.record(payload("r1", "a", "b", "c", "d", "e", "f"))
    edited = await memory.record(payload("r2", "a", "b", "c2", "d2"), on_edit="replace")
    assert (edited.status, edited.conversation_id) == ("replaced", first.conversation_id)
    turns = await (await memory.load_conversation(first.conversation_id)).turns()
    assert [turn.user for turn in turns] == ["a", "c2"]
    assert [m.sequence for turn in turns for m in turn.messages] == [0, 1, 2, 3]
    info = await memory.get_info(first.conversation_id)
    assert (info.turn_count, info.message_count) == (2, 4)
    await memory.record(payload("r3", "a", "b", "c2", "d2", "g", "h"))
    assert await users(memory, first.conversation_id) == ["a", "c2", "g"]


async def test_another_answer_to_the_only_question_is_an_edited_past(memory: Memory) -> None:
    first = await memory.record(payload("r1", "a", "b"))
    again = await memory.record(payload("r2", "a", "b, said better"))
    assert (again.status, await users(memory, first.conversation_id)) == ("branched", ["a"])
    turns = await (await memory.load_conversation(again.conversation_id)).turns()
    assert [(turn.user, turn.assistant) for turn in turns] == [("a", "b, said better")]


async def test_a_sliding_window_over_the_history_adds_only_what_is_new(memory: Memory) -> None:
    await memory.record(payload("r1", "u1", "a1", "u2", "a2", "u3", "a3"))
    await memory.record(payload("r2", "u2", "a2", "u3", "a3", "u4", "a4"))
    third = await memory.record(payload("r3", "u4", "a4", "u5", "a5"))
    assert await users(memory, third.conversation_id) == ["u1", "u2", "u3", "u4", "u5"]


async def test_a_question_that_is_sent_again_with_its_answer_is_not_doubled(memory: Memory) -> None:
    await memory.record(payload("r1", "u1", "a1", "u2"))
    second = await memory.record(payload("r2", "u1", "a1", "u2", "a2", "u3", "a3"))
    turns = await (await memory.load_conversation(second.conversation_id)).turns()
    assert [(turn.user, turn.assistant, turn.request_id) for turn in turns] == [("u1", "a1", "r1"), ("u2", "a2", "r1"), ("u3", "a3", "r2")]


async def test_what_was_forgotten_does_not_come_back_with_the_history(memory: Memory) -> None:
    for day, texts in ((1, ("u1", "a1")), (2, ("u1", "a1", "u2", "a2"))):
        recorded = await memory.record({**payload(f"r{day}", *texts), "timestamp": f"2026-01-0{day}T00:00:00Z"})
    await memory.forget(before=datetime(2026, 1, 2, tzinfo=UTC))
    await memory.record(payload("r3", "u1", "a1", "u2", "a2", "u3", "a3"))
    assert await users(memory, recorded.conversation_id) == ["u2", "u3"]


async def test_a_history_that_begins_earlier_than_the_conversation_is_another_past(memory: Memory) -> None:
    first = await memory.record(payload("r1", "u2", "a2"))
    second = await memory.record(payload("r2", "u1", "a1", "u2", "a2", "u3", "a3"))
    assert second.status == "branched"
    assert await users(memory, first.conversation_id) == ["u2"]
    assert await users(memory, second.conversation_id) == ["u1", "u2", "u3"]


async def test_tool_results_that_arrive_later_join_their_turn(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    asked = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t", "function": {"name": "cat", "arguments": "{}"}}]},
    ]
    await conversation.record(messages=asked)
    await conversation.record(
        messages=[*asked, {"role": "tool", "tool_call_id": "t", "content": "text"}, {"role": "assistant", "content": "ok"}]
    )
    turns = await conversation.turns()
    assert len(turns) == 1
    assert turns[0].tool_calls[0].result is not None
    assert turns[0].assistant == "ok"


async def test_a_turn_that_grows_keeps_its_request_and_the_parts_it_had(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(
        user="u", context_files=[{"file_path": "a.py"}], changes=[{"file_path": "b.py"}], checkpoints=[{"git_hash": "ae"}]
    )
    await conversation.record(messages=said("u", "answer"))
    turn = (await conversation.turns())[0]
    assert (turn.assistant, len(turn.context_files), len(turn.changes), len(turn.checkpoints)) == ("answer", 1, 1, 1)
    recorded = await memory.record(payload("r0", "u0", "a0", "u1"))
    await (await memory.load_conversation(recorded.conversation_id)).record(messages=said("u0", "a0", "u1", "a1"))
    turns = await (await memory.load_conversation(recorded.conversation_id)).turns()
    assert len({turn.id for turn in turns}) == 2
    assert [(turn.request_id, turn.request_ordinal) for turn in turns] == [("r0", 0), ("r0", 1)]


async def test_engines_that_send_a_question_and_its_answer_with_the_next_one_double_nothing(memory: Memory) -> None:
    texts = ("u0", "a0", "u1", "a1", "u2", "a2", "u3")
    ids = {(await memory.record(payload(f"r{n}", *texts[:n]))).conversation_id for n in (1, 3, 5, 7)}
    assert len(ids) == 1
    turns = await (await memory.load_conversation(ids.pop())).turns()
    assert [(turn.user, turn.assistant) for turn in turns] == [("u0", "a0"), ("u1", "a1"), ("u2", "a2"), ("u3", "")]
    assert len(await memory.list_conversations()) == 1


async def test_two_edits_of_one_question_are_two_branches(memory: Memory) -> None:
    await memory.record(payload("r0", "u0", "a0", "u1", "A1"))
    one = await memory.record(payload("r1", "u0", "a0", "u1", "B1", "x2", "B2"))
    two = await memory.record(payload("r2", "u0", "a0", "u1", "C1", "x2", "C2"))
    three = await memory.record(payload("r3", "u0", "a0", "u1", "B1", "x2", "D2"))
    assert len({one.conversation_id, two.conversation_id, three.conversation_id}) == 3
    for recorded, answers in ((one, ["a0", "B1", "B2"]), (two, ["a0", "C1", "C2"]), (three, ["a0", "B1", "D2"])):
        turns = await (await memory.load_conversation(recorded.conversation_id)).turns()
        assert [turn.assistant for turn in turns] == answers


async def test_the_same_history_sent_at_once_by_several_is_recorded_once(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await asyncio.gather(*(conversation.record(messages=said("u0", "a0")) for _ in range(4)))
    assert await users(memory, conversation.id) == ["u0"]
    await conversation.record(user="u1", assistant="a1")
    await asyncio.gather(*(conversation.record(messages=said("u0", "a0", "u1, edited", "b1")) for _ in range(4)))
    branches = await memory.store.conversations.branches(memory.workspace, conversation.id)
    assert [await users(memory, branch.id) for branch in branches] == [["u0", "u1, edited"]]


async def test_a_turn_may_grow_by_a_tool_result_alone(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    asked = [*said("u"), {"role": "assistant", "content": "look", "tool_calls": [{"id": "t", "name": "cat", "arguments": {}}]}]
    await conversation.record(messages=asked)
    await conversation.record(messages=[*asked, {"role": "tool", "tool_call_id": "t", "content": "text"}])
    calls = (await conversation.turns())[0].tool_calls
    assert [call.result.result if call.result else None for call in calls] == ["text"]


async def test_a_turn_that_is_said_again_later_is_new(memory: Memory) -> None:
    sent = (("hi", "hello"), ("fix", "done"), ("hi", "hello again"), ("hi", "hello"))
    recorded = [await memory.record(payload(f"r{n}", *texts)) for n, texts in enumerate(sent)]
    assert {one.status for one in recorded} == {"created"}
    assert await users(memory, recorded[0].conversation_id) == ["hi", "fix", "hi", "hi"]


async def test_one_request_id_for_each_call_of_a_model_makes_one_turn_grow(memory: Memory) -> None:
    texts: list[dict[str, Any]] = []
    for turn in range(3):
        for step in ("question", "first step", "answer"):
            texts.append({"role": "user" if step == "question" else "assistant", "content": f"{step} {turn}"})
            await memory.record({**payload(f"{turn}{step}"), "messages": texts})
            again = await memory.record({**payload(f"{turn}{step}"), "messages": texts})
            assert again.status == "unchanged"
    turns = await (await memory.load_conversation((await memory.list_conversations())[0].id)).turns()
    assert [len(turn.messages) for turn in turns] == [3, 3, 3]
    assert len(await memory.list_conversations()) == 1


async def test_a_late_retry_of_half_a_turn_changes_nothing(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    steps = [{"role": "user", "content": "q"}, {"role": "assistant", "content": "step"}, {"role": "assistant", "content": "answer"}]
    for size in (2, 3, 2):
        await conversation.record(messages=steps[:size])
    assert [len(turn.messages) for turn in await conversation.turns()] == [3]


async def test_a_hole_that_forgetting_left_stays_a_hole(memory: Memory) -> None:
    for n, year in enumerate((2020, 2024, 2020, 2024)):
        await memory.record({**payload(f"r{n}", f"u{n}", f"a{n}"), "timestamp": f"{year}-01-01T00:00:00Z"})
    await memory.forget(before=datetime(2022, 1, 1, tzinfo=UTC))
    await memory.record(payload("r9", *(text for n in range(5) for text in (f"u{n}", f"a{n}"))))
    infos = await memory.list_conversations()
    assert [await users(memory, info.id) for info in infos] == [["u1", "u3", "u4"]]


async def test_a_window_that_was_cut_inside_a_turn_doubles_nothing(memory: Memory) -> None:
    await memory.record(payload("r1", "u0", "a0", "u1", "a1"))
    cut = [{"role": "assistant", "content": "a1"}, *said("u2", "a2")]
    recorded = await memory.record({**payload("r2"), "messages": cut})
    assert await users(memory, recorded.conversation_id) == ["u0", "u1", "u2"]


async def test_a_single_question_that_was_the_first_one_before_is_new(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(messages=said("continue", "ok", "and", "so"))
    await conversation.record(messages=said("continue"))
    assert await users(memory, conversation.id) == ["continue", "and", "continue"]


async def test_what_comes_with_the_growth_of_a_turn_is_added_to_what_it_had(memory: Memory) -> None:
    first = {**payload("r0", "u"), "context_files": [{"file_path": "a.py", "usefulness": 0.5}]}
    more = {**payload("r1", "u", "answer"), "context_files": [{"file_path": "a.py", "usefulness": 0.5}, {"file_path": "b.py"}]}
    await memory.record(first)
    recorded = await memory.record({**more, "code_changes": [{"file_path": "c.py"}]})
    turn = (await (await memory.load_conversation(recorded.conversation_id)).turns())[0]
    assert ([part.file_path for part in turn.context_files], [part.file_path for part in turn.changes]) == (["a.py", "b.py"], ["c.py"])


async def test_a_branch_never_changes_the_turns_it_inherits(memory: Memory) -> None:
    parent = await memory.create_conversation(project="p")
    await parent.record(messages=said("a", "b", "c"))
    branch = await parent.branch()
    turn = await branch.record(messages=said("a", "b", "c", "d"))
    assert [(one.user, one.assistant) for one in await parent.turns()] == [("a", "b"), ("c", "")]
    grown = await (await memory.load_conversation(turn.conversation_id)).turns()
    assert [(one.user, one.assistant) for one in grown] == [("a", "b"), ("c", "d")]


@pytest.mark.parametrize("told_in", [0, 1])
async def test_an_edit_that_one_request_tells_and_another_only_shows_is_one_change(memory: Memory, told_in: int) -> None:
    call = {"id": "t1", "name": "Edit", "arguments": {"file_path": "x.py", "old_string": "a\n", "new_string": "b\nc\n"}}
    said = [{"role": "user", "content": "Do it"}, {"role": "assistant", "content": None, "tool_calls": [call]}]
    more = [{"role": "tool", "tool_call_id": "t1", "content": "ok"}, {"role": "assistant", "content": "Done"}]
    told = [{"file_path": "x.py", "tool_call_id": "t1", "line_start": 3, "line_end": 4, "severity": "high", "change_summary": "null check"}]
    for number, messages in enumerate((said, [*said, *more])):
        changes = {"code_changes": told} if number == told_in else {}
        await memory.record({"project_id": "p", "chat_meta": {"chat_id": "c"}, "request_id": f"r{number}", "messages": messages, **changes})
    (info,) = await memory.list_conversations()
    (turn,) = await (await memory.load_conversation(info.id)).turns()
    (change,) = turn.changes
    assert (change.line_start, change.severity, change.change_summary, change.lines_added) == (3, "high", "null check", 2)
    assert change.diff is not None
