"""Passages to search, summaries, insights, scopes and who speaks of them: what it means, for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.placing import checksum
from recollect.store.lineage import existing, spans_of
from recollect.store.shapes import Area

if TYPE_CHECKING:
    from recollect.model import Insight, Reference, Scope, Summary
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.shapes import Candidates, SearchScope


class Derived:
    """What was worked out from turns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def candidates(self, workspace: str, scope: SearchScope, terms: list[str], limit: int) -> Candidates:
        """Return the passages of a scope that share a term, the most promising first; scope first, rank second."""
        return await self._engine.read(workspace, lambda transaction: _candidates(transaction, workspace, scope, terms, limit))

    async def put_summaries(self, workspace: str, summaries: list[Summary]) -> None:
        """Write summaries with the edges to their sources; one that exists is replaced."""
        await self._engine.write(workspace, lambda transaction: _put_summaries(transaction, workspace, summaries))

    async def summaries(self, workspace: str, conversation_id: str, level: int | None) -> list[Summary]:
        """Return the summaries of a conversation by level and first turn."""
        return await self._engine.read(workspace, lambda transaction: _summaries(transaction, workspace, conversation_id, level))

    async def put_insights(self, workspace: str, insights: list[Insight]) -> None:
        """Write insights of conversations; one that exists is replaced."""
        await self._engine.write(workspace, lambda transaction: _put_insights(transaction, workspace, insights))

    async def insights(self, workspace: str, conversation_id: str) -> list[Insight]:
        """Return the insights of a conversation, oldest first."""
        return await self._engine.read(workspace, lambda transaction: _insights(transaction, workspace, conversation_id))

    async def put_scopes(self, workspace: str, scopes: list[Scope]) -> None:
        """Write code scopes of projects; one that exists is replaced."""
        await self._engine.write(workspace, lambda transaction: _put_scopes(transaction, workspace, scopes))

    async def scopes(self, workspace: str, project_id: str, name: str | None) -> list[Scope]:
        """Return the code scopes of a project by path and line, all or those of one name."""
        return await self._engine.read(workspace, lambda transaction: transaction.derived.scopes(project_id, name))

    async def put_references(self, workspace: str, references: list[Reference]) -> None:
        """Write that messages speak of scopes; each is kept once, and goes with its message or its scope."""
        await self._engine.write(workspace, lambda transaction: transaction.derived.put_references(references))

    async def references(self, workspace: str, scope_ids: list[str]) -> list[Reference]:
        """Return who speaks of scopes, by scope, conversation and message."""
        return await self._engine.read(workspace, lambda transaction: transaction.derived.references(scope_ids))


async def _candidates(transaction: Transaction, workspace: str, scope: SearchScope, terms: list[str], limit: int) -> Candidates:
    spans = None
    if scope.conversation_id is not None:
        spans = tuple(await spans_of(transaction, workspace, scope.conversation_id))
    return await transaction.derived.candidates(Area(spans=spans, project_ids=scope.project_ids), terms, limit)


async def _put_summaries(transaction: Transaction, workspace: str, summaries: list[Summary]) -> None:
    for summary in summaries:
        await existing(transaction, workspace, summary.conversation_id)
        await transaction.derived.put_summary(summary, checksum(summary))


async def _summaries(transaction: Transaction, workspace: str, conversation_id: str, level: int | None) -> list[Summary]:
    await existing(transaction, workspace, conversation_id)
    return await transaction.derived.summaries(conversation_id, level)


async def _put_insights(transaction: Transaction, workspace: str, insights: list[Insight]) -> None:
    for insight in insights:
        await existing(transaction, workspace, insight.conversation_id)
        await transaction.derived.put_insight(insight, checksum(insight))


async def _insights(transaction: Transaction, workspace: str, conversation_id: str) -> list[Insight]:
    await existing(transaction, workspace, conversation_id)
    return await transaction.derived.insights(conversation_id)


async def _put_scopes(transaction: Transaction, workspace: str, scopes: list[Scope]) -> None:
    known = {project.id for project in await transaction.conversations.projects()}
    for project_id in dict.fromkeys(scope.project_id for scope in scopes):
        if project_id not in known:
            msg = f"there is no project {project_id!r} in workspace {workspace!r}"
            raise NotFoundError(msg)
        own = [(scope, checksum(scope)) for scope in scopes if scope.project_id == project_id]
        await transaction.derived.put_scopes(project_id, own)
