"""The examples of the OpenAPI document, and how raw bodies are described in it."""

from __future__ import annotations

import json
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
_REPLACE = "true: what this piece brings takes the place of everything of its kind that was sent before"
_REMOVE = "what goes, by the ids it was sent under; a message also by its sequence"
_FIELDS: dict[str, dict[str, dict[str, Any]]] = {  # what a body says beside what it brings
    "replace": {"replace": {"type": "boolean", "description": _REPLACE}},
    "remove": {"remove": {"type": "array", "items": {"type": ["string", "integer"]}, "description": _REMOVE}},
    "truncate": {"truncate_from": {"type": "integer", "description": "messages of this sequence and of later ones go"}},
}
_CALL = {"id": "t1", "name": "update_textdoc", "arguments": {"path": "src/auth.py"}, "message_sequence": 1}
_RESULT = {"tool_call_id": "t1", "content": "done", "success": True, "duration_ms": 41}
_ANSWER = {"role": "assistant", "content": "I added a null check and a test", "sequence": 1}

PIECES: dict[str, dict[str, dict[str, Any]]] = {  # by what is done; the last of each leaves a request as the first did, or better
    "context": {
        "add": {"context_files": PAYLOAD["context_files"]},
        "replace": {"replace": True, "context_files": PAYLOAD["context_files"]},
    },
    "messages": {
        "add": {"messages": PAYLOAD["messages"]},
        "remove": {"remove": [1]},
        "replace": {"replace": True, "messages": PAYLOAD["messages"]},
        "truncate": {"truncate_from": 1, "messages": [_ANSWER]},
    },
    "model-response": {"add": {"model": "m", "finish_reason": "stop", "usage": {"prompt_tokens": 900, "completion_tokens": 80}}},
    "tool-calls": {
        "add": {"tool_calls": [_CALL]},
        "remove": {"remove": ["t1"]},
        "replace": {"replace": True, "tool_calls": [_CALL]},
    },
    "tool-results": {
        "add": {"tool_results": [_RESULT]},
        "remove": {"remove": ["t1"]},
        "replace": {"replace": True, "tool_results": [_RESULT]},
    },
    "code-changes": {
        "add": {"code_changes": [{**PAYLOAD["code_changes"][0], "diff_chunk_id": "d1"}]},
        "remove": {"remove": ["d1"]},
        "replace": {"replace": True, "code_changes": PAYLOAD["code_changes"]},
    },
    "checkpoints": {
        "add": {"checkpoints": PAYLOAD["checkpoints"]},
        "remove": {"remove": ["k1"]},
        "replace": {"replace": True, "checkpoints": PAYLOAD["checkpoints"]},
    },
}


def raw_body(example: dict[str, Any], *, lines_type: str | None = None) -> dict[str, Any]:
    """Describe a body that is read with tolerance: any JSON object; or a type of JSON lines, each of them such a body."""
    content: dict[str, Any] = {"application/json": {"schema": {"type": "object"}, "example": example}}
    if lines_type is not None:
        least = {"project_id": "shop", "chat_meta": {"chat_id": "c1"}}
        lines = [{"request_id": f"req_{n}", **least, "messages": [{"role": "user", "content": f"question {n}"}]} for n in (7, 8)]
        said = {"type": "string", "description": "one payload a line; `jsonl` and `jsonlines` are known, too, with and without `x-`"}
        content[lines_type] = {"schema": said, "example": "".join(json.dumps(line) + "\n" for line in lines)}
    return {"requestBody": {"required": True, "content": content}}


def piece_body(piece: str) -> dict[str, Any]:
    """Describe the body of a piece: what it brings under its name, and what it says beside that."""
    bodies = PIECES[piece]
    brought = {name: {"type": "array", "items": {"type": "object"}} for name, value in bodies["add"].items() if isinstance(value, list)}
    properties = brought | {name: schema for done in bodies for name, schema in _FIELDS.get(done, {}).items()}
    examples = {done: {"summary": done, "value": body} for done, body in bodies.items()}
    content = {"application/json": {"schema": {"type": "object", "properties": properties}, "examples": examples}}
    return {"requestBody": {"required": True, "content": content}}
