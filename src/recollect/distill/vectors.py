"""Vectors as they are stored: whole numbers of one byte and a scale for each vector; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from recollect.store.shapes import Vector

if TYPE_CHECKING:
    from recollect.distill.embedders import Matrix

_LARGEST = 127


def quantised(rows: Matrix) -> list[Vector]:
    """Return each row as whole numbers from -127 to 127 and the scale that makes it what it was, nearly."""
    largest = np.abs(rows).max(axis=1) if len(rows) else np.zeros(0, np.float32)
    scales = (largest / _LARGEST).astype(np.float32)
    safe = np.where(scales > 0, scales, 1).astype(np.float32)
    whole = np.rint(rows / safe[:, None]).astype(np.int8)
    return [Vector(float(scale), row.tobytes()) for scale, row in zip(scales, whole, strict=True)]


def restored(vectors: list[Vector], dimensions: int) -> Matrix:
    """Return vectors as rows of numbers; one of another length is all zeros."""
    rows = np.zeros((len(vectors), dimensions), np.float32)
    for n, vector in enumerate(vectors):
        if len(vector.values) == dimensions:
            rows[n] = np.frombuffer(vector.values, np.int8).astype(np.float32) * np.float32(vector.scale)
    return rows
