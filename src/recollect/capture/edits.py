"""The arguments of a tool that edits files → `FileDiff` values with paths as they were sent; pure, used by `changes`.

The tool families are those of FORMATS §2: the Refact family, the RagForge family, Claude Code, Codex; and Gemini's.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.diffs import PATCH_BEGINS, ChangeType, FileDiff, Hunk, edit_hunk, lines_of, parse_diff, parse_patch
from recollect.capture.shapes import as_int
from recollect.limits import COUNT_MAX, NAME_CHARS_MAX
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

EDITS_PER_CALL_MAX = 500
_RANGES_MAX = 500
_RANGE_SEPARATOR = "---RANGE_SEPARATOR---"
_ANSWER_CHARS = 400

_PATH = ("path", "file_path", "filename", "file", "target_file", "notebook_path", "absolute_path")
_SOURCE, _DESTINATION = ("source", "src", "from"), ("destination", "dest", "to")
_OLD = ("old_string", "old_str", "old_text", "oldText")
_NEW = ("new_string", "new_str", "new_text", "newText", "replacement")
_CONTENT = ("content", "file_text", "contents", "new_content", "replacement")
_PATCH = ("input", "patch", "diff", "patch_text", "patchText")
_COMMAND = ("command", "cmd", "input")
_RANGE = re.compile(r"(\d{1,9})?\s*(:)?\s*(\d{1,9})?")
_OVERWRITTEN = re.compile(r"\b(?:updated|overwr[io]t\w*|modified|replaced)\b", re.IGNORECASE)
_CREATED = re.compile(r"\bcreated?\b", re.IGNORECASE)

_Arguments = dict[str, Any]


def edits_of_call(name: str, arguments: _Arguments, result: str | None) -> list[FileDiff]:
    """Return what a call did to files; `name` is lower-case and without its server; nothing for tools that edit none."""
    reader = _READERS.get(name)
    if reader is None or arguments.get("dry_run") is True or arguments.get("dryRun") is True:
        return []
    return list(reader(arguments, result or ""))


def is_editing(name: str) -> bool:
    """Tell whether a tool is one whose whole purpose is to edit files."""
    return name in _READERS and name not in _SHELLS


def line_number(value: object) -> int | None:
    """Return a line's number, or None for what is none."""
    if isinstance(value, str) and not (value.isascii() and value.isdecimal()):
        return None
    number = as_int(value)
    return number if number is not None and 0 <= number <= COUNT_MAX else None


def whole_file(path: str, content: str, kind: ChangeType) -> FileDiff:
    """Return the diff of a file that was written as a whole; what an updated one held before is not known."""
    lines = tuple("+" + line for line in lines_of(content))
    hunks = (Hunk(lines=lines, old_start=0, new_start=1),) if lines else ()
    return FileDiff(path=path, change_type=kind, hunks=hunks, before_known=kind == "created")


def _text(arguments: _Arguments, keys: Iterable[str]) -> str | None:
    return next((value for key in keys if isinstance(value := arguments.get(key), str)), None)


def _written(arguments: _Arguments, result: str) -> Iterable[FileDiff]:
    path, content = _text(arguments, _PATH), _text(arguments, _CONTENT)
    if path and content is not None:
        answer = result[:_ANSWER_CHARS].lstrip().partition("\n")[0].replace(path, "")
        was_there = _OVERWRITTEN.search(answer) is not None and _CREATED.search(answer) is None
        yield whole_file(path, content, "updated" if was_there else "created")


def _rewritten(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    path, content = _text(arguments, _PATH), _text(arguments, _CONTENT)
    if path and content is not None:
        yield whole_file(path, content, "updated")


def _edited(arguments: _Arguments, result: str) -> Iterable[FileDiff]:
    """Read one or several replacements in a file; replacing nothing by a text creates it."""
    path, given = _text(arguments, _PATH), arguments.get("edits")
    if not path:
        return
    edits = cast("list[Any]", given)[:EDITS_PER_CALL_MAX] if isinstance(given, list) else [arguments]
    pairs = [(_text(edit, _OLD), _text(edit, _NEW) or "") for edit in edits if isinstance(edit, dict)]
    known = [(old, new) for old, new in pairs if old is not None and old != new]
    if known:
        is_new = not known[0][0]
        hunks = [edit_hunk(old, new, 1 if is_new and n == 0 else None) for n, (old, new) in enumerate(known)]
        yield FileDiff(path=path, change_type="created" if is_new else "updated", hunks=tuple(hunks))
    elif first := line_number(arguments.get("start_line")):
        last = line_number(arguments.get("end_line")) or first
        yield from _by_lines({**arguments, "ranges": f"{first}:{last}"}, result)
    elif isinstance(arguments.get("content"), str):
        yield from _rewritten(arguments, result)


def _commanded(arguments: _Arguments, result: str) -> Iterable[FileDiff]:
    command = arguments.get("command")
    if command == "create":
        return _written(arguments, result)
    if command == "str_replace":
        return _edited(arguments, result)
    return _inserted(arguments) if command == "insert" else ()


def _inserted(arguments: _Arguments) -> Iterable[FileDiff]:
    path, text = _text(arguments, _PATH), _text(arguments, ("new_str", "insert_text", "text"))
    after = line_number(arguments.get("insert_line"))
    if path and text:
        start = None if after is None else after + 1
        yield FileDiff(path=path, hunks=(edit_hunk("", text, start),))


def _by_lines(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    """Read lines that replace ranges such as `:3,40:50,100:,5`; ranges count in the old file, and what they held is not known."""
    path, content, ranges = _text(arguments, _PATH), _text(arguments, _CONTENT), _text(arguments, ("ranges", "range"))
    if not path or content is None:
        return
    contents = content.split(_RANGE_SEPARATOR, _RANGES_MAX)
    matches = [_RANGE.fullmatch(part.strip()) for part in (ranges or "").split(",", _RANGES_MAX)]
    hunks: list[Hunk] = []
    moved = 0
    for n, text in enumerate(contents):
        match = matches[n] if n < len(matches) else None
        lines = lines_of(text.removeprefix("\n") if n else text)
        start = int(match[1] or 1) if match and match[0] else None
        new_start = None if start is None else max(start + moved, 1) - (not lines)
        hunks.append(Hunk(lines=tuple("+" + line for line in lines), old_start=start, new_start=new_start))
        if match and start is not None:
            end = int(match[3]) if match[3] else start
            moved += len(lines) - max(end - start + 1, 0)
    yield FileDiff(path=path, hunks=tuple(hunks), before_known=False)


def _by_pattern(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    """Read a replacement of what a pattern matches: the pattern heads the hunk, since it is not the text that was replaced."""
    path, replacement = _text(arguments, _PATH), _text(arguments, _NEW)
    if path and replacement is not None:
        pattern = _text(arguments, ("pattern", "regex"))
        section = f"what matches {shorten(pattern, NAME_CHARS_MAX // 2)}" if pattern else ""
        lines = tuple("+" + line for line in lines_of(replacement))
        yield FileDiff(path=path, hunks=(Hunk(lines=lines, section=section),), before_known=False)


def _notebook(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    path, source, mode = _text(arguments, _PATH), _text(arguments, ("new_source", "content")), arguments.get("edit_mode")
    if path:
        lines = () if mode == "delete" or source is None else tuple("+" + line for line in lines_of(source))
        yield FileDiff(path=path, hunks=(Hunk(lines=lines),) if lines else (), before_known=mode == "insert")


def _removed(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    if path := _text(arguments, _PATH):
        yield FileDiff(path=path, change_type="deleted", before_known=False)


def _moved(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    source, destination = _text(arguments, _SOURCE), _text(arguments, _DESTINATION)
    if source and destination:
        into_folder = destination.endswith("/")
        path = destination + source.rstrip("/").rpartition("/")[2] if into_folder else destination
        yield FileDiff(path=path, renamed_from=source, change_type="renamed")


def _patched(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    text = _text(arguments, _PATCH)
    if text is None:
        return _ran(arguments, "")
    path = _text(arguments, _PATH) or ""
    return [diff if diff.path else msgspec.structs.replace(diff, path=path) for diff in parse_diff(text)]


def _ran(arguments: _Arguments, _: str) -> Iterable[FileDiff]:
    """Read the patch that a shell's command holds; what else a command does to files is not guessed."""
    for key in _COMMAND:
        value = arguments.get(key)
        texts = cast("list[Any]", value) if isinstance(value, list) else [value]
        for text in texts:
            if isinstance(text, str) and PATCH_BEGINS in text:
                return parse_patch(text)
    return ()


_SHELLS = frozenset({"bash", "shell", "exec_command", "run_shell_command", "run_command", "execute_bash", "local_shell", "container.exec"})
_READERS: dict[str, Callable[[_Arguments, str], Iterable[FileDiff]]] = {
    **dict.fromkeys(("write", "write_file", "create_file", "create_textdoc"), _written),
    **dict.fromkeys(("edit", "multiedit", "edit_file", "update_textdoc", "replace"), _edited),
    **dict.fromkeys(("str_replace_editor", "str_replace_based_edit_tool"), _commanded),
    **dict.fromkeys(("rm", "delete_path", "delete_file"), _removed),
    **dict.fromkeys(("mv", "move_file"), _moved),
    **dict.fromkeys(("apply_patch", "patch"), _patched),
    **dict.fromkeys(_SHELLS, _ran),
    "replace_textdoc": _rewritten,
    "update_textdoc_by_lines": _by_lines,
    "update_textdoc_regex": _by_pattern,
    "notebookedit": _notebook,
}
