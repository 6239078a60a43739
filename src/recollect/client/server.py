"""One question → one answer of a Recollect server over HTTP, tried again where that may help."""

from __future__ import annotations

import json
import time
from contextlib import closing, suppress
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import quote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Callable

    from .plain import Json

ANSWER_BYTES_MAX = 64 * 1024 * 1024
DETAIL_CHARS_MAX = 1_000
BACKOFF_SECONDS_FIRST = 0.5
BACKOFF_SECONDS_MAX = 30.0
RETRY_AFTER_SECONDS_MAX = 30.0
RETRIED_STATUSES = frozenset({408, 429, 500, 502, 503, 504})


class ClientError(Exception):
    """The server refused (`status`, with its title and detail), or there was no answer (`status` is None, `title` names the error)."""

    def __init__(self, status: int | None, title: str, detail: str = "") -> None:
        super().__init__(status, title, detail)
        self.status = status
        self.title = title
        self.detail = detail
        self.retry_after_seconds: float | None = None

    def __str__(self) -> str:
        named = self.title if self.status is None else f"{self.status} {self.title}"
        return f"{named}: {self.detail}" if self.detail else named


class Server:
    """Where the server is and what it wants to see; its token goes to that host and no other."""

    def __init__(self, url: str, token: str, *, timeout_seconds: float, attempts_max: int) -> None:
        """Raise ValueError for a url or a token that cannot be used."""
        self._scheme, self._host, self._port, self._prefix = _endpoint(url)
        self._headers = _headers(token)
        self._timeout_seconds = timeout_seconds
        self._attempts_max = max(attempts_max, 1)

    def ask(self, method: str, path: str, body: bytes | None, wait: Callable[[int, float | None], bool]) -> Any:
        """Return the parsed answer; `wait` is told how many attempts failed and what the server asked for, and says whether to go on.

        Raises ClientError for what trying again cannot help, and for the last attempt.
        """
        for attempt in range(1, self._attempts_max + 1):
            try:
                return self._attempt(method, path, body)
            except ClientError as error:
                may_pass = error.status is None or error.status in RETRIED_STATUSES
                if not may_pass or attempt == self._attempts_max or not wait(attempt, error.retry_after_seconds):
                    raise
        return None

    def _attempt(self, method: str, path: str, body: bytes | None) -> Any:
        """Ask on a connection of its own: none is stale, shared by threads, inherited by a fork, or redirected."""
        kind = HTTPSConnection if self._scheme == "https" else HTTPConnection
        try:
            with closing(kind(self._host, self._port, timeout=self._timeout_seconds)) as connection:
                with suppress(BrokenPipeError):  # refused before all was sent: the answer says why
                    connection.request(method, self._prefix + path, body=body, headers=self._headers)
                with connection.getresponse() as response:
                    content = response.read(ANSWER_BYTES_MAX)
                    if response.length and len(content) < ANSWER_BYTES_MAX:  # a bounded read does not complain of this itself
                        raise IncompleteRead(content, response.length)
        except (OSError, HTTPException, ValueError) as error:  # ValueError: a host name that cannot be encoded
            raise ClientError(None, type(error).__name__, str(error)) from error
        answer = _parsed(content)
        if not 200 <= response.status < 300:  # noqa: PLR2004  the range of success
            title, detail = _problem(answer)
            error = ClientError(response.status, title or response.reason, detail)
            error.retry_after_seconds = _seconds(response.getheader("Retry-After", ""))
            raise error
        if content and answer is None:
            raise ClientError(response.status, "UnreadableAnswer", "the answer is no JSON object: is this a Recollect server?")
        return answer or {}


def backoff_seconds(attempt: int, asked_seconds: float | None, chance: float) -> float:
    """Return how long to wait after so many attempts: what the server asked for, else a share of a doubling limit (full jitter)."""
    if asked_seconds is not None:
        return min(max(asked_seconds, 0.0), RETRY_AFTER_SECONDS_MAX)
    return chance * min(BACKOFF_SECONDS_FIRST * 2 ** (attempt - 1), BACKOFF_SECONDS_MAX)


def _endpoint(url: str) -> tuple[str, str, int, str]:
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        msg = f"a Recollect server is at http://host:port or https://host:port, not at a url of scheme {parts.scheme!r}"
        raise ValueError(msg)
    if parts.username is not None or parts.query or parts.fragment:
        msg = f"the url of the server {parts.hostname!r} has a user, a query or a fragment: leave it out, and give the token as token="
        raise ValueError(msg)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return parts.scheme, parts.hostname, port, quote(parts.path.rstrip("/"), safe="/%")


def _headers(token: str) -> dict[str, str]:
    token = token.strip()
    if not (token.isascii() and token.isprintable()):  # http.client would show it in its own complaint
        msg = "the token has characters that no token has: use it as `recollect token create` printed it"
        raise ValueError(msg)
    headers = {"Accept": "application/json", "Content-Type": "application/json", "Connection": "close"}
    return {**headers, "Authorization": f"Bearer {token}"} if token else headers


def _parsed(content: bytes) -> Json | None:
    try:
        answer: Any = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return cast("Json", answer) if isinstance(answer, dict) else None


def _problem(answer: Json | None) -> tuple[str, str]:
    title, detail = ((answer or {}).get(name) for name in ("title", "detail"))
    return str(title or "")[:DETAIL_CHARS_MAX], str(detail or "")[:DETAIL_CHARS_MAX]


def _seconds(retry_after: str) -> float | None:
    """Read a Retry-After: seconds, or a date; None when it is neither."""
    if retry_after.strip().isdecimal():
        return float(retry_after)
    try:
        return parsedate_to_datetime(retry_after).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
