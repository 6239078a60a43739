"""Questions about the Neo4j store itself: counts, kept hashes, damage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, LiteralString

from recollect.answers import Damage, Stats
from recollect.model import Insight, Scope, Summary
from recollect.store.neo4j.insights import RETURN_INSIGHT
from recollect.store.neo4j.migrations import INDEXES
from recollect.store.neo4j.rows import RETURN_CONVERSATION, RETURN_SUMMARY, RETURN_TURN, Properties, held_of, read_derived, stored_turn
from recollect.store.shapes import DerivedKind, HashRecord, RecordKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.store.neo4j.database import Connection
    from recollect.store.shapes import Held, StoredTurn

_KEYS: dict[DerivedKind, LiteralString] = {
    "summary": "MATCH (n:Summary) WHERE n.workspace = $workspace AND n.uuid > $after\n",
    "insight": "MATCH (n:Insight) WHERE n.workspace = $workspace AND n.uuid > $after\n",
    "scope": "MATCH (n:Scope) WHERE n.workspace = $workspace AND n.uuid > $after\n",
}
_IN_PAGES: LiteralString = "RETURN n.uuid, coalesce(n.conversation_id, '') ORDER BY n.uuid LIMIT $limit"
_READ: dict[DerivedKind, tuple[LiteralString, Callable[[Properties], object]]] = {
    "summary": (
        "MATCH (s:Summary) WHERE s.workspace = $workspace AND s.uuid IN $keys\n" + RETURN_SUMMARY,
        partial(read_derived, Summary),
    ),
    "insight": (
        "MATCH (i:Insight) WHERE i.workspace = $workspace AND i.uuid IN $keys\n" + RETURN_INSIGHT,
        partial(read_derived, Insight),
    ),
    "scope": (
        "MATCH (s:Scope) WHERE s.workspace = $workspace AND s.uuid IN $keys RETURN properties(s)",
        partial(read_derived, Scope),
    ),
}


class Neo4jAudit:
    """The `AuditRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def stats(self) -> Stats:
        """Count what the workspace holds."""
        rows = await self._connection.rows(
            """
            MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->()-[:HAS_CONVERSATION]->(c)
            RETURN count(c), sum(c.own_turns), sum(COUNT { (c)-[:HAS_MESSAGE]->() }),
                sum(COUNT { (c)-[:HAS_TURN]->()-[:HAS_TOOL_CALL]->() }), sum(c.own_passages),
                sum(COUNT { MATCH (p:Passage) WHERE p.workspace = $workspace AND p.conversation_id = c.uuid AND p.turn_index >= 0
                    AND p.embedding_model IS NOT NULL })
            """,
            workspace=self._workspace,
        )
        levels = await self._connection.rows(
            """
            MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->()-[:HAS_CONVERSATION]->()-[:HAS_SUMMARY]->(s)
            RETURN s.level, count(s) ORDER BY s.level
            """,
            workspace=self._workspace,
        )
        return Stats(
            workspace=self._workspace,
            store="",
            conversations=rows[0][0],
            turns=rows[0][1],
            messages=rows[0][2],
            tool_calls=rows[0][3],
            passages=rows[0][4],
            embedded=rows[0][5],
            summaries={str(level): count for level, count in levels},
        )

    async def hashes(self, record_id: str) -> list[HashRecord]:
        """Return the hashes kept for a record; for a turn those of its messages, for a call those of its arguments and its result."""
        rows = await self._connection.rows(
            """
            CALL () {
                MATCH (n:Message {workspace: $workspace, uuid: $id})
                RETURN 'message' AS kind, n.content_hash AS own, n.source_hash AS given, 0 AS place, n.content IS NOT NULL AS whole
                UNION ALL MATCH (:Turn {workspace: $workspace, uuid: $id})-[:CONTAINS_MESSAGE]->(n)
                RETURN 'message' AS kind, n.content_hash AS own, n.source_hash AS given, n.sequence AS place,
                    n.content IS NOT NULL AS whole
                UNION ALL MATCH (n:ToolResult {workspace: $workspace, uuid: $id})
                RETURN 'tool_result' AS kind, n.content_hash AS own, n.source_hash AS given, 0 AS place, true AS whole
                UNION ALL MATCH (n:ToolCall {workspace: $workspace, uuid: $id})
                RETURN 'tool_call' AS kind, n.arguments_hash AS own, n.source_hash AS given, 0 AS place, true AS whole
                UNION ALL MATCH (c:ToolCall {workspace: $workspace, uuid: $id}) OPTIONAL MATCH (c)-[:PRODUCED_RESULT]->(n)
                RETURN 'tool_result' AS kind, n.content_hash AS own, n.source_hash AS given, 1 AS place, true AS whole
                UNION ALL MATCH (n:ContextFile {workspace: $workspace, uuid: $id})
                RETURN 'context_file' AS kind, n.content_hash AS own, n.content_hash AS given, 0 AS place, true AS whole
                UNION ALL MATCH (n:CodeChange {workspace: $workspace, uuid: $id})
                RETURN 'code_change' AS kind, n.code_after_hash AS own, n.code_after_hash AS given, 0 AS place, true AS whole
            }
            RETURN kind, own, given, whole ORDER BY place
            """,
            workspace=self._workspace,
            id=record_id,
        )
        return [HashRecord(kind=row[0], content_hash=row[1], source_hash=row[2], whole=row[3]) for row in rows]

    async def conversations(self) -> list[RecordKey]:
        """Return every conversation to be checked."""
        rows = await self._connection.rows(
            "MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->()-[:HAS_CONVERSATION]->(c) RETURN c.uuid ORDER BY c.uuid",
            workspace=self._workspace,
        )
        return [RecordKey(key=row[0], id=row[0], conversation_id=row[0]) for row in rows]

    async def turns(self, after: int | str | None, limit: int) -> list[RecordKey]:
        """Return the next turns to be checked, in the order of their keys."""
        rows = await self._connection.rows(
            """
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid > $after
            RETURN t.uuid, t.conversation_id ORDER BY t.uuid LIMIT $limit
            """,
            workspace=self._workspace,
            after=after or "",
            limit=limit,
        )
        return [RecordKey(key=row[0], id=row[0], conversation_id=row[1]) for row in rows]

    async def conversation(self, key: int | str) -> Held | None:
        """Read one conversation by its key."""
        row = await self._connection.row(
            "MATCH (c:Conversation {workspace: $workspace, uuid: $key})\n" + RETURN_CONVERSATION, workspace=self._workspace, key=key
        )
        return None if row is None else held_of(row)

    async def read(self, keys: list[int | str]) -> list[StoredTurn]:
        """Read turns by their keys."""
        rows = await self._connection.rows(
            "MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $keys\n" + RETURN_TURN, workspace=self._workspace, keys=keys
        )
        return [stored_turn(row) for row in rows]

    async def derived(self, kind: DerivedKind, after: int | str | None, limit: int) -> list[RecordKey]:
        """Return the next summaries, insights or scopes to be checked, in the order of their keys."""
        rows = await self._connection.rows(_KEYS[kind] + _IN_PAGES, workspace=self._workspace, after=after or "", limit=limit)
        return [RecordKey(key=row[0], id=row[0], conversation_id=row[1]) for row in rows]

    async def read_derived(self, kind: DerivedKind, keys: list[int | str]) -> None:
        """Read summaries, insights or scopes by their keys."""
        query, read = _READ[kind]
        for row in await self._connection.rows(query, workspace=self._workspace, keys=keys):
            read(row[0])


async def index_damage(connection: Connection) -> list[Damage]:
    """Ask the server which of the indexes are not in use."""
    rows = await connection.rows("SHOW INDEXES YIELD name, state RETURN name, state")
    state = {row[0]: str(row[1]).lower() for row in rows}
    return [
        Damage(kind="index", id=name, reason=f"the index is {state.get(name, 'missing')}, not online")
        for name in INDEXES
        if state.get(name) != "online"
    ]
