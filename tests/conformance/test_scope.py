"""Scope: every read and write stays in its workspace; canaries of another are never read, counted, found or changed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.errors import NotFoundError
from recollect.memory import Memory
from recollect.model import Insight, Scope, Summary
from recollect.store.shapes import CallFilter, ConversationChange, ConversationFilter, Probe, SearchScope, TurnRange
from tests.kit import OpenMemory

CANARY = "canaryzebra"
NOW = datetime(2026, 1, 1, tzinfo=UTC)


async def with_canaries(memory: Memory, reopen: OpenMemory) -> tuple[Memory, str, str]:
    theirs = await reopen(workspace=f"{memory.workspace}-theirs")
    recorded = await theirs.record(
        {
            "request_id": CANARY,
            "project_id": CANARY,
            "title": CANARY,
            "messages": [
                {"role": "user", "content": CANARY},
                {"role": "assistant", "content": CANARY, "tool_calls": [{"id": "t", "name": CANARY, "arguments": {"path": CANARY}}]},
            ],
            "context_files": [{"file_path": CANARY}],
        }
    )
    return theirs, recorded.conversation_id, recorded.turn_ids[0]


async def test_no_read_of_one_workspace_sees_another(memory: Memory, reopen: OpenMemory) -> None:
    theirs, conversation_id, turn_id = await with_canaries(memory, reopen)
    project_id = (await theirs.projects())[0].id
    await theirs.store.derived.put_insights(
        theirs.workspace, [Insight(id="i", conversation_id=conversation_id, kind="k", body={"x": CANARY}, created_at=NOW)]
    )
    await theirs.store.code.put_scopes(
        theirs.workspace, [Scope(id="s", project_id=project_id, name=CANARY, kind="function", file_path="a.py", line_start=1, line_end=2)]
    )
    store = memory.store
    probe = Probe(terms=(CANARY,), model="static256", vector=(1.0,) * 256, limit=9)
    assert await store.conversations.get(memory.workspace, conversation_id) is None
    assert await store.conversations.find(memory.workspace, ConversationFilter(), 99) == []
    assert await store.conversations.find(memory.workspace, ConversationFilter(project_ids=(project_id,)), 99) == []
    assert await store.conversations.branches(memory.workspace, conversation_id) == []
    assert await store.conversations.projects(memory.workspace) == []
    assert await store.turns.by_id(memory.workspace, [turn_id]) == []
    for reading in (
        store.turns.history(memory.workspace, conversation_id, TurnRange()),
        store.turns.outline(memory.workspace, conversation_id, TurnRange()),
        store.turns.calls(memory.workspace, conversation_id, CallFilter()),
        store.derived.summaries(memory.workspace, conversation_id, None),
        store.derived.insights(memory.workspace, conversation_id),
        store.search.candidates(memory.workspace, SearchScope(conversation_id=conversation_id), probe),
    ):
        with pytest.raises(NotFoundError):
            await reading
    assert await store.code.scopes(memory.workspace, project_id, None) == []
    for scope in (SearchScope(), SearchScope(project_ids=(project_id,))):
        found = await store.search.candidates(memory.workspace, scope, probe)
        assert (found.passages, found.passage_count, found.turn_count) == ((), 0, 0)
    assert (await memory.search(CANARY)).hits == ()
    assert await store.audit.hashes(memory.workspace, turn_id) == []
    stats = await memory.stats()
    assert (stats.conversations, stats.turns, stats.messages, stats.tool_calls, stats.passages) == (0, 0, 0, 0, 0)


async def test_no_write_of_one_workspace_changes_another(memory: Memory, reopen: OpenMemory) -> None:
    theirs, conversation_id, turn_id = await with_canaries(memory, reopen)
    before = await (await theirs.load_conversation(conversation_id)).export()
    store = memory.store
    assert (await store.conversations.remove(memory.workspace, [conversation_id], keep_inherited=False)).turns == 0
    assert await store.conversations.change(memory.workspace, conversation_id, ConversationChange(title="mine"), NOW) is None
    assert (await store.turns.forget_before(memory.workspace, datetime(2100, 1, 1, tzinfo=UTC), None)).turns == 0
    with pytest.raises(NotFoundError):
        await memory.load_conversation(conversation_id)
    with pytest.raises(NotFoundError):
        await store.derived.put_summaries(
            memory.workspace,
            [Summary(id="s", conversation_id=conversation_id, level=1, summary="x", first_turn=0, last_turn=0, turn_count=1, char_count=1,
                     created_at=NOW, source_ids=(turn_id,))],
        )  # fmt: skip
    assert await (await theirs.load_conversation(conversation_id)).export() == before


async def test_the_same_conversation_can_live_in_two_workspaces(memory: Memory, reopen: OpenMemory) -> None:
    theirs, conversation_id, _ = await with_canaries(memory, reopen)
    document = await (await theirs.load_conversation(conversation_id)).export()
    mine = await memory.import_conversation(document)
    assert mine.id == conversation_id
    await mine.record(user="only mine")
    assert len(await (await theirs.load_conversation(conversation_id)).turns()) == 1
    await memory.forget(conversation=conversation_id)
    assert await (await theirs.load_conversation(conversation_id)).export() == document


async def test_search_is_scoped_before_it_is_ranked(memory: Memory) -> None:
    """LESSONS: a global top K that is filtered afterwards loses recall as memory grows."""
    mine = await memory.create_conversation(project="mine")
    await mine.record(user="a rare needle among other words that make this passage long and weak in rank", assistant="found")
    noise = await memory.create_conversation(project="noise")
    for n in range(500):
        await noise.record(user="needle", assistant=f"needle needle {n}")
    assert [hit.conversation_id for hit in (await memory.search("needle", project="mine")).hits] == [mine.id]
    assert [hit.conversation_id for hit in (await mine.search_history("needle")).hits] == [mine.id]
