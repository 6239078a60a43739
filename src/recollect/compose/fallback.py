"""A conversation without a memory: the first message, a bridge that says what was left out, the last nine; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGES_MAX = 10
_LAST = 9


def history_fallback(messages: Sequence[Any]) -> list[Any]:
    """Return up to ten messages as they are; of more, the first, a bridge, and the last nine.

    The bridge is a message of the user that counts the messages left out and names their turns.
    """
    if len(messages) <= MESSAGES_MAX:
        return list(messages)
    gone = messages[1:-_LAST]
    turns = _turns(messages)[1:-_LAST]
    first, last = max(turns[0], 0), max(turns[-1], 0)
    span = f"turn {first}" if first == last else f"turns {first}–{last}"
    said = f"{len(gone)} message{'s' * (len(gone) != 1)} left out here"
    return [messages[0], {"role": "user", "content": f"[{said}: {span}]"}, *messages[-_LAST:]]


def _turns(messages: Sequence[Any]) -> list[int]:
    """Return the turn of each message: a user's message begins one."""
    index = -1
    found: list[int] = []
    for message in messages:
        role = message.get("role") if isinstance(message, dict) else getattr(message, "role", None)
        index += role == "user"
        found.append(index)
    return found
