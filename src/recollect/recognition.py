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


class Recognition(msgspec.Struct, frozen=True, kw_only=True):
    """How a payload continues a conversation.

    `append`: it is no history, all of it is new. `known`: nothing of it is new. `extends`: its turns from `new_from` on
    are new. `grows`: its turn `new_from` is the last recorded one with more in it, and what follows is new. `edited`: it
    says something else from its turn `new_from` on.
    """

    kind: Literal["append", "known", "extends", "grows", "edited"]
    new_from: int = 0


def recognise(held: Sequence[TurnOutline], turns: Sequence[Turn]) -> Recognition:
    """Compare a payload's turns with a conversation's, from the beginning.

    A single turn that shares no more than its first words with the beginning is taken for new: people repeat themselves.
    """
    said = [tuple(outline(turn.messages)) for turn in turns]
    if not held or not said or not held[0].said or held[0].said[:1] != said[0][:1]:
        return Recognition(kind="append")
    for n, words in enumerate(said):
        if n == len(held):
            return Recognition(kind="extends", new_from=n)
        have = held[n].said
        if words == have:
            continue
        if n == len(held) - 1 and words[: len(have)] == have:
            return Recognition(kind="grows", new_from=n)
        if n == len(said) - 1 and have[: len(words)] == words:
            return Recognition(kind="known", new_from=n)
        return Recognition(kind="append") if len(said) == 1 else Recognition(kind="edited", new_from=n)
    return Recognition(kind="known", new_from=len(said) - 1)
