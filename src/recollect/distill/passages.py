"""A turn → the passages it is searched by: question, answer, and each tool step; pure.

A passage is a stretch of one message or of one tool step, small enough for an embedder to read whole. Its terms are
what search finds; its text is read from the turn again when it is shown (`quoting`).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recollect.limits import PASSAGE_CHARS_MAX, PASSAGES_PER_TURN_MAX
from recollect.model import Passage
from recollect.quoting import speaker_of, step_text
from recollect.text import speaker_term, term_text

if TYPE_CHECKING:
    from recollect.model import PassagePart, Turn

_BREAK = re.compile(r"\n\s*\n|\n|(?<=[.!?…])\s")
_BREAK_FROM_SHARE = 2  # a piece is cut at a natural break in its second half, when there is one


def cut_passages(turn: Turn) -> tuple[Passage, ...]:
    """Cut a turn into passages; those without any term are left out."""
    found: list[Passage] = []
    for n, message in enumerate(turn.messages):
        if message.role in {"system", "developer"} or not message.text:
            continue
        _add(found, "question" if message.role == "user" else "answer", n, message.text)
    for call in turn.tool_calls:
        _add(found, "tool", call.order, step_text(call))
        if len(found) >= PASSAGES_PER_TURN_MAX:
            break
    return tuple(found[:PASSAGES_PER_TURN_MAX])


def _add(found: list[Passage], part: PassagePart, ordinal: int, text: str) -> None:
    speaker = None if part == "tool" else speaker_of(text)
    for start, end in stretches(text):
        words = term_text(text[start:end])
        if start == 0 and speaker is not None and words:
            words = f"{speaker_term(speaker)} {words}"
        if words:
            found.append(Passage(part=part, ordinal=ordinal, start=start, end=end, terms=words))


def stretches(text: str) -> list[tuple[int, int]]:
    """Cut a text into stretches of at most `PASSAGE_CHARS_MAX` characters, at paragraphs, lines or sentences if it can."""
    found: list[tuple[int, int]] = []
    start = 0
    while len(text) - start > PASSAGE_CHARS_MAX:
        limit = start + PASSAGE_CHARS_MAX
        breaks = [match.end() for match in _BREAK.finditer(text, start + PASSAGE_CHARS_MAX // _BREAK_FROM_SHARE, limit)]
        end = breaks[-1] if breaks else limit
        found.append((start, end))
        start = end
    found.append((start, len(text)))
    return found
