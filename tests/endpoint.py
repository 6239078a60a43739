"""Scripted models behind real HTTP servers on loopback, each with the protocol of its provider."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Line = str | bytes | int | float
"""What is answered: a text; a body as it is; the status of an error; or a text after so many seconds."""


class Endpoint:
    """OpenAI's chat completions. Says its lines one after the other, and the last one again; `asked` holds what it was sent."""

    path = "/v1"

    def __init__(self, *lines: Line, location: str | None = None) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self._lines = list(lines)
        self._location = location
        self._released = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{self.path}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, line: str, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the body of an answer; the tokens in are a quarter of the characters sent, the tokens out the words said."""
        sent = sum(len(str(message.get("content"))) for message in asked["messages"]) // 4
        return {
            "id": "scripted", "object": "chat.completion", "created": int(time.time()), "model": asked["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": line}}],
            "usage": {"prompt_tokens": sent, "completion_tokens": len(line.split()), "total_tokens": sent + len(line.split())},
        }  # fmt: skip

    def error(self, status: int) -> dict[str, Any]:
        """Return the body of an error."""
        return {"error": {"message": f"scripted {status}", "type": "scripted"}}

    def streamed(self, line: str) -> bytes | None:
        """Return all events of an answer that is streamed, where this server can."""
        del line
        return None

    def _next(self) -> Line:
        return self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                endpoint.headers.append({name.lower(): value for name, value in self.headers.items()})
                endpoint.paths.append(self.path)
                line = endpoint._next()
                if isinstance(line, float):
                    endpoint._released.wait(line)
                    line = "late"
                status = line if isinstance(line, int) else 200
                wants_stream = endpoint.asked[-1].get("stream") or "stream" in self.path
                if wants_stream and isinstance(line, str) and (events := endpoint.streamed(line)) is not None:
                    self._say(status, events, "text/event-stream")
                else:
                    self._say(status, line if isinstance(line, bytes) else self._body(line))

            def do_GET(self) -> None:
                endpoint.asked.append({})  # only a redirect that was followed comes here
                self._say(404, b"{}")

            def _body(self, line: str | int) -> bytes:
                said = endpoint.error(line) if isinstance(line, int) else endpoint.answer(line, endpoint.asked[-1])
                return json.dumps(said).encode()

            def _say(self, status: int, body: bytes, kind: str = "application/json") -> None:
                try:
                    self.send_response(status)
                    if endpoint._location is not None:
                        self.send_header("Location", endpoint._location)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)
                except OSError:
                    return  # whoever asked has gone

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the name it has in the library
                pass

        return Handler


class StreamingEndpoint(Endpoint):
    """OpenAI's chat completions as they are streamed: a line is the words of an answer, and how it ends.

    `stop` gives a reason and `[DONE]`, `done` `[DONE]` alone, `cut` nothing: the connection closes as if all were said.
    """

    def __init__(self, *lines: str, end: str = "stop", thought: str = "") -> None:
        super().__init__(*lines)
        self._end = end
        self._thought = thought

    def streamed(self, line: str) -> bytes:
        """Return all events of an answer."""
        deltas = [{"role": "assistant", "reasoning_content": self._thought}] if self._thought else []
        deltas += [{"role": "assistant", "content": f"{word} "} for word in line.split()]
        chunks = [self._chunk(delta, None) for delta in deltas] + ([self._chunk({}, "stop")] if self._end == "stop" else [])
        events = [json.dumps(chunk) for chunk in chunks] + (["[DONE]"] if self._end != "cut" else [])
        return "".join(f"data: {event}\n\n" for event in events).encode()

    def _chunk(self, delta: dict[str, Any], reason: str | None) -> dict[str, Any]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason}
        return {"id": "scripted", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}


class EmbeddingEndpoint(Endpoint):
    """OpenAI's embeddings: three numbers a text, the rows in reverse; each word of a text is a token."""

    def __init__(self, *lines: Line, location: str | None = None) -> None:
        super().__init__(*(lines or ("",)), location=location)

    @property
    def texts(self) -> list[str]:
        """Every text it was sent."""
        return [text for asked in self.asked for text in asked.get("input", ())]

    def answer(self, line: str, asked: dict[str, Any]) -> dict[str, Any]:
        assert line == ""
        rows = [{"index": n, "embedding": [float(len(text)), 1.0, 2.0]} for n, text in enumerate(asked["input"])]
        words = sum(len(text.split()) for text in asked["input"])
        return {"data": rows[::-1], "model": asked["model"], "usage": {"prompt_tokens": words, "total_tokens": words}}


class AnthropicEndpoint(Endpoint):
    """Anthropic's messages."""

    path = ""

    def answer(self, line: str, asked: dict[str, Any]) -> dict[str, Any]:
        sent = len(json.dumps([asked.get("system"), asked["messages"]])) // 4
        return {
            "id": "msg_scripted", "type": "message", "role": "assistant", "model": asked["model"], "stop_reason": "end_turn",
            "stop_sequence": None, "content": [{"type": "text", "text": line}],
            "usage": {"input_tokens": sent, "output_tokens": len(line.split())},
        }  # fmt: skip

    def error(self, status: int) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "api_error", "message": f"scripted {status}"}}


class GoogleEndpoint(Endpoint):
    """Google's generateContent."""

    path = ""

    def answer(self, line: str, asked: dict[str, Any]) -> dict[str, Any]:
        sent, said = len(json.dumps([asked.get("systemInstruction"), asked["contents"]])) // 4, len(line.split())
        return {
            "candidates": [{"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [{"text": line}]}}],
            "usageMetadata": {"promptTokenCount": sent, "candidatesTokenCount": said, "totalTokenCount": sent + said},
            "modelVersion": "scripted", "responseId": "scripted",
        }  # fmt: skip

    def error(self, status: int) -> dict[str, Any]:
        return {"error": {"code": status, "message": f"scripted {status}", "status": "UNAVAILABLE"}}


class AnthropicStream(AnthropicEndpoint):
    """Anthropic's messages as they are streamed, to the end or not."""

    is_cut = False

    def streamed(self, line: str) -> bytes:
        """Return all events of an answer."""
        usage = {"input_tokens": 5, "output_tokens": 1}
        message = {
            "id": "m",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [],
            "stop_reason": None,
            "usage": usage,
        }
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": line}},
        ]
        if not self.is_cut:
            events += [
                {"type": "content_block_stop", "index": 0},
                {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 4}},
                {"type": "message_stop"},
            ]
        return "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events).encode()


class GoogleStream(GoogleEndpoint):
    """Google's streamGenerateContent, to the end or not."""

    is_cut = False

    def streamed(self, line: str) -> bytes:
        """Return all events of an answer."""
        content = {"role": "model", "parts": [{"text": line}]}
        candidates: list[dict[str, Any]] = [{"index": 0, "content": content}]
        if not self.is_cut:
            candidates.append({"index": 0, "content": {"role": "model", "parts": [{"text": ""}]}, "finishReason": "STOP"})
        events = [{"candidates": [one], "modelVersion": "scripted", "responseId": "scripted"} for one in candidates]
        return "".join(f"data: {json.dumps(event)}\r\n\r\n" for event in events).encode()
