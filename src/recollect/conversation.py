"""One conversation as its users hold it: what it says, what to add, where to go on; the inner door of the library."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from recollect.answers import AccessedFile, HistoryMessage, SearchResult
from recollect.capture.paths import place_of
from recollect.checks import checked_count, checked_levels, checked_text
from recollect.documents.exporting import all_turns, document_pieces
from recollect.errors import InputError, NotFoundError, StoreBusyError
from recollect.identity import identity
from recollect.limits import HEAD_MOVED_ATTEMPTS_MAX
from recollect.model import ACCESS_ORDER
from recollect.placing import place_turn
from recollect.record.shapes import MovedError
from recollect.store.shapes import CallFilter, ConversationChange, SearchScope, TurnRange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from recollect.capture.paths import Place
    from recollect.capture.reading import Reading
    from recollect.capture.recorded import Said
    from recollect.compose.context import Context, Strategy
    from recollect.documents.exporting import Format
    from recollect.memory import Memory
    from recollect.model import ConversationInfo, Summary, ToolCall, Turn, TurnStatus
    from recollect.record.shapes import OnEdit, Result

_replace = msgspec.structs.replace
_TURN_CHARS_MIN = 200
_UNFOLDED_MAX = 10
_RECENT = 5
_RECENT_ALONE = 10
_RELEVANT = 10
_ACCESSED_LINE_CHARS = 24  # what a listed file costs beside its path: kind, tool and turn


class Conversation:
    """A conversation of a memory; `info` is as of the last call that changed or loaded it."""

    def __init__(self, memory: Memory, info: ConversationInfo) -> None:
        self._memory = memory
        self._place: Place | None = None
        self.info = info

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self.info.id

    @property
    def memory(self) -> Memory:
        """The memory it is of."""
        return self._memory

    def _reading(self) -> Reading:
        if self._place is None:
            self._place = place_of(self.info.cwd)
        return self._memory.recorder.reading(self._place)

    async def record(
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
        from recollect.capture.recorded import Said  # noqa: PLC0415  only those who record need it

        said = Said(
            user=user, assistant=assistant, system=system, reasoning=reasoning, tool_calls=tool_calls, context_files=context_files,
            changes=changes, checkpoints=checkpoints, timestamp=timestamp, request_id=request_id,
        )  # fmt: skip
        result, _ = await self.submit(said, messages, replace=replace, on_edit=on_edit)
        return result.turns[-1] if result.turns else await self._last_turn()

    async def submit(self, said: Said, messages: Sequence[Any] | None, *, replace: bool, on_edit: OnEdit) -> tuple[Result, dict[str, int]]:
        """Record what was said, or a list of messages; returns what became of it, and what was read with tolerance."""
        from recollect.capture.recorded import listed_turns, said_turn  # noqa: PLC0415  as above

        reading = self._reading()
        if messages is None:
            turn = said_turn(said, reading)
            result = await self._memory.recorder.append(self.id, [turn], request_id=turn.request_id, replace=replace)
        else:
            turns = listed_turns(said, messages, reading)
            request_id = turns[0].request_id
            result = await self._memory.recorder.history(self.info, turns, request_id=request_id, replace=replace, on_edit=on_edit)
        await self._memory.mirrored(result.conversation_id)
        return result, dict(+reading.notes)

    async def _last_turn(self) -> Turn:
        turns = await self._turns(TurnRange(limit=1, newest=True))
        if not turns:
            msg = f"conversation {self.id} has no turn yet"
            raise NotFoundError(msg)
        return turns[-1]

    async def begin(
        self, user: str | None = None, *, system: str | None = None, request_id: str | None = None, timestamp: Any = None
    ) -> Turn:
        """Open a turn that `add` and `finish` go on with; it is kept from this moment, whatever happens next."""
        await self._memory.save()
        reading = self._reading()
        from recollect.capture.recorded import Said, said_turn  # noqa: PLC0415  as above

        turn = said_turn(Said(user=user, system=system, request_id=request_id, timestamp=timestamp), reading, status="open")
        result = await self._memory.recorder.append(self.id, [turn], request_id=turn.request_id)
        saved = await self._memory.recorder.save()
        result = next((one for one in reversed(saved) if one.conversation_id == self.id), result)
        await self._memory.mirrored(self.id)
        begun = result.turns[-1]
        return _replace(begun, id=_unrecorded_id(begun)) if result.status == "skipped" else begun

    async def add(self, turn: Turn, messages: Sequence[Any], *, related: Sequence[str] = ()) -> Turn:
        """Add messages, in any shape agents use, to an open turn: answers, tool calls, tool results; and what it was related to."""
        return await self._rewritten(turn, messages, None, related)

    async def finish(self, turn: Turn, messages: Sequence[Any] = (), *, status: TurnStatus = "complete") -> Turn:
        """Close an open turn as complete or failed, with its last messages if there are any."""
        return await self._rewritten(turn, messages, status)

    async def _rewritten(self, turn: Turn, messages: Sequence[Any], status: TurnStatus | None, related: Sequence[str] = ()) -> Turn:
        """Return a turn with more in it; one that is not recorded is returned as it would be, as `record` does, and not written."""
        for _ in range(HEAD_MOVED_ATTEMPTS_MAX):
            is_recorded = self._memory.recorder.enabled and turn.id != _unrecorded_id(turn)
            current = await self._current(turn) if is_recorded else turn
            if current.status != "open":
                msg = f"turn {turn.index} of conversation {turn.conversation_id} is {current.status}: only an open turn can go on"
                raise InputError(msg)
            from recollect.capture.growth import grown  # noqa: PLC0415  as above
            from recollect.capture.turns import with_status  # noqa: PLC0415  as above

            is_taken = not is_recorded or not (await self._memory.recorder.policy(turn.conversation_id)).excludes
            longer = with_status(grown(current, messages if is_taken else (), self._reading(), related), status or "open")
            if not is_recorded:
                return _replace(place_turn(longer, turn.conversation_id, turn.index, turn.first_sequence), id=turn.id)
            try:
                written = await self._memory.recorder.rewrite(
                    current.conversation_id, current.index, current.id, current.content_hash, longer
                )
            except MovedError:
                continue
            await self._memory.mirrored(current.conversation_id)
            return written
        msg = f"turn {turn.index} kept changing under {HEAD_MOVED_ATTEMPTS_MAX} attempts to add to it: try again"
        raise StoreBusyError(msg)

    async def _current(self, turn: Turn) -> Turn:
        found = await self._memory.store.turns.by_id(self._memory.workspace, [turn.id])
        if not found:
            msg = f"turn {turn.id} is not in workspace {self._memory.workspace!r} any more"
            raise NotFoundError(msg)
        return found[0]

    async def get_history(
        self, limit: int = 100, *, include_tool_calls: bool = True, include_reasoning: bool = True
    ) -> list[HistoryMessage]:
        """Return the last messages, oldest first, each with the tool calls it made."""
        checked_count("limit", limit)
        history: list[HistoryMessage] = []
        for turn in reversed(await self._turns(TurnRange(limit=limit, newest=True))):
            history[:0] = _messages(turn, calls=include_tool_calls, reasoning=include_reasoning)
        return history[-limit:] if limit else []

    async def turns(self, first: int = 0, last: int | None = None, limit: int | None = None) -> list[Turn]:
        """Return whole turns by index, both ends included; inherited ones too."""
        for name, value in (("first", first), ("last", last), ("limit", limit)):
            if value is not None:
                checked_count(name, value)
        return await self._turns(TurnRange(first=first, last=last, limit=limit))

    async def _turns(self, span: TurnRange) -> list[Turn]:
        return await self._memory.store.turns.history(self._memory.workspace, self.id, span)

    async def recent_turns(self, max_chars: int = 5_000, limit: int = 3) -> list[Turn]:
        """Return the newest turns within a number of characters, oldest first; what is too long is cut, never dropped."""
        checked_count("limit", limit)
        checked_count("max_chars", max_chars)
        from recollect.compose.fitting import fit_turn  # noqa: PLC0415  only those who cut turns need it

        kept: list[Turn] = []
        room = max_chars
        newest = await self._turns(TurnRange(limit=limit, newest=True))
        for turn in reversed(newest):
            if kept and turn.char_count > room and room < _TURN_CHARS_MIN:
                break
            fitted = fit_turn(turn, room)
            kept.insert(0, fitted)
            room = max(room - fitted.char_count, 0)
        return kept

    async def get_tool_calls(self, tool_name: str | None = None, *, success: bool | None = None, limit: int = 100) -> list[ToolCall]:
        """Return tool calls by name and outcome, newest first."""
        checked_count("limit", limit)
        where = CallFilter(tool_name=tool_name, success=success, limit=limit)
        places = await self._memory.store.turns.calls(self._memory.workspace, self.id, where)
        turns: dict[int, Turn] = {}
        for index in dict.fromkeys(place.turn_index for place in places):
            for turn in await self._turns(TurnRange(first=index, last=index)):
                turns[turn.index] = turn
        return [turns[place.turn_index].tool_calls[place.order] for place in places if place.turn_index in turns]

    async def accessed_files(self, max_chars: int = 5_000, *, temporary: bool = False) -> list[AccessedFile]:
        """Return the files that tools touched, each once with its latest access: writes first, then the newest."""
        checked_count("max_chars", max_chars)
        accesses = await self._memory.store.turns.accesses(self._memory.workspace, self.id)
        wanted = [file for file in accesses if temporary or not file.temporary]
        wanted.sort(key=lambda file: ACCESS_ORDER.index(file.kind))
        kept: list[AccessedFile] = []
        room = max_chars
        for file in wanted:
            room -= len(file.path) + _ACCESSED_LINE_CHARS
            if room < 0 and kept:
                break
            kept.append(file)
        return kept

    async def search_history(
        self, query: str, limit: int = 5, *, levels: Sequence[int] | None = None, semantic: bool = True
    ) -> SearchResult:
        """Search this conversation and what it inherits."""
        scope = SearchScope(conversation_id=self.id, levels=checked_levels(levels))
        return await self._memory.recall.search(query, scope, limit=limit, semantic=semantic)

    async def build_context(
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
        from recollect.compose.contexts import Wanted  # noqa: PLC0415  only those who compose need it

        if query is not None:
            checked_text("query", query)
        most = self._memory.settings.agent.memory.max_context_messages
        recent = (
            (_RECENT_ALONE if strategy == "recent" else _RECENT)
            if recent_messages is None
            else checked_count("recent_messages", recent_messages)
        )
        relevant = _RELEVANT if relevant_messages is None else checked_count("relevant_messages", relevant_messages)
        wanted = Wanted(
            strategy=strategy,
            recent_messages=min(recent, most),
            relevant_messages=min(relevant, max(most - recent, 0)),
            include_summary=include_summary,
            budget_chars=budget_chars,
            budget_tokens=budget_tokens,
            semantic=semantic,
            other_conversations=other_conversations,
            wait_seconds=wait_seconds,
            before_turn=None if before_turn is None else checked_count("before_turn", before_turn),
        )
        try:
            return await self._memory.contexts.of_conversation(lambda: self._memory.get_info(self.id), query, wanted)
        except NotFoundError:
            if query is None:
                raise
            return await self._memory.context(
                query, project=self.info.project_id, strategy=strategy, budget_chars=budget_chars, budget_tokens=budget_tokens,
                semantic=semantic,
            )  # fmt: skip

    async def summaries(self, level: int | None = None, *, unfolded: bool = False, limit: int | None = None) -> list[Summary]:
        """Return the summaries this conversation shows, what it inherits included, by level and first turn.

        `unfolded` leaves only those that no higher one tells of, newest first, ten of them unless `limit` says otherwise.
        """
        shown = await self._memory.store.derived.shown_summaries(self._memory.workspace, self.id)
        folded = {source for one in shown for source in one.source_ids}
        found = [one for one in shown if level in {None, one.level}]
        if unfolded:
            found = sorted((one for one in found if one.id not in folded), key=lambda one: -one.last_turn)
            limit = _UNFOLDED_MAX if limit is None else limit
        return found if limit is None else found[: checked_count("limit", limit)]

    async def summarize(self) -> list[Summary]:
        """Have what is due in this conversation summarised now, and return its summaries."""
        memory = self._memory
        await memory.store.jobs.wake(memory.workspace, self.id, "summarize", memory.clock.now())
        await memory.distill()
        self.info = await memory.get_info(self.id)
        return await self.summaries()

    async def raw_char_count(self) -> int:
        """Count the characters of the turns that no summary covers, as stored: messages, reasoning, arguments and results."""
        memory = self._memory
        shown = await memory.store.derived.shown_summaries(memory.workspace, self.id)
        covered = {index for one in shown if one.level == 1 for index in range(one.first_turn, one.last_turn + 1)}
        sizes = await memory.store.turns.sizes(memory.workspace, self.id)
        return sum(size.chars for size in sizes if size.index not in covered)

    async def branch(self, *, from_turn: int | None = None, from_message: int | None = None, title: str | None = None) -> Conversation:
        """Fork after a turn (its index), or after the turn that holds a message (its sequence); by default after the last."""
        index = await self._fork_index(from_turn, from_message)
        title = None if title is None else self._memory.clean_title(title)
        info = await self._memory.recorder.branch(self.id, index, title, self._memory.ids.fresh())
        return Conversation(self._memory, info)

    async def _fork_index(self, from_turn: int | None, from_message: int | None) -> int:
        if from_turn is not None and from_message is not None:
            msg = "a branch forks from a turn or from a message: give one of from_turn and from_message"
            raise InputError(msg)
        outline = await self._memory.store.turns.outline(self._memory.workspace, self.id, TurnRange())
        indexes = [turn.index for turn in outline.turns]
        if not indexes:
            msg = f"conversation {self.id} has no turn to branch from"
            raise InputError(msg)
        if from_message is not None:
            async for turn in all_turns(self._memory.store, self._memory.workspace, self.id):
                if any(message.sequence == from_message for message in turn.messages):
                    return turn.index
            msg = f"conversation {self.id} has no message {from_message}: its messages count from 0"
            raise InputError(msg)
        index = indexes[-1] if from_turn is None else from_turn
        if index not in indexes:
            msg = f"conversation {self.id} has no turn {index}: its turns are {indexes[0]}–{indexes[-1]}"
            raise InputError(msg)
        return index

    async def export(self, format: Format = "json") -> str:  # noqa: A002  the public name
        """Return the conversation as one document, inherited turns written in."""
        return "".join([piece async for piece in self.export_pieces(format)])

    async def export_pieces(self, format: Format = "json") -> AsyncIterator[str]:  # noqa: A002  the public name
        """Yield the document in pieces, for conversations that are larger than memory."""
        info = await self._memory.get_info(self.id)
        async for piece in document_pieces(self._memory.store, self._memory.workspace, info, format):
            yield piece

    async def change(
        self, *, title: str | None = None, tags: Sequence[str] | None = None, status: Literal["active", "archived"] | None = None
    ) -> ConversationInfo:
        """Change title, tags or status."""
        change = ConversationChange(
            title=None if title is None else self._memory.clean_title(title),
            tags=None if tags is None else self._memory.clean_tags(tags),
            status=status,
        )
        info = await self._memory.store.conversations.change(self._memory.workspace, self.id, change, self._memory.clock.now())
        if info is None:
            msg = f"there is no conversation {self.id!r} in workspace {self._memory.workspace!r} any more"
            raise NotFoundError(msg)
        self.info = info
        await self._memory.mirrored(self.id)
        return info

    async def archive(self) -> ConversationInfo:
        """Put the conversation aside; it is still found by search and listed as archived."""
        return await self.change(status="archived")

    async def delete(self) -> None:
        """Delete the conversation; its branches keep the turns they inherited."""
        await self._memory.remove([self.id], keep_inherited=True)


def _unrecorded_id(turn: Turn) -> str:
    """Return the id under which callers hold a turn that is not recorded: none that a recorded one in its place will have."""
    return identity("turn", turn.conversation_id, "unrecorded", turn.index)


def _messages(turn: Turn, *, calls: bool, reasoning: bool) -> list[HistoryMessage]:
    return [
        HistoryMessage(
            turn_index=turn.index,
            sequence=message.sequence,
            role=message.role,
            content=message.text,
            reasoning=message.reasoning if reasoning else None,
            timestamp=message.timestamp,
            tool_calls=turn.calls_of(message) if calls else (),
        )
        for message in turn.messages
    ]
