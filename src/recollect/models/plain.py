"""Anything at all as text that a model can be sent."""

from __future__ import annotations

from typing import Any

from pydantic_core import to_json


def plain_text(value: Any) -> str:
    """Return strings as they are, the rest as JSON, and as Python shows it where it is none; what cannot be encoded is replaced."""
    if not isinstance(value, str):
        try:
            value = to_json(value, fallback=repr, inf_nan_mode="constants").decode()
        except (ValueError, TypeError, RecursionError):
            value = repr(value)
    return str(value).encode(errors="replace").decode()
