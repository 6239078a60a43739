"""The client: options, the requests that an engine records, and the few questions it asks."""

from __future__ import annotations

import os
import random
import time
from typing import TYPE_CHECKING, Self
from urllib.parse import quote, urlencode
from uuid import uuid4

from .delivery import Delivery
from .recording import Request
from .server import ClientError, Server

if TYPE_CHECKING:
    from collections.abc import Callable

    from .lane import Undelivered
    from .plain import Json


class Client:
    """A way to a Recollect server; threads may share it, and a forked child may go on using it.

    In the background (the default) recording only queues, and never waits: when the queue is full the newest piece is dropped and
    counted in `dropped`. With `background=False` a piece is sent before the call returns; with `raises=True` also, and what could
    not be delivered raises `ClientError`. `on_error` is told each such error in the thread that met it. Connection errors and the
    answers 408, 429, 500, 502, 503 and 504 are tried again, `attempts_max` attempts in all. The token comes from the
    environment's `token_variable` unless it is given. Leave with `close`: a process that ends without it loses what is queued.

    With `summaries_only` content stays in the process: a message is sent as its first 200 characters on one line and its hash,
    arguments as their hash, a result as its hash and size; reasoning, errors and diffs are not sent; names, paths and `chat_meta`
    are. Nothing but this truncation is applied: a secret in the first 200 characters is sent, and left to the server to redact.
    """

    def __init__(  # noqa: PLR0913  the options of a client, each with a default
        self,
        url: str = "http://127.0.0.1:8722",
        token: str | None = None,
        *,
        token_variable: str = "RECOLLECT_TOKEN",  # noqa: S107  the name of a variable, not a secret
        raises: bool = False,
        timeout_seconds: float = 5.0,
        attempts_max: int = 4,
        queue_max: int = 1_000,
        background: bool = True,
        summaries_only: bool = False,
        on_error: Callable[[ClientError], object] | None = None,
        sleep: Callable[[float], object] = time.sleep,
        random: Callable[[], float] = random.random,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        """Raise ValueError for a url or a token that cannot be used."""
        token = os.environ.get(token_variable, "") if token is None else token
        self._delivery = Delivery(
            Server(url, token, timeout_seconds=timeout_seconds, attempts_max=attempts_max),
            raises=raises,
            background=background,
            queue_max=queue_max,
            on_error=on_error,
            sleep=sleep,
            random=random,
        )
        self._summaries_only = summaries_only
        self._monotonic = monotonic

    @property
    def dropped(self) -> int:
        """How many pieces were not even queued."""
        return self._delivery.lane.dropped

    @property
    def failed(self) -> list[Undelivered]:
        """The last 1,000 pieces that could not be delivered, dropped ones too, oldest first: ids and reasons, never content."""
        return self._delivery.lane.failed

    def request(
        self,
        request_id: str | None = None,
        *,
        project_id: str,
        chat_id: str | None = None,
        mode: str | None = None,
        live: bool = False,
        summaries_only: bool | None = None,
        **chat_meta: object,
    ) -> Request:
        """Begin a request: collected and sent once when it ends, or, with `live`, sent piece by piece as it happens."""
        meta = {"chat_id": chat_id, "chat_mode": mode, **chat_meta}
        return Request(
            self._delivery,
            request_id or f"req_{uuid4().hex}",
            project_id,
            {name: value for name, value in meta.items() if value is not None},
            live=live,
            summaries_only=self._summaries_only if summaries_only is None else summaries_only,
            monotonic=self._monotonic,
        )

    def search(self, query: str, **filters: object) -> Json:
        """Return the ranked hits for a query; waits for the answer, and raises ClientError."""
        return self._delivery.ask("POST", "/search", {"query": query, **filters})

    def context_for(self, prompt: str, **options: object) -> Json:
        """Return the context composed for a prompt; waits for the answer, and raises ClientError."""
        return self._delivery.ask("POST", "/context", {"prompt": prompt, **options})

    def why(self, project_id: str, path: str, line: int | None = None) -> Json:
        """Return what led to a file, or to one of its lines; waits for the answer, and raises ClientError."""
        place = {"path": path} if line is None else {"path": path, "line": line}
        return self._delivery.ask("GET", f"/projects/{quote(project_id, safe='')}/why?{urlencode(place)}")

    def flush(self, timeout_seconds: float = 5.0) -> bool:
        """Wait until all that is queued was delivered or given up; False when that took too long."""
        return self._delivery.lane.flush(timeout_seconds)

    def close(self, timeout_seconds: float = 5.0) -> None:
        """Deliver what is queued, give up what is left after the timeout, and drop whatever is recorded later."""
        self._delivery.close(timeout_seconds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
