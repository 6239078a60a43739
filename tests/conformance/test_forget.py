"""Forget forgets: no read reaches what was forgotten, and what was derived from it is gone with it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from recollect.errors import InputError, NotFoundError
from recollect.memory import Memory
from recollect.model import Message, Summary, Turn
from recollect.store.shapes import ConversationFilter

NOW = datetime(2026, 3, 2, tzinfo=UTC)


def summary_of(conversation_id: str, summary_id: str, level: int, sources: tuple[str, ...]) -> Summary:
    return Summary(
        id=summary_id, conversation_id=conversation_id, level=level, summary="told", first_turn=0, last_turn=0, turn_count=1, char_count=4,
        created_at=NOW, source_ids=sources,
    )  # fmt: skip


async def test_deleting_a_conversation_leaves_nothing_behind(memory: Memory) -> None:
    """LESSONS: messages, tool calls and summaries stayed behind."""
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.record(
        user="a", assistant="b", tool_calls=[{"name": "Read", "arguments": {"file_path": "x.py"}, "result": "y"}]
    )
    await memory.store.derived.put_summaries(memory.workspace, [summary_of(conversation.id, "s1", 1, (turn.id,))])
    await conversation.delete()
    stats = await memory.stats()
    assert (stats.conversations, stats.turns, stats.messages, stats.tool_calls, stats.passages, stats.summaries) == (0, 0, 0, 0, 0, {})
    assert await memory.store.turns.by_id(memory.workspace, [turn.id]) == []


async def test_forget_takes_a_conversation_a_project_a_time_or_an_agent(memory: Memory) -> None:
    async def remaining() -> list[str]:
        return sorted(info.title or "" for info in await memory.list_conversations())

    for title, project, agent, day in (
        ("a", "p", None, 1),
        ("b", "p", "codex", 2),
        ("c", "q", "codex", 3),
        ("d", "q", None, 4),
        ("e", "r", None, 5),
    ):
        conversation = await memory.create_conversation(project=project, title=title, agent=agent)
        await conversation.record(user=title, assistant="x", timestamp=f"2026-01-{day:02}T00:00:00Z")
    ident = {info.title: info.id for info in await memory.list_conversations()}
    assert (await memory.forget(conversation=ident["e"])).turns == 1
    assert await remaining() == ["a", "b", "c", "d"]
    assert (await memory.forget(origin="codex")).conversations == 2
    assert await remaining() == ["a", "d"]
    assert (await memory.forget(before=datetime(2026, 1, 2, tzinfo=UTC))).turns == 1
    assert await remaining() == ["d"]
    assert (await memory.forget(project="q")).conversations == 1
    assert await remaining() == []
    assert (await memory.verify()).status == "intact"


async def test_forget_before_keeps_newer_turns_and_their_numbers(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    words = {1: "apples", 2: "bananas", 3: "cherries"}
    turns = [await conversation.record(user=word, assistant="x", timestamp=f"2026-01-{day:02}T00:00:00Z") for day, word in words.items()]
    await memory.store.derived.put_summaries(
        memory.workspace,
        [
            summary_of(conversation.id, "s1", 1, (turns[0].id,)),
            summary_of(conversation.id, "s2", 2, ("s1",)),
            summary_of(conversation.id, "s3", 1, (turns[2].id,)),
        ],
    )
    forgotten = await memory.forget(before=datetime(2026, 1, 3, tzinfo=UTC), project="p")
    assert (forgotten.turns, forgotten.conversations) == (2, 0)
    assert [turn.index for turn in await conversation.turns()] == [2]
    assert [one.id for one in await conversation.summaries()] == ["s3"], "what was derived from a forgotten turn is forgotten"
    info = await memory.get_info(conversation.id)
    assert (info.turn_count, info.message_count) == (1, 2)
    assert (await memory.search("apples")).hits == ()
    await conversation.record(user="next")
    assert [turn.index for turn in await conversation.turns()] == [2, 3]


async def test_forget_needs_exactly_one_thing_to_forget(memory: Memory) -> None:
    wrongs: tuple[dict[str, Any], ...] = ({}, {"conversation": "x", "project": "p"}, {"origin": "a", "project": "p"})
    for wrong in wrongs:
        with pytest.raises(InputError, match="exactly one"):
            await memory.forget(**wrong)
    with pytest.raises(NotFoundError):
        await memory.forget(conversation="nobody")
    assert (await memory.forget(project="nobody")).conversations == 0


async def test_removing_what_is_not_there_is_harmless(memory: Memory) -> None:
    assert (await memory.store.conversations.remove(memory.workspace, ["nobody"], keep_inherited=True)).conversations == 0
    assert await memory.store.conversations.find(memory.workspace, ConversationFilter(), 9) == []


async def test_forgetting_takes_summaries_of_branches_and_names_of_projects(memory: Memory) -> None:
    parent = await memory.create_conversation(project="secretproject")
    turn = await parent.record(user="zebra")
    branch = await parent.branch()
    await branch.record(user="own")
    await memory.store.derived.put_summaries(memory.workspace, [summary_of(branch.id, "s", 1, (turn.id,))])
    await memory.forget(conversation=parent.id)
    assert await branch.summaries() == []
    await memory.forget(project="secretproject")
    assert await memory.projects() == []


async def test_a_list_entry_does_not_tell_what_was_forgotten(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="kept", timestamp="2026-02-01T00:00:00Z")
    await conversation.record(user="giraffe", timestamp="2025-01-01T00:00:00Z")
    await memory.forget(before=datetime(2025, 6, 1, tzinfo=UTC))
    assert (await memory.get_info(conversation.id)).last_message == "kept"


async def test_forgetting_everything_leaves_no_empty_conversations(memory: Memory) -> None:
    parent = await memory.create_conversation(project="p")
    await parent.record(user="a", timestamp="2025-01-01T00:00:00Z")
    await parent.branch()
    assert (await memory.forget(before=datetime(2025, 6, 1, tzinfo=UTC))).conversations == 2
    assert await memory.list_conversations() == []


async def test_a_moment_means_the_same_in_every_zone_and_without_one(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="a", timestamp="2026-01-01T11:00:00Z")
    same = datetime(2026, 1, 1, 13, 0, tzinfo=timezone(timedelta(hours=2)))
    assert (await memory.forget(before=same)).turns == 0, "what ended at that moment did not end before it"
    assert (await memory.forget(before=datetime(2026, 1, 1, 11, 0, 1))).turns == 1  # noqa: DTZ001  as users give it


async def test_a_turn_with_times_of_any_zone_is_kept_in_utc(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    for moment in (datetime(2026, 1, 1, 13, 0, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 1, 11, 0)):  # noqa: DTZ001  as above
        turn = Turn(messages=(Message(role="user", content="x", timestamp=moment),), started_at=moment, ended_at=moment)
        await memory.record(turn, conversation=conversation.id)
    turns = await conversation.turns()
    assert [turn.ended_at for turn in turns] == [datetime(2026, 1, 1, 11, 0, tzinfo=UTC)] * 2
    assert all(turn.messages[0].timestamp == turn.ended_at for turn in turns)
    assert (await memory.forget(before=datetime(2026, 1, 2, tzinfo=UTC))).turns == 2
