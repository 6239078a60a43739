"""Vectors from any OpenAI-compatible `/embeddings` endpoint; the user's own configuration names it, and nothing else does.

Each call is paid from a purse. Redirects are not followed: texts and a key go to the server that the user named, and to
no other.
"""

from __future__ import annotations

import asyncio
import os
import socket
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recollect.errors import ConfigError, ModelError
from recollect.models.spending import Purse, Spent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.clock import Clock, Ids
    from recollect.config import EmbeddingUse, Settings
    from recollect.distill.embedders import Matrix
    from recollect.models.spending import Bill
    from recollect.store import Store

WHAT = "embeddings"
_SECONDS_MAX = 60.0
_ANSWER_BYTES_MAX = 256 * 1024 * 1024
_TEXT_CHARS_MAX = 8_000
_SHOWN_CHARS_MAX = 200
_NOTHING = Spent(0, 0)


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None


class _Answer(msgspec.Struct):
    data: list[_Row]
    usage: _Usage | None = None


class EndpointEmbedder:
    """A model behind an endpoint."""

    def __init__(self, use: EmbeddingUse, purse: Purse) -> None:
        if use.name is None or use.endpoint is None or use.dimension is None:
            msg = "models.embeddings needs name, endpoint and dimension"
            raise ConfigError(msg)
        if not use.endpoint.startswith(("http://", "https://")):
            msg = f"models.embeddings.endpoint is an address of a server, not {use.endpoint!r}: http://localhost:11434/v1"
            raise ConfigError(msg)
        self.name = f"{use.name}@{use.dimension}"
        self.dimensions = use.dimension
        self._model = use.name
        self._url = use.endpoint.rstrip("/") + "/embeddings"
        self._batch_size = use.batch_size
        self._key_variable = use.key_variable
        self._purse = purse
        self._opener = _opener()

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text, asked for in batches; `SpendingError` when the day's tokens do not hold one."""
        parts = [texts[start : start + self._batch_size] for start in range(0, len(texts), self._batch_size)]
        rows = [await self._paid([text[:_TEXT_CHARS_MAX] or " " for text in part]) for part in parts]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    async def _paid(self, texts: list[str]) -> Matrix:
        headers = self._headers()
        async with self._purse.paying("\n".join(texts)) as bill:
            return await asyncio.to_thread(self._asked, texts, headers, bill)

    def _asked(self, texts: list[str], headers: dict[str, str], bill: Bill) -> Matrix:
        body = msgspec.json.encode({"model": self._model, "input": texts})
        request = urllib.request.Request(self._url, body, headers)  # noqa: S310  http or https, checked above
        try:
            with self._opener.open(request, timeout=_SECONDS_MAX) as answer:
                said = answer.read(_ANSWER_BYTES_MAX)
        except urllib.error.HTTPError as error:
            with error:
                msg = f"{self._url} answered {error.code}: {error.read(_SHOWN_CHARS_MAX).decode(errors='replace')!r}"
            raise ModelError(msg) from error
        except OSError as error:
            if isinstance(getattr(error, "reason", None), (ConnectionRefusedError, socket.gaierror)):
                bill.spent = _NOTHING  # nobody was there to be paid
            msg = f"{self._url} cannot be reached: {error}"
            raise ModelError(msg) from error
        return self._read(said, len(texts), bill)

    def _headers(self) -> dict[str, str]:
        key = os.environ.get(self._key_variable) if self._key_variable else None
        if self._key_variable and not key:
            msg = f"{self._key_variable} is to hold the key of {self._url}, and is not set"
            raise ModelError(msg)
        return {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def _read(self, said: bytes, count: int, bill: Bill) -> Matrix:
        try:
            answer = msgspec.json.decode(said, type=_Answer)
            found = sorted(answer.data, key=lambda row: row.index)
            rows = np.array([row.embedding for row in found], np.float32)
        except (msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:
            msg = f"{self._url} gave no vectors that can be read: {error}"
            raise ModelError(msg) from error
        if answer.usage is not None and answer.usage.prompt_tokens is not None:  # a server that counts nothing is billed by estimate
            bill.spent = Spent(max(answer.usage.prompt_tokens, 0), 0)
        if rows.shape != (count, self.dimensions) or not np.isfinite(rows).all():
            msg = f"{self._url} was asked for {count} vectors of {self.dimensions} numbers and gave {rows.shape}"
            raise ModelError(msg)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.maximum(lengths, 1e-12)).astype(np.float32)


def _opener() -> urllib.request.OpenerDirector:
    """Return what asks and takes a redirect for the error that it is here; the library's own opener follows it."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
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
