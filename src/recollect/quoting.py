"""What a passage of a turn says, and a tool step in words: read from the turn itself; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.limits import TOOL_STEP_CHARS_MAX
from recollect.text import cut

if TYPE_CHECKING:
    from recollect.model import Passage, ToolCall, Turn


def step_text(call: ToolCall) -> str:
    """Return a tool step in words: the tool, what it was given, how it ended and what came back; cut to fit."""
    given = "" if call.arguments is None else msgspec.json.encode(call.arguments).decode()
    result = call.result
    outcome = "" if result is None else "\n".join(text for text in (result.error, result.result) if text)
    ended = " failed" if call.status == "failed" else ""
    return cut(f"{call.tool_name}{ended} {given}\n{outcome}", TOOL_STEP_CHARS_MAX)


def passage_text(turn: Turn, passage: Passage) -> str:
    """Return what a passage says."""
    if passage.part == "tool":
        call = next((call for call in turn.tool_calls if call.order == passage.ordinal), None)
        text = "" if call is None else step_text(call)
    else:
        message = turn.messages[passage.ordinal] if passage.ordinal < len(turn.messages) else None
        text = "" if message is None else message.text
    return text[passage.start : passage.end].strip()
