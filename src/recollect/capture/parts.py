"""The parts of a turn beside its messages: context files, changes, checkpoints; read from clean records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.changes import CHANGE_TYPES, completed, completed_by, rename_summary
from recollect.capture.shapes import as_float, as_id, as_int, as_text
from recollect.identity import content_hash
from recollect.limits import NAME_CHARS_MAX, PATH_CHARS_MAX, SUMMARY_CHARS_MAX, SYMBOLS_MAX
from recollect.model import Checkpoint, CodeChange, ContextFile
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from recollect.capture.reading import Reading

_PER_CENT = 100.0
_LINES = (("line_start", "line1"), ("line_end", "line2"))


def read_context_file(item: dict[str, Any], time: datetime | None, reading: Reading) -> ContextFile | None:
    """Read a file that was given as context; None without a path."""
    path = _path(item, reading)
    if path is None:
        return None
    first, last = told_lines(item)
    usefulness = _usefulness(item.get("usefulness"), reading)
    symbols = cast("list[Any]", item.get("symbols")) if isinstance(item.get("symbols"), list) else []
    text = item.get("file_content")
    return ContextFile(
        file_path=path,
        line_start=first,
        line_end=last,
        usefulness=usefulness,
        source=short_name(item.get("source")),
        symbols=tuple(str(symbol)[:NAME_CHARS_MAX] for symbol in symbols[:SYMBOLS_MAX] if isinstance(symbol, str)),
        content_hash=short_name(item.get("content_hash")) or (content_hash(text) if isinstance(text, str) else None),
        language=short_name(item.get("language")),
        timestamp=reading.time(item.get("timestamp")) or time,
    )


def each_file_once(files: Sequence[ContextFile], told: Sequence[ContextFile]) -> tuple[ContextFile, ...]:
    """Return files and those that a list tells of, the same lines of a file once: as told, with what only the other says of them.

    A list that names a file several times means it.
    """
    kept = list(told)
    places = {_lines_of(file): n for n, file in reversed([*enumerate(kept)])}
    alone: list[ContextFile] = []
    for file in files:
        place = places.get(_lines_of(file))
        if place is None:
            alone.append(file)
        else:
            kept[place] = _with_fields_of(kept[place], file)
    return (*alone, *kept)


def _lines_of(file: ContextFile) -> tuple[str, int | None, int | None]:
    return file.file_path, file.line_start, file.line_end


def _with_fields_of(file: ContextFile, other: ContextFile) -> ContextFile:
    missing = [name for name in ("usefulness", "source", "content_hash", "language") if getattr(file, name) is None]
    return msgspec.structs.replace(file, symbols=file.symbols or other.symbols, **{name: getattr(other, name) for name in missing})


def _usefulness(given: object, reading: Reading) -> float | None:
    """Read a usefulness from 0 to 1, or in per cent; unknown is None."""
    value = as_float(given)
    if value is None:
        reading.notes["usefulness_unreadable"] += given is not None
        return None
    share = value / _PER_CENT if value > 1 else value
    reading.notes["usefulness_out_of_range"] += not 0 <= share <= 1
    return min(max(share, 0.0), 1.0)


def read_change(item: dict[str, Any], time: datetime | None, reading: Reading) -> CodeChange | None:
    """Read a change of a file; None without a path."""
    change = told_change(item, time, reading)
    return None if change is None else completed_by(change, None)


def told_change(item: dict[str, Any], time: datetime | None, reading: Reading) -> CodeChange | None:
    """Read what is told of a change, and what its diff shows; the rest is left empty, its type too. None without a path."""
    path = _path(item, reading)
    if path is None:
        return None
    first, last = told_lines(item)
    summary, diff = as_text(item.get("change_summary")), as_text(item.get("diff"))
    before = as_text(item.get("renamed_from") or item.get("old_path"))
    located = reading.place.locate(before) if before else ""
    if located and located.isprintable():
        summary = rename_summary(located, summary or "")
    elif summary:
        summary = shorten(summary, SUMMARY_CHARS_MAX)
    told = (short_name(item.get("change_type")) or "").lower()
    kind = CHANGE_TYPES.get(told, told) or ("renamed" if before else None)
    change = CodeChange(
        file_path=path,
        change_type=kind or "",
        change_summary=summary,
        git_commit=short_name(item.get("git_commit")),
        line_start=first,
        line_end=last,
        function_name=short_name(item.get("function_name")),
        lines_added=_count(item, "lines_added", reading),
        lines_removed=_count(item, "lines_removed", reading),
        code_before_hash=short_name(item.get("code_before_hash")),
        code_after_hash=short_name(item.get("code_after_hash")),
        diff=diff,
        severity=(short_name(item.get("severity")) or "").lower() or None,
        language=short_name(item.get("language")),
        tool_call_id=short_name(item.get("tool_call_id")),
        diff_chunk_id=short_name(item.get("diff_chunk_id")),
        timestamp=reading.time(item.get("timestamp")) or time,
    )
    return change if diff is None else completed(change, reading.place)


def _count(item: dict[str, Any], name: str, reading: Reading) -> int | None:
    """Read how many there were; fewer than none is unknown."""
    count = as_int(item.get(name))
    if count is None or count >= 0:
        return count
    reading.notes[f"{name}_unreadable"] += 1
    return None


def read_checkpoint(given: object, time: datetime | None, reading: Reading) -> Checkpoint | None:
    """Read a snapshot of the work tree; None when nothing names it."""
    if not isinstance(given, dict):
        return None
    item = cast("dict[str, Any]", given)
    checkpoint_id = short_name(item.get("checkpoint_id") or item.get("id"))
    git_hash = short_name(item.get("git_hash") or item.get("commit_hash"))
    if checkpoint_id is None and git_hash is None:
        return None
    folder = snapshot_folder(item)
    return Checkpoint(
        checkpoint_id=checkpoint_id or git_hash,
        git_hash=git_hash,
        parent_checkpoint=short_name(item.get("parent_checkpoint")),
        workspace_dir=folder[:PATH_CHARS_MAX] if folder else None,
        timestamp=reading.time(item.get("timestamp")) or time,
    )


def snapshot_folder(checkpoint: dict[str, Any]) -> str | None:
    """Return the folder that a snapshot is of, under the names that the payload and the engine use for it."""
    return as_text(checkpoint.get("workspace_dir") or checkpoint.get("workspace_folder"))


def told_path(item: dict[str, Any]) -> str | None:
    """Return the path of a file or change, under the names that senders use for it; not located yet."""
    return as_text(item.get("file_path") or item.get("file_name") or item.get("path"))


def told_lines(item: dict[str, Any]) -> tuple[int | None, int | None]:
    """Return the first and the last line of a file or change, under the names that the payload and the engine use for them."""
    first, last = ((item.get(name) if item.get(name) is not None else item.get(other)) for name, other in _LINES)
    return as_int(first), as_int(last)


def _path(item: dict[str, Any], reading: Reading) -> str | None:
    path = told_path(item)
    return (reading.place.locate(path) or None) if path else None


def short_name(value: object) -> str | None:
    """Return a name or id as text of bounded length."""
    text = as_id(value)
    return text[:NAME_CHARS_MAX] if text else None
