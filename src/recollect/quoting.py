"""What a passage of a turn or summary says, and a tool step in words: read from its owner again; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, cast

import msgspec

from recollect.limits import TOOL_STEP_CHARS_MAX
from recollect.model import Passage
from recollect.text import cut, shorten, term_text

_QUESTION_CHARS_MAX = 160
_SPEAKER = re.compile(r"([^\W\d_][\w'’.-]{0,30}(?: [^\W\d_][\w'’.-]{0,30})?):\s")

if TYPE_CHECKING:
    from collections.abc import Iterator

    from recollect.model import Insight, Json, Scope, Summary, ToolCall, Turn


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
    """Return what the vector of a passage is made of: its text, and the question it belongs to.

    Who said it and when are signals of their own in recall; inside the vector they only blur it.
    """
    text = passage_text(turn, passage)
    label = speaker_of(text) if passage.start == 0 and passage.part != "tool" else None
    asked = "" if passage.part == "question" else shorten(turn.user, _QUESTION_CHARS_MAX)
    return (text if label is None else text[len(label) + 1 :].lstrip()) + (f"\n{asked}" if asked else "")


def speaker_of(text: str) -> str | None:
    """Return the name in front of a text, as in "Anna: I went", or None; transcripts of several people have them."""
    found = _SPEAKER.match(text)
    return None if found is None else found[1]


def summary_text(summary: Summary) -> str:
    """Return a summary as one text: what was said, what was done, what was found."""
    return "\n".join(part for part in (summary.summary, summary.actions, *summary.key_findings) if part)


def scope_text(scope: Scope) -> str:
    """Return what a symbol says: its name, its signature and what it tells of itself."""
    return f"{scope.qualified} {scope.signature} {scope.docstring}"


def insight_text(insight: Insight) -> str:
    """Return what an insight says, one finding a line and once, without the names of its fields."""
    return "\n".join(dict.fromkeys(_said(insight.body)))


def _said(value: Json) -> Iterator[str]:
    """Yield the texts and numbers of a JSON value, in its order; how deep it may be is a limit of those who write it."""
    if isinstance(value, dict):
        for item in cast("dict[str, Json]", value).values():
            yield from _said(item)
    elif isinstance(value, list):
        for item in cast("list[Json]", value):
            yield from _said(item)
    elif value is not None and not isinstance(value, bool) and str(value).strip():
        yield str(value).strip()


def summary_passages(summary: Summary) -> tuple[Passage, ...]:
    """Return what a summary is searched by: its words in one passage, with its topics, files and tools among the terms."""
    text = summary_text(summary)
    told = " ".join((text, *summary.topics, *summary.files_mentioned, *summary.tools_used))
    words = term_text(told)
    return (Passage(part="summary", ordinal=0, start=0, end=len(text), terms=words),) if words else ()
