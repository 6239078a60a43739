"""Texts that show edits, unified diffs and apply_patch envelopes, ↔ `FileDiff`; pure, the ground of `edits` and `changes`."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

import msgspec

from recollect.limits import NAME_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

ChangeType = Literal["created", "updated", "deleted", "renamed"]
FILES_PER_DIFF_MAX = 500
COMPARED_LINES_MAX = 100  # on each side; comparing more line by line costs too much for what it tells
COMPARED_PAIRS_MAX = 500  # of equal lines, one on each side: texts that say one line again and again cost the most
PATCH_BEGINS = "*** Begin Patch"

_NOWHERE = "/dev/null"
_BEFORE_UNKNOWN = "\\ what stood here before is not known"
_ENVELOPE = re.compile(r"^\*\*\* (?:Begin Patch|(?:Update|Add|Delete) File: )", re.MULTILINE)
_PATCHED_FILE = re.compile(r"\*\*\* (Update|Add|Delete) File: (.+)")
_MOVED = "*** Move to: "
_PATCH_KINDS: dict[str, ChangeType] = {"Update": "updated", "Add": "created", "Delete": "deleted"}
_NUMBERED = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)")
_PREFIXES = frozenset({"a/b/", "i/w/", "c/i/", "c/w/", "o/w/"})  # git's own, and those of diff.mnemonicPrefix
_ESCAPE = re.compile(r"\\([0-3][0-7]{2}|.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}


class Hunk(msgspec.Struct, frozen=True):
    """A run of lines, each behind ' ', '-' or '+'; the numbers of its first line before and after are None where unknown."""

    lines: tuple[str, ...] = ()
    old_start: int | None = None
    new_start: int | None = None
    section: str = ""

    @property
    def new_range(self) -> tuple[int, int] | None:
        """The first and last line it takes up in the new file, or the line behind what it removed; None where that is unknown."""
        kept = sum(line[:1] != "-" for line in self.lines)
        if self.new_start is None or (kept and not self.new_start):
            return None
        return (self.new_start, self.new_start + kept - 1) if kept else (self.new_start + 1, self.new_start + 1)


class FileDiff(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to one file; `before_known` is False where lines were replaced whose text nobody told."""

    path: str = ""
    renamed_from: str | None = None
    change_type: ChangeType = "updated"
    hunks: tuple[Hunk, ...] = ()
    before_known: bool = True

    def lines(self, sign: str) -> list[str]:
        """Return the lines behind a sign, without it, in order."""
        return [line[1:] for hunk in self.hunks for line in hunk.lines if line[:1] == sign]


class _Draft(msgspec.Struct):
    """A `FileDiff` while its lines come in."""

    path: str = ""
    renamed_from: str | None = None
    change_type: ChangeType = "updated"
    hunks: list[Hunk] = msgspec.field(default_factory=list[Hunk])
    is_headed: bool = False

    def finished(self, *, before_known: bool = True) -> FileDiff:
        return FileDiff(
            path=self.path,
            renamed_from=self.renamed_from,
            change_type=self.change_type,
            hunks=tuple(hunk for hunk in self.hunks if any(line[0] != " " for line in hunk.lines)),
            before_known=before_known,
        )


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; the newline at its end begins none."""
    return text.removesuffix("\n").split("\n") if text else []


def edit_hunk(before: str, after: str, start: int | None = None) -> Hunk:
    """Return the hunk that turns one text into another; the lines they share at either end, and few between, are context."""
    old, new = lines_of(before), lines_of(after)
    shorter = min(len(old), len(new))
    head = next((n for n in range(shorter) if old[n] != new[n]), shorter)
    tail = next((n for n in range(shorter - head) if old[-1 - n] != new[-1 - n]), shorter - head)
    lines = [" " + line for line in old[:head]]
    lines += _compared(old[head : len(old) - tail], new[head : len(new) - tail])
    lines += [" " + line for line in old[len(old) - tail :]]
    old_start, new_start = (start - 1 if start and not side else start for side in (old, new))  # as git counts: the line before nothing
    return Hunk(lines=tuple(lines), old_start=old_start, new_start=new_start)


def _compared(old: list[str], new: list[str]) -> list[str]:
    if not _is_comparable(old, new):
        return ["-" + line for line in old] + ["+" + line for line in new]
    found: list[str] = []
    for kind, old_from, old_to, new_from, new_to in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            found += [" " + line for line in old[old_from:old_to]]
        else:
            found += ["-" + line for line in old[old_from:old_to]] + ["+" + line for line in new[new_from:new_to]]
    return found


def _is_comparable(old: list[str], new: list[str]) -> bool:
    if not old or not new or max(len(old), len(new)) > COMPARED_LINES_MAX:
        return False
    counts = Counter(new)
    return sum(counts[line] for line in old) <= COMPARED_PAIRS_MAX


def render(diff: FileDiff) -> str:
    """Return a diff as text without the names of its file, unless it was renamed; `parse_diff` reads it back."""
    lines: list[str] = []
    if diff.renamed_from is not None:
        lines += [f"rename from {diff.renamed_from}", f"rename to {diff.path}"]
    elif diff.change_type in {"created", "deleted"}:
        lines.append("new file" if diff.change_type == "created" else "deleted file")
    for hunk in diff.hunks:
        lines.append(_heading(hunk))
        lines += hunk.lines
    if not diff.before_known:
        lines.append(_BEFORE_UNKNOWN)
    return "\n".join(lines)


def _heading(hunk: Hunk) -> str:
    section = f" {hunk.section}" if hunk.section else ""
    if hunk.old_start is None or hunk.new_start is None:
        return "@@" + section
    old = sum(line[:1] != "+" for line in hunk.lines)
    new = sum(line[:1] != "-" for line in hunk.lines)
    return f"@@ -{hunk.old_start},{old} +{hunk.new_start},{new} @@{section}"


def parse_diff(text: str) -> tuple[FileDiff, ...]:
    """Read an envelope, a unified diff, hunks without a file, or bare lines behind '-' and '+'; nothing for other text."""
    if _ENVELOPE.search(text):
        return parse_patch(text)
    found = parse_unified(text)
    if found:
        return found
    lines = [line or " " for line in lines_of(text) if line[:1] != "\\"]
    signs = {line[:1] for line in lines}
    if signs & {"+", "-"} and signs <= {"+", "-", " "}:
        return (FileDiff(hunks=(Hunk(lines=tuple(lines)),)),)
    return ()


def parse_unified(text: str) -> tuple[FileDiff, ...]:
    """Read a unified diff of any number of files, git's or plain; hunks before the first file have an empty path."""
    lines = lines_of(text)
    drafts: list[_Draft] = []
    at = 0
    while at < len(lines) and len(drafts) <= FILES_PER_DIFF_MAX:
        line = lines[at]
        step = 1
        if _is_heading(line):
            hunk, end = _read_hunk(lines, at)
            drafts = drafts or [_Draft()]
            drafts[-1].hunks.append(hunk)
            step = end - at
        elif line.startswith("diff --git "):
            drafts.append(_Draft(path=_git_path(line.removeprefix("diff --git ").strip()), is_headed=True))
        elif _begins_file(lines, at):
            if not drafts or not drafts[-1].is_headed or drafts[-1].hunks:
                drafts.append(_Draft())
            _take_names(line, lines[at + 1], drafts[-1])
            step = 2
        elif (taken := _extended(line, drafts[-1] if drafts and not drafts[-1].hunks else _Draft())) is not None:
            drafts = drafts or [taken]
        at += step
    before_known = _BEFORE_UNKNOWN not in lines
    return tuple(draft.finished(before_known=before_known) for draft in drafts[:FILES_PER_DIFF_MAX])


def _begins_file(lines: Sequence[str], at: int) -> bool:
    return lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ ")


def _is_heading(line: str) -> bool:
    return line.startswith("@@")


def _take_names(old_line: str, new_line: str, draft: _Draft) -> None:
    old, new = (_unquoted(line[4:].split("\t", 1)[0].strip()) for line in (old_line, new_line))
    if old[:2] + new[:2] in _PREFIXES:
        old, new = old[2:], new[2:]
    elif old == _NOWHERE:
        new = new.removeprefix("b/")
    elif new == _NOWHERE:
        old = old.removeprefix("a/")
    draft.path = old if new == _NOWHERE else new
    draft.is_headed = False
    if _NOWHERE in {old, new}:
        draft.change_type = "created" if old == _NOWHERE else "deleted"


def _extended(line: str, draft: _Draft) -> _Draft | None:
    """Read one of git's lines on a file as a whole into its draft; None when it is none."""
    line = line.rstrip("\r")
    if line.startswith("rename from "):
        draft.renamed_from, draft.change_type = _unquoted(line.removeprefix("rename from ")), "renamed"
    elif line.startswith(("rename to ", "copy to ")):
        draft.path = _unquoted(line.partition(" to ")[2])
        draft.change_type = "renamed" if line.startswith("rename") else "created"
    elif line == "new file" or line.startswith("new file mode "):
        draft.change_type = "created"
    elif line == "deleted file" or line.startswith("deleted file mode "):
        draft.change_type = "deleted"
    else:
        return None
    return draft


def _git_path(names: str) -> str:
    """Return the path of `a/path b/path`; where the two differ, lines that follow name them."""
    half = len(names) // 2
    if names[:half][2:] == names[half + 1 :][2:]:
        return names[half + 1 :][2:]
    last = _unquoted('"' + names.rpartition(' "')[2]) if names.endswith('"') else names.rpartition(" ")[2]
    return last.removeprefix("b/")


def _unquoted(name: str) -> str:
    """Return a path that git may have quoted as C does, with bytes as octal numbers."""
    if len(name) < 2 or not name[0] == name[-1] == '"':  # noqa: PLR2004  both quotes
        return name
    plain = _ESCAPE.sub(lambda found: _ESCAPED.get(found[1], chr(int(found[1], 8)) if len(found[1]) > 1 else found[1]), name[1:-1])
    try:
        return plain.encode("latin-1").decode()
    except UnicodeError:
        return plain


def _read_hunk(lines: Sequence[str], at: int) -> tuple[Hunk, int]:
    """Read the hunk whose heading stands at a line; return it, and where it ends.

    The heading's counts decide whether `--- x` is a removed line or the next file; lines beyond them are taken too, as models miscount.
    """
    match = _NUMBERED.match(lines[at])
    left = [int(match[2] or 1), int(match[4] or 1)] if match else []
    start = Hunk(old_start=int(match[1]) if match else None, new_start=int(match[3]) if match else None, section=_section(lines[at], match))
    found: list[str] = []
    at += 1
    while at < len(lines):
        line = lines[at] if lines[at] not in {"", "\r"} else " "
        is_over = bool(left) and max(left) <= 0
        if is_over and lines[at].rstrip("\r") in {"", "-- ", "--"}:
            break
        if line[0] not in " +-\\" or (_begins_file(lines, at) and (is_over or any(map(_is_heading, lines[at + 2 : at + 3])))):
            break
        if line[0] != "\\":
            found.append(line)
            left = [left[0] - (line[0] != "+"), left[1] - (line[0] != "-")] if left else []
        at += 1
    return msgspec.structs.replace(start, lines=tuple(found)), at


def _section(heading: str, match: re.Match[str] | None) -> str:
    section = match[5] if match else heading.removeprefix("@@").strip().removesuffix("@@")
    return section.strip()[:NAME_CHARS_MAX].rstrip()


def parse_patch(text: str) -> tuple[FileDiff, ...]:
    """Read the envelopes of apply_patch in a text; what stands around them is left out."""
    drafts: list[_Draft] = []
    bodies: list[list[str]] = []
    is_open = False
    for line in lines_of(text):
        if match := _PATCHED_FILE.match(line):
            if len(drafts) >= FILES_PER_DIFF_MAX:
                break
            drafts.append(_Draft(path=match[2].strip(), change_type=_PATCH_KINDS[match[1]]))
            bodies.append([])
            is_open = True
        elif line.startswith("*** End Patch"):
            is_open = False
        elif is_open and line.startswith(_MOVED):
            draft = drafts[-1]
            draft.renamed_from, draft.path, draft.change_type = draft.path, line.removeprefix(_MOVED).strip(), "renamed"
        elif is_open:
            bodies[-1].append(line)
    for draft, body in zip(drafts, bodies, strict=True):
        draft.hunks = _patch_hunks(body, is_new=draft.change_type == "created")
    return tuple(draft.finished(before_known=draft.change_type != "deleted") for draft in drafts)


def _patch_hunks(body: Sequence[str], *, is_new: bool) -> list[Hunk]:
    """Read what an envelope says of one file: `@@` begins a hunk, and the first needs none."""
    hunks: list[Hunk] = []
    for begin, end in pairwise([-1, *(n for n, line in enumerate(body) if _is_heading(line)), len(body)]):
        lines = [line if line not in {"", "\r"} else " " for line in body[begin + 1 : end]]
        heading = body[begin] if begin >= 0 else ""
        numbers = _NUMBERED.match(heading)
        old_start, new_start = (0, 1) if is_new else (int(numbers[1]), int(numbers[3])) if numbers else (None, None)
        shown = tuple(line for line in lines if line[0] in " +-")
        hunks.append(Hunk(lines=shown, old_start=old_start, new_start=new_start, section=_section(heading, numbers)))
    return hunks
