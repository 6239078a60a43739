"""The memory block of an agent project does what it says: recording off, saving later, a mirror in JSON."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.config import settings_from
from recollect.errors import NotFoundError
from recollect.memory import Memory
from recollect.settings import Settings
from recollect.store import Store
from tests.kit import said


def memory_with(store: Store, memory: Memory, **block: object) -> Memory:
    settings: Settings = settings_from({"store": store.url, "workspace": memory.workspace, "agent": {"memory": block}})
    return Memory(store, settings, memory.clock, memory.ids)


async def test_disabled_records_nothing_and_still_reads(memory: Memory, store: Store) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="earlier")
    off = memory_with(store, memory, enabled=False)
    turn = await (await off.load_conversation(conversation.id)).record(user="during")
    assert turn.user == "during"
    assert (await off.record({"messages": [{"role": "user", "content": "x"}]}, conversation=conversation.id)).status == "skipped"
    assert [one.user for one in await conversation.turns()] == ["earlier"]
    assert (await off.search("earlier")).hits
    unseen = await off.create_conversation(project="p")
    begun = await unseen.begin("question")
    assert (await unseen.finish(begun, [{"role": "assistant", "content": "answer"}])).assistant == "answer"
    assert (await off.record({"messages": [{"role": "user", "content": "x"}]})).status == "skipped"
    assert len(await memory.list_conversations()) == 1


async def test_without_auto_save_turns_wait_for_save(memory: Memory, store: Store) -> None:
    later = memory_with(store, memory, persistence={"auto_save": False})
    conversation = await later.create_conversation(project="p")
    first, second = await conversation.record(user="a", assistant="b"), await conversation.record(user="c")
    assert [(turn.index, turn.messages[0].sequence) for turn in (first, second)] == [(0, 0), (1, 2)]
    assert await conversation.turns() == []
    assert await later.save() == 2
    assert await conversation.turns() == [first, second]
    assert await later.save() == 0
    await conversation.record(user="d")
    begun = await conversation.begin("an open turn is there to survive, so it saves what waits and is saved itself")
    assert [turn.index for turn in await conversation.turns()] == [0, 1, 2, 3]
    assert (await conversation.finish(begun)).status == "complete"


async def test_a_mirror_holds_each_conversation_as_json_until_it_is_forgotten(memory: Memory, store: Store, tmp_path: Path) -> None:
    mirrored = memory_with(store, memory, persistence={"mirror": str(tmp_path / "mirror")})
    conversation = await mirrored.create_conversation(project="p")
    await conversation.record(user="a")
    await conversation.record(user="b")
    files = list((tmp_path / "mirror").iterdir())
    assert [file.read_text() for file in files] == [await conversation.export()]
    await mirrored.forget(conversation=conversation.id)
    assert list((tmp_path / "mirror").iterdir()) == []


async def test_histories_that_wait_are_recognised_when_they_are_saved(memory: Memory, store: Store) -> None:
    later = memory_with(store, memory, persistence={"auto_save": False})
    conversation, doomed = await later.create_conversation(project="p"), await later.create_conversation(project="q")
    await doomed.record(user="lost with its conversation")
    for texts in (("a", "b"), ("a", "b", "c", "d"), ("a", "b", "c", "d", "e", "f")):
        await conversation.record(messages=said(*texts))
    await memory.forget(conversation=doomed.id)
    with pytest.raises(NotFoundError):
        await later.save()
    assert [turn.user for turn in await conversation.turns()] == ["a", "c", "e"]
    assert await later.save() == 0


async def test_saving_twice_at_once_saves_once(memory: Memory, store: Store) -> None:
    later = memory_with(store, memory, persistence={"auto_save": False})
    conversation = await later.create_conversation(project="p")
    for n in range(5):
        await conversation.record(user=str(n))
    assert sum(await asyncio.gather(later.save(), later.save(), later.save())) == 5
    assert [turn.user for turn in await conversation.turns()] == ["0", "1", "2", "3", "4"]


async def test_mirrors_forget_what_memory_forgets_and_follow_open_turns(memory: Memory, store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    mirrored = memory_with(store, memory, persistence={"mirror": str(folder)})
    conversation = await mirrored.create_conversation(project="p")
    await conversation.record(user="zebraword", timestamp="2025-01-01T00:00:00Z")
    await conversation.record(user="stays")
    branch = await conversation.branch()
    await branch.record(user="ownword")
    turn = await conversation.begin("giraffeword")
    await conversation.finish(turn, [{"role": "assistant", "content": "lionword"}])

    def told() -> str:
        return "".join(file.read_text() for file in folder.iterdir())

    assert all(word in told() for word in ("zebraword", "giraffeword", "lionword", "ownword"))
    await mirrored.forget(before=datetime(2025, 6, 1, tzinfo=UTC))
    assert "zebraword" not in told()
    await mirrored.forget(conversation=conversation.id)
    assert "stays" not in told()
    assert "ownword" in told()
