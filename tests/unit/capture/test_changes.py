from __future__ import annotations

import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.capture.changes import CHANGES_PER_CALL_MAX, changes_of_call, changes_of_chunks, completed, severity_of
from recollect.capture.clean import Cleaner
from recollect.capture.parts import read_change
from recollect.capture.paths import Place
from recollect.capture.reading import Reading
from recollect.capture.secrets import default_redactor
from recollect.capture.withholding import withheld
from recollect.identity import content_hash
from recollect.limits import DIFF_CHARS_MAX, SUMMARY_CHARS_MAX
from recollect.model import CodeChange, Turn
from recollect.text import cut
from recollect.trace.lines import renamed_from

HERE = Place(root="/p", cwd="/p")
NOW = datetime(2026, 1, 2, tzinfo=UTC)


def made(tool: str, arguments: Any, result: Any = None, *, succeeded: bool | None = True) -> tuple[CodeChange, ...]:
    return changes_of_call(tool, arguments, result, HERE, tool_call_id="t1", diff_chunk_id="d1", time=NOW, succeeded=succeeded)


def one(tool: str, arguments: Any, result: Any = None) -> CodeChange:
    (change,) = made(tool, arguments, result)
    return change


def chunk(**given: Any) -> dict[str, Any]:
    return {"file_name": "/p/a.py", "file_action": "edit", "line1": 1, "line2": 1, "lines_remove": "", "lines_add": ""} | given


def test_an_edit_tells_all_there_is_to_know() -> None:
    arguments = {
        "file_path": "/p/src/users.py",
        "old_string": "def find(x):\n    return x\n",
        "new_string": "def find(x):\n    y = x\n    return y\n",
    }
    assert one("Edit", arguments) == CodeChange(
        file_path="src/users.py",
        change_type="updated",
        change_summary="edited find (+2 −1)",
        function_name="find",
        lines_added=2,
        lines_removed=1,
        code_before_hash=content_hash("    return x"),
        code_after_hash=content_hash("    y = x\n    return y"),
        diff="@@\n def find(x):\n-    return x\n+    y = x\n+    return y",
        severity="medium",
        language="python",
        tool_call_id="t1",
        diff_chunk_id="d1",
        timestamp=NOW,
    )


OLD_NEW = ("updated", "@@\n-a\n+b", None, None, 1, 1)
WRITTEN = ("created", "new file\n@@ -0,0 +1,2 @@\n+a\n+b", 1, 2, 2, 0)


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, OLD_NEW),
        ("replace", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, OLD_NEW),
        ("edit_file", {"path": "a.py", "old_text": "a", "new_text": "b"}, OLD_NEW),
        ("mcp__fs__edit_file", {"path": "a.py", "edits": [{"oldText": "a", "newText": "b"}]}, OLD_NEW),
        ("update_textdoc", {"path": "a.py", "old_str": "a", "replacement": "b", "multiple": False}, OLD_NEW),
        ("str_replace_editor", {"command": "str_replace", "path": "a.py", "old_str": "a", "new_str": "b"}, OLD_NEW),
        ("str_replace_based_edit_tool", {"command": "str_replace", "path": "a.py", "old_str": "a"},
         ("updated", "@@\n-a", None, None, 0, 1)),
        ("str_replace_editor", {"command": "create", "path": "a.py", "file_text": "a\nb\n"}, WRITTEN),
        ("str_replace_editor", {"command": "insert", "path": "a.py", "insert_line": 4, "new_str": "x\ny"},
         ("updated", "@@ -4,0 +5,2 @@\n+x\n+y", 5, 6, 2, 0)),
        ("str_replace_based_edit_tool", {"command": "insert", "path": "a.py", "insert_line": 0, "insert_text": "x\n"},
         ("updated", "@@ -0,0 +1,1 @@\n+x", 1, 1, 1, 0)),
        ("Edit", {"file_path": "a.py", "old_string": "", "new_string": "a\nb"}, WRITTEN),
        ("Write", {"file_path": "a.py", "content": "a\nb"}, WRITTEN),
        ("write_file", {"path": "a.py", "content": "a\nb\n"}, WRITTEN),
        ("create_file", {"path": "a.py", "content": "a\nb\n"}, WRITTEN),
        ("create_textdoc", {"path": "a.py", "content": "a\nb\n"}, WRITTEN),
        ("Write", {"file_path": "a.py", "content": ""}, ("created", "new file", None, None, 0, 0)),
        ("replace_textdoc", {"path": "a.py", "replacement": "a"},
         ("updated", "@@ -0,0 +1,1 @@\n+a\n\\ what stood here before is not known", 1, 1, 1, None)),
        ("MultiEdit", {"file_path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": ""}]},
         ("updated", "@@\n-a\n+b\n@@\n-c", None, None, 1, 2)),
        ("update_textdoc_regex", {"path": "a.py", "pattern": "a+", "replacement": "b"},
         ("updated", "@@ what matches a+\n+b\n\\ what stood here before is not known", None, None, 1, None)),
        ("update_textdoc_by_lines", {"path": "a.py", "ranges": "10:20", "content": "x\ny\nz\n"},
         ("updated", "@@ -10,0 +10,3 @@\n+x\n+y\n+z\n\\ what stood here before is not known", 10, 12, 3, None)),
        ("update_textdoc_by_lines", {"path": "a.py", "ranges": ":3,40:41,5", "content": "x\n---RANGE_SEPARATOR---\ny\nz\nw"},
         ("updated", "@@ -1,0 +1,1 @@\n+x\n@@ -40,0 +38,3 @@\n+y\n+z\n+w\n\\ what stood here before is not known", 1, 40, 4, None)),
        ("edit_file", {"path": "a.py", "start_line": 7, "end_line": 8, "new_content": "x"},
         ("updated", "@@ -7,0 +7,1 @@\n+x\n\\ what stood here before is not known", 7, 7, 1, None)),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "x", "edit_mode": "insert"}, ("updated", "@@\n+x", None, None, 1, 0)),
        ("NotebookEdit", {"notebook_path": "n.ipynb", "new_source": "", "edit_mode": "delete"},
         ("updated", "\\ what stood here before is not known", None, None, 0, None)),
        ("rm", {"path": "a.py"}, ("deleted", "deleted file\n\\ what stood here before is not known", None, None, 0, None)),
        ("delete_path", {"path": "a.py"}, ("deleted", "deleted file\n\\ what stood here before is not known", None, None, 0, None)),
        ("mv", {"source": "/p/a.py", "destination": "b.py"}, ("renamed", "rename from a.py\nrename to b.py", None, None, 0, 0)),
        ("move_file", {"source": "a.py", "destination": "lib/"}, ("renamed", "rename from a.py\nrename to lib/a.py", None, None, 0, 0)),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n@@ x\n-a\n+b\n*** End Patch"},
         ("updated", "@@ x\n-a\n+b", None, None, 1, 1)),
        ("apply_patch", {"patch": "--- a/a.py\n+++ b/a.py\n@@ -5,2 +5,2 @@\n c\n-a\n+b\n"},
         ("updated", "@@ -5,2 +5,2 @@\n c\n-a\n+b", 5, 6, 1, 1)),
        ("patch", {"path": "a.py", "diff": "@@ -5 +5 @@\n-a\n+b\n"}, ("updated", "@@ -5,1 +5,1 @@\n-a\n+b", 5, 5, 1, 1)),
        ("shell", {"command": ["apply_patch", "*** Begin Patch\n*** Update File: a.py\n-a\n+b\n*** End Patch"]}, OLD_NEW),
        ("shell",
         {"command": ["bash", "-lc", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a.py\n-a\n+b\n*** End Patch\nEOF"]}, OLD_NEW),
        ("exec_command", {"cmd": "cd x && apply_patch '*** Begin Patch\n*** Update File: a.py\n-a\n+b\n*** End Patch'"}, OLD_NEW),
    ],
)  # fmt: skip
def test_every_tool_that_edits_is_read(tool: str, arguments: dict[str, Any], expected: tuple[Any, ...]) -> None:
    change = one(tool, arguments)
    assert (change.change_type, change.diff, change.line_start, change.line_end, change.lines_added, change.lines_removed) == expected
    assert completed(change) == change
    assert (change.tool_call_id, change.diff_chunk_id, change.timestamp) == ("t1", "d1", NOW)


def test_one_patch_changes_many_files() -> None:
    patch = (
        "*** Begin Patch\n*** Add File: a.py\n+x\n*** Delete File: b.py\n*** Update File: c.py\n*** Move to: d.py\n-x\n+y\n*** End Patch"
    )
    changes = made("apply_patch", {"input": patch})
    assert [(change.file_path, change.change_type) for change in changes] == [("a.py", "created"), ("b.py", "deleted"), ("d.py", "renamed")]
    assert [change.change_summary for change in changes] == ["created a.py (+1)", "deleted b.py", "renamed from c.py (+1 −1)"]


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (None, "created"),
        ("File created successfully at: /p/updated.py", "created"),
        ("The file /p/updated.py has been updated. Here's `cat -n`:\n 1 created", "updated"),
        ("Successfully overwrote file: /p/updated.py", "updated"),
        ("Successfully created and wrote to new file: /p/updated.py", "created"),
    ],
)
def test_a_written_file_was_there_before_when_the_result_says_so(result: str | None, kind: str) -> None:
    assert one("Write", {"file_path": "/p/updated.py", "content": "x"}, result).change_type == kind


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "a.py"}),
        ("Bash", {"command": "rm a.py"}),
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "a"}),
        ("Edit", {"file_path": "a.py", "new_string": "a"}),
        ("Edit", {"file_path": 7, "old_string": "a", "new_string": "b"}),
        ("Edit", {"file_path": "", "old_string": "a", "new_string": "b"}),
        ("Edit", {"file_path": "a\nb", "old_string": "a", "new_string": "b"}),
        ("MultiEdit", {"file_path": "a.py", "edits": [None, 3, {"old_string": 4}]}),
        ("Write", {"file_path": "a.py"}),
        ("Write", None),
        ("Write", [1]),
        (None, {}),
        ("rm", {"path": "a.py", "dry_run": True}),
        ("rm", {"path": "."}),
        ("mv", {"source": "a.py"}),
        ("apply_patch", {"input": "nothing of the kind"}),
        ("str_replace_editor", {"command": "view", "path": "a.py"}),
        ("str_replace_editor", {"command": ["create"], "path": "a.py"}),
    ],
)
def test_what_edits_nothing_makes_no_change(tool: Any, arguments: Any) -> None:
    assert made(tool, arguments) == ()


def test_a_call_that_failed_makes_no_change() -> None:
    arguments = {"file_path": "a.py", "content": "x"}
    assert made("Write", arguments, succeeded=False) == ()
    assert len(made("Write", arguments, succeeded=None)) == 1


@pytest.mark.parametrize(
    ("given_chunk", "expected"),
    [
        (chunk(line1=30, line2=31, lines_remove="a\n", lines_add="b\nc\n"),
         ("updated", "a.py", 30, 31, 2, 1, "@@ -30,1 +30,2 @@\n-a\n+b\n+c")),
        (chunk(lines_add="a\nb\n"), ("created", "a.py", 1, 2, 2, 0, "new file\n@@ -0,0 +1,2 @@\n+a\n+b")),
        (chunk(line1=0, lines_add="a"), ("created", "a.py", 1, 1, 1, 0, "new file\n@@ -0,0 +1,1 @@\n+a")),
        (chunk(line1=9, lines_add="a\n"), ("updated", "a.py", 9, 9, 1, 0, "@@ -8,0 +9,1 @@\n+a")),
        (chunk(line1=9, line2=11, lines_remove="a\nb\n"), ("updated", "a.py", 9, 9, 0, 2, "@@ -9,2 +8,0 @@\n-a\n-b")),
        (chunk(file_action="add", line1=None, lines_add="a\n"), ("created", "a.py", 1, 1, 1, 0, "new file\n@@ -0,0 +1,1 @@\n+a")),
        (chunk(file_action="remove", lines_remove="a\nb\n"),
         ("deleted", "a.py", None, None, 0, 2, "deleted file\n@@ -1,2 +0,0 @@\n-a\n-b")),
        (chunk(file_action="rename", file_name_rename="/p/b.py"),
         ("renamed", "b.py", None, None, 0, 0, "rename from a.py\nrename to b.py")),
        (chunk(line1="x", lines_remove="a", lines_add="b"), ("updated", "a.py", None, None, 1, 1, "@@\n-a\n+b")),
    ],
)  # fmt: skip
def test_chunks_are_read(given_chunk: dict[str, Any], expected: tuple[Any, ...]) -> None:
    for form in (
        [given_chunk],
        json.dumps([given_chunk]),
        json.dumps([given_chunk]) + "\n\nRelated: …",
        json.dumps(json.dumps([given_chunk])),
    ):
        (change,) = changes_of_chunks(form, HERE, tool_call_id="t2", time=NOW)
        assert (
            *(change.change_type, change.file_path, change.line_start, change.line_end),
            *(change.lines_added, change.lines_removed, change.diff),
        ) == expected
        assert (change.tool_call_id, change.timestamp) == ("t2", NOW)


def test_each_chunk_is_a_change_and_what_is_none_is_passed_over() -> None:
    chunks = [
        chunk(lines_add="x"),
        None,
        7,
        {},
        chunk(file_name=3),
        chunk(file_action="eat"),
        chunk(file_action=None),
        chunk(file_name="b.py", line1=3, lines_remove="x"),
    ]
    assert [change.file_path for change in changes_of_chunks(chunks, HERE, tool_call_id=None, time=None)] == ["a.py", "b.py"]
    for nothing in (None, "", "[", "[[[" * 50_000, 3, {}, [], "null", b"[]"):
        assert changes_of_chunks(nothing, HERE, tool_call_id=None, time=None) == ()
    assert len(changes_of_chunks([chunk(lines_add="x")] * 999, HERE, tool_call_id=None, time=None)) == CHANGES_PER_CALL_MAX


def test_chunks_in_a_result_are_believed_over_the_arguments() -> None:
    arguments = {"path": "/p/a.py", "old_str": "a", "replacement": "b"}
    change = one("update_textdoc", arguments, json.dumps([chunk(line1=12, lines_remove="xa\n", lines_add="xb\n")]))
    assert (change.line_start, change.diff, change.diff_chunk_id) == (12, "@@ -12,1 +12,1 @@\n-xa\n+xb", "d1")
    assert one("update_textdoc", arguments, "[not json").diff == "@@\n-a\n+b"
    assert made("cat", {"paths": "a.json"}, json.dumps([chunk(lines_add="x")])) == ()


def test_a_given_change_is_completed_from_its_diff() -> None:
    headers = "diff --git a/src/auth.py b/src/auth.py\n--- a/src/auth.py\n+++ b/src/auth.py\n"
    diff = headers + "@@ -30,2 +30,4 @@ def login_user(name):\n     x\n-    a\n+    b\n+    c\n+    d\n"
    change = completed(CodeChange(file_path="src/auth.py", diff=diff, tool_call_id="t1"))
    assert change == CodeChange(
        file_path="src/auth.py",
        change_summary="edited login_user (+3 −1)",
        line_start=30,
        line_end=33,
        function_name="login_user",
        lines_added=3,
        lines_removed=1,
        code_before_hash=content_hash("    a"),
        code_after_hash=content_hash("    b\n    c\n    d"),
        diff=diff,
        severity="high",
        language="python",
        tool_call_id="t1",
    )


def test_what_the_sender_gave_always_wins() -> None:
    given_change = CodeChange(
        file_path="a.py",
        change_summary="s",
        line_start=1,
        line_end=2,
        function_name="f",
        lines_added=0,
        lines_removed=9,
        code_before_hash="b",
        code_after_hash="a",
        diff="@@ -30 +30 @@ def g():\n-a\n+b",
        severity="grave",
        language="snake",
    )
    assert completed(given_change) == given_change


def test_a_change_without_a_diff_is_completed_from_what_it_says() -> None:
    change = completed(CodeChange(file_path="src/x.py", lines_added=3, lines_removed=1))
    assert (change.language, change.severity, change.change_summary) == ("python", "medium", "edited x.py (+3 −1)")
    change = completed(CodeChange(file_path="src/x"))
    assert (change.lines_added, change.severity, change.change_summary) == (None, None, "edited x")


def test_of_a_diff_of_several_files_only_the_own_file_counts() -> None:
    diff = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n--- a/src/b.py\n+++ b/src/b.py\n@@ -7 +7,2 @@\n-a\n+b\n+c\n"
    assert completed(CodeChange(file_path="/w/src/b.py", diff=diff)).lines_added == 2
    assert completed(CodeChange(file_path="a.py", diff=diff)).lines_added == 1


def test_a_long_diff_is_cut_after_it_was_counted() -> None:
    content = "\n".join(f"line number {n}" for n in range(30_000))
    change = one("Write", {"file_path": "a.py", "content": content})
    assert change.diff is not None
    assert len(change.diff) == DIFF_CHARS_MAX
    assert (change.lines_added, change.line_end, change.code_after_hash) == (30_000, 30_000, content_hash(content))


def test_a_diff_that_came_cut_tells_no_counts() -> None:
    change = completed(CodeChange(file_path="a.py", diff=cut("@@ -5,900 +5,900 @@ def f():\n" + "-a\n+b\n" * 900, 500)))
    assert (change.lines_added, change.lines_removed, change.code_before_hash, change.line_end) == (None, None, None, None)
    assert (change.line_start, change.function_name) == (5, "f")


@pytest.mark.parametrize(
    ("path", "lines", "severity"),
    [
        ("src/x.py", ["a"] * 101, "high"),
        ("src/x.py", ["a"] * 100, "medium"),
        ("src/x.py", ["a"] * 3, "medium"),
        ("src/x.py", ["a"] * 2, "low"),
        ("src/x.py", ["# a", "", "  # b", "# c"], "low"),
        ("src/x.c", ["# a", "", "  # b", "# c"], "medium"),
        ("src/auth/login.py", ["a"], "high"),
        ("src/auth/login.py", ["# a"], "low"),
        ("src/authorize.py", ["a"], "high"),
        ("src/author.py", ["a"] * 3, "medium"),
        ("src/tokenizer.py", ["a"] * 3, "medium"),
        ("src/userTokens.ts", ["a"], "high"),
        ("db/migrations/0001.sql", ["a"], "high"),
        (".github/workflows/ci.yml", ["a"], "high"),
        ("Dockerfile", ["a"], "high"),
        ("docs/auth.md", ["a"] * 50, "low"),
        ("tests/test_auth.py", ["a"] * 50, "low"),
        ("src/login.test.ts", ["a"] * 50, "low"),
        ("src/LoginTest.java", ["a"] * 50, "low"),
        ("src/contest.py", ["a"] * 3, "medium"),
        ("tests/test_auth.py", ["a"] * 101, "high"),
        ("requirements.txt", ["a"] * 3, "medium"),
        ("notes.txt", ["a"] * 3, "low"),
    ],
)
def test_severity_follows_its_rules(path: str, lines: list[str], severity: str) -> None:
    change = one("Write", {"file_path": path, "content": "\n".join(lines) + "\n"})
    assert change.severity == severity
    assert severity_of(change, lines) == severity


def test_deleting_is_severe() -> None:
    assert one("rm", {"path": "docs/a.md"}).severity == "high"


def test_summaries_are_short() -> None:
    change = completed(CodeChange(file_path="x" * 4_000, diff="-a\n+b"))
    assert change.change_summary is not None
    assert len(change.change_summary) <= SUMMARY_CHARS_MAX
    assert change.change_summary.endswith("… (+1 −1)")


@pytest.mark.parametrize("summary", ["", "because of " + "(many) " * 90])
def test_the_path_a_file_had_is_never_cut(summary: str) -> None:
    before = "src/" + "x" * 296
    told = {"file_path": "b.py", "change_type": "renamed", "renamed_from": before, "change_summary": summary}
    reading = Reading(Cleaner(default_redactor()), NOW, HERE)
    changes = [read_change(told, NOW, reading), one("mv", {"source": f"/p/{before}", "destination": "/p/b.py"})]
    for change in changes:
        assert change is not None
        assert renamed_from(change.change_type, change.change_summary) == before
        assert renamed_from("renamed", withheld(Turn(changes=(change,))).changes[0].change_summary) == before


def test_what_is_said_beside_a_path_is_cut_instead() -> None:
    before = "src/" + "x" * 100
    for beside in ("short", "words " * 90, "(many) " * 90, "open ( " * 90):
        told = {"file_path": "b.py", "change_type": "renamed", "old_path": before, "change_summary": beside}
        change = read_change(told, NOW, Reading(Cleaner(default_redactor()), NOW, HERE))
        assert change is not None
        assert len(change.change_summary or "") <= SUMMARY_CHARS_MAX
        assert renamed_from("renamed", change.change_summary) == before
        assert beside[:5] in (change.change_summary or "").replace("[", "(").replace("]", ")")


def test_lines_that_are_replaced_by_nothing_are_counted_as_git_counts_them() -> None:
    change = one("update_textdoc_by_lines", {"path": "/p/a.py", "content": "", "ranges": "4:6"})
    assert (change.line_start, change.line_end) == (4, 4)
    assert change.diff is not None
    assert change.diff.startswith("@@ -4,0 +3,0 @@")


text = st.one_of(
    st.text(max_size=30),
    st.sampled_from(["a.py", "\ud800", "--5", "9" * 40, "*** Begin Patch\n*** Add File: x\n+y", "@@\n-a", "\0", "/", "~"]),
)
values = st.recursive(
    st.one_of(
        st.none(), st.booleans(), st.integers(), st.integers().map(lambda n: 10**5_000 + n), st.floats(), text, st.binary(max_size=3)
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(text, inner, max_size=4)),
    max_leaves=8,
)
KEYS = (
    "path file_path old_string new_string old_str new_str replacement content edits command insert_line new_source source destination "
    "ranges start_line end_line input patch pattern cmd dry_run"
).split()
TOOLS = (
    "Edit MultiEdit Write NotebookEdit str_replace_editor create_textdoc update_textdoc update_textdoc_regex update_textdoc_by_lines "
    "replace_textdoc rm mv edit_file move_file replace apply_patch bash x__patch"
).split()


@given(
    st.one_of(st.sampled_from(TOOLS), values),
    st.one_of(values, st.dictionaries(st.sampled_from(KEYS), st.one_of(values, st.sampled_from(["create", "insert", "str_replace"])))),
    values,
)
def test_no_call_makes_reading_fail(tool: Any, arguments: Any, result: Any) -> None:
    for change in made(tool, arguments, result, succeeded=None):
        assert change.file_path
        assert change.change_type in {"created", "updated", "deleted", "renamed"}
        completed(change)


CHUNK_KEYS = "file_name file_action line1 line2 lines_remove lines_add file_name_rename application_details".split()


@given(
    st.one_of(
        values,
        st.lists(st.dictionaries(st.sampled_from(CHUNK_KEYS), st.one_of(values, st.sampled_from(["edit", "rename", "add", "remove"])))),
    )
)
def test_no_chunk_makes_reading_fail(chunks: Any) -> None:
    for change in changes_of_chunks(chunks, HERE, tool_call_id=None, time=None):
        assert change.file_path


@given(st.text(st.sampled_from("ab+-@ \\\n")), st.text(st.sampled_from("ab+-@ \\\n")))
def test_counts_are_those_of_the_signs_in_the_diff(before: str, after: str) -> None:
    for change in made("Edit", {"file_path": "a.py", "old_string": before, "new_string": after}):
        lines = (change.diff or "").split("\n")
        assert change.lines_added == sum(line.startswith("+") for line in lines)
        assert change.lines_removed == sum(line.startswith("-") for line in lines)


@given(text)
def test_no_diff_makes_completing_fail(diff: str) -> None:
    change = completed(CodeChange(file_path="a.py", diff=diff))
    assert completed(change) == change


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Write", {"file_path": "a.js", "content": "f(" * 1_000_000}),
        ("Write", {"file_path": "a.js", "content": "\n" * 500_000}),
        ("Edit", {"file_path": "a.ts", "old_string": "a b" * 300_000, "new_string": "x\n" * 300_000}),
        ("MultiEdit", {"file_path": "a.ts", "edits": [{"old_string": "x\n" * 100, "new_string": "x\ny\n" * 50}] * 5_000}),
        ("apply_patch", {"input": "*** Begin Patch\n*** Update File: a.py\n" + "@@\n-a\n+b\n" * 50_000}),
        ("Write", {"file_path": "a" * 10_000_000, "content": ""}),
    ],
    ids=["one line", "blank lines", "two sides", "many edits", "many hunks", "long path"],
)
def test_large_calls_are_read_in_moderate_time(tool: str, arguments: dict[str, Any]) -> None:
    begun = time.perf_counter()
    made(tool, arguments)
    assert time.perf_counter() - begun < 10
