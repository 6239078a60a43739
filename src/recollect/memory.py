"""The memory of agents as a program holds it: open, record, search, forget; the outer door of the library."""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.answers import Recorded, SearchResult, Session, session_of
from recollect.capture.paths import place_of
from recollect.checks import checked_count, checked_levels, checked_plain, checked_share, checked_text
from recollect.clock import RandomIds, SystemClock
from recollect.conversation import Conversation
from recollect.documents.document import rehashed
from recollect.errors import InputError
from recollect.halves.analyzing import Analysed
from recollect.halves.auditing import Audited
from recollect.halves.distilling import Distilled
from recollect.halves.indexing import Coded
from recollect.halves.upkeep import Kept
from recollect.model import Project, Turn
from recollect.opening import off_the_loop, settings_of
from recollect.placing import unplaced
from recollect.projects import filter_of
from recollect.store import open_store
from recollect.store.shapes import ConversationFilter, SearchScope

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import Sequence
    from types import TracebackType
    from typing import Self

    from recollect.answers import SimilarConversation
    from recollect.clock import Clock, Ids
    from recollect.compose.context import Context, Strategy
    from recollect.distill.models import SummaryModel
    from recollect.model import ConversationInfo, ConversationStatus
    from recollect.record.shapes import OnEdit
    from recollect.settings import Settings

_ALL = 1_000_000


class Memory(Analysed, Audited, Coded, Distilled, Kept):
    """Everything that is remembered in one workspace of one store."""

    @classmethod
    async def open(
        cls,
        store: str | os.PathLike[str] | None = None,
        *,
        workspace: str | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        summary_model: SummaryModel | None = None,
        worker: bool | None = None,
        threads: bool = True,
    ) -> Self:
        """Open a memory: what is not given comes from the user's configuration, and a file that is missing is created.

        A worker in the background distils what is recorded, unless `worker`, the settings or `RECOLLECT_WORKER=off` say
        otherwise; `summary_model` writes the summaries, which are extractive without one.
        """
        chosen = settings_of(store, workspace, settings)
        opened = await open_store(chosen.store, chosen, clock=clock, threads=threads)
        memory = cls(opened, chosen, clock or SystemClock(), ids or RandomIds(), summary_model=summary_model)
        if worker if worker is not None else chosen.distill.worker and os.environ.get("RECOLLECT_WORKER") != "off":
            memory.begin_background()
        return memory

    def begin_background(self) -> None:
        """Have what is recorded distilled, and what has expired swept away, in the background."""
        from recollect.distill.background import Background  # noqa: PLC0415  commands have no worker

        models = self.settings.models
        if models.summaries.name is not None or models.titles.name is not None:
            # here, and not in the worker's thread: packages that import one another in circles break when two threads load them
            from recollect.models.providers import load_packages  # noqa: PLC0415  only those who have a model need it

            load_packages(models.summaries, models.titles)
        self._background = Background(self._apart, self.metrics)
        self._background.start()

    async def _apart(self) -> Self:
        """Return the same memory on a store of its own, for another thread."""
        store = await open_store(self.settings.store, self.settings, clock=self.clock, threads=False)
        own = type(self)(store, self.settings, self.clock, RandomIds(), summary_model=self._summary_model)
        own.metrics = self.metrics
        return own

    def adopt(self, settings: Settings) -> None:
        """Go on with other settings of summaries, vectors and contexts; the worker in the background does so from its next look on."""
        self.settings = settings
        for made in ("recall", "contexts"):
            self.__dict__.pop(made, None)

    async def close(self) -> None:
        """Let go of the store; what was acknowledged is safe, and what is not distilled yet waits for the next worker.

        Answers that are still under way are stopped first, and kept as what they were.
        """
        await self._stopped()
        await self.rest()
        await self.store.close()

    async def _stopped(self) -> None:
        for task in self._underway:
            task.cancel()
        if self._underway:
            import asyncio  # noqa: PLC0415  who has tasks has it loaded

            await asyncio.wait(list(self._underway))

    @cached_property
    def _underway(self) -> set[Task[Any]]:
        return set()

    def hold(self, task: Task[Any]) -> None:
        """Have something that is under way stopped before the store closes, unless it has ended by then."""
        self._underway.add(task)
        task.add_done_callback(self._underway.discard)

    async def rest(self) -> None:
        """Stop working in the background; the store, which others may share, stays open."""
        if self._background is not None:
            await off_the_loop(self._background.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def save(self) -> int:
        """Write the turns that `auto_save: false` kept in the process; returns how many."""
        saved = await self.recorder.save()
        for conversation_id in dict.fromkeys(result.conversation_id for result in saved):
            await self.mirrored(conversation_id)
        return sum(len(result.turns) for result in saved)

    async def create_conversation(
        self,
        cwd: str | os.PathLike[str] | None = None,
        *,
        project: str | None = None,
        title: str | None = None,
        tags: Sequence[str] = (),
        agent: str | None = None,
        external_id: str | None = None,
    ) -> Conversation:
        """Create a conversation in the project of a directory, or in one that is named; the same `external_id` gives the same one."""
        info, owner = self._begun(cwd, project=project, title=title, tags=tags, agent=agent, external_id=external_id)
        return Conversation(self, await self.recorder.begin(info, owner))

    async def load_conversation(self, conversation_id: str) -> Conversation:
        """Return a conversation; `NotFoundError` when the workspace has none of that id."""
        return Conversation(self, await self.get_info(conversation_id))

    async def list_conversations(
        self,
        *,
        status: ConversationStatus | None = None,
        tags: Sequence[str] = (),
        cwd: str | os.PathLike[str] | None = None,
        project: str | None = None,
        agent: str | None = None,
        limit: int = 50,
    ) -> list[ConversationInfo]:
        """Return conversations, the latest change first: of any of the tags, of the project of a directory or by name."""
        checked_count("limit", limit)
        if status not in {None, "active", "archived"}:
            msg = f"a conversation is active or archived, not {status!r}"
            raise InputError(msg)
        project_ids = await self._projects.ids(project, cwd)
        where = ConversationFilter(status=status, tags=self.clean_tags(tags) if tags else (), project_ids=project_ids, agent=agent)
        return await self.store.conversations.find(self.workspace, where, limit)

    async def projects(self) -> list[Project]:
        """Return the projects of the workspace by name."""
        return await self.store.conversations.projects(self.workspace)

    async def sessions(self, cwd: str | os.PathLike[str] = ".") -> list[Session]:
        """Return the active conversations of a directory's project, newest first, as somebody who wants to resume one sees them."""
        return [session_of(info) for info in await self.list_conversations(cwd=cwd, status="active", limit=_ALL)]

    async def record(
        self,
        payload: Any,
        *,
        conversation: str | None = None,
        replace: bool = False,
        on_edit: OnEdit = "branch",
    ) -> Recorded:
        """Record a whole request (FORMATS §1), or a `Turn`, in the conversation it names or that is given.

        What the conversation already holds is recognised; the notes of the answer count what was read with tolerance.
        """
        target = None if conversation is None else (await self.get_info(conversation))
        if isinstance(payload, Turn):
            return await self._record_turn(payload, target, replace=replace)
        cwd = cast("dict[str, Any]", payload).get("cwd") if isinstance(payload, dict) else None
        place = place_of(target.cwd if target is not None else self._projects.path(cwd) if isinstance(cwd, str) and cwd else None)
        reading = self.recorder.reading(place)
        from recollect.capture.payload import read_payload  # noqa: PLC0415  only those who record need it

        read = read_payload(payload, reading)
        owner = None
        if target is None:
            external_id = read.chat_id or read.request_id
            target, owner = self._begun(read.cwd, project=read.project, title=read.title, agent=read.agent, external_id=external_id)
        result = await self.recorder.history(
            target, read.turns, request_id=read.request_id, replace=replace, on_edit=on_edit, project=owner
        )
        if replace and read.request_id is not None:  # pieces that still come to it would put back what it was
            now, conversation_id = self.clock.now(), result.conversation_id
            await self.store.requests.let_go(self.workspace, read.request_id, now, conversation_id=conversation_id)
        await self.mirrored(result.conversation_id)
        return result.recorded(read.request_id, dict(+reading.notes))

    async def _record_turn(self, turn: Turn, target: ConversationInfo | None, *, replace: bool) -> Recorded:
        owner = target or await self.get_info(turn.conversation_id)
        reading = self.recorder.reading(place_of(owner.cwd))
        cleaned = rehashed(unplaced(msgspec.convert(reading.cleaner.value(turn), Turn)))
        result = await self.recorder.append(owner.id, [cleaned], request_id=cleaned.request_id, replace=replace)
        await self.mirrored(owner.id)
        return result.recorded(cleaned.request_id, dict(+reading.notes))

    async def search(
        self,
        query: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        agent: str | None = None,
        tags: Sequence[str] = (),
        since: Any = None,
        until: Any = None,
        tool: str | None = None,
        file: str | None = None,
        levels: Sequence[int] | None = None,
        limit: int = 10,
        semantic: bool = True,
        minimum_score: float = 0.0,
    ) -> SearchResult:
        """Search turns and summaries in one conversation, one project, or the whole workspace; any string at all is a legal query.

        Every given filter must hold, any of the tags: the agent a conversation came from, when a turn was (`since`
        included, `until` not: times, dates or ISO text), a tool it used, a file it touched.
        """
        project_ids = await self._projects.ids(project, cwd)
        if conversation is not None and project_ids is not None:
            msg = "search one conversation or one project: give conversation, or project or cwd, not both"
            raise InputError(msg)
        if project_ids == ():
            return SearchResult(retrievers={"terms": "not run: nothing is recorded in that project", "meaning": "not run: as terms"})
        where = filter_of(self.clean_tags(tags), agent=agent, since=since, until=until, tool=tool, file=file)
        scope = SearchScope(
            conversation_id=checked_plain("conversation", conversation), project_ids=project_ids, levels=checked_levels(levels), where=where
        )
        return await self.recall.search(
            query, scope, limit=limit, semantic=semantic, minimum_score=checked_share("minimum_score", minimum_score)
        )

    async def find_similar_conversations(
        self,
        query: str,
        limit: int = 5,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        semantic: bool = True,
    ) -> list[SimilarConversation]:
        """Return the conversations that come closest to a text, best first, with the hit that says why, and what was learned there."""
        return await self.recall.similar(query, await self._projects.ids(project, cwd), limit=limit, semantic=semantic)

    async def context(
        self,
        prompt: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        budget_chars: int | None = None,
        budget_tokens: int | None = None,
        strategy: Strategy = "hybrid",
        recent_messages: int | None = None,
        relevant_messages: int | None = None,
        include_summary: bool = True,
        semantic: bool = True,
        other_conversations: bool = True,
        wait_seconds: float | None = None,
        messages: Sequence[Any] | None = None,
    ) -> Context:
        """Compose what matters for a prompt, from a conversation and the rest of its project, or from a project or all of them.

        It never has more than `budget_chars` characters, nor more tokens than `budget_tokens` by a safe estimate. What is
        not given comes from the settings. `messages` are what the agent holds: they are used where memory has nothing.
        """
        from recollect.compose.contexts import Wanted  # noqa: PLC0415  as above

        wanted = Wanted(
            strategy=strategy, budget_chars=budget_chars, budget_tokens=budget_tokens, recent_messages=recent_messages,
            relevant_messages=relevant_messages, include_summary=include_summary, semantic=semantic,
            other_conversations=other_conversations, wait_seconds=wait_seconds, messages=messages,
        )  # fmt: skip
        if conversation is not None:
            return await self.contexts.of_conversation(lambda: self.get_info(conversation), checked_text("prompt", prompt), wanted)
        return await self.contexts.of_scope(lambda: self._projects.ids(project, cwd), prompt, wanted)

    async def import_conversation(self, document: Any, *, replace: bool = False, new_id: bool = False) -> Conversation:
        """Read an exported conversation back, under its own id, or under a fresh one.

        The same document again changes nothing; another conversation under its id is a `ConflictError`, unless it is to
        be replaced.
        """
        from recollect.documents.importing import Importer  # noqa: PLC0415  only those who import need it

        created = await Importer(self.store, self.workspace, self.recorder, self.ids).read(document, replace=replace, new_id=new_id)
        await self.mirrored(created.id)
        return Conversation(self, created)
