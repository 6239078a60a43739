"""Time and chance, passed in so that tests own both; a leaf of the import graph."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        ...


class Ids(Protocol):
    """Where fresh ids come from."""

    def fresh(self) -> str:
        """Return an id that was never given out before."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """Return the present moment in UTC."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that moves only when told to; backwards is allowed, as on real machines."""

    def __init__(self, start: datetime) -> None:
        self._now = start

    def now(self) -> datetime:
        """Return the moment it was last moved to."""
        return self._now

    def advance(self, seconds: float) -> None:
        """Move by so many seconds, which may be negative."""
        self._now += timedelta(seconds=seconds)


def in_utc(moment: datetime) -> datetime:
    """Return a moment in UTC; one without a zone is taken to be in UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


class RandomIds:
    """Ids from the operating system's randomness, in the shape of a UUID."""

    def fresh(self) -> str:
        """Return 128 random bits as a UUID string."""
        return uuid_text(os.urandom(16))


class CountedIds:
    """Ids that count from one, for tests and examples whose output must not change."""

    def __init__(self) -> None:
        self._count = 0

    def fresh(self) -> str:
        """Return the next number as a UUID string."""
        self._count += 1
        return uuid_text(self._count.to_bytes(16, "big"))


def uuid_text(raw: bytes) -> str:
    """Write 16 bytes in the shape of a UUID of version 8 (free form, RFC 9562)."""
    h = raw.hex()
    return f"{h[:8]}-{h[8:12]}-8{h[13:16]}-8{h[17:20]}-{h[20:32]}"


@lru_cache(maxsize=1_024)  # the parts of a turn share their times
def iso(moment: datetime) -> str:
    """Write a moment as ISO 8601 in UTC with microseconds, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


@lru_cache(maxsize=1_024)
def from_iso(text: str) -> datetime:
    """Read what `iso` wrote, or any ISO 8601 time; one without a zone is UTC."""
    moment = datetime.fromisoformat(text)
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


_AGES = ((60, "second"), (60, "minute"), (24, "hour"), (30, "day"), (12, "month"), (10**9, "year"))


def ago(seconds: float) -> str:
    """Return how long ago something was, in words."""
    amount = max(seconds, 0.0)
    for size, unit in _AGES:
        if amount < size:
            count = int(amount)
            return f"{count} {unit}{'s' * (count != 1)} ago"
        amount /= size
    return "long ago"
