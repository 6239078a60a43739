"""The key of a use: from the environment variable that the user named, fit to be sent, and never shown."""

from __future__ import annotations

import os

from recollect.errors import ModelError


def key_of(variable: str | None, what: str) -> str | None:
    """Return the key of `models.WHAT`, or None where none is named; `ModelError` where there is none, or what is no key."""
    if variable is None:
        return None
    key = os.environ.get(variable, "").strip()
    if not key:
        msg = f"models.{what}.key_variable names {variable}, which is not set in the environment"
        raise ModelError(msg)
    if not (key.isascii() and key.isprintable()):
        msg = f"what stands in {variable}, which models.{what}.key_variable names, is no key: it has letters that none has"
        raise ModelError(msg)
    return key
