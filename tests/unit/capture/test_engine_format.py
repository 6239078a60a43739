"""The engine's own wire format (FORMATS §2), in every form named there."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from recollect import engine_payload_to_turns
from recollect.errors import InputError
from recollect.identity import content_hash
from recollect.model import Turn

NOW = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
CONTEXT = [{"file_name": "src/a.py", "file_content": "x = 1\n", "line1": 1, "line2": 39, "usefulness": 92.0}]
CHUNK = {
    "file_name": "src/a.py", "file_action": "edit", "line1": 3, "line2": 4, "lines_remove": "return token\n",
    "lines_add": "if token is None:\n    return None\nreturn token\n", "file_name_rename": None, "application_details": "",
}  # fmt: skip


def turns_of(messages: list[dict[str, Any]], **beside: Any) -> list[Turn]:
    return engine_payload_to_turns({"request_id": "r", "messages": messages, **beside}, now=NOW)


def asked(*more: dict[str, Any]) -> list[dict[str, Any]]:
    call = {"id": "t1", "type": "function", "index": 0, "function": {"name": "update_textdoc", "arguments": '{"path": "src/a.py"}'}}
    return [{"role": "user", "content": "Do it"}, {"role": "assistant", "content": None, "tool_calls": [call], "usage": None}, *more]


@pytest.mark.parametrize("content", [CONTEXT, json.dumps(CONTEXT)], ids=["array", "string"])
def test_a_context_file_message_is_context_of_its_turn_and_nothing_that_was_said(content: Any) -> None:
    (turn,) = turns_of(
        [{"role": "user", "content": "Look"}, {"role": "context_file", "content": content}, {"role": "assistant", "content": "ok"}]
    )
    assert [message.role for message in turn.messages] == ["user", "assistant"]
    (file,) = turn.context_files
    assert (file.file_path, file.line_start, file.line_end, file.usefulness) == ("src/a.py", 1, 39, 0.92)
    assert file.content_hash == content_hash("x = 1\n")


def given(name: str) -> dict[str, Any]:
    return {"role": "context_file", "content": [{"file_name": name}]}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


@pytest.mark.parametrize("answer", [[], [{"role": "assistant", "content": "ok"}]], ids=["after a tool", "after an answer"])
def test_files_between_an_answer_and_a_user_belong_to_the_turn_that_begins_with_that_user(answer: list[dict[str, Any]]) -> None:
    result = {"role": "tool", "tool_call_id": "t1", "content": "done"}
    history = [given("before.py"), *asked(result), *answer]
    turns = turns_of([*history, given("a.py"), given("b.py"), user("And this?"), {"role": "assistant", "content": "yes"}])
    files = [[part.file_path for part in turn.context_files] for turn in turns]
    assert files == ([["before.py"], ["a.py", "b.py"]] if answer else [["before.py", "a.py", "b.py"], []])


def test_files_after_an_answer_that_nobody_answers_belong_to_its_turn() -> None:
    answer = {"role": "assistant", "content": "ok"}
    for more in ([], [{"role": "assistant", "content": "and more"}], [{"role": "plain_text", "content": "p"}]):
        (turn,) = turns_of([user("Look"), answer, given("a.py"), *more])
        assert [part.file_path for part in turn.context_files] == ["a.py"]


def test_only_files_that_come_after_a_call_were_found_by_a_tool() -> None:
    question, *rest = asked({"role": "tool", "tool_call_id": "t1", "content": "done"})
    (turn,) = turns_of([given("first.py"), question, given("second.py"), *rest, given("third.py")])
    assert [(part.file_path, part.source) for part in turn.context_files] == [
        ("first.py", None),
        ("second.py", None),
        ("third.py", "tool"),
    ]


def test_a_file_that_a_message_and_a_list_give_is_one_with_what_both_say() -> None:
    message = {"role": "context_file", "content": [*CONTEXT, {"file_name": "src/a.py", "line1": 50, "line2": 60}]}
    told = {"file_path": "src/a.py", "line_start": 1, "line_end": 39, "usefulness": 0.5, "source": "vecdb"}
    (turn,) = turns_of([user("Look"), message], context_files=[told], context=[{**told, "source": None, "language": "python"}])
    other, one = turn.context_files
    assert (other.line_start, other.line_end, other.source) == (50, 60, None)
    assert (one.usefulness, one.source, one.language, one.content_hash) == (0.5, "vecdb", "python", content_hash("x = 1\n"))


def test_a_list_that_names_a_file_several_times_means_it() -> None:
    told = [{"file_path": "src/a.py", "source": source} for source in ("vecdb", "ast", "ast")]
    (turn,) = turns_of([user("Look")], context_files=told)
    assert [part.source for part in turn.context_files] == ["vecdb", "ast", "ast"]


@pytest.mark.parametrize(
    "message",
    [
        {"role": "diff", "tool_call_id": "t1", "content": [CHUNK]},
        {"role": "diff", "tool_call_id": "t1", "content": json.dumps([CHUNK])},
        {"role": "diff", "content": {"tool_call_id": "t1", "content": json.dumps([CHUNK]), "tool_failed": False}},
    ],
    ids=["array", "string", "nested"],
)
def test_a_diff_message_is_a_change_of_its_call_and_answers_it(message: dict[str, Any]) -> None:
    (turn,) = turns_of(asked(message))
    (change,) = turn.changes
    assert (change.file_path, change.change_type, change.tool_call_id) == ("src/a.py", "updated", "t1")
    assert (change.lines_added, change.lines_removed, change.line_start, change.line_end) == (
        2,
        0,
        3,
        5,
    )  # a line that stays is not counted
    assert turn.tool_calls[0].status == "success"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "tool", "tool_call_id": "t1", "content": "boom", "tool_failed": True},
        {"role": "tool", "content": {"tool_call_id": "t1", "content": "boom", "tool_failed": True}},
        {
            "role": "tool",
            "tool_call_id": "t1",
            "content": [{"m_type": "text", "m_content": "boom"}],
            "tool_failed": True,
            "message_id": "m",
        },
    ],
    ids=["flat", "nested", "parts"],
)
def test_tool_results_are_read_flat_and_nested(message: dict[str, Any]) -> None:
    (turn,) = turns_of(asked(message))
    result = turn.tool_calls[0].result
    assert result is not None
    assert (result.result, result.success) == ("boom", False)
    assert not turn.changes, "a call that failed changed nothing"


def test_a_picture_that_a_tool_brought_back_is_named_and_not_kept() -> None:
    content = [{"m_type": "text", "m_content": "ok"}, {"m_type": "image/png", "m_content": "QUJD"}]
    (turn,) = turns_of(asked({"role": "tool", "tool_call_id": "t1", "content": content}))
    assert turn.tool_calls[0].result is not None
    assert turn.tool_calls[0].result.result == "ok\n[image: image/png]"


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (None, ""),
        ("plain", "plain"),
        ([{"type": "text", "text": "a"}, {"m_type": "text", "m_content": "b"}], "a\nb"),
        ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}], "[image: image/png]"),
        ([{"m_type": "image/png", "m_content": "AAAA"}], "[image: image/png]"),
    ],
)
def test_content_is_a_string_null_or_an_array_of_parts(content: Any, text: str) -> None:
    (turn,) = turns_of([{"role": "user", "content": content}, {"role": "assistant", "content": "ok", "tool_calls": None}])
    assert turn.user == text


def test_thinking_reasoning_and_citations_of_newer_builds_are_read() -> None:
    said = {"role": "assistant", "content": "ok", "reasoning_content": "b", "thinking_blocks": [{"thinking": "a", "signature": "s"}]}
    (turn,) = turns_of([{"role": "user", "content": "x"}, {**said, "citations": [], "message_id": "m1"}])
    assert set((turn.messages[1].reasoning or "").split("\n")) == {"a", "b"}


def test_roles_of_the_engine_are_kept_and_not_counted_as_unknown() -> None:
    (turn,) = turns_of([{"role": "cd_instruction", "content": "cd"}, {"role": "plain_text", "content": "p"}])
    assert [message.role for message in turn.messages] == ["cd_instruction", "plain_text"]


def test_checkpoints_of_messages_have_no_id_and_are_known_by_their_commit() -> None:
    (turn,) = turns_of([{"role": "user", "content": "x", "checkpoints": [{"workspace_folder": "/w", "commit_hash": "ae09"}]}])
    assert [(one.checkpoint_id, one.git_hash, one.workspace_dir) for one in turn.checkpoints] == [("ae09", "ae09", "/w")]


@pytest.mark.parametrize("name", ["chat_meta", "meta", "metadata"])
def test_the_metadata_of_a_request_is_read_under_its_names(name: str) -> None:
    meta = {"chat_id": "c", "request_attempt_id": "a1", "chat_mode": "AGENT", "use_compression": False, "context_tokens_cap": None}
    (turn,) = turns_of([{"role": "user", "content": "x"}], **{name: meta})
    assert (turn.chat_mode, turn.request_attempt_id) == ("AGENT", "a1")


def test_a_change_that_is_told_takes_the_place_of_what_its_call_shows() -> None:
    told = [{"file_path": "src/a.py", "tool_call_id": "t1", "lines_added": 9, "change_summary": "as told"}]
    (turn,) = turns_of(asked({"role": "diff", "tool_call_id": "t1", "content": [CHUNK]}), code_changes=told)
    assert [(change.lines_added, change.change_summary) for change in turn.changes] == [(9, "as told")]


def test_a_renamed_file_says_where_it_came_from() -> None:
    chunk = {**CHUNK, "file_action": "rename", "file_name_rename": "src/b.py", "lines_add": "", "lines_remove": ""}
    (turn,) = turns_of(asked({"role": "diff", "tool_call_id": "t1", "content": [chunk]}))
    (change,) = turn.changes
    assert (change.file_path, change.change_type) == ("src/b.py", "renamed")
    assert (change.change_summary or "").startswith("renamed from src/a.py")


def test_string_compression_strength_and_null_usage_are_ordinary() -> None:
    response = {"model": "m", "finish_reason": "stop", "compression_strength": "absent", "cached": None}
    (turn,) = turns_of([{"role": "user", "content": "x", "usage": None}], model_response=response)
    assert (turn.model, turn.finish_reason) == ("m", "stop")


@pytest.mark.parametrize("payload", [None, [], "text of a user", 7, {"messages": "text of a user"}, {"messages": []}])
def test_what_is_no_payload_is_refused_without_quoting_it(payload: Any) -> None:
    with pytest.raises(InputError) as refused:
        engine_payload_to_turns(payload)
    assert "text of a user" not in str(refused.value)
