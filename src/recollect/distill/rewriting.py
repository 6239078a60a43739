"""Extractive summaries written anew by a model, newest conversations first and their lowest level first, as far as tokens go.

Each keeps its id, its window, its sources and its time; what a model says is checked as ever, and what is of no use
leaves the summary as it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Rewritten
from recollect.distill.extractive import AUTHOR
from recollect.distill.models import told_by
from recollect.distill.plan import Window
from recollect.distill.sources import Sources
from recollect.errors import BudgetError, ModelError, NotFoundError, SpendingError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from datetime import datetime

    from recollect.clock import Clock
    from recollect.distill.metrics import Metrics
    from recollect.distill.models import SummaryModel
    from recollect.model import Summary
    from recollect.settings import Settings
    from recollect.store import Store

REFUSALS_MAX = 5
"""So many answers of no use, one after the other, end a run: nobody is there, or somebody who cannot."""


class _UselessError(Exception):
    """The model was of no use too often."""


class Rewriter:
    """Rewrites summaries of one workspace, and counts."""

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, metrics: Metrics, model: SummaryModel, progress: Callable[[int], None] | None
    ) -> None:
        self._store = store
        self._workspace = settings.workspace
        self._seconds_max = settings.distill.model_seconds_max
        self._clock = clock
        self._metrics = metrics
        self._model = model
        self._progress = progress
        self._sources = Sources(store, settings.workspace)
        self._rewritten = self._refused = self._left = self._in_a_row = 0

    async def run(self, conversation_ids: Iterable[str]) -> Rewritten:
        """Rewrite until all is done, or the tokens of the run or the day are spent; what is done stays."""
        stopped, is_capped = None, False
        try:
            for own_id in conversation_ids:
                await self._conversation(own_id)
        except SpendingError as error:
            stopped, is_capped = str(error), not isinstance(error, BudgetError)
        except _UselessError as error:
            stopped = str(error)
        return Rewritten(rewritten=self._rewritten, refused=self._refused, left=self._left, stopped=stopped, is_capped=is_capped)

    async def _conversation(self, conversation_id: str) -> None:
        """Rewrite what is extractive, and what folds something that was rewritten."""
        done: set[str] = set()
        try:
            found = await self._store.derived.summaries(self._workspace, conversation_id, None)  # by level
            expiries = await self._store.retention.expiries(self._workspace, conversation_id)
            for one in found:
                if (one.author == AUTHOR or not done.isdisjoint(one.source_ids)) and await self._rewrite(one, expiries.get(one.id)):
                    done.add(one.id)
        except NotFoundError:
            return  # it went meanwhile
        finally:
            if done:  # their vectors went with their words
                await self._store.jobs.wake(self._workspace, conversation_id, "embed", self._clock.now())

    async def _rewrite(self, one: Summary, expiry: datetime | None) -> bool:
        window = Window(one.level, one.first_turn, one.last_turn, one.source_ids)
        covered = await self._sources.of(one.conversation_id, [window])
        if not covered.asked:  # its turns are gone, and it outlives them
            self._left += 1
            return False
        try:
            told = await told_by(self._model, covered.asked[0], self._seconds_max)
        except SpendingError:
            raise
        except ModelError as error:
            self._refuse(error)
            return False
        self._in_a_row = 0
        fresh = msgspec.structs.replace(
            one, summary=told.summary, actions=told.actions, key_findings=told.key_findings, files_mentioned=told.files_mentioned,
            tools_used=told.tools_used, topics=told.topics, char_count=told.chars, author=self._model.name,
        )  # fmt: skip
        expiries = {} if expiry is None else {one.id: expiry}
        if not await self._store.derived.put_summaries(self._workspace, [fresh], unless=covered.unless, expiries=expiries):
            self._left += 1  # what it covers has changed meanwhile
            return False
        self._rewritten += 1
        if self._progress is not None:
            self._progress(self._rewritten)
        return True

    def _refuse(self, error: ModelError) -> None:
        self._metrics.fell_back(str(error))
        self._refused += 1
        self._in_a_row += 1
        if self._in_a_row >= REFUSALS_MAX:
            msg = f"nothing of use came {REFUSALS_MAX} times in a row, so {self._model.name!r} is asked no more: {error}"
            raise _UselessError(msg)
