"""Contexts on real transcripts: is a file that is about to be read again listed, and is the goal always in?

Every transcript under RECOLLECT_DATA is recorded turn by turn; before each turn a context is composed for its prompt.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from recollect import Memory, messages_to_turns


def transcripts() -> list[list[Any]]:
    """Return the messages of real Claude Code transcripts; none when RECOLLECT_DATA is not set."""
    data = os.environ.get("RECOLLECT_DATA")
    found: list[list[Any]] = []
    for path in sorted(Path(data, "samples", "claude-code").rglob("*.jsonl")) if data else []:
        records: list[Any] = []
        for line in path.read_text(errors="replace").splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and record.get("type") in {"user", "assistant"} and isinstance(record.get("message"), dict):
                records.append({**record["message"], "timestamp": record.get("timestamp")})
        found.append(records)
    return found


async def _measured(folder: Path) -> dict[str, float]:
    reads = listed = contexts = with_goal = recorded = 0
    async with await Memory.open(folder / "m.db", worker=False) as memory:
        for messages in transcripts():
            turns = messages_to_turns(messages)
            if len(turns) < 2:
                continue
            recorded += 1
            conversation = await memory.create_conversation(project="samples")
            seen: set[str] = set()
            for turn in turns:
                if seen or turn.index:
                    await memory.distill()
                    context = await memory.context(turn.user, conversation=conversation.id)
                    names = {section.name: section.items for section in context.sections}
                    contexts += 1
                    with_goal += bool(names.get("goal")) or not turns[0].user
                    shown = {item.id for item in names.get("files", ())}
                    again = {one.path for call in turn.tool_calls for one in call.accessed if one.kind == "read" and one.path in seen}
                    reads += len(again)
                    listed += len(again & shown)
                await memory.record(turn, conversation=conversation.id)
                seen |= {one.path for call in turn.tool_calls for one in call.accessed if not one.temporary}
    return {
        "transcripts": recorded,
        "contexts": contexts,
        "contexts_with_the_goal": round(with_goal / contexts, 3) if contexts else 0,
        "repeated_reads": reads,
        "repeated_reads_listed": round(listed / reads, 3) if reads else 0,
    }


def measure() -> dict[str, Any]:
    """Measure both."""
    if not transcripts():
        return {"skipped": "RECOLLECT_DATA names no folder with samples"}
    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(_measured(Path(folder)))
