"""Is a content what was recorded, and is the store what was written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Damage, Verification
from recollect.identity import HASH_PREFIX, canonical, content_hash

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.capture.clean import Cleaner
    from recollect.store import Store
    from recollect.store.shapes import HashRecord

_DAMAGE_SHOWN_MAX = 1_000
_SHA256 = re.compile(r"[0-9a-f]{64}")


async def verify_content(store: Store, workspace: str, record_id: str, content: str, cleaner: Cleaner) -> Verification:
    """Compare a content with the hashes kept for a record; secrets are removed first, as they were when it was recorded.

    A change has the hash of its lines, so a file is compared without its final newline, too.
    """
    kept = await store.audit.hashes(workspace, record_id)
    own = content_hash(cleaner.text(content))
    hashes = {own, content_hash(content), *_hashes_as_arguments(content, cleaner)}
    of_lines = {content_hash(cleaner.text(content).removesuffix("\n")), content_hash(content.removesuffix("\n"))}
    for record in kept:
        if {_hash(record.content_hash), _hash(record.source_hash)} & (hashes | of_lines if record.kind == "code_change" else hashes):
            return Verification(status="matches", id=record_id, content_hash=own, checked=len(kept))
    if not kept or not all(_is_told(record) for record in kept):  # nobody told what this would have to be
        return Verification(status="unknown", id=record_id, content_hash=own)
    return Verification(status="differs", id=record_id, content_hash=own, checked=len(kept))


def _is_told(record: HashRecord) -> bool:
    """Tell whether one of the hashes of a record is surely that of its content."""
    own, given = _hash(record.content_hash), _hash(record.source_hash)
    return given is not None or (own is not None and (record.whole or record.source_hash is None))


def _hash(given: str | None) -> str | None:
    """Return a SHA-256 as ours are written, however a sender wrote it; None for anything else, which tells nothing of a content."""
    text = (given or "").strip().lower().removeprefix(HASH_PREFIX)
    return HASH_PREFIX + text if _SHA256.fullmatch(text) else None


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
