from __future__ import annotations

from pathlib import Path

import pytest

from recollect.config import config_path, default_store, load_settings, settings_from
from recollect.errors import ConfigError
from recollect.settings import Settings


def test_without_a_file_the_defaults_hold(own_place: Path) -> None:
    settings = load_settings()
    assert settings.workspace == "default"
    assert settings.store == f"sqlite://{own_place}/data/recollect/memory.db"
    assert settings.agent.memory.enabled


def test_the_block_of_an_agent_project_is_accepted_as_it_stands() -> None:
    block = {
        "enabled": True,
        "max_context_messages": 20,
        "summarization": {"enabled": True, "every_n_messages": 10},
        "embeddings": {"enabled": True, "model": "text-embedding-004", "dimension": 768},
        "persistence": {"type": "neo4j", "auto_save": True},
    }
    settings = settings_from({"store": "neo4j://localhost:7687", "agent": {"memory": block}})
    assert settings.agent.memory.embeddings.dimension == 768


def test_the_environment_is_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("store: /from/file.db\nworkspace: from-file\nsecrets:\n  exceptions: ['^x$']\n")
    assert load_settings({"RECOLLECT_CONFIG": str(file)}).workspace == "from-file"
    settings = load_settings({"RECOLLECT_CONFIG": str(file), "RECOLLECT_WORKSPACE": "from-env", "RECOLLECT_STORE": "/env.db"})
    assert (settings.workspace, settings.store, settings.secrets.exceptions) == ("from-env", "/env.db", ("^x$",))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stoer: x", "did you mean store"),
        ("agent: {memory: {enabeld: true}}", "did you mean agent.memory.enabled"),
        ("durability: forever", "durability"),
        ("workspace: 7", "workspace"),
        ("[1, 2]", "not a mapping"),
        ("a: [", "not YAML"),
        ("secrets: {rules: [{kind: x}]}", "regex"),
        ("agent: {memory: {persistence: {type: neo4j}}}", "neo4j://"),
    ],
)
def test_a_mistake_is_an_error_that_names_it(tmp_path: Path, text: str, said: str) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=said):
        load_settings({"RECOLLECT_CONFIG": str(file), "HOME": str(tmp_path)})


def test_of_a_few_words_the_known_ones_are_named() -> None:
    with pytest.raises(ConfigError, match=r"models\.agent\.provider`: 'mistral' is none of openai, anthropic, google$"):
        settings_from({"models": {"agent": {"name": "m", "provider": "mistral"}}})


def test_a_named_file_that_is_missing_is_an_error() -> None:
    with pytest.raises(ConfigError, match="there is no configuration"):
        load_settings({"RECOLLECT_CONFIG": "/nowhere/c.yaml"})


def test_yaml_cannot_make_objects(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("store: !!python/object/apply:os.system ['true']")
    with pytest.raises(ConfigError):
        load_settings({"RECOLLECT_CONFIG": str(file)})


def test_places_follow_the_platform() -> None:
    env = {"HOME": "/h"}
    assert config_path(env).name == "config.yaml"
    assert default_store(env).startswith("sqlite:///h/")
    assert Settings().store == ""


NAMED: dict[str, object] = {"name": "m", "endpoint": "http://x/v1", "dimension": 3}


def test_the_block_of_an_agent_project_may_name_the_model_that_is_configured() -> None:
    block = {"memory": {"embeddings": {"enabled": True, "model": "m", "dimension": 3}}}
    assert settings_from({"models": {"embeddings": NAMED}, "agent": block}).models.embeddings.endpoint == "http://x/v1"


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"distill": {"every_turns": 5, "keep_raw_turns": 10}}, "raise it"),
        ({"distill": {"context_share": 1e-9}}, "less than a character"),
        ({"distill": {"model_seconds_max": 1e9}}, "model_seconds_max"),
        ({"distill": {"every_turns": 0}}, "every_turns"),
        ({"models": {"embeddings": {"endpoint": "http://x/v1"}}}, "models.embeddings.name"),
        ({"models": {"embeddings": {"name": "m", "endpoint": "http://x/v1"}}}, "endpoint and dimension"),
        ({"models": {"embeddings": {"name": "m", "endpoint": "ftp://x", "dimension": 3}}}, "no http address"),
        ({"models": {"embeddings": NAMED}, "agent": {"memory": {"embeddings": {"model": "other"}}}}, "leave one out"),
        ({"models": {"embeddings": NAMED}, "agent": {"memory": {"embeddings": {"dimension": 4}}}}, "leave one out"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(values: dict[str, object], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        settings_from(values)
