"""Rows of tool calls and of context → what the audit counts of them; pure, so that one reading answers several questions."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from recollect.store.sqlite.rows import moment
from recollect.store.traced import ContextUse, SourceUse, ToolDay, ToolUse

if TYPE_CHECKING:
    from collections.abc import Sequence

_DAY_CHARS = 10
_HALF, _MOST = 50, 95


class Call(NamedTuple):
    """A tool call as it is counted."""

    tool_name: str
    failed: bool
    duration_ms: float | None
    at: str | None
    key: int
    id: str


class Given(NamedTuple):
    """How often a source gave a file as context, and how usefully; `useful` is the sum of what was rated."""

    path: str
    source: str | None
    times: int
    rated: int
    useful: float | None
    greatest: float | None
    last_at: str | None


def tool_uses(calls: Sequence[Call]) -> list[ToolUse]:
    """Return how tools did, the most called first."""
    own: defaultdict[str, list[Call]] = defaultdict(list)
    for call in calls:
        own[call.tool_name].append(call)
    uses: list[ToolUse] = []
    for name, found in own.items():
        times = sorted(call.duration_ms for call in found if call.duration_ms is not None)
        uses.append(
            ToolUse(
                tool_name=name,
                calls=len(found),
                failures=sum(call.failed for call in found),
                p50_ms=_percentile(times, _HALF),
                p95_ms=_percentile(times, _MOST),
            )
        )
    return sorted(uses, key=lambda use: (-use.calls, use.tool_name))


def _percentile(times: Sequence[float], percent: int) -> float | None:
    return times[max(-(-len(times) * percent // 100), 1) - 1] if times else None


def tool_days(calls: Sequence[Call]) -> list[ToolDay]:
    """Return how often tools were called and failed each day, by tool and day."""
    counts: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    for call in calls:
        if call.at is not None:
            day = counts[call.tool_name, call.at[:_DAY_CHARS]]
            day[0] += 1
            day[1] += call.failed
    return [ToolDay(tool_name=name, day=day, calls=calls, failures=failed) for (name, day), (calls, failed) in sorted(counts.items())]


def newest_failures(calls: Sequence[Call], limit: int) -> list[Call]:
    """Return the calls that failed, the newest first."""
    failed = sorted((call for call in calls if call.failed), key=lambda call: call.id)
    return sorted(failed, key=lambda call: call.at or "", reverse=True)[:limit]


def context_uses(given: Sequence[Given]) -> list[ContextUse]:
    """Return how files were used as context, the most used first."""
    own: defaultdict[str, list[Given]] = defaultdict(list)
    for one in given:
        own[one.path].append(one)
    uses: list[ContextUse] = []
    for path, found in own.items():
        last = max((one.last_at for one in found if one.last_at is not None), default=None)
        uses.append(
            ContextUse(
                path=path,
                count=sum(one.times for one in found),
                rated=sum(one.rated for one in found),
                average_usefulness=_average(found),
                greatest_usefulness=max((one.greatest for one in found if one.greatest is not None), default=None),
                sources=tuple(sorted(one.source for one in found if one.source is not None)),
                last_used_at=moment(last),
            )
        )
    return sorted(uses, key=lambda use: (-use.count, use.path))


def source_uses(given: Sequence[Given]) -> list[SourceUse]:
    """Return how sources of context served, the most used first."""
    own: defaultdict[str, list[Given]] = defaultdict(list)
    for one in given:
        own["unknown" if one.source is None else one.source].append(one)
    uses = [
        SourceUse(
            source=source,
            count=sum(one.times for one in found),
            files=len({one.path for one in found}),
            rated=sum(one.rated for one in found),
            average_usefulness=_average(found),
        )
        for source, found in own.items()
    ]
    return sorted(uses, key=lambda use: (-use.count, use.source))


def _average(given: Sequence[Given]) -> float | None:
    rated = sum(one.rated for one in given)
    return sum(one.useful or 0.0 for one in given) / rated if rated else None
