"""What a context may be made of: everything is read from the store first, then composed without it; data only."""

from __future__ import annotations

from datetime import datetime

import msgspec

from recollect.answers import AccessedFile, Hit
from recollect.model import ConversationInfo, Scope, Summary, Turn
from recollect.store.shapes import Question


class CodePiece(msgspec.Struct, frozen=True, kw_only=True):
    """A symbol of the code with its text as its file has it now; without a text where no file is at hand, or it is not there any more.

    `is_far` is one that was found, but is hardly what the question is about.
    """

    scope: Scope
    score: float
    text: str | None = None
    line_start: int = 0
    line_end: int = 0
    file_lines: int | None = None
    is_gone: bool = False
    is_far: bool = False


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """What was read: of one conversation (`info`), or of a project or workspace (`sessions`, its latest conversations).

    Questions and files are newest first, recent turns and summaries in order, hits best first.
    """

    now: datetime
    info: ConversationInfo | None = None
    goal: Question | None = None
    questions: tuple[Question, ...] = ()
    recent: tuple[Turn, ...] = ()
    files: tuple[AccessedFile, ...] = ()
    summaries: tuple[Summary, ...] = ()
    sessions: tuple[ConversationInfo, ...] = ()
    code: tuple[CodePiece, ...] = ()
    hits: tuple[Hit, ...] = ()
    retrievers: dict[str, str] = {}

    def before(self, index: int) -> Material:
        """Return it without a turn of the conversation and what comes after: the one whose prompt is being answered."""
        own = None if self.info is None else self.info.id
        return msgspec.structs.replace(
            self,
            goal=self.goal if self.goal is not None and self.goal.turn_index < index else None,
            questions=tuple(one for one in self.questions if one.turn_index < index),
            recent=tuple(turn for turn in self.recent if turn.index < index),
            hits=tuple(hit for hit in self.hits if hit.conversation_id != own or hit.turn_index is None or hit.turn_index < index),
        )


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what: the budget, the share of each section, and how many of each kind at most."""

    budget_chars: int
    budget_tokens: int | None = None
    shares: dict[str, float]
    recent_messages: int
    relevant_messages: int
