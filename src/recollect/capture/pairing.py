"""Changes that were told, and those worked out from tool calls → each change once, with what both know of it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.capture.changes import completed_by, has_own_words, is_same_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import CodeChange

_replace = msgspec.structs.replace


def each_change_once(told: Sequence[CodeChange]) -> tuple[CodeChange, ...]:
    """Return told changes without those that came before: the same one again, and the same lines of a file under one chunk's id."""
    found: dict[object, CodeChange] = {}
    for change in told:
        place = (change.diff_chunk_id, change.tool_call_id, change.file_path, change.line_start, change.line_end)
        found[change if change.diff_chunk_id is None else place] = change
    return tuple(found.values())


def paired(told: Sequence[CodeChange], worked_out: Sequence[CodeChange]) -> tuple[CodeChange, ...]:
    """Return the changes as they were told, completed by what was worked out of the same edit, and behind them the other edits.

    A told change speaks of the edits that its call made in its file; without the id of a call, of those that nobody else tells of
    in its file, and where one call alone edited that, it is that call's. Which of several it is, their lines tell. Where they do
    not, what is told stands for all of them as it is, so that no edit counts twice.
    """
    own = [_replace(change, tool_call_id=_only_call(change, worked_out)) for change in told]
    left = list(worked_out)
    partners: dict[int, CodeChange] = {}
    for group in _groups(own):
        edits = _edits(own[group[0]], left)
        found = _partners([own[n] for n in group], edits)
        partners |= {group[n]: edit for n, edit in found.items()}
        spoken = list(found.values()) if len(found) == len(group) else edits
        spoken += [edit for edit in edits if any(_overlaps(own[n], edit) for n in group)]
        left = [edit for edit in left if not any(edit is one for one in spoken)]
    return (*(completed_by(change, partners.get(n)) for n, change in enumerate(own)), *left)


def told_again(before: Sequence[CodeChange], more: Sequence[CodeChange]) -> tuple[tuple[CodeChange, ...], tuple[CodeChange, ...]]:
    """Return the changes of a turn and those of the same turn with more in it, where both tell of one edit as one, among the first.

    An edit may be worked out from its call in one of them, and told in the other: who says more of it is believed first.
    """
    own, others = _by_edit(before), _by_edit(more)
    twins: dict[tuple[str, str] | None, tuple[CodeChange, CodeChange]] = {
        edit: (own[edit][0], others[edit][0]) for edit in own if len(own[edit]) == len(others.get(edit, ())) == 1
    }
    kept = tuple(_united(*twins[_edit(one)]) if _edit(one) in twins else one for one in before)
    return kept, tuple(one for one in more if _edit(one) not in twins)


def _edit(change: CodeChange) -> tuple[str, str] | None:
    return None if change.tool_call_id is None else (change.tool_call_id, change.file_path)


def _by_edit(changes: Sequence[CodeChange]) -> dict[tuple[str, str], list[CodeChange]]:
    found: dict[tuple[str, str], list[CodeChange]] = {}
    for change in changes:
        edit = _edit(change)
        if edit is not None:
            found.setdefault(edit, []).append(change)
    return found


def _united(one: CodeChange, newer: CodeChange) -> CodeChange:
    says_more = (has_own_words(one), one.line_start is not None) > (has_own_words(newer), newer.line_start is not None)
    return completed_by(one, newer) if says_more else completed_by(newer, one)


def _only_call(change: CodeChange, worked_out: Sequence[CodeChange]) -> str | None:
    if change.tool_call_id is not None:
        return change.tool_call_id
    calls = {edit.tool_call_id for edit in worked_out if edit.file_path == change.file_path}
    return calls.pop() if len(calls) == 1 else None


def _groups(told: Sequence[CodeChange]) -> list[list[int]]:
    """Return the places of the changes that speak of the same edits; those of a call first, since they leave the rest to the others."""
    groups: dict[tuple[str | None, str], list[int]] = {}
    for n, change in enumerate(told):
        groups.setdefault((change.tool_call_id, change.file_path), []).append(n)
    return sorted(groups.values(), key=lambda group: told[group[0]].tool_call_id is None)


def _edits(told: CodeChange, worked_out: Sequence[CodeChange]) -> list[CodeChange]:
    """Return the edits of which a told change speaks; a call may name its file by another part of its path."""
    made = [edit for edit in worked_out if told.tool_call_id in {None, edit.tool_call_id}]
    exact = [edit for edit in made if edit.file_path == told.file_path]
    return exact or ([edit for edit in made if is_same_file(edit.file_path, told.file_path)] if told.tool_call_id is not None else [])


def _partners(told: Sequence[CodeChange], edits: Sequence[CodeChange]) -> dict[int, CodeChange]:
    """Return, by the places of told changes, the edits that they are: the only one, or the only one at the same lines."""
    if len(told) == len(edits) == 1:
        return {0: edits[0]}
    there = [[m for m, edit in enumerate(edits) if _overlaps(change, edit)] for change in told]
    taken = [m for found in there for m in found]
    return {n: edits[found[0]] for n, found in enumerate(there) if len(found) == 1 and taken.count(found[0]) == 1}


def _overlaps(one: CodeChange, other: CodeChange) -> bool:
    first, last = _lines(one)
    start, end = _lines(other)
    return first is not None and last is not None and start is not None and end is not None and first <= end and start <= last


def _lines(change: CodeChange) -> tuple[int | None, int | None]:
    return change.line_start, change.line_start if change.line_end is None else change.line_end
