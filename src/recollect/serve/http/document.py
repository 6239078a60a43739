"""The OpenAPI document: what FastAPI reads off the routes, and what it cannot know: tokens, refusals, answers; loaded when asked for."""

from __future__ import annotations

from typing import Any

import msgspec

from recollect.serve.http.answered import ANSWERS, JSON, Answer
from recollect.serve.http.guard import OPEN_PATH, needed_role
from recollect.serve.http.refusals import PROBLEM
from recollect.serve.http.replies import TITLES
from recollect.serve.http.schemas import REFERENCE, Schema, schemas_of


class Problem(msgspec.Struct, frozen=True):
    """A problem document of RFC 9457: `title` says what the status is called, `detail` in one sentence what was wrong."""

    type: str
    title: str
    status: int
    detail: str
    request_id: str | None


_SCHEME = "token"
_SECURITY = {
    "type": "http",
    "scheme": "bearer",
    "description": "A token of `recollect token create`: bound to one workspace and one role, read < write < admin.",
}
_REFUSALS: dict[int, tuple[str, str]] = {  # when, and an example of what is said then
    400: ("the head or the body cannot be parsed", "The Content-Length is not one number."),
    401: ("there is no token, or it does not hold", "The token is unknown, revoked or expired."),
    403: ("the role is not enough, or a page of another origin asks",
          "This needs a token of the role write, and yours is of the role read."),
    404: ("there is no such thing in this workspace", "there is no request 'req_9': begin it with start"),
    408: ("the body took too long to arrive", "The body took too long to arrive."),
    409: ("it is there with other content, is closed, or is several",
          "request 'req_1' is already recorded with other content: send it with replace, or under another id"),
    413: ("more than is taken at once: send it in parts", "The body is larger than the 33,554,432 bytes that are taken."),
    421: ("the Host is none that this server answers to", "This server does not answer to the Host of this request."),
    422: ("it cannot be read, or makes no sense; sending it again does not help",
          "the document is not JSON: Expecting value: line 1 column 1 (char 0)"),
    429: ("too much at once: come again after `Retry-After` seconds", "This token sends requests too fast: send it again later."),
    500: ("the server failed", "The server failed at this request."),
    503: ("the store cannot be used now, or it took too long: come again after `Retry-After` seconds where it says so",
          "The request took too long: it may or may not have taken effect, and may be sent again."),
}  # fmt: skip
_HEADERS = {
    401: {"WWW-Authenticate": {"description": "`Bearer`", "schema": {"type": "string"}}},
    429: {"Retry-After": {"description": "seconds", "required": True, "schema": {"type": "integer", "minimum": 1}}},
    503: {"Retry-After": {"description": "seconds", "schema": {"type": "integer", "minimum": 1}}},
}
_OF_ALL = (403, 421, 500)
_BEHIND_A_TOKEN = (401, 429, 503)
_WITH_A_BODY = (400, 408, 413, 422)
_UNKNOWN = frozenset({"POST /search", "POST /context"})  # a conversation that they name may be none, as one in an address may
_CONFLICTS = frozenset({"POST /ingest/conversation", "POST /conversations/import", "DELETE /requests/{request_id}"})


def completed(document: Schema) -> Schema:
    """Return the document of the routes with what their code does not say."""
    types = [*dict.fromkeys(one for answers in ANSWERS.values() for answer in answers.values() for one in answer.types)]
    found, schemas = schemas_of([*types, Problem])
    refer = dict(zip(types, found, strict=False))
    own = document["components"]
    for name in ("HTTPValidationError", "ValidationError"):
        own["schemas"].pop(name, None)
    own["schemas"] |= schemas
    own["securitySchemes"] = {_SCHEME: _SECURITY}
    own["responses"] = {_name(status): _refusal(status) for status in _REFUSALS}
    document["security"] = [{_SCHEME: []}]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _complete(operation, method.upper(), path, refer)
    return document


def _complete(operation: Schema, method: str, path: str, refer: dict[object, Schema]) -> None:
    """Say of one operation whom it serves, what it answers, and how it refuses."""
    route = f"{method} {path}"
    if path == OPEN_PATH:
        operation["security"] = []
        operation["description"] += "\n\nNeeds no token."
    else:
        operation["description"] += f"\n\nNeeds a token of the role `{needed_role(method, path)}`."
    operation["responses"] = {
        **{str(status): _answer(answer, refer) for status, answer in ANSWERS[route].items()},
        **{str(status): {"$ref": f"#/components/responses/{_name(status)}"} for status in sorted(_refused(operation, route, path))},
    }


def _refused(operation: Schema, route: str, path: str) -> set[int]:
    """Return the statuses with which an operation may be refused."""
    statuses = {*_OF_ALL}
    if path != OPEN_PATH:
        statuses |= {*_BEHIND_A_TOKEN}
    if "requestBody" in operation:
        statuses |= {*_WITH_A_BODY}
    if "parameters" in operation:
        statuses.add(422)
    is_piece = route.startswith("POST /requests/")
    if ("{" in path and not (is_piece and path.endswith("/start"))) or route in _UNKNOWN:
        statuses.add(404)
    if (is_piece and not path.endswith("/finalize")) or route in _CONFLICTS:
        statuses.add(409)
    return statuses


def _answer(answer: Answer, refer: dict[object, Schema]) -> Schema:
    schemas = [refer[one] for one in answer.types]
    structured: Schema = {"anyOf": schemas} if len(schemas) > 1 else schemas[0] if schemas else {"type": "object"}
    content: dict[str, Schema] = {media: {"schema": structured if media == JSON else {"type": "string"}} for media in answer.media}
    if answer.example is not None:
        content[JSON]["example"] = answer.example
    return {"description": answer.says, "content": content}


def _refusal(status: int) -> dict[str, Any]:
    when, detail = _REFUSALS[status]
    example = {
        "type": "about:blank",
        "title": TITLES[status],
        "status": status,
        "detail": detail,
        "request_id": "e6b609f1-f9d7-8d3a-89e3-ba8dc75f080a",
    }
    content = {PROBLEM: {"schema": {"$ref": REFERENCE.format(name="Problem")}, "example": example}}
    return {"description": when, "content": content, **({"headers": _HEADERS[status]} if status in _HEADERS else {})}


def _name(status: int) -> str:
    return TITLES[status].replace(" ", "")
