"""What a model of pydantic-ai says and is answered → messages as a turn takes them; a context → what a turn keeps of it; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelRequest,
    RetryFeedbackPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

from recollect.models.plain import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pydantic_ai.messages import ModelResponse

    from recollect.compose.context import Context

_FAILED = frozenset({"failed", "retried", "denied", "interrupted"})
_SOURCE = "memory"


def prompt_text(prompt: object) -> str:
    """Return what a user said; pictures and the like are named, not kept."""
    if isinstance(prompt, str):
        return prompt
    parts: Sequence[Any] = prompt if isinstance(prompt, list | tuple) else []
    return "\n".join(text for part in parts if (text := _part_text(part)))


def _part_text(part: object) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, BinaryContent):
        return f"[{part.media_type}]"
    if isinstance(part, ImageUrl):
        return f"[image: {part.url[:200]}]" if not part.url.startswith("data:") else "[image]"
    content = getattr(part, "content", None)
    return content if isinstance(content, str) else f"[{type(part).__name__}]"


def answer_message(response: ModelResponse) -> dict[str, Any]:
    """Return a response of a model as a message: its words, its reasoning, the calls it asks for, and what it took."""
    texts = [part.content for part in response.parts if isinstance(part, TextPart)]
    thoughts = [part.content for part in response.parts if isinstance(part, ThinkingPart)]
    calls = [
        {"id": part.tool_call_id, "name": part.tool_name, "arguments": part.args}
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    usage = response.usage
    return {
        "role": "assistant",
        "content": "\n".join(text for text in texts if text),
        "reasoning": "\n".join(text for text in thoughts if text) or None,
        "tool_calls": calls,
        "usage": {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens},
        "model": response.model_name,
        "finish_reason": _finish_reason(response),
    }


def _finish_reason(response: ModelResponse) -> str | None:
    """Return why a model stopped as its server said it: where a server of OpenAI's protocol says nothing, pydantic-ai says `stop`."""
    is_unsaid = response.provider_name == "openai" and "finish_reason" not in (response.provider_details or {})
    return None if is_unsaid and response.finish_reason == "stop" else response.finish_reason


def result_messages(request: ModelRequest, durations_ms: Mapping[str, float]) -> list[dict[str, Any]]:
    """Return what tools brought back as messages; one that failed, or was not there, or was called wrongly, is told as failed."""
    return [
        {
            "role": "tool",
            "tool_call_id": part.tool_call_id,
            "name": part.tool_name,
            "content": result_text(part),
            "tool_failed": part.outcome in _FAILED,
            "duration_ms": durations_ms.get(part.tool_call_id),
        }
        for part in request.parts
        if isinstance(part, ToolReturnPart)
    ]


def outcome_message(call: ToolCallPart, took_ms: float, result: Any, is_failed: bool) -> dict[str, Any]:  # noqa: FBT001  as it comes
    """Return what came of a tool as a message, for a run that ends before the model is told."""
    told = plain_text(str(result) if is_failed else result)
    about = {"tool_call_id": call.tool_call_id, "name": call.tool_name, "duration_ms": took_ms}
    return {"role": "tool", **about, "content": told, "tool_failed": is_failed}


def result_text(part: ToolReturnPart | RetryFeedbackPart) -> str:
    """Return what the model reads of a tool's result."""
    if isinstance(part, ToolReturnPart):
        return part.model_response_str()
    return plain_text(part.content)


def context_message(context: Context) -> dict[str, Any] | None:
    """Return the code that a context shows as a message that gives files, with how relevant each was; None when it shows none."""
    files = [
        {
            "file_name": item.file_path, "line1": item.line_start, "line2": item.line_end, "source": _SOURCE,
            "usefulness": None if item.score is None else min(max(item.score, 0.0), 1.0),
        }
        for item in context.items
        if item.kind == "scope" and item.file_path is not None
    ]  # fmt: skip
    return {"role": "context_file", "content": files} if files else None


def related_to(context: Context) -> list[str]:
    """Return what a context was made of, as references that a turn keeps: the turns, summaries, messages and symbols in it."""
    return list(dict.fromkeys(f"{item.kind}:{item.id}" for item in context.items if item.kind != "file"))
