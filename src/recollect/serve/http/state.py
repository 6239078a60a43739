"""Routes about the server itself: whether it lives and is ready, its figures, and the first token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Request, Response

from recollect import __version__
from recollect.answers import to_json
from recollect.errors import NotFoundError
from recollect.serve.http.replies import Remembering, reply

if TYPE_CHECKING:
    from collections.abc import Mapping

router = APIRouter()
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/health")
async def health() -> Response:
    """Say that the server lives; the only route that needs no token."""
    return reply({"status": "ok", "version": __version__})


@router.get("/ready")
async def ready(request: Request) -> Response:
    """Say whether the store can be used."""
    await request.app.state.workspaces.ready()
    return reply({"status": "ready"})


@router.get("/stats")
async def stats(memory: Remembering) -> Response:
    """Say how much is remembered."""
    return reply(await memory.stats())


@router.get("/metrics", response_class=Response)
async def metrics(request: Request, memory: Remembering) -> Response:
    """Say the same for Prometheus, of the workspace of the token, with what this process did in it."""
    counted = await memory.stats()
    names = ("conversations", "turns", "messages", "tool_calls", "passages", "embedded", "size_bytes")
    lines = [line for name in names for line in _metric(f"recollect_{name}", "gauge", {"": getattr(counted, name)})]
    lines += _metric("recollect_jobs", "gauge", {f'{{state="{state}"}}': count for state, count in counted.jobs.items()})
    lines += _metric("recollect_summaries", "gauge", {f'{{level="{level}"}}': count for level, count in counted.summaries.items()})
    lines += [line for name, value in memory.metrics.prometheus().items() for line in _metric(name, "counter", {"": value})]
    lines += [line for metric in request.app.state.figures.prometheus(memory.workspace) for line in _metric(*metric)]
    return Response("\n".join(lines) + "\n", media_type=_TEXT)


def _metric(name: str, kind: str, values: Mapping[str, float]) -> list[str]:
    return [f"# TYPE {name} {kind}", *(f"{name}{labels} {value!r}" for labels, value in values.items())] if values else []


@router.get("/", include_in_schema=False)
async def first(request: Request) -> Response:
    """Exchange the one-time key for a token that lasts, and show it once."""
    state: dict[str, Any] = request.scope["state"]
    if not state.get("first_key"):
        msg = "there is nothing here: the routes are in /openapi.json"
        raise NotFoundError(msg)
    tokens, clock = request.app.state.tokens, request.app.state.clock
    record, secret = tokens.create(state["token"].workspace, "admin", "first start", clock.now())
    told = {"token": secret, "id": record.id, "role": record.role, "workspace": record.workspace}
    return reply({**to_json(told), "note": "shown once: keep it, and send it as `Authorization: Bearer …`"})
