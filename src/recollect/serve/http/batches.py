"""A batch of requests: which of them must be recorded one after the other, and the rest side by side."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from recollect.answers import to_json
from recollect.capture.clean import parse_json
from recollect.capture.payload import told_names
from recollect.errors import RecollectError, StoreError, TooLargeError
from recollect.waiting import together

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from recollect.answers import Recorded

LINES_MAX = 10_000
LINES_TYPES = (  # what senders call JSON lines; the first is what the documents name
    *("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonl"),
    *("application/jsonlines", "application/x-jsonlines", "application/json-lines"),
)
_AT_ONCE_MAX = 16


async def recorded_lines(body: bytes, record: Callable[[Any], Awaitable[Recorded]]) -> list[dict[str, Any]]:
    """Record each JSON line and return what became of it, in the order of the lines; bad ones do not keep the good ones back.

    Lines of one conversation or request are recorded in their order, others at the same time.
    """
    lines = [line for line in body.split(b"\n") if line.strip()]
    if len(lines) > LINES_MAX:
        msg = f"a batch has at most {LINES_MAX:,} lines, not {len(lines):,}: send several"
        raise TooLargeError(msg)
    results: list[dict[str, Any]] = [{} for _ in lines]
    room = asyncio.Semaphore(_AT_ONCE_MAX)

    async def follow(chain: Sequence[int]) -> None:
        async with room:
            for n in chain:
                results[n] = {"line": n + 1, **await _recorded(lines[n], record)}

    await together([follow(chain) for chain in chained([_names(line) for line in lines])])
    return results


def are_lines(body: bytes) -> bool:
    """Tell whether what is no JSON document begins with one on a line of its own, as JSON lines do."""
    first, _, rest = body.strip().partition(b"\n")
    try:
        parse_json(first)
    except RecollectError:
        return False
    return bool(rest)


def chained(named: Sequence[frozenset[str]]) -> list[list[int]]:
    """Group the places whose names overlap, each group in order, the groups by their first place."""
    before = list(range(len(named)))
    of_name: dict[str, int] = {}

    def first(place: int) -> int:
        while before[place] != place:
            before[place] = before[before[place]]
            place = before[place]
        return place

    for place, names in enumerate(named):
        for name in names:
            one, other = first(of_name.setdefault(name, place)), first(place)
            before[max(one, other)] = min(one, other)
    groups: dict[int, list[int]] = {}
    for place in range(len(named)):
        groups.setdefault(first(place), []).append(place)
    return list(groups.values())


def _names(line: bytes) -> frozenset[str]:
    try:
        return told_names(parse_json(line))
    except RecollectError:
        return frozenset()  # it is refused when its turn comes


async def _recorded(line: bytes, record: Callable[[Any], Awaitable[Recorded]]) -> dict[str, Any]:
    try:
        return to_json(await record(parse_json(line)))
    except StoreError:
        raise
    except RecollectError as error:
        return {"status": error.http_status, "error": str(error)}
