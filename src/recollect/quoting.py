"""What a passage of a turn or summary says, and a tool step in words: read from its owner again; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.limits import TOOL_STEP_CHARS_MAX
from recollect.model import Passage
from recollect.text import cut, shorten, term_text

_QUESTION_CHARS_MAX = 160

if TYPE_CHECKING:
    from recollect.model import Summary, ToolCall, Turn


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


def key_text(turn: Turn, passage: Passage) -> str:
    """Return what a passage is searched by: when and by whom it was said, the question it belongs to, and its text."""
    moment = turn.started_at or turn.ended_at
    date = "" if moment is None else f"[{moment.day} {moment:%B %Y}] "
    speaker = {"question": "user", "answer": "assistant", "tool": "tool"}.get(passage.part, passage.part)
    asked = "" if passage.part == "question" else shorten(turn.user, _QUESTION_CHARS_MAX)
    return f"{date}{speaker}: {passage_text(turn, passage)}" + (f"\n{asked}" if asked else "")


def summary_text(summary: Summary) -> str:
    """Return a summary as one text: what was said, what was done, what was found."""
    return "\n".join(part for part in (summary.summary, summary.actions, *summary.key_findings) if part)


def summary_passages(summary: Summary) -> tuple[Passage, ...]:
    """Return what a summary is searched by: its words in one passage, with its topics, files and tools among the terms."""
    text = summary_text(summary)
    told = " ".join((text, *summary.topics, *summary.files_mentioned, *summary.tools_used))
    words = term_text(told)
    return (Passage(part="summary", ordinal=0, start=0, end=len(text), terms=words),) if words else ()
