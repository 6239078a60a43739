"""What was learned in conversations: analysed, many at once, and found again; the analysing half of `Memory`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, overload

from recollect.checks import checked_count, checked_plain, checked_text
from recollect.errors import ConfigError, InputError
from recollect.halves.core import Core
from recollect.limits import ANALYSIS_AT_ONCE_MAX, ANALYSIS_RETRIES_MAX, TASK_CHARS_MAX
from recollect.opening import on_a_loop
from recollect.store.shapes import ConversationFilter, InsightFilter

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Sequence

    from pydantic_ai.models import Model

    from recollect.analysis.asking import Analyst
    from recollect.analysis.running import Run, Wanted
    from recollect.answers import Analyses, Hit
    from recollect.memory import Memory
    from recollect.model import Insight


class Named(Protocol):
    """What can be analysed: a conversation, however it is held."""

    @property
    def id(self) -> str:
        """The conversation's id."""
        ...


class Analysed(Core):
    """What a memory learned from its conversations."""

    async def analyze(
        self,
        conversations: Iterable[Named | str] | None = None,
        *,
        task: str | None = None,
        output_schema: object = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        limit: int = 50,
        concurrency: int = 4,
        retries: int = 2,
        again: bool = False,
        model: Model | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Analyses:
        """Find insights in conversations: those given, else the `limit` that changed last, of a project or of all.

        An insight is what `output_schema` says: a msgspec Struct, a pydantic model, or a JSON schema; by default the main
        topic, key findings and action items, which need no model. `task` says what to look for. It is asked of `model`,
        else of `models.analysis`. One whose turns are as they were is left as it is, unless it is to be found `again`.
        At the daily cap the rest is left, and told as not done; `progress` is told how many are through, and of how many.
        """
        from recollect.analysis.running import Wanted  # noqa: PLC0415  only those who analyse need it
        from recollect.analysis.shapes import shape_of  # noqa: PLC0415  as above

        wanted = Wanted(
            shape=shape_of(output_schema),
            task=self._checked_task(task),
            concurrency=_checked_concurrency(concurrency),
            retries=checked_count("retries", retries, ANALYSIS_RETRIES_MAX),
            again=again,
        )
        own_ids = _ids_of(conversations) if conversations is not None else await self._newest(project, cwd, checked_count("limit", limit))
        if model is None and self.settings.models.analysis.name is None:
            if not wanted.shape.is_overview:
                msg = "an output_schema of your own needs a model: set models.analysis.name in the configuration, or pass model="
                raise ConfigError(msg)
            return await self._run(wanted, None).over(own_ids, progress)
        return await on_a_loop(self._asked(wanted, own_ids, model, progress))

    async def _asked(
        self, wanted: Wanted, own_ids: Sequence[str], model: Model | None, progress: Callable[[int, int], None] | None
    ) -> Analyses:
        try:
            from recollect.analysis.asking import open_analyst  # noqa: PLC0415  only those who ask a model need it
        except ImportError as error:
            msg = "models.analysis names a model, which needs one more package: pip install 'recollect[models]'"
            raise ConfigError(msg) from error
        async with open_analyst(self.settings, self.store, self.clock, self.ids, wanted.shape, wanted.task, model) as analyst:
            return await self._run(wanted, analyst).over(own_ids, progress)

    def _run(self, wanted: Wanted, analyst: Analyst | None) -> Run:
        from recollect.analysis.running import Run  # noqa: PLC0415  as above

        return Run(self.store, self.settings, self.clock, lambda: self.recorder.reading().cleaner, wanted, analyst)

    def _checked_task(self, task: str | None) -> str:
        """Return a task without secrets: it is sent to a model, and kept."""
        said = " ".join(checked_text("task", task or "").split())
        if len(said) > TASK_CHARS_MAX:
            msg = f"a task has at most TASK_CHARS_MAX = {TASK_CHARS_MAX:,} characters, not {len(said):,}: say it in fewer words"
            raise InputError(msg)
        return self._clean(said)

    async def _newest(self, project: str | None, cwd: str | os.PathLike[str] | None, limit: int) -> list[str]:
        where = ConversationFilter(project_ids=await self._projects.ids(project, cwd))
        return [info.id for info in await self.store.conversations.find(self.workspace, where, limit)]

    @overload
    async def insights(
        self,
        query: None = None,
        *,
        conversation: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Insight]: ...

    @overload
    async def insights(
        self,
        query: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Hit]: ...

    async def insights(
        self,
        query: str | None = None,
        *,
        conversation: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Insight] | list[Hit]:
        """Return what was found before, newest first; with a query the hits of kind "insight", best first.

        Of a conversation, of a project, or of the whole workspace; nothing is asked of any model.
        """
        checked_count("limit", limit)
        own_id = checked_plain("conversation", conversation)
        if own_id is not None:
            await self.get_info(own_id)
        where = InsightFilter(conversation_id=own_id, project_ids=await self._projects.ids(project, cwd), kind=checked_plain("kind", kind))
        if where.project_ids == () or not limit:
            return []
        if query is None:
            return await self.store.derived.find_insights(self.workspace, where, limit)
        return await self.recall.insights(query, where, limit=limit)


def _checked_concurrency(value: int) -> int:
    if checked_count("concurrency", value, ANALYSIS_AT_ONCE_MAX) < 1:
        msg = f"concurrency is a whole number from 1 to {ANALYSIS_AT_ONCE_MAX}, not 0: nobody would be asked"
        raise InputError(msg)
    return value


async def batch_analyze(
    items: Iterable[Named | str],
    task: str | None = None,
    output_schema: object = None,
    *,
    memory: Memory | None = None,
    concurrency: int = 4,
    retries: int = 2,
    again: bool = False,
    model: Model | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Analyses:
    """Find insights in many conversations, as `Memory.analyze`; ids and list entries need the memory they are of."""
    given = list(_named(items))
    owners = {id(owner): owner for owner in (getattr(item, "memory", None) for item in given) if owner is not None}
    if memory is not None:
        owners = {id(memory): memory}
    if len(owners) != 1:
        msg = f"conversations of one memory are analysed at a time, not of {len(owners)}: say which with memory="
        raise InputError(msg)
    own: Memory = next(iter(owners.values()))
    return await own.analyze(
        given, task=task, output_schema=output_schema, concurrency=concurrency, retries=retries, again=again, model=model,
        progress=progress,
    )  # fmt: skip


def _named(items: Iterable[Named | str]) -> Iterable[Named | str]:
    if isinstance(items, str) or not hasattr(items, "__iter__"):
        msg = f"conversations are a list of ids or of what has one, not {str(items)[:60]!r}"
        raise InputError(msg)
    return items


def _ids_of(items: Iterable[Named | str]) -> list[str]:
    """Return the ids of conversations, each once."""
    return list(dict.fromkeys(checked_plain("a conversation", item if isinstance(item, str) else item.id) or "" for item in _named(items)))
