"""Many conversations analysed, some at once: each one planned, shown, answered, checked and stored on its own.

What was done is stored before the next one begins, so whatever stops the rest (a cap, an interruption, a crash), the same
call again goes on from there: an insight whose turns are as they were is left as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recollect.analysis.extractive import AUTHOR, overview
from recollect.analysis.material import material_of, material_text
from recollect.analysis.shapes import Shape
from recollect.answers import Analyses, Analysis
from recollect.capture.clean import parse_json
from recollect.distill.keeping import conversation_policy
from recollect.errors import InputError, ModelError, NotFoundError, SpendingError, StoreError
from recollect.identity import identity
from recollect.limits import ANALYSIS_TURNS_MAX, INSIGHT_CHARS_MAX
from recollect.model import NOT_RECORDED_TAG, ConversationInfo, Insight, Json
from recollect.store.shapes import TurnRange

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from recollect.analysis.asking import Analyst
    from recollect.analysis.material import Material
    from recollect.capture.clean import Cleaner
    from recollect.clock import Clock
    from recollect.policies import Policy
    from recollect.settings import Settings
    from recollect.store import Store

_MOVED_ATTEMPTS_MAX = 3
_REASON_CHARS_MAX = 300


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of each conversation, and how."""

    shape: Shape
    task: str = ""
    concurrency: int = 4
    retries: int = 2
    again: bool = False


class _Found(NamedTuple):
    """What an insight says, who says it, and what went wrong before somebody could."""

    body: dict[str, Json]
    author: str
    reason: str | None = None


class _SkippedError(Exception):
    """Nothing of this conversation is kept, so nothing of it is analysed."""


class Run:
    """One call for many conversations; without an asker it needs no event loop."""

    def __init__(
        self, store: Store, settings: Settings, clock: Clock, cleaner: Callable[[], Cleaner], wanted: Wanted, analyst: Analyst | None
    ) -> None:
        self._store = store
        self._workspace = settings.workspace
        self._settings = settings
        self._clock = clock
        self._cleaner = cleaner
        self._wanted = wanted
        self._analyst = analyst
        self._stopped: ModelError | None = None

    async def over(self, conversation_ids: Sequence[str], progress: Callable[[int, int], None] | None) -> Analyses:
        """Analyse conversations; `progress` is told how many are through, and of how many."""
        waiting = list(enumerate(conversation_ids))[::-1]
        items: dict[int, Analysis] = {}

        async def work() -> None:
            while waiting:
                place, conversation_id = waiting.pop()
                items[place] = await self._one(conversation_id)
                if progress is not None:
                    progress(len(items), len(conversation_ids))

        if self._analyst is None:
            await work()
        else:
            from recollect.waiting import together  # noqa: PLC0415  doors without an event loop never pay for one

            await together([work() for _ in range(min(self._wanted.concurrency, len(waiting)))])
        stopped = self._stopped
        return Analyses(
            items=tuple(items[place] for place in range(len(conversation_ids))),
            stopped=None if stopped is None else str(stopped),
            is_capped=isinstance(stopped, SpendingError),
        )

    async def _one(self, conversation_id: str) -> Analysis:
        """Analyse one conversation; whatever is wrong with it is told of it alone."""
        info = await self._store.conversations.get(self._workspace, conversation_id)
        if info is None:
            reason = f"there is no conversation {conversation_id!r} in workspace {self._workspace!r}"
            return Analysis(conversation_id=conversation_id, status="failed", reason=reason)
        analysis = Analysis(conversation_id=conversation_id, conversation_title=info.title, status="not_done")
        try:
            return await self._analysed(info, analysis)
        except _SkippedError as skipped:
            return msgspec.structs.replace(analysis, status="skipped", reason=str(skipped))
        except NotFoundError:
            return msgspec.structs.replace(analysis, status="failed", reason="it was deleted while it was analysed")
        except ModelError as error:
            from recollect.models.asking import RefusedError  # noqa: PLC0415  who asks a model has it loaded

            if isinstance(error, SpendingError | RefusedError):
                self._stopped = self._stopped or error
                return msgspec.structs.replace(analysis, status="not_done", reason=_told(error))
            return msgspec.structs.replace(analysis, status="failed", reason=_told(error))
        except StoreError:
            raise  # no other conversation would fare better
        except Exception as error:  # noqa: BLE001  a caller's own schema may fail in any way, and no other item is to suffer
            return msgspec.structs.replace(analysis, status="failed", reason=f"{type(error).__name__}: {_told(error)}")

    async def _analysed(self, info: ConversationInfo, analysis: Analysis) -> Analysis:
        policy = await self._policy(info)
        own_id = identity("insight", info.id, self._wanted.shape.kind, self._wanted.task, self._wanted.shape.fingerprint)
        for _ in range(_MOVED_ATTEMPTS_MAX):
            source_hash, last_turn = await self._store.derived.fingerprint(self._workspace, info.id)
            known = None if self._wanted.again else await self._known(info.id, own_id)
            if known is not None and self._is_current(known, source_hash):
                return msgspec.structs.replace(analysis, status="unchanged", insight=known)
            if self._stopped is not None:
                raise self._stopped
            material = await self._material(info, last_turn)
            found = await self._found(material)
            insight = Insight(
                id=own_id, conversation_id=info.id, kind=self._wanted.shape.kind, task=self._wanted.task, body=found.body,
                author=found.author, source_hash=source_hash, last_turn=last_turn, created_at=self._clock.now(),
            )  # fmt: skip
            expiry = policy.summary_expiry(insight.created_at)
            expiries = {} if expiry is None else {own_id: expiry}
            if await self._store.derived.put_insights(
                self._workspace, [insight], expiries=expiries, made_of=material.summary_ids, if_standing=True
            ):
                return msgspec.structs.replace(analysis, status="done", insight=insight, reason=found.reason)
        return msgspec.structs.replace(analysis, status="failed", reason="it kept changing while it was analysed: analyse it again")

    async def _known(self, conversation_id: str, own_id: str) -> Insight | None:
        """Return what was found before; it is not read when it is to be found again, as one that is damaged is."""
        return next((one for one in await self._store.derived.insights(self._workspace, conversation_id) if one.id == own_id), None)

    def _is_current(self, known: Insight, source_hash: str) -> bool:
        """Tell whether an insight needs no other: its turns are as they were, and no model would say what was only quoted."""
        return known.source_hash == source_hash and (self._analyst is None or known.author != AUTHOR)

    async def _policy(self, info: ConversationInfo) -> Policy:
        policy = await conversation_policy(self._store, self._workspace, self._settings, info)
        reasons = {
            "nothing of its project is recorded": policy.excludes,
            "it is not to be recorded": NOT_RECORDED_TAG in info.tags,
            "memory is switched off (agent.memory.enabled)": not self._settings.agent.memory.enabled,
            "there is no turn in it": not info.turn_count,
        }
        for reason, holds in reasons.items():
            if holds:
                raise _SkippedError(reason)
        return policy

    async def _material(self, info: ConversationInfo, last_turn: int) -> Material:
        shown = await self._store.derived.shown_summaries(self._workspace, info.id)
        first = await self._store.turns.history(self._workspace, info.id, TurnRange(limit=1))
        span = TurnRange(last=max(last_turn, 0), limit=ANALYSIS_TURNS_MAX, newest=True)
        return material_of(info, shown, first, await self._store.turns.history(self._workspace, info.id, span), last_turn)

    async def _found(self, material: Material) -> _Found:
        if self._analyst is None:
            return _Found(self._kept(overview(material, self._wanted.task)), AUTHOR)
        try:
            return _Found(await self._answered(self._analyst, material_text(material)), self._analyst.name)
        except _UnusableError as error:
            if not self._wanted.shape.is_overview or self._wanted.task:
                raise
            return _Found(self._kept(overview(material, "")), AUTHOR, f"in the words of the conversation, because {_told(error)}")

    async def _answered(self, analyst: Analyst, shown: str) -> dict[str, Json]:
        """Ask until an answer fits, as often as is allowed; what may pass is waited for."""
        from recollect.analysis.asking import back_off  # noqa: PLC0415  as above
        from recollect.models.asking import PassingError  # noqa: PLC0415  as above

        is_again = False
        for attempt in range(self._wanted.retries + 1):
            try:
                return self._read(await analyst.ask(shown, again=is_again), analyst.name)
            except _UnusableError:
                is_again = True
                if attempt == self._wanted.retries:
                    raise
            except PassingError as error:
                if attempt == self._wanted.retries:
                    raise
                await back_off(attempt, error)
        raise AssertionError  # the last attempt returns or raises

    def _read(self, said: str, name: str) -> dict[str, Json]:
        """Return what a model said as it is kept: parsed, without secrets, and checked."""
        if len(said) > INSIGHT_CHARS_MAX:
            msg = f"the model {name!r} gave {len(said):,} characters, more than INSIGHT_CHARS_MAX = {INSIGHT_CHARS_MAX:,}"
            raise _UnusableError(msg)
        try:
            return self._kept(self._wanted.shape.check(self._cleaner().value(parse_json(_object_in(said)))))
        except (InputError, ValueError, TypeError) as error:
            msg = f"the model {name!r} gave no answer that fits: {_told(error)}"
            raise _UnusableError(msg) from error

    def _kept(self, body: dict[str, Json]) -> dict[str, Json]:
        """Return a body as it may be stored, whoever wrote it: what a schema added is cleaned, too."""
        kept = self._cleaner().value(body)
        if not isinstance(kept, dict):
            msg = "an insight is an object with fields"
            raise TypeError(msg)
        return kept


class _UnusableError(ModelError):
    """A model answered, and what it said is of no use."""


def _object_in(said: str) -> str:
    """Return the JSON object of an answer that says more than that."""
    first, last = said.find("{"), said.rfind("}")
    return said[first : last + 1] if 0 <= first < last else said


def _told(error: Exception) -> str:
    return " ".join(str(error).split())[:_REASON_CHARS_MAX]
