"""Insights in Neo4j, with the words they are found by: queries and what they are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from recollect.store.neo4j.rows import full_text_query, scope_term, written
from recollect.store.neo4j.writing import scope_words

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.neo4j.database import Connection
    from recollect.store.shapes import InsightFilter, WordedInsight

RETURN_INSIGHT: LiteralString = "RETURN i {.*, timestamp: null, expires_at: null, created_at: toString(i.created_at)} AS properties\n"
INSIGHT_FILTER: LiteralString = """
    AND ($conversation_id IS NULL OR i.conversation_id = $conversation_id)
    AND ($project_ids IS NULL OR i.project_id IN $project_ids) AND ($kind IS NULL OR i.kind = $kind)
"""
QUERY_INSIGHTS: LiteralString = """
    UNWIND $queries AS one
    CALL (one) { CALL db.index.fulltext.queryNodes('insight_terms', one) YIELD node, score RETURN node AS i, score }
    WITH i, score WHERE i.created_at IS NOT NULL
"""
RETIRE_INSIGHTS: LiteralString = """
    CALL () {
        MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $turn_ids
        WITH t.conversation_id AS owner, min(t.index) AS first
        MATCH path = (:Conversation {workspace: $workspace, uuid: owner})-[:HAS_BRANCH*0..]->(c:Conversation)
        WHERE all(fork IN relationships(path) WHERE first <= fork.from_turn)
        MATCH (c)-[:HAS_INSIGHT]->(i) WHERE first <= i.last_turn
        DETACH DELETE i
    }
"""  # those that tell of turns, in their conversations and in the branches that show them


def insight_filter(where: InsightFilter) -> dict[str, Any]:
    """Return the parameters of `INSIGHT_FILTER`."""
    projects = None if where.project_ids is None else list(where.project_ids)
    return {"conversation_id": where.conversation_id, "project_ids": projects, "kind": where.kind}


def insight_queries(workspace: str, where: InsightFilter, terms: list[str]) -> list[str]:
    """Return full-text queries for any of the terms, one for each part of where to look; the narrowest part comes first."""
    kind, names = "workspace", [""]
    if where.conversation_id is not None:
        kind, names = "conversation", [where.conversation_id]
    elif where.project_ids is not None:
        kind, names = "project", list(where.project_ids)
    return [full_text_query(scope_term(workspace, kind, name), terms) for name in names]


async def put_insight(connection: Connection, workspace: str, worded: WordedInsight, expires_at: datetime | None) -> None:
    """Write an insight in the place of one with its id."""
    one = worded.insight
    owner = await connection.row(
        "MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id}) RETURN c.project_id",
        workspace=workspace,
        conversation_id=one.conversation_id,
    )
    project_id = "" if owner is None else owner[0]
    await connection.run(
        """
        MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})
        CALL () { MATCH (old:Insight {workspace: $workspace, uuid: $properties.uuid}) DETACH DELETE old }
        CREATE (c)-[:HAS_INSIGHT]->(i:Insight) SET i = $properties
        """,
        workspace=workspace,
        conversation_id=one.conversation_id,
        properties=written(
            one, workspace=workspace, project_id=project_id, timestamp=one.created_at, checksum=worded.checksum, expires_at=expires_at,
            terms=worded.terms, scope=scope_words(workspace, project_id, one.conversation_id),
        ),
    )  # fmt: skip
