"""Jobs done: vectors for what has none, summaries for what is due, what a conversation is about; idempotent, and fenced by a lease.

Any number of workers may run, in any number of processes. A worker that dies leaves its job to the next one, once its
lease has run out; one that was thought dead writes nothing any more, because its lease is looked at in the transaction
that writes.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, TypeVar

import msgspec

from recollect.distill.actions import Actions
from recollect.distill.embedders import default_embedder
from recollect.distill.extractive import AUTHOR, Told, fold_summaries, summarise_turns
from recollect.distill.keeping import conversation_policy
from recollect.distill.linking import Linker
from recollect.distill.models import Writers, titled_by, told_by
from recollect.distill.plan import Triggers, Window, fold_windows, turn_windows
from recollect.distill.sources import Sources
from recollect.distill.telling import title_of
from recollect.distill.vectors import quantised
from recollect.distill.versions import Stamper
from recollect.errors import ModelError, NotFoundError, SpendingError
from recollect.identity import content_hash, identity
from recollect.model import Summary
from recollect.quoting import key_text, summary_text
from recollect.settings import messages_due, turns_due
from recollect.store.shapes import Embedded, SummarySize, TurnRange
from recollect.waiting import given_up

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from datetime import datetime

    from recollect.clock import Clock, Ids
    from recollect.distill.embedders import Embedder
    from recollect.distill.metrics import Metrics
    from recollect.distill.models import Asked, TitleModel
    from recollect.model import Turn
    from recollect.settings import Settings
    from recollect.store import Store
    from recollect.store.shapes import Lease, Unembedded, Vector

_T = TypeVar("_T")
LEASE_SECONDS = 120.0
_PASSAGES_PER_PAGE = 512
_WINDOWS_PER_STEP = 50
_WINDOWS_AT_ONCE = 10
_LOOK_SECONDS = 0.25
_CAPPED_SECONDS = 900.0  # a day ends, and a cap may be raised: looking costs no token
_TURNS_LINKED = 20
_ERROR_CHARS_MAX = 300
_VECTORS_REMEMBERED_MAX = 10_000
_NO_WRITERS = Writers()


class _LeaseLostError(Exception):
    """Somebody else does this job now."""


class _StoppedError(Exception):
    """The worker was asked to stop in the middle."""


def triggers_of(settings: Settings) -> Triggers:
    """Return when to summarise, as the settings say it."""
    distill = settings.distill
    shares = [distill.every_chars, None if distill.context_share is None else int(distill.context_share * distill.context_chars)]
    folds = [distill.fold_chars, None if distill.fold_share is None else int(distill.fold_share * distill.context_chars)]
    return Triggers(
        turns=turns_due(settings),
        messages=messages_due(settings),
        chars=min((share for share in shares if share is not None), default=None),
        keep_raw_turns=distill.keep_raw_turns,
        oversized_chars=distill.oversized_chars,
        fold_chars=min(fold for fold in folds if fold is not None),
    )


class Worker:
    """Does the jobs of one workspace, one after the other."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        clock: Clock,
        ids: Ids,
        *,
        metrics: Metrics,
        writers: Writers = _NO_WRITERS,
        is_stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._is_stopped = is_stopped
        self._store = store
        self._workspace = settings.workspace
        self._settings = settings
        self._triggers = triggers_of(settings)
        self._clock = clock
        self._ids = ids
        self._linker = Linker(store, settings.workspace)
        self._stamper = Stamper(store, settings.workspace)
        self._sources = Sources(store, settings.workspace)
        self._metrics = metrics
        self._model, self._titles, self._embedder = writers
        self._held_at = clock.now()
        self._remembered: OrderedDict[tuple[str, str], Vector] = OrderedDict()

    async def wake_stale(self) -> None:
        """Have everything embedded that has no vector of the model that is used now."""
        model = self._chosen_embedder().name if self._settings.agent.memory.embeddings.enabled else None
        await self._store.jobs.wake_stale(self._workspace, model, self._clock.now())

    async def drain(self) -> int:
        """Do jobs until none is due; returns how many."""
        done = 0
        while await self.step():
            done += 1
        return done

    async def step(self) -> bool:
        """Do the job that has been due the longest; False when none is."""
        lease = await self._store.jobs.lease(self._workspace, self._clock.now(), LEASE_SECONDS, self._ids.fresh())
        if lease is None:
            return False
        self._held_at = self._clock.now()
        try:
            await self._done(lease)
        except _LeaseLostError:
            return True
        except _StoppedError:
            await self._store.jobs.release(self._workspace, lease)
            return False
        except NotFoundError:  # the conversation went meanwhile, and its job with it
            return True
        except SpendingError as error:  # nothing was sent, and nothing is wrong with the job
            now = self._clock.now()
            await self._store.jobs.defer(self._workspace, lease, now, str(error)[:_ERROR_CHARS_MAX], _CAPPED_SECONDS)
            return True
        except Exception as error:  # noqa: BLE001  whatever it was, the job is tried again, and parked with what happened
            said = f"{type(error).__name__}: {error}"[:_ERROR_CHARS_MAX]
            await self._store.jobs.fail(self._workspace, lease, self._clock.now(), said, random.random())  # noqa: S311  jitter
            return True
        await self._store.jobs.finish(self._workspace, lease, self._clock.now())
        return True

    async def _done(self, lease: Lease) -> None:
        memory = self._settings.agent.memory
        if lease.kind == "embed":
            await self._stamper.stamp_newest(lease.conversation_id)
            await self._link_newest(lease.conversation_id)
            if memory.embeddings.enabled:
                await self._embed(lease)
        elif lease.kind == "summarize" and self._settings.distill.enabled and memory.summarization.enabled:
            await self._summarise(lease)

    async def _beat(self, lease: Lease, *, surely: bool = False) -> None:
        """Hold the job for longer, once a part of the lease is over; or stop."""
        if self._is_stopped():
            raise _StoppedError
        waited = (self._clock.now() - self._held_at).total_seconds()
        if not surely and 0 <= waited < LEASE_SECONDS / 8:
            return
        self._held_at = self._clock.now()
        if not await self._store.jobs.extend(self._workspace, lease, self._clock.now(), LEASE_SECONDS):
            raise _LeaseLostError

    # Vectors

    def _chosen_embedder(self) -> Embedder:
        return self._embedder or default_embedder()

    async def _embed(self, lease: Lease) -> None:
        """Make the vectors that are missing; what is paid for is sent by the batch, so that none of it is lost at the day's cap."""
        embedder = self._chosen_embedder()
        count = _PASSAGES_PER_PAGE if self._embedder is None else self._settings.models.embeddings.batch_size
        while page := await self._store.derived.unembedded(self._workspace, lease.conversation_id, embedder.name, count):
            try:
                await self._embedded(lease, embedder, page)
            except SpendingError:
                if count == 1:
                    raise
                count //= 2  # what is left of the day may do for fewer

    async def _embedded(self, lease: Lease, embedder: Embedder, page: Sequence[Unembedded]) -> None:
        turns, texts = await self._texts(page)
        hashes = [content_hash(text) for text in texts]
        started = time.perf_counter()
        made = self._vectors(embedder, texts, hashes)
        vectors = await made if embedder is default_embedder() else await self._held(lease, made)
        self._metrics.embedded(len(texts), time.perf_counter() - started)
        embedded = [
            Embedded(key=one.key, terms=one.passage.terms, text_hash=text_hash, vector=vectors[text_hash])
            for one, text_hash in zip(page, hashes, strict=True)
        ]
        await self._beat(lease)
        if not await self._store.derived.put_embeddings(self._workspace, embedder.name, embedded, lease):
            raise _LeaseLostError
        await self._link(lease.conversation_id, turns)

    async def _link_newest(self, conversation_id: str) -> None:
        """Join the last turns to the code they speak of: they may have been written anew without anything to embed."""
        info = await self._store.conversations.get(self._workspace, conversation_id)
        if info is not None and await self._store.code.count(self._workspace, info.project_id):
            newest = TurnRange(limit=_TURNS_LINKED, newest=True)
            await self._linker.link(info.project_id, await self._store.turns.history(self._workspace, conversation_id, newest))

    async def _link(self, conversation_id: str, turns: Sequence[Turn]) -> None:
        info = await self._store.conversations.get(self._workspace, conversation_id) if turns else None
        if info is not None:
            await self._linker.link(info.project_id, turns)

    async def _texts(self, page: Sequence[Unembedded]) -> tuple[list[Turn], list[str]]:
        """Return the turns that passages belong to, and what the passages are searched by."""
        turn_ids = list(dict.fromkeys(one.owner_id for one in page if one.level == 0))
        turns = {turn.id: turn for turn in await self._store.turns.by_id(self._workspace, turn_ids)}
        summary_ids = list(dict.fromkeys(one.owner_id for one in page if one.level > 0))
        summaries = {one.id: one for one in await self._store.derived.summaries_by_id(self._workspace, summary_ids)}
        texts = [
            key_text(turns[one.owner_id], one.passage) if one.owner_id in turns
            else summary_text(summaries[one.owner_id]) if one.owner_id in summaries
            else one.passage.terms
            for one in page
        ]  # fmt: skip
        return list(turns.values()), texts

    async def _vectors(self, embedder: Embedder, texts: Sequence[str], hashes: Sequence[str]) -> dict[str, Vector]:
        """Return the vector of each text: remembered, known to the store, or made now."""
        wanted = dict(zip(hashes, texts, strict=True))
        found = {one: self._remembered[embedder.name, one] for one in wanted if (embedder.name, one) in self._remembered}
        missing = [one for one in wanted if one not in found]
        if missing and embedder is not default_embedder():  # looking one up costs more than making it anew with the shipped one
            found |= await self._store.derived.known_vectors(self._workspace, embedder.name, missing)
            missing = [one for one in wanted if one not in found]
        if missing:
            made = quantised(await embedder.embed([wanted[one] for one in missing]))
            found |= dict(zip(missing, made, strict=True))
        if embedder is not default_embedder():
            self._remember(embedder.name, found)
        return found

    def _remember(self, name: str, found: dict[str, Vector]) -> None:
        self._remembered |= {(name, text_hash): vector for text_hash, vector in found.items()}
        while len(self._remembered) > _VECTORS_REMEMBERED_MAX:
            self._remembered.popitem(last=False)

    async def _held(self, lease: Lease, work: Awaitable[_T]) -> _T:
        """Wait for something slow, holding the job all the while."""
        task = asyncio.ensure_future(work)
        try:
            waited = 0.0
            while not (await asyncio.wait([task], timeout=_LOOK_SECONDS))[0]:
                waited += _LOOK_SECONDS
                if self._is_stopped() or waited >= LEASE_SECONDS / 4:
                    await self._beat(lease)
                    waited = 0.0
        except BaseException:
            await given_up([task])  # what it was to be paid for is written down before the store closes
            raise
        return task.result()

    # Summaries

    async def _summarise(self, lease: Lease) -> None:
        made = 0
        while windows := await self._due(lease.conversation_id):
            at_once = _WINDOWS_AT_ONCE if self._model is None else 1  # what a model wrote is kept before it is asked again
            for first in range(0, len(windows), at_once):
                if made >= _WINDOWS_PER_STEP:  # others wait, too
                    await self._store.jobs.wake(self._workspace, lease.conversation_id, "summarize", self._clock.now())
                    return
                await self._beat(lease)
                written = await self._written(lease, windows[first : first + at_once])
                made += written
                if not written:
                    break  # what is covered changed meanwhile: look again
        await self._tell(lease, made=made > 0)

    async def _due(self, conversation_id: str) -> list[Window]:
        """Return what is due at the lowest level that has anything due; a level is folded when it is whole."""
        sizes = await self._store.turns.sizes(self._workspace, conversation_id)
        shown = [_size(one) for one in await self._store.derived.shown_summaries(self._workspace, conversation_id)]
        windows = turn_windows(sizes, shown, self._triggers)
        for level in sorted({one.level for one in shown}):
            windows = windows or fold_windows(shown, level, self._triggers)
        return windows

    async def _written(self, lease: Lease, windows: Sequence[Window]) -> int:
        """Summarise windows of one level, all or none; 0 when what they cover has changed meanwhile."""
        started = time.perf_counter()
        covered = await self._sources.of(lease.conversation_id, windows)
        summaries = [
            self._summary(lease.conversation_id, window, *await self._told(lease, one), one.turn_count)
            for window, one in zip(windows, covered.asked, strict=False)
        ]
        if not summaries:
            return 0
        expiries = await self._expiries(lease.conversation_id, summaries)
        if not await self._store.derived.put_summaries(self._workspace, summaries, lease=lease, unless=covered.unless, expiries=expiries):
            await self._beat(lease, surely=True)  # tells a lost lease from a changed turn
            return 0
        self._metrics.summarised(len(summaries), time.perf_counter() - started)
        return len(summaries)

    async def _expiries(self, conversation_id: str, summaries: Sequence[Summary]) -> dict[str, datetime]:
        """Return when summaries are gone, as the settings of their project say."""
        info = await self._store.conversations.get(self._workspace, conversation_id) if self._settings.projects else None
        if info is None:
            return {}
        policy = await conversation_policy(self._store, self._workspace, self._settings, info)
        found = {one.id: policy.summary_expiry(one.created_at) for one in summaries}
        return {own_id: moment for own_id, moment in found.items() if moment is not None}

    async def _told(self, lease: Lease, asked: Asked) -> tuple[Told, str]:
        """Return what the model says, or the extractive summary when there is none or it is of no use; and who wrote it."""
        if self._model is None:
            return asked.facts, AUTHOR
        try:
            told = await self._held(lease, told_by(self._model, asked, self._settings.distill.model_seconds_max))
        except ModelError as error:
            self._metrics.fell_back(str(error))
            return asked.facts, AUTHOR
        return told, self._model.name

    async def _titled(self, model: TitleModel, lease: Lease, told: str, otherwise: str | None) -> str | None:
        """Return the title that a model gives a conversation, or another one when it gives none of use."""
        try:
            return await self._held(lease, titled_by(model, told, self._settings.distill.model_seconds_max))
        except ModelError as error:
            self._metrics.fell_back(str(error))
            return otherwise

    def _summary(self, conversation_id: str, window: Window, told: Told, author: str, turn_count: int) -> Summary:
        own_id = identity("summary", conversation_id, window.level, window.source_ids[0], window.source_ids[-1])
        return Summary(
            id=own_id, conversation_id=conversation_id, level=window.level, summary=told.summary, actions=told.actions,
            key_findings=told.key_findings, files_mentioned=told.files_mentioned, tools_used=told.tools_used, topics=told.topics,
            first_turn=window.first_turn, last_turn=window.last_turn, turn_count=turn_count, char_count=told.chars, author=author,
            created_at=self._clock.now(), source_ids=window.source_ids,
        )  # fmt: skip

    # What a conversation is about

    async def _tell(self, lease: Lease, *, made: bool) -> None:
        """Write a title and a summary, when there is something new to tell."""
        held = await self._store.conversations.held(self._workspace, lease.conversation_id)
        if held is None or not held.conversation.turn_count:
            return
        grown = held.next_index - 1 - held.told_to
        if held.conversation.summary is not None and not made and grown < (self._triggers.turns or 1):
            return
        conversation_id = lease.conversation_id
        shown = await self._store.derived.shown_summaries(self._workspace, conversation_id)
        recent = await self._store.turns.history(self._workspace, conversation_id, TurnRange(limit=_RECENT_TURNS_MAX, newest=True))
        first = await self._store.turns.history(self._workspace, conversation_id, TurnRange(limit=1))
        told = _about(shown, recent)
        title = title_of(first, held.conversation.title if held.has_own_title else None)
        if self._titles is not None:  # once: later words are worth no second call
            title = held.conversation.title or await self._titled(self._titles, lease, told, title)
        await self._store.conversations.tell(self._workspace, held, title, told, lease)


_RECENT_TURNS_MAX = 3


def _size(summary: Summary) -> SummarySize:
    return SummarySize(summary.id, summary.level, summary.first_turn, summary.last_turn, summary.char_count, summary.source_ids)


def _about(shown: Sequence[Summary], recent: Sequence[Turn]) -> str:
    """Return what a conversation came to, from its highest summaries and its last turns."""
    highest = max((one.level for one in shown), default=0)
    top = [one for one in shown if one.level == highest]
    if not top:
        return summarise_turns(recent).summary
    last = summarise_turns([turn for turn in recent if turn.index > top[-1].last_turn] or recent)
    newest = msgspec.structs.replace(top[-1], summary=last.summary, key_findings=(), char_count=last.chars)
    return fold_summaries([*top, newest], Actions()).summary
