"""What the pieces of a request amount to, put together without a store."""

from __future__ import annotations

from typing import Any

import pytest

from recollect.capture.clean import Cleaner
from recollect.capture.payload import read_payload
from recollect.capture.reading import Reading
from recollect.capture.secrets import default_redactor
from recollect.capture.sketch import Piece, Sketch, payload_of, with_piece
from recollect.errors import InputError
from recollect.model import Turn
from tests.kit import START

Sent = tuple[Piece, Any]
ASKED: Sent = ("messages", {"messages": [{"role": "user", "content": "Fix login", "sequence": 0}]})


def put_together(*pieces: Sent) -> tuple[Turn, dict[str, int]]:
    sketch = Sketch(request_id="r", conversation_id="c")
    for piece, body in pieces:
        sketch = with_piece(sketch, piece, body)
    reading = Reading(Cleaner(default_redactor()), START)
    return read_payload(payload_of(sketch), reading).turns[-1], dict(+reading.notes)


@pytest.mark.parametrize(
    "said",
    [
        {"content": "ok", "tool_calls": [{"id": "t1", "function": {"name": "cat", "arguments": "{}"}}]},
        {"content": [{"type": "tool_use", "id": "t1", "name": "cat", "input": {}}]},
    ],
    ids=["chat", "blocks"],
)
def test_a_call_that_its_message_and_a_piece_tell_is_one_call(said: dict[str, Any]) -> None:
    call = {"id": "t1", "name": "cat", "message_sequence": 1, "duration_ms": 4}
    pieces: list[Sent] = [("messages", {"role": "assistant", "sequence": 1, **said}), ("tool-calls", {"tool_calls": [call]})]
    for order in (pieces, pieces[::-1]):
        turn, notes = put_together(ASKED, *order, ("tool-results", {"tool_call_id": "t1", "content": "x = 1"}))
        assert [(one.tool_call_id, one.duration_ms, one.status) for one in turn.tool_calls] == [("t1", 4, "success")]
        assert notes == {}


@pytest.mark.parametrize("name", ["file_path", "file_name", "path"])
def test_files_and_changes_are_told_apart_by_whichever_name_their_path_has(name: str) -> None:
    given = [{name: "a.py"}, {name: "b.py"}]
    turn, _ = put_together(ASKED, ("context", given), ("code-changes", given), ("context", given), ("code-changes", given))
    assert [part.file_path for part in turn.context_files] == ["a.py", "b.py"]
    assert [part.file_path for part in turn.changes] == ["a.py", "b.py"]


def test_files_are_told_apart_by_whichever_name_their_lines_have() -> None:
    given = [{"path": "a.py", "line_start": None, "line1": line} for line in (1, 9)]
    turn, _ = put_together(ASKED, ("context", given), ("context", {"file_name": "a.py", "line_start": "9", "usefulness": 0.5}))
    assert [(part.line_start, part.usefulness) for part in turn.context_files] == [(1, None), (9, 0.5)]


def test_a_result_that_is_sent_again_takes_the_place_of_the_first() -> None:
    first = {"tool_call_id": "t1", "success": False, "error": "boom"}
    again = {"tool_call_id": "t1", "success": True, "content": "ok"}
    turn, _ = put_together(ASKED, ("tool-calls", {"id": "t1", "name": "cat"}), ("tool-results", [first]), ("tool-results", [again]))
    (call,) = turn.tool_calls
    assert call.result is not None
    assert (call.status, call.result.result, call.result.error) == ("success", "ok", None)


def test_a_result_is_believed_over_what_its_call_said_before() -> None:
    called = {"id": "t1", "name": "cat", "status": "failed", "tool_failed": True}
    turn, _ = put_together(
        ASKED, ("tool-calls", [called]), ("tool-results", [{"tool_call_id": "t1", "content": "ok", "status": "success"}])
    )
    assert [call.status for call in turn.tool_calls] == ["success"]


@pytest.mark.parametrize("flag", [{"tool_failed": True}, {"is_error": True}], ids=str)
def test_a_result_is_read_nested_as_saved_trajectories_have_it(flag: dict[str, Any]) -> None:
    nested = {"role": "tool", "content": {"tool_call_id": "t1", "content": "nested", **flag}}
    turn, notes = put_together(ASKED, ("tool-calls", {"id": "t1", "name": "cat"}), ("tool-results", {"tool_results": [nested]}))
    (call,) = turn.tool_calls
    assert call.result is not None
    assert (call.tool_name, call.status, call.result.result, notes) == ("cat", "failed", "nested", {})


PIECES: tuple[tuple[Piece, str], ...] = (
    ("messages", "messages"), ("tool-calls", "tool_calls"), ("tool-results", "tool_results"), ("context", "context_files"),
    ("code-changes", "code_changes"), ("checkpoints", "checkpoints"),
)  # fmt: skip


@pytest.mark.parametrize(("piece", "name"), PIECES)
def test_a_piece_that_tells_nothing_adds_nothing_and_is_noted(piece: Piece, name: str) -> None:
    before, _ = put_together(ASKED)
    for body in ({name: None}, {"foo": 1}):
        after, notes = put_together(ASKED, (piece, body))
        assert after == before
        assert list(notes.values()) == [1]


@pytest.mark.parametrize(("piece", "name"), PIECES)
def test_a_null_in_a_list_is_passed_over(piece: Piece, name: str) -> None:
    item = {"id": "t1", "name": "cat", "role": "user", "content": "and then", "file_path": "a.py", "git_hash": "ae09"}
    assert put_together(ASKED, (piece, {name: [None, item, None]})) == put_together(ASKED, (piece, {name: [item]}))
    assert put_together(ASKED, (piece, {name: [None]})) == put_together(ASKED)


def test_a_response_that_leaves_its_model_open_keeps_the_one_that_is_known() -> None:
    turn, _ = put_together(ASKED, ("model-response", {"model": "m"}), ("model-response", {"model": None, "finish_reason": "stop"}))
    assert (turn.model, turn.finish_reason) == ("m", "stop")


@pytest.mark.parametrize("command", [{"truncate_from": "x"}, {"truncate_from": True}, {"replace": "yes"}, {"replace": 1}], ids=str)
def test_a_command_that_cannot_be_read_is_refused_by_its_value(command: dict[str, Any]) -> None:
    (value,) = command.values()
    with pytest.raises(InputError, match=f"not '{value}'"):
        put_together(ASKED, ("messages", command))


def test_a_command_that_is_null_or_false_commands_nothing() -> None:
    commands = {"truncate_from": None, "replace": False, "remove": None}
    assert put_together(ASKED, ("messages", commands)) == put_together(ASKED)
