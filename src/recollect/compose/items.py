"""What a context may show → the items it shows, and what it says of those that it leaves out; pure, below `composing`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.compose.context import Item, LeftOut
from recollect.compose.wording import age_of

if TYPE_CHECKING:
    from recollect.compose.context import SectionName
    from recollect.compose.material import CodePiece, Material
    from recollect.model import Summary, Turn
    from recollect.store.shapes import Question


def symbol_item(piece: CodePiece) -> Item:
    """Return a symbol of the code as an item."""
    return Item(
        kind="scope", id=piece.scope.id, text="", file_path=piece.scope.file_path, line_start=piece.line_start, line_end=piece.line_end,
        score=piece.score, reason="the question is about it",
    )  # fmt: skip


def symbol_words(piece: CodePiece) -> tuple[str, str]:
    """Return where a symbol is, and its text, or what it is called with and says of itself."""
    scope = piece.scope
    of = "" if piece.file_lines is None else f" of {piece.file_lines} lines"
    head = f"### {scope.kind} {scope.qualified or scope.name} · {scope.file_path}:{piece.line_start}–{piece.line_end}{of}"
    return head, "\n".join(filter(None, (scope.signature, scope.docstring))) if piece.text is None else piece.text


def left_out(section: SectionName, item: Item, reason: str) -> LeftOut:
    """Return what is said of an item that is not shown."""
    return LeftOut(
        kind=item.kind, id=item.id, section=section, conversation_id=item.conversation_id, first_turn=item.first_turn,
        last_turn=item.last_turn, reason=reason,
    )  # fmt: skip


def question_item(one: Question, material: Material, reason: str) -> Item:
    """Return what a user said as an item."""
    return Item(
        kind="message", id=one.message_id, text="", conversation_id=one.conversation_id, first_turn=one.turn_index,
        last_turn=one.turn_index, age_seconds=age_of(one.at, material.now), reason=reason,
    )  # fmt: skip


def turn_item(turn: Turn, material: Material, reason: str) -> Item:
    """Return a turn as an item."""
    return Item(
        kind="turn", id=turn.id, text="", conversation_id=turn.conversation_id, first_turn=turn.index, last_turn=turn.index,
        age_seconds=age_of(turn.ended_at or turn.started_at, material.now), reason=reason,
    )  # fmt: skip


def summary_item(one: Summary, material: Material) -> Item:
    """Return a summary as an item."""
    return Item(
        kind="summary", id=one.id, text="", conversation_id=one.conversation_id, first_turn=one.first_turn, last_turn=one.last_turn,
        age_seconds=age_of(one.created_at, material.now), reason="the highest summary of these turns",
    )  # fmt: skip
