"""Arguments that make no sense are refused with a sentence, before anything is done; a leaf but for errors and limits."""

from __future__ import annotations

from datetime import date, datetime
from typing import TYPE_CHECKING, cast

from recollect.clock import from_iso, in_utc
from recollect.errors import InputError
from recollect.limits import COUNT_MAX, NAME_CHARS_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable


def checked_count(name: str, value: object, count_max: int = COUNT_MAX, *, count_min: int = 0) -> int:
    """Return a number of things: whole, not negative, not beyond any memory."""
    if not isinstance(value, int) or isinstance(value, bool) or not count_min <= value <= count_max:
        msg = f"{name} is a whole number from {count_min} to {count_max:,}, not {str(value)[:60]!r}"
        raise InputError(msg)
    return value


def checked_text(name: str, value: object) -> str:
    """Return a text."""
    if not isinstance(value, str):
        msg = f"{name} is text, not {type(value).__name__}"
        raise InputError(msg)
    return value


def checked_name(name: str, value: object) -> str:
    """Return a name: some text, not too long."""
    text = checked_text(name, value).strip()
    if not text or len(text) > NAME_CHARS_MAX:
        msg = f"{name} is a name of 1 to {NAME_CHARS_MAX} characters, not {str(value)[:60]!r}"
        raise InputError(msg)
    return text


def checked_levels(levels: object) -> tuple[int, ...] | None:
    """Return levels of memory, 0 for turns, or None for all."""
    if levels is None:
        return None
    if isinstance(levels, int | str) or not hasattr(levels, "__iter__"):
        msg = f"levels is a list of numbers such as [0, 1], not {str(levels)[:60]!r}"
        raise InputError(msg)
    return tuple(checked_count("a level", level) for level in cast("Iterable[object]", levels))


def checked_time(name: str, value: object) -> datetime | None:
    """Return a moment that was given as a time, a date or ISO 8601 text, in UTC, or None."""
    if value is None:
        return None
    try:
        if isinstance(value, datetime):
            return in_utc(value)
        return from_iso(value.isoformat() if isinstance(value, date) else checked_text(name, value))
    except (ValueError, OverflowError) as error:
        msg = f"{name} is a day or time such as 2026-01-31, not {str(value)[:60]!r}"
        raise InputError(msg) from error


def masked(url: str) -> str:
    """Return an address as it may be shown: whatever could be a password is left out."""
    scheme, separator, rest = url.partition("://")
    before, at, after = rest.rpartition("@")
    user, colon, _ = before.partition(":")
    return url if not (separator and at and colon) else f"{scheme}://{user}:…@{after}"


def checked_share(name: str, value: object) -> float:
    """Return a number from 0 to 1."""
    return checked_number(name, value, 1.0)


def checked_number(name: str, value: object, most: float) -> float:
    """Return a number from 0 to a most."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value <= most:
        msg = f"{name} is a number from 0 to {most:g}, not {str(value)[:60]!r}"
        raise InputError(msg)
    return float(value)


def checked_plain(name: str, value: object) -> str | None:
    """Return a text that a store can compare, or None; what is no character is replaced."""
    return None if value is None else checked_text(name, value).encode(errors="replace").decode()
