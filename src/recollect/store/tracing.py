"""What the audit asks of a store, each question in one unit of work; the answers are worked out by `trace`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.store.recording import shown
from recollect.store.shapes import Span
from recollect.store.traced import CheckpointRows, TraceScope

if TYPE_CHECKING:
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.traced import ContextUse, PlacedChange, SourceUse, ToolDay, ToolError, ToolUse

ERRORS_MAX = 2_000  # so many of the newest failures are looked at for what they have in common
_CHANGES_MAX = 100_000


class Tracing:
    """Questions about changes, context, tools and checkpoints."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def paths(self, workspace: str, where: TraceScope, path: str) -> list[str]:
        """Return the paths that are kept as this one, or else those that end with it."""
        return await self._engine.read(workspace, lambda transaction: transaction.trace.paths(where, path))

    async def renamed(self, workspace: str, where: TraceScope, beginnings: list[str]) -> list[str]:
        """Return the paths that renames gave whose summaries begin like one of these, whenever that was."""
        return await self._engine.read(workspace, lambda transaction: transaction.trace.renamed(where, beginnings))

    async def changes(self, workspace: str, where: TraceScope, paths: list[str] | None, limit: int) -> list[PlacedChange]:
        """Return changes of files, or of all, newest first."""
        return by_index(await self._engine.read(workspace, lambda transaction: transaction.trace.changes(where, paths, limit)))

    async def request(self, workspace: str, where: TraceScope, request_ids: list[str]) -> list[tuple[str, str]]:
        """Return the turns of requests, each with its request, by request, conversation and index."""
        return await self._engine.read(workspace, lambda transaction: transaction.trace.requests(where, request_ids))

    async def followed(
        self, workspace: str, where: TraceScope, paths: list[str], limit: int, *, uses_max: int = _CHANGES_MAX
    ) -> dict[str, list[PlacedChange]]:
        """Return, of each file, the changes made in requests that had it as context, newest first, up to a limit each.

        A request counts with all its turns. What came of uses before the newest `uses_max` of all these files is left out.
        """
        return await self._engine.read(workspace, lambda transaction: _followed(transaction, where, paths, limit, uses_max))

    async def context_uses(self, workspace: str, where: TraceScope, paths: list[str]) -> list[ContextUse]:
        """Return how files were used as context, the most used first."""
        return await self._engine.read(workspace, lambda transaction: transaction.trace.context_uses(where, paths))

    async def context(self, workspace: str, where: TraceScope) -> tuple[list[ContextUse], list[SourceUse]]:
        """Return how files were used as context, and how its sources served, the most used first."""
        return await self._engine.read(workspace, lambda transaction: _context(transaction, where))

    async def tools(self, workspace: str, where: TraceScope) -> tuple[list[ToolUse], list[ToolDay], list[ToolError]]:
        """Return how tools did: in all, each day, and what the newest failures brought back."""
        return await self._engine.read(workspace, lambda transaction: _tools(transaction, where))

    async def checkpoints(self, workspace: str, where: TraceScope, conversation_id: str | None) -> CheckpointRows:
        """Return checkpoints of all conversations, or of the history of one, oldest first, with what tells them apart."""
        return await self._engine.read(workspace, lambda transaction: _checkpoints(transaction, where, conversation_id))


def by_index(changes: list[PlacedChange]) -> list[PlacedChange]:
    """Return changes, newest first by their times, with those of one conversation in its own order: clocks go back, indexes do not."""
    own: dict[str, list[PlacedChange]] = {}
    for one in reversed(changes):
        own.setdefault(one.conversation_id, []).append(one)
    for found in own.values():
        found.sort(key=lambda one: one.turn_index)
    return [own[one.conversation_id].pop() for one in changes]


async def _followed(
    transaction: Transaction, where: TraceScope, paths: list[str], limit: int, uses_max: int
) -> dict[str, list[PlacedChange]]:
    given = await transaction.trace.given(where, paths, uses_max)
    requests = list(dict.fromkeys(request for _, _, request in given if request is not None))
    turns: dict[str, list[str]] = {}
    for turn, request in await transaction.trace.requests(where, requests):
        turns.setdefault(request, []).append(turn)
    files: dict[str, set[str]] = {}
    for path, own, request in given:
        for turn in (own, *(turns.get(request, ()) if request is not None else ())):
            files.setdefault(turn, set()).add(path)
    found: dict[str, list[PlacedChange]] = {path: [] for path in paths}
    for change in await transaction.trace.changes_of(where, sorted(files)) if files else ():
        for path in files[change.turn_id]:
            if len(found[path]) < limit:
                found[path].append(change)
    return found


async def _context(transaction: Transaction, where: TraceScope) -> tuple[list[ContextUse], list[SourceUse]]:
    trace = transaction.trace
    return await trace.context_uses(where, None), await trace.source_uses(where)


async def _tools(transaction: Transaction, where: TraceScope) -> tuple[list[ToolUse], list[ToolDay], list[ToolError]]:
    trace = transaction.trace
    return await trace.tool_uses(where), await trace.tool_days(where), await trace.tool_errors(where, ERRORS_MAX)


async def _checkpoints(transaction: Transaction, where: TraceScope, conversation_id: str | None) -> CheckpointRows:
    trace, always = transaction.trace, TraceScope(project_ids=where.project_ids)
    if conversation_id is not None:
        spans = shown(await transaction.conversations.chain(conversation_id))
        return CheckpointRows(
            found=[one for span in spans for one in await trace.checkpoints(where, span.conversation_id) if span.shows(one.turn_index)],
            chain=[one for span in spans for one in await trace.checkpoints(always, span.conversation_id) if span.shows(one.turn_index)],
            changes=[one for span in reversed(spans) for one in await trace.changes(where, None, _CHANGES_MAX, span.conversation_id)],
            histories={conversation_id: spans},
        )
    found = await trace.checkpoints(where, None)
    if not found:
        return CheckpointRows()
    chain = await trace.checkpoints(always, None)
    first: dict[str, int] = {}
    for one in chain:
        first[one.conversation_id] = min(one.turn_index, first.get(one.conversation_id, one.turn_index))
    histories = {
        own: shown(await transaction.conversations.chain(own)) if index else [Span(conversation_id=own)] for own, index in first.items()
    }  # one that begins with a checkpoint inherits none
    return CheckpointRows(found=found, chain=chain, changes=await trace.changes(where, None, _CHANGES_MAX), histories=histories)
