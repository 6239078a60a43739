"""A streamed answer that ends before its end: told as the broken connection it is, since the clients take it for whole.

Each protocol says when a stream is over: OpenAI's by a `finish_reason` or, where a server gives none, by `[DONE]`;
Anthropic's by `message_stop`; Google's by a `finishReason`. A quote inside of a text is escaped there, so the words of an
answer cannot say it.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator

import httpx2

_ENDS = {
    "anthropic": re.compile(rb'"type"\s*:\s*"(?:message_stop|error)"'),
    "google": re.compile(rb'"(?:finishReason|blockReason)"\s*:\s*"|"error"\s*:'),
    "openai": re.compile(rb'[\r\n]data:\s*\[DONE\]|"finish_reason"\s*:\s*"|"error"\s*:\s*[{"]'),
}
_END_BYTES_MAX = 64  # the longest of these, with the spaces that anybody puts into it


class EndsWhole:
    """A hook of a client: has each streamed answer of a provider fail where it breaks off."""

    def __init__(self, provider: str) -> None:
        self._end = _ENDS[provider]

    async def __call__(self, response: httpx2.Response) -> None:
        """Watch an answer that is streamed."""
        is_stream = response.headers.get("content-type", "").startswith("text/event-stream")
        is_plain = response.headers.get("content-encoding", "identity") == "identity"  # of packed bytes nothing can be known
        if is_stream and is_plain and response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
            response.stream = _Watched(response.stream, self._end)


class _Watched(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, end: re.Pattern[bytes]) -> None:
        self._stream = stream
        self._end = end

    async def __aiter__(self) -> AsyncGenerator[bytes]:
        rest, has_ended = b"\n", False  # what comes first begins a line
        pieces = aiter(self._stream)
        try:
            async for piece in pieces:
                if not has_ended:
                    rest += piece
                    has_ended = self._end.search(rest) is not None
                    rest = rest[-_END_BYTES_MAX:]
                yield piece
        finally:
            if isinstance(pieces, AsyncGenerator):
                await pieces.aclose()
        if not has_ended:
            msg = "the stream ended before the answer did"
            raise httpx2.RemoteProtocolError(msg)

    async def aclose(self) -> None:
        await self._stream.aclose()
