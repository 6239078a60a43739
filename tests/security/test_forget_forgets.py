"""Forget forgets: after it, the words are in no byte of the SQLite file or its journal, and in no reach of a server's queries."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import pytest
from neo4j import GraphDatabase

from recollect.answers import Forgotten
from recollect.sync import Memory

WORD = "xylophonemarmalade"


def in_files(folder: Path, word: str) -> list[str]:
    return [file.name for file in folder.iterdir() if word.encode() in file.read_bytes().lower()]


def filled(memory: Memory) -> str:
    for n in range(30):
        memory.create_conversation(project="other").record(user=f"neighbour {n}", assistant="stays " * 20)
    doomed = memory.create_conversation(project="doomed", title=WORD, tags=[WORD], agent="codex")
    for n in range(30):
        doomed.record(
            user=f"{WORD} {n} " * 20,
            assistant=f"{WORD} " * 200,
            reasoning=WORD,
            timestamp="2025-01-01T00:00:00Z",
            tool_calls=[{"name": WORD, "arguments": {"file_path": f"{WORD}/{n}.py"}, "result": f"{WORD} " * 500}],
            context_files=[{"file_path": f"{WORD}.md", "symbols": [WORD]}],
            changes=[{"file_path": f"{WORD}.py", "diff": WORD}],
            checkpoints=[{"git_hash": WORD}],
        )
    return doomed.id


in_every_way = pytest.mark.parametrize(
    "forget",
    [
        lambda memory, doomed: memory.forget(conversation=doomed),
        lambda memory, _: memory.forget(project="doomed"),
        lambda memory, _: memory.forget(origin="codex"),
        lambda memory, _: memory.forget(before=datetime(2025, 6, 1, tzinfo=UTC)),
    ],
    ids=["conversation", "project", "origin", "before"],
)


@in_every_way
def test_after_forget_the_words_are_in_no_byte_of_the_files(tmp_path: Path, forget: Callable[[Memory, str], Forgotten]) -> None:
    folder = tmp_path / "store"
    with Memory.open(folder / "memory.db") as memory:
        doomed = filled(memory)
        assert in_files(folder, WORD)
        assert forget(memory, doomed).turns == 30
        assert in_files(folder, WORD) == []
        assert memory.search(WORD).hits == ()
        assert memory.verify().status == "intact"
        assert memory.stats().turns == 30
        assert len(memory.search("neighbour", limit=100).hits) == 30
    assert in_files(folder, WORD) == []


def in_graph(url: str, workspace: str, word: str) -> list[str]:
    """Return the labels and types of what still says a word, asked of the server itself."""
    with GraphDatabase.driver(url) as driver:
        nodes, _, _ = driver.execute_query("MATCH (n {workspace: $w}) RETURN labels(n)[0], properties(n)", w=workspace)
        edges, _, _ = driver.execute_query("MATCH ({workspace: $w})-[r]->() RETURN type(r), properties(r)", w=workspace)
        indexed, _, _ = driver.execute_query(
            "CALL db.index.fulltext.queryNodes('passage_terms', $word) YIELD node WHERE node.workspace = $w RETURN 'index', node.uuid",
            word=f"{word[:12]}*",  # however it is stemmed
            w=workspace,
        )
    return [kind for kind, said in (record.values() for record in [*nodes, *edges]) if word in str(said)] + ["index" for _ in indexed]


@in_every_way
def test_after_forget_no_query_and_no_index_of_a_server_reaches_the_words(
    neo4j_url: str, forget: Callable[[Memory, str], Forgotten]
) -> None:
    workspace = f"forget-{uuid4()}"
    with Memory.open(neo4j_url, workspace=workspace) as memory:
        doomed = filled(memory)
        assert {"Message", "ToolCall", "CodeFile", "CodeChange", "Passage", "index"} <= set(in_graph(neo4j_url, workspace, WORD))
        assert forget(memory, doomed).turns == 30
        assert in_graph(neo4j_url, workspace, WORD) == []
        assert memory.search(WORD).hits == ()
        assert memory.verify().status == "intact"
        assert memory.stats().turns == 30
        assert len(memory.search("neighbour", limit=100).hits) == 30


def test_a_deleted_or_replaced_turn_leaves_no_byte_either_once_erased(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Memory.open(folder / "memory.db") as memory:
        conversation = memory.create_conversation(project="p")
        conversation.record(user=WORD, assistant="x", request_id="r")
        conversation.record(user="harmless", assistant="x", request_id="r", replace=True)
        memory.create_conversation(project="q").record(user=WORD)
        memory.forget(project="q")
        assert in_files(folder, WORD) == []


def test_a_branch_that_inherited_keeps_nothing_of_a_forgotten_parent(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    with Memory.open(folder / "memory.db") as memory:
        parent = memory.create_conversation(project="p")
        parent.record(user=WORD)
        branch = parent.branch(title="branch")
        branch.record(user="own")
        memory.forget(conversation=parent.id)
        assert [turn.user for turn in branch.turns()] == ["own"]
        assert in_files(folder, WORD) == []
