"""What a composed context is: sections of items, each with its reason, and what was left out, with its reason; data only."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from recollect.model import Node

SectionName = Literal["goal", "constraints", "queries", "recent", "files", "code", "summaries", "relevant", "history"]
Strategy = Literal["recent", "relevant", "hybrid"]
SECTIONS: tuple[SectionName, ...] = ("goal", "constraints", "queries", "summaries", "relevant", "code", "files", "recent", "history")


class Item(Node, frozen=True, kw_only=True):
    """One thing in a context: its words as they are shown, where they come from, and why they are in.

    `is_cut` says that something longer was cut with a mark; `score` is the relevance of a hit.
    """

    kind: Literal["message", "turn", "summary", "file", "scope", "conversation"]
    id: str
    text: str
    conversation_id: str | None = None
    first_turn: int | None = None
    last_turn: int | None = None
    file_path: str | None = None
    line_start: int | None = None
    line_end: int | None = None
    age_seconds: float | None = None
    score: float | None = None
    reason: str
    is_cut: bool = False

    @property
    def char_count(self) -> int:
        """How many characters it takes, its line break included."""
        return len(self.text) + 1


class LeftOut(Node, frozen=True, kw_only=True):
    """Something that could have been in a context, and why it is not."""

    kind: str
    id: str
    section: SectionName
    conversation_id: str | None = None
    first_turn: int | None = None
    last_turn: int | None = None
    reason: str


class Section(Node, frozen=True, kw_only=True):
    """A part of a context with its own share of the budget; `char_count` includes its heading."""

    name: SectionName
    budget_chars: int
    char_count: int = 0
    items: tuple[Item, ...] = ()


class Context(Node, frozen=True, kw_only=True):
    """What an agent is handed before a call; its Markdown never has more than `budget_chars` characters."""

    told_too: ClassVar[tuple[str, ...]] = ("items",)

    sections: tuple[Section, ...] = ()
    budget_chars: int
    budget_tokens: int | None = None
    char_count: int = 0
    token_estimate: int = 0
    left_out: tuple[LeftOut, ...] = ()
    retrievers: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def items(self) -> tuple[Item, ...]:
        """Every item, in the order of the sections."""
        return tuple(item for section in self.sections for item in section.items)

    def render(self, format: Literal["markdown", "messages", "json"] = "markdown") -> Any:  # noqa: A002  the public name
        """Return the context as Markdown inside a fence of a fresh random name, as chat messages, or as a JSON document."""
        from recollect.compose.rendering import rendered  # noqa: PLC0415  this file is data only

        return rendered(self, format)
