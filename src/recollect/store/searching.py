"""Candidates for recall, and the owners of hits: where a scope is, for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.store.coded import Stretch
from recollect.store.integrity import intact
from recollect.store.lineage import spans_of
from recollect.store.shapes import Area, Owners

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.store.protocol import Engine, Transaction
    from recollect.store.shapes import Candidates, Found, Probe, SearchScope


class Searching:
    """What a scope has for a query; scores are recall's."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def candidates(self, workspace: str, scope: SearchScope, probe: Probe) -> Candidates:
        """Return the passages of what is most promising in a scope by terms and by meaning; scope first, rank second."""

        async def work(transaction: Transaction) -> Candidates:
            return await transaction.search.candidates(await _area(transaction, workspace, scope), probe)

        return await self._engine.read(workspace, work)

    async def owners(self, workspace: str, found: Sequence[Found]) -> Owners:
        """Return the owners of some passages whole, and their conversations, of one moment; those that are gone are left out.

        `DamagedStoreError` when one of the turns is not what was recorded.
        """
        return await self._engine.read(workspace, lambda transaction: _owners(transaction, found))


async def _owners(transaction: Transaction, found: Sequence[Found]) -> Owners:
    turn_ids = [one.owner_id for one in found if one.level == 0]
    summary_ids = [one.owner_id for one in found if one.level > 0]
    stored = await transaction.turns.by_id(turn_ids) if turn_ids else []
    summaries = await transaction.derived.summaries_by_id(summary_ids) if summary_ids else []
    conversations = await transaction.conversations.by_id(list({one.conversation_id: None for one in found}))
    return Owners(
        turns={one.turn.id: intact(one.turn, one.checksum) for one in stored},
        summaries={one.id: one for one in summaries},
        conversations={one.id: one for one in conversations},
        cited=tuple(await transaction.code.cited([_stretch(one) for one in found])) if found else (),
    )


def _stretch(one: Found) -> Stretch:
    return Stretch(one.owner_id, one.conversation_id, one.first_turn, one.last_turn)


async def _area(transaction: Transaction, workspace: str, scope: SearchScope) -> Area:
    spans = None
    if scope.conversation_id is not None:
        spans = tuple(await spans_of(transaction, workspace, scope.conversation_id))
    return Area(spans=spans, project_ids=scope.project_ids, levels=scope.levels, where=scope.where)
