"""Whether a piece that comes once more, after its request was closed, says anything that is not recorded; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import Checkpoint, ContextFile, ToolCall, Turn


def says_nothing_new(told: Sequence[Turn], held: Sequence[Turn]) -> bool:
    """Tell whether everything that turns tell stands in those that are recorded; who sends twice is told the same twice."""
    return (
        _parts(told) <= _parts(held)
        and all(_is_known(call, held) for turn in told for call in turn.tool_calls)
        and all(_is_given(part, held) for turn in told for part in turn.context_files)
        and all(_is_saved(part, held) for turn in told for part in turn.checkpoints)
        and all(_is_spent(turn, held) for turn in told)
    )


def _parts(turns: Sequence[Turn]) -> set[tuple[object, ...]]:
    found: set[tuple[object, ...]] = set()
    for turn in turns:
        found |= {("message", one.role, one.content_hash) for one in turn.messages if one.content_bytes}
        found |= {("change", one.file_path, one.tool_call_id, one.line_start, one.code_after_hash) for one in turn.changes}
        found |= {(name, value) for name, value in (("model", turn.model), ("ends", turn.finish_reason)) if value is not None}
    return found


def _is_given(told: ContextFile, held: Sequence[Turn]) -> bool:
    return any(
        (told.file_path, told.line_start, told.line_end, told.source) == (one.file_path, one.line_start, one.line_end, one.source)
        and told.usefulness in {None, one.usefulness}
        and told.content_hash in {None, "", one.content_hash}
        for turn in held
        for one in turn.context_files
    )


def _is_saved(told: Checkpoint, held: Sequence[Turn]) -> bool:
    return any(
        (told.checkpoint_id, told.git_hash) == (one.checkpoint_id, one.git_hash) and told.workspace_dir in {None, one.workspace_dir}
        for turn in held
        for one in turn.checkpoints
    )


def _is_spent(told: Turn, held: Sequence[Turn]) -> bool:
    """Tell whether the tokens that are told, if any, are those of the request."""
    spent = [(turn.prompt_tokens, turn.completion_tokens) for turn in held]
    return any(told.prompt_tokens in {None, prompt} and told.completion_tokens in {None, completion} for prompt, completion in spent)


def _is_known(call: ToolCall, held: Sequence[Turn]) -> bool:
    return any(_is_same(call, one) for turn in held for one in turn.tool_calls)


def _is_same(told: ToolCall, known: ToolCall) -> bool:
    """Compare two calls by what was told: a result may come without its call, and a call without its result."""
    if told.tool_call_id is None or told.tool_call_id != known.tool_call_id:
        return False
    if (told.arguments is not None or told.source_hash is not None) and told.arguments_hash != known.arguments_hash:
        return False
    if told.result is None:
        return True
    if known.result is None or told.result.success not in {None, known.result.success}:
        return False
    return told.result.content_hash in {"", known.result.content_hash}
