"""The text of a symbol as its file has it now: never one that the file no longer has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.code.languages import language_of
from recollect.code.symbols import symbols_of
from recollect.code.walking import SourceFile, lines_in, source_text
from recollect.errors import ConfigError
from recollect.identity import content_hash

if TYPE_CHECKING:
    from pathlib import Path

    from recollect.model import Scope


class Body(msgspec.Struct, frozen=True):
    """A symbol's text, where it stands now, how many lines its file has, and whether it is what it was when it was indexed."""

    text: str
    line_start: int
    line_end: int
    file_lines: int
    is_same: bool


def body_of(root: Path, scope: Scope) -> Body | None:
    """Return the text of a scope as its file has it now, wherever in the file it has moved; None when it is not there any more."""
    text = _text(root, scope.file_path)
    if text is None:
        return None
    lines, file_lines = text.split("\n"), lines_in(text)
    own = "\n".join(lines[scope.line_start - 1 : scope.line_end])
    if content_hash(own.strip()) == scope.content_hash:
        return Body(_shown(own), scope.line_start, scope.line_end, file_lines, is_same=True)
    language = language_of(scope.file_path)
    try:
        found = [] if language is None else symbols_of(text, language)
    except ConfigError:  # nobody here can tell where it is now
        return None
    same = [one for one in found if one.kind == scope.kind and one.qualified == scope.qualified]
    symbol = next((one for one in same if one.content_hash == scope.content_hash), same[0] if same else None)
    if symbol is None:
        return None
    moved = "\n".join(lines[symbol.line_start - 1 : symbol.line_end])
    return Body(_shown(moved), symbol.line_start, symbol.line_end, file_lines, is_same=symbol.content_hash == scope.content_hash)


def _shown(text: str) -> str:
    return text.replace("\r\n", "\n").removesuffix("\r")


def _text(root: Path, path: str) -> str | None:
    """Read a file below a folder; nothing that a link leads out of it to."""
    try:
        file = (root / path).resolve()
        if not file.is_relative_to(root.resolve()):
            return None
        size = file.stat().st_size
    except (OSError, ValueError):
        return None
    return source_text(root, SourceFile(path, "", size, 0))
