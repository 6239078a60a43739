"""Arguments that make no sense are refused with a sentence, before anything is done; a leaf but for errors and limits."""

from __future__ import annotations

from recollect.errors import InputError
from recollect.limits import COUNT_MAX


def checked_count(name: str, value: object, count_max: int = COUNT_MAX) -> int:
    """Return a number of things: whole, not negative, not beyond any memory."""
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= count_max:
        msg = f"{name} is a whole number from 0 to {count_max:,}, not {str(value)[:60]!r}"
        raise InputError(msg)
    return value


def checked_text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        msg = f"{name} is text, not {type(value).__name__}"
        raise InputError(msg)
    return value


def masked(url: str) -> str:
    """Return an address as it may be shown: whatever could be a password is left out."""
    scheme, separator, rest = url.partition("://")
    before, at, after = rest.rpartition("@")
    user, colon, _ = before.partition(":")
    return url if not (separator and at and colon) else f"{scheme}://{user}:…@{after}"
