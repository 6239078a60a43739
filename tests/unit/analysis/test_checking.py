"""A value against a JSON schema: what is wrong is found where it is, and what would not be checked is refused."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.analysis.checking import Checker, MismatchError
from recollect.errors import InputError

FITTING: list[tuple[dict[str, Any], Any, str | None]] = [
    ({"type": "object"}, {}, None),
    ({"type": "object"}, [], "the answer is not of type object"),
    ({"type": ["string", "null"]}, None, None),
    ({"type": "integer"}, True, "not of type integer"),
    ({"type": "integer"}, 2.0, None),
    ({"type": "number"}, 2.5, None),
    ({"type": "boolean"}, 0, "not of type boolean"),
    ({"required": ["a"]}, {}, "the answer has no a"),
    ({"properties": {"a": {"type": "string"}}}, {"a": 1}, "the answer.a is not of type string"),
    ({"additionalProperties": False, "properties": {"a": True}}, {"a": 1, "b": 2}, "the answer.b may not be there"),
    ({"additionalProperties": {"type": "integer"}}, {"b": "x"}, "the answer.b is not of type integer"),
    ({"items": {"type": "string"}}, ["a", 1], "the answer[1] is not of type string"),
    ({"enum": ["a", 1]}, True, "none of the values"),
    ({"enum": ["a", 1]}, "a", None),
    ({"const": {"a": 1}}, {"a": 1}, None),
    ({"const": 1}, 2, "not the value"),
    ({"minLength": 2}, "a", "too short or too long (1)"),
    ({"maxItems": 1}, [1, 2], "too short or too long (2)"),
    ({"minProperties": 1}, {}, "too short or too long (0)"),
    ({"pattern": "^a+$"}, "ab", "does not match"),
    ({"pattern": "a"}, "bab", None),
    ({"minimum": 1}, 0, "too small or too big"),
    ({"exclusiveMaximum": 1}, 1, "too small or too big"),
    ({"uniqueItems": True}, [{"a": 1, "b": 2}, {"b": 2, "a": 1}], "an item twice"),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "fits 0 of what anyOf offers"),
    ({"oneOf": [{"type": "string"}, {"minLength": 1}]}, "a", "fits 2 of what oneOf offers"),
    ({"allOf": [{"type": "string"}, {"minLength": 2}]}, "a", "too short"),
    ({"not": {"type": "string"}}, "a", "what it must not be"),
    ({"$ref": "#/$defs/n", "$defs": {"n": {"type": "integer"}}}, "a", "not of type integer"),
    ({"properties": {"next": {"$ref": "#"}}, "required": ["n"]}, {"n": 1, "next": {"n": 2, "next": {}}}, "the answer.next.next has no n"),
    ({"$ref": "#"}, 1, "nested too deeply"),
    ({"title": "T", "description": "d", "default": 1, "format": "date"}, "anything", None),
]


@pytest.mark.parametrize(("schema", "value", "problem"), FITTING)
def test_what_is_wrong_is_found_where_it_is(schema: dict[str, Any], value: Any, problem: str | None) -> None:
    checker = Checker(schema)
    if problem is None:
        checker.check(value)
    else:
        with pytest.raises(MismatchError) as found:
            checker.check(value)
        assert problem in str(found.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"unheard": 1}, {"properties": {"a": {"if": {}}}}, {"type": "text"}, {"type": [1]}, {"minLength": "2"}, {"required": "a"},
        {"pattern": "(?=a)"}, {"pattern": 1}, {"$ref": "http://elsewhere/schema"}, {"properties": []}, {"items": 1}, {"anyOf": {}},
        {"items": [{"type": "string"}]}, {"$defs": {"a": {"unheard": 1}}}, {"minimum": True}, {"maxItems": 1.5},
    ],
)  # fmt: skip
def test_what_would_not_be_checked_is_refused(schema: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        Checker(schema)


def test_a_schema_that_is_nested_too_deeply_is_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(200):
        schema = {"items": schema}
    with pytest.raises(InputError, match="levels"):
        Checker(schema)


_plain = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
_types = st.sampled_from(["object", "array", "string", "boolean", "null", "number", "integer"])
_leaf = st.fixed_dictionaries(
    {},
    optional={
        "type": _types | st.lists(_types, min_size=1, max_size=2, unique=True), "enum": st.lists(_plain, min_size=1, max_size=3),
        "const": _plain, "minLength": st.integers(0, 2), "maxLength": st.integers(0, 2), "minItems": st.integers(0, 2),
        "maxProperties": st.integers(0, 2), "minimum": st.integers(-2, 2), "exclusiveMaximum": st.integers(-2, 2),
        "uniqueItems": st.booleans(), "pattern": st.sampled_from(["a", "^b", "a+b$"]),
        "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
    },
)  # fmt: skip
_schemas = st.recursive(
    _leaf,
    lambda inner: st.builds(
        lambda leaf, more: {**leaf, **more},
        _leaf,
        st.fixed_dictionaries(
            {},
            optional={
                "items": inner | st.booleans(), "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                "additionalProperties": inner | st.booleans(), "anyOf": st.lists(inner, min_size=1, max_size=2),
                "oneOf": st.lists(inner, min_size=1, max_size=2), "allOf": st.lists(inner, min_size=1, max_size=2), "not": inner,
            },
        ),
    ),
    max_leaves=5,
)  # fmt: skip


@given(_schemas, _plain)
def test_a_value_fits_as_another_validator_says(schema: dict[str, Any], value: Any) -> None:
    try:
        Checker(schema).check(value)
    except MismatchError:
        fits = False
    else:
        fits = True
    assert fits == jsonschema_rs.is_valid(schema, value)
