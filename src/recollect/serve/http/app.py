"""The HTTP door as a FastAPI application: the routes, their errors, and the life of the memories behind them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig

from recollect import __version__
from recollect.serve.http import audit, conversations, ingest, recall, state
from recollect.serve.http.figures import Figures
from recollect.serve.http.replies import answer_errors

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from starlette.types import ASGIApp, Receive, Scope, Send

    from recollect.clock import Clock
    from recollect.serve.http.tokens import TokenFile
    from recollect.serve.http.workspaces import Workspaces

_ASIDE = "recollect.address"
_ABOUT = "The memory of coding agents. Every route but /health needs a token: `Authorization: Bearer …`."


def _hide_address(scope: Scope) -> bool:
    """Put the address aside before a span is begun, which would tell ids, what was asked, and a key; nothing is left out of tracing.

    A span is named after its route, which has its own attribute; that of the path is there, and empty.
    """
    if scope["type"] == "http":
        scope[_ASIDE] = scope["path"], scope.get("query_string", b"")
        scope["path"], scope["query_string"] = "", b""
    return False


_TELEMETRY: TelemetryConfig = {  # spans when an exporter is configured; never a log, which would hold what was said
    "tracing": True,
    "metrics": False,
    "logs": False,
    "operation_spans": False,
    "auto_configure": True,
    "exclude": _hide_address,
}


class _Asked:
    """Gives the routes back the address that spans do not have."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _ASIDE in scope:
            scope["path"], scope["query_string"] = scope.pop(_ASIDE)
        await self._app(scope, receive, send)


class _Application(FastAPI):
    """FastAPI, whose document of itself is made complete when somebody asks for it."""

    _is_complete = False

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        document = super().openapi()
        if not self._is_complete:
            from recollect.serve.http.document import completed  # noqa: PLC0415  most servers are never asked for it

            self.openapi_schema = completed(document)
            self._is_complete = True
        return self.openapi_schema or document


def create_app(workspaces: Workspaces, tokens: TokenFile, clock: Clock) -> FastAPI:
    """Return the application; the guard goes around it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        await workspaces.close()

    app = _Application(
        title="Recollect", version=__version__, description=_ABOUT, lifespan=lifespan, docs_url=None, redoc_url=None, telemetry=_TELEMETRY,
        strict_content_type=False,
    )  # fmt: skip
    app.state.workspaces = workspaces
    app.state.tokens = tokens
    app.state.clock = clock
    app.state.figures = Figures()
    app.add_middleware(_Asked)
    answer_errors(app)
    for part in (ingest, conversations, recall, audit, state):
        app.include_router(part.router)
    return app
