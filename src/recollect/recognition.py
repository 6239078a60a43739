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
    from recollect.store.protocol import TurnOutline


Words = tuple[tuple[str, str], ...]


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """How a payload continues a conversation.

    `append`: it is no history, all of it is new. `known`: nothing of it is new. `extends`: its turns from `new_from` on
    are new. `grows`: its turn `new_from` is the last recorded one with more in it, and what follows is new. `edited`: it
    says something else from its turn `new_from` on. Its first `forgotten` turns were forgotten here and stay so.
    """

    kind: Literal["append", "known", "extends", "grows", "edited"]
    new_from: int = 0
    forgotten: int = 0


def recognise(held: Sequence[TurnOutline], turns: Sequence[Turn]) -> Recognition:
    """Compare a payload's turns with a conversation's.

    It is a history when it begins as the conversation does; or, where the conversation's first turns were forgotten, when
    it comes to its beginning later; or when it begins with the conversation's last turns, as a sliding window does. A
    single question that was the first one before is taken for new: people repeat themselves.
    """
    said = [_words(turn) for turn in turns]
    if not held or not said or not held[0].said:
        return Recognition(kind="append")
    if held[0].said[:1] == said[0][:1]:
        return _from_the_beginning(held, turns)
    if held[0].said in said:
        skipped = said.index(held[0].said)
        if held[0].index == 0:  # it begins earlier than the conversation: another past
            return Recognition(kind="edited")
        found = _from_the_beginning(held, turns[skipped:])
        return Recognition(kind=found.kind, new_from=found.new_from + skipped, forgotten=skipped)
    for size in range(min(len(held), len(said) - 1), 0, -1):
        if [turn.said for turn in held[-size:]] == said[:size]:
            return Recognition(kind="extends", new_from=size)
    return Recognition(kind="append")


def _from_the_beginning(held: Sequence[TurnOutline], turns: Sequence[Turn]) -> Recognition:
    for n, turn in enumerate(turns):
        if n == len(held):
            return Recognition(kind="extends", new_from=n)
        have, words = held[n].said, _words(turn)
        is_last = n == len(held) - 1
        if words == have:
            if is_last and _steps(turn) > held[n].steps:
                return Recognition(kind="grows", new_from=n)
            continue
        if is_last and words[: len(have)] == have:
            return Recognition(kind="grows", new_from=n)
        if n == len(turns) - 1 and have[: len(words)] == words:
            return Recognition(kind="known", new_from=n) if n > 0 else Recognition(kind="append")
        return Recognition(kind="edited", new_from=n)
    return Recognition(kind="known", new_from=len(turns) - 1)


def _words(turn: Turn) -> Words:
    return tuple(outline(turn.messages))


def _steps(turn: Turn) -> int:
    """Count tool calls and their results: a turn may grow by them alone."""
    return len(turn.tool_calls) + sum(call.result is not None for call in turn.tool_calls)
