"""What models spend: written down before each call as the most it may take, and after it as what it took, whether it succeeded or not."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING

import msgspec

from recollect.errors import BudgetError, SpendingError
from recollect.limits import COUNT_MAX
from recollect.model import ModelCall
from recollect.tokens import token_estimate
from recollect.waiting import surely

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from recollect.clock import Clock, Ids
    from recollect.settings import EmbeddingUse, ModelUse
    from recollect.store import Store
    from recollect.store.shapes import Room

_MILLION = 1_000_000
_LOOK_SECONDS = 0.2
_UNDERWAY_SECONDS_MAX = 900.0  # whoever asked longer ago than this, and has not said what it took, is gone


class Spent(msgspec.Struct, frozen=True):
    """The tokens one call took, as its provider tells it."""

    input_tokens: int
    output_tokens: int


def spent_on(sent: str, said: str, input_tokens: int, output_tokens: int) -> Spent:
    """Return what a call took as its provider counts it; what it does not count is estimated, so that a cap holds all the same."""
    return Spent(_counted(input_tokens) or token_estimate(sent), _counted(output_tokens) or token_estimate(said))


def _counted(tokens: int) -> int:
    """Return what a provider counted, as far as anybody could have sent or said it."""
    return min(max(tokens, 0), COUNT_MAX)


class Bill:
    """What a call took, as far as it is known: at first the most it may take."""

    def __init__(self, most: Spent) -> None:
        self.spent = most
        self._most = most

    def refused(self) -> None:
        """Note that nothing was answered: what was sent may have been paid for."""
        self.spent = Spent(self._most.input_tokens, 0)

    def unreached(self) -> None:
        """Note that nobody was there to be paid."""
        self.spent = Spent(0, 0)


class Purse:
    """The tokens of one use in one workspace: every call is written down before it is made, and again when it is known what it took.

    So the cap of a day holds for all who ask at once, in whatever process, and for those who die while they ask. With
    `budget_tokens` it also refuses what would take more than that, beginning with its first call.
    """

    def __init__(
        self,
        store: Store,
        workspace: str,
        what: str,
        use: ModelUse | EmbeddingUse,
        clock: Clock,
        ids: Ids,
        *,
        model: str | None = None,
        budget_tokens: int | None = None,
    ) -> None:
        self.spent_tokens = 0
        self._budget_tokens = budget_tokens
        self._model = model or use.name or ""
        self._store = store
        self._workspace = workspace
        self._what = what
        self._use = use
        self._clock = clock
        self._ids = ids

    @asynccontextmanager
    async def paying(self, text: str, *, waits: bool = False) -> AsyncGenerator[Bill]:
        """Let something be asked, when it and the longest answer fit into what is left of the day; `SpendingError` otherwise.

        Whoever asks puts on the bill what it took; where nobody can know, as after an interruption, it counts as the most it
        may have taken. What others ask for at this moment counts as spent, or, if it `waits`, is waited for: most of them
        take less than they may.
        """
        most = Spent(token_estimate(text), self._use.output_tokens_max)
        self._weigh(most.input_tokens + most.output_tokens)
        call = await self._reserved(most, waits=waits)
        began, bill, is_failed = time.perf_counter(), Bill(most), True
        try:
            yield bill
            is_failed = False
        finally:
            await surely(self._settle(call, bill.spent, 1_000 * (time.perf_counter() - began), is_failed=is_failed))

    def _weigh(self, wanted: int) -> None:
        """Refuse what the budget of this run does not hold."""
        if self._budget_tokens is not None and self.spent_tokens + wanted > self._budget_tokens:
            msg = (
                f"{self.spent_tokens:,} of the {self._budget_tokens:,} tokens of this run are spent, and up to {wanted:,} more are asked "
                "for: give it more, or run it again"
            )
            raise BudgetError(msg)

    async def _reserved(self, most: Spent, *, waits: bool) -> ModelCall:
        """Write down a call that is about to be made, as soon as there is room for it."""
        wanted = most.input_tokens + most.output_tokens
        while True:
            call = ModelCall(
                id=self._ids.fresh(), use=self._what, model=self._model, input_tokens=most.input_tokens, output_tokens=most.output_tokens,
                cost=cost_of(self._use, most), is_failed=True, is_open=True, timestamp=self._clock.now(),
            )  # fmt: skip
            try:
                room = await surely(self._asked_for(call))
            except asyncio.CancelledError:
                await surely(self._settle(call, Spent(0, 0), 0.0, is_failed=True))  # nothing was asked yet
                raise
            if room.is_granted:
                return call
            could_come = room.spent_tokens + wanted <= (self._use.daily_tokens_max or 0)
            if not (waits and room.underway_tokens and could_come):
                raise self._refusal(room, wanted)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _asked_for(self, call: ModelCall) -> Room:
        day, since = call.timestamp.replace(hour=0, minute=0, second=0, microsecond=0), timedelta(seconds=_UNDERWAY_SECONDS_MAX)
        return await self._store.spending.reserve(self._workspace, call, self._use.daily_tokens_max, day, call.timestamp - since)

    def _refusal(self, room: Room, wanted: int) -> SpendingError:
        others = f", {room.underway_tokens:,} are being asked for" if room.underway_tokens else ""
        return SpendingError(
            f"models.{self._what} has spent {room.spent_tokens:,} of its {self._use.daily_tokens_max or 0:,} tokens of today{others}, and "
            f"up to {wanted:,} more are asked for: wait until midnight UTC, or raise models.{self._what}.daily_tokens_max"
        )

    async def _settle(self, call: ModelCall, spent: Spent, duration_ms: float, *, is_failed: bool) -> None:
        self.spent_tokens += spent.input_tokens + spent.output_tokens
        settled = msgspec.structs.replace(
            call, input_tokens=spent.input_tokens, output_tokens=spent.output_tokens, duration_ms=round(duration_ms, 3),
            cost=cost_of(self._use, spent), is_failed=is_failed, is_open=False,
        )  # fmt: skip
        await self._store.spending.put(self._workspace, settled)


def cost_of(use: ModelUse | EmbeddingUse, spent: Spent) -> float | None:
    """Return what a call cost in the user's own currency; None where no prices are configured."""
    if use.input_price is None and use.output_price is None:
        return None
    return (spent.input_tokens * (use.input_price or 0) + spent.output_tokens * (use.output_price or 0)) / _MILLION
