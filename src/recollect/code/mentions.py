"""A text → the code it speaks of: places in files, qualified names, and names that are hardly said by chance; pure.

Precision comes before recall: `login_user`, `LoginForm`, `Memory.open` and `src/auth.py:31` are mentions wherever they stand; a
plain word is one only where it is called in backquotes, or defined, and means one symbol. What stands before a name, or the module
or file that it is told to be of, has to be the symbol's own: `requests.auth.make_token` is nobody's of a project that has another.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from recollect.model import Scope

NAMES_MAX = 200
PLACES_MAX = 50
_TEXT_CHARS_MAX = 50_000
_NAME_CHARS = (4, 120)
_IMPORT_CHARS_MAX = 2_000
_SAME_NAME_MAX = 3  # a name that more symbols have says nothing of one of them
_WORD = re.compile(r"(?<![\w./-])[^\W\d]\w*(?:(?:\.|::|->)[^\W\d]\w*)*(?![\w/-])")
_CALLED = re.compile(r"`([^\W\d]\w*)\(\)?`")
_DEFINED = re.compile(
    r"^[ \t]*(?:(?:export|public|private|static|async|pub)[ \t]+){0,4}"
    r"(?:def|class|fn|func|function|interface|struct|trait|enum)[ \t]+([^\W\d]\w*)",
    re.MULTILINE,
)
_FILE = r"(?<![\w./~@+-])(?P<file>[\w./~@+-]{0,400}\w\.[A-Za-z]\w{0,5})"
_PLACE = re.compile(_FILE + r'(?::|#L|"?,? (?:at |on )?lines? )(?P<line>\d{1,6})\b')
_PATH = re.compile(_FILE + r"\b")
_OF_FILE = re.compile(_FILE + r"::(?P<name>[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*)")
_FRAME = re.compile(_FILE + r'(?:", line |:)\d{1,6}(?::\d{1,6})?(?:, |: | )in (?P<name>[^\W\d][\w.]*)(?:\n[ \t]{4,}(?!File )[^\n]*){0,4}')
_CALL_AT = re.compile(r"\bat (?:async )?(?P<name>[^\W\d][\w.]*) \((?:file://)?" + _FILE + r":\d{1,6}(?::\d{1,6})?\)")
_FROM = re.compile(r"\bfrom[ \t]+([.\w]+)[ \t]+import[ \t]+(?:\(([^()]{0,2000})\)|([\w, \t]+))")
_TAKEN = re.compile(r"\{([^{}]{0,2000})\}[ \t]*(?:from[ \t]+|=[ \t]*(?:await[ \t]+)?(?:require|import)\()(['\"])([^'\"\n]{1,400})\2")
_FIRST_WORD = re.compile(r"(?:^|,)\s*(?:type\s+)?([^\W\d]\w*)")
_JOINED = re.compile(r"::|->")
_NOT_FOLDED = re.compile(r"[_-]")
_OWN = re.compile(r"^(?:(?:self|this|cls|super|crate)\.)+")
_SOURCE_FOLDERS = frozenset({"src", "lib", "python"})  # of a module's path, but not of its name


class Owned(NamedTuple):
    """A name, and the file or the module that it is told to be of."""

    owner: str
    name: str


class Mentions(msgspec.Struct, frozen=True):
    """What a text speaks of.

    Lines of files, dotted names, telling names, constants, plain names that are called or defined, files, names that are imported,
    and names in files.
    """

    places: tuple[tuple[str, int], ...] = ()
    dotted: frozenset[str] = frozenset()
    telling: frozenset[str] = frozenset()
    constants: frozenset[str] = frozenset()
    plain: frozenset[str] = frozenset()
    paths: frozenset[str] = frozenset()
    imported: frozenset[Owned] = frozenset()
    in_files: frozenset[Owned] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """Every name that a symbol may have, qualified or not, and those of the types that stand before one."""
        parts = {end for name in self.dotted for end in _endings(name)}
        parts |= {form for name in self.dotted for part in name.split(".") for form in (part, _type_name(part))}
        owned = {one.name for one in (*self.imported, *self.in_files)}
        return frozenset(parts | owned | self.telling | self.constants | self.plain)


def mentions_of(text: str, root: str | None = None) -> Mentions:
    """Return the code that a text speaks of; paths below a root are told as they are from there."""
    text = text[:_TEXT_CHARS_MAX]
    if root is not None:
        text = re.sub(r"(?<![\w./~@+-])" + re.escape(root.rstrip("/") + "/"), "", text)
    in_files: dict[Owned, None] = {}

    def framed(match: re.Match[str]) -> str:
        """Keep whose name it is, and cut it out of the text, with what a file of somebody else says there."""
        path = match["file"]
        if path.startswith(("/", "~")):
            return "\n"
        in_files[Owned(path.removeprefix("./"), _JOINED.sub(".", match["name"]).rpartition(".")[2])] = None
        return match.string[match.start() : match.start("name")] + match.string[match.end("name") : match.end()]

    for pattern in (_FRAME, _CALL_AT, _OF_FILE):
        text = pattern.sub(framed, text)
    places = dict.fromkeys((match["file"].removeprefix("./"), int(match["line"])) for match in _PLACE.finditer(text))
    imported = dict.fromkeys(_imported(text))
    foreign = {one.name for one in imported}
    words = dict.fromkeys(_OWN.sub("", _JOINED.sub(".", word)) for word in _WORD.findall(text))
    dotted = [word for word in words if "." in word and len(word) <= _NAME_CHARS[1]]
    said = [word for word in words if "." not in word and word not in foreign]
    known = [name for name in (*_CALLED.findall(text), *_DEFINED.findall(text)) if len(name) >= _NAME_CHARS[0] and name not in foreign]
    return Mentions(
        places=tuple(places)[:PLACES_MAX],
        dotted=frozenset(dotted[:NAMES_MAX]),
        telling=frozenset([name for name in (*said, *known) if is_telling(name)][:NAMES_MAX]),
        constants=frozenset([word for word in said if is_constant(word)][:NAMES_MAX]),
        plain=frozenset([name for name in known if not is_telling(name)][:NAMES_MAX]),
        paths=frozenset(path.removeprefix("./") for path in _PATH.findall(text)),
        imported=frozenset(list(imported)[:NAMES_MAX]),
        in_files=frozenset(list(in_files)[:NAMES_MAX]),
    )


def is_telling(name: str) -> bool:
    """Tell whether a name is hardly said by chance: `login_user` and `LoginForm` are, `get`, `main` and `Paris` are not."""
    inner = name.strip("_")
    if not _NAME_CHARS[0] <= len(inner) <= _NAME_CHARS[1]:
        return False
    return ("_" in inner and inner != inner.upper()) or any(one.islower() and two.isupper() for one, two in pairwise(inner))


def is_constant(name: str) -> bool:
    """Tell whether a name is written as constants are: `MAX_TRIES` is, `HTTP` is not."""
    inner = name.strip("_")
    return "_" in inner and inner == inner.upper() and _NAME_CHARS[0] <= len(inner) <= _NAME_CHARS[1]


def _endings(name: str) -> list[str]:
    """Return the ends of a dotted name that may be a qualified one: `memory.store.Code.files` gives `Code.files`, too."""
    parts = name.split(".")
    return [".".join(parts[start:]) for start in range(len(parts) - 1)]


def _type_name(name: str) -> str:
    """Return the name of the type that a variable is often named after: `shopping_cart` gives `ShoppingCart`."""
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _imported(text: str) -> Iterator[Owned]:
    """Yield the names that a text imports, each with its module."""
    for match in _FROM.finditer(text):
        module = match[1].strip(".")
        for name in _FIRST_WORD.findall(match[2] or match[3]):
            yield Owned(module, name)
    for match in _TAKEN.finditer(text):
        module = match[3].lstrip("./@~").rpartition(".")[0] if match[3].endswith((".js", ".ts", ".mjs")) else match[3].lstrip("./~")
        for name in _FIRST_WORD.findall(match[1]):
            yield Owned(module.replace("/", "."), name)


class _Project:
    """The symbols of one project that a text may speak of, by their names."""

    def __init__(self, named: Iterable[Scope], home: str) -> None:
        self.by_name: defaultdict[str, list[Scope]] = defaultdict(list)
        self.by_qualified: defaultdict[str, list[Scope]] = defaultdict(list)
        self.variables: defaultdict[str, list[Scope]] = defaultdict(list)
        self._home = _folded(home)
        self._types: set[str] = set()
        for scope in named:
            if "." in scope.qualified:
                self.by_qualified[scope.qualified].append(scope)
            (self.variables if scope.kind == "variable" else self.by_name)[scope.name].append(scope)
            if scope.kind not in {"variable", "function", "method"}:
                self._types.add(_folded(scope.name))

    def owned(self, scopes: Sequence[Scope], owner: str) -> Sequence[Scope]:
        """Return those of some scopes of one name that are what is meant by it where this stands before it.

        Each part of it is of a scope's own path or type; where it is of none, each has at least to be of this project.
        """
        parts = [_folded(part) for part in owner.split(".") if part]
        own = [scope for scope in scopes if self._is_of(scope, parts)]
        if own:
            return own
        known = self._types.union(*(self._path(scope) for scope in scopes))
        return scopes if self._types.intersection(parts) and known.issuperset(parts) else ()

    def _is_of(self, scope: Scope, parts: list[str]) -> bool:
        types = [_folded(part) for part in scope.qualified.split(".")[:-1]]
        shared = 0
        while shared < min(len(types), len(parts)) and types[-1 - shared] == parts[-1 - shared]:
            shared += 1
        module = parts[: len(parts) - shared]
        path = self._path(scope)
        return _runs_in(module, path) or _runs_in(module, [part for part in path if part not in _SOURCE_FOLDERS])

    def _path(self, scope: Scope) -> list[str]:
        folders, _, file = scope.file_path.rpartition("/")
        return [self._home, *(_folded(part) for part in folders.split("/") if part), _folded(file.partition(".")[0])]


def _folded(name: str) -> str:
    return _NOT_FOLDED.sub("", name).lower()


def _runs_in(run: list[str], path: list[str]) -> bool:
    return any(path[start : start + len(run)] == run for start in range(len(path) - len(run) + 1))


def referenced(mentions: Mentions, named: Iterable[Scope], in_files: Sequence[Scope], home: str = "") -> list[str]:
    """Return the ids of the scopes that are spoken of, among those that have a name that is said, and those of files that are.

    `home` is the name of the project's folder, which the names of its modules may begin with.
    """
    project = _Project(named, home)
    found: dict[str, None] = {}

    def take(scopes: Sequence[Scope], most: int) -> None:
        found.update(dict.fromkeys(scope.id for scope in _few(scopes, mentions, most)))

    for word in mentions.dotted:
        owner, _, name = word.rpartition(".")
        own = next((project.by_qualified[end] for end in _endings(word) if project.by_qualified[end]), [])
        take(project.owned(own or (project.by_name[name] if is_telling(name) else []), owner), _SAME_NAME_MAX)
        if is_constant(name):
            take(project.owned(project.variables[name], owner), 1)
    for one in mentions.imported:
        take(project.owned([*project.by_name[one.name], *project.variables[one.name]], one.owner), 1)
    for one in mentions.in_files:
        take([scope for scope in project.by_name[one.name] if _is_file(scope.file_path, one.owner)], _SAME_NAME_MAX)
    for name in mentions.telling:
        take(project.by_name[name], _SAME_NAME_MAX)
    for name in mentions.plain:
        take(project.by_name[name], 1)
    for name in mentions.constants:
        take([*project.by_name[name], *project.variables[name]], 1)
    return list(found | dict.fromkeys(_at_places(mentions.places, in_files)))


def _at_places(places: Iterable[tuple[str, int]], in_files: Sequence[Scope]) -> Iterator[str]:
    """Yield the id of the innermost scope that each line of a file is in."""
    for path, line in places:
        inside = [scope for scope in in_files if _is_file(scope.file_path, path) and scope.line_start <= line <= scope.line_end]
        if inside:
            yield max(inside, key=lambda scope: (scope.line_start, -scope.line_end)).id


def _few(scopes: Sequence[Scope], mentions: Mentions, most: int) -> Sequence[Scope]:
    """Return scopes of one name, if they are few; of many those whose file is named beside them."""
    if len(scopes) <= most:
        return scopes
    named = [scope for scope in scopes if any(_is_file(scope.file_path, path) for path in mentions.paths)]
    return named if len(named) <= most else ()


def _is_file(own: str, said: str) -> bool:
    return own == said or own.endswith("/" + said)
