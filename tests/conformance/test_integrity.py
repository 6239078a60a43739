"""Integrity: every content keeps its full hash, cut or not, redacted first; verify tells match from difference."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.errors import DamagedStoreError
from recollect.identity import content_hash
from recollect.limits import MESSAGE_CHARS_MAX, RESULT_CHARS_MAX
from recollect.memory import Memory
from tests.spoiling import spoil


async def test_every_content_has_its_full_hash(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.record(
        user="Fix it", assistant="Done", tool_calls=[{"name": "ls", "arguments": {"path": "x"}, "result": "y"}]
    )
    assert turn.messages[0].content_hash == content_hash("Fix it")
    call = turn.tool_calls[0]
    assert call.arguments_hash == content_hash('{"path":"x"}')
    assert call.result is not None
    assert call.result.content_hash == content_hash("y")


async def test_what_is_too_big_is_cut_with_a_mark_and_keeps_its_hash_and_size(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    long, result = "é" * (MESSAGE_CHARS_MAX + 5), "r" * (RESULT_CHARS_MAX + 5)
    recorded = await conversation.record(user=long, tool_calls=[{"name": "cat", "result": result}])
    turn = (await conversation.turns())[0]
    assert turn == recorded
    message = turn.messages[0]
    assert message.content is not None
    assert len(message.content) <= MESSAGE_CHARS_MAX
    assert "cut:" in message.content
    assert (message.content_hash, message.content_bytes) == (content_hash(long), 2 * len(long))
    kept = turn.tool_calls[0].result
    assert kept is not None
    assert (kept.content_hash, kept.result_size_bytes) == (content_hash(result), len(result))
    assert (await memory.verify()).status == "intact"
    assert (await memory.verify(message.id, long)).status == "matches"


async def test_what_nobody_told_is_unknown(memory: Memory) -> None:
    call = {"tool_call_id": "t1", "tool_name": "ls", "status": "success"}
    told = {"tool_call_id": "t2", "tool_name": "cat", "arguments": {"path": "a.py", "n": 1}, "result": ""}
    recorded = await memory.record({"project_id": "p", "messages": [{"role": "user", "content": "look"}], "tool_calls": [call, told]})
    (turn,) = await memory.store.turns.by_id(memory.workspace, list(recorded.turn_ids))
    silent, spoken = turn.tool_calls
    for content in ("a.py b.py", "x"):
        assert (await memory.verify(silent.id, content)).status == "unknown"
    assert (await memory.verify(spoken.id, "")).status == "matches"
    assert (await memory.verify(spoken.id, '{"n": 1,  "path": "a.py"}')).status == "matches"
    assert (await memory.verify(spoken.id, '{"path": "b.py"}')).status == "differs"
    assert (await memory.verify()).status == "intact"


async def test_verify_redacts_first_and_tells_matching_from_differing(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    secret = "the key is password=hunter2hunter2"
    turn = await conversation.record(user=secret, assistant="ok", tool_calls=[{"name": "ls", "result": "out"}])
    assert (await memory.verify(turn.messages[0].id, secret)).status == "matches"
    assert (await memory.verify(turn.id, "ok")).status == "matches"
    assert (await memory.verify(turn.messages[0].id, "other")).status == "differs"
    assert (await memory.verify(turn.tool_calls[0].id, "out")).status == "matches"
    assert (await memory.verify("nobody", "x")).status == "unknown"


async def test_a_hash_that_the_sender_gave_is_kept_beside_ours(memory: Memory) -> None:
    original = "text with password=hunter2hunter2"
    payload = {
        "project_id": "p",
        "messages": [
            {"role": "user", "content_summary": "a summary only", "content_hash": content_hash("the whole text")},
            {"role": "assistant", "content": original, "content_hash": content_hash(original)},
        ],
    }
    recorded = await memory.record(payload)
    user, answer = (await (await memory.load_conversation(recorded.conversation_id)).turns())[0].messages
    assert (user.content, user.content_summary) == (None, "a summary only")
    assert user.content_hash == user.source_hash == content_hash("the whole text")
    assert (await memory.verify(user.id, "the whole text")).status == "matches"
    assert answer.content_hash != answer.source_hash == content_hash(original)
    assert (await memory.verify(answer.id, original)).status == "matches"


@pytest.mark.parametrize("written", ["sha256:{}", "{}", "SHA256:{}", "sha256:{upper}", " {upper} "])
async def test_a_hash_that_the_sender_gave_is_compared_as_what_it_is_however_it_is_written(memory: Memory, written: str) -> None:
    bare = content_hash("the whole text").removeprefix("sha256:")
    given = written.format(bare, upper=bare.upper())
    payload = {
        "project_id": "p",
        "messages": [{"role": "user", "content_summary": "a summary only", "content_hash": given}],
        "context_files": [{"file_path": "a.py", "content_hash": given}],
        "code_changes": [{"file_path": "a.py", "code_after_hash": given}],
    }
    recorded = await memory.record(payload)
    (turn,) = await memory.store.turns.by_id(memory.workspace, list(recorded.turn_ids))
    for own_id in (turn.messages[0].id, turn.context_files[0].id, turn.changes[0].id):
        assert (await memory.verify(own_id, "the whole text")).status == "matches"
        assert (await memory.verify(own_id, "another text")).status == "differs"


@pytest.mark.parametrize("given", ["md5:d41d8cd98f00b204e9800998ecf8427e", "x", "sha256:" + "g" * 64, "sha256:" + "a" * 63])
async def test_what_is_no_hash_tells_nothing(memory: Memory, given: str) -> None:
    messages = [{"role": "user", "content_summary": "a summary only", "content_hash": given}, {"role": "assistant", "content": "said"}]
    change = {"file_path": "a.py", "code_after_hash": given}
    recorded = await memory.record({"project_id": "p", "messages": messages, "code_changes": [change]})
    (turn,) = await memory.store.turns.by_id(memory.workspace, list(recorded.turn_ids))
    for own_id in (turn.messages[0].id, turn.changes[0].id):
        assert (await memory.verify(own_id, "x")).status == "unknown"
    assert (await memory.verify(turn.id, "said")).status == "matches"


async def test_a_file_is_the_one_that_was_written_with_its_final_newline_and_without(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    call = {"id": "t", "name": "Write", "arguments": {"file_path": "a.py", "content": "x = 1\ny = 2\n"}, "result": "x = 1"}
    turn = await conversation.record(user="x = 1", tool_calls=[call])
    change = turn.changes[0]
    told = [(await memory.verify(change.id, content)).status for content in ("x = 1\ny = 2\n", "x = 1\ny = 2", "x = 1\ny = 2\n\n")]
    assert told == ["matches", "matches", "differs"]
    assert (await memory.verify(turn.messages[0].id, "x = 1\n")).status == "differs", "of a message every character counts"


async def test_times_and_odd_numbers_in_arguments_come_back_as_they_were_stored(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    arguments = {"when": datetime(2026, 1, 1, tzinfo=UTC), "naive": datetime(2026, 1, 1), "big": 1e300, "set": {1}}  # noqa: DTZ001  as users give it
    turn = await conversation.record(user="x", tool_calls=[{"name": "t", "arguments": arguments, "result": "y"}])
    assert await conversation.turns() == [turn]
    assert (await memory.verify()).status == "intact"
    message = {"role": "assistant", "content": "x", "token_count": 1e300, "usage": {"output_tokens": 2**63 - 1}}
    recorded = await memory.record({"messages": [message, message], "context_files": [{"file_path": "a.py", "line_start": 1e20}]})
    assert recorded.status == "created"


async def test_projects_of_one_directory_are_seen_together(memory: Memory, tmp_path: Path) -> None:
    await memory.record({"project_id": "named", "cwd": str(tmp_path), "messages": [{"role": "user", "content": "giraffe"}]})
    await (await memory.create_conversation(cwd=tmp_path)).record(user="giraffe")
    assert len(await memory.list_conversations(cwd=tmp_path)) == 2
    assert len((await memory.search("giraffe", cwd=tmp_path)).hits) == 2


READS: dict[str, Callable[[Memory, str, Path], Awaitable[object]]] = {
    "summary": lambda memory, own_id, _: memory.store.derived.summaries(memory.workspace, own_id, None),
    "insight": lambda memory, own_id, _: memory.insights(conversation=own_id),
    "scope": lambda memory, _, folder: memory.scopes("ship", cwd=folder),
}
REPAIRS: dict[str, Callable[[Memory, str, Path], Awaitable[object]]] = {
    "summary": lambda memory, *_: memory.distill(rebuild=True),
    "insight": lambda memory, own_id, _: memory.analyze([own_id], again=True),
    "scope": lambda memory, _, folder: memory.index(folder, again=True),
}


@pytest.mark.parametrize("kind", list(READS))
async def test_what_was_made_of_turns_and_code_is_checked_refused_and_made_again(memory: Memory, tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "shop"
    folder.mkdir()
    (folder / "cart.py").write_text("def ship(order):\n    return order\n")
    conversation = await memory.create_conversation(folder)
    for n in range(6):
        await conversation.record(user=f"Please change the port of the service to {8000 + n}", assistant=f"Changed it to {8000 + n}.")
    await memory.distill()
    await memory.analyze([conversation.id])
    await memory.index(folder)
    for read in READS.values():
        assert await read(memory, conversation.id, folder)
    whole = await memory.verify()
    assert (whole.status, whole.damage) == ("intact", ())
    spoil(memory, kind)
    found = await memory.verify()
    assert found.status == "damaged"
    assert {damage.kind for damage in found.damage} == {kind}
    assert found.checked == whole.checked
    with pytest.raises(DamagedStoreError, match=f"{kind} .* is not what was written: .*`recollect "):
        await READS[kind](memory, conversation.id, folder)
    await REPAIRS[kind](memory, conversation.id, folder)
    assert await READS[kind](memory, conversation.id, folder)
    assert (await memory.verify()).status == "intact"


@pytest.mark.parametrize("kind", list(READS))
async def test_what_is_damaged_can_be_forgotten(memory: Memory, tmp_path: Path, kind: str) -> None:
    (tmp_path / "cart.py").write_text("def ship(order):\n    return order\n")
    conversation = await memory.create_conversation(tmp_path)
    for n in range(6):
        await conversation.record(user=f"Please change the port of the service to {8000 + n}", assistant=f"Changed it to {8000 + n}.")
    await memory.distill()
    await memory.analyze([conversation.id])
    await memory.index(tmp_path)
    spoil(memory, kind)
    await memory.forget(project=tmp_path.name)
    assert await memory.list_conversations() == []
    assert (await memory.verify()).status == "intact"
