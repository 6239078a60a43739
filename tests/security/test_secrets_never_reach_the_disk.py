"""Secrets of many kinds, planted in every field of every door, are in no byte of the store's files, logs or answers."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from recollect.sync import Memory
from tests.planted import PLANTED


def everywhere(text: str) -> dict[str, Any]:
    """A payload that says the text in every field that takes one."""
    return {
        "request_id": f"r {text}",
        "project_id": f"p {text}",
        "title": text,
        "cwd": f"/w/{text}".replace("\n", " "),
        "chat_meta": {"chat_id": f"c {text}", "chat_mode": text, "request_attempt_id": text, "base_chat_id": text},
        "messages": [
            {"role": "system", "content": text},
            {"role": "user", "content": [{"type": "text", "text": text}], "checkpoints": [{"commit_hash": text}]},
            {
                "role": "assistant",
                "content": text,
                "reasoning_content": text,
                "thinking_blocks": [{"type": "thinking", "thinking": text}],
                "tool_calls": [
                    {"id": text, "function": {"name": "shell", "arguments": json.dumps({"command": text, "deep": {"er": [text]}})}},
                    {"id": "b", "name": text, "arguments": {text: text}},
                    {"id": "c", "name": "x", "arguments": json.dumps(json.dumps({"note": text}))},
                ],
            },
            {"role": "tool", "tool_call_id": text, "content": text},
            {"role": "user", "content_summary": text, "content_hash": "sha256:00"},
            {"role": "assistant", "content": "ok"},
        ],
        "tool_calls": [{"tool_call_id": "b", "tool_name": "x", "error": text, "result": {"text": text}, "diff_chunk_id": text}],
        "context_files": [{"file_path": f"src/{text}", "source": text, "symbols": [text], "language": text, "content_hash": text}],
        "code_changes": [
            {"file_path": "a.py", "diff": text, "change_summary": text, "function_name": text, "severity": text, "git_commit": text}
        ],
        "checkpoints": [{"checkpoint_id": text, "git_hash": text, "parent_checkpoint": text, "workspace_dir": text}],
        "model_response": {"model": text, "finish_reason": text},
        "related_artifacts": [text, {"x": text}],
    }


def assert_nowhere(folder: Path, secret: str) -> None:
    needle = secret.encode()
    for file in folder.rglob("*"):
        if file.is_file():
            assert needle not in file.read_bytes(), file.name


@pytest.mark.parametrize("kind", sorted(PLANTED))
def test_a_secret_in_any_field_of_any_door_is_in_no_byte_of_the_store(kind: str, tmp_path: Path) -> None:
    text, secret = PLANTED[kind]
    folder = tmp_path / "store"
    with Memory.open(folder / "memory.db") as memory:
        recorded = memory.record(everywhere(text))
        assert recorded.notes["secrets_redacted"] > 10
        conversation = memory.create_conversation(
            project=text[:150], title=text, tags=[text[:80]], agent=text[:150], external_id=text[:150]
        )
        conversation.record(
            user=text, assistant=text, system=text, reasoning=text, tool_calls=[{"name": "x", "arguments": {"a": text}, "result": text}]
        )
        turn = conversation.begin(text, request_id=text)
        conversation.finish(turn, [{"role": "assistant", "content": text}])
        conversation.change(title=f"again {text}", tags=[text[:80]])
        conversation.branch(title=text)
        document = json.loads(conversation.export())
        document["turns"][0]["messages"][0] |= {"content": text, "content_bytes": 10**6}
        document["conversation"] |= {"id": "imported", "title": text, "summary": text}
        imported = memory.import_conversation(document)
        for shown in (memory.load_conversation(recorded.conversation_id), conversation, imported):
            assert secret not in shown.export()
            assert secret not in shown.export("markdown")
        assert_nowhere(folder, secret)
    assert_nowhere(folder, secret)


def test_no_secret_is_in_any_property_on_a_server(neo4j_url: str) -> None:
    workspace = f"secrets-{uuid4()}"
    with Memory.open(neo4j_url, workspace=workspace) as memory:
        for text, _ in PLANTED.values():
            recorded = memory.record(everywhere(text))
            assert recorded.notes["secrets_redacted"] > 10
    with GraphDatabase.driver(neo4j_url) as driver:
        nodes, _, _ = driver.execute_query("MATCH (n {workspace: $w}) RETURN labels(n)[0], properties(n)", w=workspace)
        edges, _, _ = driver.execute_query("MATCH ({workspace: $w})-[r]->() RETURN type(r), properties(r)", w=workspace)
    said = "\n".join(str(value) for record in [*nodes, *edges] for value in record.values())
    assert len(said) > 100_000
    assert [kind for kind, (_, secret) in PLANTED.items() if secret in said] == []


def test_the_command_line_prints_no_secret_of_a_bad_payload(tmp_path: Path) -> None:
    text, secret = PLANTED["github-pat"]
    file = tmp_path / "bad.jsonl"
    file.write_text(
        json.dumps({"messages": text}) + "\n" + json.dumps({"messages": [{"role": "user", "content": text}]}) + "\n" + text + "\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "recollect", "--store", str(tmp_path / "m.db"), "ingest", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert secret not in done.stdout
