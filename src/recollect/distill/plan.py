"""What to summarise next, decided from counts and sizes alone; pure.

A window is a run of whole turns (level 1) or of summaries of one level (level n + 1). Windows are contiguous, cover each
turn once per level and always advance. They do not depend on when somebody looks: each is the shortest run from the
first uncovered turn that fulfils a trigger.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from recollect.store.shapes import SummarySize, TurnSize


class Triggers(msgspec.Struct, frozen=True, kw_only=True):
    """When a run of turns, or of summaries, is summarised: whichever is fulfilled first; None switches one off.

    `turns` counts those that are not summarised yet, the raw ones at the end included.
    """

    turns: int | None = 5
    messages: int | None = None
    chars: int | None = None
    keep_raw_turns: int = 2
    oversized_chars: int = 20_000
    fold_chars: int = 10_000
    levels_max: int = 6


class Window(msgspec.Struct, frozen=True):
    """What one summary is to cover."""

    level: int
    first_turn: int
    last_turn: int
    source_ids: tuple[str, ...]


def turn_windows(turns: Sequence[TurnSize], summaries: Sequence[SummarySize], triggers: Triggers) -> list[Window]:
    """Return the windows of turns that are due, in order; the last turns and what comes after an open one stay raw."""
    covered = sorted((one.first_turn, one.last_turn) for one in summaries if one.level == 1)
    due = list(turns[: max(len(turns) - triggers.keep_raw_turns, 0)])
    found: list[Window] = []
    for run, is_closed in _runs(due, covered):
        settled = run[: next((n for n, turn in enumerate(run) if turn.is_open), len(run))]
        found += [_window(1, part) for part in _cut(settled, triggers, is_closed=is_closed and len(settled) == len(run))]
    return found


def _runs(turns: Sequence[TurnSize], covered: Sequence[tuple[int, int]]) -> Iterator[tuple[list[TurnSize], bool]]:
    """Yield the runs of turns that no summary covers, and whether a covered one follows."""
    run: list[TurnSize] = []
    ends = iter(covered)
    first, last = next(ends, (None, -1))
    for turn in turns:
        while first is not None and turn.index > last:
            first, last = next(ends, (None, -1))
        if first is not None and first <= turn.index:
            if run:
                yield run, True
            run = []
        else:
            run.append(turn)
    if run:
        yield run, first is not None


def _cut(run: Sequence[TurnSize], triggers: Triggers, *, is_closed: bool) -> Iterator[list[TurnSize]]:
    """Cut a run into windows; what is left at its end waits for more, unless no more can come."""
    part: list[TurnSize] = []
    for turn in run:
        if turn.chars > triggers.oversized_chars:
            if part:
                yield part
            yield [turn]
            part = []
            continue
        part.append(turn)
        if _is_due(part, triggers):
            yield part
            part = []
    if part and is_closed:
        yield part


def _is_due(part: Sequence[TurnSize], triggers: Triggers) -> bool:
    if triggers.turns is not None and len(part) >= max(triggers.turns - triggers.keep_raw_turns, 1):
        return True
    if triggers.messages is not None and sum(turn.messages for turn in part) >= triggers.messages:
        return True
    return triggers.chars is not None and sum(turn.chars for turn in part) >= triggers.chars


def _window(level: int, part: Sequence[TurnSize]) -> Window:
    return Window(level, part[0].index, part[-1].index, tuple(turn.id for turn in part))


def fold_windows(summaries: Sequence[SummarySize], level: int, triggers: Triggers) -> list[Window]:
    """Return the runs of summaries of a level that are to be folded into the next; the last one is kept apart."""
    if level >= triggers.levels_max:
        return []
    folded = {source for one in summaries if one.level == level + 1 for source in one.source_ids}
    own = sorted((one for one in summaries if one.level == level), key=lambda one: one.first_turn)
    found: list[Window] = []
    part: list[SummarySize] = []
    for n, one in enumerate(own):
        if one.id in folded:
            if part:  # a gap between two that are folded: no more can come
                found.append(_fold(level, part))
            part = []
        elif n < len(own) - 1:
            part.append(one)
            if len(part) > 1 and sum(each.chars for each in part) >= triggers.fold_chars:
                found.append(_fold(level, part))
                part = []
    return found


def _fold(level: int, part: Sequence[SummarySize]) -> Window:
    return Window(level + 1, part[0].first_turn, part[-1].last_turn, tuple(one.id for one in part))
