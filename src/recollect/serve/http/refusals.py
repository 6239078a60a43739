"""What the door says to those whom it sends away, before or instead of the app: a status, one sentence, and what belongs to it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable

PROBLEM = "application/problem+json"


def problem(status: int, title: str, detail: str, **more: str | None) -> bytes:
    """Return a problem document of RFC 9457."""
    return msgspec.json.encode({"type": "about:blank", "title": title, "status": status, "detail": detail, **more})


class RefusalError(Exception):
    """A request is answered by the guard: a status, one sentence, and the headers that belong to the status."""

    def __init__(self, status: int, detail: str, headers: Iterable[tuple[bytes, bytes]] = ()) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = [*headers]


def late() -> RefusalError:
    """Return the refusal of a body that was waited for too long."""
    return RefusalError(408, "The body took too long to arrive.")


def stopping() -> RefusalError:
    """Return the refusal of what a server that is about to stop cannot wait for."""
    return come_again(503, "The server is stopping: the request may or may not have taken effect, and may be sent again.", 1)


def come_again(status: int, detail: str, seconds: float) -> RefusalError:
    """Return a refusal that says after how many seconds to try again."""
    return RefusalError(status, detail, [(b"retry-after", str(max(math.ceil(seconds), 1)).encode())])
