"""Vectors from any OpenAI-compatible `/embeddings` endpoint; the user's own configuration names it, and nothing else does.

Each call is paid from a purse. Redirects are not followed: texts and a key go to the server that the user named, and to
no other.
"""

from __future__ import annotations

import socket
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recollect.errors import ConfigError, ModelError
from recollect.limits import COUNT_MAX
from recollect.models.keys import key_of
from recollect.models.spending import Purse, Spent
from recollect.waiting import in_a_thread

if TYPE_CHECKING:
    import http.client
    from collections.abc import Sequence

    from recollect.clock import Clock, Ids
    from recollect.distill.embedders import Matrix
    from recollect.models.spending import Bill
    from recollect.settings import EmbeddingUse, Settings
    from recollect.store import Store

WHAT = "embeddings"
_SECONDS_MAX = 60.0
_ANSWER_BYTES_MAX = 256 * 1024 * 1024
_TEXT_CHARS_MAX = 8_000
_SHOWN_CHARS_MAX = 200
_PIECE_BYTES = 65_536


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Row]
    usage: _Usage | None = None


class _UnreachedError(ModelError):
    """There is no server."""


class EndpointEmbedder:
    """A model behind an endpoint."""

    def __init__(self, use: EmbeddingUse, purse: Purse) -> None:
        if use.name is None or use.endpoint is None or use.dimension is None:
            msg = "models.embeddings needs name, endpoint and dimension"
            raise ConfigError(msg)
        self.name = f"{use.name}@{use.dimension}"
        self.dimensions = use.dimension
        self._model = use.name
        self._url = use.endpoint.rstrip("/") + "/embeddings"
        self._batch_size = use.batch_size
        self._key_variable = use.key_variable
        self._purse = purse
        self._opener = _opener(takes_proxy=use.endpoint.startswith("https:"))

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text, asked for in batches; `SpendingError` when the day's tokens do not hold one."""
        parts = [texts[start : start + self._batch_size] for start in range(0, len(texts), self._batch_size)]
        rows = [await self._paid([text[:_TEXT_CHARS_MAX] or " " for text in part]) for part in parts]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    async def _paid(self, texts: list[str]) -> Matrix:
        headers = self._headers()
        async with self._purse.paying("\n".join(texts)) as bill:
            try:
                said = await in_a_thread(lambda: self._asked(texts, headers))
            except _UnreachedError as error:
                bill.unreached()
                raise ModelError(str(error)) from error
            return self._read(said, len(texts), bill)

    def _asked(self, texts: list[str], headers: dict[str, str]) -> bytes:
        body = msgspec.json.encode({"model": self._model, "input": texts})
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310  http or https, checked above
        try:
            with self._opener.open(request, timeout=_SECONDS_MAX) as answer:
                return _in_time(answer)
        except urllib.error.HTTPError as error:
            with error:
                msg = f"{self._url} answered {error.code}: {error.read(_SHOWN_CHARS_MAX).decode(errors='replace')!r}"
            raise ModelError(msg) from error
        except OSError as error:
            msg = f"{self._url} cannot be reached: {error}"
            is_unreached = isinstance(getattr(error, "reason", None), (ConnectionRefusedError, socket.gaierror))
            raise (_UnreachedError if is_unreached else ModelError)(msg) from error
        except (HTTPException, ValueError) as error:
            msg = f"{self._url} does not answer as a server of HTTP does: {type(error).__name__}"
            raise ModelError(msg) from error

    def _headers(self) -> dict[str, str]:
        key = key_of(self._key_variable, WHAT)
        return {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def _read(self, said: bytes, count: int, bill: Bill) -> Matrix:
        try:
            answer = msgspec.json.decode(said, type=_Answer)
            found = sorted(answer.data, key=lambda row: row.index)
            rows = np.array([row.embedding for row in found], np.float32)
        except (msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:
            msg = f"{self._url} gave no vectors that can be read: {error}"
            raise ModelError(msg) from error
        if answer.usage is not None and (answer.usage.prompt_tokens or 0) > 0:  # a server that counts nothing is billed by estimate
            bill.spent = Spent(min(answer.usage.prompt_tokens or 0, COUNT_MAX), 0)
        if rows.shape != (count, self.dimensions) or not np.isfinite(rows).all():
            msg = f"{self._url} was asked for {count} vectors of {self.dimensions} numbers and gave {rows.shape}"
            raise ModelError(msg)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.maximum(lengths, 1e-12)).astype(np.float32)


def _in_time(answer: http.client.HTTPResponse) -> bytes:
    """Read an answer that may be long but not endless, nor for ever on its way."""
    late = time.monotonic() + _SECONDS_MAX
    said = bytearray()
    while piece := answer.read1(_PIECE_BYTES):
        said += piece
        if time.monotonic() > late:
            msg = f"the answer took longer than {_SECONDS_MAX:g} s"
            raise TimeoutError(msg)
        if len(said) > _ANSWER_BYTES_MAX:
            msg = f"the answer is longer than {_ANSWER_BYTES_MAX:,} bytes"
            raise OSError(msg)
    return bytes(said)


def _opener(*, takes_proxy: bool) -> urllib.request.OpenerDirector:
    """Return what asks and takes a redirect for the error that it is here; the library's own opener follows it.

    A proxy of the environment is used where it sees nothing of what is said, a key least of all.
    """
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(None if takes_proxy else {}),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    return opener


def configured_embedder(settings: Settings, store: Store, clock: Clock, ids: Ids) -> EndpointEmbedder:
    """Return the embedder that `models.embeddings` names."""
    use = settings.models.embeddings
    return EndpointEmbedder(use, Purse(store, settings.workspace, WHAT, use, clock, ids))
