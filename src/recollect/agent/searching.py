"""What the tools find among a project's files, by name and by what is in them, in linear time; below `tools`, above `confinement`."""

from __future__ import annotations

import stat
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import re2

from recollect.agent.confinement import read_bytes, safe_path
from recollect.agent.files import FILE_BYTES_MAX, is_binary, relative
from recollect.checks import checked_text
from recollect.code.walking import Skipped, project_files
from recollect.errors import InputError, NotFoundError, RecollectError
from recollect.text import cut

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATTERN_CHARS_MAX = 1_000
PATTERN_BYTES_MAX = 8 * 1024 * 1024  # the memory a compiled pattern may take
FILES_MAX = 500
MATCHES_MAX = 200
MATCH_CHARS_MAX = 400
SEARCHED_FILES_MAX = 50_000
SEARCHED_BYTES_MAX = 256_000_000
_ANCHORS_OF_A_TEXT = ("\\A", "\\z")


def glob(root: Path, pattern: str, path: str) -> dict[str, Any]:
    """Return the files whose paths a pattern fits."""
    found: list[str] = []
    is_cut = False
    for seen, file in enumerate(_files(root, _folder(root, path), pattern, Skipped())):
        is_cut = len(found) == FILES_MAX or seen == SEARCHED_FILES_MAX
        if is_cut:
            break
        found.append(file)
    return {"files": found, "is_cut": is_cut}


def grep(root: Path, pattern: str, path: str, names: str) -> dict[str, Any]:
    """Return the lines that a pattern fits; a file that is named itself is searched even when it is ignored."""
    search = _Search(root, pattern)
    skipped = Skipped()
    start = safe_path(root, path)
    files = iter([relative(root, start)]) if start.is_file() else _files(root, _folder(root, path), names, skipped)
    while not search.is_cut and (file := next(files, None)) is not None:
        search.file(file)
    return {
        "matches": search.matches,
        "is_cut": search.is_cut,
        "searched_files": search.files,
        "skipped_files": search.skipped + skipped.files + skipped.folders,
    }


class _Search:
    """What was found so far, and how much was looked at."""

    def __init__(self, root: Path, pattern: str) -> None:
        self.matches: list[dict[str, Any]] = []
        self.files = 0
        self.skipped = 0
        self.is_cut = False
        self._root = root
        self._bytes = 0
        self._line = _compiled(pattern, pattern)
        is_filtered = not any(anchor in pattern for anchor in _ANCHORS_OF_A_TEXT)
        self._any = _compiled(pattern, f"(?m:{pattern})") if is_filtered else None

    def file(self, file: str) -> None:
        if self.files == SEARCHED_FILES_MAX or self._bytes > SEARCHED_BYTES_MAX:
            self.is_cut = True
            return
        try:
            raw = read_bytes(self._root, safe_path(self._root, file), FILE_BYTES_MAX)
        except RecollectError:  # gone, too large, or not to be read: the next one may be
            self.skipped += 1
            return
        self._bytes += len(raw)
        if is_binary(raw):
            self.skipped += 1
            return
        self.files += 1
        text = raw.replace(b"\r\n", b"\n")
        if self._any is not None and self._any.search(text) is None:
            return
        for number, line in enumerate(text.split(b"\n"), 1):
            if self._line.search(line) is not None:
                if len(self.matches) == MATCHES_MAX:
                    self.is_cut = True
                    return
                self.matches.append({"file": file, "line": number, "text": cut(line.decode("utf-8", "replace"), MATCH_CHARS_MAX)})


def _files(root: Path, folder: Path, pattern: str, skipped: Skipped) -> Iterator[str]:
    """Yield the paths of files below a folder that a pattern fits; one without a slash fits names in every folder."""
    fitting = _compiled(pattern, _translated(pattern))
    below = "" if folder == root else folder.relative_to(root).as_posix() + "/"
    heeds = find_spec("pathspec") is not None
    by_name = "/" not in pattern
    for path, entry in project_files(root, skipped, wanted=lambda _: True, below=below, heeds_ignore_files=heeds):
        if fitting.fullmatch((entry.name if by_name else path[len(below) :]).encode()) is None:
            continue
        try:
            mode = entry.stat(follow_symlinks=False).st_mode
        except OSError:
            skipped.files += 1
            continue
        if stat.S_ISREG(mode):
            yield path


def _folder(root: Path, path: str) -> Path:
    found = safe_path(root, path)
    if not found.exists():
        msg = f"there is no {path[:200]!r} in the project: list_directory tells what there is"
        raise NotFoundError(msg)
    if not found.is_dir():
        msg = f"{path[:200]!r} is no directory: name the one to look in"
        raise InputError(msg)
    return found


def _compiled(pattern: str, regex: str) -> Any:
    """Compile what a pattern means."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = PATTERN_BYTES_MAX
    if len(checked_text("pattern", pattern)) > PATTERN_CHARS_MAX:
        msg = f"a pattern has at most {PATTERN_CHARS_MAX:,} characters, not {len(pattern):,}: search for less"
        raise InputError(msg)
    try:
        return re2.compile(regex.encode(), options)
    except (re2.error, UnicodeEncodeError) as error:
        told = error.args[0] if error.args else ""
        reason = told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told)
        msg = f"{pattern[:100]!r} is no pattern ({reason[:200]}): use the syntax of RE2, without look-around and back-references"
        raise InputError(msg) from error


def _translated(pattern: str) -> str:
    """Return a pattern of paths as a regular expression: * and ? within a name, ** across folders, [a-z] and {a,b}."""
    written: list[str] = []
    at = depth = 0
    rest = pattern.removeprefix("./")
    while at < len(rest):
        one = rest[at]
        closing = rest.find("]", at + 2) if one == "[" else -1
        if rest.startswith("**/", at):
            written.append("(?:.*/)?")
            at += 3
            continue
        if rest.startswith("**", at):
            written.append(".*")
            at += 2
            continue
        if closing > 0:
            inner = rest[at + 1 : closing].replace("\\", "\\\\").replace("[", "\\[")
            written.append("[" + ("^" + inner[1:] if inner.startswith("!") else inner) + "]")
            at = closing + 1
            continue
        if one == "{":
            depth += 1
        elif one == "}" and depth:
            depth -= 1
            one = "})"
        written.append({"*": "[^/]*", "?": "[^/]", "{": "(?:", "})": ")", ",": "|" if depth else ","}.get(one) or re2.escape(one))
        at += 1
    return "(?s)" + "".join(written)
