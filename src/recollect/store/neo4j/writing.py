"""Turns → the parameters of one query that writes them, with all their nodes and edges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from recollect.identity import part_identity
from recollect.quoting import passage_text, summary_text
from recollect.store.neo4j.jobs import PUT_JOB
from recollect.store.neo4j.rows import Properties, code_file_id, scope_term, written

if TYPE_CHECKING:
    from recollect.model import Passage, Summary, ToolCall, Turn
    from recollect.store.shapes import StoredTurn

INSERT: LiteralString = (
    """
    MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})
    SET c.own_turns = c.own_turns + size($turns), c.own_passages = c.own_passages + $passages, c.own_terms = c.own_terms + $terms
    FOREACH (advance IN $advance | SET
        c.turn_count = c.turn_count + advance.turns, c.message_count = c.message_count + advance.messages,
        c.next_index = c.next_index + advance.turns, c.next_sequence = c.next_sequence + advance.messages,
        c.updated_at = advance.at, c.last_message = coalesce(advance.last_message, c.last_message))
    WITH c
    CALL (c) {
        UNWIND ['embed', 'summarize'] AS kind
        WITH c, kind, c.updated_at AS since
"""
    + PUT_JOB
    + """
    }
    CALL () {
        UNWIND $files AS row
        MERGE (f:CodeFile {workspace: $workspace, uuid: row.uuid})
        ON CREATE SET f += row ON MATCH SET f.language = coalesce(f.language, row.language)
    }
    UNWIND $turns AS row
    MERGE (t:Turn {workspace: $workspace, uuid: row.turn.uuid}) SET t:Request, t = row.turn
    MERGE (c)-[h:HAS_TURN]->(t) SET h.index = t.index
    WITH c, t, row
    CALL (c, t, row) {
        UNWIND row.messages AS one
        MERGE (m:Message {workspace: $workspace, uuid: one.uuid}) SET m = one
        MERGE (c)-[:HAS_MESSAGE]->(m)
        MERGE (t)-[:CONTAINS_MESSAGE]->(m)
    }
    CALL (t, row) {
        UNWIND row.calls AS one
        MERGE (k:ToolCall {workspace: $workspace, uuid: one.call.uuid}) SET k = one.call
        MERGE (t)-[h:HAS_TOOL_CALL]->(k) SET h.order = k.order
        WITH k, one
        CALL (k, one) {
            UNWIND one.results AS result
            MERGE (r:ToolResult {workspace: $workspace, uuid: result.uuid}) SET r = result
            MERGE (k)-[:PRODUCED_RESULT]->(r)
        }
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
        MERGE (x:ContextFile {workspace: $workspace, uuid: one.properties.uuid}) SET x = one.properties
        MERGE (t)-[:USES_CONTEXT]->(x)
        CREATE (x)-[:READS_FROM]->(f)
    }
    CALL (row) {
        UNWIND row.changes AS one
        MATCH (f:CodeFile {workspace: $workspace, uuid: one.file})
        MERGE (x:CodeChange {workspace: $workspace, uuid: one.properties.uuid}) SET x = one.properties
        CREATE (x)-[:CHANGES]->(f)
        WITH x, one
        MATCH (k:ToolCall {workspace: $workspace, uuid: one.call})
        CREATE (k)-[:CREATES_CHANGE]->(x)
    }
    CALL (t, row) {
        UNWIND row.checkpoints AS one
        MERGE (x:Checkpoint {workspace: $workspace, uuid: one.uuid}) SET x = one
        MERGE (t)-[:HAS_CHECKPOINT]->(x)
    }
    CALL (t, row) {
        UNWIND row.passages AS one
        MERGE (p:Passage {workspace: $workspace, uuid: one.uuid}) SET p = one
        MERGE (t)-[:HAS_PASSAGE]->(p)
    }
"""
)

# what a turn that is written again no longer has; its nodes that stay are changed in place, so that no reader misses them
PRUNE: LiteralString = """
    UNWIND $turns AS row
    MATCH (t:Turn {workspace: $workspace, uuid: row.id})
    MATCH (c:Conversation {workspace: $workspace, uuid: t.conversation_id})
    CALL (c, t) {
        OPTIONAL MATCH (t)-[:HAS_PASSAGE]->(p)
        WITH c, count(p) AS passages, sum(p.length) AS terms
        SET c.own_turns = c.own_turns - 1, c.own_passages = c.own_passages - passages, c.own_terms = c.own_terms - terms
    }
    CALL (t) { MATCH (t)-[:CONTAINS_MESSAGE]->()-[edge:MADE_TOOL_CALL|INVOKES_TOOL|REFERENCES_CODE]->() DELETE edge }
    CALL (t) { MATCH (t)-[:HAS_TOOL_CALL]->()-[edge:ACCESSED|CREATES_CHANGE]->() DELETE edge }
    CALL (t) { MATCH (t)-[:USES_CONTEXT]->()-[edge:READS_FROM]->() DELETE edge }
    CALL (t) { MATCH (t)-[:HAS_CHECKPOINT]->(x) MATCH (x)-[edge:FOLLOWS]-() DELETE edge }
    CALL (t) { MATCH (x:CodeChange {workspace: $workspace, turn_id: t.uuid})-[edge:CHANGES]->() DELETE edge }
    CALL (t, row) { MATCH (t)-[:HAS_TOOL_CALL]->()-[:PRODUCED_RESULT]->(r) WHERE NOT r.uuid IN row.keep DETACH DELETE r }
    CALL (t, row) { MATCH (x:CodeChange {workspace: $workspace, turn_id: t.uuid}) WHERE NOT x.uuid IN row.keep DETACH DELETE x }
    CALL (t, row) {
        MATCH (t)-[:CONTAINS_MESSAGE|HAS_TOOL_CALL|USES_CONTEXT|HAS_CHECKPOINT|HAS_PASSAGE]->(part) WHERE NOT part.uuid IN row.keep
        DETACH DELETE part
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
    CALL (x) {
        MATCH (t:Turn)-[:HAS_CHECKPOINT]->(x) WHERE x.parent_checkpoint IS NULL
        MATCH (earlier:Turn {workspace: $workspace, conversation_id: t.conversation_id})-[:HAS_CHECKPOINT]->(before:Checkpoint)
        WHERE (earlier.index < t.index OR (earlier.index = t.index AND before.order < x.order))
            AND (before.workspace_dir = x.workspace_dir OR (before.workspace_dir IS NULL AND x.workspace_dir IS NULL))
        WITH before ORDER BY earlier.index DESC, before.order DESC LIMIT 1
        MERGE (x)-[:FOLLOWS]->(before)
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

    @property
    def kept(self) -> list[dict[str, Any]]:
        """Every turn with the ids of all its parts."""
        return [
            {
                "id": row["turn"]["uuid"],
                "keep": [
                    *(one["uuid"] for name in ("messages", "checkpoints", "passages") for one in row[name]),
                    *(one["properties"]["uuid"] for name in ("context_files", "changes") for one in row[name]),
                    *(one["call"]["uuid"] for one in row["calls"]),
                    *(result["uuid"] for one in row["calls"] for result in one["results"]),
                ],
            }
            for row in self.turns
        ]

    def add(self, stored: StoredTurn) -> None:
        """Add a turn with all its parts."""
        turn = stored.turn
        own = {**self._shared, "conversation_id": turn.conversation_id}
        calls = {call.tool_call_id: call.id for call in reversed(turn.tool_calls) if call.tool_call_id is not None}
        self.turns.append({
            "turn": written(
                turn, **self._shared, checksum=stored.checksum, timestamp=turn.started_at or turn.ended_at, write_id=self._write_id,
                expires_at=stored.expires_at,
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
        shared = {**self._shared, "conversation_id": turn.conversation_id, "owner_id": turn.id, "turn_id": turn.id, "level": 0}
        scope = scope_words(self._workspace, self._project_id, turn.conversation_id)
        found = [
            written(
                passage, **shared, uuid=part_identity("passage", turn.id, n), turn_index=turn.index, order=n, scope=scope,
                length=passage.terms.count(" ") + 1, text=passage_text(turn, passage),
            )
            for n, passage in enumerate(stored.passages)
        ]  # fmt: skip
        self.terms += sum(row["length"] for row in found)
        self.passages += len(found)
        return found


def scope_words(workspace: str, project_id: str, conversation_id: str) -> str:
    """Return the words that say in the full-text index where something belongs."""
    named = (("workspace", ""), ("project", project_id), ("conversation", conversation_id))
    return " ".join(scope_term(workspace, kind, name) for kind, name in named)


def summary_rows(workspace: str, project_id: str, summary: Summary, passages: tuple[Passage, ...]) -> list[Properties]:
    """Return the passages of a summary as properties."""
    text = summary_text(summary)
    shared = {
        "workspace": workspace, "project_id": project_id, "conversation_id": summary.conversation_id, "owner_id": summary.id,
        "level": summary.level, "turn_index": summary.last_turn, "scope": scope_words(workspace, project_id, summary.conversation_id),
    }  # fmt: skip
    return [
        written(
            passage, **shared, uuid=part_identity("passage", summary.id, n), order=n, length=passage.terms.count(" ") + 1,
            text=text[passage.start : passage.end],
        )
        for n, passage in enumerate(passages)
    ]  # fmt: skip
