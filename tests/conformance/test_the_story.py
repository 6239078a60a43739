"""The mission as one story: an agent works with tools, its process ends, another one goes on and knows what was done."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage, UserPromptPart

from recollect.agent.agent import ConversationAgent
from recollect.agent.scripted import ScriptedAgentModel
from recollect.agent.settings import AgentConfig
from recollect.memory import Memory
from tests.kit import OpenMemory

CODE = "def login_user(user):\n    return user.token.decode()\n"
FIXED = "def login_user(user):\n    if user.token is None:\n        return None\n    return user.token.decode()\n"
MAY_WRITE = AgentConfig(may_write=True)


def shown(messages: list[ModelMessage]) -> str:
    return "\n".join(str(part.content) for message in messages for part in message.parts if isinstance(part, UserPromptPart))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop" / "src").mkdir(parents=True)
    (tmp_path / "shop" / "src" / "auth.py").write_text(CODE)
    return tmp_path / "shop"


async def test_an_agent_fixes_a_bug_forgets_nothing_and_is_asked_about_it(memory: Memory, reopen: OpenMemory, shop: Path) -> None:
    model = ScriptedAgentModel(
        ["thinking: find it", ("grep_files", {"pattern": "def login_user"}), ("read_file", {"path": "src/auth.py"})],
        "login_user reads user.token without a check: an expired session has none.",
        ("edit_file", {"path": "src/auth.py", "old_string": CODE.splitlines()[1], "new_string": "\n".join(FIXED.splitlines()[1:])}),
        "I added a null check to login_user, so that an expired session is sent back to the login page.",
        ("read_file", {"path": "src/auth.py"}),
        "Yes: line 2 returns None before the token is decoded.",
    )
    agent = ConversationAgent(memory, model, config=MAY_WRITE)
    conversation = await agent.create_conversation(cwd=shop, title="Fix login crash", tags=["auth"])
    asked = ("Why does login crash with an expired session?", "Fix that.", "Is it safe now?")
    replies = [await conversation.send_message(text) for text in asked]
    assert (shop / "src" / "auth.py").read_text() == FIXED
    assert [len(reply.tool_calls) for reply in replies] == [2, 1, 1]
    assert "user.token without a check" in shown(model.asked[2])  # the second question depends on the first answer
    assert "null check" in shown(model.asked[4])

    # another process goes on, and knows
    later = await reopen()
    (session,) = await later.sessions(shop)
    assert (session.id, session.turn_count) == (conversation.id, 3)
    model = ScriptedAgentModel("Yes, with a null check in login_user.")
    agent = ConversationAgent(later, model, config=MAY_WRITE)
    resumed = await agent.load_conversation(session.id, cwd=shop)
    reply = await resumed.send_message("Did we fix that bug?")
    assert "I added a null check to login_user" in shown(model.asked[0])
    assert reply.context_used.items

    # and so does a conversation that begins anew, in the same project
    model = ScriptedAgentModel([("search_memory", {"query": "did we fix the login crash?"})], "We did.")
    fresh = await ConversationAgent(later, model).create_conversation(cwd=shop)
    found = (await fresh.send_message("Was the login crash ever fixed?")).tool_calls[0].result
    assert found is not None
    assert "null check" in (found.result or "")

    (similar, *_) = await agent.find_similar_conversations("crash of an expired session at login", cwd=shop)
    assert similar.conversation.id == conversation.id

    # why the line is as it is
    why = await later.why("src/auth.py", line=2, cwd=shop)
    assert why.changes[0].asked == "Fix that."
    assert why.changes[0].tool_call is not None
    assert why.changes[0].tool_call.tool_name == "edit_file"

    # summarise, branch, export, import
    for n in range(4):
        await resumed.record(user=f"Check page {n} of the shop", assistant=f"Page {n} works with expired sessions.")
    summaries = await resumed.summarize()
    assert summaries
    assert "src/auth.py" in summaries[0].files_mentioned
    branch = await resumed.branch(from_turn=1, title="Another fix")
    assert (await branch.send_message("What else could be done?")).turn.index == 2
    assert [turn.user for turn in await branch.turns()] == [*asked[:2], "What else could be done?"]
    document: dict[str, Any] = json.loads(await resumed.export())
    other = await reopen("another-workspace-" + later.workspace)
    copied = await ConversationAgent(other, ScriptedAgentModel("Yes.")).import_conversation(document)
    assert [turn.content_hash for turn in await copied.turns()] == [turn.content_hash for turn in await resumed.turns()]
    assert (await copied.send_message("Did we fix that bug?")).content == "Yes."
    assert (await later.verify()).status == "intact"
