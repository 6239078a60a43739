"""How turns are told, and what became of them: what the files of this folder hand each other."""

from __future__ import annotations

from typing import Literal

import msgspec

from recollect.answers import Recorded
from recollect.errors import StoreBusyError
from recollect.model import Turn
from recollect.store.shapes import Step

OnEdit = Literal["branch", "replace"]
Status = Literal["created", "unchanged", "replaced", "branched", "pending", "skipped"]


class MovedError(StoreBusyError):
    """The conversation moved on between reading and writing; whoever sees this reads again."""


class Telling(msgspec.Struct, frozen=True, kw_only=True):
    """How a payload is told: as which request, what may take the place of what, and which step its request takes with it.

    One that does not add only repeats what is known, because what it adds is not to be recorded.
    """

    request_id: str | None = None
    replace: bool = False
    on_edit: OnEdit = "branch"
    adds: bool = True
    step: Step | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What became of turns, and in which conversation."""

    conversation_id: str
    status: Status
    turns: tuple[Turn, ...] = ()

    def recorded(self, request_id: str | None, notes: dict[str, int]) -> Recorded:
        """Return it as callers are told."""
        ids = tuple(turn.id for turn in self.turns)
        return Recorded(conversation_id=self.conversation_id, status=self.status, request_id=request_id, turn_ids=ids, notes=notes)
