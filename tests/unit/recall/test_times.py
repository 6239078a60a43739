from __future__ import annotations

from datetime import UTC, datetime

import pytest

from recollect.recall.times import periods

NOW = datetime(2026, 3, 18, 15, 30, tzinfo=UTC)  # a Wednesday


@pytest.mark.parametrize(
    ("question", "inside", "outside"),
    [
        ("what did we do yesterday", "2026-03-17T12:00", "2026-03-18T01:00"),
        ("qu'avons-nous fait hier ?", "2026-03-17T12:00", "2026-03-16T23:00"),
        ("hôm qua có gì", "2026-03-17T00:00", "2026-03-15T00:00"),
        ("hom nay", "2026-03-18T00:00", "2026-03-17T23:59"),
        ("last week", "2026-03-10T08:00", "2026-03-16T00:00"),
        ("la semaine dernière", "2026-03-15T23:00", "2026-03-08T00:00"),
        ("tuần trước", "2026-03-09T00:00", "2026-03-18T00:00"),
        ("last month", "2026-02-01T00:00", "2026-03-01T00:00"),
        ("this year", "2026-01-01T00:00", "2025-12-31T00:00"),
        ("last Monday", "2026-03-16T09:00", "2026-03-17T00:00"),
        ("two weeks ago", "2026-03-04T00:00", "2026-03-14T00:00"),
        ("il y a 3 jours", "2026-03-15T15:00", "2026-03-18T00:00"),
        ("on 8 May 2023", "2023-05-08T10:00", "2023-04-08T00:00"),
        ("on May 8th, 2023", "2023-05-08T10:00", "2022-05-08T00:00"),
        ("in May", "2021-05-20T00:00", "2021-06-01T00:00"),
        ("2023-05-08", "2023-05-08T00:00", "2023-06-08T00:00"),
        ("since 2024", "2024-07-01T00:00", "2023-07-01T00:00"),
        ("ngày 3 tháng 5", "2020-05-03T00:00", "2020-06-03T00:00"),
        ("le 14 juillet", "2020-07-14T00:00", "2020-08-14T00:00"),
    ],
)
def test_times_are_understood_as_people_write_them(question: str, inside: str, outside: str) -> None:
    found = periods(question, NOW)
    assert max(period.share(datetime.fromisoformat(inside).replace(tzinfo=UTC)) for period in found) == 1.0
    assert max(period.share(datetime.fromisoformat(outside).replace(tzinfo=UTC)) for period in found) == 0.0


def test_another_day_of_the_month_fits_by_half() -> None:
    (period,) = periods("on 8 May 2023", NOW)
    assert period.share(datetime(2023, 5, 9, tzinfo=UTC)) == 0.5


@pytest.mark.parametrize("question", ["may I march on", "the second week of it", "port 8080", "", "room 2023", "mai tai", "v2026.1"])
def test_what_is_no_time_is_none(question: str) -> None:
    assert periods(question, NOW) == ()


@pytest.mark.parametrize(
    "question", ["31 february 0001", "9999-99-99", "999999999999 years ago", "il y a 100000000 ans", "last year", "0000-00-00", "\x00 hier"]
)
@pytest.mark.parametrize("now", [NOW, datetime(1, 1, 2, tzinfo=UTC), datetime(9998, 12, 31, tzinfo=UTC)])
def test_no_time_is_too_odd(question: str, now: datetime) -> None:
    for period in periods(question, now):
        assert 0 <= period.share(now) <= 1
