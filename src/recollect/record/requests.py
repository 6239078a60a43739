"""Requests that come in pieces: kept from the first one on, recorded anew with each, closed once; the streaming half of `Memory`."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast

import msgspec

from recollect.answers import Recorded
from recollect.capture.paths import place_of
from recollect.capture.payload import read_payload
from recollect.capture.sketch import Sketch, items_of, payload_of, with_items, with_piece
from recollect.capture.turns import with_status
from recollect.capture.withholding import withheld_piece
from recollect.checks import checked_name, checked_text
from recollect.clock import iso
from recollect.errors import ConflictError, InputError, NotFoundError, StoreBusyError
from recollect.limits import HEAD_MOVED_ATTEMPTS_MAX, NAME_CHARS_MAX
from recollect.model import NOT_RECORDED_TAG
from recollect.placing import unplaced
from recollect.policies import is_marked
from recollect.store.traced import TraceScope

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from recollect.capture.paths import Place
    from recollect.capture.reading import Reading
    from recollect.capture.sketch import Piece
    from recollect.clock import Clock
    from recollect.model import ConversationInfo, Json, Turn
    from recollect.record.recorder import Recorder
    from recollect.settings import Settings
    from recollect.store import Store

PIECES: tuple[Piece, ...] = ("context", "messages", "model-response", "tool-calls", "tool-results", "code-changes", "checkpoints")
SKIPPED_MAX = 10_000
Closing = Literal["complete", "failed"]
_HEAD = ("project_id", "timestamp", "chat_meta", "meta", "cwd", "agent", "title", "related_artifacts")
_META = ("chat_id", "base_chat_id", "request_attempt_id", "chat_mode")
_USAGE = frozenset({"prompt_tokens", "completion_tokens", "total_tokens", "input_tokens", "output_tokens"})
_encode = msgspec.json.encode


class Creating(Protocol):
    """How a conversation is created, or found again by its external id."""

    async def __call__(
        self, cwd: str | None, *, project: str | None, title: str | None, agent: str | None, external_id: str | None
    ) -> ConversationInfo:
        """Return the conversation."""
        ...


class OpenRequests:
    """The requests of one workspace that are not whole yet."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, recorder: Recorder, create: Creating) -> None:
        self._store = store
        self._workspace = settings.workspace
        self._settings = settings
        self._clock = clock
        self._recorder = recorder
        self._create = create
        self._locks: dict[str, tuple[asyncio.Lock, int]] = {}
        self._skipped: dict[str, Sketch] = {}  # of conversations that are not kept at all

    async def start(self, request_id: str, body: Json) -> Recorded:
        """Begin a request: from now on it is there, and open; the same again changes nothing."""
        own_id, record = self._checked_id(request_id), _object(body)
        async with self._alone(own_id):
            known = await self._known(own_id)
            if known is not None:
                return await self._begun(known)
            reading = self._recorder.reading()
            given = {name: record[name] for name in _HEAD if record.get(name) is not None}
            cleaned = cast("dict[str, Json]", reading.cleaner.payload({"timestamp": iso(reading.now), **given}))
            read = read_payload({**cleaned, "messages": [{"role": "assistant", "content": ""}]}, self._recorder.reading())
            info = await self._create(
                read.cwd, project=read.project, title=read.title, agent=read.agent, external_id=read.chat_id or own_id
            )
            policy = await self._recorder.policy(info.id)
            sketch = Sketch(request_id=own_id, conversation_id=info.id, head=_told_head(cleaned) if policy.withholds else cleaned)
            if not await self._takes(await self._info(info.id)):
                return self._passed_over(sketch)
            if await self._turn_ids(own_id, TraceScope(project_ids=(info.project_id,))):
                known = await self._known(own_id)
                if known is not None:  # somebody else began it meanwhile
                    return await self._begun(known)
                msg = f"request {own_id!r} is recorded already: begin another under another id, or delete it first"
                raise ConflictError(msg)
            if not await self._written(sketch, None):  # somebody else was first
                return await self._begun(await self._open(own_id))
            return await self._recorded(sketch)

    async def add(self, request_id: str, piece: Piece, body: Json) -> Recorded:
        """Put a piece into an open request; the same again changes nothing, and one that is refused changes nothing either."""
        own_id = self._checked_id(request_id)
        async with self._alone(own_id):
            for _ in range(HEAD_MOVED_ATTEMPTS_MAX):
                recorded = await self._added(own_id, piece, body)
                if recorded is not None:
                    return recorded
        msg = f"request {own_id} kept changing under {HEAD_MOVED_ATTEMPTS_MAX} attempts to add to it: try again"
        raise StoreBusyError(msg)

    async def _added(self, request_id: str, piece: Piece, body: Json) -> Recorded | None:
        """Put a piece into a request as it is now; None when another process has changed it meanwhile."""
        was = await self._store.requests.get(self._workspace, request_id)
        known = await self._open(request_id) if was is None else msgspec.json.decode(was, type=Sketch)
        info = await self._info(known.conversation_id)
        if known.status == "skipped" or not await self._takes(info):
            return _skipped(known)
        reading = self._recorder.reading(place_of(None if info is None else info.cwd))
        cleaned = reading.cleaner.payload(body)
        sketch = with_piece(known, piece, cleaned)
        turns = self._turns(sketch, reading.place)
        if any(is_marked(turn) for turn in turns):  # what was kept of it so far goes, too
            return await self._drop(known)
        policy = await self._recorder.policy(known.conversation_id)
        if policy.withholds:
            sketch = self._withheld(known, piece, cleaned, reading)
            turns = self._turns(sketch, reading.place)
        recorded = await self._stored(sketch, info, turns)
        if recorded.status == "skipped":  # somebody said meanwhile that nothing more is to be recorded
            return recorded
        return msgspec.structs.replace(recorded, notes=dict(+reading.notes)) if await self._written(sketch, was) else None

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
            known = await self._known(own_id)
            if known is not None:
                return await self._closed(known, status)
            turns = await self._held(own_id)
            if not turns:
                raise _unknown(own_id)
            ids = tuple(turn.id for turn in turns)
            return Recorded(conversation_id=turns[-1].conversation_id, status="unchanged", request_id=own_id, turn_ids=ids)

    async def _closed(self, known: Sketch, status: Closing) -> Recorded:
        """Record the last state of a request, and let go of its sketch."""
        if known.status == "skipped":
            recorded = await self._drop(known)
        else:
            recorded = await self._last_state(known, status)
        await self._store.requests.delete(self._workspace, known.request_id)
        self._skipped.pop(known.request_id, None)
        return recorded

    async def _last_state(self, known: Sketch, status: Closing) -> Recorded:
        if not await self._takes(await self._info(known.conversation_id)):
            await self._closed_as_it_stands(known, status)
            return _skipped(known)
        try:
            recorded = await self._recorded(msgspec.structs.replace(known, status=status))
        except ConflictError:  # a branch inherits the turn: what it says stays
            return await self._closed_as_it_stands(known, status)
        if recorded.status == "skipped":
            await self._closed_as_it_stands(known, status)
        return recorded

    async def _closed_as_it_stands(self, known: Sketch, status: Closing) -> Recorded:
        """Close a request of which nothing more is recorded; what was recorded of it before stays."""
        turns = await self._held(known.request_id, known.conversation_id)
        for turn in (one for one in turns if one.status == "open"):
            await self._recorder.rewrite(turn.conversation_id, turn.index, turn.id, turn.content_hash, with_status(unplaced(turn), status))
        ids = tuple(turn.id for turn in turns)
        return Recorded(conversation_id=known.conversation_id, status="replaced", request_id=known.request_id, turn_ids=ids)

    async def delete(self, request_id: str, conversation: str | None = None) -> int:
        """Remove a request, open or whole, with its turns; returns how many those were.

        `ConflictError` when several conversations have one of this id, and it is not said which is meant.
        """
        own_id = self._checked_id(request_id)
        async with self._alone(own_id):
            known = await self._known(own_id)
            is_open = known is not None and conversation in {None, known.conversation_id}
            turns = await self._held(own_id, known.conversation_id if known is not None and is_open else conversation)
            owners = {turn.conversation_id for turn in turns}
            if not turns and not is_open:
                raise _unknown(own_id)
            if len(owners) > 1:
                msg = f"request {own_id!r} is recorded in {len(owners)} conversations: say which one is meant"
                raise ConflictError(msg)
            if is_open:
                await self._store.requests.delete(self._workspace, own_id)
                self._skipped.pop(own_id, None)
            await self._store.turns.remove(self._workspace, [turn.id for turn in turns])
            await self._store.erase()
            return len(turns)

    async def close_idle(self) -> int:
        """Close, as failed, the requests to which nothing came for too long; returns how many."""
        before = self._clock.now() - timedelta(seconds=self._settings.server.open_seconds_max)
        idle = await self._store.requests.idle(self._workspace, before)
        for request_id in idle:
            async with self._alone(request_id):
                await self._close_idle(request_id)
        return len(idle)

    async def _close_idle(self, request_id: str) -> None:
        known = await self._known(request_id)
        if known is None:
            return
        turns = await self._held(request_id, known.conversation_id) if known.status == "open" else []
        if turns and turns[-1].status != "open":  # it was sent again as a whole meanwhile, which stays
            await self._store.requests.delete(self._workspace, request_id)
        else:
            await self._closed(known, "failed")

    # What is known

    def _checked_id(self, request_id: Any) -> str:
        return checked_name("request_id", self._recorder.reading().cleaner.text(checked_text("request_id", request_id)))

    async def _known(self, request_id: str) -> Sketch | None:
        text = await self._store.requests.get(self._workspace, request_id)
        return self._skipped.get(request_id) if text is None else msgspec.json.decode(text, type=Sketch)

    async def _open(self, request_id: str) -> Sketch:
        known = await self._known(request_id)
        if known is not None:
            return known
        if await self._turn_ids(request_id):
            msg = f"request {request_id!r} is finalized: nothing can be added to it"
            raise ConflictError(msg)
        raise _unknown(request_id)

    async def _turn_ids(self, request_id: str, where: TraceScope | None = None) -> list[str]:
        return [turn_id for turn_id, _ in await self._store.trace.request(self._workspace, where or TraceScope(), [request_id])]

    async def _held(self, request_id: str, conversation_id: str | None = None) -> list[Turn]:
        """Return the turns of a request; other projects may have one of the same id."""
        turns = await self._store.turns.by_id(self._workspace, await self._turn_ids(request_id))
        return [turn for turn in turns if conversation_id in {None, turn.conversation_id}]

    async def _info(self, conversation_id: str) -> ConversationInfo | None:
        return await self._store.conversations.get(self._workspace, conversation_id)

    async def _takes(self, info: ConversationInfo | None) -> bool:
        if info is None or NOT_RECORDED_TAG in info.tags or not self._recorder.enabled:
            return False
        return not (await self._recorder.policy(info.id)).excludes

    # What is written

    async def _written(self, sketch: Sketch, was: str | None) -> bool:
        """Write a sketch in the place of the one it was made from; False when that is not there any more."""
        text = _encode(sketch).decode()
        return await self._store.requests.put(self._workspace, sketch.request_id, sketch.conversation_id, text, self._clock.now(), was)

    def _turns(self, sketch: Sketch, place: Place) -> tuple[Turn, ...]:
        turns = read_payload(payload_of(sketch), self._recorder.reading(place)).turns
        return (*turns[:-1], with_status(turns[-1], "complete" if sketch.status == "skipped" else sketch.status))

    async def _begun(self, known: Sketch) -> Recorded:
        return _skipped(known) if known.status == "skipped" else await self._recorded(known)

    async def _recorded(self, sketch: Sketch) -> Recorded:
        """Record what a request amounts to so far, in the place of what was recorded of it before."""
        info = await self._info(sketch.conversation_id)
        return await self._stored(sketch, info, self._turns(sketch, place_of(None if info is None else info.cwd)))

    async def _stored(self, sketch: Sketch, info: ConversationInfo | None, turns: tuple[Turn, ...]) -> Recorded:
        if info is None:
            raise _unknown(sketch.request_id)
        result = await self._recorder.history(info, turns, request_id=sketch.request_id, replace=True, on_edit="replace")
        return result.recorded(sketch.request_id, {})

    async def _drop(self, known: Sketch) -> Recorded:
        """Forget a request that is not to be recorded, but for the fact that it began."""
        gone = Sketch(request_id=known.request_id, conversation_id=known.conversation_id, status="skipped")
        while not await self._written(gone, await self._store.requests.get(self._workspace, known.request_id)):
            pass  # somebody adds to it at this moment
        turn_ids = [turn.id for turn in await self._held(known.request_id, known.conversation_id)]
        await self._store.turns.remove(self._workspace, turn_ids)
        recorded = self._passed_over(gone)  # its conversation may be gone, too, and the sketch with it
        if turn_ids or known.status != "skipped":
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


def _skipped(sketch: Sketch) -> Recorded:
    return Recorded(conversation_id=sketch.conversation_id, status="skipped", request_id=sketch.request_id)


def _told_head(head: dict[str, Json]) -> dict[str, Json]:
    """Return what is kept of the head of a request of which no content is kept: where it belongs, when, and short names."""
    kept = {name: value for name, value in head.items() if name in {"project_id", "timestamp", "cwd", "agent", "title"}}
    for name in ("chat_meta", "meta"):
        given = head.get(name)
        if isinstance(given, dict):
            about = cast("dict[str, Json]", given)
            kept[name] = {key: about[key] for key in _META if isinstance(about.get(key), str) and len(about[key]) <= NAME_CHARS_MAX}
    return kept


def _told_response(response: dict[str, Json]) -> dict[str, Json]:
    """Return what is kept of a model's response of which no content is kept: names and numbers."""
    kept = {name: response[name] for name in ("model", "finish_reason") if isinstance(response.get(name), str)}
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
