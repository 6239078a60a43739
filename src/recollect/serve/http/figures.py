"""How many requests the HTTP door answered, and how long they took, by route; for Prometheus."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.serve.http.log import Entry

UNROUTED = "none"  # what was refused before its route was known, and what no route is for: an address never becomes a label
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
_THROTTLED = 429


class _Kind(NamedTuple):
    """Requests that are counted together."""

    workspace: str | None
    method: str
    route: str | None
    status: int | None


class Figures:
    """The figures since the server started; the loop that serves is the only one that counts.

    They are kept by workspace: a token reads its own, and those of requests that came with no valid token, which are nobody's.
    """

    def __init__(self) -> None:
        self._known: defaultdict[_Kind, list[float]] = defaultdict(lambda: [0, 0.0])

    def count(self, entry: Entry) -> None:
        """Count a request that has ended."""
        method = entry.method if entry.method in _METHODS else "other"
        known = self._known[_Kind(entry.workspace, method, entry.route, entry.status)]
        known[0] += 1
        known[1] += entry.duration_ms

    def prometheus(self, workspace: str) -> Iterable[tuple[str, str, dict[str, float]]]:
        """Yield the name and kind of each metric, and its samples: their names with labels, and values."""
        requests: dict[str, float] = {}
        durations: defaultdict[str, float] = defaultdict(float)
        throttled = 0.0
        for kind, (count, duration_ms) in sorted(self._known.items(), key=str):
            if kind.workspace not in {workspace, None}:
                continue
            where = f'method="{kind.method}",route="{kind.route or UNROUTED}"'
            name = f'{{{where},status="{kind.status or UNROUTED}"}}'
            requests[name] = requests.get(name, 0) + count
            durations[f"_sum{{{where}}}"] += duration_ms / 1_000
            durations[f"_count{{{where}}}"] += count
            if kind.status == _THROTTLED and kind.route is None:  # a route of its own may say so, too, of what a model may cost
                throttled += count
        yield "recollect_http_requests_total", "counter", requests
        yield "recollect_http_request_duration_seconds", "summary", dict(durations)
        yield "recollect_http_throttled_total", "counter", {"": throttled}
