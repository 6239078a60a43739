"""What the audit asks, in SQLite: changes, context, tools and checkpoints of some projects in a period."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from recollect.clock import iso
from recollect.model import Checkpoint
from recollect.store.sqlite.rows import as_json, moment
from recollect.store.sqlite.tallying import Call, Given, context_uses, newest_failures, source_uses, tool_days, tool_uses
from recollect.store.traced import PlacedChange, PlacedCheckpoint, ToolError

if TYPE_CHECKING:
    from recollect.store.sqlite.database import Connection, Row
    from recollect.store.traced import ContextUse, SourceUse, ToolDay, ToolUse, TraceScope

# Where a question begins decides what it costs: at the files, turns or requests that are asked for, else at the projects. A cross
# join keeps SQLite from beginning elsewhere.
_PROJECTS: LiteralString = """
    from project p cross join conversation c on c.project_pk = p.pk cross join turn t on t.conversation_pk = c.pk
"""
_FILES: LiteralString = """
    from project p cross join json_each(?5) asked cross join code_file f on f.project_pk = p.pk and f.file_path = asked.value
"""
_TURN_OF_X: LiteralString = " cross join turn t on t.pk = x.turn_pk cross join conversation c on c.pk = t.conversation_pk"
_OF_PROJECT: LiteralString = " cross join conversation c on c.pk = t.conversation_pk cross join project p on p.pk = c.project_pk"
_IN_SCOPE: LiteralString = """
    where p.workspace_pk = (select pk from workspace where name = ?1) and (?2 is null or p.uuid in (select value from json_each(?2)))
        and (?3 is null or coalesce(t.ended_at, t.started_at) >= ?3)
        and (?4 is null or coalesce(t.ended_at, t.started_at) < ?4)
"""
_SELECT_CHANGE: LiteralString = """
    select x.uuid, f.file_path, change_type, change_summary, lines_added, lines_removed, t.uuid, c.uuid, turn_index, request_id,
        coalesce(x.timestamp, t.ended_at, t.started_at) as at
"""
_CHANGES: LiteralString = " cross join code_change x on x.turn_pk = t.pk cross join code_file f on f.pk = x.code_file_pk"
_CONTEXT: LiteralString = " cross join context_file x on x.turn_pk = t.pk cross join code_file f on f.pk = x.code_file_pk"
_NEWEST_CHANGES: LiteralString = " order by at desc, c.uuid, turn_index desc, x.pk desc limit ?6"
_USES: LiteralString = """
    select f.file_path, x.source, count(*), count(x.usefulness), sum(x.usefulness), max(x.usefulness),
        max(coalesce(x.timestamp, t.ended_at, t.started_at))
"""
_BY_SOURCE: LiteralString = "group by f.file_path, x.source"


class SqliteTrace:
    """The `TraceRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace
        self._read_calls: dict[TraceScope, list[Call]] = {}
        self._read_context: dict[TraceScope, list[Given]] = {}

    def _scope(self, where: TraceScope) -> tuple[str, str | None, str | None, str | None]:
        return (
            self._workspace,
            None if where.project_ids is None else as_json(where.project_ids),
            None if where.since is None else iso(where.since),
            None if where.until is None else iso(where.until),
        )

    async def paths(self, where: TraceScope, path: str) -> list[str]:
        """Return the paths that are kept as this one, or else those that end with it."""
        rows = self._connection.rows(
            """
            select distinct f.file_path, f.file_path = ?3 from code_file f join project p on p.pk = f.project_pk
            where p.workspace_pk = (select pk from workspace where name = ?1)
                and (?2 is null or p.uuid in (select value from json_each(?2)))
                and (f.file_path = ?3 or substr(f.file_path, -length(?3) - 1) = '/' || ?3)
            order by f.file_path
            """,
            (*self._scope(where)[:2], path),
        )
        return [row[0] for row in rows if row[1]] or [row[0] for row in rows]

    async def renamed(self, where: TraceScope, beginnings: list[str]) -> list[str]:
        """Return the paths that renames gave whose summaries begin like one of these, whenever that was."""
        rows = self._connection.rows(
            """
            select distinct f.file_path from code_change x cross join code_file f on f.pk = x.code_file_pk
                cross join project p on p.pk = f.project_pk
            where x.change_type = 'renamed' and p.workspace_pk = (select pk from workspace where name = ?1)
                and (?2 is null or p.uuid in (select value from json_each(?2)))
                and exists (select 1 from json_each(?3) asked where substr(change_summary, 1, length(asked.value)) = asked.value)
            order by f.file_path
            """,
            (*self._scope(where)[:2], as_json(beginnings)),
        )
        return [row[0] for row in rows]

    async def changes(
        self, where: TraceScope, paths: list[str] | None, limit: int, conversation_id: str | None = None
    ) -> list[PlacedChange]:
        """Return changes, newest first."""
        begin = _PROJECTS + _CHANGES if paths is None else _FILES + "cross join code_change x on x.code_file_pk = f.pk" + _TURN_OF_X
        rows = self._connection.rows(
            _SELECT_CHANGE + begin + _IN_SCOPE + "and (?7 is null or c.uuid = ?7)" + _NEWEST_CHANGES,
            (*self._scope(where), None if paths is None else as_json(paths), limit, conversation_id),
        )
        return [_change(row) for row in rows]

    async def changes_of(self, where: TraceScope, turn_ids: list[str]) -> list[PlacedChange]:
        """Return the changes of turns, newest first."""
        rows = self._connection.rows(
            _SELECT_CHANGE
            + "from json_each(?5) asked cross join turn t on t.uuid = asked.value"
            + _OF_PROJECT
            + _CHANGES
            + _IN_SCOPE
            + _NEWEST_CHANGES,
            (*self._scope(where), as_json(turn_ids), -1),
        )
        return [_change(row) for row in rows]

    async def requests(self, where: TraceScope, request_ids: list[str]) -> list[tuple[str, str]]:
        """Return the turns of requests, each with its request, in their order."""
        rows = self._connection.rows(
            "select t.uuid, request_id from json_each(?5) asked cross join turn t on t.request_id = asked.value"
            + _OF_PROJECT
            + _IN_SCOPE
            + "order by request_id, c.uuid, turn_index",
            (*self._scope(where), as_json(request_ids)),
        )
        return [(row[0], row[1]) for row in rows]

    async def given(self, where: TraceScope, paths: list[str], limit: int) -> list[tuple[str, str, str | None]]:
        """Return the files that turns had as context, each with the turn and its request, newest first."""
        rows = self._connection.rows(
            "select distinct f.file_path, t.uuid, request_id, coalesce(t.ended_at, t.started_at) as at"
            + _FILES
            + "cross join context_file x on x.code_file_pk = f.pk"
            + _TURN_OF_X
            + _IN_SCOPE
            + "order by at desc, t.uuid limit ?6",
            (*self._scope(where), as_json(paths), limit),
        )
        return [(row[0], row[1], row[2]) for row in rows]

    async def context_uses(self, where: TraceScope, paths: list[str] | None) -> list[ContextUse]:
        """Return how files were used as context, the most used first."""
        if paths is None:
            return context_uses(self._given(where))
        rows = self._connection.rows(
            _USES + _FILES + "cross join context_file x on x.code_file_pk = f.pk" + _TURN_OF_X + _IN_SCOPE + _BY_SOURCE,
            (*self._scope(where), as_json(paths)),
        )
        return context_uses([Given(*row) for row in rows])

    async def source_uses(self, where: TraceScope) -> list[SourceUse]:
        """Return how sources of context served, the most used first."""
        return source_uses(self._given(where))

    def _given(self, where: TraceScope) -> list[Given]:
        """Read what was given as context, once for all that is asked of it."""
        if where not in self._read_context:
            rows = self._connection.rows(_USES + _PROJECTS + _CONTEXT + _IN_SCOPE + _BY_SOURCE, self._scope(where))
            self._read_context[where] = [Given(*row) for row in rows]
        return self._read_context[where]

    async def tool_uses(self, where: TraceScope) -> list[ToolUse]:
        """Return how tools did, the most called first."""
        return tool_uses(self._calls(where))

    async def tool_days(self, where: TraceScope) -> list[ToolDay]:
        """Return how often tools were called and failed each day, in order."""
        return tool_days(self._calls(where))

    async def tool_errors(self, where: TraceScope, limit: int) -> list[ToolError]:
        """Return what failed calls brought back, the newest first."""
        failed = newest_failures(self._calls(where), limit)
        rows = self._connection.rows(
            """
            select tool_call_pk, coalesce(nullif(error, ''), result) from json_each(?) asked
                cross join tool_result on tool_call_pk = asked.value
            """,
            (as_json([call.key for call in failed]),),
        )
        said: dict[int, str | None] = dict(rows)
        return [ToolError(tool_name=call.tool_name, said=said.get(call.key)) for call in failed]

    def _calls(self, where: TraceScope) -> list[Call]:
        """Read tool calls, once for all that is asked of them."""
        if where not in self._read_calls:
            rows = self._connection.rows(
                "select tool_name, k.status = 'failed', duration_ms, coalesce(k.timestamp, t.ended_at, t.started_at), k.pk, k.uuid"
                + _PROJECTS
                + "cross join tool_call k on k.turn_pk = t.pk"
                + _IN_SCOPE,
                self._scope(where),
            )
            self._read_calls[where] = [Call(*row) for row in rows]
        return self._read_calls[where]

    async def checkpoints(self, where: TraceScope, conversation_id: str | None) -> list[PlacedCheckpoint]:
        """Return checkpoints, oldest first; those of a conversation in its order."""
        rows = self._connection.rows(
            """
            select x.uuid, x.checkpoint_id, x.git_hash, x.parent_checkpoint, x.workspace_dir, x.timestamp, c.uuid, t.uuid, turn_index,
                request_id, coalesce(x.timestamp, t.started_at, t.ended_at) as at
            """
            + _PROJECTS
            + "cross join checkpoint x on x.turn_pk = t.pk"
            + _IN_SCOPE
            + "and (?5 is null or c.uuid = ?5) order by at, c.uuid, turn_index, x.pk",
            (*self._scope(where), conversation_id),
        )
        return [_checkpoint(row) for row in rows]


def _change(row: Row) -> PlacedChange:
    return PlacedChange(
        id=row[0], file_path=row[1], change_type=row[2], change_summary=row[3], lines_added=row[4], lines_removed=row[5],
        turn_id=row[6], conversation_id=row[7], turn_index=row[8], request_id=row[9], at=moment(row[10]),
    )  # fmt: skip


def _checkpoint(row: Row) -> PlacedCheckpoint:
    checkpoint = Checkpoint(
        id=row[0], checkpoint_id=row[1], git_hash=row[2], parent_checkpoint=row[3], workspace_dir=row[4], timestamp=moment(row[5])
    )
    return PlacedCheckpoint(
        checkpoint=checkpoint, conversation_id=row[6], turn_id=row[7], turn_index=row[8], request_id=row[9], at=moment(row[10])
    )
