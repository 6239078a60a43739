"""Requests that come in pieces: kept from the first one on, recorded anew with each, closed once; the streaming half of `Memory`."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import msgspec

from recollect.answers import Recorded
from recollect.capture.paths import place_of
from recollect.capture.payload import read_payload
from recollect.capture.sketch import Sketch, is_command, items_of, payload_of, with_items, with_piece
from recollect.capture.turns import with_status
from recollect.capture.withholding import withheld_piece
from recollect.checks import checked_name, checked_text
from recollect.clock import iso
from recollect.errors import ConflictError, InputError, NotFoundError, StoreBusyError
from recollect.limits import HEAD_MOVED_ATTEMPTS_MAX, NAME_CHARS_MAX, PATH_CHARS_MAX, SUMMARY_CHARS_MAX
from recollect.model import NOT_RECORDED_TAG
from recollect.placing import unplaced
from recollect.policies import is_marked
from recollect.record.repeating import says_nothing_new
from recollect.store.shapes import OvertakenError, Step
from recollect.store.traced import TraceScope
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from recollect.capture.payload import Payload
    from recollect.capture.reading import Reading
    from recollect.capture.sketch import Piece
    from recollect.clock import Clock
    from recollect.model import ConversationInfo, Json, Project, Turn
    from recollect.record.recorder import Recorder
    from recollect.settings import Settings
    from recollect.store import Store

PIECES: tuple[Piece, ...] = ("context", "messages", "model-response", "tool-calls", "tool-results", "code-changes", "checkpoints")
SKIPPED_MAX = 10_000
Closing = Literal["complete", "failed"]
_HEAD = ("project_id", "timestamp", "chat_meta", "meta", "cwd", "agent", "title", "related_artifacts")
_KEPT_OF_HEAD = {"project_id": NAME_CHARS_MAX, "agent": NAME_CHARS_MAX, "title": SUMMARY_CHARS_MAX, "cwd": PATH_CHARS_MAX}
_META = ("chat_id", "base_chat_id", "request_attempt_id", "chat_mode")
_USAGE = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens"})
_encode = msgspec.json.encode


class Beginning(Protocol):
    """How a conversation begins, which is the same one for the same external id."""

    def __call__(
        self, cwd: str | None, *, project: str | None, title: str | None, agent: str | None, external_id: str | None
    ) -> tuple[ConversationInfo, Project]:
        """Return the conversation and its project; nothing is written."""
        ...


class _Known(msgspec.Struct, frozen=True):
    """A request that is not whole yet, and its sketch as the store has it; None of one that is passed over in this process alone."""

    sketch: Sketch
    text: str | None

    @property
    def conversation_id(self) -> str:
        return self.sketch.conversation_id

    @property
    def is_skipped(self) -> bool:
        return self.sketch.status == "skipped"


class OpenRequests:
    """The requests of one workspace that are not whole yet."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, recorder: Recorder, begin: Beginning) -> None:
        self._store = store
        self._workspace = settings.workspace
        self._settings = settings
        self._clock = clock
        self._recorder = recorder
        self._begin = begin
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._skipped: dict[str, Sketch] = {}  # of conversations that are not kept at all

    async def start(self, request_id: str, body: Json) -> Recorded:
        """Begin a request: from now on it is there, and open; the same again changes nothing."""
        own_id, record = self._checked_id(request_id), _object(body)
        reading = self._recorder.reading()
        given = {name: record[name] for name in _HEAD if record.get(name) is not None}
        head = cast("dict[str, Json]", reading.cleaner.payload(given))
        head["timestamp"] = iso(reading.time(head.get("timestamp")) or reading.now)
        told = read_payload({**head, "messages": [{"role": "assistant", "content": ""}]}, self._recorder.reading())
        info, project = self._begin(told.cwd, project=told.project, title=told.title, agent=told.agent, external_id=told.chat_id or own_id)
        async with self._alone(own_id):
            return await self._until_first(own_id, lambda: self._started(own_id, head, told, info, project))

    async def _started(self, request_id: str, head: dict[str, Json], told: Payload, info: ConversationInfo, project: Project) -> Recorded:
        known = await self._known(request_id)
        if known is not None:
            await self._refuse_other(known, told, info)
            return _skipped(known.sketch) if known.is_skipped else await self._stored(known.sketch, known, self._turns(known.sketch, info))
        is_recorded = bool(await self._store.trace.request(self._workspace, TraceScope(project_ids=(info.project_id,)), [request_id]))
        if not is_recorded:
            info = await self._recorder.begin(info, project)
        policy = await self._recorder.policy(info.id)
        sketch = Sketch(request_id=request_id, conversation_id=info.id, head=_told_head(head) if policy.withholds else head)
        held = await self._info(info.id)
        if not (self._recorder.takes(info.id, project) if held is None else await self._takes(held)):
            return self._passed_over(sketch)
        if is_recorded:
            if await self._known(request_id) is not None:
                raise OvertakenError(request_id)  # somebody else began it meanwhile
            msg = f"request {request_id!r} is recorded already: begin another under another id, or delete it first"
            raise ConflictError(msg)
        return await self._stored(sketch, None, self._turns(sketch, info))

    async def _refuse_other(self, known: _Known, told: Payload, info: ConversationInfo) -> None:
        """Refuse to join a request that belongs elsewhere: what is kept of it may be more than is kept there."""
        if known.conversation_id == info.id or not (told.chat_id or told.project or told.cwd):
            return
        held = await self._info(known.conversation_id)
        if told.chat_id is not None or held is None or held.project_id != info.project_id:
            msg = f"request {known.sketch.request_id!r} is under way in another conversation: begin yours under another id"
            raise ConflictError(msg)

    async def add(self, request_id: str, piece: Piece, body: Json) -> Recorded:
        """Put a piece into an open request; the same again changes nothing, and one that is refused changes nothing either."""
        own_id = self._checked_id(request_id)
        async with self._alone(own_id):
            return await self._until_first(own_id, lambda: self._added(own_id, piece, body))

    async def _until_first(self, request_id: str, act: Callable[[], Awaitable[Recorded]]) -> Recorded:
        """Do something with a request as it is now; again when another process was first."""
        for _ in range(HEAD_MOVED_ATTEMPTS_MAX):
            try:
                return await act()
            except OvertakenError:
                continue
        msg = f"request {request_id} kept changing under {HEAD_MOVED_ATTEMPTS_MAX} attempts to go on with it: try again"
        raise StoreBusyError(msg)

    async def _added(self, request_id: str, piece: Piece, body: Json) -> Recorded:
        known = await self._known(request_id)
        if known is None:
            return await self._repeated(request_id, piece, body)
        info = await self._info(known.conversation_id)
        if known.is_skipped or not await self._takes(info):
            return _skipped(known.sketch)
        reading = self._recorder.reading(place_of(None if info is None else info.cwd))
        cleaned = reading.cleaner.payload(body)
        sketch = with_piece(known.sketch, piece, cleaned)
        notes = Counter[str]()
        turns = self._turns(sketch, info, notes)
        if notes:  # of these only what the piece itself brings
            before = Counter[str]()
            self._turns(known.sketch, info, before)
            notes -= before
        if any(is_marked(turn) for turn in turns):  # what was kept of it so far goes, too
            return await self._drop(known)
        policy = await self._recorder.policy(known.conversation_id)
        if policy.withholds:
            sketch = self._withheld(known.sketch, piece, cleaned, reading)
            turns = self._turns(sketch, info)
        recorded = await self._stored(sketch, known, turns)
        return msgspec.structs.replace(recorded, notes=dict(+(reading.notes + notes)))

    async def _repeated(self, request_id: str, piece: Piece, body: Json) -> Recorded:
        """Answer a piece of a request that is closed: one that was sent before changes nothing, any other is refused."""
        held = await self._recorder.held(request_id)
        if not held:
            raise _unknown(request_id)
        info = await self._info(held[-1].conversation_id)
        reading = self._recorder.reading(place_of(None if info is None else info.cwd))
        alone = Sketch(request_id=request_id, conversation_id=held[-1].conversation_id)
        sketch = with_piece(alone, piece, reading.cleaner.payload(body))
        if is_command(body) or not says_nothing_new(self._turns(sketch, info), held):
            msg = f"request {request_id!r} is finalized: nothing can be added to it"
            raise ConflictError(msg)
        return _standing(request_id, held)

    def _withheld(self, known: Sketch, piece: Piece, body: Json, reading: Reading) -> Sketch:
        if piece == "model-response":
            return with_piece(known, piece, _told_response(_object(body)))
        sketch = known
        for kind, items in withheld_piece(piece, items_of(piece, body), reading):
            if items or kind == piece:
                sketch = with_piece(sketch, kind, with_items(body if kind == piece else {}, kind, items))
        return sketch

    async def finalize(self, request_id: str, status: Closing = "complete") -> Recorded:
        """Close a request, once; closing it again changes nothing."""
        own_id = self._checked_id(request_id)
        if status not in ("complete", "failed"):  # a tuple: what is given may be anything, also what no set can look for
            msg = f"a request is finalized as complete or failed, not as {str(status)[:40]!r}"
            raise InputError(msg)
        async with self._alone(own_id):
            return await self._until_first(own_id, lambda: self._finalized(own_id, status))

    async def _finalized(self, request_id: str, status: Closing) -> Recorded:
        known = await self._known(request_id)
        if known is not None:
            return await self._closed(known, status)
        turns = await self._recorder.held(request_id)
        if not turns:
            raise _unknown(request_id)
        return _standing(request_id, turns)

    async def _closed(self, known: _Known, status: Closing) -> Recorded:
        """Record the last state of a request, and let go of its sketch."""
        if known.is_skipped:
            recorded = await self._drop(known)
            await self._store.requests.let_go(self._workspace, known.sketch.request_id, self._clock.now())
        elif await self._takes(info := await self._info(known.conversation_id)):
            recorded = await self._last_state(known, status, info)
        else:
            recorded = await self._closed_as_it_stands(known, status)
        self._skipped.pop(known.sketch.request_id, None)
        return recorded

    async def _last_state(self, known: _Known, status: Closing, info: ConversationInfo | None) -> Recorded:
        sketch = msgspec.structs.replace(known.sketch, status=status)
        try:
            recorded = await self._stored(sketch, known, self._turns(sketch, info))
        except ConflictError:  # a branch inherits the turn: what it says stays
            return await self._closed_as_it_stands(known, status)
        return await self._closed_as_it_stands(known, status) if recorded.status == "skipped" else recorded

    async def _closed_as_it_stands(self, known: _Known, status: Closing) -> Recorded:
        """Close a request of which nothing more is recorded; what was recorded of it before stays."""
        turns = await self._recorder.held(known.sketch.request_id, known.conversation_id)
        for turn in (one for one in turns if one.status == "open"):
            await self._recorder.rewrite(turn.conversation_id, turn.index, turn.id, turn.content_hash, with_status(unplaced(turn), status))
        await self._step(known, None)
        return msgspec.structs.replace(_skipped(known.sketch), turn_ids=tuple(turn.id for turn in turns))

    async def delete(self, request_id: str, conversation: str | None = None) -> int:
        """Remove a request, open or whole, with its turns; returns how many those were.

        `ConflictError` when several conversations have one of this id, and it is not said which is meant.
        """
        own_id = self._checked_id(request_id)
        async with self._alone(own_id):
            known = await self._known(own_id)
            is_open = known is not None and conversation in {None, known.conversation_id}
            owner = known.conversation_id if known is not None and is_open else conversation
            turns = await self._recorder.held(own_id, owner)
            if not turns and not is_open:
                raise _unknown(own_id)
            owners = {turn.conversation_id for turn in turns}
            if len(owners) > 1:
                msg = f"request {own_id!r} is recorded in {len(owners)} conversations: say which one is meant"
                raise ConflictError(msg)
            if is_open:
                await self._store.requests.let_go(self._workspace, own_id, self._clock.now())
                self._skipped.pop(own_id, None)
                turns = await self._recorder.held(own_id, owner)  # from now on nothing comes to it any more
            await self._store.turns.remove(self._workspace, [turn.id for turn in turns])
            await self._store.erase()
            return len(turns)

    async def close_idle(self) -> int:
        """Close, as failed, the requests to which nothing came for too long; returns how many."""
        before = self._clock.now() - timedelta(seconds=self._settings.server.open_seconds_max)
        idle = await self._store.requests.idle(self._workspace, before)
        closed = 0
        for request_id in idle:
            async with self._alone(request_id):
                with suppress(OvertakenError):  # it is not idle any more
                    closed += await self._close_idle(request_id)
        return closed

    async def _close_idle(self, request_id: str) -> int:
        known = await self._known(request_id)
        if known is None:
            return 0
        turns = [] if known.is_skipped else await self._recorder.held(request_id, known.conversation_id)
        if turns and turns[-1].status != "open":  # it was sent again as a whole meanwhile, which stays
            await self._step(known, None)
        else:
            await self._closed(known, "failed")
        return 1

    # What is known

    def _checked_id(self, request_id: Any) -> str:
        return checked_name("request_id", self._recorder.reading().cleaner.text(checked_text("request_id", request_id)))

    async def _known(self, request_id: str) -> _Known | None:
        text = await self._store.requests.get(self._workspace, request_id)
        sketch = self._skipped.get(request_id) if text is None else msgspec.json.decode(text, type=Sketch)
        return None if sketch is None else _Known(sketch, text)

    async def _info(self, conversation_id: str) -> ConversationInfo | None:
        return await self._store.conversations.get(self._workspace, conversation_id)

    async def _takes(self, info: ConversationInfo | None) -> bool:
        if info is None or NOT_RECORDED_TAG in info.tags or not self._recorder.enabled:
            return False
        return not (await self._recorder.policy(info.id)).excludes

    # What is written

    def _turns(self, sketch: Sketch, info: ConversationInfo | None, notes: Counter[str] | None = None) -> tuple[Turn, ...]:
        """Return what a request amounts to so far; what was read of it with tolerance is added to the notes."""
        reading = self._recorder.reading(place_of(None if info is None else info.cwd))
        turns = read_payload(payload_of(sketch), reading).turns
        if notes is not None:
            notes.update(+reading.notes)
        return (*turns[:-1], with_status(turns[-1], "complete" if sketch.status == "skipped" else sketch.status))

    async def _stored(self, sketch: Sketch, known: _Known | None, turns: tuple[Turn, ...]) -> Recorded:
        """Record what a request amounts to, in the place of what was recorded of it before, and its sketch, both or none."""
        info = await self._info(sketch.conversation_id)
        if info is None:
            raise _unknown(sketch.request_id)
        step = self._step_to(sketch.request_id, info.id, known, sketch if sketch.status == "open" else None)
        result = await self._recorder.history(info, turns, request_id=sketch.request_id, replace=True, on_edit="replace", step=step)
        return result.recorded(sketch.request_id, {})

    def _step_to(self, request_id: str, conversation_id: str, known: _Known | None, sketch: Sketch | None) -> Step:
        now = None if sketch is None else _encode(sketch).decode()
        return Step(request_id=request_id, conversation_id=conversation_id, was=None if known is None else known.text, now=now)

    async def _step(self, known: _Known, sketch: Sketch | None) -> None:
        """Write a sketch in the place of the one it was made from; `OvertakenError` when that is not there any more."""
        step = self._step_to(known.sketch.request_id, known.conversation_id, known, sketch)
        await self._store.requests.step(self._workspace, step, self._clock.now())

    async def _drop(self, known: _Known) -> Recorded:
        """Forget a request that is not to be recorded, but for the fact that it began."""
        gone = Sketch(request_id=known.sketch.request_id, conversation_id=known.conversation_id, status="skipped")
        await self._step(known, gone)
        turn_ids = [turn.id for turn in await self._recorder.held(gone.request_id, known.conversation_id)]
        await self._store.turns.remove(self._workspace, turn_ids)
        recorded = self._passed_over(gone)  # its conversation may be gone, too, and the sketch with it
        if turn_ids or not known.is_skipped:
            await self._store.erase()
        return recorded

    def _passed_over(self, sketch: Sketch) -> Recorded:
        """Remember, in this process alone, that nothing of a request is to be written."""
        gone = Sketch(request_id=sketch.request_id, conversation_id=sketch.conversation_id, status="skipped")
        while len(self._skipped) >= SKIPPED_MAX:
            del self._skipped[next(iter(self._skipped))]
        self._skipped[sketch.request_id] = gone
        return _skipped(gone)

    @asynccontextmanager
    async def _alone(self, request_id: str) -> AsyncGenerator[None]:
        """Let the pieces of one request come one after the other."""
        lock, waiting = self._locks.get(request_id, (asyncio.Lock(), 0))
        self._locks[request_id] = lock, waiting + 1
        try:
            async with lock:
                yield
        finally:
            _, waiting = self._locks[request_id]
            if waiting == 1:
                del self._locks[request_id]
            else:
                self._locks[request_id] = lock, waiting - 1


def _standing(request_id: str, turns: list[Turn]) -> Recorded:
    ids = tuple(turn.id for turn in turns)
    return Recorded(conversation_id=turns[-1].conversation_id, status="unchanged", request_id=request_id, turn_ids=ids)


def _skipped(sketch: Sketch) -> Recorded:
    return Recorded(conversation_id=sketch.conversation_id, status="skipped", request_id=sketch.request_id)


def _told_head(head: dict[str, Json]) -> dict[str, Json]:
    """Return what is kept of the head of a request of which no content is kept: where it belongs, when, and short names."""
    kept: dict[str, Json] = {}
    for name, chars_max in _KEPT_OF_HEAD.items():
        given = head.get(name)
        if isinstance(given, str):
            kept[name] = shorten(given, chars_max) if name in {"agent", "title"} else given[:chars_max]
    kept["timestamp"] = head["timestamp"]
    for name in ("chat_meta", "meta"):
        given = head.get(name)
        if isinstance(given, dict):
            about = cast("dict[str, Json]", given)
            kept[name] = {key: about[key] for key in _META if isinstance(about.get(key), str) and len(about[key]) <= NAME_CHARS_MAX}
    return kept


def _told_response(response: dict[str, Json]) -> dict[str, Json]:
    """Return what is kept of a model's response of which no content is kept: names and numbers."""
    named = ((name, response.get(name)) for name in ("model", "finish_reason"))
    kept: dict[str, Json] = {name: shorten(value, NAME_CHARS_MAX) for name, value in named if isinstance(value, str)}
    usage = response.get("usage")
    if isinstance(usage, dict):
        kept["usage"] = {name: value for name, value in cast("dict[str, Json]", usage).items() if isinstance(value, int) and name in _USAGE}
    return kept


def _object(body: Json) -> dict[str, Json]:
    if not isinstance(body, dict):
        msg = "a piece of a request is a JSON object"
        raise InputError(msg)
    return cast("dict[str, Json]", body)


def _unknown(request_id: str) -> NotFoundError:
    return NotFoundError(f"there is no request {request_id!r}: begin it with start")
