"""The fence around memory that is handed to an agent, and its removal from what comes back; a leaf.

`compose` opens a fence with a random name around every context it renders; `capture` cuts whole fences out, so that
memory never records its own output. A fence that is opened and never closed is left alone: it may be a person's text.
"""

from __future__ import annotations

import os
import re

FENCE_PREFIX = "recollect-memory-"
_OPENING = re.compile(r"<recollect-memory-([0-9a-f]{8,32})(?: [^<>]*)?>")


def fence_name() -> str:
    """Return a fresh name that text inside the fence cannot guess."""
    return FENCE_PREFIX + os.urandom(8).hex()


def fenced(name: str, body: str) -> str:
    """Put a body inside the fence of that name."""
    return f"<{name}>\n{body}\n</{name}>"


def cut_fences(text: str) -> tuple[str, int]:
    """Remove every whole fence; return the rest and how many were cut."""
    if FENCE_PREFIX not in text:
        return text, 0
    kept: list[str] = []
    position = count = 0
    while opening := _OPENING.search(text, position):
        closing = f"</{FENCE_PREFIX}{opening[1]}>"
        end = text.find(closing, opening.end())
        if end < 0:
            kept.append(text[position : opening.end()])
            position = opening.end()
            continue
        kept.append(text[position : opening.start()].rstrip("\n"))
        position = end + len(closing)
        count += 1
    kept.append(text[position:])
    return ("".join(kept).strip("\n") if count else text), count
