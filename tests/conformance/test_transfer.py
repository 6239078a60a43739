"""Export and import: a document imports back to the same conversation, in any store, as often as one likes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.errors import ConflictError, InputError
from recollect.memory import Memory


async def test_export_import_export_gives_the_same_document(memory: Memory, everything: dict[str, Any], elsewhere: Memory) -> None:
    recorded = await memory.record(everything)
    conversation = await memory.load_conversation(recorded.conversation_id)
    await conversation.record(user="and then?", assistant=None, tool_calls=[{"name": "ls"}])
    await conversation.begin("open end")
    await conversation.change(title="A title", tags=["x", "y"], status="archived")
    document = await conversation.export()
    imported = await elsewhere.import_conversation(document)
    assert imported.id == conversation.id
    assert await imported.export() == document
    assert (await elsewhere.verify()).status == "intact"
    assert [turn.id for turn in await imported.turns()] == [turn.id for turn in await conversation.turns()]
    assert (await elsewhere.search("null check")).hits


async def test_a_branch_is_exported_with_what_it_inherits(memory: Memory, elsewhere: Memory) -> None:
    parent = await memory.create_conversation(project="p")
    await parent.record(user="a", assistant="b")
    branch = await parent.branch(from_turn=0)
    await branch.record(user="c", assistant="d")
    document = await branch.export()
    imported = await elsewhere.import_conversation(document)
    assert [turn.user for turn in await imported.turns()] == ["a", "c"]
    assert await imported.export() == document
    await imported.record(user="e")
    assert [turn.index for turn in await imported.turns()] == [0, 1, 2]


async def test_importing_again_changes_nothing_and_another_content_is_a_conflict(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="a", assistant="b")
    document = await conversation.export()
    await memory.import_conversation(document)
    assert await conversation.export() == document
    await conversation.record(user="c")
    with pytest.raises(ConflictError):
        await memory.import_conversation(document)
    await memory.import_conversation(document, replace=True)
    assert await conversation.export() == document
    copy = await memory.import_conversation(document, new_id=True)
    assert copy.id != conversation.id
    assert [turn.user for turn in await copy.turns()] == ["a"]


async def test_gaps_that_forgetting_left_survive_a_transfer(memory: Memory, elsewhere: Memory) -> None:
    from datetime import UTC, datetime

    conversation = await memory.create_conversation(project="p")
    for day in (1, 2, 3):
        await conversation.record(user=str(day), timestamp=f"2026-01-{day:02}T00:00:00Z")
    await memory.forget(before=datetime(2026, 1, 2, tzinfo=UTC))
    document = await conversation.export()
    imported = await elsewhere.import_conversation(document)
    assert [turn.index for turn in await imported.turns()] == [1, 2]
    assert await imported.export() == document


async def test_markdown_is_for_reading(memory: Memory, everything: dict[str, Any]) -> None:
    recorded = await memory.record(everything)
    text = await (await memory.load_conversation(recorded.conversation_id)).export("markdown")
    for expected in (
        "# Untitled conversation",
        "## Turn 0",
        "**User**",
        "Fix the login bug",
        "`update_textdoc`",
        "changed `src/auth.py` +3 −1",
    ):
        assert expected in text
    with pytest.raises(InputError, match="yaml"):
        await (await memory.load_conversation(recorded.conversation_id)).export("yaml")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "document", ["", "[]", "{}", "null", '{"format": "recollect-conversation"}', '{"format": "recollect-conversation", "version": 99}']
)
async def test_what_is_no_document_is_refused_and_nothing_is_written(memory: Memory, document: str) -> None:
    with pytest.raises(InputError):
        await memory.import_conversation(document)
    assert await memory.list_conversations() == []


async def test_a_document_that_was_altered_is_refused(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="they should get it", assistant="b")
    altered = (await conversation.export()).replace("should get it", "should not it")
    with pytest.raises(InputError, match="altered"):
        await memory.import_conversation(altered, replace=True)
    assert (await conversation.turns())[0].user == "they should get it"


async def test_a_document_with_a_damaged_turn_is_refused_whole(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="a", assistant="b")
    document = json.loads(await conversation.export())
    document["turns"][0]["status"] = "wonderful"
    document["conversation"]["id"] = "another"
    with pytest.raises(InputError, match="damaged"):
        await memory.import_conversation(document)
    assert len(await memory.list_conversations()) == 1


async def test_a_branch_imported_beside_its_parent_shows_each_turn_once(memory: Memory) -> None:
    parent = await memory.create_conversation(project="p")
    await parent.record(user="a")
    branch = await parent.branch()
    await branch.record(user="b")
    document = await branch.export()
    copy = await memory.import_conversation(document, new_id=True)
    assert [(turn.index, turn.user) for turn in await copy.turns()] == [(0, "a"), (1, "b")]
    await branch.delete()
    again = await memory.import_conversation(document)
    assert [(turn.index, turn.user) for turn in await again.turns()] == [(0, "a"), (1, "b")]


async def test_an_import_that_fails_leaves_what_it_was_to_replace(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="a", assistant="b")
    document = json.loads(await conversation.export())
    document["turns"] = document["turns"] * 2
    with pytest.raises(InputError, match="order"):
        await memory.import_conversation(document, replace=True)
    assert [turn.user for turn in await conversation.turns()] == ["a"]


async def test_a_copy_does_not_stand_in_the_way_of_the_original_request(memory: Memory, everything: dict[str, Any]) -> None:
    first = await memory.record(everything)
    document = await (await memory.load_conversation(first.conversation_id)).export()
    await memory.import_conversation(document, new_id=True)
    assert (await memory.record(everything)).status == "unchanged"
