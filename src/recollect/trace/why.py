"""Why a file or a line is as it is: change → tool call → request, over all its turns → the context it had → what was thought."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import InputError
from recollect.store.traced import TraceScope
from recollect.trace.answers import Reason, Why
from recollect.trace.lines import RENAMED, by_content, by_range, lineage, renamed_from
from recollect.trace.making import maker

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.model import CodeChange, ContextFile, ToolCall, Turn
    from recollect.store import Store
    from recollect.store.traced import PlacedChange

_CHANGES_MAX = 10_000
_LOOKED_THROUGH_MAX = 1_000  # for a line, in the turns that made them
_RENAMES_MAX = 20
_NAMED_MAX = 8


async def why(
    store: Store, workspace: str, where: TraceScope, path: str, *, line: int | None = None, line_text: str | None = None, limit: int = 10
) -> Why:
    """Return the changes that made a file, or a line of it, what it is, newest first."""
    shown, placed = await _changes(store, workspace, where, path)
    if line is None:
        return Why(path=shown, changes=await _reasons(store, workspace, where, placed[:limit]))
    placed = placed[:_LOOKED_THROUGH_MAX]
    turns = {turn.id: turn for turn in await store.turns.by_id(workspace, list(dict.fromkeys(one.turn_id for one in placed)))}
    changes = [_change_of(turns[one.turn_id], one.id) for one in placed if one.turn_id in turns]
    kept = [one for one in placed if one.turn_id in turns]
    found_by, found = "content", by_content(changes, line_text) if line_text is not None else []
    if not found:
        found_by, found = "range", by_range(changes, line, line_text)
    reasons = await _reasons(store, workspace, where, [kept[n] for n in found[:limit]])
    return Why(path=shown, line=line, line_text=line_text or None, found_by=found_by if found else None, changes=reasons)


async def _changes(store: Store, workspace: str, where: TraceScope, path: str) -> tuple[str, list[PlacedChange]]:
    """Return the file that is meant, and its changes in a period, newest first, through all the names it had at any time."""
    whole = TraceScope(project_ids=where.project_ids)
    names = await store.trace.paths(workspace, whole, path) or [path]
    known = set(names)
    page: list[PlacedChange] = []
    for _ in range(_RENAMES_MAX):
        page = await store.trace.changes(workspace, whole, sorted(known), _CHANGES_MAX)
        older = {name for one in page if (name := renamed_from(one.change_type, one.change_summary)) is not None} - known
        if not older:
            break
        known |= older
    later = set(await store.trace.renamed(workspace, whole, [RENAMED + name for name in sorted(known)])) - known
    if later:
        known |= later
        page = await store.trace.changes(workspace, whole, sorted(known), _CHANGES_MAX)
    if where == whole:
        return _meant(path, names, page, page)
    asked = await store.trace.changes(workspace, where, sorted(known), _CHANGES_MAX)
    shown, found = _meant(path, names, page, asked)
    if found or not asked or where.until is None:
        return shown, found
    by_then = TraceScope(project_ids=where.project_ids, until=where.until)  # another file had the name when the period ended
    return _meant(path, names, await store.trace.changes(workspace, by_then, sorted(known), _CHANGES_MAX), asked)


def _meant(path: str, names: Sequence[str], page: Sequence[PlacedChange], asked: Sequence[PlacedChange]) -> tuple[str, list[PlacedChange]]:
    """Return the one file, of those that end alike, of which there are changes, and those that are asked for."""
    inside = {one.id for one in asked}
    found: dict[str, list[PlacedChange]] = {}
    for name in names:
        own = lineage(page, name)
        is_another = bool(own) and own[0].file_path != name and own[0].file_path in names  # it is told under the name it got
        found[name] = [] if is_another else [one for one in own if one.id in inside]
    meant = [name for name in names if found[name]]
    if len(meant) > 1:
        raise ambiguous(path, meant)
    return (meant[0], found[meant[0]]) if meant else (path, [])


def ambiguous(path: str, meant: Sequence[str]) -> InputError:
    """Return the error for the end of several paths."""
    names = ", ".join(meant[:_NAMED_MAX]) + (", …" if len(meant) > _NAMED_MAX else "")
    return InputError(f"several files end with {path[:200]!r}: say which one is meant, of {names}")


async def _reasons(store: Store, workspace: str, where: TraceScope, placed: Sequence[PlacedChange]) -> tuple[Reason, ...]:
    requests = list(dict.fromkeys(one.request_id for one in placed if one.request_id is not None))
    whole = TraceScope(project_ids=where.project_ids)  # a request counts with all its turns, whenever they were
    siblings = await store.trace.request(workspace, whole, requests) if requests else []
    turn_ids = list(dict.fromkeys([*(one.turn_id for one in placed), *(turn_id for turn_id, _ in siblings)]))
    turns = {turn.id: turn for turn in await store.turns.by_id(workspace, turn_ids)}
    titles = {one: await _title(store, workspace, one) for one in dict.fromkeys(turn.conversation_id for turn in turns.values())}
    return tuple(_reason(one, turns, [turn_id for turn_id, _ in siblings], titles) for one in placed if one.turn_id in turns)


async def _title(store: Store, workspace: str, conversation_id: str) -> str | None:
    info = await store.conversations.get(workspace, conversation_id)
    return None if info is None else info.title


def _reason(placed: PlacedChange, turns: dict[str, Turn], siblings: Sequence[str], titles: dict[str, str | None]) -> Reason:
    turn = turns[placed.turn_id]
    whole = [turns[one] for one in siblings if one in turns and turns[one].request_id == turn.request_id] or [turn]
    change = _change_of(turn, placed.id)
    call = maker(turn, change)
    return Reason(
        change=change,
        tool_call=call,
        turn=turn,
        conversation_title=titles.get(turn.conversation_id),
        request_id=turn.request_id,
        asked=turn.user or next((one.user for one in whole if one.user), ""),
        context_files=by_usefulness(part for one in whole for part in one.context_files),
        reasoning=_thought(turn, call),
    )


def _change_of(turn: Turn, change_id: str) -> CodeChange:
    return next(change for change in turn.changes if change.id == change_id)


def by_usefulness(files: Iterable[ContextFile]) -> tuple[ContextFile, ...]:
    """Return context files, the most useful first, those of unknown usefulness last."""
    return tuple(sorted(files, key=lambda one: (one.usefulness is None, -(one.usefulness or 0.0), one.file_path, one.line_start or 0)))


def _thought(turn: Turn, call: ToolCall | None) -> str | None:
    """Return what was thought before a call: with the message that made it, else in the turn at all."""
    own = [message.reasoning for message in turn.messages if call is not None and message.id == call.message_id and message.reasoning]
    return "\n\n".join(own or [message.reasoning for message in turn.messages if message.reasoning]) or None
