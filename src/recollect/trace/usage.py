"""How files and sources serve as context: how often, how usefully, and what came of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.trace.answers import ContextUsage, FileUsage, SourceUsage
from recollect.trace.why import ambiguous

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from recollect.store import Store
    from recollect.store.traced import ContextUse, PlacedChange, TraceScope

NEVER_USEFUL_BELOW = 0.2  # a file that was never rated higher was never useful
_FOLLOWED_MAX = 100
_USES_FOLLOWED_MAX = 1_000  # of all files of a list together
_DIGITS = 6


async def file_usage(store: Store, workspace: str, where: TraceScope, path: str) -> FileUsage | None:
    """Return how one file was used as context, and which changes followed; None when it never was."""
    names = await store.trace.paths(workspace, where, path)
    uses = await store.trace.context_uses(workspace, where, names) if names else []
    if not uses:
        return None
    if len(uses) > 1:
        raise ambiguous(path, [one.path for one in uses])
    return _usage(uses[0], await store.trace.followed(workspace, where, [uses[0].path], _FOLLOWED_MAX))


async def context_usage(store: Store, workspace: str, where: TraceScope, limit: int) -> ContextUsage:
    """Return what is used as context: most often, most usefully, never usefully; and how the sources serve."""
    uses, served = await store.trace.context(workspace, where)
    rated = [one for one in uses if one.average_usefulness is not None]
    never = [one for one in rated if (one.greatest_usefulness or 0.0) < NEVER_USEFUL_BELOW]
    useful = sorted((one for one in rated if one not in never), key=lambda one: (-(one.average_usefulness or 0.0), -one.count, one.path))
    sources = [
        SourceUsage(source=one.source, count=one.count, files=one.files, average_usefulness=_rounded(one.average_usefulness))
        for one in served
    ]
    sources.sort(key=lambda one: (one.average_usefulness is None, -(one.average_usefulness or 0.0), -one.count, one.source))
    listed = sorted({one.path for some in (uses, useful, never) for one in some[:limit]})
    followed = await store.trace.followed(workspace, where, listed, _FOLLOWED_MAX, uses_max=_USES_FOLLOWED_MAX) if listed else {}
    return ContextUsage(
        most_used=tuple(_usage(one, followed) for one in uses[:limit]),
        most_useful=tuple(_usage(one, followed) for one in useful[:limit]),
        never_useful=tuple(_usage(one, followed) for one in never[:limit]),
        sources=tuple(sources),
    )


def _usage(use: ContextUse, followed: Mapping[str, Sequence[PlacedChange]]) -> FileUsage:
    return FileUsage(
        path=use.path, count=use.count, average_usefulness=_rounded(use.average_usefulness), sources=use.sources,
        last_used_at=use.last_used_at, followed_by_changes=tuple(followed[use.path]),
    )  # fmt: skip


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, _DIGITS)
