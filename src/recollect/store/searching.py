"""Candidates for recall: where a scope is, for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.store.lineage import spans_of
from recollect.store.shapes import Area

if TYPE_CHECKING:
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.shapes import Candidates, Found, Probe, SearchScope


class Searching:
    """What a scope has for a query; scores are recall's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def candidates(self, workspace: str, scope: SearchScope, probe: Probe) -> Candidates:
        """Return the most promising passages of a scope by terms and by meaning; scope first, rank second."""

        async def work(transaction: Transaction) -> Candidates:
            return await transaction.search.candidates(await _area(transaction, workspace, scope), probe)

        return await self._engine.read(workspace, work)

    async def of_turns(self, workspace: str, scope: SearchScope, places: list[tuple[str, int]], model: str | None) -> list[Found]:
        """Return every passage of some turns of a scope, named by conversation and index."""

        async def work(transaction: Transaction) -> list[Found]:
            return await transaction.search.of_turns(await _area(transaction, workspace, scope), places, model)

        return await self._engine.read(workspace, work) if places else []


async def _area(transaction: Transaction, workspace: str, scope: SearchScope) -> Area:
    spans = None
    if scope.conversation_id is not None:
        spans = tuple(await spans_of(transaction, workspace, scope.conversation_id))
    return Area(spans=spans, project_ids=scope.project_ids, levels=scope.levels, where=scope.where)
