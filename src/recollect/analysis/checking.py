"""A JSON value against a JSON schema, as far as answers of models need one: every keyword is checked, or refused; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import msgspec
import re2

from recollect.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from recollect.model import Json

Schema = dict[str, Any]
_DEPTH_MAX = 64
_SHOWN_CHARS_MAX = 60
_TOLD: frozenset[str] = frozenset({"$schema", "$id", "$comment", "title", "description", "default", "examples", "deprecated", "format"})
_DEFINITIONS = ("$defs", "definitions")
_COUNTS = ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_INSIDE_ONE = ("items", "additionalProperties", "not")
_INSIDE_MANY = ("anyOf", "oneOf", "allOf")
_CHECKED: frozenset[str] = frozenset(
    {"type", "enum", "const", "properties", "required", "pattern", "uniqueItems", "$ref", *_COUNTS, *_BOUNDS, *_INSIDE_ONE, *_INSIDE_MANY}
)
_TYPES: dict[str, Callable[[object], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer())),
}


class MismatchError(ValueError):
    """A value is not what a schema says, and where."""


class Checker:
    """A JSON schema that was found to be one we can check; `InputError` when it is not."""

    def __init__(self, schema: Schema) -> None:
        self._schema = schema
        self._definitions = {
            f"#/{group}/{name}": inner for group in _DEFINITIONS for name, inner in _record(schema.get(group, {}), group).items()
        }
        for place, inner in (("#", schema), *self._definitions.items()):
            self._understand(inner, place, 0)

    def check(self, value: Json) -> None:
        """Compare a value; `MismatchError` names the first place where it is not what the schema says."""
        for problem in self._problems(value, self._schema, "the answer", 0):
            raise MismatchError(problem)

    def _understand(self, schema: object, place: str, depth: int) -> None:
        """Refuse a schema that says what we would not check: an answer that only seems to fit is worse than none."""
        if isinstance(schema, bool):
            return
        own = _record(schema, place)
        unknown = [key for key in own if key not in _CHECKED and key not in _TOLD and key not in _DEFINITIONS]
        if unknown or depth > _DEPTH_MAX:
            what = f"the keyword {unknown[0]!r}" if unknown else f"more than {_DEPTH_MAX} levels"
            msg = f"the JSON schema has {what} at {place}, which is not checked here: say it with {', '.join(sorted(_CHECKED))}"
            raise InputError(msg)
        self._understand_plain(own, place)
        for name, inner in _record(own.get("properties", {}), place).items():
            self._understand(inner, f"{place}/properties/{name}", depth + 1)
        for key in _INSIDE_ONE:
            if key in own:
                self._understand(own[key], f"{place}/{key}", depth + 1)
        for key in _INSIDE_MANY:
            for n, inner in enumerate(_list(own.get(key, []), f"{place}/{key}")):
                self._understand(inner, f"{place}/{key}/{n}", depth + 1)

    def _understand_plain(self, own: Schema, place: str) -> None:
        for name in _types_of(own):
            if name not in _TYPES:
                msg = f"the JSON schema has the type {str(name)[:_SHOWN_CHARS_MAX]!r} at {place}: types are {', '.join(_TYPES)}"
                raise InputError(msg)
        for key in (*_COUNTS, *_BOUNDS):
            if key in own and not _TYPES["integer" if key in _COUNTS else "number"](own[key]):
                msg = f"the JSON schema says {key} {str(own[key])[:_SHOWN_CHARS_MAX]!r} at {place}: it is a number"
                raise InputError(msg)
        for key in ("enum", "required"):
            _list(own.get(key, []), f"{place}/{key}")
        if "pattern" in own:
            try:
                re2.compile(own["pattern"])
            except (re2.error, TypeError) as error:
                msg = f"the JSON schema has the pattern {str(own['pattern'])[:_SHOWN_CHARS_MAX]!r} at {place}, which RE2 does not read"
                raise InputError(msg) from error
        if "$ref" in own and own["$ref"] != "#" and own["$ref"] not in self._definitions:
            msg = (
                f"the JSON schema names {str(own['$ref'])[:_SHOWN_CHARS_MAX]!r} at {place}, which is not among its own $defs: put it there"
            )
            raise InputError(msg)

    def _problems(self, value: Json, schema: Any, place: str, depth: int) -> Iterator[str]:
        """Yield what is wrong; a schema is an object, or whether anything goes."""
        if schema is True:
            return
        if schema is False:
            yield f"{place} may not be there"
            return
        if depth > _DEPTH_MAX:
            yield f"{place} is nested too deeply"
            return
        types = _types_of(schema)
        if types and not any(_TYPES[name](value) for name in types):
            yield f"{place} is not of type {' or '.join(types)}"
            return
        yield from _plain_problems(value, schema, place)
        if isinstance(value, dict):
            yield from self._record_problems(cast("dict[str, Json]", value), schema, place, depth)
        if isinstance(value, list) and "items" in schema:
            for n, item in enumerate(cast("list[Json]", value)):
                yield from self._problems(item, schema["items"], f"{place}[{n}]", depth + 1)
        yield from self._joined_problems(value, schema, place, depth)

    def _record_problems(self, value: dict[str, Json], schema: Schema, place: str, depth: int) -> Iterator[str]:
        properties: dict[str, Any] = schema.get("properties", {})
        for name in schema.get("required", []):
            if name not in value:
                yield f"{place} has no {name}"
        for name, item in value.items():
            inner = properties.get(name, schema.get("additionalProperties", True))
            yield from self._problems(item, inner, f"{place}.{name[:_SHOWN_CHARS_MAX]}", depth + 1)

    def _joined_problems(self, value: Json, schema: Schema, place: str, depth: int) -> Iterator[str]:
        if "$ref" in schema:
            named = self._schema if schema["$ref"] == "#" else self._definitions[schema["$ref"]]
            yield from self._problems(value, named, place, depth + 1)
        for inner in schema.get("allOf", []):
            yield from self._problems(value, inner, place, depth + 1)
        for key in ("anyOf", "oneOf"):
            if key in schema:
                fitting = sum(next(self._problems(value, inner, place, depth + 1), None) is None for inner in schema[key])
                if not fitting or (key == "oneOf" and fitting > 1):
                    yield f"{place} fits {fitting} of what {key} offers"
        if "not" in schema and next(self._problems(value, schema["not"], place, depth + 1), None) is None:
            yield f"{place} is what it must not be"


def _plain_problems(value: Json, schema: Schema, place: str) -> Iterator[str]:
    if "enum" in schema and not any(_same(value, one) for one in schema["enum"]):
        yield f"{place} is none of the values that are offered"
    if "const" in schema and not _same(value, schema["const"]):
        yield f"{place} is not the value that is asked for"
    sizes = {"Length": str, "Items": list, "Properties": dict}
    for noun, kind in sizes.items():
        if isinstance(value, kind):
            size = len(cast("str", value))
            if not schema.get(f"min{noun}", 0) <= size <= schema.get(f"max{noun}", size):
                yield f"{place} is too short or too long ({size})"
    if isinstance(value, str) and "pattern" in schema and re2.search(schema["pattern"], value) is None:
        yield f"{place} does not match its pattern"
    if isinstance(value, int | float) and not isinstance(value, bool) and not _is_within(value, schema):
        yield f"{place} is too small or too big"
    if isinstance(value, list) and schema.get("uniqueItems"):
        items = cast("list[Json]", value)
        if len({msgspec.json.encode(item, order="deterministic") for item in items}) != len(items):
            yield f"{place} has an item twice"


def _is_within(value: float, schema: Schema) -> bool:
    least, most = schema.get("minimum", value), schema.get("maximum", value)
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return least <= value <= most and (above is None or value > above) and (below is None or value < below)


def _same(one: Json, other: Json) -> bool:
    return isinstance(one, bool) == isinstance(other, bool) and bool(one == other)


def _types_of(schema: Schema) -> list[str]:
    given = schema.get("type", [])
    return cast("list[str]", given if isinstance(given, list) else [given])


def _record(value: object, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        msg = f"the JSON schema has {str(value)[:_SHOWN_CHARS_MAX]!r} at {place}, where an object is expected"
        raise InputError(msg)
    return cast("dict[str, Any]", value)


def _list(value: object, place: str) -> list[Any]:
    if not isinstance(value, list):
        msg = f"the JSON schema has {str(value)[:_SHOWN_CHARS_MAX]!r} at {place}, where a list is expected"
        raise InputError(msg)
    return cast("list[Any]", value)
