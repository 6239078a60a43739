"""Turns and all their parts in Neo4j: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

import msgspec

from recollect.answers import AccessedFile
from recollect.clock import from_iso
from recollect.limits import INTEGER_MAX
from recollect.model import NOT_RECORDED_TAG, Passage
from recollect.placing import Head
from recollect.store.neo4j.conversations import LOCK
from recollect.store.neo4j.insights import RETIRE_INSIGHTS
from recollect.store.neo4j.jobs import PUT_JOB
from recollect.store.neo4j.rows import DELETE_SUMMARIES, RETURN_TURN, read, readable, stored_turn
from recollect.store.neo4j.writing import FOLLOW, INSERT, PRUNE, Batch
from recollect.store.recording import KnownTurn, Situation
from recollect.store.shapes import Count, PlacedCall, Question, TurnOutline, TurnSize

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.neo4j.database import Connection
    from recollect.store.shapes import Advance, CallFilter, Span, StoredTurn

_TURNS_PER_QUERY = 50
_SPAN: LiteralString = """
    MATCH (t:Turn) WHERE t.workspace = $workspace AND t.conversation_id = $conversation_id AND t.index >= $first AND t.index <= $last
"""
_FIRST: LiteralString = "WITH t ORDER BY t.index LIMIT $limit\n"
_NEWEST: LiteralString = "WITH t ORDER BY t.index DESC LIMIT $limit\n"


class Neo4jTurns:
    """The `TurnRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace
        self._projects: dict[str, str] = {}

    async def situation(self, conversation_id: str, request_id: str | None, cut_from: int | None) -> Situation | None:
        """Return what a recording is decided by, in one query that also keeps others from writing to the project."""
        row = await self._connection.row(
            "MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})\n"
            + LOCK
            + """
            RETURN c.next_index, c.next_sequence, c.project_id, $silent IN c.tags,
                COLLECT {
                    MATCH (t:Turn {workspace: $workspace, project_id: c.project_id, request_id: $request_id})
                    RETURN [
                        t.uuid, t.conversation_id, t.index, t.content_hash,
                        COUNT { (t)-[:CONTAINS_MESSAGE]->() }, [(t)-[:CONTAINS_MESSAGE]->(m) | m.sequence]
                    ] ORDER BY t.request_ordinal, t.conversation_id
                },
                CASE WHEN EXISTS { (:Conversation)-[:HAS_BRANCH]->(c) } THEN c.from_turn ELSE -1 END,
                [(c)-[b:HAS_BRANCH]->(:Conversation) | b.from_turn],
                COLLECT {
                    MATCH (t:Turn) WHERE t.workspace = $workspace AND t.conversation_id = $conversation_id AND t.index >= $cut_from
                    MATCH (t)-[:CONTAINS_MESSAGE]->(m) RETURN min(m.sequence)
                }
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
            request_id=request_id,
            cut_from=cut_from,
            silent=NOT_RECORDED_TAG,
        )
        if row is None:
            return None
        self._projects[conversation_id] = row[2]
        return Situation(
            head=Head(conversation_id=conversation_id, next_index=row[0], next_sequence=row[1]),
            is_silent=bool(row[3]),
            known=tuple(_known(*one) for one in row[4]),
            inherited_to=row[5],
            forked_at=max((fork for fork in row[6] if fork is not None), default=-1),
            cut_sequence=next((sequence for sequence in row[7] if sequence is not None), row[1]),
        )

    async def _asked(self, ask: LiteralString, span: Span) -> list[list[Any]]:
        chosen: LiteralString = _SPAN + _NEWEST if span.newest else _SPAN + _FIRST
        return await self._connection.rows(
            chosen + ask + "ORDER BY t.index",
            workspace=self._workspace,
            conversation_id=span.conversation_id,
            first=span.first,
            last=INTEGER_MAX if span.last is None else span.last,
            limit=INTEGER_MAX if span.limit is None else span.limit,
        )

    async def read(self, span: Span) -> list[StoredTurn]:
        """Return whole turns in index order."""
        return [stored_turn(row) for row in await self._asked(RETURN_TURN, span)]

    async def by_id(self, turn_ids: list[str]) -> list[StoredTurn]:
        """Return whole turns; unknown ones are left out."""
        rows = await self._connection.rows(
            "MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $turn_ids\n" + RETURN_TURN,
            workspace=self._workspace,
            turn_ids=turn_ids,
        )
        return [stored_turn(row) for row in rows]

    async def hashes(self, turn_ids: list[str]) -> dict[str, str]:
        """Return the content hashes of turns."""
        rows = await self._connection.rows(
            "MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $turn_ids RETURN t.uuid, t.content_hash",
            workspace=self._workspace,
            turn_ids=turn_ids,
        )
        return {row[0]: row[1] for row in rows}

    async def passages(self, turn_ids: list[str]) -> dict[str, tuple[Passage, ...]]:
        """Return the passages of turns, in their order."""
        rows = await self._connection.rows(
            """
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $turn_ids
            RETURN t.uuid, COLLECT { MATCH (t)-[:HAS_PASSAGE]->(p) RETURN properties(p) ORDER BY p.order }
            """,
            workspace=self._workspace,
            turn_ids=turn_ids,
        )
        with readable():
            return {row[0]: tuple(read(Passage, one) for one in row[1]) for row in rows}

    async def outline(self, span: Span) -> list[TurnOutline]:
        """Return turns in outline, in index order."""
        rows = await self._asked(
            """
            RETURN t.uuid, t.conversation_id, t.index, t.request_id, t.content_hash,
                COUNT { (t)-[:HAS_TOOL_CALL]->() } + COUNT { (t)-[:HAS_TOOL_CALL]->()-[:PRODUCED_RESULT]->() },
                COLLECT {
                    MATCH (t)-[:CONTAINS_MESSAGE]->(m) WHERE NOT m.role IN ['system', 'developer']
                    RETURN [m.role, m.content_hash] ORDER BY m.sequence
                }
            """,
            span,
        )
        return [
            TurnOutline(
                id=row[0], conversation_id=row[1], index=row[2], request_id=row[3], content_hash=row[4], steps=row[5],
                said=tuple((role, content_hash) for role, content_hash in row[6]),
            )
            for row in rows
        ]  # fmt: skip

    async def calls(self, span: Span, where: CallFilter) -> list[PlacedCall]:
        """Return where tool calls stand, newest first."""
        rows = await self._connection.rows(
            _SPAN
            + """
            MATCH (t)-[:HAS_TOOL_CALL]->(k)
            WHERE ($tool_name IS NULL OR k.tool_name = $tool_name) AND ($success IS NULL OR k.success = $success)
            RETURN t.index, k.order ORDER BY t.index DESC, k.order DESC LIMIT $limit
            """,
            workspace=self._workspace,
            conversation_id=span.conversation_id,
            first=span.first,
            last=INTEGER_MAX if span.last is None else span.last,
            tool_name=where.tool_name,
            success=where.success,
            limit=where.limit,
        )
        return [PlacedCall(turn_index=row[0], order=row[1]) for row in rows]

    async def questions(self, span: Span) -> list[Question]:
        """Return what users said, newest first."""
        rows = await self._connection.rows(
            _SPAN
            + """
            MATCH (t)-[:CONTAINS_MESSAGE]->(m {role: 'user'})
            RETURN t.index, m.uuid, coalesce(m.content, m.content_summary), toString(m.timestamp)
            ORDER BY t.index DESC, m.sequence DESC LIMIT $limit
            """,
            workspace=self._workspace,
            conversation_id=span.conversation_id,
            first=span.first,
            last=INTEGER_MAX if span.last is None else span.last,
            limit=INTEGER_MAX if span.limit is None else span.limit,
        )
        return [
            Question(
                conversation_id=span.conversation_id, turn_index=row[0], message_id=row[1], text=row[2],
                at=None if row[3] is None else from_iso(row[3]),
            )
            for row in rows
        ]  # fmt: skip

    async def accesses(self, span: Span) -> list[AccessedFile]:
        """Return the latest access to each path, newest first."""
        rows = await self._connection.rows(
            _SPAN
            + """
            MATCH (t)-[:HAS_TOOL_CALL]->(k)-[a:ACCESSED]->(f:CodeFile)
            WITH f, t, k, a ORDER BY t.index DESC, k.order DESC, a.position DESC
            WITH f, head(collect([
                t.index, k.order, a.position, a.kind, k.tool_name, toString(k.timestamp), a.temporary, a.generated
            ])) AS one
            RETURN f.file_path, one ORDER BY one[0] DESC, one[1] DESC, one[2] DESC
            """,
            workspace=self._workspace,
            conversation_id=span.conversation_id,
            first=span.first,
            last=INTEGER_MAX if span.last is None else span.last,
        )
        return [
            AccessedFile(
                path=path, kind=one[3], tool_name=one[4], turn_index=one[0], timestamp=None if one[5] is None else from_iso(one[5]),
                temporary=bool(one[6]), generated=bool(one[7]),
            )
            for path, one in rows
        ]  # fmt: skip

    async def count(self, span: Span) -> Count:
        """Count what a span holds."""
        row = await self._connection.row(
            _SPAN
            + """
            OPTIONAL MATCH (t)-[:CONTAINS_MESSAGE]->(m)
            RETURN count(DISTINCT t), count(m), coalesce(max(t.index), -1) + 1, coalesce(max(m.sequence), -1) + 1
            """,
            workspace=self._workspace,
            conversation_id=span.conversation_id,
            first=span.first,
            last=INTEGER_MAX if span.last is None else span.last,
        ) or [0, 0, 0, 0]
        return Count(turns=row[0], messages=row[1], next_index=row[2], next_sequence=row[3])

    async def ended_before(self, moment: datetime, project_ids: tuple[str, ...] | None) -> list[tuple[str, str]]:
        """Return the turns that ended before a moment, each with its conversation."""
        rows = await self._connection.rows(
            """
            MATCH (:Workspace {name: $workspace})-[:HAS_PROJECT]->(p) WHERE $project_ids IS NULL OR p.uuid IN $project_ids
            WITH p ORDER BY p.uuid
            SET p.name = p.name
            WITH p MATCH (p)-[:HAS_CONVERSATION]->(c)-[:HAS_TURN]->(t) WHERE coalesce(t.ended_at, t.started_at) < $moment
            RETURN t.uuid, c.uuid
            """,
            workspace=self._workspace,
            project_ids=None if project_ids is None else list(project_ids),
            moment=moment,
        )
        return [(row[0], row[1]) for row in rows]

    async def insert(self, conversation_id: str, turns: list[StoredTurn], advance: Advance | None) -> None:
        """Write turns with all their parts and passages, in the place of those with their ids."""
        unit = self._connection.unit
        unit.wrote_to.add((self._workspace, conversation_id))
        project_id = await self._project(conversation_id)
        adds = [] if advance is None else [msgspec.structs.asdict(advance)]
        turn_ids = [stored.turn.id for stored in turns]
        files: list[str] = []
        if advance is None:
            await self._retire(turn_ids)
            files = await self._files_of(turn_ids)
        for start in range(0, len(turns), _TURNS_PER_QUERY):
            batch = Batch(self._workspace, project_id, unit.id)
            for stored in turns[start : start + _TURNS_PER_QUERY]:
                batch.add(stored)
            if advance is None:
                await self._connection.run(PRUNE, workspace=self._workspace, turns=batch.kept)
            await self._connection.run(
                INSERT,
                workspace=self._workspace,
                conversation_id=conversation_id,
                turns=batch.turns,
                files=batch.files,
                passages=batch.passages,
                terms=batch.terms,
                advance=adds if start == 0 else [],
            )
            if batch.checkpoints:
                await self._connection.run(FOLLOW, workspace=self._workspace, checkpoints=batch.checkpoints)
        await self._sweep(files)

    async def _retire(self, turn_ids: list[str]) -> None:
        """Delete the summaries and insights that tell of turns."""
        await self._connection.run(
            RETIRE_INSIGHTS
            + "MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $turn_ids MATCH (s:Summary)-[:SUMMARIZES*]->(t)\n"
            + DELETE_SUMMARIES,
            workspace=self._workspace,
            turn_ids=turn_ids,
        )

    async def _files_of(self, turn_ids: list[str]) -> list[str]:
        """Return the files that turns name."""
        rows = await self._connection.rows(
            """
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.uuid IN $turn_ids
            CALL (t) {
                MATCH (t)-[:HAS_TOOL_CALL]->()-[:ACCESSED]->(f) RETURN f
                UNION MATCH (t)-[:USES_CONTEXT]->()-[:READS_FROM]->(f) RETURN f
                UNION MATCH (:CodeChange {workspace: $workspace, turn_id: t.uuid})-[:CHANGES]->(f) RETURN f
            }
            RETURN DISTINCT f.uuid
            """,
            workspace=self._workspace,
            turn_ids=turn_ids,
        )
        return [row[0] for row in rows]

    async def _sweep(self, file_ids: list[str]) -> None:
        """Delete those of some files that nothing names any more: a path can be a secret, too."""
        if file_ids:
            await self._connection.run(
                """
                MATCH (f:CodeFile) WHERE f.workspace = $workspace AND f.uuid IN $file_ids AND NOT (f)--() AND f.indexed_hash IS NULL
                DELETE f
                """,
                workspace=self._workspace,
                file_ids=file_ids,
            )

    async def _project(self, conversation_id: str) -> str:
        if conversation_id not in self._projects:
            row = await self._connection.row(
                "MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id}) RETURN c.project_id",
                workspace=self._workspace,
                conversation_id=conversation_id,
            )
            self._projects[conversation_id] = "" if row is None else row[0]
        return self._projects[conversation_id]

    async def delete(self, turn_ids: list[str], *, keep_summaries: bool = False) -> None:
        """Delete turns with all their parts, and the summaries, of any level, that tell of them."""
        if not keep_summaries:
            await self._retire(turn_ids)
        files = await self._files_of(turn_ids)
        for start in range(0, len(turn_ids), _TURNS_PER_QUERY):
            await self._connection.run(
                """
                UNWIND $turn_ids AS id
                MATCH (t:Turn {workspace: $workspace, uuid: id})
                CALL (t) {
                    MATCH (c:Conversation {workspace: $workspace, uuid: t.conversation_id})
                    OPTIONAL MATCH (t)-[:HAS_PASSAGE]->(p)
                    WITH c, count(p) AS passages, sum(p.length) AS terms
                    SET c.own_turns = c.own_turns - 1, c.own_passages = c.own_passages - passages, c.own_terms = c.own_terms - terms
                }
                CALL (t) { MATCH (t)-[:HAS_TOOL_CALL]->(k) OPTIONAL MATCH (k)-[:PRODUCED_RESULT]->(r) DETACH DELETE r, k }
                CALL (t) { MATCH (x:CodeChange {workspace: $workspace, turn_id: t.uuid}) DETACH DELETE x }
                CALL (t) { MATCH (t)-[:CONTAINS_MESSAGE|USES_CONTEXT|HAS_CHECKPOINT|HAS_PASSAGE]->(part) DETACH DELETE part }
                WITH t, t.conversation_id AS conversation_id
                DETACH DELETE t
                WITH DISTINCT conversation_id
                MATCH (c:Conversation {workspace: $workspace, uuid: conversation_id})
                UNWIND ['embed', 'summarize'] AS kind
                WITH c, kind, c.updated_at AS since
                """
                + PUT_JOB,
                workspace=self._workspace,
                turn_ids=turn_ids[start : start + _TURNS_PER_QUERY],
            )
        await self._sweep(files)

    async def sizes(self, span: Span) -> list[TurnSize]:
        """Return turns as planning sees them, in index order."""
        rows = await self._asked("RETURN t.uuid, t.index, t.char_count, COUNT { (t)-[:CONTAINS_MESSAGE]->() }, t.status = 'open'\n", span)
        return [TurnSize(*row) for row in rows]

    async def shift(self, conversation_id: str, after: int, by: int) -> None:
        """Move the sequences of the messages after a turn."""
        await self._connection.run(
            """
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.conversation_id = $conversation_id AND t.index > $after
            MATCH (t)-[:CONTAINS_MESSAGE]->(m) SET m.sequence = m.sequence + $by
            """,
            workspace=self._workspace,
            conversation_id=conversation_id,
            after=after,
            by=by,
        )


def _known(turn_id: str, conversation_id: str, index: int, content_hash: str, messages: int, sequences: list[int]) -> KnownTurn:
    return KnownTurn(
        id=turn_id,
        conversation_id=conversation_id,
        index=index,
        content_hash=content_hash,
        sequence=min(sequences, default=0),
        message_count=messages,
    )
