"""What all tests share: a clock and ids they own, a place for files, a reference conversation, and one Neo4j server."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from tools import neo4j_server
from tools.neo4j_server import Server

from recollect.clock import CountedIds, ManualClock
from recollect.settings import Settings
from tests.kit import SOAK, START
from tests.small_model import SmallModel, small_model

if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:  # a run in the background ignores it, and so would every process that tests interrupt
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile(
    "house", deadline=None, max_examples=1_000 if SOAK else 60, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("house")

_ADDRESS = "RECOLLECT_TEST_NEO4J"  # where the server of this run is; set it to use one that is running already
_WITHOUT_SERVER = ("tests/unit", "tests/architecture")
_NEO4J = ("RECOLLECT_NEO4J_USER", "RECOLLECT_NEO4J_PASSWORD", "NEO4J_USERNAME", "NEO4J_PASSWORD")
_server: list[Server] = []


def pytest_configure(config: pytest.Config) -> None:
    """Start the one Neo4j server of a run, beside the first tests, in the process that lives as long as the run."""
    if hasattr(config, "workerinput") or os.environ.get(_ADDRESS):
        return
    if config.args and all(any(part in Path(one).as_posix() for part in _WITHOUT_SERVER) for one in config.args):
        return
    trouble = neo4j_server.missing()
    if trouble is not None:
        if os.environ.get("CI") == "true":
            raise pytest.UsageError(trouble)
        return
    server = Server(Path(tempfile.mkdtemp(prefix="recollect-neo4j-")))
    server.start()
    _server.append(server)
    os.environ[_ADDRESS] = server.url


def pytest_unconfigure() -> None:
    """Stop the server and remove its folder."""
    while _server:
        server = _server.pop()
        server.kill()
        shutil.rmtree(server.folder, ignore_errors=True)


@pytest.fixture(scope="session")
def neo4j_url() -> str:
    """Return the address of a real server that answers."""
    url = os.environ.get(_ADDRESS)
    if url is None:
        pytest.skip(neo4j_server.missing() or "the Neo4j server was not started for these tests")
    neo4j_server.wait(int(url.rpartition(":")[2]))
    return url


@pytest.fixture(scope="session")
def real_model() -> Generator[SmallModel]:
    """Serve a small real model for the tests of this process that ask one; it is slow, so ask for few tokens."""
    with small_model() as served:
        yield served


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(START)


@pytest.fixture
def ids() -> CountedIds:
    return CountedIds()


@pytest.fixture(autouse=True)
def own_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep every test away from the user's own memory and configuration."""
    for name in ("RECOLLECT_STORE", "RECOLLECT_WORKSPACE", "RECOLLECT_CONFIG", *_NEO4J):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("RECOLLECT_WORKER", "off")  # a test that wants a worker says so
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


@pytest.fixture
def plain_settings() -> Settings:
    return Settings(store="unused")


@pytest.fixture
def everything() -> dict[str, Any]:
    """One request with every part a turn can have."""
    return {
        "request_id": "req_1",
        "project_id": "shop",
        "timestamp": "2026-03-02T09:00:00Z",
        "chat_meta": {"chat_id": "c1", "base_chat_id": "b0", "request_attempt_id": "a1", "chat_mode": "AGENT"},
        "messages": [
            {"role": "system", "content": "You are helpful."},
            {"role": "user", "content": "Fix the login bug"},
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "auth.py reads the token unchecked",
                "tool_calls": [
                    {"id": "t1", "type": "function", "function": {"name": "cat", "arguments": '{"paths": "src/auth.py:10-40,README.md"}'}},
                    {"id": "t2", "type": "function", "function": {"name": "update_textdoc", "arguments": '{"path": "src/auth.py"}'}},
                ],
            },
            {"role": "tool", "tool_call_id": "t2", "content": "1 file changed"},
            {"role": "tool", "tool_call_id": "t1", "content": "Error: README.md not found", "tool_failed": True},
            {"role": "assistant", "content": "Added a null check", "usage": {"prompt_tokens": 900, "completion_tokens": 80}},
        ],
        "context_files": [
            {"file_path": "src/auth.py", "line_start": 1, "line_end": 80, "usefulness": 0.92, "source": "vecdb", "symbols": ["login_user"],
             "content_hash": "sha256:aa", "language": "python"},
            {"file_path": "docs/errors.md", "source": "ast"},
        ],
        "tool_calls": [
            {"tool_call_id": "t2", "tool_name": "update_textdoc", "status": "success", "execution_time_ms": 41, "diff_chunk_id": "d1"}
        ],
        "code_changes": [
            {"file_path": "src/auth.py", "function_name": "login_user", "line_start": 30, "line_end": 34, "change_type": "updated",
             "change_summary": "null check", "severity": "high", "lines_added": 3, "lines_removed": 1, "code_before_hash": "x",
             "code_after_hash": "y", "language": "python", "tool_call_id": "t2", "diff_chunk_id": "d1", "diff": "+ if token is None"}
        ],
        "checkpoints": [{"checkpoint_id": "k1", "parent_checkpoint": None, "workspace_dir": "/w", "git_hash": "ae09"}],
        "model_response": {"model": "m", "finish_reason": "stop", "created": 1735787045, "cached": False, "compression_strength": "absent"},
        "related_artifacts": ["issue-7"],
    }  # fmt: skip
