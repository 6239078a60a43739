"""The text of a source file → its symbols: functions, methods, types and module-level variables; pure.

Broken code gives what its parser makes of it. What is too large, binary or minified gives nothing,
nor does what no parser reads in reasonable time.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING

import msgspec

from recollect.code.definitions import Scope, candidates, read
from recollect.code.languages import LANGUAGES, SymbolKind
from recollect.code.wording import comment_above, python_docstring, signature
from recollect.errors import ConfigError, InputError
from recollect.identity import content_hash
from recollect.limits import NAME_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ast_grep_py import SgNode

    from recollect.code.definitions import Candidate, Definition
    from recollect.code.languages import Language
    from recollect.code.wording import Clean

SOURCE_BYTES_MAX = 1_000_000
SYMBOLS_PER_FILE_MAX = 20_000
SYMBOL_DEPTH_MAX = 32
_LINE_CHARS_MAX = 100_000
_OPEN_COMMENTS_MAX = 200  # a parser looks for the end of each comment that has none, to the end of the file
_OPEN_COMMENT_CHARS_MAX = 20_000_000
_MINIFIED_CHARS_MIN = 4_000
_MINIFIED_LINE_CHARS_MEAN = 300


class Symbol(msgspec.Struct, frozen=True):
    """Something a source file defines; lines are counted from one, the last one included."""

    name: str
    qualified: str
    kind: SymbolKind
    line_start: int
    line_end: int
    signature: str
    docstring: str
    content_hash: str


class _Open(msgspec.Struct, frozen=True):
    """A scope that is open while its text is read."""

    end: int
    path: tuple[str, ...]
    scope: Scope


class _Source:
    """One text with what is looked up in it again and again."""

    def __init__(self, text: str, language: Language, clean: Clean) -> None:
        self.text = text
        self.clean = clean
        self.language = language
        self.lines = text.split("\n")
        self._starts = list(accumulate([len(line) + 1 for line in self.lines], initial=0))

    def line_at(self, index: int) -> int:
        """Return the number of the line an index lies in, counted from one."""
        return bisect_right(self._starts, index)


def symbols_of(text: str, language: str, clean: Clean = str) -> list[Symbol]:
    """Return the symbols of a source text in their order; nothing for what is too large, binary or minified.

    What they say of themselves is cleaned before it is cut, so that no half of a secret is left.

    Raises:
        InputError: the language is none of `LANGUAGES`.
        ConfigError: the parser is not installed.
    """
    known = LANGUAGES.get(language)
    if known is None:
        msg = f"{language[:60]!r} is no language whose symbols are read: use one of {', '.join(LANGUAGES)}"
        raise InputError(msg)
    if not is_readable(text) or (known.comments == "slashes" and _has_open_comments(text)):
        return []
    source = _Source(text, known, clean)
    found: list[Symbol] = []
    seen: set[str] = set()
    for candidate, definition, path in _defined(_root(text, language), source):
        symbol = _symbol(source, candidate, definition, path)
        if symbol.kind != "variable" or symbol.qualified not in seen:
            found.append(symbol)
            seen.add(symbol.qualified)
        if len(found) == SYMBOLS_PER_FILE_MAX:
            break
    return found


def is_readable(text: str) -> bool:
    """Tell whether a text is source somebody wrote: not empty, not huge, not binary, not minified."""
    if not text or len(text) > SOURCE_BYTES_MAX or "\0" in text:
        return False
    lines = text.count("\n") + 1
    if len(text) >= _MINIFIED_CHARS_MIN and len(text) / lines > _MINIFIED_LINE_CHARS_MEAN:
        return False
    return len(text) <= _LINE_CHARS_MAX or max(map(len, text.split("\n"))) <= _LINE_CHARS_MAX


def _has_open_comments(text: str) -> bool:
    """Tell whether so many comments are opened and never closed that parsing would take too long."""
    at = text.find("/*", max(text.rfind("*/"), 0))
    count = chars = 0
    while at >= 0:
        count += 1
        chars += len(text) - at
        if count > _OPEN_COMMENTS_MAX or chars > _OPEN_COMMENT_CHARS_MAX:
            return True
        at = text.find("/*", at + 2)
    return False


def _root(text: str, language: str) -> SgNode:
    try:
        from ast_grep_py import SgRoot  # noqa: PLC0415  an extra: only those who read code need it
    except ImportError as error:
        msg = "reading the symbols of source files needs ast-grep-py, which is not installed: pip install 'recollect[code]'"
        raise ConfigError(msg) from error
    try:
        return SgRoot(text, language).root()
    except UnicodeEncodeError:
        return SgRoot(text.encode("utf-8", "replace").decode(), language).root()


def _defined(root: SgNode, source: _Source) -> Iterator[tuple[Candidate, Definition, tuple[str, ...]]]:
    """Yield each definition with its path; what is local to a function is left out."""
    size = len(source.text)
    scopes = [_Open(size + 1, (), "module")]
    for candidate in candidates(root, source.language, source.text):
        while scopes[-1].end <= candidate.start:
            scopes.pop()
        outer = scopes[-1]
        if outer.scope == "closed":
            continue
        definition = read(candidate, source.language, source.text)
        if definition is None or (definition.kind is not None and not definition.parts):
            continue
        path = (*outer.path, *definition.parts)
        if _counts(candidate, definition, outer.scope):
            is_method = definition.kind == "function" and outer.scope in {"type", "mixin"}
            yield candidate, definition._replace(kind="method") if is_method else definition, path
        if candidate.shape.spans and definition.body is None:
            scopes = [scopes[0], _Open(size, definition.parts, definition.scope)]
        elif definition.scope != "none":
            scopes.append(_Open(candidate.end, path, definition.scope if len(scopes) < SYMBOL_DEPTH_MAX else "closed"))


def _counts(candidate: Candidate, definition: Definition, outer: Scope) -> bool:
    if definition.kind is None or (definition.kind == "variable" and outer == "type"):
        return False
    if candidate.shape.needs_owner and outer != "type":
        return False
    return all(len(part) <= NAME_CHARS_MAX for part in definition.parts)


def _symbol(source: _Source, candidate: Candidate, definition: Definition, path: tuple[str, ...]) -> Symbol:
    language, body = source.language, definition.body
    whole = source.text[candidate.start : candidate.end].rstrip()
    line_start = source.line_at(candidate.start)
    said = signature(source.text, candidate.head, candidate.end if body is None else body, source.clean)
    if language.closing and definition.kind != "variable":
        said = said.removesuffix(f" {language.closing}").rstrip("; ")
    doc = python_docstring(source.text, body, source.clean) if language.name == "python" and body is not None else ""
    return Symbol(
        name=path[-1],
        qualified=".".join(path),
        kind=definition.kind or "variable",
        line_start=line_start,
        line_end=source.line_at(candidate.start + max(len(whole) - 1, 0)),
        signature=said,
        docstring=doc or comment_above(source.lines, line_start, language.comments, source.clean),
        content_hash=content_hash(whole),
    )
