"""Whether a piece that comes once more, after its request was closed, says anything that is not recorded; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import ToolCall, Turn


def says_nothing_new(told: Sequence[Turn], held: Sequence[Turn]) -> bool:
    """Tell whether everything that turns tell stands in those that are recorded; who sends twice is told the same twice."""
    return _parts(told) <= _parts(held) and all(_is_known(call, held) for turn in told for call in turn.tool_calls)


def _parts(turns: Sequence[Turn]) -> set[tuple[object, ...]]:
    found: set[tuple[object, ...]] = set()
    for turn in turns:
        found |= {("message", one.role, one.content_hash) for one in turn.messages if one.content_bytes}
        found |= {("context", one.file_path, one.line_start, one.line_end, one.source) for one in turn.context_files}
        found |= {("change", one.file_path, one.tool_call_id, one.line_start, one.code_after_hash) for one in turn.changes}
        found |= {("checkpoint", one.checkpoint_id, one.git_hash) for one in turn.checkpoints}
        found |= {(name, value) for name, value in (("model", turn.model), ("ends", turn.finish_reason)) if value is not None}
    return found


def _is_known(call: ToolCall, held: Sequence[Turn]) -> bool:
    return any(_is_same(call, one) for turn in held for one in turn.tool_calls)


def _is_same(told: ToolCall, known: ToolCall) -> bool:
    """Compare two calls by what was told: a result may come without its call, and a call without its result."""
    if told.tool_call_id is None or told.tool_call_id != known.tool_call_id:
        return False
    if (told.arguments is not None or told.source_hash is not None) and told.arguments_hash != known.arguments_hash:
        return False
    return told.result is None or (known.result is not None and told.result.content_hash in {"", known.result.content_hash})
