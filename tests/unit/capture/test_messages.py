from __future__ import annotations

import json
from typing import Any

import pytest

from recollect import messages_to_turns
from recollect.errors import InputError
from tests.kit import START, said


def call(call_id: str | None, name: str = "cat", arguments: Any = "{}") -> dict[str, Any]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_turn_is_a_user_message_and_everything_up_to_the_next_one() -> None:
    """LESSONS: pairing user[i] with assistant[i+1] lost the tool calls in between."""
    turns = messages_to_turns(
        [
            {"role": "user", "content": "one"},
            {"role": "assistant", "content": None, "tool_calls": [call("a")]},
            {"role": "tool", "tool_call_id": "a", "content": "A"},
            {"role": "assistant", "content": None, "tool_calls": [call("b"), call("c")]},
            {"role": "tool", "tool_call_id": "c", "content": "C"},
            {"role": "tool", "tool_call_id": "b", "content": "B"},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "two"},
        ]
    )
    assert [(turn.index, turn.user, turn.assistant) for turn in turns] == [(0, "one", "done"), (1, "two", "")]
    calls = turns[0].tool_calls
    assert [(c.tool_call_id, c.order, c.iteration, c.result.result if c.result else None) for c in calls] == [
        ("a", 0, 0, "A"),
        ("b", 1, 1, "B"),
        ("c", 2, 1, "C"),
    ]
    assert [turns[0].messages.index(m) for c in calls for m in turns[0].messages if m.id == c.message_id] == [1, 2, 2]


def test_a_user_message_with_no_answer_is_kept() -> None:
    """LESSONS: it was dropped."""
    turns = messages_to_turns([*said("a", "b"), {"role": "user", "content": "c"}, {"role": "user", "content": "d"}])
    assert [(turn.user, turn.status) for turn in turns] == [("a", "complete"), ("c", "complete"), ("d", "open")]


def test_two_calls_of_one_tool_get_ids_of_their_own() -> None:
    """LESSONS: two calls of one tool in a turn got the same id and one was lost."""
    messages = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call("t"), call("t"), call(None), call(None)]}]
    results = [{"role": "tool", "tool_call_id": "t", "content": "1"}, {"role": "tool", "tool_call_id": "t", "content": "2"}]
    turn = messages_to_turns([*messages, *results, {"role": "tool", "content": "3"}])[0]
    assert len({c.id for c in turn.tool_calls}) == 4
    assert [c.result.result if c.result else None for c in turn.tool_calls] == ["1", "2", "3", None]


def test_arguments_that_were_encoded_twice_are_read() -> None:
    """LESSONS: tool arguments were JSON-encoded twice, so file extraction found nothing."""
    for arguments in ({"file_path": "a.py"}, json.dumps({"file_path": "a.py"}), json.dumps(json.dumps({"file_path": "a.py"}))):
        turn = messages_to_turns([{"role": "assistant", "tool_calls": [call("t", "Read", arguments)]}])[0]
        assert turn.tool_calls[0].arguments == {"file_path": "a.py"}
        assert [part.path for part in turn.tool_calls[0].accessed] == ["a.py"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [("not json", {"input": "not json"}), ("[1]", {"input": [1]}), ("", None), (None, None), (7, {"input": 7}), ('"x"', {"input": '"x"'})],
)
def test_arguments_of_any_kind_become_an_object(arguments: Any, expected: Any) -> None:
    turn = messages_to_turns([{"role": "assistant", "tool_calls": [call("t", "x", arguments)]}])[0]
    assert turn.tool_calls[0].arguments == expected


def test_leading_system_messages_belong_to_the_first_turn() -> None:
    turns = messages_to_turns([{"role": "system", "content": "s"}, {"role": "developer", "content": "d"}, *said("a", "b", "c", "d")])
    assert [[m.role for m in turn.messages] for turn in turns] == [["system", "developer", "user", "assistant"], ["user", "assistant"]]


def test_null_and_array_contents_are_ordinary() -> None:
    """LESSONS: the adapter crashed on null content, content arrays, null tool_calls and null usage."""
    turns = messages_to_turns(
        [
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}, "b"],
            },
            {"role": "assistant", "content": None, "tool_calls": None, "usage": None, "reasoning_content": None},
            {"role": "assistant", "content": [{"m_type": "text", "m_content": "c"}, {"m_type": "image/png", "m_content": "AAAA"}, None]},
            {"role": "assistant"},
        ]
    )
    assert turns[0].user == "a\n[image: image/png]\nb"
    assert turns[0].assistant == "c\n[image: image/png]"


def test_anthropic_blocks_are_read() -> None:
    turns = messages_to_turns(
        [
            {"role": "user", "content": [{"type": "text", "text": "fix"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "x"},
                    {"type": "redacted_thinking", "data": "x"},
                    {"type": "text", "text": "Looking"},
                    {"type": "tool_use", "id": "u1", "name": "Grep", "input": {"pattern": "x", "path": "src"}},
                ],
                "usage": {"input_tokens": 5, "output_tokens": 7},
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "u1", "content": [{"type": "text", "text": "src/a.py:1:x"}], "is_error": False}
                ],
            },
            {"role": "assistant", "content": [{"type": "text", "text": "Done"}]},
        ]
    )
    assert len(turns) == 1, "a user record that holds only tool results is not a new turn"
    turn = turns[0]
    assert (turn.messages[1].reasoning, turn.assistant, turn.prompt_tokens, turn.completion_tokens) == ("hm", "Looking\n\nDone", 5, 7)
    assert [(c.tool_name, c.status) for c in turn.tool_calls] == [("Grep", "success")]
    assert [(part.path, part.kind) for part in turn.tool_calls[0].accessed] == [("src", "search"), ("src/a.py", "search")]


def test_a_user_message_with_results_and_words_ends_one_turn_and_begins_another() -> None:
    turns = messages_to_turns(
        [
            {"role": "user", "content": "go"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "ls", "input": {}}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "u", "content": "out"}, {"type": "text", "text": "stop"}]},
        ]
    )
    assert [turn.user for turn in turns] == ["go", "stop"]
    assert turns[0].tool_calls[0].result is not None
    assert turns[1].tool_calls == ()


def test_responses_items_are_read() -> None:
    turns = messages_to_turns(
        [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "fix"}]},
            {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]},
            {"type": "function_call", "call_id": "c1", "name": "exec_command", "arguments": '{"cmd": "cat a.py"}'},
            {"type": "function_call_output", "call_id": "c1", "output": "text"},
            {"type": "custom_tool_call", "call_id": "c2", "name": "apply_patch", "input": "*** Begin Patch\n*** Update File: b.py\n"},
            {"type": "web_search_call"},
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
        ]
    )
    assert len(turns) == 1
    assert (turns[0].user, turns[0].assistant) == ("fix", "done")
    assert [m.reasoning for m in turns[0].messages if m.reasoning] == ["hm"]
    assert [(c.tool_name, [p.path for p in c.accessed]) for c in turns[0].tool_calls] == [
        ("exec_command", ["a.py"]),
        ("apply_patch", ["b.py"]),
    ]


def test_results_without_calls_and_calls_without_results_are_kept() -> None:
    turn = messages_to_turns(
        [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "zzz", "name": "ls", "content": "orphan"}]
    )[0]
    assert [(c.tool_name, c.tool_call_id, c.result.result if c.result else None) for c in turn.tool_calls] == [("ls", "zzz", "orphan")]
    turn = messages_to_turns([{"role": "assistant", "tool_calls": [call("t")]}])[0]
    assert [(c.status, c.result) for c in turn.tool_calls] == [("unknown", None)]


def test_failures_are_seen_by_flag_and_by_word() -> None:
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "tool_calls": [call(str(n)) for n in range(5)]},
    ]
    contents = ["fine", "Error: no such file", "Traceback (most recent call last):", "errors were found in the docs", "fine"]
    messages += [
        {"role": "tool", "tool_call_id": str(n), "content": text, **({"tool_failed": True} if n == 4 else {})}
        for n, text in enumerate(contents)
    ]
    assert [c.status for c in messages_to_turns(messages)[0].tool_calls] == ["success", "failed", "failed", "success", "failed"]


def test_unknown_roles_and_things_that_are_no_message_do_not_hide_their_neighbours() -> None:
    turns = messages_to_turns(
        [None, 7, "text", {"role": "user", "content": "a"}, {"role": "wizard", "content": "spell"}, {"role": None, "content": 3}, []]
    )
    assert [m.role for m in turns[0].messages] == ["user", "wizard", "unknown"]
    assert turns[0].messages[2].content == "3"


@pytest.mark.parametrize("wrong", ["text", b"bytes", {"role": "user"}, None, 7])
def test_what_is_no_list_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        messages_to_turns(wrong)


def test_times_of_any_kind_are_read() -> None:
    times = ["2026-01-02T03:04:05Z", "2026-01-02T03:04:05+00:00Z", 1767323045, 1767323045000, "2026-01-02 03:04:05"]
    for time in times:
        turn = messages_to_turns([{"role": "user", "content": "x", "timestamp": time}], now=START)[0]
        assert turn.started_at is not None
        assert turn.started_at.isoformat() == "2026-01-02T03:04:05+00:00", time
    for time in ("not a time", "9999-12-31T00:00:00Z", 1e30, True, [1]):
        assert messages_to_turns([{"role": "user", "content": "x", "timestamp": time}], now=START)[0].started_at == START


def test_a_result_that_comes_after_the_user_spoke_again_finds_its_call() -> None:
    asked = {"role": "assistant", "tool_calls": [call("t")]}
    turns = messages_to_turns([*said("go"), asked, *said("wait"), {"role": "tool", "tool_call_id": "t", "content": "late"}])
    assert [len(turn.tool_calls) for turn in turns] == [1, 0]
    result = turns[0].tool_calls[0].result
    assert result is not None
    assert result.result == "late"


def test_checkpoints_of_a_message_belong_to_its_turn() -> None:
    first = {"role": "user", "content": "a", "checkpoints": [{"workspace_folder": "/w", "commit_hash": "ae09"}]}
    turns = messages_to_turns([first, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}])
    assert [[part.git_hash for part in turn.checkpoints] for turn in turns] == [["ae09"], []]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("token", "hunterhunter"), ("secret", "correcthorse"), ("private_key", "MIIEabc"), ("password", "abc\\def123!Q"),
        ("password", "two\nlines"), ("password", "p" * 250), ("password", "$ecr3tPass9"), ("password", "/tmp/Secr3t"),
        ("password", ["one-secret"]), ("password", 123456), ("dbPassword", "abcd1234"), ("PGPASSWORD", "abcd1234"),
        ("DB_PASS", "abcd1234"), ("githubToken", "abcd1234"), ("awsSecretAccessKey", "abcd1234"),
    ],
)  # fmt: skip
def test_a_value_under_the_name_of_a_secret_is_one_whatever_it_looks_like(key: str, value: Any) -> None:
    for arguments in ({key: value}, {"deep": [{key: value}]}, json.dumps({key: value})):
        turn = messages_to_turns([{"role": "assistant", "tool_calls": [call("t", "x", arguments)]}])[0]
        shown = json.dumps(turn.tool_calls[0].arguments)
        assert "redacted" in shown
        assert str(value if not isinstance(value, list) else value[0]) not in shown
