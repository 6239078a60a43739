"""Turns → the parameters of one query that writes them, with all their nodes and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from recollect.identity import part_identity
from recollect.quoting import passage_text
from recollect.store.neo4j.rows import Properties, code_file_id, scope_term, written

if TYPE_CHECKING:
    from recollect.model import ToolCall, Turn
    from recollect.store.shapes import StoredTurn

INSERT: LiteralString = """
    MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})
    SET c.own_turns = c.own_turns + size($turns), c.own_passages = c.own_passages + $passages, c.own_terms = c.own_terms + $terms
    FOREACH (advance IN $advance | SET
        c.turn_count = c.turn_count + advance.turns, c.message_count = c.message_count + advance.messages,
        c.next_index = c.next_index + advance.turns, c.next_sequence = c.next_sequence + advance.messages,
        c.updated_at = advance.at, c.last_message = coalesce(advance.last_message, c.last_message))
    WITH c
    CALL () {
        UNWIND $files AS row
        MERGE (f:CodeFile {workspace: $workspace, uuid: row.uuid})
        ON CREATE SET f += row ON MATCH SET f.language = coalesce(f.language, row.language)
    }
    UNWIND $turns AS row
    CREATE (t:Turn:Request) SET t = row.turn
    CREATE (c)-[:HAS_TURN {index: t.index}]->(t)
    WITH c, t, row
    CALL (c, t, row) {
        UNWIND row.messages AS one
        CREATE (m:Message) SET m = one
        CREATE (c)-[:HAS_MESSAGE]->(m), (t)-[:CONTAINS_MESSAGE]->(m)
    }
    CALL (t, row) {
        UNWIND row.calls AS one
        CREATE (t)-[:HAS_TOOL_CALL {order: one.call.order}]->(k:ToolCall) SET k = one.call
        FOREACH (result IN one.results | CREATE (k)-[:PRODUCED_RESULT]->(r:ToolResult) SET r = result)
        WITH k, one
        CALL (k, one) {
            UNWIND one.accessed AS access
            MATCH (f:CodeFile {workspace: $workspace, uuid: access.file})
            CREATE (k)-[a:ACCESSED]->(f) SET a = access.edge
        }
        WITH k
        MATCH (m:Message {workspace: $workspace, uuid: k.message_id})
        CREATE (m)-[:MADE_TOOL_CALL {order: k.order}]->(k), (m)-[:INVOKES_TOOL {order: k.order}]->(k)
    }
    CALL (t, row) {
        UNWIND row.context_files AS one
        MATCH (f:CodeFile {workspace: $workspace, uuid: one.file})
        CREATE (t)-[:USES_CONTEXT]->(x:ContextFile)-[:READS_FROM]->(f) SET x = one.properties
    }
    CALL (row) {
        UNWIND row.changes AS one
        MATCH (f:CodeFile {workspace: $workspace, uuid: one.file})
        CREATE (x:CodeChange)-[:CHANGES]->(f) SET x = one.properties
        WITH x, one
        MATCH (k:ToolCall {workspace: $workspace, uuid: one.call})
        CREATE (k)-[:CREATES_CHANGE]->(x)
    }
    CALL (t, row) {
        UNWIND row.checkpoints AS one
        CREATE (t)-[:HAS_CHECKPOINT]->(x:Checkpoint) SET x = one
    }
    CALL (t, row) {
        UNWIND row.passages AS one
        CREATE (t)-[:HAS_PASSAGE]->(p:Passage) SET p = one
    }
"""

FOLLOW: LiteralString = """
    UNWIND $checkpoints AS id
    MATCH (x:Checkpoint {workspace: $workspace, uuid: id})
    CALL (x) {
        MATCH (before:Checkpoint {workspace: $workspace, project_id: x.project_id, checkpoint_id: x.parent_checkpoint})
        WHERE before <> x
        WITH before ORDER BY before.conversation_id = x.conversation_id DESC, before.timestamp DESC LIMIT 1
        MERGE (x)-[:FOLLOWS]->(before)
    }
    CALL (x) {
        MATCH (after:Checkpoint {workspace: $workspace, project_id: x.project_id, parent_checkpoint: x.checkpoint_id})
        WHERE after <> x AND NOT EXISTS { (after)-[:FOLLOWS]->() }
        MERGE (after)-[:FOLLOWS]->(x)
    }
"""


class Batch:
    """Turns of one conversation as parameters of `INSERT`."""

    def __init__(self, workspace: str, project_id: str, write_id: str) -> None:
        self._workspace = workspace
        self._shared = {"workspace": workspace, "project_id": project_id}
        self._project_id = project_id
        self._write_id = write_id
        self._files: dict[str, Properties] = {}
        self.turns: list[dict[str, Any]] = []
        self.checkpoints: list[str] = []
        self.passages = 0
        self.terms = 0

    @property
    def files(self) -> list[Properties]:
        """The code files that are named, in one order for all writers, so that two do not wait for each other."""
        return [self._files[key] for key in sorted(self._files)]

    def add(self, stored: StoredTurn) -> None:
        """Add a turn with all its parts."""
        turn = stored.turn
        own = {**self._shared, "conversation_id": turn.conversation_id}
        calls = {call.tool_call_id: call.id for call in reversed(turn.tool_calls) if call.tool_call_id is not None}
        self.turns.append({
            "turn": written(
                turn, **self._shared, checksum=stored.checksum, timestamp=turn.started_at or turn.ended_at, write_id=self._write_id
            ),
            "messages": [written(message, **own) for message in turn.messages],
            "calls": [self._call(call, turn) for call in turn.tool_calls],
            "context_files": [
                {"file": self._file(part.file_path, part.language), "properties": written(part, **own, order=n)}
                for n, part in enumerate(turn.context_files)
            ],
            "changes": [
                {
                    "file": self._file(part.file_path, part.language),
                    "call": calls.get(part.tool_call_id or ""),
                    "properties": written(part, **own, turn_id=turn.id, order=n),
                }
                for n, part in enumerate(turn.changes)
            ],
            "checkpoints": [written(part, **own, order=n) for n, part in enumerate(turn.checkpoints)],
            "passages": self._passages(stored),
        })  # fmt: skip
        self.checkpoints += [part.id for part in turn.checkpoints]

    def _file(self, path: str, language: str | None) -> str:
        own_id = code_file_id(self._workspace, self._project_id, path)
        known = self._files.setdefault(own_id, {**self._shared, "uuid": own_id, "file_path": path})
        if language is not None:
            known.setdefault("language", language)
        return own_id

    def _call(self, call: ToolCall, turn: Turn) -> dict[str, Any]:
        own = {**self._shared, "conversation_id": turn.conversation_id}
        success = None if call.status == "unknown" else call.status == "success"
        result = [] if call.result is None else [written(call.result, **own, tool_call_id=call.tool_call_id)]
        accessed = [
            {
                "file": self._file(one.path, None),
                "edge": {"position": n, "kind": one.kind, "temporary": one.temporary, "generated": one.generated},
            }
            for n, one in enumerate(call.accessed)
        ]
        return {"call": written(call, **own, success=success), "results": result, "accessed": accessed}

    def _passages(self, stored: StoredTurn) -> list[Properties]:
        turn = stored.turn
        scope = " ".join(
            scope_term(self._workspace, kind, name)
            for kind, name in (("workspace", ""), ("project", self._project_id), ("conversation", turn.conversation_id))
        )
        found: list[Properties] = []
        for n, passage in enumerate(stored.passages):
            length = passage.terms.count(" ") + 1
            found.append(
                written(
                    passage, **self._shared, uuid=part_identity("passage", turn.id, n), conversation_id=turn.conversation_id,
                    turn_id=turn.id, turn_index=turn.index, order=n, length=length, scope=scope, text=passage_text(turn, passage),
                )
            )  # fmt: skip
            self.terms += length
        self.passages += len(found)
        return found
