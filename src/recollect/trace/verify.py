"""Is a content what was recorded, and is the store what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.answers import Damage, Verification
from recollect.identity import content_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.capture.clean import Cleaner
    from recollect.store import Store

_DAMAGE_SHOWN_MAX = 1_000


async def verify_content(store: Store, workspace: str, record_id: str, content: str, cleaner: Cleaner) -> Verification:
    """Compare a content with the hashes kept for a record; secrets are removed first, as they were when it was recorded."""
    kept = await store.audit.hashes(workspace, record_id)
    own, given = content_hash(cleaner.text(content)), content_hash(content)
    if not any(record.content_hash or record.source_hash for record in kept):
        return Verification(status="unknown", id=record_id, content_hash=own)
    matches = any(record.content_hash in {own, given} or record.source_hash in {own, given} for record in kept)
    return Verification(status="matches" if matches else "differs", id=record_id, content_hash=own, checked=len(kept))


async def verify_store(store: Store, workspace: str, progress: Callable[[int], None] | None = None) -> Verification:
    """Check everything a workspace holds, telling how far it has come."""
    checked = 0
    found: list[Damage] = []
    async for count, damage in store.audit.damage(workspace):
        checked += count
        if progress is not None:
            progress(checked)
        found += damage[: _DAMAGE_SHOWN_MAX - len(found)]
    return Verification(status="damaged" if found else "intact", checked=checked, damage=tuple(found))
