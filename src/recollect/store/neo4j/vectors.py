"""Vectors ↔ the lists of numbers that a graph keeps; the numbers are those of the quantised vector, so both stores score alike."""

from __future__ import annotations

from array import array

from recollect.store.shapes import Vector


def numbers(vector: Vector) -> list[float]:
    """Return a vector as numbers."""
    return [value * vector.scale for value in array("b", vector.values)]


def quantised(scale: float, values: list[float]) -> Vector:
    """Return the vector that numbers were made of."""
    return Vector(scale, array("b", [round(value / scale) if scale else 0 for value in values]).tobytes())
