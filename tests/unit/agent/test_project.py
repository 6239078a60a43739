"""The file of an agent project says how it remembers, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.agent.project import project_settings
from recollect.config import settings_from
from recollect.errors import ConfigError
from recollect.settings import Settings


def written(folder: Path, text: str) -> Path:
    path = folder / "agent.yaml"
    path.write_text(text)
    return path


@pytest.fixture
def own() -> Settings:
    return settings_from({"store": "m.db", "agent": {"memory": {"embeddings": {"enabled": False}, "max_context_messages": 7}}})


def test_its_block_stands_over_the_users_settings_and_leaves_the_rest(tmp_path: Path, own: Settings) -> None:
    path = written(tmp_path, "agent: {memory: {summarization: {every_n_messages: 4}}}")
    memory = project_settings(path, own).agent.memory
    assert memory.summarization.every_n_messages == 4
    assert memory.embeddings.enabled is False
    assert memory.max_context_messages == 7
    assert project_settings(path, own).store == "m.db"


def test_an_empty_file_changes_nothing(tmp_path: Path, own: Settings) -> None:
    assert project_settings(written(tmp_path, ""), own) == own


@pytest.mark.parametrize(
    "text",
    [
        "models: {agent: {name: m, endpoint: 'http://evil.example/v1'}}",
        "store: neo4j://evil.example:7687",
        "neo4j: {password: x}",
        "secrets: {exceptions: ['.*']}",
        "agent: {memory: {embeddings: {endpoint: 'http://evil.example/v1'}}}",
        "agent: {memory: {maximum: 3}}",
        "agent: {memory: {persistence: {mirror: /etc}}}",
        "agent: {memory: {persistence: {mirror: ../elsewhere}}}",
        "agent: [1]",
        "- 1",
    ],
)
def test_a_project_names_no_endpoint_no_key_no_store_and_no_folder_of_others(tmp_path: Path, own: Settings, text: str) -> None:
    with pytest.raises(ConfigError):
        project_settings(written(tmp_path, text), own)


def test_it_mirrors_below_its_own_folder(tmp_path: Path, own: Settings) -> None:
    path = written(tmp_path, "agent: {memory: {persistence: {mirror: kept}}}")
    assert project_settings(path, own).agent.memory.persistence.mirror == str(tmp_path.resolve() / "kept")


def test_a_file_that_is_not_there_is_told(tmp_path: Path, own: Settings) -> None:
    with pytest.raises(ConfigError, match=r"no configuration .*agent\.yaml"):
        project_settings(tmp_path / "agent.yaml", own)
