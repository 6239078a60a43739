"""Projects and conversations in Neo4j: queries and row mapping."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, LiteralString

from recollect.limits import BRANCH_DEPTH_MAX
from recollect.model import Project
from recollect.store.neo4j.rows import RETURN_CONVERSATION, conversation_properties, held_of, read, readable, written
from recollect.store.shapes import Link

if TYPE_CHECKING:
    from recollect.model import ConversationInfo
    from recollect.store.neo4j.database import Connection
    from recollect.store.shapes import ConversationFilter, Held

_MATCH: LiteralString = "MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})\n"
LOCK: LiteralString = "MATCH (p:Project {workspace: $workspace, uuid: c.project_id}) SET p.name = p.name WITH c\n"
_END_OF_TIME = datetime.max.replace(tzinfo=UTC)


class Neo4jConversations:
    """The `ConversationRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def held(self, conversation_id: str) -> Held | None:
        """Return a conversation, or None."""
        query = _MATCH + LOCK + RETURN_CONVERSATION if self._connection.locks else _MATCH + RETURN_CONVERSATION
        row = await self._connection.row(query, workspace=self._workspace, conversation_id=conversation_id)
        return None if row is None else held_of(row)

    async def by_id(self, conversation_ids: list[str]) -> list[ConversationInfo]:
        """Return conversations in any order."""
        rows = await self._connection.rows(
            """
            UNWIND $conversation_ids AS conversation_id
            MATCH (c:Conversation {workspace: $workspace, uuid: conversation_id})
            """
            + RETURN_CONVERSATION,
            workspace=self._workspace,
            conversation_ids=conversation_ids,
        )
        return [held_of(row).conversation for row in rows]

    async def find(self, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
        """Return conversations, the latest change first."""
        rows = await self._connection.rows(
            """
            MATCH (c:Conversation) WHERE c.workspace = $workspace AND c.updated_at < $before
                AND ($status IS NULL OR c.status = $status)
                AND ($project_ids IS NULL OR c.project_id IN $project_ids)
                AND ($agent IS NULL OR c.agent = $agent)
                AND ($tags IS NULL OR any(tag IN c.tags WHERE tag IN $tags))
            WITH c ORDER BY c.updated_at DESC, c.created_at DESC, c.uuid DESC LIMIT $limit
            """
            + RETURN_CONVERSATION
            + "ORDER BY c.updated_at DESC, c.created_at DESC, c.uuid DESC",
            workspace=self._workspace,
            before=where.before or _END_OF_TIME,
            status=where.status,
            project_ids=None if where.project_ids is None else list(where.project_ids),
            agent=where.agent,
            tags=list(where.tags) or None,
            limit=limit,
        )
        return [held_of(row).conversation for row in rows]

    async def branches(self, conversation_id: str) -> list[Held]:
        """Return the conversations that inherit from one, oldest first."""
        rows = await self._connection.rows(
            "MATCH (:Conversation {workspace: $workspace, uuid: $conversation_id})-[:HAS_BRANCH]->(c)\n"
            + RETURN_CONVERSATION
            + "ORDER BY c.created_at, c.uuid",
            workspace=self._workspace,
            conversation_id=conversation_id,
        )
        return [held_of(row) for row in rows]

    async def chain(self, conversation_id: str) -> list[Link]:
        """Return a conversation, its parent, and so on to the eldest."""
        ask: LiteralString = """
            MATCH path = (c)<-[:HAS_BRANCH*0..]-(a:Conversation) WHERE length(path) <= $depth
            RETURN a.uuid, CASE WHEN EXISTS { (:Conversation)-[:HAS_BRANCH]->(a) } THEN a.from_turn END ORDER BY length(path)
        """
        rows = await self._connection.rows(
            _MATCH + LOCK + ask if self._connection.locks else _MATCH + ask,
            workspace=self._workspace,
            conversation_id=conversation_id,
            depth=BRANCH_DEPTH_MAX,
        )
        return [Link(conversation_id=row[0], from_turn=row[1]) for row in rows]

    async def projects(self) -> list[Project]:
        """Return the projects of the workspace by name."""
        rows = await self._connection.rows(
            "MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->(p) RETURN properties(p) ORDER BY p.name, p.uuid",
            workspace=self._workspace,
        )
        with readable():
            return [read(Project, row[0]) for row in rows]

    async def put_project(self, project: Project) -> None:
        """Write a project and its workspace, where they are missing; one that has no folder yet gets the one that is given."""
        await self._connection.run(
            """
            MERGE (w:Workspace {name: $workspace}) ON CREATE SET w.workspace = $workspace
            MERGE (p:Project {workspace: $workspace, uuid: $project.uuid}) ON CREATE SET p += $project
            ON MATCH SET p.root = coalesce(p.root, $project.root)
            MERGE (w)-[:HAS_PROJECT]->(p)
            """,
            workspace=self._workspace,
            project=written(project, project_id=project.id),
        )

    async def create(self, held: Held) -> None:
        """Write a new conversation of a project that is there."""
        await self._connection.run(
            """
            MATCH (p:Project {workspace: $workspace, uuid: $properties.project_id})
            CREATE (p)-[:HAS_CONVERSATION]->(c:Conversation {workspace: $workspace, own_turns: 0, own_passages: 0, own_terms: 0})
            SET c += $properties
            WITH c MATCH (parent:Conversation {workspace: $workspace, uuid: $parent_id})
            CREATE (parent)-[:HAS_BRANCH {from_turn: c.from_turn}]->(c)
            """,
            workspace=self._workspace,
            properties=conversation_properties(held),
            parent_id=held.parent_id,
        )

    async def update(self, held: Held) -> None:
        """Write a conversation as it is now, its parent included."""
        await self._connection.run(
            _MATCH
            + """
            SET c += $properties
            WITH c
            CALL (c) { MATCH (:Conversation)-[b:HAS_BRANCH]->(c) DELETE b }
            WITH c MATCH (parent:Conversation {workspace: $workspace, uuid: $parent_id})
            CREATE (parent)-[:HAS_BRANCH {from_turn: c.from_turn}]->(c)
            """,
            workspace=self._workspace,
            conversation_id=held.conversation.id,
            properties=conversation_properties(held),
            parent_id=held.parent_id,
        )

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation with its summaries, insights and passages; its turns are gone already."""
        await self._connection.run(
            _MATCH
            + """
            CALL (c) { MATCH (c)-[:HAS_SUMMARY]->(s) OPTIONAL MATCH (s)-[:HAS_PASSAGE]->(p) DETACH DELETE p, s }
            CALL (c) { MATCH (c)-[:HAS_INSIGHT]->(i) DETACH DELETE i }
            CALL (c) { UNWIND ['embed', 'summarize'] AS kind MATCH (j:Job {workspace: c.workspace, uuid: c.uuid + ':' + kind}) DELETE j }
            CALL (c) { MATCH (c)-[:HAS_PASSAGE]->(p) DETACH DELETE p }
            DETACH DELETE c
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
        )

    async def drop_unused(self, project_ids: list[str]) -> None:
        """Delete those of some projects, which are locked, and of their code files, that nothing names any more."""
        await self._connection.run(
            """
            MATCH (f:CodeFile) WHERE f.workspace = $workspace AND f.project_id IN $project_ids AND NOT (f)--() AND f.indexed_hash IS NULL
            DELETE f
            """,
            workspace=self._workspace,
            project_ids=project_ids,
        )
        await self._connection.run(
            """
            MATCH (p:Project) WHERE p.workspace = $workspace AND p.uuid IN $project_ids AND NOT (p)-[:HAS_CONVERSATION]->()
                AND NOT EXISTS { MATCH (s:Scope) WHERE s.workspace = $workspace AND s.project_id = p.uuid AND s.name IS NOT NULL }
            DETACH DELETE p
            """,
            workspace=self._workspace,
            project_ids=project_ids,
        )
