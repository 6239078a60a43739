"""What the symbols of a file mean, beside the file: which embedder made their vectors, and one bit a dimension of each."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
alter table indexed_file add column embedder text; -- none: the file is read again
alter table indexed_file add column signs blob;
"""
