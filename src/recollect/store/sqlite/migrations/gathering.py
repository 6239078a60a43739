"""What is added to an index of words is gathered, and written once a transaction; see `passages`."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
drop trigger passage_terms_added;
drop trigger passage_tallied;
drop trigger scope_terms_added;
"""
