"""How much the door lets through: the limits, a bucket of requests for each token, and a bound on those under way."""

from __future__ import annotations

import contextlib
import math
from typing import TYPE_CHECKING

import msgspec

from recollect.errors import ConfigError
from recollect.serve.http.addresses import authority_of
from recollect.serve.http.refusals import come_again

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

BODY_BYTES_MAX = 64 * 1024 * 1024
REQUESTS_AT_ONCE_MAX = 64
REQUESTS_PER_SECOND = 100.0
REQUESTS_BURST = 200
BODY_SECONDS_MAX = 30.0
REQUEST_SECONDS_MAX = 120.0


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the guard lets through; `hosts` are names beside the loopback ones, each for any port or as `name:port`."""

    body_bytes_max: int = BODY_BYTES_MAX
    requests_at_once_max: int = REQUESTS_AT_ONCE_MAX
    per_second: float = REQUESTS_PER_SECOND
    burst: int = REQUESTS_BURST
    body_seconds_max: float = BODY_SECONDS_MAX
    request_seconds_max: float = REQUEST_SECONDS_MAX
    hosts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        for name in ("body_bytes_max", "requests_at_once_max", "per_second", "burst", "body_seconds_max", "request_seconds_max"):
            if not 0 < getattr(self, name) < math.inf:
                msg = f"{name} is a number above 0, not {getattr(self, name)}"
                raise ConfigError(msg)
        for host in self.hosts:
            if authority_of(host) is None:
                msg = f"a host is a name, or name:port, such as memory.example:8722, not {host[:60]!r}"
                raise ConfigError(msg)


class Traffic:
    """How much is let through: a bucket of requests for each token, and a bound on those under way, whosever they are."""

    def __init__(self, limits: Limits, monotonic: Callable[[], float]) -> None:
        self._limits = limits
        self._monotonic = monotonic
        self._under_way = 0
        self._buckets: dict[str, tuple[float, float]] = {}  # what is left, and when that was so; as many as there are tokens

    @contextlib.contextmanager
    def admitted(self, token_id: str) -> Generator[None]:
        """Count a request as under way, or refuse it with the seconds after which to come again."""
        if self._under_way >= self._limits.requests_at_once_max:
            raise come_again(429, "Too many requests are under way: send it again later.", 1)
        self._take(token_id)
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1

    def _take(self, token_id: str) -> None:
        now = self._monotonic()
        left, since = self._buckets.get(token_id, (float(self._limits.burst), now))
        left = min(float(self._limits.burst), left + max(now - since, 0.0) * self._limits.per_second)
        if left < 1:
            self._buckets[token_id] = (left, now)
            raise come_again(429, "This token sends requests too fast: send it again later.", (1 - left) / self._limits.per_second)
        self._buckets[token_id] = (left - 1, now)
