"""Vectors from any OpenAI-compatible `/embeddings` endpoint; the user's own configuration names it, and nothing else does."""

from __future__ import annotations

import asyncio
import os
import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recollect.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.config import Embeddings
    from recollect.distill.embedders import Matrix

_SECONDS_MAX = 60.0
_ANSWER_BYTES_MAX = 256 * 1024 * 1024
_TEXT_CHARS_MAX = 8_000
_SHOWN_CHARS_MAX = 200


class _Row(msgspec.Struct):
    embedding: list[float]
    index: int


class _Answer(msgspec.Struct):
    data: list[_Row]


class EndpointEmbedder:
    """A model behind an endpoint."""

    def __init__(self, settings: Embeddings) -> None:
        if settings.endpoint is None or settings.model is None or settings.dimension is None:
            msg = "agent.memory.embeddings.endpoint needs model and dimension beside it"
            raise ConfigError(msg)
        if not settings.endpoint.startswith(("http://", "https://")):
            msg = f"agent.memory.embeddings.endpoint is an address of a server, not {settings.endpoint!r}: http://localhost:11434/v1"
            raise ConfigError(msg)
        self.name = f"{settings.model}@{settings.dimension}"
        self.dimensions = settings.dimension
        self._model = settings.model
        self._url = settings.endpoint.rstrip("/") + "/embeddings"
        self._batch_size = settings.batch_size
        self._key_variable = settings.key_variable

    async def embed(self, texts: Sequence[str]) -> Matrix:
        """Return one row a text, asked for in batches."""
        parts = [texts[start : start + self._batch_size] for start in range(0, len(texts), self._batch_size)]
        rows = [await asyncio.to_thread(self._asked, part) for part in parts]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def _asked(self, texts: Sequence[str]) -> Matrix:
        body = msgspec.json.encode({"model": self._model, "input": [text[:_TEXT_CHARS_MAX] or " " for text in texts]})
        request = urllib.request.Request(self._url, body, self._headers())  # noqa: S310  http or https, checked above
        try:
            with urllib.request.urlopen(request, timeout=_SECONDS_MAX) as answer:  # noqa: S310  as above
                said = answer.read(_ANSWER_BYTES_MAX)
        except urllib.error.HTTPError as error:
            msg = f"{self._url} answered {error.code}: {error.read(_SHOWN_CHARS_MAX).decode(errors='replace')!r}"
            raise ModelError(msg) from error
        except OSError as error:
            msg = f"{self._url} cannot be reached: {error}"
            raise ModelError(msg) from error
        return self._read(said, len(texts))

    def _headers(self) -> dict[str, str]:
        key = os.environ.get(self._key_variable) if self._key_variable else None
        if self._key_variable and not key:
            msg = f"{self._key_variable} is to hold the key of {self._url}, and is not set"
            raise ModelError(msg)
        return {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}

    def _read(self, said: bytes, count: int) -> Matrix:
        try:
            found = sorted(msgspec.json.decode(said, type=_Answer).data, key=lambda row: row.index)
            rows = np.array([row.embedding for row in found], np.float32)
        except (msgspec.DecodeError, msgspec.ValidationError, ValueError) as error:
            msg = f"{self._url} gave no vectors that can be read: {error}"
            raise ModelError(msg) from error
        if rows.shape != (count, self.dimensions) or not np.isfinite(rows).all():
            msg = f"{self._url} was asked for {count} vectors of {self.dimensions} numbers and gave {rows.shape}"
            raise ModelError(msg)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / np.maximum(lengths, 1e-12)).astype(np.float32)
