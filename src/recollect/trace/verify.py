"""Is a content what was recorded, and is the store what was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Damage, Verification
from recollect.identity import canonical, content_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.capture.clean import Cleaner
    from recollect.store import Store

_DAMAGE_SHOWN_MAX = 1_000


async def verify_content(store: Store, workspace: str, record_id: str, content: str, cleaner: Cleaner) -> Verification:
    """Compare a content with the hashes kept for a record; secrets are removed first, as they were when it was recorded."""
    kept = await store.audit.hashes(workspace, record_id)
    own = content_hash(cleaner.text(content))
    hashes = {own, content_hash(content), *_hashes_as_arguments(content, cleaner)}
    known = [record for record in kept if record.content_hash or record.source_hash]
    if any(record.content_hash in hashes or record.source_hash in hashes for record in known):
        return Verification(status="matches", id=record_id, content_hash=own, checked=len(kept))
    if len(known) < len(kept) or not known:  # nobody told what this would have to be
        return Verification(status="unknown", id=record_id, content_hash=own)
    return Verification(status="differs", id=record_id, content_hash=own, checked=len(kept))


def _hashes_as_arguments(content: str, cleaner: Cleaner) -> tuple[str, ...]:
    """Return the hash that a JSON object has as the arguments of a call, however it is written."""
    try:
        value = msgspec.json.decode(content) if content.lstrip()[:1] == "{" else None
    except (msgspec.DecodeError, RecursionError):
        return ()
    return () if value is None else (content_hash(canonical(cleaner.value(value))),)


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
