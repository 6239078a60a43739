"""How reliable tools are: calls, failures, durations, and what the failures have in common."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from recollect.text import shorten
from recollect.trace.answers import CommonError, ToolDayCount, ToolReliability

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.store import Store
    from recollect.store.traced import ToolDay, ToolError, ToolUse, TraceScope

_ERRORS_SHOWN_MAX = 5
_ERROR_CHARS_MAX = 160
_NUMBER = re.compile(r"0x[0-9a-fA-F]+|\d+")
_RATE_DIGITS = 6


async def tool_reliability(store: Store, workspace: str, where: TraceScope, tool_name: str | None = None) -> list[ToolReliability]:
    """Return how tools, or one of them, do, the most called first."""
    uses, days, errors = await store.trace.tools(workspace, where)
    return [_reliability(one, days, errors) for one in uses if tool_name is None or one.tool_name == tool_name]


def _reliability(use: ToolUse, days: Sequence[ToolDay], errors: Sequence[ToolError]) -> ToolReliability:
    return ToolReliability(
        tool_name=use.tool_name,
        calls=use.calls,
        failures=use.failures,
        failure_rate=round(use.failures / use.calls, _RATE_DIGITS),
        p50_ms=use.p50_ms,
        p95_ms=use.p95_ms,
        common_errors=common_errors([one.said for one in errors if one.tool_name == use.tool_name]),
        trend=tuple(ToolDayCount(day=one.day, calls=one.calls, failures=one.failures) for one in days if one.tool_name == use.tool_name),
    )


def common_errors(said: Sequence[str | None]) -> tuple[CommonError, ...]:
    """Return what failures say most often, by their first line; numbers do not tell two apart, and the newest wording is shown."""
    counts: Counter[str] = Counter()
    wording: dict[str, str] = {}
    for text in said:
        line = next((line for line in (text or "").splitlines() if line.strip()), "")
        if line:
            shown = shorten(line, _ERROR_CHARS_MAX)
            key = _NUMBER.sub("#", shown)
            counts[key] += 1
            wording.setdefault(key, shown)
    best = sorted(counts, key=lambda key: (-counts[key], key))[:_ERRORS_SHOWN_MAX]
    return tuple(CommonError(message=wording[key], count=counts[key]) for key in best)
