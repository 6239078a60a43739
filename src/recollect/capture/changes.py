"""What agents send about their edits, tool calls, the engine's chunks and diffs, → `CodeChange` values; pure, a step of capture.

A change says what is known: a count or hash of lines that nobody told is None, never 0. What cannot be read makes no change.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.definitions import is_comment, language_of, nearest_definition
from recollect.capture.diffs import FileDiff, edit_hunk, parse_diff, render
from recollect.capture.edits import edits_of_call, is_editing, line_number, whole_file
from recollect.capture.paths import Place
from recollect.identity import content_hash
from recollect.limits import DIFF_CHARS_MAX, PATH_CHARS_MAX, SUMMARY_CHARS_MAX
from recollect.model import CodeChange
from recollect.text import MARK, cut, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from recollect.capture.diffs import ChangeType, Hunk

CHANGES_PER_CALL_MAX = 500
HIGH_LINES_MIN = 101
LOW_LINES_MAX = 2
RENAMED = "renamed from "

_replace = msgspec.structs.replace
_decoder = json.JSONDecoder()
_NESTED_TEXTS_MAX = 2
_BESIDE_CHARS_MIN = 20
_BRACKETS = str.maketrans("()", "[]")  # where a parenthesis was cut off
_ACTIONS: dict[str, ChangeType] = {"add": "created", "remove": "deleted", "rename": "renamed", "edit": "updated"}
CHANGE_TYPES: dict[str, ChangeType] = {  # what senders call them
    "add": "created", "added": "created", "create": "created", "new": "created",
    "remove": "deleted", "removed": "deleted", "delete": "deleted",
    "rename": "renamed", "move": "renamed", "moved": "renamed",
    "edit": "updated", "edited": "updated", "update": "updated", "modify": "updated", "modified": "updated", "change": "updated",
}  # fmt: skip
_VERBS = {"created": "created", "deleted": "deleted", "renamed": "renamed"}
_WORKED_OUT = (
    "change_type", "function_name", "code_before_hash", "code_after_hash", "diff", "severity", "language", "tool_call_id", "diff_chunk_id",
)  # fmt: skip
_COUNTED = re.compile(r" \((?:[+−]\d+ ?)+\)$")  # as `_summary` writes it
_CUT = re.compile(re.escape(MARK).replace(r"\{shown\}", r"(\d{1,12})").replace(r"\{total\}", r"\d{1,12}"))

_SENSITIVE = re.compile(
    r"auth(?!or(?!i))|crypto|passw(?:or)?d|token(?!i[sz])|secret|credential|permission|migration|payment"
    r"|\.github/workflows/|(?:^|/)dockerfile(?:\.[^/]*)?$|\.dockerfile$"
)
_DOCUMENT = re.compile(
    r"\.(?:md|mdx|markdown|rst|adoc)$|(?:^|/)docs?/|(?:^|/)(?:readme|changelog|license|licence|notice|authors|contributing)(?:\.[^/]*)?$"
    r"|(?:^|/)(?!requirements|constraints|cmakelists)[^/]*\.txt$"
)
_TEST = re.compile(
    r"(?:^|/)(?:tests?|__tests__|specs?|testdata|fixtures|e2e)/|(?:^|/)(?:test_[^/]*|conftest\.py)$|[^/](?:_test|_spec|\.test|\.spec)\.[^/.]+$"
)
_TEST_CLASS = re.compile(r"[^/](?:Test|Tests|Spec)\.(?:java|kt|cs|scala|groovy|swift|php)$")


def changes_of_call(
    tool_name: str,
    arguments: dict[str, Any] | None,
    result: str | None,
    place: Place,
    *,
    tool_call_id: str | None,
    diff_chunk_id: str | None,
    time: datetime | None,
    succeeded: bool | None,
) -> tuple[CodeChange, ...]:
    """Return the changes that a tool call made, one for each file; none for a call that failed, or whose tool edits nothing.

    Where the result tells the engine's chunks they are believed over the arguments: they say what was really changed, and where.
    """
    name = tool_name.rpartition("__")[2].lower() if isinstance(tool_name, str) else ""  # pyright: ignore[reportUnnecessaryIsInstance]
    if succeeded is False or not name:
        return ()
    answer = result if isinstance(result, str) else None
    diffs = _diffs_of_chunks(answer) if answer and answer.lstrip()[:1] == "[" and is_editing(name) else []
    if not diffs and isinstance(arguments, dict):
        diffs = edits_of_call(name, arguments, answer)
    asked = CodeChange(file_path="", tool_call_id=tool_call_id, diff_chunk_id=diff_chunk_id, timestamp=time)
    return _changes(diffs, place, asked)


def changes_of_chunks(chunks: object, place: Place, *, tool_call_id: str | None, time: datetime | None) -> tuple[CodeChange, ...]:
    """Return the changes that the engine's `diff` role tells, one for each chunk: a list, or the JSON text of one."""
    return _changes(_diffs_of_chunks(chunks), place, CodeChange(file_path="", tool_call_id=tool_call_id, timestamp=time))


def completed(change: CodeChange, place: Place | None = None) -> CodeChange:
    """Return a change with what its sender left out and its diff tells: counts, lines, function, hashes, language, severity, summary.

    What was done to the file (an empty type is one that was not told), and where it was before, is taken from the diff where the
    sender did not tell it. A diff that was cut before it came here tells no counts, hashes or last line; one that is too long is
    cut here, after it was counted.
    """
    text = change.diff if isinstance(change.diff, str) else ""
    diffs = parse_diff(text)
    own = [diff for diff in diffs if is_same_file(diff.path, change.file_path)] or diffs
    shown = next((diff.change_type for diff in own if diff.change_type != "updated"), "updated")
    change = _replace(change, change_type=change.change_type or shown)
    if not own:
        return _filled(change, None)
    before = next((diff.renamed_from for diff in own if diff.renamed_from), None)
    before = _located(before, place or Place()) or None if before else None
    said = change.change_summary
    if before and said and change.change_type == "renamed" and not said.startswith(RENAMED):
        change = _replace(change, change_summary=rename_summary(before, said))
    merged = FileDiff(
        path=change.file_path,
        renamed_from=before,
        hunks=tuple(hunk for diff in own for hunk in diff.hunks),
        before_known=all(diff.before_known for diff in own),
    )
    return _filled(change, merged, is_whole=not _was_cut(text))


def completed_by(told: CodeChange, worked_out: CodeChange | None) -> CodeChange:
    """Return a change as it was told, with what its sender left out as it was worked out from its call; what nobody knows is judged."""
    if worked_out is not None:
        told = _with_lines(told, worked_out.line_start, worked_out.line_end)
        told = _replace(told, **{name: getattr(told, name) or getattr(worked_out, name) for name in _WORKED_OUT})
        counts = {name: getattr(worked_out, name) for name in ("lines_added", "lines_removed") if getattr(told, name) is None}
        told = _with_place_before(_replace(told, **counts), worked_out.change_summary)
    return _filled(_replace(told, change_type=told.change_type or "updated"), None)


def _with_place_before(change: CodeChange, summary: str | None) -> CodeChange:
    """Return a renamed file's change with the path that a summary says it had, unless its own does."""
    said = change.change_summary
    if summary is None or not summary.startswith(RENAMED) or change.change_type != "renamed" or (said or "").startswith(RENAMED):
        return change
    before = _COUNTED.sub("", summary.removeprefix(RENAMED))
    return _replace(change, change_summary=rename_summary(before, said) if said else summary)


def is_same_file(path: str, other: str) -> bool:
    """Tell whether two paths may be of one file: the same, or one the end of the other."""
    return bool(path) and (path == other or path.endswith("/" + other) or other.endswith("/" + path))


def _was_cut(text: str) -> bool:
    return any(int(found[1]) == len(text) for found in _CUT.finditer(text))


def _diffs_of_chunks(chunks: object) -> list[FileDiff]:
    value: Any = chunks
    for _ in range(_NESTED_TEXTS_MAX):
        if isinstance(value, str):
            try:
                value, _end = _decoder.raw_decode(value.lstrip())  # the engine may write a note behind the list
            except (ValueError, RecursionError):
                return []
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    found = (_diff_of_chunk(cast("dict[str, Any]", item)) for item in items[:CHANGES_PER_CALL_MAX] if isinstance(item, dict))
    return [diff for diff in found if diff is not None]


def _diff_of_chunk(chunk: dict[str, Any]) -> FileDiff | None:
    path, action, renamed = (chunk.get(key) for key in ("file_name", "file_action", "file_name_rename"))
    kind = _ACTIONS.get(action.strip().lower()) if isinstance(action, str) else None
    if not isinstance(path, str) or kind is None:
        return None
    removed, added = (text if isinstance(text := chunk.get(key), str) else "" for key in ("lines_remove", "lines_add"))
    start = line_number(chunk.get("line1"))
    if kind == "updated" and not removed and start is not None and start <= 1:
        kind = "created"
    if kind == "created" and not removed:
        return whole_file(path, added, "created")
    hunks = (edit_hunk(removed, added, max(start, 1) if start is not None else None),) if removed or added else ()
    if kind == "deleted":
        hunks = tuple(_replace(hunk, new_start=0 if hunk.new_start is not None else None) for hunk in hunks)
        return FileDiff(path=path, change_type=kind, hunks=hunks, before_known=bool(removed))
    if kind == "renamed" and isinstance(renamed, str) and renamed:
        return FileDiff(path=renamed, renamed_from=path, change_type=kind, hunks=hunks)
    return FileDiff(path=path, change_type=kind, hunks=hunks)


def _changes(diffs: Iterable[FileDiff], place: Place, asked: CodeChange) -> tuple[CodeChange, ...]:
    found: list[CodeChange] = []
    for diff in diffs:
        path = _located(diff.path, place)
        if not path:
            continue
        own = _replace(diff, path=path, renamed_from=_located(diff.renamed_from or "", place) or None)
        found.append(_filled(_replace(asked, file_path=path, change_type=diff.change_type, diff=render(own) or None), own))
        if len(found) >= CHANGES_PER_CALL_MAX:
            break
    return tuple(found)


def _located(path: str, place: Place) -> str:
    located = place.locate(path) if path and "\n" not in path else ""
    return located if located != "." and located.isprintable() and "\ufffd" not in located else ""


def _filled(change: CodeChange, diff: FileDiff | None, *, is_whole: bool = True) -> CodeChange:
    """Put what a diff tells where a change says nothing, then judge and sum up the change as it is known by then."""
    language = change.language or language_of(change.file_path)
    change = _replace(change, language=language, diff=cut(change.diff, DIFF_CHARS_MAX) if change.diff else change.diff)
    removed, added = (diff.lines("-"), diff.lines("+")) if diff is not None else ([], [])
    if diff is not None:
        start, end = _range(diff.hunks) if change.change_type != "deleted" else (None, None)
        change = _with_lines(change, start, end if is_whole else None)
        change = _replace(change, function_name=change.function_name or nearest_definition(diff.hunks, language))
    if diff is not None and is_whole:
        is_told = diff.before_known or bool(removed)
        change = _replace(
            change,
            lines_added=len(added) if change.lines_added is None else change.lines_added,
            lines_removed=len(removed) if change.lines_removed is None and is_told else change.lines_removed,
            code_before_hash=change.code_before_hash or (content_hash("\n".join(removed)) if removed else None),
            code_after_hash=change.code_after_hash or (content_hash("\n".join(added)) if added else None),
        )
    return _replace(
        change,
        severity=change.severity or severity_of(change, [*removed, *added] if diff is not None else None),
        change_summary=change.change_summary or _summary(change, diff.renamed_from if diff is not None else None),
    )


def _range(hunks: Sequence[Hunk]) -> tuple[int | None, int | None]:
    ranges = [hunk.new_range for hunk in hunks]
    known = [found for found in ranges if found is not None]
    return (known[0][0], max(last for _, last in known)) if known else (None, None)


def _with_lines(change: CodeChange, start: int | None, end: int | None) -> CodeChange:
    start = change.line_start if change.line_start is not None else start
    end = change.line_end if change.line_end is not None else end
    return _replace(change, line_start=start, line_end=end) if start is None or end is None or start <= end else change


def severity_of(change: CodeChange, changed: Sequence[str] | None) -> str | None:
    """Judge a change by the first rule that holds; `changed` are its lines, None where only their numbers are known.

    1. high: the file is deleted, or more than 100 lines are added and removed together.
    2. low: a document or a test, or nothing but blank lines and comments.
    3. high: the path has to do with authentication, cryptography, passwords, tokens, secrets, credentials, permissions,
       migrations or payments, or is a GitHub workflow or a Dockerfile.
    4. low: at most 2 lines are added and removed together.
    5. medium: everything else. A change of which nothing is known has no severity: None.
    """
    told = [count for count in (change.lines_added, change.lines_removed) if count is not None]
    count = max(sum(told), len(changed or ()))
    if change.change_type == "deleted" or count >= HIGH_LINES_MIN:
        return "high"
    if not told and changed is None:
        return None
    path = change.file_path
    low = path.lower()
    is_mute = changed is not None and bool(changed) == bool(count) and all(is_comment(line, change.language) for line in changed)
    if is_mute or _DOCUMENT.search(low) or _TEST.search(low) or _TEST_CLASS.search(path):
        return "low"
    if _SENSITIVE.search(low):
        return "high"
    return "low" if count <= LOW_LINES_MAX else "medium"


def rename_summary(path: str, beside: str) -> str:
    """Say where a file was before, which `trace` follows: the path whole, and beside it what there is room for."""
    told = RENAMED + path[:PATH_CHARS_MAX]
    room = SUMMARY_CHARS_MAX - len(told) - len(" ()")
    if not beside or room < min(len(beside), _BESIDE_CHARS_MIN):
        return told
    short = shorten(beside, room)
    return f"{told} ({short if short.count('(') == short.count(')') else short.translate(_BRACKETS)})"


def long_path_before(summary: str | None) -> str | None:
    """Return the path that a rename's summary names, where it is too long to leave room for anything else."""
    if summary is None or not summary.startswith(RENAMED) or not summary.isprintable():
        return None
    return summary.removeprefix(RENAMED) if SUMMARY_CHARS_MAX < len(summary) <= len(RENAMED) + PATH_CHARS_MAX else None


def has_own_words(change: CodeChange) -> bool:
    """Tell whether somebody said what a change was, and not only what it shows."""
    said = change.change_summary
    return said is not None and not said.startswith(RENAMED) and said != _summary(change, None)


def _summary(change: CodeChange, renamed_from: str | None) -> str:
    """Sum up in a phrase: `edited login_user (+3 −1)`, `created auth.py (+30)`, `renamed from src/a.py`."""
    name = change.file_path.rpartition("/")[2] or change.file_path
    verb = _VERBS.get(change.change_type, "edited")
    subject = (change.function_name or name) if verb == "edited" else name
    counts = [f"{sign}{count}" for sign, count in (("+", change.lines_added), ("−", change.lines_removed)) if count]
    if renamed_from and verb == "renamed":
        return rename_summary(renamed_from, " ".join(counts))
    ending = f" ({' '.join(counts)})" if counts else ""
    return shorten(f"{verb} {subject}", SUMMARY_CHARS_MAX - len(ending)) + ending
