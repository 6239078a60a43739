"""Nodes of a syntax tree → what they define: a name, a kind, and where the body begins.

The tree is searched once, by the grammar's own engine; only what it finds becomes an object here. Parents are never
asked for: in a wide tree each question costs as much as the tree is wide.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Literal, NamedTuple

from recollect.code.languages import LANGUAGES, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ast_grep_py import Config, SgNode

    from recollect.code.languages import Language, SymbolKind

Scope = Literal["type", "mixin", "module", "closed", "none"]

_STATEMENT_CHARS_MAX = 400  # what a pattern may look at
_DECLARATORS_MAX = 50
_GENERIC_DEPTH_MAX = 8
_TYPES = frozenset({"class", "interface", "struct", "enum", "trait"})
_IDENTIFIERS = frozenset({"identifier", "simple_identifier", "type_identifier"})
_NAMED = frozenset(
    "identifier field_identifier type_identifier qualified_identifier destructor_name operator_name template_function".split()
)
_SPECIFIERS: dict[str, SymbolKind] = {"struct_specifier": "struct", "union_specifier": "struct", "enum_specifier": "enum"}
_GO_TYPES: dict[str, SymbolKind] = {"struct_type": "struct", "interface_type": "interface"}
_WORDS: dict[str, SymbolKind] = {"class": "class", "interface": "interface", "enum": "enum", "struct": "struct", "actor": "class"}
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "generator_function"})
_SEPARATOR = re.compile(r"::|[.:\\]")
_GENERIC = re.compile(r"<[^<>]*>|\[[^\[\]]*\]")
_RECEIVER = re.compile(r"\(\s*(?:\w+\s+)?\*?\s*(?P<type>\w+)")
_MEMBER = re.compile(r"[\w$]+(?:\.[\w$]+)*\Z")


class Candidate(NamedTuple):
    """A node that may define something; `start` and `end` are characters, and include what wraps it."""

    start: int
    end: int
    head: int  # where the signature begins
    node: SgNode
    shape: Shape


class Definition(NamedTuple):
    """What a node defines; no kind when it only lends its name, or closes what is inside."""

    parts: tuple[str, ...]
    kind: SymbolKind | None
    body: int | None
    scope: Scope


def candidates(root: SgNode, language: Language, text: str) -> list[Candidate]:
    """Return the nodes of a tree that may define something, outer before inner."""
    found: list[Candidate] = []
    wrapper: tuple[int, int, str] | None = None
    places = [root]
    walked = {"module", *language.walked}
    for node in root.find_all(_rule(language.name)):
        kind = node.kind()
        start, end = _span(node)
        if kind in language.wrappers:
            if wrapper is None or not (wrapper[0] <= start and end == wrapper[1]):
                wrapper = (start, end, kind)
            continue
        shape = language.shapes[kind]
        if wrapper is not None and wrapper[0] <= start and end <= wrapper[1] and not text[end : wrapper[1]][:80].strip(" \t\r\n;"):
            head = start if wrapper[2] == "decorated_definition" else wrapper[0]
            found.append(Candidate(wrapper[0], wrapper[1], head, node, shape))
        else:
            found.append(Candidate(start, end, start, node, shape))
        wrapper = None
        if shape.kind in walked and language.statements and (body := _body(node, language)) is not None:
            places.append(body)
    if language.statements:
        found.extend(one for place in places for one in _statements(place, language))
    found.sort(key=lambda one: (one.start, -one.end))
    return found


@cache
def _rule(language: str) -> Config:
    known = LANGUAGES[language]
    return {"rule": {"any": [{"kind": kind} for kind in (*known.wrappers, *known.shapes)]}}  # pyright: ignore[reportReturnType]  its stub misses that keys may be left out


def _statements(place: SgNode, language: Language) -> Iterator[Candidate]:
    waiting: list[tuple[SgNode, int | None]] = [(child, None) for child in reversed(place.children())]
    while waiting:
        node, wrapped_from = waiting.pop()
        kind = node.kind()
        if kind in language.through:
            waiting.extend((child, None) for child in reversed(node.children()))
        elif kind in language.wrappers:
            start = node.range().start.index if wrapped_from is None else wrapped_from
            waiting.extend((child, start) for child in reversed(node.children()))
        elif (shape := language.statements.get(kind)) is not None:
            yield from _declared(node, shape, wrapped_from)


def _declared(node: SgNode, shape: Shape, wrapped_from: int | None) -> Iterator[Candidate]:
    """Yield one candidate for each name a statement declares; one alone has the whole statement."""
    start, end = _span(node)
    start = start if wrapped_from is None else wrapped_from
    if shape.reading == "variable":
        named = [child for child in node.children() if child.kind() == "variable_declarator"]
    elif shape.reading == "declarator":
        named = node.field_children("declarator")
    else:
        named = [node]
    for one in named:
        if len(named) == 1:
            yield Candidate(start, end, start, node if shape.reading == "declarator" else one, shape)
        else:
            own_start, own_end = _span(one)
            yield Candidate(own_start, own_end, own_start, one, shape)


def read(candidate: Candidate, language: Language, text: str) -> Definition | None:
    """Return what a node defines, None when it defines nothing."""
    return _READERS[candidate.shape.reading](candidate, language, text)


def _span(node: SgNode) -> tuple[int, int]:
    reach = node.range()
    return reach.start.index, reach.end.index


def _body(node: SgNode, language: Language) -> SgNode | None:
    if not language.bodies:
        return node.field("body")
    return next((child for child in node.children() if child.kind() in language.bodies), None)


def _start(node: SgNode | None) -> int | None:
    return None if node is None else node.range().start.index


def _scope(kind: SymbolKind) -> Scope:
    if kind in _TYPES:
        return "type"
    if kind == "module":
        return "module"
    return "closed" if kind in {"function", "method"} else "none"


def _plain(name: str) -> str:
    """Return a name without the arguments of generic types."""
    for _ in range(_GENERIC_DEPTH_MAX):
        bare = _GENERIC.sub("", name)
        if bare == name:
            break
        name = bare
    return name


def _parts(name: str) -> tuple[str, ...]:
    name = name.strip()
    if name.startswith(("[", '"', "'", "operator")):
        return (name.strip("\"'"),)
    return tuple(part for part in (one.strip() for one in _SEPARATOR.split(_plain(name))) if part)


def _name_node(node: SgNode, field: str) -> SgNode | None:
    found = node.field(field)
    return found if found is not None else next((child for child in node.children() if child.kind() in _IDENTIFIERS), None)


def _by_name(candidate: Candidate, language: Language, _text: str) -> Definition | None:
    shape, node = candidate.shape, candidate.node
    name = _name_node(node, shape.field)
    body = _body(node, language)
    if name is None or (shape.needs_body and body is None):
        return None
    kind: SymbolKind = shape.kind
    said = name.text()
    if language.name == "lua" and ":" in said:
        kind = "method"
    scope: Scope = "mixin" if shape.owns else _scope(kind)
    return Definition(_parts(said), kind, _start(body), scope)


def _by_declarator(candidate: Candidate, language: Language, _text: str) -> Definition | None:
    name, is_function = _end_of_chain(candidate.node)
    if name is None:
        return None
    parts = _parts(name.text().partition("(")[0] if name.kind() == "operator_cast" else name.text())
    kind: SymbolKind = "function" if is_function else "variable"
    if is_function and len(parts) > 1:
        kind = "method"
    return Definition(parts, kind, _start(_body(candidate.node, language)), _scope(kind))


def _end_of_chain(node: SgNode) -> tuple[SgNode | None, bool]:
    """Return the node that holds the name a C declarator declares, and whether it is a function's."""
    at: SgNode | None = node
    is_function = False
    for _ in range(_DECLARATORS_MAX):
        if at is None:
            break
        kind = at.kind()
        if kind in _NAMED or kind == "operator_cast":
            return at, is_function or kind == "operator_cast"
        if kind.endswith("_declarator") and kind != "parenthesized_declarator":
            is_function = kind == "function_declarator"
        inner = at.field("declarator")
        at = inner if inner is not None else _inside(at)
    return None, False


def _inside(node: SgNode) -> SgNode | None:
    return next((child for child in node.children() if child.kind() in _NAMED or child.kind().endswith("_declarator")), None)


def _by_typedef(candidate: Candidate, _language: Language, _text: str) -> Definition | None:
    name, _ = _end_of_chain(candidate.node)
    if name is None:
        return None
    kind: SymbolKind = "type"
    named = candidate.node.field("type")
    if named is not None and named.kind() in _SPECIFIERS and named.field("name") is None:
        kind = _SPECIFIERS[named.kind()]
    return Definition(_parts(name.text()), kind, None, _scope(kind))


def _by_macro(candidate: Candidate, language: Language, text: str) -> Definition | None:
    return None if candidate.node.field("value") is None else _by_name(candidate, language, text)


def _by_receiver(candidate: Candidate, language: Language, text: str) -> Definition | None:
    method = _by_name(candidate, language, text)
    receiver = candidate.node.field("receiver")
    owner = None if receiver is None else _RECEIVER.match(receiver.text())
    if method is None or owner is None:
        return method
    return method._replace(parts=(owner["type"], *method.parts))


def _by_go_type(candidate: Candidate, _language: Language, text: str) -> Definition | None:
    named, right = candidate.node.field("name"), candidate.node.field("type")
    if named is None or right is None:
        return None
    kind: SymbolKind = _GO_TYPES.get(right.kind(), "type")
    brace = text.find("{", right.range().start.index, candidate.end) if kind != "type" else -1
    return Definition(_parts(named.text()), kind, brace if brace >= 0 else None, _scope(kind))


def _by_keyword(candidate: Candidate, language: Language, text: str) -> Definition | None:
    found = _by_name(candidate, language, text)
    if found is None:
        return None
    word = candidate.node.field("declaration_kind")
    words = [word.kind()] if word is not None else [child.kind() for child in candidate.node.children()]
    if words == ["extension"]:
        return found._replace(kind=None)
    kind = next((_WORDS[one] for one in words if one in _WORDS), "class")
    return found._replace(kind=kind)


def _lent(candidate: Candidate, _language: Language, _text: str) -> Definition | None:
    name = _name_node(candidate.node, candidate.shape.field)
    parts = () if name is None else _parts(name.text().lstrip("&").removeprefix("dyn ").removeprefix("mut "))[-1:]
    return Definition(parts, None, None, "type")


def _closed(_candidate: Candidate, _language: Language, _text: str) -> Definition | None:
    return Definition((), None, None, "closed")


def _by_field(candidate: Candidate, language: Language, text: str) -> Definition | None:
    name, value = candidate.node.field(candidate.shape.field), candidate.node.field("value")
    if name is None or value is None or value.kind() not in _FUNCTIONS:
        return _closed(candidate, language, text)
    return Definition(_parts(name.text()), "method", _start(value.field("body")), "closed")


def _by_variable(candidate: Candidate, language: Language, text: str) -> Definition | None:
    name, value = candidate.node.field("name"), candidate.node.field("value")
    if name is None or name.kind() != "identifier":
        return _closed(candidate, language, text)
    return _by_value(_parts(name.text()), value)


def _by_value(parts: tuple[str, ...], value: SgNode | None) -> Definition:
    kind = "" if value is None else value.kind()
    if value is not None and kind in _FUNCTIONS:
        return Definition(parts, "function", _start(value.field("body")), "closed")
    if value is not None and kind == "class":
        return Definition(parts, "class", _start(value.field("body")), "type")
    return Definition(parts, "variable", None, "type" if kind == "object" else "closed")


def _by_assignment(candidate: Candidate, _language: Language, _text: str) -> Definition | None:
    assigned = candidate.node.child(0)
    if assigned is None or assigned.kind() != "assignment_expression":
        return None
    left, right = assigned.field("left"), assigned.field("right")
    if left is None or right is None or (right.kind() not in _FUNCTIONS and right.kind() != "class"):
        return None
    name = left.text().removeprefix("module.").removeprefix("exports.")
    if name == "exports":
        own = right.field("name")
        name = "" if own is None else own.text()
    if not _MEMBER.match(name) or name.startswith("this."):
        return None
    found = _by_value(_parts(name.replace(".prototype.", ".")), right)
    return found._replace(kind="method") if ".prototype." in name and found.kind == "function" else found


def _by_pattern(candidate: Candidate, language: Language, text: str) -> Definition | None:
    said = text[candidate.start : min(candidate.end, candidate.start + _STATEMENT_CHARS_MAX)]
    found = re.search(language.pattern, said)
    if found is None:
        return None
    is_function = bool(found.groupdict().get("function"))
    kind: SymbolKind = "function" if is_function else candidate.shape.kind
    line_end = text.find("\n", candidate.start, candidate.end)
    return Definition(_parts(found["name"]), kind, line_end if is_function and line_end >= 0 else None, _scope(kind))


_READERS: dict[str, Callable[[Candidate, Language, str], Definition | None]] = {
    "name": _by_name,
    "declarator": _by_declarator,
    "typedef": _by_typedef,
    "macro": _by_macro,
    "receiver": _by_receiver,
    "go_type": _by_go_type,
    "keyword": _by_keyword,
    "lent": _lent,
    "field": _by_field,
    "variable": _by_variable,
    "assignment": _by_assignment,
    "pattern": _by_pattern,
    "closed": _closed,
}
