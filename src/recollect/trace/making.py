"""Which tool call of a turn made a change; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.model import CodeChange, ToolCall, Turn


def maker(turn: Turn, change: CodeChange) -> ToolCall | None:
    """Return the call that a change names; for one that names none, the call without an id that wrote its file."""
    if change.tool_call_id is not None:
        return next((call for call in turn.tool_calls if call.tool_call_id == change.tool_call_id), None)
    nameless = [call for call in turn.tool_calls if call.tool_call_id is None and _wrote(call, change.file_path)]
    if len(nameless) == 1:
        return nameless[0]
    alike = [one.id for one in turn.changes if one.tool_call_id is None and one.file_path == change.file_path]
    return nameless[alike.index(change.id)] if len(nameless) == len(alike) else None


def _wrote(call: ToolCall, path: str) -> bool:
    return call.status != "failed" and any(access.path == path and access.kind == "write" for access in call.accessed)
