"""A request that comes in pieces → the payload it amounts to so far; pure.

A sketch holds the pieces under keys of their own, so that the same piece again changes nothing, another one under the
same key takes its place, and the order of arrival does not matter. All values are clean by now.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING, Any, Literal, cast

import msgspec

from recollect.capture.parts import short_name, told_lines, told_path
from recollect.capture.shapes import as_id, as_int, read_message, told_success
from recollect.errors import InputError, TooLargeError
from recollect.identity import canonical, content_hash
from recollect.limits import TURN_PARTS_MAX
from recollect.model import Json

if TYPE_CHECKING:
    from collections.abc import Callable

Piece = Literal["context", "messages", "model-response", "tool-calls", "tool-results", "code-changes", "checkpoints"]
SketchStatus = Literal["open", "complete", "failed", "skipped"]
_Record = dict[str, Any]


class Sketch(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a request: where it belongs, and its pieces by their keys."""

    request_id: str
    conversation_id: str
    status: SketchStatus = "open"
    head: dict[str, Json] = {}
    response: dict[str, Json] = {}
    messages: dict[str, dict[str, Json]] = {}
    calls: dict[str, dict[str, Json]] = {}
    results: dict[str, dict[str, Json]] = {}
    context: dict[str, dict[str, Json]] = {}
    changes: dict[str, dict[str, Json]] = {}
    checkpoints: dict[str, dict[str, Json]] = {}


_replace = msgspec.structs.replace
_SHOWN_CHARS_MAX = 40
_FLAGS = frozenset({"tool_failed", "is_error", "success", "status"})
_COMMANDS = frozenset({"replace", "truncate_from", "remove"})


def with_piece(sketch: Sketch, piece: Piece, body: Json) -> Sketch:
    """Put a piece into a sketch; `InputError` when the body is not what the piece is made of."""
    if piece == "model-response":
        told = {name: value for name, value in _object(body).items() if value is not None}
        return _replace(sketch, response={**sketch.response, **told})
    name, key, field = _PIECES[piece]
    record = body if isinstance(body, dict) else {}
    items = _listed(body, name)
    known: dict[str, _Record] = getattr(sketch, field)
    if _replaces(record.get("replace")):
        known = {}
    first = _first_to_go(record.get("truncate_from"))
    if first is not None:
        known = {own: item for own, item in known.items() if (as_int(item.get("sequence")) or 0) < first}
    gone = _removed(piece, record.get("remove"))
    found = {own: item for own, item in known.items() if own not in gone}
    for item in items:
        found[key(item)] = item
    if len(found) > TURN_PARTS_MAX:
        msg = f"a request has at most {TURN_PARTS_MAX:,} {name}: send them as several requests"
        raise TooLargeError(msg)
    return _replace(sketch, **{field: found})


def _replaces(given: Json) -> bool:
    if given is not None and not isinstance(given, bool):
        msg = f"replace is true or false, not {_shown(given)}"
        raise InputError(msg)
    return given is True


def _first_to_go(given: Json) -> int | None:
    first = as_int(given)
    if given is not None and first is None:
        msg = f"truncate_from is the sequence of the first message to go, not {_shown(given)}"
        raise InputError(msg)
    return first


def _shown(given: Json) -> str:
    return repr(str(given)[:_SHOWN_CHARS_MAX])


def _removed(piece: Piece, given: Json) -> set[str]:
    """Return the keys of what is to be removed: ids, and of messages the sequences they were sent under."""
    named: list[Any] = given if isinstance(given, list) else []
    gone = {own for one in named if (own := as_id(one)) is not None}
    if piece == "messages":
        gone |= {_sequence_key(sequence) for one in named if (sequence := as_int(one)) is not None}
    return gone


def _object(body: Json) -> _Record:
    if not isinstance(body, dict):
        msg = "a piece of a request is a JSON object"
        raise InputError(msg)
    return cast("_Record", body)


def items_of(piece: Piece, body: Json) -> list[_Record]:
    """Return the items of a piece; of the model's response none."""
    return [] if piece == "model-response" else _listed(body, _PIECES[piece][0])


def with_items(body: Json, piece: Piece, items: list[_Record]) -> Json:
    """Return the body of a piece with other items; what it says beside them (replace, truncate_from, remove) stays."""
    said = {name: body[name] for name in _COMMANDS if name in body} if isinstance(body, dict) else {}
    return {**said, _PIECES[piece][0]: items}


def is_command(body: Json) -> bool:
    """Tell whether a piece asks for something to go."""
    return isinstance(body, dict) and not _COMMANDS.isdisjoint(body)


def _listed(body: Json, name: str) -> list[_Record]:
    """Return the items of a piece: under its name, as a list alone, or one item alone."""
    given: Any = body
    if isinstance(body, dict):
        record = cast("_Record", body)
        given = next((record[one] for one in _NAMES.get(name, (name,)) if one in record), None)
        if given is None:
            given = [] if is_command(record) or not record else [record]
    items = [item for item in cast("list[Any]", given) if item is not None] if isinstance(given, list) else [given]
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in items):
        msg = f"this piece of a request is an object with a list of objects under {name!r}"
        raise InputError(msg)
    return [_flat(item) for item in items] if name == "tool_results" else items


def _flat(result: _Record) -> _Record:
    """Return a result that holds another with its call's id, as saved trajectories have it, as one."""
    inner = result.get("content")
    if isinstance(inner, dict) and "tool_call_id" in inner:
        return {**{name: value for name, value in result.items() if name != "content"}, **cast("_Record", inner)}
    return result


def _message_key(item: _Record) -> str:
    sequence = as_int(item.get("sequence"))
    if sequence is not None:
        return _sequence_key(sequence)
    own = as_id(item.get("message_id") or item.get("id"))
    return own if own is not None else "~" + content_hash(canonical(item))


def _sequence_key(sequence: int) -> str:
    return f"{sequence:012d}"


def _call_key(item: _Record) -> str:
    own = as_id(item.get("tool_call_id") or item.get("call_id") or item.get("id"))
    return own if own is not None else "~" + content_hash(canonical(item))


def _file_key(item: _Record) -> str:
    return canonical([told_path(item), told_lines(item)[0], short_name(item.get("source"))])


def _change_key(item: _Record) -> str:
    own = as_id(item.get("diff_chunk_id") or item.get("id"))
    if own is None:
        own = canonical([told_path(item), item.get("tool_call_id"), told_lines(item)[0], item.get("change_type")])
    return own if item.get("derived") is None else f"~{item['derived']} {own}"  # what is told does not take its place, nor it theirs


def _checkpoint_key(item: _Record) -> str:
    return as_id(item.get("checkpoint_id") or item.get("git_hash") or item.get("commit_hash")) or canonical(item)


_PIECES: dict[str, tuple[str, Callable[[_Record], str], str]] = {
    "messages": ("messages", _message_key, "messages"),
    "context": ("context_files", _file_key, "context"),
    "tool-calls": ("tool_calls", _call_key, "calls"),
    "tool-results": ("tool_results", _call_key, "results"),
    "code-changes": ("code_changes", _change_key, "changes"),
    "checkpoints": ("checkpoints", _checkpoint_key, "checkpoints"),
}
_NAMES = {"context_files": ("context_files", "context"), "tool_results": ("tool_results", "results")}


def payload_of(sketch: Sketch) -> dict[str, Json]:
    """Return the payload that a sketch amounts to; it always has a message, so that it is seen from its first piece on."""
    messages = [dict(message) for message in sorted(sketch.messages.values(), key=_place)]  # what has no place keeps its order
    by_sequence = {as_int(message.get("sequence")): message for message in messages}
    made = _made(messages) if sketch.calls else set[str | None]()
    loose: list[_Record] = []
    for own in [*sketch.calls, *(own for own in sketch.results if own not in sketch.calls)]:
        call = _joined(own, sketch.calls.get(own, {}), sketch.results.get(own))
        host = by_sequence.get(as_int(call.get("message_sequence")))
        if host is not None and call.get("message_sequence") is not None and own in sketch.calls and own not in made:
            host["tool_calls"] = [*(host.get("tool_calls") or []), call]
        else:
            loose.append(call)
    return {
        **sketch.head,
        "request_id": sketch.request_id,
        "messages": messages if _says(messages) else [{"role": "assistant", "content": ""}, *messages],
        "tool_calls": loose,
        "context_files": list(sketch.context.values()),
        "code_changes": _changes(sketch),
        "checkpoints": list(sketch.checkpoints.values()),
        "model_response": sketch.response,
    }


def _made(messages: list[_Record]) -> set[str | None]:
    """Return the ids of the calls that messages made themselves, in whichever shape; what else is known of these completes them."""
    read = (read_message(message, Counter()) for message in messages)
    return {call.call_id for message in read if message is not None for call in message.calls}


def _place(message: _Record) -> float:
    sequence = as_int(message.get("sequence"))
    return math.inf if sequence is None else sequence


def _says(messages: list[_Record]) -> bool:
    """Tell whether a message is one of a turn of its own, and not only a file that was given with one."""
    return any((read := read_message(message, Counter())) is not None and read.role != "context_file" for message in messages)


def _changes(sketch: Sketch) -> list[_Record]:
    """Return the changes but those worked out from the arguments of a call that came to nothing, or whose diff is there."""
    shown = {change.get("tool_call_id") for change in sketch.changes.values() if change.get("derived") == "diff"} - {None}
    gone = shown | _failed_calls(sketch)
    return [one for one in sketch.changes.values() if one.get("derived") != "call" or one.get("tool_call_id") not in gone]


def _failed_calls(sketch: Sketch) -> set[str]:
    """Return the ids of the calls of which a result, a message or the call itself says that they failed."""
    told = [*sketch.results.values(), *sketch.calls.values()]
    for message in sketch.messages.values():
        made = message.get("tool_calls")
        told += [message] if message.get("role") == "tool" else []
        told += [call for call in cast("list[Any]", made) if isinstance(call, dict)] if isinstance(made, list) else []
    return {_call_key(one) for one in told if told_success(one) is False}


def _joined(own: str, call: _Record, result: _Record | None) -> _Record:
    """Return a call with what came back from it."""
    named = {"id": own, **call} if not own.startswith("~") else dict(call)
    if result is None:
        return named
    outcome = {name: value for name, value in result.items() if name not in _FLAGS | {"content", "id"} and value is not None}
    if result.get("content") is not None:
        outcome["result"] = result["content"]
    success = told_success(result)
    if success is not None:
        named = {name: value for name, value in named.items() if name not in _FLAGS}
        outcome["success"] = success
    return {**named, **outcome}
