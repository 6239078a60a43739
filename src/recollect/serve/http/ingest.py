"""Routes that take requests in: whole, in batches of JSON lines, or piece by piece."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response

from recollect.answers import Recorded, to_json
from recollect.errors import InputError, TooLargeError
from recollect.limits import PATH_CHARS_MAX
from recollect.record.requests import PIECES
from recollect.serve.http.batches import LINES_TYPES, are_lines, recorded_lines
from recollect.serve.http.examples import PAYLOAD, START, piece_body, raw_body
from recollect.serve.http.replies import Remembering, memory_of, read_body, reply

router = APIRouter()
_JSON = "application/json"
RequestId = Annotated[str, Path(min_length=1, max_length=200, description="the request's own id; it may have slashes")]
InProject = Annotated[str | None, Query(max_length=PATH_CHARS_MAX, description="which, when several have a request of this id")]
OnEdit = Annotated[Literal["branch", "replace"], Query(description="what an edited past does")]
_CREATED = frozenset({"created", "branched", "pending"})


def _recorded(recorded: Recorded) -> Response:
    return reply(recorded, 201 if recorded.status in _CREATED else 200)


@router.post(
    "/ingest/conversation",
    status_code=201,
    openapi_extra=raw_body(PAYLOAD, lines_type=LINES_TYPES[0]),
)
async def ingest(request: Request, *, replace: bool = False, on_edit: OnEdit = "branch") -> Response:
    """Record a whole request; of JSON lines each one, the bad ones reported and the good ones kept."""
    memory = await memory_of(request)  # not as a dependency, which would cost the busiest route more than it does
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in LINES_TYPES:
        results = await recorded_lines(await request.body(), partial(memory.record, replace=replace, on_edit=on_edit))
        bad = sum("error" in one for one in results)
        return reply({"recorded": len(results) - bad, "bad": bad, "results": results}, 200 if not bad else 207)
    return _recorded(await memory.record(await _one(request, kind), replace=replace, on_edit=on_edit))


async def _one(request: Request, kind: str) -> Any:
    """Return the one payload of a body; what is no JSON is told which content types there are, where that may be the reason."""
    try:
        return await read_body(request)
    except TooLargeError:
        raise
    except InputError as error:
        known = f"JSON lines are taken as {', '.join(LINES_TYPES)}"
        if are_lines(await request.body()):
            msg = f"the body is JSON lines, and was sent as {kind[:60] or 'nothing'}: {known}"
        elif kind and kind != _JSON:
            msg = f"{error}; it was sent as {kind[:60]}: a payload is taken as {_JSON}, and {known}"
        else:
            raise
        raise InputError(msg) from error


@router.post("/requests/{request_id:path}/start", status_code=201, openapi_extra=raw_body(START))
async def start(request: Request, memory: Remembering, request_id: RequestId) -> Response:
    """Begin a request that comes in pieces; it is there, and open, from now on."""
    return _recorded(await memory.requests.start(request_id, await read_body(request)))


def _add_piece(piece: Any) -> None:
    async def add(request: Request, memory: Remembering, request_id: RequestId) -> Response:
        return reply(await memory.requests.add(request_id, piece, await read_body(request)))

    add.__doc__ = f"Add {piece.replace('-', ' ')} to an open request; the same again changes nothing."
    add.__name__ = f"add_{piece.replace('-', '_')}"
    router.post(f"/requests/{{request_id:path}}/{piece}", openapi_extra=piece_body(piece))(add)


for _piece in PIECES:
    _add_piece(_piece)


@router.post("/requests/{request_id:path}/finalize", openapi_extra=raw_body({"status": "complete"}))
async def finalize(request: Request, memory: Remembering, request_id: RequestId) -> Response:
    """Close a request, once; closing it again changes nothing."""
    body = await read_body(request) if await request.body() else {}
    if not isinstance(body, dict):
        msg = 'finalize takes a JSON object, such as {"status": "complete"}'
        raise InputError(msg)
    status = body.get("status")
    return reply(await memory.requests.finalize(request_id, "complete" if status is None else status))


@router.delete("/requests/{request_id:path}")
async def delete(
    memory: Remembering,
    request_id: RequestId,
    *,
    conversation: Annotated[str | None, Query(max_length=200, description="where, when several have a request of this id")] = None,
) -> Response:
    """Remove a request, open or whole, with its turns."""
    return reply({"request_id": request_id, "turns": await memory.requests.delete(request_id, conversation)})


@router.get("/requests/{request_id:path}/flow")
async def flow(memory: Remembering, request_id: RequestId, *, project: InProject = None) -> Response:
    """Show a request from its first message to its last."""
    return reply(await memory.flow(request_id, project=project))


@router.get("/requests/{request_id:path}/context")
async def context(memory: Remembering, request_id: RequestId, *, project: InProject = None) -> Response:
    """Show the context a request had, the most useful first."""
    found = await memory.flow(request_id, project=project)
    return reply({"request_id": request_id, "context_files": to_json(found.context_files)})


@router.get("/requests/{request_id:path}")
async def show(memory: Remembering, request_id: RequestId, *, project: InProject = None) -> Response:
    """Show a request: where it is, whether it is whole, and its turns."""
    flow = await memory.flow(request_id, project=project)
    turns = await memory.store.turns.by_id(memory.workspace, list(flow.turn_ids))
    head = {"request_id": request_id, "conversation_id": flow.conversation_id, "status": flow.status}
    return reply({**head, "turns": to_json(turns)})
