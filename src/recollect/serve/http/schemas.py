"""JSON Schemas of what is answered, read off the types of the library; loaded only when somebody asks for the OpenAPI document."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import NODEFAULT
from msgspec.inspect import CollectionType, DateTimeType, DictType, Field, StructType, Type, UnionType, multi_type_info

if TYPE_CHECKING:
    from collections.abc import Iterable

REFERENCE = "#/components/schemas/{name}"
Schema = dict[str, Any]


def schemas_of(types: Iterable[object]) -> tuple[list[Schema], dict[str, Schema]]:
    """Return the schema of each type, and those of all that they are made of by name.

    An answer has every field always, but those that are unset where they do not apply; one that is null says that nothing is known.
    """
    wanted = list(types)
    found, components = cast("tuple[list[Schema], dict[str, Schema]]", msgspec.json.schema_components(wanted, ref_template=REFERENCE))
    structs: dict[str, StructType] = {}
    for known in multi_type_info(wanted):
        _gather(known, structs)
    for name, struct in structs.items():
        _answer(components[name], struct)
    return found, components


def _gather(known: Type, structs: dict[str, StructType]) -> None:
    """Find the structs that a type is made of."""
    if isinstance(known, StructType) and known.cls.__name__ not in structs:
        structs[known.cls.__name__] = known
        for field in known.fields:
            _gather(field.type, structs)
    elif isinstance(known, UnionType):
        for one in known.types:
            _gather(one, structs)
    elif isinstance(known, CollectionType):
        _gather(known.item_type, structs)
    elif isinstance(known, DictType):
        _gather(known.value_type, structs)


def _answer(schema: Schema, struct: StructType) -> None:
    """Make the schema of what may come in one of what is sent: no field is left out, none has a default, times are said to be such."""
    if "description" in schema:
        schema["description"] = inspect.cleandoc(schema["description"])
    schema["required"] = [field.encode_name for field in struct.fields if not _may_be_unset(field)]
    for field in struct.fields:
        told: Schema = schema["properties"][field.encode_name]
        told.pop("default", None)
        if isinstance(field.type, DateTimeType):
            told["format"] = "date-time"
        elif isinstance(field.type, UnionType) and any(isinstance(one, DateTimeType) for one in field.type.types):
            next(one for one in told["anyOf"] if one.get("type") == "string")["format"] = "date-time"


def _may_be_unset(field: Field) -> bool:
    return not field.required and field.default is NODEFAULT and field.default_factory is NODEFAULT
