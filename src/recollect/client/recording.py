"""A request of an engine while it happens: its messages, context, tool calls, changes and checkpoints, collected or sent as they come."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypedDict, Unpack, cast
from uuid import uuid4

from .delivery import WHOLE
from .plain import as_text, hash_of, one_line, plain
from .server import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from .delivery import Delivery
    from .plain import Json

_LISTS = ("messages", "context_files", "tool_calls", "code_changes", "checkpoints")
_COUNTS = (("prompt_tokens", "input_tokens"), ("completion_tokens", "output_tokens"))  # the payload's name, and the other one in use


class ContextFields(TypedDict, total=False):
    """What may be said of a context file beside its path."""

    line_start: int | None
    line_end: int | None
    usefulness: float | None
    source: str | None
    symbols: list[str]
    content_hash: str | None
    language: str | None
    timestamp: str | None


class ChangeFields(TypedDict, total=False):
    """What may be said of a change beside its path."""

    change_type: str
    change_summary: str | None
    line_start: int | None
    line_end: int | None
    function_name: str | None
    lines_added: int | None
    lines_removed: int | None
    code_before_hash: str | None
    code_after_hash: str | None
    severity: str | None
    language: str | None
    tool_call_id: str | None
    diff_chunk_id: str | None
    git_commit: str | None
    timestamp: str | None
    diff: str | None


class CheckpointFields(TypedDict, total=False):
    """What names a snapshot of the work tree; an id or a git hash is needed."""

    checkpoint_id: str | None
    git_hash: str | None
    parent_checkpoint: str | None
    workspace_dir: str | None
    timestamp: str | None


class Request:
    """One request of an engine, made by `Client.request`; it ends with its `with`, or with `finish`.

    An exception that passes through marks it as failed, and goes on untouched. Threads may share it. What is recorded after its
    end is not sent, and stands in `Client.failed`.
    """

    def __init__(
        self,
        delivery: Delivery,
        request_id: str,
        project_id: str,
        chat_meta: Mapping[str, object],
        *,
        live: bool,
        summaries_only: bool,
        monotonic: Callable[[], float],
    ) -> None:
        self.id = str(request_id)
        self._delivery = delivery
        self._live = live
        self._summaries_only = summaries_only
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._is_finished = False
        self._head: Json = {"project_id": plain(project_id), "timestamp": _now(), "chat_meta": plain(chat_meta)}
        self._lists: dict[str, list[Json]] = {name: [] for name in _LISTS}
        self._model: Json = {}
        self._calls: dict[str, Json] = {}
        self._sequence = 0
        self._asking: Json | None = None  # the assistant's last message since the user spoke, from which tool calls hang
        self._unasked: list[Json] = []  # calls before there was one: they hang from the next, or from the user's message it left unanswered
        self._asked: Json | None = None  # the user's last message
        if live:
            delivery.send(self.id, "start", self._head)

    def user(self, content: object) -> None:
        """Record what the user said."""
        self.message("user", content)

    def system(self, content: object) -> None:
        """Record a system message."""
        self.message("system", content)

    def assistant(
        self,
        content: object,
        *,
        model: str | None = None,
        finish_reason: str | None = None,
        usage: Mapping[str, Any] | None = None,
        reasoning: str | None = None,
    ) -> None:
        """Record what the assistant said, by which model and for how many tokens; the tool calls that follow hang from it.

        So do those before it, when the assistant had said nothing else since the user spoke.
        """
        given = plain(usage)
        counts = cast("Json", given) if isinstance(given, dict) else {}
        prompt, completion = (counts.get(name, counts.get(other)) for name, other in _COUNTS)
        self.message("assistant", content, reasoning=reasoning, prompt_tokens=prompt, completion_tokens=completion)
        response = _known(model=plain(model), finish_reason=plain(finish_reason))
        if self._live and (response or counts):
            self._stream("model-response", {**response, **({"usage": counts} if counts else {})})
        with self._lock:
            self._model |= response

    def message(
        self,
        role: str,
        content: object,
        *,
        reasoning: str | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """Record a message of any role; content is text, a list of content blocks, or None."""
        text = as_text(content)
        said: Json = {"role": plain(role), "content": plain(content)}
        if self._summaries_only and text is not None:
            said = {"role": plain(role), "content_summary": one_line(text), "content_hash": hash_of(text)}
        said |= _known(
            reasoning=None if self._summaries_only else plain(reasoning),
            prompt_tokens=plain(prompt_tokens),
            completion_tokens=plain(completion_tokens),
        )
        joined: list[Json] = []
        host: Json | None = None
        with self._lock:
            said |= {"sequence": self._sequence, "timestamp": _now()}
            self._sequence += 1
            if role == "user":
                host, self._asked, self._asking = self._asked, said, None
            elif role == "assistant":
                host = self._asking = said
            if host is not None:
                joined, self._unasked = self._unasked, []
                if joined and not self._live:
                    host["tool_calls"] = joined
        self._add("messages", "messages", said)
        if host is not None and joined and self._live:  # they were sent before anybody knew which message they would hang from
            self._stream("tool-calls", {"tool_calls": [{**one, "message_sequence": host["sequence"]} for one in joined]})

    def context(self, file_path: str, **fields: Unpack[ContextFields]) -> None:
        """Record a file that was given to the model; `usefulness` is from 0 to 1, and left out when unknown."""
        self._add("context", "context_files", {"file_path": plain(file_path), **self._kept(fields, ContextFields)})

    def tool_call(self, name: str, arguments: object = None, *, tool_call_id: str | None = None) -> ToolCall:
        """Record that a tool is called; the answer takes its result."""
        call_id = str(tool_call_id or f"call_{uuid4().hex}")
        text = as_text(arguments)
        given = {"arguments_hash": hash_of(text)} if self._summaries_only and text is not None else {"arguments": plain(arguments)}
        with self._lock:
            asking = self._asking
            if not (self._live or self._is_finished):
                made = self._unasked if asking is None else asking.setdefault("tool_calls", [])
                made.append({"id": call_id, "tool": plain(name)})
        if self._live:
            place = None if asking is None else asking["sequence"]
            called = {"id": call_id, "name": plain(name), **given, "timestamp": _now(), "message_sequence": place}
            if place is None:
                with self._lock:
                    self._unasked.append(called)
        else:
            called = {"tool_call_id": call_id, "tool_name": plain(name), **given, "timestamp": _now()}
            self._calls[call_id] = called
        self._add("tool-calls", "tool_calls", called)
        return ToolCall(call_id, self._answer, self._monotonic)

    def change(self, file_path: str, **fields: Unpack[ChangeFields]) -> None:
        """Record a change of a file; `tool_call_id` says which call made it."""
        self._add("code-changes", "code_changes", {"file_path": plain(file_path), **self._kept(fields, ChangeFields)})

    def checkpoint(self, **fields: Unpack[CheckpointFields]) -> None:
        """Record a snapshot of the work tree."""
        self._add("checkpoints", "checkpoints", self._kept(fields, CheckpointFields))

    def finish(self, *, failed: bool = False) -> None:
        """End the request and send it; ending it again does nothing, and one in which nothing was recorded is not sent."""
        self._finish(failed=failed)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._finish(failed=kind is not None, is_quiet=kind is not None)

    def _finish(self, *, failed: bool, is_quiet: bool = False) -> None:
        with self._lock:
            if self._is_finished:
                return
            self._is_finished = True
            payload: Json = {"request_id": self.id, **self._head, **self._lists, **_known(model_response=dict(self._model) or None)}
            is_empty = not any(self._lists.values())
            self._lists, self._calls = {}, {}
        if self._live:
            self._delivery.send(self.id, "finalize", {"status": "failed" if failed else "complete"}, is_quiet=is_quiet)
        elif not is_empty:
            self._delivery.send(self.id, WHOLE, {**payload, "status": "failed"} if failed else payload, is_quiet=is_quiet)

    def _answer(self, call_id: str, outcome: Outcome, *, is_quiet: bool = False) -> None:
        """Record the outcome of a call."""
        text = as_text(outcome.content)
        if self._summaries_only:
            whole = text if text is not None else (outcome.error or "")
            sent: Json = {"content_hash": hash_of(whole), "result_size_bytes": len(whole.encode(errors="replace"))}
        else:
            # an object goes as text, lest its own keys pass for those of a result
            sent = {"content": text if isinstance(outcome.content, dict) else outcome.content, "error": outcome.error}
        if self._live:
            result = {"tool_call_id": call_id, **sent, "success": outcome.success, "duration_ms": outcome.duration_ms}
            self._stream("tool-results", {"tool_results": [result]}, is_quiet=is_quiet)
            return
        kept = {"result": {"success": outcome.success, **sent}}
        if not self._summaries_only:
            kept = _known(result=sent["content"], error=sent["error"])
        status = None if outcome.success is None else ("success" if outcome.success else "failed")
        with self._lock:
            if not self._is_finished:
                self._calls[call_id] |= {**kept, **_known(status=status, execution_time_ms=outcome.duration_ms)}
                return
        self._too_late("tool-results", is_quiet=is_quiet)

    def _kept(self, fields: Mapping[str, Any], known: type) -> Json:
        """Return fields as they are sent; when only summaries are, a change keeps 200 characters of its own and no diff."""
        kept = _known(**{name: plain(value) for name, value in fields.items()})
        if self._summaries_only:
            kept = {name: value for name, value in kept.items() if name in known.__annotations__ and name != "diff"}
            if "change_summary" in kept:
                kept["change_summary"] = one_line(as_text(kept["change_summary"]) or "")
        return kept

    def _add(self, piece: str, name: str, record: Json) -> None:
        if self._live:
            self._stream(piece, {name: [record]})
            return
        with self._lock:
            if not self._is_finished:
                self._lists[name].append(record)
                return
        self._too_late(piece)

    def _stream(self, piece: str, body: Json, *, is_quiet: bool = False) -> None:
        if self._is_finished:
            self._too_late(piece, is_quiet=is_quiet)
        else:
            self._delivery.send(self.id, piece, body, is_quiet=is_quiet)

    def _too_late(self, piece: str, *, is_quiet: bool = False) -> None:
        error = ClientError(None, "Finished", f"the request {self.id} had ended: record before its end, or begin another")
        self._delivery.lose(self.id, piece, error, is_quiet=is_quiet)


class Outcome(NamedTuple):
    """What came of a call; None is unknown."""

    content: object = None
    success: bool | None = None
    error: str | None = None
    duration_ms: float | None = None


class ToolCall:
    """A call of a tool; say what came of it with `result`, inside its `with` to have the duration and a failure taken, too."""

    def __init__(self, call_id: str, answer: Callable[..., None], monotonic: Callable[[], float]) -> None:
        self.id = call_id
        self._answer = answer
        self._monotonic = monotonic
        self._started_seconds: float | None = None
        self._outcome = Outcome(success=True)

    def result(
        self, content: object = None, *, success: bool | None = None, error: str | None = None, duration_ms: float | None = None
    ) -> None:
        """Say what the tool gave, on leaving the `with` when inside one; an `error` is a failure unless `success` says otherwise."""
        if success is None and error is not None:
            success = False
        self._outcome = Outcome(plain(content), None if success is None else bool(success), as_text(error), plain(duration_ms))
        if self._started_seconds is None:
            self._answer(self.id, self._outcome)

    def __enter__(self) -> Self:
        self._started_seconds = self._monotonic()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        outcome = self._outcome
        if outcome.duration_ms is None and self._started_seconds is not None:
            outcome = outcome._replace(duration_ms=round((self._monotonic() - self._started_seconds) * 1_000, 3))
        if error is not None:
            outcome = outcome._replace(success=False, error=f"{type(error).__name__}: {plain(error)}")
        self._started_seconds = None
        self._answer(self.id, outcome, is_quiet=error is not None)


def _known(**fields: Any) -> Json:
    return {name: value for name, value in fields.items() if value is not None}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
