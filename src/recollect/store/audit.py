"""Questions about a store itself: how much it holds, which hashes it kept, what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Damage
from recollect.errors import DamagedStoreError
from recollect.limits import TURNS_PER_PAGE
from recollect.placing import checksum
from recollect.store.integrity import damage_of
from recollect.store.jobs import states_of, waiting_since
from recollect.store.shapes import DERIVED_KINDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from recollect.answers import Stats
    from recollect.model import Job
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.shapes import DerivedKind, HashRecord, RecordKey


_DERIVED_PER_PAGE = 500


class Audit:
    """Questions about the store itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def stats(self, workspace: str) -> Stats:
        """Count what the workspace holds."""
        counted, jobs = await self._engine.read(workspace, _counted)
        return msgspec.structs.replace(
            counted,
            store=self._engine.url,
            size_bytes=await self._engine.size_bytes(),
            jobs=states_of(jobs),
            oldest_job_since=waiting_since(jobs),
        )

    async def hashes(self, workspace: str, record_id: str) -> list[HashRecord]:
        """Return the hashes kept for a record; for a turn those of its messages."""
        return await self._engine.read(workspace, lambda transaction: transaction.audit.hashes(record_id))

    async def damage(self, workspace: str) -> AsyncIterator[tuple[int, list[Damage]]]:
        """Check the database, then all that the workspace holds, in pieces: how many records, and what is damaged."""
        yield 0, await self._engine.damage()
        yield await self._engine.read(workspace, _conversation_damage)
        after: int | str | None = None
        while True:
            keys = await self._engine.read(workspace, lambda transaction, start=after: transaction.audit.turns(start, TURNS_PER_PAGE))
            if not keys:
                break
            after = keys[-1].key
            yield len(keys), await self._engine.read(workspace, lambda transaction, page=keys: _turn_damage(transaction, page))
        for kind in DERIVED_KINDS:
            async for found in self._derived_damage(workspace, kind):
                yield found

    async def _derived_damage(self, workspace: str, kind: DerivedKind) -> AsyncIterator[tuple[int, list[Damage]]]:
        after: int | str | None = None
        while keys := await self._engine.read(
            workspace, lambda transaction, start=after: transaction.audit.derived(kind, start, _DERIVED_PER_PAGE)
        ):
            after = keys[-1].key
            yield len(keys), await self._engine.read(workspace, lambda transaction, page=keys: _damage_among(transaction, kind, page))


async def _counted(transaction: Transaction) -> tuple[Stats, list[Job]]:
    return await transaction.audit.stats(), await transaction.jobs.listed()


async def _conversation_damage(transaction: Transaction) -> tuple[int, list[Damage]]:
    """Read the conversations one by one, so that an unreadable one hides no other."""
    keys = await transaction.audit.conversations()
    reasons = [(key, await _reason(transaction, key)) for key in keys]
    found = [Damage(kind="conversation", id=key.id, conversation_id=key.id, reason=reason) for key, reason in reasons if reason is not None]
    return len(keys), found


async def _reason(transaction: Transaction, key: RecordKey) -> str | None:
    """Return why a conversation is not what was written, or None."""
    try:
        held = await transaction.audit.conversation(key.key)
        is_right = held is not None and checksum(held.conversation) == held.checksum
    except DamagedStoreError as error:
        return str(error)
    return None if is_right else "a stored row does not match the checksum"


async def _turn_damage(transaction: Transaction, keys: list[RecordKey]) -> list[Damage]:
    """Read turns together, or one by one when one of them is unreadable, so that it hides no other."""
    try:
        stored = await transaction.audit.read([key.key for key in keys])
        return [damage for one in stored for damage in damage_of(one.turn, one.checksum)]
    except DamagedStoreError as error:
        if len(keys) == 1:
            return [Damage(kind="turn", id=keys[0].id, conversation_id=keys[0].conversation_id, reason=str(error))]
        return [damage for key in keys for damage in await _turn_damage(transaction, [key])]


async def _damage_among(transaction: Transaction, kind: DerivedKind, keys: list[RecordKey]) -> list[Damage]:
    """Read what was made of turns or code together, or one by one, as with turns."""
    try:
        await transaction.audit.read_derived(kind, [key.key for key in keys])
    except DamagedStoreError as error:
        if len(keys) == 1:
            return [Damage(kind=kind, id=keys[0].id, conversation_id=keys[0].conversation_id or None, reason=str(error))]
        return [damage for key in keys for damage in await _damage_among(transaction, kind, [key])]
    return []
