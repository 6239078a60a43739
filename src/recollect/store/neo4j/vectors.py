"""Vectors as the lists of numbers that a graph keeps; made from the quantised values, so both stores score alike."""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.store.shapes import Vector


def numbers(vector: Vector) -> list[float]:
    """Return a vector as numbers; one that says nothing is None, for it has no direction to compare."""
    return [value * vector.scale for value in array("b", vector.values)]
