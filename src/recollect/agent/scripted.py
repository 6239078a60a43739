"""Models that need no provider: one that says what it was told to, and one that answers from memory alone; for tests and first steps."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ThinkingPart, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel

from recollect.fence import cut_fences
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo

    Call = tuple[str, dict[str, Any]]
    Line = str | Exception | Call | list[Call | str] | Callable[[list[ModelMessage]], Any]

_STREAMED_CHARS = 8
_HITS_TOLD_MAX = 3
_ANSWER_CHARS_MAX = 400
_FOUND, _NOTHING = "From memory:", "I remember nothing about that yet."  # what it said itself is no memory worth telling


class ScriptedAgentModel(FunctionModel):
    """A model that plays its lines one after the other, and the last one again; `asked` holds what it was sent.

    A line is an answer, a tool call (its name and arguments), a list of both (text that begins with "thinking: " is
    reasoning), an error to be raised, or a function of the messages that returns one of these.
    """

    def __init__(self, *lines: Line, name: str = "scripted") -> None:
        super().__init__(self._respond, stream_function=self._stream, model_name=name)
        self.asked: list[list[ModelMessage]] = []
        self.tools: list[list[str]] = []
        self._lines: list[Line] = list(lines) or ["As scripted."]
        self._calls = 0

    async def _respond(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.asked.append(messages)
        self.tools.append([tool.name for tool in info.function_tools])
        line: Any = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if callable(line) and not isinstance(line, Exception):
            line = line(messages)
            line = await line if hasattr(line, "__await__") else line
        if isinstance(line, Exception):
            raise line
        parts: list[Any] = line if isinstance(line, list) else [line]
        return ModelResponse(parts=[self._part(part) for part in parts], model_name=self.model_name)

    def _part(self, part: Any) -> TextPart | ThinkingPart | ToolCallPart:
        if isinstance(part, str):
            return ThinkingPart(part.removeprefix("thinking: ")) if part.startswith("thinking: ") else TextPart(part)
        self._calls += 1
        return ToolCallPart(part[0], part[1], f"call_{self._calls}")

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncGenerator[Any]:
        response = await self._respond(messages, info)
        for n, part in enumerate(response.parts):
            if isinstance(part, ToolCallPart):
                yield {n: DeltaToolCall(name=part.tool_name, json_args=json.dumps(part.args), tool_call_id=part.tool_call_id)}
            elif isinstance(part, ThinkingPart):
                yield {n: DeltaThinkingPart(content=part.content)}
            elif isinstance(part, TextPart):
                for start in range(0, len(part.content), _STREAMED_CHARS):
                    yield part.content[start : start + _STREAMED_CHARS]


def recalling_model() -> ScriptedAgentModel:
    """Return a model that looks the question up in memory and tells what was said there; it makes nothing up, and costs nothing."""
    return ScriptedAgentModel(_recalled, name="recalling")


def _recalled(messages: list[ModelMessage]) -> Line:
    last = messages[-1]
    returned = [part for part in last.parts if isinstance(part, ToolReturnPart)] if isinstance(last, ModelRequest) else []
    if not returned:
        return [("search_memory", {"query": _question(messages)})]
    content: Any = returned[-1].content
    hits: list[dict[str, Any]] = content.get("hits", []) if isinstance(content, dict) else []
    told = [text for hit in hits if (text := _hit(hit))][:_HITS_TOLD_MAX]
    return _FOUND + "\n" + "\n".join(told) if told else _NOTHING


def _hit(hit: dict[str, Any]) -> str:
    """Return what was answered, or what was said where only this model answered; nothing of questions and of its own words."""
    said = "" if hit["answer"].startswith((_FOUND, _NOTHING)) else hit["answer"]
    said = said or ("" if hit["question"].rstrip().endswith("?") else hit["question"])
    if not said:
        return ""
    where = hit["title"] or hit["conversation"][:8]
    return f"- {shorten(said, _ANSWER_CHARS_MAX)} ({where})"


def _question(messages: list[ModelMessage]) -> str:
    prompts = [part.content for message in messages for part in message.parts if isinstance(part, UserPromptPart)]
    texts = [cut_fences(one)[0].strip() for one in prompts if isinstance(one, str)]
    return next((text for text in reversed(texts) if text), "")
