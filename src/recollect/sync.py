"""The library without `await`: generated from `memory` and `conversation` by tools/generate.py; do not edit.

Each method is the one of the same name, run to its end in the caller's thread.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from recollect import conversation as _conversation
from recollect import memory as _memory
from recollect import opening as _opening
from recollect.running import runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from pydantic_ai.models import Model

    from recollect.answers import (
        AccessedFile,
        Analyses,
        Forgotten,
        HistoryMessage,
        Hit,
        Indexed,
        ModelSpending,
        Recorded,
        Rewritten,
        ScopeHit,
        ScopeUse,
        SearchResult,
        Session,
        SimilarConversation,
        Stats,
        Swept,
        Verification,
    )
    from recollect.clock import Clock, Ids
    from recollect.compose.context import Context, Strategy
    from recollect.distill.models import SummaryModel
    from recollect.documents.exporting import Format
    from recollect.halves.analyzing import Named
    from recollect.model import ConversationInfo, ConversationStatus, Insight, Project, Summary, ToolCall, Turn, TurnStatus
    from recollect.record.shapes import OnEdit
    from recollect.running import Runner
    from recollect.settings import Settings
    from recollect.trace.answers import CheckpointEntry, ContextUsage, FileUsage, Flow, ToolReliability, Why


class Memory:
    """`recollect.Memory`, without `await`."""

    def __init__(self, memory: _memory.Memory, by: Runner) -> None:
        self._of = memory
        self._by = by
        self._closed = False

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str] | None = None,
        *,
        workspace: str | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        summary_model: SummaryModel | None = None,
        worker: bool | None = None,
    ) -> Self:
        """Open a memory: what is not given comes from the user's configuration, and a file that is missing is created."""
        chosen = _opening.settings_of(store, workspace, settings)
        by = runner(waits=_opening.needs_a_loop(chosen) or summary_model is not None)
        opened = _memory.Memory.open(settings=chosen, clock=clock, ids=ids, summary_model=summary_model, worker=worker, threads=False)
        try:
            return cls(by.run(opened), by)
        except BaseException:
            by.close()
            raise

    def close(self) -> None:
        """Let go of the store; what was acknowledged is safe. In a forked process nothing is touched: it belongs to the other."""
        if not self._closed and self._by.process == os.getpid():
            self._closed = True
            try:
                self._by.run(self._of.close())
            finally:
                self._by.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def create_conversation(
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
        return Conversation(
            self._by.run(self._of.create_conversation(cwd, project=project, title=title, tags=tags, agent=agent, external_id=external_id)),
            self._by,
        )

    def load_conversation(self, conversation_id: str) -> Conversation:
        """Return a conversation; `NotFoundError` when the workspace has none of that id."""
        return Conversation(self._by.run(self._of.load_conversation(conversation_id)), self._by)

    def list_conversations(
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
        return self._by.run(self._of.list_conversations(status=status, tags=tags, cwd=cwd, project=project, agent=agent, limit=limit))

    def projects(self) -> list[Project]:
        """Return the projects of the workspace by name."""
        return self._by.run(self._of.projects())

    def sessions(self, cwd: str | os.PathLike[str] = ".") -> list[Session]:
        """Return the active conversations of a directory's project, newest first, as somebody who wants to resume one sees them."""
        return self._by.run(self._of.sessions(cwd))

    def record(self, payload: Any, *, conversation: str | None = None, replace: bool = False, on_edit: OnEdit = "branch") -> Recorded:
        """Record a whole request (FORMATS §1), or a `Turn`, in the conversation it names or that is given.

        What the conversation already holds is recognised; the notes of the answer count what was read with tolerance.
        """
        return self._by.run(self._of.record(payload, conversation=conversation, replace=replace, on_edit=on_edit))

    def search(
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
        return self._by.run(
            self._of.search(
                query,
                conversation=conversation,
                project=project,
                cwd=cwd,
                agent=agent,
                tags=tags,
                since=since,
                until=until,
                tool=tool,
                file=file,
                levels=levels,
                limit=limit,
                semantic=semantic,
                minimum_score=minimum_score,
            )
        )

    def context(
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
        return self._by.run(
            self._of.context(
                prompt,
                conversation=conversation,
                project=project,
                cwd=cwd,
                budget_chars=budget_chars,
                budget_tokens=budget_tokens,
                strategy=strategy,
                recent_messages=recent_messages,
                relevant_messages=relevant_messages,
                include_summary=include_summary,
                semantic=semantic,
                other_conversations=other_conversations,
                wait_seconds=wait_seconds,
                messages=messages,
            )
        )

    def find_similar_conversations(
        self, query: str, limit: int = 5, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None, semantic: bool = True
    ) -> list[SimilarConversation]:
        """Return the conversations that come closest to a text, best first, with the hit that says why, and what was learned there."""
        return self._by.run(self._of.find_similar_conversations(query, limit, project=project, cwd=cwd, semantic=semantic))

    def import_conversation(self, document: Any, *, replace: bool = False, new_id: bool = False) -> Conversation:
        """Read an exported conversation back, under its own id, or under a fresh one.

        The same document again changes nothing; another conversation under its id is a `ConflictError`, unless it is to
        be replaced.
        """
        return Conversation(self._by.run(self._of.import_conversation(document, replace=replace, new_id=new_id)), self._by)

    def save(self) -> int:
        """Write the turns that `auto_save: false` kept in the process; returns how many."""
        return self._by.run(self._of.save())

    def why(
        self,
        path: str,
        line: int | None = None,
        *,
        line_text: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
        limit: int = 10,
    ) -> Why:
        """Return the changes that made a file, or a line of it, what it is, newest first, with what was asked and known.

        A line is found by its text among the lines that changes added, through renames; the text is `line_text`, or is read
        from the file where the project's directory is at hand. Where no text helps, the ranges of the changes decide.
        """
        return self._by.run(
            self._of.why(path, line, line_text=line_text, project=project, cwd=cwd, days=days, since=since, until=until, limit=limit)
        )

    def flow(self, request_id: str, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None) -> Flow:
        """Return a request from its first message to its last, over all its turns; without a project it is looked for in all."""
        return self._by.run(self._of.flow(request_id, project=project, cwd=cwd))

    def file_usage(
        self,
        path: str,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
    ) -> FileUsage:
        """Return how often a file was context and how useful, and which changes were made in those requests; 0 times is an answer."""
        return self._by.run(self._of.file_usage(path, project=project, cwd=cwd, days=days, since=since, until=until))

    def context_usage(
        self,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
        limit: int = 10,
    ) -> ContextUsage:
        """Return which files are context most often, most usefully and never usefully, and how the sources serve."""
        return self._by.run(self._of.context_usage(project=project, cwd=cwd, days=days, since=since, until=until, limit=limit))

    def tool_reliability(
        self,
        tool_name: str | None = None,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
    ) -> list[ToolReliability]:
        """Return how tools, or one of them, do: calls, failures, durations, commonest errors, day by day; the most called first."""
        return self._by.run(self._of.tool_reliability(tool_name, project=project, cwd=cwd, days=days, since=since, until=until))

    def checkpoints(
        self,
        conversation: str | None = None,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
    ) -> list[CheckpointEntry]:
        """Return the checkpoints of a project, or of a conversation, oldest first, each with the changes made after it."""
        return self._by.run(self._of.checkpoints(conversation, project=project, cwd=cwd, days=days, since=since, until=until))

    def index(
        self,
        cwd: str | os.PathLike[str] = ".",
        *,
        project: str | None = None,
        again: bool = False,
        progress: Callable[[int, str], None] | None = None,
    ) -> Indexed:
        """Read the symbols of a project's files: those that changed since the last time, by their content; what is gone is let go.

        `again` reads every file anew. `progress` is called with how many files were looked at, and the last one's path.
        """
        return self._by.run(self._of.index(cwd, project=project, again=again, progress=progress))

    def scopes(self, name: str, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None) -> list[ScopeUse]:
        """Return the symbols of a name, qualified or not, by path and line, each with the conversations that speak of it."""
        return self._by.run(self._of.scopes(name, project=project, cwd=cwd))

    def find_scopes(
        self, query: str, *, project: str | None = None, cwd: str | os.PathLike[str] | None = None, limit: int = 10
    ) -> list[ScopeHit]:
        """Return the symbols of the code that a question may be about, best first."""
        return self._by.run(self._of.find_scopes(query, project=project, cwd=cwd, limit=limit))

    def analyze(
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
        return self._by.run(
            self._of.analyze(
                conversations,
                task=task,
                output_schema=output_schema,
                project=project,
                cwd=cwd,
                limit=limit,
                concurrency=concurrency,
                retries=retries,
                again=again,
                model=model,
                progress=progress,
            )
        )

    @overload
    def insights(
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
    def insights(
        self,
        query: str,
        *,
        conversation: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        kind: str | None = None,
        limit: int = 50,
    ) -> list[Hit]: ...

    def insights(
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
        return self._by.run(self._of.insights(query, conversation=conversation, project=project, cwd=cwd, kind=kind, limit=limit))

    def distill(self, *, wait: bool = True, rebuild: bool = False) -> int:
        """Do all the distilling that is due, or have it done in the background; returns how many jobs were done.

        `rebuild` deletes all summaries and vectors first; they are made again under the same ids.
        """
        return self._by.run(self._of.distill(wait=wait, rebuild=rebuild))

    def rewrite(
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
        return self._by.run(self._of.rewrite(conversation=conversation, project=project, budget_tokens=budget_tokens, progress=progress))

    def forget(
        self, *, conversation: str | None = None, project: str | None = None, before: datetime | None = None, origin: str | None = None
    ) -> Forgotten:
        """Forget a conversation, a project, what ended before a moment, or what an agent brought; `before` may go with a project.

        Forgotten turns are gone from branches, too, and on SQLite from every byte of the store's files.
        """
        return self._by.run(self._of.forget(conversation=conversation, project=project, before=before, origin=origin))

    def sweep(self, *, thoroughly: bool = True) -> Swept:
        """Remove what has expired from disk, with all that hangs from it, and close requests that were never finalized.

        Another process may have taken it out of the store already: `thoroughly` has its bytes, and what a mirror says, go all
        the same.
        """
        return self._by.run(self._of.sweep(thoroughly=thoroughly))

    def verify(
        self, record_id: str | None = None, content: str | None = None, *, progress: Callable[[int], None] | None = None
    ) -> Verification:
        """Compare a content with what was recorded under an id, or, without arguments, check the whole workspace."""
        return self._by.run(self._of.verify(record_id, content, progress=progress))

    def stats(self) -> Stats:
        """Count what the workspace holds."""
        return self._by.run(self._of.stats())

    def spending(self, *, since: datetime | None = None) -> list[ModelSpending]:
        """Return what models were asked and spent, by use and model; of all time, or since a moment."""
        return self._by.run(self._of.spending(since=since))


class Conversation:
    """`recollect.Conversation`, without `await`."""

    def __init__(self, conversation: _conversation.Conversation, by: Runner) -> None:
        self._of = conversation
        self._by = by

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._of.id

    @property
    def info(self) -> ConversationInfo:
        """The conversation as of the last call that changed or loaded it."""
        return self._of.info

    def record(
        self,
        user: str | None = None,
        assistant: str | None = None,
        *,
        tool_calls: Sequence[Any] = (),
        context_files: Sequence[Any] = (),
        changes: Sequence[Any] = (),
        checkpoints: Sequence[Any] = (),
        system: str | None = None,
        reasoning: str | None = None,
        timestamp: Any = None,
        request_id: str | None = None,
        messages: Sequence[Any] | None = None,
        replace: bool = False,
        on_edit: OnEdit = "branch",
    ) -> Turn:
        """Record a complete turn; when this returns, it is on disk.

        With `messages`, a list as an agent holds it, what the conversation already holds is recognised, and the last
        turn is returned; a past that was edited forks a branch, or is replaced, as `on_edit` says. The same `request_id`
        again changes nothing; with other content it is a `ConflictError`, unless `replace` is given.
        """
        return self._by.run(
            self._of.record(
                user,
                assistant,
                tool_calls=tool_calls,
                context_files=context_files,
                changes=changes,
                checkpoints=checkpoints,
                system=system,
                reasoning=reasoning,
                timestamp=timestamp,
                request_id=request_id,
                messages=messages,
                replace=replace,
                on_edit=on_edit,
            )
        )

    def begin(self, user: str | None = None, *, system: str | None = None, request_id: str | None = None, timestamp: Any = None) -> Turn:
        """Open a turn that `add` and `finish` go on with; it is kept from this moment, whatever happens next."""
        return self._by.run(self._of.begin(user, system=system, request_id=request_id, timestamp=timestamp))

    def add(self, turn: Turn, messages: Sequence[Any], *, related: Sequence[str] = ()) -> Turn:
        """Add messages, in any shape agents use, to an open turn: answers, tool calls, tool results; and what it was related to."""
        return self._by.run(self._of.add(turn, messages, related=related))

    def finish(self, turn: Turn, messages: Sequence[Any] = (), *, status: TurnStatus = "complete") -> Turn:
        """Close an open turn as complete or failed, with its last messages if there are any."""
        return self._by.run(self._of.finish(turn, messages, status=status))

    def get_history(self, limit: int = 100, *, include_tool_calls: bool = True, include_reasoning: bool = True) -> list[HistoryMessage]:
        """Return the last messages, oldest first, each with the tool calls it made."""
        return self._by.run(self._of.get_history(limit, include_tool_calls=include_tool_calls, include_reasoning=include_reasoning))

    def turns(self, first: int = 0, last: int | None = None, limit: int | None = None) -> list[Turn]:
        """Return whole turns by index, both ends included; inherited ones too."""
        return self._by.run(self._of.turns(first, last, limit))

    def recent_turns(self, max_chars: int = 5000, limit: int = 3) -> list[Turn]:
        """Return the newest turns within a number of characters, oldest first; what is too long is cut, never dropped."""
        return self._by.run(self._of.recent_turns(max_chars, limit))

    def get_tool_calls(self, tool_name: str | None = None, *, success: bool | None = None, limit: int = 100) -> list[ToolCall]:
        """Return tool calls by name and outcome, newest first."""
        return self._by.run(self._of.get_tool_calls(tool_name, success=success, limit=limit))

    def accessed_files(self, max_chars: int = 5000, *, temporary: bool = False) -> list[AccessedFile]:
        """Return the files that tools touched, each once with its latest access: writes first, then the newest."""
        return self._by.run(self._of.accessed_files(max_chars, temporary=temporary))

    def search_history(self, query: str, limit: int = 5, *, levels: Sequence[int] | None = None, semantic: bool = True) -> SearchResult:
        """Search this conversation and what it inherits."""
        return self._by.run(self._of.search_history(query, limit, levels=levels, semantic=semantic))

    def build_context(
        self,
        strategy: Strategy = "hybrid",
        recent_messages: int | None = None,
        relevant_messages: int | None = None,
        include_summary: bool = True,
        *,
        query: str | None = None,
        budget_chars: int | None = None,
        budget_tokens: int | None = None,
        semantic: bool = True,
        other_conversations: bool = False,
        wait_seconds: float | None = None,
        before_turn: int | None = None,
    ) -> Context:
        """Compose what the next call should see of this conversation; the query is the last user message unless one is given.

        `before_turn` leaves out a turn and what comes after: the open one, whose user message the call is about to answer.
        Where nothing of the conversation is recorded, because the settings say so, there is what its project has.

        Five recent messages and ten relevant ones by default, ten recent ones with `recent`; together never more than
        `agent.memory.max_context_messages`.
        """
        return self._by.run(
            self._of.build_context(
                strategy,
                recent_messages,
                relevant_messages,
                include_summary,
                query=query,
                budget_chars=budget_chars,
                budget_tokens=budget_tokens,
                semantic=semantic,
                other_conversations=other_conversations,
                wait_seconds=wait_seconds,
                before_turn=before_turn,
            )
        )

    def summaries(self, level: int | None = None, *, unfolded: bool = False, limit: int | None = None) -> list[Summary]:
        """Return the summaries this conversation shows, what it inherits included, by level and first turn.

        `unfolded` leaves only those that no higher one tells of, newest first, ten of them unless `limit` says otherwise.
        """
        return self._by.run(self._of.summaries(level, unfolded=unfolded, limit=limit))

    def summarize(self) -> list[Summary]:
        """Have what is due in this conversation summarised now, and return its summaries."""
        return self._by.run(self._of.summarize())

    def raw_char_count(self) -> int:
        """Count the characters of the turns that no summary covers, as stored: messages, reasoning, arguments and results."""
        return self._by.run(self._of.raw_char_count())

    def branch(self, *, from_turn: int | None = None, from_message: int | None = None, title: str | None = None) -> Conversation:
        """Fork after a turn (its index), or after the turn that holds a message (its sequence); by default after the last."""
        return Conversation(self._by.run(self._of.branch(from_turn=from_turn, from_message=from_message, title=title)), self._by)

    def export(self, format: Format = "json") -> str:  # noqa: A002  the public name
        """Return the conversation as one document, inherited turns written in."""
        return self._by.run(self._of.export(format))

    def change(
        self, *, title: str | None = None, tags: Sequence[str] | None = None, status: Literal["active", "archived"] | None = None
    ) -> ConversationInfo:
        """Change title, tags or status."""
        return self._by.run(self._of.change(title=title, tags=tags, status=status))

    def archive(self) -> ConversationInfo:
        """Put the conversation aside; it is still found by search and listed as archived."""
        return self._by.run(self._of.archive())

    def delete(self) -> None:
        """Delete the conversation; its branches keep the turns they inherited."""
        self._by.run(self._of.delete())
