"""Renames, of which there are few, without looking through the other changes: a file is followed through its names."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
create index code_change_by_rename on code_change (code_file_pk) where change_type = 'renamed';
"""
