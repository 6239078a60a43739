"""The conversation that the demo tells: four requests to an agent, as an engine would send them; data, nothing else."""

from __future__ import annotations

from typing import Any

PROJECT = "shop"
CHAT = "tour"


def _request(number: int, minute: int, messages: list[dict[str, Any]], **parts: Any) -> dict[str, Any]:
    return {
        "request_id": f"req_tour_{number}",
        "project_id": PROJECT,
        "timestamp": f"2026-03-02T09:{minute:02}:00Z",
        "title": "Fix login crash",
        "chat_meta": {"chat_id": CHAT, "chat_mode": "AGENT"},
        "messages": messages,
        **parts,
    }


def _call(call_id: str, name: str, **arguments: str) -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


REQUESTS: list[dict[str, Any]] = [
    _request(
        1,
        5,
        [
            {"role": "user", "content": "Login crashes when the session token has expired. Find out why."},
            {"role": "assistant", "content": None, "tool_calls": [_call("t1", "read_file", path="src/auth/auth_service.py")]},
            {"role": "tool", "tool_call_id": "t1", "content": "def login_user(user):\n    return decode(user.token)\n"},
            {
                "role": "assistant",
                "content": "login_user decodes user.token without a check. After expiry the token is None, and decode raises TypeError.",
            },
        ],
        context_files=[
            {"file_path": "src/auth/auth_service.py", "line_start": 1, "line_end": 80, "usefulness": 0.92, "source": "vecdb"},
            {"file_path": "docs/error_handling.md", "usefulness": 0.78, "source": "vecdb"},
        ],
    ),
    _request(
        2,
        12,
        [
            {"role": "user", "content": "Add a null check, and keep the database URL postgres://shop:s3cr3t-pw@db/shop as it is."},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "login_user decodes the token unchecked, and error_handling.md asks for defensive code.",
                "tool_calls": [_call("t2", "update_textdoc", path="src/auth/auth_service.py", replacement="if user.token is None: ...")],
            },
            {"role": "tool", "tool_call_id": "t2", "content": "1 file changed"},
            {"role": "assistant", "content": "An expired session is now sent back to the login page instead of crashing."},
        ],
        context_files=[
            {"file_path": "src/auth/auth_service.py", "line_start": 1, "line_end": 80, "usefulness": 0.94, "source": "vecdb"},
            {"file_path": "docs/error_handling.md", "usefulness": 0.81, "source": "vecdb"},
            {"file_path": "tests/test_auth.py", "usefulness": 0.65, "source": "ast"},
        ],
        tool_calls=[{"tool_call_id": "t2", "tool_name": "update_textdoc", "execution_time_ms": 41}],
        code_changes=[
            {
                "file_path": "src/auth/auth_service.py",
                "function_name": "login_user",
                "line_start": 30,
                "line_end": 34,
                "change_type": "updated",
                "change_summary": "null check for expired tokens",
                "lines_added": 3,
                "lines_removed": 1,
                "tool_call_id": "t2",
            }
        ],
        checkpoints=[{"checkpoint_id": "k1", "git_hash": "ae09f31", "workspace_dir": "/home/ada/shop"}],
    ),
    _request(
        3,
        20,
        [
            {"role": "user", "content": "Run the tests."},
            {"role": "assistant", "content": None, "tool_calls": [_call("t3", "shell", command="pytest tests/test_auth.py")]},
            {
                "role": "tool",
                "tool_call_id": "t3",
                "content": "Error: 1 failed, 11 passed: test_refresh expects a 401",
                "tool_failed": True,
            },
            {"role": "assistant", "content": "test_refresh fails: it expects status 401, and the redirect answers 302."},
        ],
        tool_calls=[{"tool_call_id": "t3", "tool_name": "shell", "execution_time_ms": 2140}],
    ),
    _request(
        4,
        31,
        [
            {"role": "user", "content": "API clients should get the 401, only browsers the redirect."},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    _call("t4", "update_textdoc", path="src/auth/auth_service.py"),
                    _call("t5", "shell", command="pytest tests/test_auth.py"),
                ],
            },
            {"role": "tool", "tool_call_id": "t4", "content": "1 file changed"},
            {"role": "tool", "tool_call_id": "t5", "content": "12 passed"},
            {
                "role": "assistant",
                "content": "Decided by the Accept header: JSON clients get 401, browsers the redirect. All 12 tests pass.",
            },
        ],
        tool_calls=[
            {"tool_call_id": "t4", "tool_name": "update_textdoc", "execution_time_ms": 38},
            {"tool_call_id": "t5", "tool_name": "shell", "execution_time_ms": 1985},
        ],
    ),
]
