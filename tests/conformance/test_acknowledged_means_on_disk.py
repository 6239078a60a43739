"""Acknowledged means on disk: what `record` returned is there for every other process."""

from __future__ import annotations

from typing import Any

from recollect.memory import Memory
from recollect.store.shapes import TurnRange
from tests.kit import OpenMemory


async def test_a_recorded_turn_is_seen_by_another_opening_of_the_store(memory: Memory, reopen: OpenMemory) -> None:
    conversation = await memory.create_conversation(project="shop")
    turn = await conversation.record(user="Fix it", assistant="Done")
    other = await reopen()
    assert await (await other.load_conversation(conversation.id)).turns() == [turn]


async def test_what_comes_out_is_what_went_in_with_all_its_parts(memory: Memory, everything: dict[str, Any]) -> None:
    recorded = await memory.record(everything)
    turns = await memory.store.turns.history(memory.workspace, recorded.conversation_id, TurnRange())
    assert [turn.id for turn in turns] == list(recorded.turn_ids)
    turn = turns[0]
    assert (turn.user, turn.assistant) == ("Fix the login bug", "Added a null check")
    assert [m.role for m in turn.messages] == ["system", "user", "assistant", "assistant"]
    assert turn.messages[2].reasoning == "auth.py reads the token unchecked"
    assert [(c.tool_name, c.status, c.duration_ms) for c in turn.tool_calls] == [
        ("cat", "failed", None),
        ("update_textdoc", "success", 41.0),
    ]
    assert [a.path for a in turn.tool_calls[0].accessed] == ["src/auth.py", "README.md"]
    assert turn.tool_calls[0].message_id == turn.messages[2].id
    assert [(f.file_path, f.usefulness, f.symbols) for f in turn.context_files] == [
        ("src/auth.py", 0.92, ("login_user",)),
        ("docs/errors.md", None, ()),
    ]
    assert (turn.changes[0].tool_call_id, turn.changes[0].lines_added, turn.changes[0].diff) == ("t2", 3, "+ if token is None")
    assert turn.checkpoints[0].git_hash == "ae09"
    assert (turn.model, turn.chat_mode, turn.base_chat_id, turn.request_attempt_id) == ("m", "AGENT", "b0", "a1")
    assert (turn.prompt_tokens, turn.completion_tokens, turn.related_artifacts) == (900, 80, ("issue-7",))
    assert (await memory.verify()).status == "intact"


async def test_closing_and_opening_again_changes_nothing(memory: Memory, reopen: OpenMemory, everything: dict[str, Any]) -> None:
    recorded = await memory.record(everything)
    before = await (await memory.load_conversation(recorded.conversation_id)).export()
    other = await reopen()
    assert await (await other.load_conversation(recorded.conversation_id)).export() == before
