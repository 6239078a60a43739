"""What the tools do with one file or folder: read lines, list, write, and change one place; below `tools`, above `confinement`."""

from __future__ import annotations

import codecs
import heapq
import os
import stat
from typing import TYPE_CHECKING, Any

from recollect.agent.confinement import listed, read_bytes, replace_bytes, safe_path
from recollect.checks import checked_count, checked_text
from recollect.errors import InputError, NotFoundError, TooLargeError
from recollect.text import cut

if TYPE_CHECKING:
    from pathlib import Path

FILE_BYTES_MAX = 4_000_000
LINES_MAX = 2_000
LINE_CHARS_MAX = 2_000
READ_CHARS_MAX = 60_000
ENTRIES_MAX = 1_000
BINARY_PROBE_BYTES = 8_192
_KINDS = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "link"}


def read_lines(root: Path, path: str, first_line: int, last_line: int | None) -> dict[str, Any]:
    """Return lines of a text file, from `first_line` to `last_line`, as many as the limits allow."""
    found = safe_path(root, path)
    first = max(checked_count("first_line", first_line), 1)
    last = None if last_line is None else checked_count("last_line", last_line)
    if last is not None and last < first:
        msg = f"last_line {last} comes before first_line {first}: give them in order"
        raise InputError(msg)
    lines = lines_of(text_of(root, found))
    if lines and first > len(lines):
        msg = f"{path[:200]!r} has {len(lines):,} lines, so none from {first:,} on: begin earlier"
        raise InputError(msg)
    shown: list[str] = []
    room = READ_CHARS_MAX
    for line in lines[first - 1 : last][:LINES_MAX]:
        short = cut(line, LINE_CHARS_MAX)
        room -= len(short) + 1
        if room < 0:
            break
        shown.append(short)
    end = first - 1 + len(shown)
    return {
        "path": relative(root, found),
        "first_line": first,
        "last_line": end,
        "lines_in_file": len(lines),
        "is_cut": end < min(len(lines) if last is None else last, len(lines)),
        "text": "\n".join(shown),
    }


def list_folder(root: Path, path: str) -> dict[str, Any]:
    """Return the names in a folder, in order, with their kind and size."""
    found = safe_path(root, path)
    entries = listed(root, found)
    first = heapq.nsmallest(ENTRIES_MAX, entries, key=lambda entry: entry[0])
    return {
        "path": relative(root, found),
        "entries": [
            {"name": sayable(name), "kind": _KINDS.get(stat.S_IFMT(status.st_mode), "other"), "bytes": status.st_size}
            for name, status in first
        ],
        "is_cut": len(entries) > len(first),
    }


def write(root: Path, path: str, content: str) -> dict[str, Any]:
    """Write a whole file, with the line ends and the byte order mark of the one it replaces."""
    found = safe_path(root, path, writing=True)
    text = checked_text("content", content)
    try:
        before = read_bytes(root, found, FILE_BYTES_MAX)
    except (NotFoundError, TooLargeError):
        before = b""
    if before and not is_binary(before):
        text = _with_ends_of(before.decode("utf-8", "replace"), text)
        if before.startswith(codecs.BOM_UTF8) and not text.startswith("\ufeff"):
            text = "\ufeff" + text
    raw = _encoded(path, text)
    is_new = replace_bytes(root, found, raw)
    return {"path": relative(root, found), "bytes": len(raw), "status": "created" if is_new else "updated"}


def edit(root: Path, path: str, old_string: str, new_string: str) -> dict[str, Any]:
    """Put one text in the one place where another stands."""
    found = safe_path(root, path, writing=True)
    if not checked_text("old_string", old_string):
        msg = "old_string is empty: give the text that is to be replaced, or write the file with write_file"
        raise InputError(msg)
    before = read_bytes(root, found, FILE_BYTES_MAX)
    try:
        text = before.decode()
    except UnicodeDecodeError as error:
        msg = f"{path[:200]!r} is not UTF-8 text, so that it cannot be edited: change it with a command"
        raise InputError(msg) from error
    wanted = _with_ends_of(text, old_string)
    places = _places(text, wanted)
    if places != 1:
        remedy = "read the file and give its text exactly" if not places else "give more of the text around it"
        msg = f"old_string stands {places:,} times in {path[:200]!r}, not once: {remedy}"
        raise InputError(msg)
    line = text.count("\n", 0, text.index(wanted)) + 1
    replace_bytes(root, found, _encoded(path, text.replace(wanted, _with_ends_of(text, checked_text("new_string", new_string)))))
    return {"path": relative(root, found), "line": line}


def text_of(root: Path, path: Path) -> str:
    """Return the text of a file; bytes that are no text are refused."""
    raw = read_bytes(root, path, FILE_BYTES_MAX)
    if is_binary(raw):
        msg = f"{relative(root, path)[:200]!r} is no text but binary: look at it with a command that knows its format"
        raise InputError(msg)
    return raw.decode("utf-8-sig", "replace")


def lines_of(text: str) -> list[str]:
    """Return the lines as an editor counts them, without their ends."""
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def is_binary(raw: bytes) -> bool:
    """Tell whether bytes are no text, as Git does: text has no NUL near its beginning."""
    return b"\0" in raw[:BINARY_PROBE_BYTES]


def relative(root: Path, path: Path) -> str:
    """Return a path as it is told: from the root, with slashes."""
    return sayable(path.relative_to(root).as_posix())


def sayable(name: str) -> str:
    """Return a name as text: a file system may hold names that are not."""
    return os.fsencode(name).decode("utf-8", "replace")


def _places(text: str, wanted: str) -> int:
    """Count where a text stands, places that overlap too."""
    count, at = 0, text.find(wanted)
    while at >= 0:
        count, at = count + 1, text.find(wanted, at + 1)
    return count


def _with_ends_of(before: str, text: str) -> str:
    """Return a text with the line ends of another: CRLF where all of those are."""
    ends = before.count("\n")
    return text.replace("\r\n", "\n").replace("\n", "\r\n") if ends and before.count("\r\n") == ends else text


def _encoded(path: str, text: str) -> bytes:
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        msg = f"the new content of {path[:200]!r} has characters that cannot be written (lone surrogates): leave them out"
        raise InputError(msg) from error
    if len(raw) > FILE_BYTES_MAX:
        msg = f"the new content of {path[:200]!r} has {len(raw):,} bytes, more than {FILE_BYTES_MAX:,}: write less"
        raise TooLargeError(msg)
    return raw
