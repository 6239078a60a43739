"""What capture needs to know beside the messages, and what it counts while it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.capture.paths import Place
from recollect.capture.times import read_time

if TYPE_CHECKING:
    from collections import Counter
    from datetime import datetime

    from recollect.capture.clean import Cleaner


class Reading:
    """One payload being read: its cleaner, its moment, where its paths lie, and the notes."""

    def __init__(self, cleaner: Cleaner, now: datetime, place: Place | None = None) -> None:
        self.cleaner = cleaner
        self.now = now
        self.place = place or Place()
        self.notes: Counter[str] = cleaner.notes

    def time(self, value: object) -> datetime | None:
        """Read a time against this reading's clock."""
        return read_time(value, self.now, self.notes)
