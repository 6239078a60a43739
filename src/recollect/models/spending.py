"""What models spend: looked at before each call, written down after it, whether it succeeded or not."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, TypeVar

import msgspec

from recollect.errors import BudgetError, SpendingError
from recollect.model import ModelCall
from recollect.tokens import token_estimate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from datetime import datetime

    from recollect.clock import Clock, Ids
    from recollect.config import EmbeddingUse, ModelUse
    from recollect.store import Store

_T = TypeVar("_T")
_MILLION = 1_000_000
_LOOK_SECONDS = 0.05


class _Underway:
    """What this process is asking for at this moment, of one use in one workspace: it is not spent yet, and no longer to be had."""

    def __init__(self) -> None:
        self.tokens = 0
        self.written = 0


_underway: dict[tuple[str, str, str], _Underway] = {}


class Spent(msgspec.Struct, frozen=True):
    """The tokens one call took, as its provider tells it."""

    input_tokens: int
    output_tokens: int


def spent_on(sent: str, said: str, input_tokens: int, output_tokens: int) -> Spent:
    """Return what a call took as its provider counts it; what it does not count is estimated, so that a cap holds all the same."""
    return Spent(input_tokens or token_estimate(sent), output_tokens or token_estimate(said))


class Bill:
    """What a call took, as far as it is known."""

    def __init__(self, spent: Spent) -> None:
        self.spent = spent


class Purse:
    """The tokens of one use in one workspace: no call is made without looking, and every call is written down.

    With `budget_tokens` it also refuses what would take more than that, beginning with its first call.
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
        self._underway = _underway.setdefault((store.url, workspace, what), _Underway())

    async def pay(self, text: str, ask: Callable[[], Awaitable[tuple[_T, Spent]]]) -> _T:
        """Ask, and write down what it took."""
        async with self.paying(text) as bill:
            answer, bill.spent = await ask()
        return answer

    @asynccontextmanager
    async def paying(self, text: str, *, waits: bool = False) -> AsyncGenerator[Bill]:
        """Let something be asked, when it and the longest answer fit into what is left of the day; `SpendingError` otherwise.

        Whoever asks puts on the bill what it took. A call that failed is written down with an estimate of what was sent:
        it may have been paid for. What others ask for at this moment counts as spent, or, if it `waits`, is waited for: most
        of them take less than they may.
        """
        sent = token_estimate(text)
        wanted = sent + self._use.output_tokens_max
        self._weigh(wanted)
        while not await self._has_room(wanted, waits=waits):  # noqa: ASYNC110  whoever has the room may be on another thread
            await asyncio.sleep(_LOOK_SECONDS)
        self._underway.tokens += wanted
        try:
            async with self._written(sent) as bill:
                yield bill
        finally:
            self._underway.tokens -= wanted
            self._underway.written += 1

    @asynccontextmanager
    async def _written(self, sent: int) -> AsyncGenerator[Bill]:
        began, at = time.perf_counter(), self._clock.now()
        bill = Bill(Spent(sent, 0))
        try:
            yield bill
        except BaseException:
            await self._write(bill.spent, at, began, is_failed=True)
            raise
        await self._write(bill.spent, at, began, is_failed=False)

    def _weigh(self, wanted: int) -> None:
        """Refuse what the budget of this run does not hold."""
        if self._budget_tokens is not None and self.spent_tokens + wanted > self._budget_tokens:
            msg = (
                f"{self.spent_tokens:,} of the {self._budget_tokens:,} tokens of this run are spent, and up to {wanted:,} more are asked "
                "for: give it more, or run it again"
            )
            raise BudgetError(msg)

    async def _has_room(self, wanted: int, *, waits: bool) -> bool:
        """Tell whether tokens fit beside what others ask for; raise where waiting would not help, or is not wished."""
        most = self._use.daily_tokens_max
        if most is None:
            return True
        spent = await self._spent_today()
        asked = self._underway.tokens
        if spent + asked + wanted <= most:
            return True
        if waits and asked and spent + wanted <= most:
            return False
        others = f", {asked:,} are being asked for" if asked else ""
        msg = (
            f"models.{self._what} has spent {spent:,} of its {most:,} tokens of today{others}, and up to {wanted:,} more "
            f"are asked for: wait until midnight UTC, or raise models.{self._what}.daily_tokens_max"
        )
        raise SpendingError(msg)

    async def _spent_today(self) -> int:
        midnight = self._clock.now().replace(hour=0, minute=0, second=0, microsecond=0)
        while True:  # what was written down meanwhile is in neither count
            written = self._underway.written
            spent = await self._store.spending.tokens(self._workspace, self._what, midnight)
            if written == self._underway.written:
                return spent

    async def _write(self, spent: Spent, at: datetime, began: float, *, is_failed: bool) -> None:
        self.spent_tokens += spent.input_tokens + spent.output_tokens
        call = ModelCall(
            id=self._ids.fresh(),
            use=self._what,
            model=self._model,
            input_tokens=spent.input_tokens,
            output_tokens=spent.output_tokens,
            duration_ms=round(1_000 * (time.perf_counter() - began), 3),
            cost=cost_of(self._use, spent),
            is_failed=is_failed,
            timestamp=at,
        )
        await self._store.spending.put(self._workspace, call)


def cost_of(use: ModelUse | EmbeddingUse, spent: Spent) -> float | None:
    """Return what a call cost in the user's own currency; None where no prices are configured."""
    if use.input_price is None and use.output_price is None:
        return None
    return (spent.input_tokens * (use.input_price or 0) + spent.output_tokens * (use.output_price or 0)) / _MILLION
