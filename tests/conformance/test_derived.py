"""Derived work: summaries with their sources, insights and scopes are kept, replaced and retired with what they came from."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from recollect.memory import Memory
from recollect.model import Insight, Reference, Scope, Summary

NOW = datetime(2026, 3, 2, tzinfo=UTC)


async def test_summaries_keep_their_files_and_findings(memory: Memory) -> None:
    """LESSONS: files and findings of a summary were computed and then not stored."""
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.record(user="a")
    summary = Summary(
        id="s", conversation_id=conversation.id, level=1, summary="said", actions="done", key_findings=("f1", "f2"),
        files_mentioned=("a.py",), tools_used=("ls",), topics=("auth",), first_turn=0, last_turn=0, turn_count=1, char_count=4,
        author="extractive", created_at=NOW, source_ids=(turn.id,),
    )  # fmt: skip
    await memory.store.derived.put_summaries(memory.workspace, [summary])
    assert await conversation.summaries() == [summary]
    better = msgspec.structs.replace(summary, summary="said better", author="model")
    await memory.store.derived.put_summaries(memory.workspace, [better])
    assert await conversation.summaries(level=1) == [better]
    assert await conversation.summaries(level=2) == []
    assert (await memory.stats()).summaries == {"1": 1}


async def test_replacing_a_turn_retires_the_summaries_that_told_it(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.record(user="a", request_id="r")
    low = Summary(id="s1", conversation_id=conversation.id, level=1, summary="x", first_turn=0, last_turn=0, turn_count=1, char_count=1,
                  created_at=NOW, source_ids=(turn.id,))  # fmt: skip
    high = msgspec.structs.replace(low, id="s2", level=2, source_ids=("s1",))
    await memory.store.derived.put_summaries(memory.workspace, [low, high])
    await conversation.record(user="b", request_id="r", replace=True)
    assert await conversation.summaries() == []


async def test_insights_and_scopes_come_back_as_they_were(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    insight = Insight(id="i", conversation_id=conversation.id, kind="topic", body={"main": "auth", "n": [1, None]}, created_at=NOW)
    await memory.store.derived.put_insights(memory.workspace, [insight, insight])
    assert await memory.store.derived.insights(memory.workspace, conversation.id) == [insight]
    project_id = conversation.info.project_id
    scopes = [
        Scope(
            id=f"s{n}",
            project_id=project_id,
            name=name,
            kind="function",
            file_path=path,
            line_start=n,
            line_end=n + 1,
            signature="def",
            content_hash="h",
        )
        for n, (name, path) in enumerate((("b", "x.py"), ("a", "x.py"), ("a", "w.py")))
    ]
    await memory.store.code.put_scopes(memory.workspace, scopes)
    await memory.store.code.put_scopes(memory.workspace, scopes[:1])
    assert await memory.store.code.scopes(memory.workspace, project_id, None) == [scopes[2], scopes[0], scopes[1]]
    assert await memory.store.code.scopes(memory.workspace, project_id, "a") == [scopes[2], scopes[1]]


async def test_references_from_messages_to_scopes_are_kept_once_and_go_with_either_end(memory: Memory) -> None:
    first, second = [await memory.create_conversation(project="p") for _ in range(2)]
    messages = [(await one.record(user="look at login_user", assistant="ok")).messages[0] for one in (first, second)]
    scope = Scope(id="s", project_id=first.info.project_id, name="login_user", kind="function", file_path="a.py", line_start=1, line_end=2)
    await memory.store.code.put_scopes(memory.workspace, [scope])
    wanted = [Reference(message_id=message.id, scope_id="s") for message in messages]
    await memory.store.code.put_references(memory.workspace, [*wanted, *wanted, Reference(message_id="nobody", scope_id="s")])
    found = await memory.store.code.references(memory.workspace, ["s", "nothing"])
    assert {(one.message_id, one.conversation_id) for one in found} == {(messages[0].id, first.id), (messages[1].id, second.id)}
    await memory.forget(conversation=first.id)
    assert [one.conversation_id for one in await memory.store.code.references(memory.workspace, ["s"])] == [second.id]


async def test_a_summary_that_is_written_again_stays_folded_and_is_retired_with_its_turn(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.record(user="a", request_id="r")
    low = Summary(id="s1", conversation_id=conversation.id, level=1, summary="xylophone", first_turn=0, last_turn=0, turn_count=1,
                  char_count=1, created_at=NOW, source_ids=(turn.id,))  # fmt: skip
    high = msgspec.structs.replace(low, id="s2", level=2, source_ids=("s1",))
    await memory.store.derived.put_summaries(memory.workspace, [low, high])
    await memory.store.derived.put_summaries(memory.workspace, [msgspec.structs.replace(low, summary="marmalade")])
    assert [hit.level for hit in (await memory.search("xylophone")).hits] == [2]
    assert [hit.level for hit in (await memory.search("marmalade")).hits] == [1]
    await conversation.record(user="b", request_id="r", replace=True)
    assert await conversation.summaries() == []
    assert (await memory.search("xylophone marmalade")).hits == ()


async def test_a_scope_that_is_written_again_keeps_who_speaks_of_it(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    message = (await conversation.record(user="look at login_user")).messages[0]
    project_id = conversation.info.project_id
    scope = Scope(id="s", project_id=project_id, name="login_user", kind="function", file_path="a.py", line_start=1, line_end=2)
    await memory.store.code.put_scopes(memory.workspace, [scope])
    await memory.store.code.put_references(memory.workspace, [Reference(message_id=message.id, scope_id="s")])
    moved = msgspec.structs.replace(scope, file_path="b.py", line_start=5, line_end=9)
    await memory.store.code.put_scopes(memory.workspace, [moved])
    assert await memory.store.code.scopes(memory.workspace, project_id, None) == [moved]
    assert len(await memory.store.code.references(memory.workspace, ["s"])) == 1


async def test_insights_are_in_the_order_of_their_times_to_the_fraction_of_a_second(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    made = [
        Insight(id=f"i{n}", conversation_id=conversation.id, kind="k", body={}, created_at=NOW.replace(microsecond=250_000 * n))
        for n in (3, 1, 0, 2)
    ]
    await memory.store.derived.put_insights(memory.workspace, made)
    assert [one.id for one in await memory.store.derived.insights(memory.workspace, conversation.id)] == ["i0", "i1", "i2", "i3"]
