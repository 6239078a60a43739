"""What condenses a memory: what is due is distilled, by whom the user configured; the distilling half of `Memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.checks import checked_count
from recollect.clock import RandomIds
from recollect.errors import ConfigError, InputError
from recollect.halves.core import Core
from recollect.store.shapes import ConversationFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from recollect.answers import Rewritten
    from recollect.distill.models import SummaryModel, Writers
    from recollect.distill.worker import Worker
    from recollect.models.writing import Writer

_ALL = 1_000_000


class Distilled(Core):
    """How a memory is condensed."""

    async def distill(self, *, wait: bool = True, rebuild: bool = False) -> int:
        """Do all the distilling that is due, or have it done in the background; returns how many jobs were done.

        `rebuild` deletes all summaries and vectors first; they are made again under the same ids.
        """
        if rebuild:
            for info in await self.store.conversations.find(self.workspace, ConversationFilter(), _ALL):
                await self.store.derived.forget_distilled(self.workspace, info.id)
        if not wait:
            if self._background is not None:
                self._background.wake()
            return 0
        worker = self.worker()
        await worker.wake_stale()
        return await worker.drain()

    async def rewrite(
        self,
        *,
        conversation: str | None = None,
        project: str | None = None,
        budget_tokens: int | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> Rewritten:
        """Have a model write extractive summaries anew, those of the latest conversations first, each under its own id.

        It ends when all is done, or when another call could pass `budget_tokens` or the cap of the day; what is done stays.
        Their vectors are made anew by the next distilling. `progress` is called with how many are rewritten.

        Raises `ConfigError` when no model is configured, `InputError` for a budget that nobody counts.
        """
        if conversation is not None and project is not None:
            msg = "rewrite the summaries of one conversation or of one project: give conversation or project, not both"
            raise InputError(msg)
        if budget_tokens is not None and checked_count("budget_tokens", budget_tokens) < 1:
            msg = "budget_tokens is 0, which pays for nothing: give more, or leave it out"
            raise InputError(msg)
        if conversation is not None:
            own_ids = [(await self.get_info(conversation)).id]
        else:
            where = ConversationFilter(project_ids=await self._projects.ids(project, None))
            own_ids = [info.id for info in await self.store.conversations.find(self.workspace, where, _ALL)]
        if self._summary_model is None:
            writer = self._configured_writer(budget_tokens)
            return msgspec.structs.replace(await self._rewritten(writer, own_ids, progress), tokens=writer.spent_tokens)
        if budget_tokens is not None:
            msg = "budget_tokens is counted by models.summaries, and a model of the program's own counts no tokens: leave it out"
            raise InputError(msg)
        return await self._rewritten(self._summary_model, own_ids, progress)

    async def _rewritten(self, model: SummaryModel, own_ids: list[str], progress: Callable[[int], None] | None) -> Rewritten:
        from recollect.distill.rewriting import Rewriter  # noqa: PLC0415  only those who rewrite need it

        done = await Rewriter(self.store, self.settings, self.clock, self.metrics, model, progress).run(own_ids)
        if self._background is not None:
            self._background.wake()
        return done

    def _configured_writer(self, budget_tokens: int | None) -> Writer:
        if self.settings.models.summaries.name is None:
            msg = (
                "no model is configured that could rewrite summaries: give models.summaries a name and an endpoint, or a key_variable, "
                "in your configuration (`recollect config path` prints where it is)"
            )
            raise ConfigError(msg)
        from recollect.models.writing import Writer  # noqa: PLC0415  only where one is configured

        return Writer(self.settings, self.store, self.clock, RandomIds(), budget_tokens=budget_tokens)

    def worker(self, is_stopped: Callable[[], bool] = lambda: False) -> Worker:
        """Return a worker on this memory's own store, to be stepped by the caller."""
        from recollect.distill.worker import Worker  # noqa: PLC0415  NumPy is loaded by those who distil

        return Worker(
            self.store, self.settings, self.clock, RandomIds(), metrics=self.metrics, writers=self._writers(), is_stopped=is_stopped
        )

    def _writers(self) -> Writers:
        """Return who writes summaries and titles and makes vectors: the model that was given, else those that the user configured."""
        from recollect.distill.models import Writers  # noqa: PLC0415  as above

        models = self.settings.models
        if models.summaries.name is None and models.titles.name is None and models.embeddings.name is None:
            return Writers(self._summary_model)
        from recollect.models.writing import configured_writers  # noqa: PLC0415  as above

        made = configured_writers(self.settings, self.store, self.clock, RandomIds())
        return made if self._summary_model is None else made._replace(summaries=self._summary_model)
