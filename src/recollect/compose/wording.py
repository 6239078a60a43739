"""One thing in words: where it comes from and how old it is on one line, then what it says, quoted and cut to fit; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recollect.clock import ago
from recollect.compose.rendering import harmless, quoted
from recollect.model import ACCESS_ORDER
from recollect.text import cut, shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from datetime import datetime

    from recollect.answers import AccessedFile, Hit
    from recollect.model import Summary, ToolCall, Turn

_TOOLS_SHOWN_MAX = 12
_TOOL_CHARS_MAX = 160
_REASONING_CHARS_MAX = 600
_SHRINK = 0.9
_BODY_CHARS_MIN = 8
_SENTENCE = re.compile(r"(?<=[.!?…])\s+")
_SENTENCE_CHARS_MIN = 12
_SENTENCE_CHARS_COMPARED = 60  # a summary may have shortened it after that
_KIND_WORDS = {"write": "changed", "read": "read", "search": "searched", "list": "listed"}


def age(seconds: float | None) -> str:
    """Return how long ago something was, in words."""
    return "at an unknown time" if seconds is None else ago(seconds)


def age_of(moment: datetime | None, now: datetime) -> float | None:
    """Return how many seconds ago a moment was."""
    return None if moment is None else max((now - moment).total_seconds(), 0.0)


def worded(head: str, body: str, room: int, *, may_cut: bool = True) -> tuple[str, bool] | None:
    """Return a head line with a quoted body in at most `room` characters, and whether it was cut.

    None when not even a word fits, or when it does not fit whole and may not be cut.
    """
    head, whole = _whole(head, body)
    if len(whole) <= room:
        return whole, False
    space = room - len(head) - 3
    while may_cut and space >= _BODY_CHARS_MIN:
        text = f"{head}\n{quoted(cut(body, space))}"
        if len(text) <= room:
            return text, True
        space = int(space * _SHRINK)
    return None


def whole_chars(head: str, body: str) -> int:
    """Return how many characters a head line with a quoted body has when nothing of it is cut, its line break included."""
    return len(_whole(head, body)[1]) + 1


def _whole(head: str, body: str) -> tuple[str, str]:
    head = harmless(" ".join(head.split()))
    return head, f"{head}\n{quoted(body)}" if body.strip() else head


def turn_body(turn: Turn, *, with_question: bool) -> str:
    """Return a turn in words: what was asked, thought, done and answered."""
    said = [f"you: {turn.user}"] if with_question and turn.user else []
    reasoning = " ".join(message.reasoning for message in turn.messages if message.reasoning)
    if reasoning:
        said.append(f"reasoning: {shorten(reasoning, _REASONING_CHARS_MAX)}")
    if turn.tool_calls:
        said.append(f"tools: {tools_line(turn.tool_calls)}")
    if turn.assistant:
        said.append(f"agent: {turn.assistant}")
    return "\n".join(said)


def tools_line(calls: Sequence[ToolCall]) -> str:
    """Return tool calls in a line: what each touched or was given, and which failed."""
    shown = [_tool(call) for call in calls[:_TOOLS_SHOWN_MAX]]
    more = len(calls) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def _tool(call: ToolCall) -> str:
    given = ", ".join(dict.fromkeys(part.path for part in call.accessed)) or " ".join(
        value for value in (call.arguments or {}).values() if isinstance(value, str)
    )
    failed = ""
    if call.status == "failed":
        error = "" if call.result is None else call.result.error or call.result.result or ""
        failed = f" (failed: {shorten(error, _TOOL_CHARS_MAX)})" if error else " (failed)"
    return shorten(f"{call.tool_name} {given}".strip(), _TOOL_CHARS_MAX) + failed


def hit_body(hit: Hit, *, with_question: bool, said: Collection[str] = ()) -> str:
    """Return a hit in words: the question, the passage that matched when the answer does not hold it, and the answer."""
    if hit.kind == "summary":
        return "\n".join(line for line in (without_said(line, said) for line in hit.passage.splitlines()) if line)
    said = [f"you: {hit.question}"] if with_question and hit.question else []
    if hit.passage and hit.passage not in hit.question and hit.passage not in hit.answer:
        said.append(f"step: {hit.passage}")
    if hit.answer:
        said.append(f"agent: {hit.answer}")
    return "\n".join(said)


def summary_body(summary: Summary, said: Collection[str] = ()) -> str:
    """Return a summary in words, with its findings, files and tools under it; without the sentences that are said elsewhere."""
    lines = [without_said(summary.summary, said), f"done: {summary.actions}" if summary.actions else ""]
    lines += [f"found: {finding}" for finding in summary.key_findings if not _is_said(finding, said)]
    lines.append(f"files: {', '.join(summary.files_mentioned)}" if summary.files_mentioned else "")
    lines.append(f"tools: {', '.join(summary.tools_used)}" if summary.tools_used else "")
    return "\n".join(line for line in lines if line)


def without_said(text: str, said: Collection[str]) -> str:
    """Return a text without the sentences that are said elsewhere."""
    return " ".join(part for part in _SENTENCE.split(text) if not _is_said(part, said))


def _is_said(sentence: str, said: Collection[str]) -> bool:
    words = " ".join(sentence.removeprefix("Asked: ").removeprefix("Answered: ").split())[:_SENTENCE_CHARS_COMPARED].rstrip(".…")
    return len(words) >= _SENTENCE_CHARS_MIN and any(words in text for text in said)


def files_in_order(files: Sequence[AccessedFile]) -> list[AccessedFile]:
    """Return files as they are shown: writes first, then by folder, the latest first in each."""
    return sorted(files, key=lambda file: (ACCESS_ORDER.index(file.kind), _folder(file.path)))


def file_line(file: AccessedFile) -> str:
    """Return one line on a file."""
    line = f"- {_KIND_WORDS[file.kind]} {file.path} ({file.tool_name}, turn {file.turn_index})"
    return harmless(" ".join(line.split()))


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
