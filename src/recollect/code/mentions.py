"""A text → the code it speaks of: places in files, qualified names, and names that are hardly said by chance; pure.

Precision comes before recall: `login_user`, `LoginForm`, `Memory.open` and `src/auth.py:31` are mentions wherever they stand; a
plain word is one only where it is called in backquotes, or defined, and means one symbol.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.model import Scope

NAMES_MAX = 200
PLACES_MAX = 50
_TEXT_CHARS_MAX = 50_000
_NAME_CHARS = (4, 120)
_SAME_NAME_MAX = 3  # a name that more symbols have says nothing of one of them
_WORD = re.compile(r"(?<![\w./-])[^\W\d]\w*(?:(?:\.|::|->)[^\W\d]\w*)*(?![\w/-])")
_CALLED = re.compile(r"`([^\W\d]\w*)\(\)?`")
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|public|private|static|async|pub)[ \t]+){0,4}"
    r"(?:def|class|fn|func|function|interface|struct|trait|enum)[ \t]+([^\W\d]\w*)",
    re.MULTILINE,
)
_PLACE = re.compile(r"(?<![\w./~-])([\w./~-]{0,400}\w\.[A-Za-z]\w{0,5})(?::|#L|,? (?:at |on )?lines? )(\d{1,6})\b")
_PATH = re.compile(r"(?<![\w./~-])[\w./~-]{0,400}\w\.[A-Za-z]\w{0,5}\b")
_JOINED = re.compile(r"::|->")


class Mentions(msgspec.Struct, frozen=True):
    """What a text speaks of: lines of files, dotted names, telling names, plain names that are called or defined, and files."""

    places: tuple[tuple[str, int], ...] = ()
    dotted: frozenset[str] = frozenset()
    telling: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Every name that a symbol may have, qualified or not."""
        parts = {part for name in self.dotted for part in _endings(name)}
        return frozenset(parts | self.telling | self.plain)


def mentions_of(text: str, root: str | None = None) -> Mentions:
    """Return the code that a text speaks of; paths below a root are told as they are from there."""
    text = text[:_TEXT_CHARS_MAX]
    if root is not None:
        text = text.replace(root.rstrip("/") + "/", "")
    places = dict.fromkeys((match[1].removeprefix("./"), int(match[2])) for match in _PLACE.finditer(text))
    words = dict.fromkeys(_JOINED.sub(".", word) for word in _WORD.findall(text))
    dotted = [word for word in words if "." in word and len(word) <= _NAME_CHARS[1]]
    telling = [word for word in (word.rpartition(".")[2] for word in words) if is_telling(word)]
    plain = [name for name in (*_CALLED.findall(text), *_DEFINED.findall(text)) if len(name) >= _NAME_CHARS[0] and not is_telling(name)]
    defined = [name for name in _DEFINED.findall(text) if is_telling(name)]
    return Mentions(
        places=tuple(places)[:PLACES_MAX],
        dotted=frozenset(dotted[:NAMES_MAX]),
        telling=frozenset([*telling, *defined][:NAMES_MAX]),
        plain=frozenset(plain[:NAMES_MAX]),
        paths=frozenset(path.removeprefix("./") for path in _PATH.findall(text)),
    )


def is_telling(name: str) -> bool:
    """Tell whether a name is hardly said by chance: `login_user` and `LoginForm` are, `get`, `main` and `Paris` are not."""
    inner = name.strip("_")
    if not _NAME_CHARS[0] <= len(inner) <= _NAME_CHARS[1]:
        return False
    return ("_" in inner and inner != inner.upper()) or any(one.islower() and two.isupper() for one, two in pairwise(inner))


def _endings(name: str) -> list[str]:
    """Return the ends of a dotted name that may be a qualified one: `memory.store.Code.files` gives `Code.files`, too."""
    parts = name.split(".")
    return [".".join(parts[start:]) for start in range(len(parts) - 1)]


def referenced(mentions: Mentions, named: Iterable[Scope], in_files: Sequence[Scope]) -> list[str]:
    """Return the ids of the scopes that are spoken of, among those that have a name that is said, and those of files that are."""
    by_name: defaultdict[str, list[Scope]] = defaultdict(list)
    by_qualified: defaultdict[str, list[Scope]] = defaultdict(list)
    for scope in named:
        if "." in scope.qualified:
            by_qualified[scope.qualified].append(scope)
        if scope.kind != "variable":
            by_name[scope.name].append(scope)
    found: dict[str, None] = {}
    for name in mentions.dotted:
        own = next((by_qualified[end] for end in _endings(name) if by_qualified[end]), [])
        found |= dict.fromkeys(scope.id for scope in _few(own, mentions, _SAME_NAME_MAX))
    for name in mentions.telling:
        found |= dict.fromkeys(scope.id for scope in _few(by_name[name], mentions, _SAME_NAME_MAX))
    for name in mentions.plain:
        found |= dict.fromkeys(scope.id for scope in _few(by_name[name], mentions, 1))
    for path, line in mentions.places:
        inside = [scope for scope in in_files if _is_file(scope.file_path, path) and scope.line_start <= line <= scope.line_end]
        if inside:
            innermost = max(inside, key=lambda scope: (scope.line_start, -scope.line_end))
            found[innermost.id] = None
    return list(found)


def _few(scopes: Sequence[Scope], mentions: Mentions, most: int) -> Sequence[Scope]:
    """Return scopes of one name, if they are few; of many those whose file is named beside them."""
    if len(scopes) <= most:
        return scopes
    named = [scope for scope in scopes if any(_is_file(scope.file_path, path) for path in mentions.paths)]
    return named if len(named) <= most else ()


def _is_file(own: str, said: str) -> bool:
    return own == said or own.endswith("/" + said)
