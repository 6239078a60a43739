"""How a payload continues a conversation: engines send the whole history with each request; pure, used by `recorder`.

Compared are the words of users and assistants, turn by turn; system messages may change between requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from recollect.placing import outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import Turn
    from recollect.store.shapes import TurnOutline


Words = tuple[tuple[str, str], ...]


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """How a payload continues a conversation.

    `append`: it is no history, all of it is new. `known`: nothing of it is new. `stale`: it ends inside a recorded turn,
    as a late retry does. `extends`: its turns from `new_from` on are new. `grows`: its turn `new_from` is the last recorded
    one with more in it, and what follows is new. `edited`: it says something else from its turn `new_from` on. The first
    `matched` recorded turns are those before that.
    """

    kind: Literal["append", "known", "stale", "extends", "grows", "edited"]
    new_from: int = 0
    matched: int = 0


def recognise(held: Sequence[TurnOutline], turns: Sequence[Turn]) -> Recognition:
    """Compare a payload's turns with a conversation's.

    It is a history when it begins as the conversation does; or, where the conversation's first turns were forgotten, when
    it comes to its beginning later; or when it begins somewhere in the conversation and goes on to its end, as a sliding
    window does. A single turn is part of a longer history only when it continues the last turn: people repeat themselves.
    """
    if not held or not turns or not held[0].said:
        return Recognition(kind="append")
    if len(turns) == 1 and len(held) > 1:
        return Recognition(kind="grows") if _grows(held[-1], turns[0]) else Recognition(kind="append")
    said = [_words(turn) for turn in turns]
    if held[0].said[:1] == said[0][:1]:
        return _aligned(held, turns)
    if held[0].said in said:
        skipped = said.index(held[0].said)
        if held[0].index == 0:  # it begins earlier than the conversation: another past
            return Recognition(kind="edited")
        found = _aligned(held, turns[skipped:])
        return Recognition(kind=found.kind, new_from=found.new_from + skipped, matched=found.matched)
    for start in range(1, len(held)):
        if _is_end_of(said[0], held[start].said, turns[0]):
            found = _aligned(held[start:], turns, is_cut=said[0] != held[start].said)
            if found.kind in {"known", "extends", "grows"}:
                return Recognition(kind=found.kind, new_from=found.new_from, matched=found.matched + start)
    return Recognition(kind="append")


def _aligned(held: Sequence[TurnOutline], turns: Sequence[Turn], *, is_cut: bool = False) -> Recognition:
    """Walk through both from where they begin alike; turns that were forgotten in between are passed over."""
    n = 0
    for place, have in enumerate(held):
        n += 0 if place == 0 else _forgotten(held[place - 1], have, turns[n:])
        if n >= len(turns):
            return Recognition(kind="known", new_from=len(turns) - 1, matched=place)
        words = _words(turns[n])
        is_last = place == len(held) - 1
        if words == have.said or (place == 0 and is_cut):
            if is_last and not is_cut and _grows(have, turns[n]):
                return Recognition(kind="grows", new_from=n, matched=place)
            n += 1
            continue
        if is_last and _grows(have, turns[n]):
            return Recognition(kind="grows", new_from=n, matched=place)
        if n == len(turns) - 1 and have.said[: len(words)] == words:
            is_question = place == 0 and len(words) == 1
            return Recognition(kind="append") if is_question else Recognition(kind="stale", new_from=n, matched=place)
        return Recognition(kind="edited", new_from=n, matched=place)
    if n < len(turns):
        return Recognition(kind="extends", new_from=n, matched=len(held))
    return Recognition(kind="known", new_from=len(turns) - 1, matched=len(held))


def _forgotten(before: TurnOutline, have: TurnOutline, turns: Sequence[Turn]) -> int:
    """Return how many turns of a payload stand where turns were forgotten, which a gap in the indexes tells."""
    gap = have.index - before.index - 1
    for skipped in range(min(gap, len(turns) - 1), 0, -1):
        if _words(turns[skipped])[:1] == have.said[:1] and _words(turns[0]) != have.said:
            return skipped
    return 0


def _grows(have: TurnOutline, turn: Turn) -> bool:
    """Tell whether a turn says or does more than a recorded one, and all of that."""
    words = _words(turn)
    return words[: len(have.said)] == have.said and (len(words) > len(have.said) or _steps(turn) > have.steps)


def _is_end_of(words: Words, have: Words, turn: Turn) -> bool:
    """Tell whether a payload's first turn is a recorded one, or the end of one where a window was cut inside it."""
    has_user = any(message.role == "user" for message in turn.messages)
    return words == have or (not has_user and bool(words) and have[-len(words) :] == words)


def _words(turn: Turn) -> Words:
    return tuple(outline(turn.messages))


def _steps(turn: Turn) -> int:
    """Count tool calls and their results: a turn may grow by them alone."""
    return len(turn.tool_calls) + sum(call.result is not None for call in turn.tool_calls)
