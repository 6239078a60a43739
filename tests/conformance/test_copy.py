"""Copy: a whole store goes into another of any kind and back, in pieces, as often as one likes, and says the same there."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.documents.copying import copy_store
from recollect.errors import ConflictError, InputError
from recollect.memory import Memory
from recollect.model import Insight, Reference, Scope, Summary
from recollect.store import Store
from recollect.store.shapes import Draft, TurnRange
from recollect.store.turns import Turns

NOW = datetime(2026, 3, 2, tzinfo=UTC)


async def filled(memory: Memory, everything: dict[str, Any]) -> list[str]:
    """Fill a memory with everything that can be in one."""
    recorded = await memory.record(everything)
    root = await memory.load_conversation(recorded.conversation_id)
    for n in range(3):
        await root.record(user=f"and then {n}?", assistant="so", timestamp=f"2026-03-0{n + 1}T00:00:00Z")
    branch = await root.branch(from_turn=1, title="another way")
    await branch.record(user="otherwise", assistant="yes", request_id="b1")
    twig = await branch.branch()
    await twig.begin("still open")
    await root.change(title="renamed", tags=["x"], status="archived")
    lonely = await memory.create_conversation(project="other")
    derived = memory.store.derived
    low = Summary(id="s1", conversation_id=root.id, level=1, summary="x", key_findings=("f",), first_turn=0, last_turn=0, turn_count=1,
                  char_count=1, created_at=NOW, source_ids=recorded.turn_ids)  # fmt: skip
    await derived.put_summaries(memory.workspace, [low])
    await derived.put_insights(memory.workspace, [Insight(id="i", conversation_id=root.id, kind="k", body={"a": 1}, created_at=NOW)])
    scope = Scope(
        id="sc", project_id=root.info.project_id, name="login_user", kind="function", file_path="src/auth.py", line_start=1, line_end=9
    )
    await memory.store.code.put_scopes(memory.workspace, [scope])
    message = (await root.turns())[0].messages[1]
    await memory.store.code.put_references(memory.workspace, [Reference(message_id=message.id, scope_id="sc")])
    return [root.id, branch.id, twig.id, lonely.id]


async def told(memory: Memory, conversation_ids: list[str]) -> list[object]:
    """Return everything a memory says of conversations."""
    project = {one.name: one.id for one in await memory.projects()}["shop"]
    derived, workspace = memory.store.derived, memory.workspace
    said: list[object] = [
        await memory.list_conversations(),
        await memory.projects(),
        await memory.store.code.scopes(workspace, project, None),
    ]
    said += [await memory.store.code.references(workspace, ["sc"]), (await memory.verify()).status]
    for own_id in conversation_ids:
        conversation = await memory.load_conversation(own_id)
        said += [await conversation.export(), await conversation.turns(), await memory.store.conversations.held(workspace, own_id)]
        said += [await derived.summaries(workspace, own_id, None), await derived.insights(workspace, own_id)]
    said += [[(hit.id, hit.score, hit.passage) for hit in (await memory.search("login token null check", limit=20)).hits]]
    return said


async def test_a_store_says_the_same_after_it_was_copied_there_and_back(
    memory: Memory, elsewhere: Memory, everything: dict[str, Any]
) -> None:
    ids = await filled(memory, everything)
    before = await told(memory, ids)
    copied = await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)
    assert (copied.workspaces, copied.conversations, copied.turns, copied.new_turns) == (1, 4, 6, 6)
    assert await told(elsewhere, ids) == before
    stats, other = await memory.stats(), await elsewhere.stats()
    assert (stats.turns, stats.messages, stats.tool_calls, stats.passages) == (
        other.turns, other.messages, other.tool_calls, other.passages,
    )  # fmt: skip
    await memory.forget(project="shop")
    await memory.forget(project="other")
    assert (await copy_store(elsewhere.store.url, memory.store.url, workspace=memory.workspace)).new_turns == 6
    assert await told(memory, ids) == before


async def test_copying_again_changes_nothing_and_brings_what_is_new(memory: Memory, elsewhere: Memory, everything: dict[str, Any]) -> None:
    ids = await filled(memory, everything)
    await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)
    assert (await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)).new_turns == 0
    await (await memory.load_conversation(ids[1])).record(user="later")
    assert (await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)).new_turns == 1
    assert await told(elsewhere, ids) == await told(memory, ids)


async def test_a_copy_that_broke_off_is_taken_up_again(
    memory: Memory, elsewhere: Memory, everything: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from recollect.documents import copying

    ids = await filled(memory, everything)
    monkeypatch.setattr(copying, "_TURNS_PER_PAGE", 2)

    def stop(seen: int) -> None:
        if seen >= 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace, progress=stop)
    seen: list[int] = []
    copied = await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace, progress=seen.append)
    assert copied.turns == 6
    assert copied.new_turns == 2
    assert seen == sorted(seen)
    assert await told(elsewhere, ids) == await told(memory, ids)


async def test_what_went_on_in_the_copy_is_not_overwritten(memory: Memory, elsewhere: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="a")
    await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)
    there = await elsewhere.load_conversation(conversation.id)
    await there.record(user="gone on")
    with pytest.raises(ConflictError, match="gone on"):
        await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)
    await conversation.record(user="here something else")
    with pytest.raises(ConflictError, match="another turn"):
        await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)
    assert [turn.user for turn in await there.turns()] == ["a", "gone on"]


async def test_a_store_is_not_copied_into_itself_and_an_unknown_workspace_is_said(memory: Memory, store: Store, elsewhere: Memory) -> None:
    with pytest.raises(InputError, match="itself"):
        await copy_store(store.url, store.url)
    with pytest.raises(InputError, match="no workspace 'nobody'"):
        await copy_store(store.url, elsewhere.store.url, workspace="nobody")
    assert memory.workspace not in await store.workspaces()


async def test_what_is_recorded_during_a_copy_comes_with_the_next_one(
    memory: Memory, elsewhere: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="before")
    own = Turns.own

    async def busy(self: Turns, workspace: str, conversation_id: str, span: TurnRange) -> list[Draft]:
        if self is not elsewhere.store.turns and len(await conversation.turns()) == 1:
            await conversation.record(user="during")
        return await own(self, workspace, conversation_id, span)

    monkeypatch.setattr(Turns, "own", busy)
    assert (await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)).new_turns == 1
    assert (await copy_store(memory.store.url, elsewhere.store.url, workspace=memory.workspace)).new_turns == 1
    there = await elsewhere.load_conversation(conversation.id)
    await there.record(user="there")
    assert [(turn.index, turn.user) for turn in await there.turns()] == [(0, "before"), (1, "during"), (2, "there")]
