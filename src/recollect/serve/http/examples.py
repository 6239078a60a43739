"""The examples of the OpenAPI document, and how raw bodies are described in it."""

from __future__ import annotations

from typing import Any

PAYLOAD: dict[str, Any] = {
    "request_id": "req_1",
    "project_id": "shop",
    "timestamp": "2026-01-02T03:04:05Z",
    "chat_meta": {"chat_id": "c1", "chat_mode": "AGENT"},
    "messages": [
        {"role": "user", "content": "Fix the login bug", "sequence": 0},
        {
            "role": "assistant",
            "content": "I added a null check",
            "sequence": 1,
            "tool_calls": [{"id": "t1", "tool": "update_textdoc", "args_hash": "sha256:…"}],
        },
    ],
    "context_files": [{"file_path": "src/auth.py", "line_start": 1, "line_end": 80, "usefulness": 0.92, "source": "vecdb"}],
    "tool_calls": [{"tool_call_id": "t1", "tool_name": "update_textdoc", "status": "success", "execution_time_ms": 41}],
    "code_changes": [
        {
            "file_path": "src/auth.py",
            "function_name": "login_user",
            "line_start": 30,
            "line_end": 34,
            "lines_added": 3,
            "tool_call_id": "t1",
        }
    ],
    "checkpoints": [{"checkpoint_id": "k1", "git_hash": "ae09"}],
}
START: dict[str, Any] = {"project_id": "shop", "timestamp": "2026-01-02T03:04:05Z", "chat_meta": {"chat_id": "c1"}}
PIECES: dict[str, dict[str, Any]] = {
    "context": {"context_files": PAYLOAD["context_files"]},
    "messages": {"messages": PAYLOAD["messages"]},
    "model-response": {"model": "m", "finish_reason": "stop", "usage": {"prompt_tokens": 900, "completion_tokens": 80}},
    "tool-calls": {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": {"path": "src/auth.py"}, "message_sequence": 1}]},
    "tool-results": {"tool_results": [{"tool_call_id": "t1", "content": "done", "success": True, "duration_ms": 41}]},
    "code-changes": {"code_changes": PAYLOAD["code_changes"]},
    "checkpoints": {"checkpoints": PAYLOAD["checkpoints"]},
}


def raw_body(example: dict[str, Any], *, lines: bool = False) -> dict[str, Any]:
    """Describe a body that is read with tolerance: any JSON object."""
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}, "example": example}}
    if lines:
        content["application/x-ndjson"] = {"schema": {"type": "string", "description": "one payload a line"}}
    return {"requestBody": {"required": True, "content": content}}
