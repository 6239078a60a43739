"""What this process has done and how long it took: counts and times, under the names that Prometheus will see; a leaf of distill."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict


class Metrics:
    """Counts and times since the process opened its memory; may be used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.last_worker_error: str | None = None
        self.last_fallback: str | None = None
        self._counts: Counter[str] = Counter()
        self._seconds: defaultdict[str, float] = defaultdict(float)

    def recorded(self, turns: int, seconds: float) -> None:
        """Count turns that were recorded."""
        self._add("record", turns, seconds)

    def searched(self, hits: int, seconds: float) -> None:
        """Count a search, and whether it found something."""
        self._add("search", 1, seconds)
        self._add("search_hit", bool(hits), 0.0)

    def summarised(self, summaries: int, seconds: float) -> None:
        """Count summaries."""
        self._add("summarize", summaries, seconds)

    def embedded(self, passages: int, seconds: float) -> None:
        """Count passages that were embedded."""
        self._add("embed", passages, seconds)

    def fell_back(self, reason: str) -> None:
        """Count a summary or title that a model was asked for and could not give, and remember why."""
        self.last_fallback = reason
        self._add("model_fallback", 1, 0.0)

    def fallbacks(self) -> int:
        """Return how often a model could not give what it was asked for."""
        with self._lock:
            return self._counts["model_fallback"]

    def worker_failed(self, error: str) -> None:
        """Count a look of the background worker that came to nothing, and remember why."""
        self.last_worker_error = error
        self._add("worker_failure", 1, 0.0)

    def _add(self, name: str, count: int, seconds: float) -> None:
        with self._lock:
            self._counts[name] += count
            self._seconds[name] += seconds

    def timings_ms(self) -> dict[str, float]:
        """Return the mean time of each kind of work, in milliseconds, and the share of searches that found something."""
        with self._lock:
            found = {
                name: round(1_000 * self._seconds[name] / count, 3) for name, count in self._counts.items() if count and self._seconds[name]
            }
            if self._counts["search"]:
                found["search_hit_rate"] = round(self._counts["search_hit"] / self._counts["search"], 3)
        return found

    def prometheus(self) -> dict[str, float]:
        """Return every count and time under its Prometheus name."""
        with self._lock:
            counts = {f"recollect_{name}_total": float(count) for name, count in self._counts.items()}
            return counts | {f"recollect_{name}_seconds_total": seconds for name, seconds in self._seconds.items() if seconds}
