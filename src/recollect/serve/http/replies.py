"""How the HTTP door answers: plain JSON of what the library returns, problem documents for errors, pages by cursor."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from fastapi import Depends, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from recollect.answers import to_json
from recollect.capture.clean import parse_json
from recollect.errors import InputError, RecollectError, StoreBusyError, StoreUnavailableError
from recollect.memory import Memory
from recollect.serve.http import refusals
from recollect.serve.http.guard import CLIENT_GONE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastapi import FastAPI

_T = TypeVar("_T")
PAGE_MAX = 1_000
_DETAIL_CHARS_MAX = 500
_RETRY_SECONDS = "1"
_CURSOR = re.compile(r"at:[0-9]{1,10}")
TITLES = {
    400: "Bad Request", 401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 408: "Request Timeout",
    409: "Conflict", 413: "Content Too Large", 415: "Unsupported Media Type", 421: "Misdirected Request", 422: "Unprocessable Content",
    429: "Too Many Requests", 500: "Internal Server Error", 502: "Bad Gateway", 503: "Service Unavailable",
}  # fmt: skip


async def memory_of(request: Request) -> Memory:
    """Return the memory of the workspace that the caller's token is bound to.

    On the event loop, which alone may open one: in a thread of its own, two requests would open two, each with its own locks.
    """
    return request.app.state.workspaces.memory(request.scope["state"]["token"].workspace)


Remembering = Annotated[Memory, Depends(memory_of)]


def reply(value: object, status: int = 200) -> Response:
    """Answer with plain JSON."""
    return Response(msgspec.json.encode(to_json(value)), status, media_type="application/json")


def whole(items: object) -> Response:
    """Answer with a list that has no second page."""
    return reply({"items": to_json(items), "next_cursor": None})


def problem(request: Request, status: int, detail: str, headers: dict[str, str] | None = None) -> Response:
    """Answer with a problem document of RFC 9457."""
    told = detail[:_DETAIL_CHARS_MAX].encode(errors="replace").decode()
    body = refusals.problem(status, TITLES.get(status, "Error"), told, request_id=request.scope.get("state", {}).get("request_id"))
    return Response(body, status, headers, media_type=refusals.PROBLEM)


def answer_errors(app: FastAPI) -> None:
    """Have every error answered with a problem document; what nobody foresaw is not explained."""

    async def ours(request: Request, error: Exception) -> Response:
        status = error.http_status if isinstance(error, RecollectError) else 500
        later = {"Retry-After": _RETRY_SECONDS} if isinstance(error, StoreBusyError | StoreUnavailableError) else None
        return problem(request, status, str(error), later)

    async def refused(request: Request, error: Exception) -> Response:
        if not isinstance(error, HTTPException):
            return await unforeseen(request, error)
        return problem(request, error.status_code, str(error.detail), dict(error.headers or {}))

    async def invalid(request: Request, error: Exception) -> Response:
        told = error.errors() if isinstance(error, RequestValidationError) else []
        wrong = "; ".join(f"{'.'.join(str(part) for part in one['loc'])}: {one['msg']}" for one in told)
        return problem(request, 422, wrong or "the request cannot be read")

    async def unforeseen(request: Request, _: Exception) -> Response:
        return problem(request, 500, "The server failed at this request.")  # the guard is told what it was, and writes down its name

    async def unwritable(request: Request, _: Exception) -> Response:
        return problem(request, 422, "A text has half a character in it (a lone surrogate), which nothing can hold: send whole ones.")

    async def gone(_: Request, __: Exception) -> Response:
        return Response(status_code=CLIENT_GONE)  # a span is told; the client is not there any more

    app.add_exception_handler(ClientDisconnect, gone)
    app.add_exception_handler(UnicodeEncodeError, unwritable)
    app.add_exception_handler(Exception, unforeseen)
    app.add_exception_handler(RecollectError, ours)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(RequestValidationError, invalid)


async def read_body(request: Request) -> Any:
    """Return the JSON of a body, with every limit on its depth and numbers; `InputError` when it is none."""
    return parse_json(await request.body())


def page(items: Sequence[_T], limit: int, start: int) -> dict[str, Any]:
    """Return a page of a list that was read one further than the page goes, and the cursor of the next, if there is one."""
    shown = items[start : start + limit]
    following = cursor_at(start + limit) if len(items) > start + limit else None
    return {"items": [to_json(item) for item in shown], "next_cursor": following}


def page_back(items: Sequence[_T], limit: int, start: int) -> dict[str, Any]:
    """Return a page of the last of a list, the oldest first; the next page has what comes before it."""
    end = max(len(items) - start, 0)
    following = cursor_at(start + limit) if end > limit else None
    return {"items": [to_json(item) for item in items[max(end - limit, 0) : end]], "next_cursor": following}


def start_of(cursor: str | None) -> int:
    """Return where a page starts; `InputError` for a cursor that is none of ours."""
    if cursor is None:
        return 0
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii")
    except (ValueError, binascii.Error):
        text = ""
    if _CURSOR.fullmatch(text) is None:
        msg = "this cursor is none that was given out: begin without one"
        raise InputError(msg)
    return int(text.removeprefix("at:"))


def cursor_at(start: int) -> str:
    """Return the cursor of a page that starts at a place."""
    return base64.urlsafe_b64encode(f"at:{start}".encode()).decode()
