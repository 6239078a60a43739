"""A turn cut to a budget: the longest texts give first, nothing is dropped; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.capture.turns import char_count
from recollect.text import cut

if TYPE_CHECKING:
    from recollect.model import Message, ToolCall, Turn

_replace = msgspec.structs.replace


def fit_turn(turn: Turn, max_chars: int) -> Turn:
    """Return a turn whose texts are cut, longest first, to about `max_chars` characters; each cut leaves its mark."""
    if turn.char_count <= max_chars:
        return turn
    sizes = sorted(_sizes(turn))
    around = turn.char_count - sum(sizes)  # what stands between the texts: the braces and keys of arguments
    share = _share(sizes, max_chars - around)
    messages = tuple(_fit_message(message, share) for message in turn.messages)
    calls = tuple(_fit_call(call, share) for call in turn.tool_calls)
    return _replace(turn, messages=messages, tool_calls=calls, char_count=char_count(messages, calls))


def _sizes(turn: Turn) -> list[int]:
    sizes = [len(text) for message in turn.messages for text in (message.content, message.reasoning) if text]
    for call in turn.tool_calls:
        sizes += [len(value) for value in (call.arguments or {}).values() if isinstance(value, str)]
        if call.result is not None:
            sizes += [len(text) for text in (call.result.result, call.result.error) if text]
    return sizes


def _share(sizes: list[int], max_chars: int) -> int:
    """Return the length at which texts are cut so that all of them fit: the short ones stay whole."""
    room = max_chars
    for n, size in enumerate(sizes):
        share = room // (len(sizes) - n)
        if size > share:
            return max(share, 1)
        room -= size
    return max(room, 1)


def _fit_message(message: Message, share: int) -> Message:
    return _replace(
        message,
        content=None if message.content is None else cut(message.content, share),
        reasoning=None if message.reasoning is None else cut(message.reasoning, share),
    )


def _fit_call(call: ToolCall, share: int) -> ToolCall:
    result = call.result
    if result is not None:
        result = _replace(
            result,
            result=None if result.result is None else cut(result.result, share),
            error=None if result.error is None else cut(result.error, share),
        )
    arguments = call.arguments
    if arguments is not None:
        arguments = {key: cut(value, share) if isinstance(value, str) else value for key, value in arguments.items()}
    return _replace(call, result=result, arguments=arguments)
