"""Times as people write them in a question ("last week", "on 8 May", "hier", "tuần trước") → the moments they mean; pure."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import msgspec

from recollect.text import fold

if TYPE_CHECKING:
    from collections.abc import Iterator

_MONTHS = {
    name: n % 12 + 1
    for names in (
        "january february march april may june july august september october november december",
        "janvier fevrier mars avril mai juin juillet aout septembre octobre novembre decembre",
    )
    for n, name in enumerate(names.split())
} | {f"thang {n}": n for n in range(1, 13)}
_DAYS = {
    name: n % 7
    for names in ("monday tuesday wednesday thursday friday saturday sunday", "lundi mardi mercredi jeudi vendredi samedi dimanche")
    for n, name in enumerate(names.split())
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_UNITS = {
    "day": 1, "days": 1, "jour": 1, "jours": 1, "ngay": 1, "week": 7, "weeks": 7, "semaine": 7, "semaines": 7, "tuan": 7,
    "month": 30, "months": 30, "mois": 30, "thang": 30, "year": 365, "years": 365,
    "an": 365, "ans": 365, "annee": 365, "annees": 365, "nam": 365,
}  # fmt: skip
_UNIT = "|".join(_UNITS)

_TODAY = re.compile(r"\b(?:today|this morning|tonight|aujourd'hui|hom nay)\b")
_YESTERDAY = re.compile(r"\b(?:yesterday|last night|hier|hom qua)\b")
_WEEKDAY = re.compile(rf"\b(?:last |on )?({'|'.join(_DAYS)})(?: dernier| truoc)?\b")
_LAST = re.compile(
    r"\b(?:(?:last|past|previous) (week|month|year)|(?:la |le |l')?(semaine|mois|annee|an) (?:derniere?|passee?)"
    r"|(?<!\d )(tuan|thang|nam) truoc)\b"
)
_THIS = re.compile(r"\b(?:this (week|month|year)|(?:cette|ce) (semaine|mois)|(tuan|thang|nam) nay)\b")
_AGO = re.compile(rf"\b(?:(\d+|an?|one|two|three|un|une|deux|trois) ({_UNIT}) (?:ago|truoc)|il y a (\d+|une?|deux|trois) ({_UNIT}))\b")
_ISO = re.compile(r"\b(\d{4})-(\d{2})(?:-(\d{2}))?\b")
_DATE = re.compile(
    rf"\b(?:(?:ngay )?(\d{{1,2}})(?:st|nd|rd|th|er)?(?: of)? )?({_MONTH})\b"
    r"(?: (\d{1,2})(?:st|nd|rd|th)?\b(?!\d))?(?:,? (?:nam )?(\d{4}))?"
)
_YEAR = re.compile(r"\b(?:in|of|since|en|nam) (20\d\d)\b")
_NUMBERS = {"a": 1, "an": 1, "one": 1, "un": 1, "une": 1, "two": 2, "deux": 2, "three": 3, "trois": 3}
_SLACK = 0.25  # "two weeks ago" is about two weeks ago
_HALF = 0.5
_ONE_DAY = timedelta(days=1)


class Period(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of time, or what is known of a date; `words` are what the question said for it."""

    words: str
    start: datetime | None = None
    end: datetime | None = None
    year: int | None = None
    month: int | None = None
    day: int | None = None

    def share(self, moment: datetime) -> float:
        """Return how well a moment fits: 1 for all that is said, half when only the day differs, 0 otherwise."""
        if self.start is not None and self.end is not None:
            return 1.0 if self.start <= moment < self.end else 0.0
        if (self.year is not None and moment.year != self.year) or (self.month is not None and moment.month != self.month):
            return 0.0
        return _HALF if self.day is not None and moment.day != self.day else 1.0


def periods(question: str, now: datetime) -> tuple[Period, ...]:
    """Return the times that a question speaks of."""
    text = fold(question).lower()
    today = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    try:
        relative = tuple(_relative(text, today, now))
    except (OverflowError, ValueError):  # before the first year, or after the last
        relative = ()
    return (*relative, *_dates(text))


def _relative(text: str, today: datetime, now: datetime) -> Iterator[Period]:
    if found := _TODAY.search(text):
        yield Period(words=found[0], start=today, end=today + _ONE_DAY)
    if found := _YESTERDAY.search(text):
        yield Period(words=found[0], start=today - _ONE_DAY, end=today)
    if found := _WEEKDAY.search(text):
        back = (today.weekday() - _DAYS[found[1]] - 1) % 7 + 1
        yield Period(words=found[0], start=today - back * _ONE_DAY, end=today - (back - 1) * _ONE_DAY)
    if found := _LAST.search(text):
        unit = _UNITS[found[1] or found[2] or found[3]]
        start = _calendar(unit, today)[0]
        yield Period(words=found[0], start=_calendar(unit, start - _ONE_DAY)[0], end=start)
    if found := _THIS.search(text):
        start, end = _calendar(_UNITS[found[1] or found[2] or found[3]], today)
        yield Period(words=found[0], start=start, end=end)
    if found := _AGO.search(text):
        count, unit = found[1] or found[3], _UNITS[found[2] or found[4]]
        days = (int(count) if count.isdecimal() else _NUMBERS[count]) * unit
        if days <= today.toordinal() - 1:
            slack = max(days * _SLACK, _HALF) * _ONE_DAY
            yield Period(words=found[0], start=max(now - days * _ONE_DAY, _FIRST) - slack, end=now - days * _ONE_DAY + slack)


_FIRST = datetime(2, 1, 1, tzinfo=UTC)


def _calendar(unit: int, day: datetime) -> tuple[datetime, datetime]:
    """Return the week, month or year that a day is in."""
    if unit == _UNITS["week"]:
        start = day - day.weekday() * _ONE_DAY
        return start, start + 7 * _ONE_DAY
    if unit == _UNITS["month"]:
        start = day.replace(day=1)
        return start, (start + 32 * _ONE_DAY).replace(day=1)
    return day.replace(month=1, day=1), day.replace(year=day.year + 1, month=1, day=1)


def _dates(text: str) -> Iterator[Period]:
    for found in _ISO.finditer(text):
        yield Period(words=found[0], year=int(found[1]), month=int(found[2]), day=int(found[3]) if found[3] else None)
    named = False
    for found in _DATE.finditer(text):
        day = found[1] or found[3]
        if found[2] in {"may", "march", "mars", "mai"} and not (day or found[4] or re.search(rf"\b(?:in|last|of|en) {found[2]}\b", text)):
            continue  # "may I", "march on"
        named = True
        year = found[4] or next((year[1] for year in _YEAR.finditer(text)), None)
        yield Period(words=found[0], year=int(year) if year else None, month=_MONTHS[found[2]], day=int(day) if day else None)
    if not named:
        for found in _YEAR.finditer(text):
            yield Period(words=found[0], year=int(found[1]))
