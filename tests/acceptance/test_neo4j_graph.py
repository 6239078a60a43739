"""The graph that people query: the names of the interface, and their questions in plain Cypher, on a real server."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import UTC, datetime
from typing import Any, LiteralString
from uuid import uuid4

import neo4j
import pytest
from neo4j import AsyncDriver, AsyncGraphDatabase

from recollect.clock import CountedIds, ManualClock
from recollect.distill.embedders import default_embedder
from recollect.memory import Memory
from recollect.model import Insight, Reference, Scope, Summary

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)

# What INTERFACE §4 names; a label's properties are there when the reference conversation fills them.
PROPERTIES = {
    "Conversation": "uuid title summary tags status created_at updated_at message_count turn_count cwd agent branch_of",
    "Turn": "uuid request_id conversation_id index status model finish_reason char_count chat_mode request_attempt_id base_chat_id "
    "related_artifacts timestamp",
    "Message": "uuid conversation_id sequence role content content_summary content_hash source_hash reasoning token_count timestamp",
    "ToolCall": "uuid message_id tool_call_id tool_name arguments arguments_hash status success duration_ms order iteration timestamp",
    "ToolResult": "uuid tool_call_id success result error result_size_bytes content_hash timestamp",
    "ContextFile": "uuid file_path line_start line_end usefulness source symbols content_hash timestamp",
    "CodeFile": "uuid file_path language",
    "CodeChange": "uuid file_path change_type change_summary git_commit line_start line_end function_name lines_added lines_removed "
    "code_before_hash code_after_hash diff severity timestamp",
    "Checkpoint": "uuid checkpoint_id git_hash parent_checkpoint workspace_dir timestamp",
    "Summary": "uuid level summary actions key_findings files_mentioned tools_used topics first_turn last_turn turn_count char_count "
    "author timestamp",
    "Passage": "text terms",
    "Scope": "uuid name",
    "Insight": "uuid",
    "Project": "uuid name",
    "Workspace": "name",
}
EDGES = {
    ("Workspace", "HAS_PROJECT", "Project"),
    ("Project", "HAS_CONVERSATION", "Conversation"),
    ("Conversation", "HAS_TURN", "Turn"),
    ("Conversation", "HAS_MESSAGE", "Message"),
    ("Conversation", "HAS_SUMMARY", "Summary"),
    ("Conversation", "HAS_BRANCH", "Conversation"),
    ("Conversation", "HAS_INSIGHT", "Insight"),
    ("Turn", "CONTAINS_MESSAGE", "Message"),
    ("Turn", "HAS_TOOL_CALL", "ToolCall"),
    ("Turn", "USES_CONTEXT", "ContextFile"),
    ("Turn", "HAS_CHECKPOINT", "Checkpoint"),
    ("Message", "MADE_TOOL_CALL", "ToolCall"),
    ("Message", "INVOKES_TOOL", "ToolCall"),
    ("ToolCall", "PRODUCED_RESULT", "ToolResult"),
    ("ToolCall", "CREATES_CHANGE", "CodeChange"),
    ("ToolCall", "ACCESSED", "CodeFile"),
    ("ContextFile", "READS_FROM", "CodeFile"),
    ("CodeChange", "CHANGES", "CodeFile"),
    ("Scope", "DEFINED_IN", "CodeFile"),
    ("Checkpoint", "FOLLOWS", "Checkpoint"),
    ("Summary", "SUMMARIZES", "Turn"),
    ("Summary", "SUMMARIZES", "Summary"),
    ("Message", "REFERENCES_CODE", "Scope"),
    ("Turn", "HAS_PASSAGE", "Passage"),
    ("Summary", "HAS_PASSAGE", "Passage"),
}


class Graph:
    """Asks in plain Cypher, as a person would, within one workspace."""

    def __init__(self, driver: AsyncDriver, workspace: str) -> None:
        self._driver = driver
        self.workspace = workspace

    async def ask(self, query: LiteralString, **parameters: object) -> list[list[Any]]:
        records, _, _ = await self._driver.execute_query(query, {"w": self.workspace, **parameters})
        return [record.values() for record in records]


@pytest.fixture
async def graph(neo4j_url: str, everything: dict[str, Any]) -> AsyncGenerator[Graph]:
    """Write the reference conversation through the library, then leave it to Cypher."""
    clock = ManualClock(NOW)
    async with await Memory.open(neo4j_url, workspace=f"graph-{uuid4()}", clock=clock, ids=CountedIds()) as memory:
        everything["messages"][1]["token_count"] = 5
        everything["messages"][1]["content_hash"] = "sha256:given"
        everything["code_changes"][0]["git_commit"] = "abc"
        recorded = await memory.record({**everything, "cwd": "/srv/shop", "title": "Fix login", "agent": "engine"})
        clock.advance(60)
        second = {
            "request_id": "req_2", "project_id": "shop", "cwd": "/srv/shop", "agent": "engine", "chat_meta": {"chat_id": "c1"},
            "messages": [
                {"role": "user", "content": "Run the tests"},
                {"role": "assistant", "tool_calls": [{"id": "t3", "function": {"name": "shell", "arguments": '{"command": "pytest"}'}}]},
                {"role": "tool", "tool_call_id": "t3", "content": "2 failed", "tool_failed": True},
                {"role": "assistant", "content": "Two fail"},
            ],
            "context_files": [{"file_path": "src/auth.py", "usefulness": 0.5, "source": "ast"}],
            "tool_calls": [{"tool_call_id": "t3", "tool_name": "shell", "status": "failed", "error": "exit code 1"}],
            "checkpoints": [{"checkpoint_id": "k2", "parent_checkpoint": "k1", "workspace_dir": "/w", "git_hash": "be01"}],
        }  # fmt: skip
        later = await memory.record(second)
        conversation = await memory.load_conversation(recorded.conversation_id)
        await conversation.change(tags=["auth", "bug"])
        await memory.store.conversations.change(memory.workspace, conversation.id, _with_summary(), NOW)
        branch = await conversation.branch(from_turn=0)
        await branch.archive()
        derived = memory.store.derived
        low = Summary(
            id="s1", conversation_id=conversation.id, level=1, summary="said", actions="did", key_findings=("f",), files_mentioned=("a",),
            tools_used=("cat",), topics=("auth",), first_turn=0, last_turn=0, turn_count=1, char_count=4, created_at=NOW,
            source_ids=recorded.turn_ids,
        )  # fmt: skip
        high = Summary(id="s2", conversation_id=conversation.id, level=2, summary="said", first_turn=0, last_turn=0, turn_count=1,
                       char_count=4, created_at=NOW, source_ids=("s1",))  # fmt: skip
        await derived.put_summaries(memory.workspace, [low, high])
        await derived.put_insights(memory.workspace, [Insight(id="i", conversation_id=conversation.id, kind="k", body={}, created_at=NOW)])
        scope = Scope(
            id="sc", project_id=conversation.info.project_id, name="login_user", kind="function", file_path="src/auth.py", line_start=30,
            line_end=40,
        )  # fmt: skip
        await memory.store.code.put_scopes(memory.workspace, [scope])
        message = (await conversation.turns())[0].messages[1]
        await memory.store.code.put_references(memory.workspace, [Reference(message_id=message.id, scope_id="sc")])
        assert later.status == "created"
        async with AsyncGraphDatabase.driver(neo4j_url) as driver:
            yield Graph(driver, memory.workspace)


def _with_summary() -> Any:
    from recollect.store.shapes import ConversationChange

    return ConversationChange(summary="a login bug was fixed")


async def test_labels_and_properties_are_those_of_the_interface(graph: Graph) -> None:
    rows = await graph.ask("MATCH (n {workspace: $w}) UNWIND labels(n) AS label UNWIND keys(n) AS key RETURN DISTINCT label, key")
    found: dict[str, set[str]] = {}
    for label, key in rows:
        found.setdefault(label, set()).add(key)
    assert set(found) == {*PROPERTIES, "Request", "Job"}
    assert found["Request"] == found["Turn"]
    for label, names in PROPERTIES.items():
        assert set(names.split()) <= found[label], label
    of_a_project = set(PROPERTIES) - {"Workspace"}
    without = await graph.ask("MATCH (n {workspace: $w}) WHERE n.project_id IS NULL RETURN DISTINCT labels(n)[0]")
    assert {row[0] for row in without} == {"Workspace"} == set(PROPERTIES) - of_a_project
    unfilled: LiteralString = """
        MATCH (m:Message {workspace: $w})
        WHERE m.content_summary IS NULL OR size(m.content_summary) > 200 OR (m.content_summary = '') <> (coalesce(m.content, '') = '')
        RETURN m.uuid
    """
    assert await graph.ask(unfilled) == []


async def test_relationships_are_those_of_the_interface(graph: Graph) -> None:
    rows = await graph.ask("MATCH (a {workspace: $w})-[r]->(b) RETURN DISTINCT labels(a)[0], type(r), labels(b)[0], keys(r)")
    assert {(row[0], row[1], row[2]) for row in rows} == EDGES
    keys = {row[1]: set(row[3]) for row in rows}
    assert keys["HAS_TURN"] == {"index"}
    assert keys["HAS_SUMMARY"] == keys["SUMMARIZES"] == {"level"}
    assert keys["HAS_BRANCH"] == {"from_turn"}
    assert keys["HAS_TOOL_CALL"] == keys["MADE_TOOL_CALL"] == keys["INVOKES_TOOL"] == {"order"}
    assert "kind" in keys["ACCESSED"]


async def test_times_are_native_and_no_edge_leaves_its_workspace(graph: Graph) -> None:
    rows = await graph.ask(
        "MATCH (n {workspace: $w}) UNWIND keys(n) AS key WITH key, n[key] AS v WHERE key =~ '.*(_at|timestamp)' RETURN key, v"
    )
    assert {"timestamp", "created_at", "updated_at", "started_at"} <= {row[0] for row in rows}
    assert all(isinstance(value, neo4j.time.DateTime) for _, value in rows)
    assert await graph.ask("MATCH (a {workspace: $w})--(b) WHERE b.workspace <> $w RETURN b") == []


async def test_the_context_files_of_a_request_by_usefulness(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (r:Request {workspace: $w, request_id: 'req_1'})-[:USES_CONTEXT]->(f:ContextFile)
        RETURN f.file_path, f.usefulness, f.source ORDER BY f.usefulness IS NULL, f.usefulness DESC
        """
    )
    assert rows == [["src/auth.py", 0.92, "vecdb"], ["docs/errors.md", None, "ast"]]


async def test_how_often_a_file_was_context_in_seven_days(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (f:ContextFile {workspace: $w})-[:READS_FROM]->(c:CodeFile {file_path: 'src/auth.py'})
        WHERE f.timestamp > $now - duration('P7D')
        RETURN count(f), round(avg(f.usefulness), 3), collect(DISTINCT f.source)
        """,
        now=datetime(2026, 3, 3, tzinfo=UTC),
    )
    assert rows[0][:2] == [2, 0.71]
    assert set(rows[0][2]) == {"vecdb", "ast"}


async def test_the_failure_rate_of_each_tool(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (k:ToolCall {workspace: $w})
        RETURN k.tool_name, count(k), toFloat(count(CASE WHEN k.status = 'failed' THEN 1 END)) / count(k) ORDER BY k.tool_name
        """
    )
    assert rows == [["cat", 1, 1.0], ["shell", 1, 1.0], ["update_textdoc", 1, 0.0]]


async def test_the_flow_of_a_request_with_messages_tools_and_changed_files(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (:Turn {workspace: $w, request_id: 'req_1'})-[:CONTAINS_MESSAGE]->(m)
        OPTIONAL MATCH (m)-[i:INVOKES_TOOL]->(k)
        OPTIONAL MATCH (k)-[:CREATES_CHANGE]->(x)-[:CHANGES]->(f)
        RETURN m.sequence, m.role, k.tool_name, f.file_path, x.lines_added ORDER BY m.sequence, i.order
        """
    )
    assert rows == [
        [0, "system", None, None, None],
        [1, "user", None, None, None],
        [2, "assistant", "cat", None, None],
        [2, "assistant", "update_textdoc", "src/auth.py", 3],
        [3, "assistant", None, None, None],
    ]


async def test_checkpoints_in_order(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (last:Checkpoint {workspace: $w}) WHERE NOT (last)<-[:FOLLOWS]-()
        MATCH path = (last)-[:FOLLOWS*0..]->(first) WHERE NOT (first)-[:FOLLOWS]->()
        RETURN [k IN reverse(nodes(path)) | k.git_hash]
        """
    )
    assert rows == [[["ae09", "be01"]]]


async def test_a_checkpoint_that_names_none_follows_the_one_before_it_of_the_same_folder(graph: Graph, neo4j_url: str) -> None:
    async with await Memory.open(neo4j_url, workspace=graph.workspace, worker=False) as memory:
        conversation = await memory.create_conversation(project="folders")
        for n in range(2):
            saved = [{"git_hash": f"{name}{n}", "workspace_dir": folder} for name, folder in (("u", None), ("v", "/v"), ("w", "/w"))]
            await conversation.record(user=f"do {n}", checkpoints=saved)
        last = {"git_hash": "w2", "workspace_dir": "/w", "parent_checkpoint": "v2"}
        await conversation.record(user="back", checkpoints=[{"git_hash": "v2", "checkpoint_id": "v2", "workspace_dir": "/v"}, last])
    query: LiteralString = """
        MATCH (x:Checkpoint {workspace: $w, conversation_id: $id})-[:FOLLOWS]->(before)
        RETURN x.git_hash, before.git_hash ORDER BY x.git_hash
    """
    assert await graph.ask(query, id=conversation.id) == [["u1", "u0"], ["v1", "v0"], ["v2", "v1"], ["w1", "w0"], ["w2", "v2"]]


async def test_conversations_whose_messages_speak_of_a_scope(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (c:Conversation {workspace: $w})-[:HAS_MESSAGE]->(m)-[:REFERENCES_CODE]->(:Scope {name: 'login_user'})-[:DEFINED_IN]->(f)
        RETURN DISTINCT c.title, m.content, f.file_path
        """
    )
    assert rows == [["Fix login", "Fix the login bug", "src/auth.py"]]


async def test_history_with_tool_calls_and_results(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (c:Conversation {workspace: $w, title: 'Fix login', status: 'active'})-[:HAS_MESSAGE]->(m)
        OPTIONAL MATCH (m)-[a:MADE_TOOL_CALL]->(k) OPTIONAL MATCH (k)-[:PRODUCED_RESULT]->(r)
        WITH m, a, k, r ORDER BY m.sequence, a.order
        RETURN m.sequence, m.role, collect([k.tool_name, r.success, coalesce(r.error, r.result)]) ORDER BY m.sequence
        """
    )
    assert [(row[0], row[1]) for row in rows][:3] == [(0, "system"), (1, "user"), (2, "assistant")]
    assert rows[2][2] == [["cat", False, "Error: README.md not found"], ["update_textdoc", True, "1 file changed"]]


async def test_recent_turns_with_their_tools_in_order(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (c:Conversation {workspace: $w, title: 'Fix login', status: 'active'})-[h:HAS_TURN]->(t)
        WITH t, h ORDER BY h.index DESC LIMIT 2
        RETURN t.index, COLLECT { MATCH (t)-[a:HAS_TOOL_CALL]->(k) RETURN k.tool_name ORDER BY a.order }
        """
    )
    assert rows == [[1, ["shell"]], [0, ["cat", "update_textdoc"]]]


async def test_conversations_by_tag_and_status(graph: Graph) -> None:
    query: LiteralString = (
        "MATCH (c:Conversation {workspace: $w, status: $status}) WHERE $tag IN c.tags RETURN c.title, c.turn_count, c.branch_of IS NULL"
    )
    assert await graph.ask(query, tag="auth", status="active") == [["Fix login", 2, True]]
    assert await graph.ask(query, tag="auth", status="archived") == [["Fix login", 1, False]]
    assert await graph.ask(query, tag="other", status="active") == []


async def test_raw_characters_that_no_level_1_summary_covers(graph: Graph) -> None:
    rows = await graph.ask(
        """
        MATCH (c:Conversation {workspace: $w, title: 'Fix login', status: 'active'})-[:HAS_TURN]->(t)
        WHERE NOT EXISTS { (:Summary {level: 1})-[:SUMMARIZES]->(t) }
        RETURN count(t), sum(t.char_count) > 0
        """
    )
    assert rows == [[1, True]]


async def test_level_1_summaries_that_are_not_yet_in_level_2(graph: Graph) -> None:
    query: LiteralString = """
        MATCH (s:Summary {workspace: $w, level: 1}) WHERE NOT EXISTS { (:Summary {level: 2})-[:SUMMARIZES]->(s) } RETURN s.uuid
    """
    assert await graph.ask(query) == []
    await graph.ask("MATCH (:Summary {workspace: $w, level: 2})-[r:SUMMARIZES]->() DELETE r")
    assert await graph.ask(query) == [["s1"]]


async def test_cosine_over_turns_and_summaries_through_their_passages(graph: Graph, neo4j_url: str) -> None:
    async with await Memory.open(neo4j_url, workspace=graph.workspace) as memory:
        await memory.distill()
    near = default_embedder().vectors(["user: Fix the login bug"])[0].tolist()
    rows = await graph.ask(
        """
        MATCH (p:Passage {workspace: $w}) WHERE p.embedding IS NOT NULL
        MATCH (owner)-[:HAS_PASSAGE]->(p)
        WITH labels(owner)[0] AS kind, 2 * vector.similarity.cosine(p.embedding, $near) - 1 AS cosine, p.text AS text
        RETURN kind, text, cosine ORDER BY cosine DESC
        """,
        near=near,
    )
    assert {row[0] for row in rows} == {"Turn", "Summary"}
    assert rows[0][1] == "Fix the login bug"
    assert -1.001 <= rows[-1][2] <= rows[0][2] <= 1.001
    indexed = await graph.ask(
        """
        CALL db.index.vector.queryNodes('passage_embedding', 500, $near) YIELD node, score WHERE node.workspace = $w
        RETURN node.text, score
        """,
        near=near,
    )
    assert indexed
