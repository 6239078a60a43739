"""Any way of writing a time → a moment in UTC; what cannot be read is the present, and noted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from recollect.clock import from_iso
from recollect.limits import FUTURE_SECONDS_MAX

if TYPE_CHECKING:
    from collections import Counter

_MILLISECONDS_FROM = 1e11  # epoch seconds stay below this until the year 5138


def read_time(value: object, now: datetime, notes: Counter[str]) -> datetime | None:
    """Read an ISO 8601 text, epoch seconds or milliseconds, or a datetime; None when nothing was given.

    A time that cannot be read, or that lies more than a day ahead of the clock, is read as `now` and noted.
    """
    if value is None or value == "":
        return None
    moment = _moment(value)
    if moment is None:
        notes["times_unreadable"] += 1
        return now
    if moment > now + timedelta(seconds=FUTURE_SECONDS_MAX):
        notes["times_in_the_future"] += 1
        return now
    return moment


def _moment(value: object) -> datetime | None:
    try:
        if isinstance(value, datetime):
            return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float):
            return datetime.fromtimestamp(value / 1000 if value >= _MILLISECONDS_FROM else value, UTC)
        if isinstance(value, str):
            text = value.strip()
            return from_iso(text.removesuffix("Z") if text.endswith("+00:00Z") else text)
    except (ValueError, OverflowError, OSError):
        return None
    return None
