"""What an open turn becomes when messages come to it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from recollect.capture.clean import Cleaner
from recollect.capture.growth import grown
from recollect.capture.messages import read_turns
from recollect.capture.reading import Reading
from recollect.capture.secrets import default_redactor
from recollect.capture.withholding import withheld
from recollect.identity import content_hash
from recollect.limits import ARGUMENT_CHARS_MAX
from recollect.model import Turn
from recollect.placing import place_turn
from tests.kit import START

WRITE = {"id": "t1", "function": {"name": "create_textdoc", "arguments": json.dumps({"path": "a.py", "content": "x = 1\n"})}}
CHUNK = {"file_name": "a.py", "file_action": "edit", "line1": 7, "line2": 8, "lines_remove": "x\n", "lines_add": "y\nz\n"}


def reading() -> Reading:
    return Reading(Cleaner(default_redactor()), START)


def grow(*steps: list[dict[str, Any]], withholds: bool = False) -> Turn:
    """Return a turn that began with a question and took messages in steps, placed after each as a store does."""
    turn = read_turns([{"role": "user", "content": "Fix it"}], reading())[0]
    for messages in ([], *steps):
        longer = grown(turn, messages, reading())
        turn = place_turn(withheld(longer) if withholds else longer, "c", 0, 0)
    return turn


def said(text: str | None, *calls: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": text, "tool_calls": list(calls), **more}


def done(content: Any = "done", **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": "t1", "content": content, **more}


@pytest.mark.parametrize("withholds", [False, True])
def test_changes_context_files_and_checkpoints_come_with_their_messages(*, withholds: bool) -> None:
    files = {"role": "context_file", "content": [{"file_name": "b.py", "file_content": "text", "line1": 1, "line2": 9}]}
    turn = grow(
        [files],
        [said("I write", WRITE, checkpoints=[{"commit_hash": "ae09"}])],
        [done()],
        [{**files, "content": [{"file_name": "c.py", "file_content": "text"}]}],
        withholds=withholds,
    )
    assert [(change.file_path, change.tool_call_id, change.lines_added) for change in turn.changes] == [("a.py", "t1", 1)]
    assert [(part.file_path, part.source) for part in turn.context_files] == [("b.py", None), ("c.py", "tool")]
    assert {part.content_hash for part in turn.context_files} == {content_hash("text")}
    assert [part.git_hash for part in turn.checkpoints] == ["ae09"]


@pytest.mark.parametrize("withholds", [False, True])
@pytest.mark.parametrize("failure", [done(is_error=True), done(tool_failed=True), done("Error: no such folder")])
def test_a_call_that_failed_changed_nothing(failure: dict[str, Any], *, withholds: bool) -> None:
    assert grow([said("I write", WRITE)], [failure], withholds=withholds).changes == ()


@pytest.mark.parametrize("withholds", [False, True])
def test_a_diff_takes_the_place_of_what_the_arguments_told(*, withholds: bool) -> None:
    turn = grow([said("I write", WRITE)], [{"role": "diff", "tool_call_id": "t1", "content": [CHUNK]}], withholds=withholds)
    assert [(change.line_start, change.lines_added, change.tool_call_id) for change in turn.changes] == [(7, 2, "t1")]


def test_a_call_that_waits_or_has_no_id_is_not_told_twice() -> None:
    nameless = {"name": "create_textdoc", "arguments": {"path": "b.py", "content": "x"}}
    turn = grow([said("I write", WRITE, nameless)], [said("and wait")], [done()], [{"role": "tool", "content": "done"}])
    assert [(change.file_path, change.tool_call_id) for change in turn.changes] == [("a.py", "t1"), ("b.py", None)]
    assert [call.status for call in turn.tool_calls] == ["success", "success"]


def test_arguments_that_are_not_whole_any_more_tell_no_change_anew() -> None:
    long = {"id": "t1", "name": "create_textdoc", "arguments": {"path": "a.py", "content": "line\n" * ARGUMENT_CHARS_MAX}}
    asked = grow([said("I write", long)])
    assert len(asked.changes) == 1
    assert grow([said("I write", long)], [done("overwritten")]).changes == asked.changes


@pytest.mark.parametrize("withholds", [False, True])
def test_the_files_that_a_call_touched_stay_when_its_result_comes(*, withholds: bool) -> None:
    grep = {"id": "t1", "function": {"name": "grep", "arguments": '{"path": "src/auth", "pattern": "x"}'}}
    turn = grow([said("I look", grep)], [done("src/auth/login.py:3: x")], withholds=withholds)
    assert {(access.path, access.kind) for access in turn.tool_calls[0].accessed} == {
        ("src/auth", "search"),
        ("src/auth/login.py", "search"),
    }


def test_rounds_places_and_tokens_go_on_where_they_were() -> None:
    used = {"usage": {"prompt_tokens": 9, "completion_tokens": 2}}
    turn = grow(
        [said("one", WRITE, **used)], [done()], [said("two", {**WRITE, "id": "t2"}, usage={"prompt_tokens": 12, "completion_tokens": 3})]
    )
    assert [(call.iteration, call.message_id) for call in turn.tool_calls] == [(0, turn.messages[1].id), (1, turn.messages[2].id)]
    assert [message.content for message in turn.messages] == ["Fix it", "one", "two"]
    assert (turn.prompt_tokens, turn.completion_tokens) == (12, 5)
