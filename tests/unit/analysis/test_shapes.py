"""What an insight is to look like, from whatever says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pydantic
import pytest

from recollect.analysis.shapes import FINDINGS_MAX, shape_of
from recollect.errors import InputError


class Inner(msgspec.Struct):
    name: str


class Outer(msgspec.Struct):
    inner: list[Inner]


class Tree(msgspec.Struct):
    children: list["Tree"] = []


class Money(pydantic.BaseModel):
    amount: int


def test_the_overview_is_cut_to_size_and_needs_a_topic_and_a_finding() -> None:
    shape = shape_of(None)
    said = {"main_topic": "  a\nb ", "key_findings": ["same", "same", " ", *[f"f{n}" for n in range(9)]], "action_items": [], "more": 1}
    checked = shape.check(said)
    assert checked["main_topic"] == "a b"
    assert checked["key_findings"][:2] == ["same", "f0"]
    assert len(checked["key_findings"]) == FINDINGS_MAX
    assert shape.is_overview
    for wrong in ({}, [], None, {**said, "main_topic": ""}, {**said, "key_findings": [""]}, {**said, "key_findings": "one"}):
        with pytest.raises(ValueError, match=r".+"):
            shape.check(wrong)


@pytest.mark.parametrize("schema", [None, Outer, Tree, Money, {"type": "object", "properties": {"a": {"type": "string"}}}])
def test_every_schema_is_an_object_at_its_root_and_has_a_fingerprint(schema: Any) -> None:
    shape = shape_of(schema)
    assert shape.json_schema["type"] == "object"
    assert shape.fingerprint == shape_of(schema).fingerprint
    assert shape.is_overview == (schema is None)


def test_fingerprints_tell_what_is_asked_for_apart() -> None:
    prints = [shape_of(one).fingerprint for one in (None, Outer, Money, {"type": "object"}, {"type": "object", "title": "x"})]
    assert len(set(prints)) == len(prints)
    one, same = {"type": "object", "title": "x"}, {"title": "x", "type": "object"}
    assert shape_of(one).fingerprint == shape_of(same).fingerprint


def test_what_a_type_does_not_know_is_left_out() -> None:
    assert shape_of(Outer).check({"inner": [{"name": "a", "more": 1}], "more": 2}) == {"inner": [{"name": "a"}]}
    assert shape_of(Tree).check({"children": [{}]}) == {"children": [{"children": []}]}
    assert shape_of(Money).check({"amount": "3", "more": 1}) == {"amount": 3}


@pytest.mark.parametrize("kind", ["overview", "Overview"])
def test_a_schema_that_calls_itself_the_overview_is_not_the_overview(kind: str) -> None:
    shape = shape_of({"type": "object", "title": kind})
    assert (shape.kind, shape.is_overview) == (kind, False)


@pytest.mark.parametrize(
    "schema",
    ["text", 1, int, [], {"type": "string"}, {}, {"type": "object", "description": "x" * 60_000}, {"type": "object", "default": object()}],
)
def test_what_is_no_schema_of_an_object_is_refused(schema: Any) -> None:
    with pytest.raises(InputError):
        shape_of(schema)
