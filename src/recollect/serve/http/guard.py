"""The outermost layer of the HTTP door, around any ASGI app: who is not let in is answered here, before a byte of the body is read.

In this order: Host, Origin, method, token, role, length, traffic; then, while the app works, the body's size and everybody's
time. A refusal is a problem document of RFC 9457.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import time
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from recollect.clock import RandomIds, SystemClock
from recollect.errors import ConfigError
from recollect.serve.http.addresses import LOOPBACK_HOSTS, authority_of, with_port
from recollect.serve.http.log import Entry, Logs
from recollect.serve.http.refusals import PROBLEM, RefusalError, come_again, late, problem, stopping
from recollect.serve.http.tokens import TokenRecord
from recollect.serve.http.traffic import Limits, Traffic

if TYPE_CHECKING:
    from recollect.clock import Clock, Ids
    from recollect.serve.http.tokens import FirstKey, Role, TokenFile

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]

OPEN_PATH = "/health"
FIRST_KEY_ID = "first-key"
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
_LOOKING = frozenset({"GET", "HEAD"})
_READING_POSTS = frozenset({"/search", "/context", "/similar", "/verify"})
_QUERY_FIELDS_MAX = 10
_ANSWER_BYTES_UNREAD_MAX = 65_536
_ERROR_CHARS_MAX = 500
_POLICY_VIOLATION = 1008
CLIENT_GONE = 499  # of no standard, and what proxies write down, too: nobody is there to be answered
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_CHALLENGE = ((b"www-authenticate", b"Bearer"),)
_OURS = frozenset({b"server", b"x-request-id", b"x-content-type-options", b"cache-control"})


class Guard:
    """An ASGI app around another, which sees only requests that may reach it.

    The app finds in `scope["state"]` the `token` (None for `/health`), the `request_id`, and whether the `first_key` opened.
    """

    def __init__(
        self,
        app: App,
        tokens: TokenFile,
        *,
        limits: Limits | None = None,
        first_key: FirstKey | None = None,
        logs: Logs | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.app = app
        self.tokens = tokens
        self.limits = limits or Limits()
        self.hosts = LOOPBACK_HOSTS | {host.lower() for host in self.limits.hosts}
        self.first_key = first_key
        self.logs = logs or Logs()
        self.clock = clock or SystemClock()
        self.ids = ids or RandomIds()
        self.monotonic = monotonic
        self.traffic = Traffic(self.limits, monotonic)
        self.is_stopping = False
        self.arriving: set[asyncio.Timeout] = set()  # until when bodies are waited for

    def stop(self) -> None:
        """Wait for no body any more: the server is about to stop, and what has not arrived may be sent again."""
        self.is_stopping = True
        for waiting in self.arriving:
            waiting.reschedule(asyncio.get_running_loop().time())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection of the server."""
        if scope["type"] == "http":
            await _Exchange(self, scope, receive, send).run()
        elif scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": _POLICY_VIOLATION})


class _Exchange:
    """One request and its answer."""

    def __init__(self, guard: Guard, scope: Scope, receive: Receive, send: Send) -> None:
        self._guard = guard
        self._scope = scope
        self._server_receive = receive
        self._server_send = send
        self._method: str = scope["method"]
        self._path = _routed_path(scope)
        self._given: dict[bytes, list[str]] = {}
        for name, value in scope["headers"]:
            self._given.setdefault(name, []).append(value.decode("latin-1").strip())
        self._request_id = self._named()
        self._began = guard.monotonic()
        self._time = guard.clock.now()
        self._has_body = bool(self._header(b"transfer-encoding")) or self._header(b"content-length") not in ([], ["0"])
        self._body_bytes_max = guard.limits.body_bytes_max
        self._body_deadline: float | None = None
        self._is_body_whole = False
        self._is_client_gone = False
        self._token: TokenRecord | None = None
        self._is_first = False
        self._refusal: RefusalError | None = None
        self._status: int | None = None
        self._error: str | None = None
        self._bytes_in = 0
        self._bytes_out = 0

    async def run(self) -> None:
        """Answer the request, whatever happens, and write it down."""
        try:
            await self._admit_and_serve()
        except RefusalError as refusal:
            await self._refuse(refusal)
        except asyncio.CancelledError as cancelled:  # the server stops, and waits for nobody any more
            await self._refuse(stopping())
            self._error = type(cancelled).__name__
        except ConfigError as error:  # who runs the server reads in its log what to do; it holds no content
            await self._break(f"ConfigError: {error}")
        except Exception as error:  # noqa: BLE001  whatever the app raised, its caller is told one sentence
            await self._break(type(error).__name__)
        finally:
            self._guard.logs.request(self._entry(self._status))

    async def _admit_and_serve(self) -> None:
        authority = self._checked_host()
        self._check_origin(authority)
        if self._method not in _METHODS:
            raise RefusalError(405, "This method is not served.", [(b"allow", ", ".join(_METHODS).encode())])
        if self._path == OPEN_PATH and self._method in _LOOKING:
            self._body_bytes_max = 0  # nobody is known yet, so nothing is read
            self._check_length()
            await self._serve()
            return
        self._token = self._authenticated()
        needed = needed_role(self._method, self._path)
        if not self._token.may(needed):
            raise RefusalError(403, f"This needs a token of the role {needed}, and yours is of the role {self._token.role}.")
        self._check_length()
        with self._guard.traffic.admitted(self._token.id):
            await self._serve()

    def _checked_host(self) -> tuple[str, int | None]:
        given = self._header(b"host")
        authority = authority_of(given[0]) if len(given) == 1 else None
        # a target that is a whole address would name a host of its own
        if authority is None or not self._scope["path"].startswith("/"):
            raise RefusalError(421, "The request does not say in one Host header which server it is for.")
        name, port = authority
        if name not in self._guard.hosts and f"{name}:{port}" not in self._guard.hosts:
            raise RefusalError(421, "This server does not answer to the Host of this request.")
        return authority

    def _check_origin(self, host: tuple[str, int | None]) -> None:
        given = self._header(b"origin")
        if not given:
            return
        scheme = str(self._scope.get("scheme", "http"))
        named, _, rest = given[0].lower().partition("://")
        origin = authority_of(rest)
        is_own = origin is not None and origin[0] in LOOPBACK_HOSTS and with_port(origin, scheme) == with_port(host, scheme)
        if len(given) > 1 or named != scheme or not is_own:
            raise RefusalError(403, "Requests from pages of another origin are not served.")

    def _authenticated(self) -> TokenRecord:
        given = self._header(b"authorization")
        now = self._guard.clock.now()
        if not given and self._method == "GET" and self._path == "/" and (key := self._key()) is not None:
            first = self._guard.first_key
            if first is None or not first.take(key, now):
                raise RefusalError(401, "The key in the address is wrong, was used before or is too old.", _CHALLENGE)
            self._is_first = True
            return TokenRecord(id=FIRST_KEY_ID, sha256="", workspace=first.workspace, role="admin", created_at=now)
        scheme, _, secret = given[0].partition(" ") if len(given) == 1 else ("", "", "")
        if scheme.lower() != "bearer":
            raise RefusalError(
                401, "This needs a token in one header Authorization: Bearer; `recollect token create` makes one.", _CHALLENGE
            )
        token = self._guard.tokens.check(secret.strip(), now)
        if token is None:
            raise RefusalError(401, "The token is unknown, revoked or expired.", _CHALLENGE)
        return token

    def _key(self) -> str | None:
        try:
            fields = parse_qs(self._scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=_QUERY_FIELDS_MAX)
        except ValueError:
            return None
        return "".join(fields["key"]) if "key" in fields else None

    def _check_length(self) -> None:
        given = self._header(b"content-length")
        if not given:
            return
        if len(given) > 1 or not (given[0].isascii() and given[0].isdecimal()):
            raise RefusalError(400, "The Content-Length is not one number.")
        digits = given[0].lstrip("0") or "0"
        if len(digits) > len(str(self._body_bytes_max)) or int(digits) > self._body_bytes_max:
            raise self._too_large()

    def _too_large(self) -> RefusalError:
        return RefusalError(413, f"The body is larger than the {self._body_bytes_max:,} bytes that are taken.")

    async def _serve(self) -> None:
        """Run the app, for as long as a request may take until its answer begins."""
        self._scope.setdefault("state", {}).update(token=self._token, request_id=self._request_id, first_key=self._is_first)
        task = asyncio.create_task(self._run_app())
        try:
            await asyncio.wait({task}, timeout=self._guard.limits.request_seconds_max)
            if not task.done() and self._status is None:
                await self._refuse(
                    come_again(503, "The request took too long: it may or may not have taken effect, and may be sent again.", 1)
                )
                task.cancel()
            if not task.done():  # what cannot be stopped still counts as under way
                await asyncio.wait({task})
        finally:
            if not task.done():  # the server itself gives up
                task.cancel()
                await asyncio.wait({task})
        error = "CancelledError" if task.cancelled() else type(task.exception()).__name__ if task.exception() else None
        if self._refusal is not None:
            return
        if error is not None or self._status is None:
            await self._break(error or "NoAnswer")

    async def _run_app(self) -> None:
        await self._guard.app(self._scope, self._receive, self._send)

    async def _receive(self) -> Message:
        if self._refusal is not None:
            raise self._refusal
        if self._body_deadline is None:
            self._body_deadline = asyncio.get_running_loop().time() + self._guard.limits.body_seconds_max
        if self._is_body_whole:
            message = await self._server_receive()
        else:
            waiting = asyncio.timeout_at(0 if self._guard.is_stopping else self._body_deadline)
            self._guard.arriving.add(waiting)
            try:
                async with waiting:
                    message = await self._server_receive()
            except TimeoutError:
                return await self._cut_off(stopping() if self._guard.is_stopping else late())
            finally:
                self._guard.arriving.discard(waiting)
        if message["type"] == "http.disconnect":
            self._is_client_gone = True
            if not self._is_body_whole:
                self._leave()
            return message
        self._bytes_in += len(message.get("body", b""))
        if self._bytes_in > self._body_bytes_max:
            return await self._cut_off(self._too_large())
        self._is_body_whole = not message.get("more_body", False)
        return message

    async def _cut_off(self, refusal: RefusalError) -> Message:
        """Refuse in the middle of a body: an error reaches the app, so that it cannot take a part for the whole."""
        await self._refuse(refusal)
        raise refusal

    def _leave(self) -> None:
        """Write down that the client went away before its request was whole: nobody failed, and nobody hears an answer."""
        if self._status is None:
            self._refusal = RefusalError(CLIENT_GONE, "The client went away in the middle of its request.")
            self._status = CLIENT_GONE
            with contextlib.suppress(OSError):  # nothing was given away
                self._audit(CLIENT_GONE)

    async def _send(self, message: Message) -> None:
        if self._refusal is not None:
            return  # the answer was given, and the app speaks to nobody
        if message["type"] == "http.response.start":
            try:
                self._audit(message["status"])
            except OSError as error:
                self._error = type(error).__name__
                await self._refuse(RefusalError(500, "The request could not be written to the audit log, so its answer is withheld."))
                return
            self._status = message["status"]
            message = {**message, "headers": self._headers(message.get("headers", ()))}
        elif message["type"] == "http.response.body":
            size = len(message.get("body", b""))
            self._bytes_out += size
            if size > _ANSWER_BYTES_UNREAD_MAX:  # this is under way until most of it is read, and counts as such
                await self._server_send({**message, "more_body": True})
                message = {**message, "body": b""}
        await self._server_send(message)

    async def _break(self, error: str) -> None:
        """Answer for an app that failed, if it has not begun to; a client that is gone needs no answer."""
        self._error = error[:_ERROR_CHARS_MAX]
        if not self._is_client_gone:
            await self._refuse(RefusalError(500, "The server failed at this request."))

    async def _refuse(self, refusal: RefusalError) -> None:
        if self._status is not None:
            return  # an answer was begun and cannot be taken back: the server closes the connection
        self._refusal = refusal
        self._status = refusal.status
        with contextlib.suppress(OSError):  # nothing is given away that the audit would have to hold
            self._audit(refusal.status)
        body = problem(refusal.status, HTTPStatus(refusal.status).phrase, refusal.detail, request_id=self._request_id)
        self._bytes_out = len(body)
        own = [(b"content-type", PROBLEM.encode()), (b"content-length", str(len(body)).encode()), *refusal.headers]
        with contextlib.suppress(OSError):  # the client is gone
            await self._server_send({"type": "http.response.start", "status": refusal.status, "headers": self._headers(own)})
            await self._server_send({"type": "http.response.body", "body": body, "more_body": False})

    def _headers(self, given: Iterable[tuple[bytes, bytes]]) -> Headers:
        kept = [(name, value) for name, value in given if name.lower() not in _OURS and not name.lower().startswith(b"access-control-")]
        own = [(b"x-request-id", self._request_id.encode()), (b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store")]
        if self._has_body and not self._is_body_whole and self._scope.get("http_version", "1.1").startswith("1"):
            # what is still on its way is not waited for: who sends it slowly would hold the connection
            kept = [(name, value) for name, value in kept if name.lower() != b"connection"]
            own.append((b"connection", b"close"))
        return kept + own

    def _header(self, name: bytes) -> list[str]:
        return self._given.get(name, [])

    def _named(self) -> str:
        given = self._header(b"x-request-id")
        return given[0] if len(given) == 1 and _REQUEST_ID.fullmatch(given[0]) else self._guard.ids.fresh()

    def _audit(self, status: int) -> None:
        if self._token is not None:
            self._guard.logs.audit(self._entry(status))

    def _entry(self, status: int | None) -> Entry:
        return Entry(
            time=self._time,
            request_id=self._request_id,
            method=self._method,
            path=self._path,
            route=getattr(self._scope.get("route"), "path_format", None),
            status=status,
            duration_ms=(self._guard.monotonic() - self._began) * 1_000,
            token_id=None if self._token is None else self._token.id,
            workspace=None if self._token is None else self._token.workspace,
            bytes_in=self._bytes_in,
            bytes_out=self._bytes_out,
            error=self._error,
        )


def _routed_path(scope: Scope) -> str:
    """Return the path as the app's routes see it, below the place where the server mounts the app."""
    path, mount = scope["path"], str(scope.get("root_path", "")).rstrip("/")
    return path[len(mount) :] if mount and path.startswith(mount + "/") else path


def needed_role(method: str, path: str) -> Role:
    """Return the least role that may ask this of a path."""
    first = next((part for part in path.split("/") if part), "")
    if first.casefold() == "admin":
        return "admin"
    is_reading = method in _LOOKING or (method == "POST" and path in _READING_POSTS)
    return "read" if is_reading else "write"
