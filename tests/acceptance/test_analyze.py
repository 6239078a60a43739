"""`recollect analyze` as people and scripts use it: findings on standard output, the rest on standard error, exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from uuid import uuid4

import pytest

from tests.acceptance.test_command_line import Shell
from tests.endpoint import Endpoint

OVERVIEW = {"main_topic": "Expired tokens", "key_findings": ["login_user needs a null check"], "action_items": []}


@pytest.fixture(params=["neo4j", "sqlite"])
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Shell:
    shell = Shell(tmp_path, request.getfixturevalue("neo4j_url") if request.param == "neo4j" else None)
    shell.environment["RECOLLECT_WORKSPACE"] = f"test-{uuid4()}"
    return shell


def talked(shell: Shell, project: str = "shop") -> str:
    own_id = str(shell.json("new", "--project", project, "--title", "Fix login")["id"])
    said = "The token is None because it expired. Remaining: the docs are old."
    shell.run("record", own_id, "--user", "Why does login crash?", "--assistant", said)
    return own_id


def with_model(shell: Shell, endpoint: Endpoint, **use: object) -> None:
    config = shell.folder / "config.yaml"
    config.write_text(json.dumps({"models": {"analysis": {"name": "small", "endpoint": endpoint.url, **use}}}))
    shell.environment["RECOLLECT_CONFIG"] = str(config)


def test_what_was_learned_is_shown_now_and_later(shell: Shell) -> None:
    assert "nothing to analyse" in shell.run("analyze", code=1)
    own_id = talked(shell)
    told = shell.run("analyze", own_id[:8])
    assert "Fix login" in told
    assert "key findings   The token is None because it expired." in told
    assert "action items   Remaining: the docs are old." in told
    assert "1 conversation: 1 done" in told
    assert "1 unchanged" in shell.run("analyze", "--project", "shop")
    assert "1 done" in shell.run("analyze", "--again")
    assert "The token is None" in shell.run("analyze", "--show")
    assert shell.run("analyze", "--search", "expired token").startswith("1 ")
    assert "learned" in shell.run("similar", "login crash")
    shell.run("analyze", "--search", "nothingofthekind", code=1)
    shell.run("analyze", "--show", "--kind", "other", code=1)


def test_json_is_one_document_that_says_the_same(shell: Shell) -> None:
    own_id = talked(shell)
    analysed = shell.json("analyze")
    (item,) = analysed["items"]
    assert (analysed["stopped"], item["status"], item["conversation_id"]) == (None, "done", own_id)
    assert shell.json("analyze", "--show", own_id) == [item["insight"]]
    (hit,) = shell.json("analyze", "--search", "expired", "--project", "shop")
    assert (hit["kind"], hit["id"]) == ("insight", item["insight"]["id"])
    (similar,) = shell.json("similar", "login crash")
    assert similar["learned"] == [item["insight"]]
    assert shell.json("analyze", "--show", "--project", "nowhere", code=1) == []


def test_a_model_is_asked_as_the_schema_says_and_a_failure_is_told(shell: Shell) -> None:
    talked(shell)
    schema = shell.folder / "schema.json"
    schema.write_text(
        json.dumps({"type": "object", "title": "Risk", "properties": {"risk": {"enum": ["low", "high"]}}, "required": ["risk"]})
    )
    assert "needs a model" in shell.raw("analyze", "--schema", str(schema)).stderr
    with Endpoint('{"risk": "low"}', '{"risk": "none"}') as endpoint:
        with_model(shell, endpoint)
        assert "risk           low" in shell.run("analyze", "--schema", str(schema), "--task", "rate it")
        shell.environment["COLUMNS"] = "200"
        assert "gave no answer that fits" in shell.run("analyze", "--schema", str(schema), "--task", "rate it again", code=2)
    schema.write_text("[]")
    shell.run("analyze", "--schema", str(schema), code=2)
    shell.run("analyze", "--kind", "x", code=2)
    shell.run("analyze", "nobody", code=1)


def test_at_the_cap_it_stops_with_a_code_of_its_own_and_goes_on_later(shell: Shell) -> None:
    for _ in range(3):
        talked(shell)
    with Endpoint(json.dumps(OVERVIEW)) as endpoint:
        with_model(shell, endpoint, daily_tokens_max=100)
        capped = shell.raw("--json", "analyze")
        assert capped.returncode == 4
        assert "daily_tokens_max" in capped.stderr
        assert [item["status"] for item in json.loads(capped.stdout)["items"]] == ["not_done"] * 3
        with_model(shell, endpoint)
        assert "3 done" in shell.run("analyze")
    assert len(endpoint.asked) == 3
