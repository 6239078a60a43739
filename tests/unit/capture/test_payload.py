from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from recollect.capture.clean import Cleaner
from recollect.capture.paths import Place
from recollect.capture.payload import Payload, read_payload
from recollect.capture.reading import Reading
from recollect.capture.secrets import default_redactor
from recollect.errors import InputError
from recollect.identity import content_hash
from recollect.model import CodeChange
from tests.kit import START, said


def read(document: object, place: Place | None = None) -> tuple[Payload, dict[str, int]]:
    reading = Reading(Cleaner(default_redactor()), START, place)
    return read_payload(document, reading), dict(+reading.notes)


def test_the_whole_payload_is_read(everything: dict[str, Any]) -> None:
    payload, notes = read(everything)
    assert (payload.request_id, payload.project, payload.chat_id) == ("req_1", "shop", "c1")
    assert notes == {}


def test_the_webhook_variant_names_its_context_otherwise() -> None:
    payload, _ = read({"messages": said("a"), "context": [{"file_path": "a.py", "usefulness": 1}]})
    assert [part.usefulness for part in payload.turns[0].context_files] == [1.0]


def test_a_missing_usefulness_keeps_the_context_file_as_unknown() -> None:
    """LESSONS: a missing usefulness lost the context file."""
    files = [
        {"file_path": "a.py"},
        {"file_path": "b.py", "usefulness": None},
        {"file_path": "c.py", "usefulness": 92},
        {"file_path": "d.py", "usefulness": -3},
    ]
    payload, _ = read({"messages": said("a"), "context_files": files})
    assert [part.usefulness for part in payload.turns[0].context_files] == [None, None, 0.92, 0.0]


@pytest.mark.parametrize("name", ["context_files", "context"])
def test_the_text_of_a_context_file_is_hashed_and_not_kept(name: str) -> None:
    files = [{"file_path": "a.py", "file_content": "x = 1"}, {"file_path": "b.py", "file_content": "y", "content_hash": "sha256:given"}]
    payload, _ = read({"messages": said("a"), name: files})
    assert [part.content_hash for part in payload.turns[0].context_files] == [content_hash("x = 1"), "sha256:given"]
    assert "x = 1" not in msgspec.json.encode(payload).decode()


@pytest.mark.parametrize("names", [("prompt_tokens", "completion_tokens"), ("input_tokens", "output_tokens")])
def test_the_usage_of_the_response_counts_the_tokens_of_its_turn(names: tuple[str, str]) -> None:
    usage = dict(zip(names, (900, 80), strict=True))
    payload, _ = read({"messages": said("a", "b", "c", "d"), "model_response": {"model": "m", "usage": usage}})
    assert [(turn.prompt_tokens, turn.completion_tokens) for turn in payload.turns] == [(None, None), (900, 80)]


@pytest.mark.parametrize("usage", [None, 7, [], {}, {"prompt_tokens": "many"}])
def test_usage_that_tells_nothing_leaves_what_the_messages_tell(usage: Any) -> None:
    messages = [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b", "usage": {"prompt_tokens": 7, "completion_tokens": 3}},
    ]
    for response in ({"usage": usage}, {"usage": {"prompt_tokens": 1, "completion_tokens": 1}}):
        turn = read({"messages": messages, "model_response": response})[0].turns[-1]
        assert (turn.prompt_tokens, turn.completion_tokens) == (7, 3)


def test_a_change_without_a_call_leaves_those_of_other_files() -> None:
    """A told change without the id of a call took away what every call without one had done."""
    call = {"name": "write_file", "arguments": {"path": "a.py", "content": "x"}}
    messages = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b", "tool_calls": [call]}]
    payload, _ = read({"messages": messages, "code_changes": [{"file_path": "b.py"}]})
    assert [change.file_path for change in payload.turns[0].changes] == ["b.py", "a.py"]


EDIT = {"path": "src/auth.py", "old_str": "return token\n", "replacement": "if token is None:\n    return None\nreturn token\n"}
PATCH = "*** Begin Patch\n*** Update File: y.py\n@@\n-a\n+b\n*** Update File: z.py\n@@\n-c\n+d\n*** End Patch"


def edited(call_id: str, path: str, old: str, new: str) -> dict[str, Any]:
    return {"id": call_id, "name": "Edit", "arguments": {"file_path": path, "old_string": old, "new_string": new}}


def changes_of(calls: list[dict[str, Any]], told: list[dict[str, Any]], *more: dict[str, Any], root: str | None = None) -> list[CodeChange]:
    messages = [{"role": "user", "content": "Do it"}, {"role": "assistant", "content": "ok", "tool_calls": calls}, *more]
    payload, notes = read({"messages": messages, "code_changes": told}, Place(root=root))
    assert notes == {}
    return list(payload.turns[0].changes)


def test_a_told_change_keeps_what_was_told_and_takes_the_rest_from_the_edit_of_its_call() -> None:
    call = {"id": "t1", "tool": "update_textdoc", "arguments": EDIT}
    told = {"file_path": "src/auth.py", "tool_call_id": "t1", "line_start": 30, "line_end": 34, "lines_added": 3, "severity": "high"}
    (worked_out,) = changes_of([call], [])
    (change,) = changes_of([call], [told])
    assert (change.line_start, change.line_end, change.lines_added, change.severity) == (30, 34, 3, "high")
    assert worked_out.diff is not None
    assert worked_out.code_after_hash is not None
    assert (change.diff, change.lines_removed, change.tool_call_id) == (worked_out.diff, worked_out.lines_removed, "t1")
    assert (change.code_before_hash, change.code_after_hash) == (worked_out.code_before_hash, worked_out.code_after_hash)
    assert change.change_summary == "edited auth.py (+3)"


def test_a_told_change_leaves_the_edits_that_other_calls_made_in_its_file() -> None:
    calls = [edited("t1", "x.py", "a", "b"), edited("t2", "x.py", "c", "d")]
    one, other = changes_of(calls, [{"file_path": "x.py", "tool_call_id": "t1"}])
    assert [(change.tool_call_id, change.diff) for change in (one, other)] == [("t1", "@@\n-a\n+b"), ("t2", "@@\n-c\n+d")]


def test_a_told_change_leaves_the_edits_that_its_call_made_in_other_files() -> None:
    call = {"id": "t1", "name": "apply_patch", "arguments": {"input": PATCH}}
    one, other = changes_of([call], [{"file_path": "y.py", "tool_call_id": "t1", "change_summary": "as told"}])
    assert [(change.file_path, change.diff) for change in (one, other)] == [("y.py", "@@\n-a\n+b"), ("z.py", "@@\n-c\n+d")]
    assert one.change_summary == "as told"


def test_a_change_told_without_its_call_is_that_of_the_only_call_that_edited_its_file() -> None:
    calls = [edited("t1", "x.py", "a", "b"), edited("t2", "y.py", "c", "d")]
    changes = changes_of(calls, [{"file_path": "x.py"}])
    assert [(change.file_path, change.tool_call_id, change.diff) for change in changes] == [
        ("x.py", "t1", "@@\n-a\n+b"),
        ("y.py", "t2", "@@\n-c\n+d"),
    ]


@pytest.mark.parametrize("own_id", [{}, {"tool_call_id": "t1"}], ids=["of no call", "of its call"])
def test_several_told_changes_of_one_edit_stay_as_told_and_count_once(own_id: dict[str, str]) -> None:
    told = [{"file_path": "x.py", "line_start": n, "line_end": n, "lines_added": 1, **own_id} for n in (1, 9)]
    changes = changes_of([edited("t1", "x.py", "a", "b")], told)
    assert [(change.line_start, change.diff, change.tool_call_id) for change in changes] == [(1, None, "t1"), (9, None, "t1")]


def test_the_lines_of_a_told_change_tell_which_of_several_edits_it_is() -> None:
    chunk = {"file_name": "x.py", "file_action": "edit", "lines_remove": "a\n"}
    chunks = [{**chunk, "line1": line, "line2": line + 1, "lines_add": f"line {line}\n"} for line in (10, 40, 80)]
    call = {"id": "t1", "name": "update_textdoc", "arguments": {"path": "x.py"}}
    diff = {"role": "diff", "tool_call_id": "t1", "content": chunks}
    told = [{"file_path": "x.py", "tool_call_id": "t1", "line_start": line, "change_summary": f"told {line}"} for line in (40, 10)]
    changes = changes_of([call], told, diff)
    assert [(change.line_start, change.change_summary, "+line" in (change.diff or "")) for change in changes] == [
        (40, "told 40", True),
        (10, "told 10", True),
        (80, "edited x.py (+1 −1)", True),
    ]
    (all_,) = changes_of([call], [{"file_path": "x.py", "tool_call_id": "t1", "change_summary": "all of it"}], diff)
    assert (all_.change_summary, all_.diff) == ("all of it", None)


def test_a_told_change_is_that_of_its_call_by_whatever_part_of_its_path_it_names_the_file() -> None:
    (change,) = changes_of([edited("t1", "src/x.py", "a", "b")], [{"file_path": "/w/src/x.py", "tool_call_id": "t1"}])
    assert (change.file_path, change.diff) == ("/w/src/x.py", "@@\n-a\n+b")


def test_a_told_rename_knows_where_the_file_was_before() -> None:
    call = {"id": "t1", "name": "mv", "arguments": {"source": "a.py", "destination": "b.py"}}
    for beside, summary in (({"change_summary": "moved"}, "renamed from a.py (moved)"), ({}, "renamed from a.py")):
        (change,) = changes_of([call], [{"file_path": "b.py", "change_type": "renamed", "tool_call_id": "t1", **beside}])
        assert change.change_summary == summary


def test_a_change_keeps_its_tool_call() -> None:
    """LESSONS: tool_call_id was dropped from code changes."""
    payload, _ = read({"messages": said("a"), "code_changes": [{"file_path": "a.py", "tool_call_id": "t1"}]})
    assert payload.turns[0].changes[0].tool_call_id == "t1"


@pytest.mark.parametrize(
    ("change", "kind", "summary", "severity"),
    [
        ({"diff": "deleted file mode 100644\n--- a/m.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"}, "deleted", "deleted m.py (−1)", "high"),
        ({"diff": "new file mode 100644\n--- /dev/null\n+++ b/m.py\n@@ -0,0 +1 @@\n+x\n"}, "created", "created m.py (+1)", "low"),
        ({"diff": "diff --git a/o.py b/m.py\nrename from o.py\nrename to m.py\n"}, "renamed", "renamed from o.py", "low"),
        ({"diff": "rename from /w/o.py\nrename to /w/m.py\n", "change_summary": "tidy"}, "renamed", "renamed from o.py (tidy)", "low"),
        ({"diff": "@@ -1 +1 @@\n-x\n+y\n"}, "updated", "edited m.py (+1 −1)", "low"),
        ({"diff": "@@ -0,0 +1 @@\n+x\n", "change_type": "CREATED", "severity": "HIGH"}, "created", "created m.py (+1)", "high"),
        ({"change_type": "modified", "lines_added": 3, "lines_removed": -1}, "updated", "edited m.py (+3)", "medium"),
        ({"old_path": "o.py"}, "renamed", "renamed from o.py", None),
    ],
)  # fmt: skip
def test_what_was_done_to_a_file_is_told_by_its_diff_where_the_sender_does_not(
    change: dict[str, Any], kind: str, summary: str, severity: str | None
) -> None:
    payload, _ = read({"messages": said("a"), "code_changes": [{"file_path": "m.py", **change}]}, Place(root="/w", cwd="/w"))
    (found,) = payload.turns[0].changes
    assert (found.change_type, found.change_summary, found.severity) == (kind, summary, severity)


def test_the_engines_own_context_file_and_checkpoint_are_taken() -> None:
    """LESSONS: the engine's real ContextFile, Checkpoint and string compression_strength were refused."""
    payload, notes = read(
        {
            "messages": said("a"),
            "context_files": [{"file_name": "a.py", "line1": 1, "line2": 9}],
            "checkpoints": [{"workspace_folder": "/w", "commit_hash": "ae09"}],
            "model_response": {"compression_strength": "absent"},
        }
    )
    turn = payload.turns[0]
    assert (turn.context_files[0].line_start, turn.context_files[0].line_end) == (1, 9)
    assert (turn.checkpoints[0].checkpoint_id, turn.checkpoints[0].workspace_dir) == ("ae09", "/w")
    assert notes == {}


def test_messages_are_ordered_by_their_sequence() -> None:
    messages = [{"role": "assistant", "content": "b", "sequence": 1}, {"role": "user", "content": "a", "sequence": 0}]
    payload, _ = read({"messages": messages})
    assert [m.content for m in payload.turns[0].messages] == ["a", "b"]


def test_the_list_of_tool_calls_completes_what_the_messages_made() -> None:
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y", "tool_calls": [{"id": "t1", "tool": "edit", "args_hash": "sha256:aa"}]},
    ]
    listed = [
        {"tool_call_id": "t1", "tool_name": "edit", "status": "failed", "execution_time_ms": 5},
        {"tool_call_id": "t2", "tool_name": "ls", "status": "success"},
    ]
    payload, _ = read({"messages": messages, "tool_calls": listed})
    calls = payload.turns[0].tool_calls
    assert [(c.tool_call_id, c.tool_name, c.status, c.duration_ms, c.arguments_hash[:9]) for c in calls] == [
        ("t1", "edit", "failed", 5.0, "sha256:aa"),
        ("t2", "ls", "success", None, "sha256:e3"),
    ]


@pytest.mark.parametrize("status", ["timeout", "Cancelled", "denied", "error", "aborted"])
def test_a_call_that_came_to_nothing_failed(status: str) -> None:
    payload, _ = read({"messages": said("a"), "tool_calls": [{"tool_call_id": "t", "tool_name": "ls", "status": status}]})
    assert [call.status for call in payload.turns[0].tool_calls] == ["failed"]


def test_a_call_that_is_listed_and_answered_is_one_call() -> None:
    asked = {"role": "assistant", "tool_calls": [{"id": "t1", "name": "cat", "arguments": {}}]}
    messages = [*said("x"), asked, {"role": "tool", "tool_call_id": "t1", "content": "text"}]
    for listed in ({"status": "success"}, {"status": "success", "result": "text"}, {"error": "no"}):
        payload, notes = read({"messages": messages, "tool_calls": [{"tool_call_id": "t1", "tool_name": "cat", **listed}]})
        assert [(c.tool_name, c.result.result if c.result else None) for c in payload.turns[0].tool_calls] == [("cat", "text")]
        assert notes == {}


def test_a_change_belongs_to_the_turn_of_its_tool_call() -> None:
    calls = [{"id": "t1", "name": "edit", "arguments": {}}]
    messages = [*said("a"), {"role": "assistant", "content": "b", "tool_calls": calls}, *said("c", "d")]
    changes = [{"file_path": "a.py", "tool_call_id": "t1"}, {"file_path": "b.py"}]
    payload, _ = read({"messages": messages, "code_changes": changes})
    assert [[change.file_path for change in turn.changes] for turn in payload.turns] == [["a.py"], ["b.py"]]


@pytest.mark.parametrize(
    "broken", [None, 7, "x", [], {}, {"messages": None}, {"messages": []}, {"messages": "x"}, {"messages": [None, 3]}, {"messages": {}}]
)
def test_a_payload_without_messages_is_refused(broken: object) -> None:
    with pytest.raises(InputError):
        read(broken)


def test_parts_of_the_wrong_type_are_counted_and_their_neighbours_kept() -> None:
    payload, notes = read(
        {
            "request_id": ["not", "an", "id"],
            "chat_meta": "no",
            "model_response": 3,
            "messages": said("a", "b"),
            "context_files": [None, {"file_path": 7}, {"file_path": "good.py", "symbols": "no", "line_start": "x"}],
            "code_changes": {"file_path": "a.py"},
            "checkpoints": [{}, {"git_hash": "ae09", "timestamp": "yesterday-ish"}],
            "tool_calls": [3, {}],
            "timestamp": "never",
        }
    )
    turn = payload.turns[0]
    assert [part.file_path for part in turn.context_files] == ["good.py"]
    assert [part.git_hash for part in turn.checkpoints] == ["ae09"]
    assert payload.request_id is None
    assert notes["context_files_unreadable"] == 2
    assert notes["code_changes_not_a_list"] == 1
    assert notes["times_unreadable"] == 2


def test_paths_are_relative_to_the_project() -> None:
    payload, _ = read(
        {"messages": said("a"), "context_files": [{"file_path": "/p/src/a.py"}, {"file_path": "/q/b.py"}]}, Place(root="/p", cwd="/p")
    )
    assert [part.file_path for part in payload.turns[0].context_files] == ["src/a.py", "/q/b.py"]


@pytest.mark.parametrize(
    "answered",
    [{"role": "tool", "tool_call_id": "t1", "content": "no", "tool_failed": True}, {"role": "diff", "tool_call_id": "t1", "content": []}],
    ids=["tool", "diff"],
)
@pytest.mark.parametrize("before", [[], [{"role": "assistant", "content": "I look"}]], ids=["a question", "an answer"])
def test_a_result_finds_the_call_that_only_the_list_names_wherever_it_stands(
    before: list[dict[str, Any]], answered: dict[str, Any]
) -> None:
    messages = [{"role": "user", "content": "x"}, *before, answered, {"role": "assistant", "content": "done"}, *said("and", "more")]
    payload, notes = read({"messages": messages, "tool_calls": [{"tool_call_id": "t1", "tool_name": "cat"}]})
    first, last = payload.turns
    status = "failed" if answered["role"] == "tool" else "success"
    assert [(call.tool_name, call.status, call.message_id) for call in first.tool_calls] == [("cat", status, str(len(before)))]
    assert (last.tool_calls, notes) == ((), {})


FAILURES = [{"tool_failed": True}, {"is_error": True}, {"success": False}, {"status": "error"}, {"success": True, "tool_failed": True}]


@pytest.mark.parametrize("flag", FAILURES, ids=str)
def test_a_failure_is_one_by_whichever_flag_and_wherever_it_is_told(flag: dict[str, Any]) -> None:
    asked = [*said("x"), {"role": "assistant", "content": "y", "tool_calls": [{"id": "t1", "name": "cat"}]}]
    listed = {"tool_calls": [{"tool_call_id": "t1", "tool_name": "cat", "result": "No such file", **flag}]}
    result = {"role": "tool", "tool_call_id": "t1", "content": "No such file"}
    nested: dict[str, Any] = {"role": "tool", "content": {"tool_call_id": "t1", "content": "No such file"}}
    for messages, beside in (
        (asked, listed),
        ([*asked, {**result, **flag}], {}),
        ([*asked, {**nested, **flag}], {}),
        ([*asked, {**nested, "content": {**nested["content"], **flag}}], {}),
    ):
        (call,) = read({"messages": messages, **beside})[0].turns[0].tool_calls
        assert (call.tool_name, call.status) == ("cat", "failed")


@pytest.mark.parametrize("flag", [{"tool_failed": False}, {"is_error": False}, {"success": True}, {"status": "success"}], ids=str)
def test_a_success_that_is_told_is_believed_over_how_the_result_begins(flag: dict[str, Any]) -> None:
    asked = {"role": "assistant", "content": "y", "tool_calls": [{"id": "t1", "name": "cat"}]}
    messages = [*said("x"), asked, {"role": "tool", "tool_call_id": "t1", "content": "Error: is the title of this page", **flag}]
    assert [call.status for call in read({"messages": messages})[0].turns[0].tool_calls] == ["success"]


@pytest.mark.parametrize("name", ["execution_time_ms", "duration_ms"])
def test_a_duration_of_less_than_nothing_is_unknown(name: str) -> None:
    payload, _ = read({"messages": said("a"), "tool_calls": [{"tool_call_id": "t1", "tool_name": "cat", name: -5}]})
    assert [call.duration_ms for call in payload.turns[0].tool_calls] == [None]


def test_a_call_that_a_list_names_twice_is_one_call() -> None:
    listed = [{"tool_call_id": "t1", "tool_name": "cat"}, {"tool_call_id": "t1", "tool_name": "cat", "status": "failed"}]
    payload, _ = read({"messages": said("a", "b"), "tool_calls": listed})
    assert [(call.tool_name, call.status) for call in payload.turns[0].tool_calls] == [("cat", "failed")]


def test_a_change_that_is_told_twice_is_one_change() -> None:
    chunk = {"file_path": "a.py", "line_start": 1, "line_end": 3, "diff_chunk_id": "d1"}
    told = [chunk, {**chunk, "change_summary": "the later one"}, {**chunk, "line_start": 2}, {"file_path": "b.py"}, {"file_path": "b.py"}]
    payload, _ = read({"messages": said("a"), "code_changes": told})
    assert [(change.file_path, change.line_start, change.change_summary) for change in payload.turns[0].changes] == [
        ("a.py", 1, "the later one"),
        ("a.py", 2, "edited a.py"),
        ("b.py", None, "edited b.py"),
    ]


def test_changes_of_one_file_that_differ_are_all_kept() -> None:
    told = [{"file_path": "a.py", "tool_call_id": "t1", "change_summary": text} for text in ("one thing", "and another")]
    payload, _ = read({"messages": said("a"), "code_changes": told})
    assert [change.change_summary for change in payload.turns[0].changes] == ["one thing", "and another"]


def test_a_trajectory_was_when_it_was_created() -> None:
    trajectory = {"id": "c1", "created_at": "2026-01-02T03:04:05Z", "updated_at": "2026-01-03T03:04:05Z", "messages": said("a", "b")}
    assert read(trajectory)[0].turns[0].started_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    later = {**trajectory, "timestamp": "2026-01-04T00:00:00Z"}
    assert read(later)[0].turns[0].started_at == datetime(2026, 1, 4, tzinfo=UTC)
