"""What an insight is to look like: the overview, a caller's own type, or a JSON schema; what does not fit is refused; pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Protocol, cast

import msgspec
from msgspec import Meta

from recollect.errors import InputError
from recollect.identity import content_hash
from recollect.limits import SCHEMA_CHARS_MAX
from recollect.model import Json
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

OVERVIEW = "overview"
FINDINGS_MAX = 5
ACTIONS_MAX = 10
_TOPIC_CHARS_MAX = 200
_LINE_CHARS_MAX = 320
_KIND_CHARS_MAX = 60
_OTHER_KIND = "insight"
_SHOWN_CHARS_MAX = 60


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversation came to."""

    main_topic: Annotated[str, Meta(description="one line: what it was about")]
    key_findings: Annotated[list[str], Meta(description="3 to 5 sentences worth knowing next time")]
    action_items: Annotated[list[str], Meta(description="what is left to do, one sentence each; none when nothing is")]


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What insights of one kind look like: `check` returns one as it is kept, or raises `ValueError` with what is wrong."""

    kind: str
    json_schema: dict[str, Any]
    check: Callable[[Json], dict[str, Json]]

    @property
    def is_overview(self) -> bool:
        """Whether it is the one that needs no model."""
        return self.kind == OVERVIEW and self.check is checked_overview

    @property
    def fingerprint(self) -> str:
        """The hash of what is asked for."""
        return content_hash(msgspec.json.encode(self.json_schema, order="deterministic").decode())


class _Validating(Protocol):
    """What pydantic's models are, as far as we need them; who passes one has pydantic, and nobody else needs it."""

    @classmethod
    def model_json_schema(cls) -> dict[str, Any]: ...
    @classmethod
    def model_validate(cls, obj: object) -> Any: ...


def shape_of(output_schema: object) -> Shape:
    """Return the shape that a msgspec Struct, a pydantic model or a JSON schema tells of; the overview for None."""
    if output_schema is None:
        return Shape(kind=OVERVIEW, json_schema=_schema_of(Overview), check=checked_overview)
    if isinstance(output_schema, type) and issubclass(output_schema, msgspec.Struct):
        return _of_struct(output_schema)
    if hasattr(output_schema, "model_json_schema") and hasattr(output_schema, "model_validate"):
        return _of_validating(cast("type[_Validating]", output_schema))
    if isinstance(output_schema, dict):
        return _of_schema(cast("dict[str, Any]", output_schema))
    msg = (
        f"output_schema is a msgspec Struct, a pydantic model or a JSON schema (a dict), not {type(output_schema).__name__} "
        f"{str(output_schema)[:_SHOWN_CHARS_MAX]!r}"
    )
    raise InputError(msg)


def checked_overview(value: Json) -> dict[str, Json]:
    """Return an overview with its lines cut to size, each once; it needs a topic and a finding."""
    said = msgspec.convert(value, Overview)
    topic = shorten(said.main_topic, _TOPIC_CHARS_MAX)
    findings, actions = lines(said.key_findings, FINDINGS_MAX), lines(said.action_items, ACTIONS_MAX)
    if not topic or not findings:
        msg = "it has no main topic or no finding"
        raise ValueError(msg)
    return {"main_topic": topic, "key_findings": findings, "action_items": actions}


def lines(said: Iterable[str], most: int) -> list[str]:
    """Return texts, each on one line and once, those that say nothing left out."""
    return list(dict.fromkeys(line for one in said if (line := shorten(one, _LINE_CHARS_MAX))))[:most]


def _of_struct(kind: type[msgspec.Struct]) -> Shape:
    def check(value: Json) -> dict[str, Json]:
        return msgspec.to_builtins(msgspec.convert(value, kind))

    return _checked_shape(kind.__name__, _schema_of(kind), check)


def _schema_of(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a type with the type itself at its root, as providers want it."""
    try:
        (named,), parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    except TypeError as error:
        msg = f"{kind.__name__} cannot be written as a JSON schema: {error}"
        raise InputError(msg) from error
    own = named["$ref"].rpartition("/")[2]
    others = {name: part for name, part in parts.items() if name != own or named["$ref"] in msgspec.json.encode(parts).decode()}
    return {**parts[own], **({"$defs": others} if others else {})}


def _of_validating(kind: type[_Validating]) -> Shape:
    def check(value: Json) -> dict[str, Json]:
        return kind.model_validate(value).model_dump(mode="json")

    return _checked_shape(getattr(kind, "__name__", _OTHER_KIND), kind.model_json_schema(), check)


def _of_schema(schema: dict[str, Any]) -> Shape:
    from recollect.analysis.checking import Checker  # noqa: PLC0415  only those who bring a schema need expressions

    checker = Checker(schema)

    def check(value: Json) -> dict[str, Json]:
        checker.check(value)
        return value

    title = schema.get("title")
    return _checked_shape(title if isinstance(title, str) else _OTHER_KIND, schema, check)


def _checked_shape(name: str, schema: dict[str, Any], check: Callable[[Json], dict[str, Json]]) -> Shape:
    if schema.get("type") != "object":
        msg = f"an insight is an object with fields, so the schema's type is 'object', not {str(schema.get('type'))[:_SHOWN_CHARS_MAX]!r}"
        raise InputError(msg)
    try:
        chars = len(msgspec.json.encode(schema))
    except (TypeError, ValueError, RecursionError) as error:
        msg = f"the schema is no JSON: {error}"
        raise InputError(msg) from error
    if chars > SCHEMA_CHARS_MAX:
        msg = f"the schema has {chars:,} characters, more than SCHEMA_CHARS_MAX = {SCHEMA_CHARS_MAX:,}: ask for less at once"
        raise InputError(msg)
    return Shape(kind=shorten(name, _KIND_CHARS_MAX) or _OTHER_KIND, json_schema=schema, check=check)
