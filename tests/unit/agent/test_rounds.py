"""How many rounds of tools an agent has is its own configuration's to say, and nobody else's; no affair of the store."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recollect.agent.agent import ConversationAgent
from recollect.agent.scripted import ScriptedAgentModel
from recollect.agent.settings import AgentConfig
from recollect.memory import Memory


async def test_as_many_rounds_as_are_allowed_are_had(tmp_path: Path) -> None:
    lines: list[Any] = [("count", {"n": n}) for n in range(52)]  # pydantic-ai's own limit is 50

    def count(n: int) -> int:
        """Count."""
        return n

    async with await Memory.open(tmp_path / "m.db", worker=False) as memory:
        agent = ConversationAgent(memory, ScriptedAgentModel(*lines, "Counted."), [count], AgentConfig(tool_rounds_max=52))
        reply = await (await agent.create_conversation(project="p")).send_message("Count")
    assert (reply.content, len(reply.tool_calls)) == ("Counted.", 52)
