"""Which changes made a line what it is: by its content among added lines, else by the ranges of the changes; pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from recollect.capture.diffs import parse_diff
from recollect.text import MARK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.capture.diffs import FileDiff, Hunk
    from recollect.model import CodeChange
    from recollect.store.traced import PlacedChange

RENAMED = "renamed from "
_AFTER_PATH = re.compile(r" \((?:[^()]|\([^()]*\))*\)$")  # the last parenthesis: a path may have some of its own
_TELLING = re.compile(r"\w")
_TELLING_CHARS_MIN = 4  # a brace or a blank line stands everywhere: only its place tells which one it is
_CUT = MARK.partition("{")[0]


def added_lines(diff: str, path: str = "") -> list[str]:
    """Return the lines that a diff adds; where it tells of several files, those of one of them."""
    parsed = parse_diff(diff)
    if len(parsed) > 1:
        return [line for one in _of_file(parsed, path) for line in one.lines("+")]
    lines = diff.splitlines()
    headed = [n for n, line in enumerate(lines) if n and line.startswith("+++ ") and lines[n - 1].startswith("--- ")]
    return [line[1:] for n, line in enumerate(lines) if line.startswith("+") and n not in headed]


def renamed_from(change_type: str, summary: str | None) -> str | None:
    """Return the path a file had before a change, if the change renamed it."""
    if change_type != "renamed" or not summary or not summary.startswith(RENAMED):
        return None
    told = summary.removeprefix(RENAMED)
    if told.endswith("…"):  # what stood behind the path was too long to be closed
        return told.partition(" (")[0].strip() or None
    return (_AFTER_PATH.sub("", told) if told.endswith(")") else told).strip() or None


def lineage(changes: Iterable[PlacedChange], path: str) -> list[PlacedChange]:
    """Return, of changes from the newest on, those of the file that has this path: before a rename under the name it had.

    What happened to another file of the same name, after a rename took the name away or before one brought it, is left out. Where
    no file has the path any more, it is the one that had it last, from the rename on that took the name away.
    """
    name = path
    kept: list[PlacedChange] = []
    for one in changes:
        before = renamed_from(one.change_type, one.change_summary)
        if one.file_path == name:
            kept.append(one)
            name = before or name
        elif before == name and not kept:
            kept.append(one)
        elif before == name and not _is_same_rename(one, kept[-1]):
            break  # the name was another file's before
    return kept


def _is_same_rename(one: PlacedChange, newer: PlacedChange) -> bool:
    """Tell whether a rename was recorded twice."""
    alike = [(change.file_path, renamed_from(change.change_type, change.change_summary)) for change in (one, newer)]
    return alike[0] == alike[1]


def by_content(changes: Sequence[CodeChange], text: str) -> list[int]:
    """Return the places of the changes that added a line of this text; none for a line that tells nothing."""
    wanted = " ".join(text.split())
    if not _tells(wanted):
        return []
    return [
        n
        for n, change in enumerate(changes)
        if change.diff and any(" ".join(line.split()) == wanted for line in added_lines(change.diff, change.file_path))
    ]


def _tells(text: str) -> bool:
    return len(_TELLING.findall(text)) >= _TELLING_CHARS_MIN


def by_range(changes: Sequence[CodeChange], line: int, text: str | None = None) -> list[int]:
    """Return the place of the change, of those of a file from the newest on, that made a line of today.

    Going back over a change above the line moves the line by what that change added. A diff with numbers tells exactly which
    lines are its own; else the range of the change decides. A change of which neither is known is passed over, and a file
    that was deleted has nothing from before. What tells all that it added did not make a line whose text is none of it: somebody
    changed the file without telling.
    """
    at = line
    for n, change in enumerate(changes):
        if change.change_type == "deleted":
            return []
        before = _before(change, at)
        if before is None:
            return [] if text is not None and _tells(text) and _is_whole(change) else [n]
        at = before
    return []


def _is_whole(change: CodeChange) -> bool:
    return bool(change.diff) and _CUT not in (change.diff or "") and bool(added_lines(change.diff or "", change.file_path))


def _before(change: CodeChange, at: int) -> int | None:
    """Return which line a line was before a change; None when the change made it."""
    diffs = _of_file(parse_diff(change.diff), change.file_path) if change.diff and _CUT not in change.diff else []
    hunks = [hunk for diff in diffs for hunk in diff.hunks]
    if hunks and all(hunk.old_start is not None and hunk.new_start is not None for hunk in hunks):
        return _through(hunks, at, counts=all(diff.before_known for diff in diffs))
    if change.line_start is None or at < change.line_start:
        return at
    last = change.line_end if change.line_end is not None else change.line_start
    if at <= last and change.lines_added != 0:
        return None
    if change.lines_added is None or change.lines_removed is None:
        return at  # nobody told by how much the rest of the file moved
    return at - change.lines_added + change.lines_removed


def _of_file(diffs: Sequence[FileDiff], path: str) -> Sequence[FileDiff]:
    own = [one for one in diffs if one.path == path or one.path.endswith("/" + path) or (one.path and path.endswith("/" + one.path))]
    return own or diffs


def _through(hunks: Sequence[Hunk], at: int, *, counts: bool) -> int | None:
    """Go back through numbered hunks; where it is not known what they replaced, lines beside them are taken to stay."""
    moved = 0
    for hunk in hunks:
        kept = sum(line[:1] != "-" for line in hunk.lines)
        removed = sum(line[:1] == "-" for line in hunk.lines)
        added = sum(line[:1] == "+" for line in hunk.lines)
        first = (hunk.new_start or 1) if kept else (hunk.old_start or 1) - moved
        if at < first:
            break
        if at < first + kept:
            inside = _inside(hunk, at - first)
            return None if inside is None else at + (moved + inside if counts else 0)
        moved += removed - added
    return at + (moved if counts else 0)


def _inside(hunk: Hunk, offset: int) -> int | None:
    """Return by how much a line of a hunk moved in it; None when the hunk added it."""
    moved = 0
    place = -1
    for line in hunk.lines:
        place += line[:1] != "-"
        if place == offset and line[:1] != "-":
            return None if line[:1] == "+" else moved
        moved += (line[:1] == "-") - (line[:1] == "+")
    return moved
