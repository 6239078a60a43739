"""What a project with privacy `summary` keeps of a turn, and of a piece of a request."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, cast

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from recollect.capture.clean import Cleaner
from recollect.capture.messages import read_turns
from recollect.capture.paths import Place
from recollect.capture.payload import read_payload
from recollect.capture.reading import Reading
from recollect.capture.secrets import default_redactor
from recollect.capture.sketch import Piece, Sketch, items_of, payload_of, with_items, with_piece
from recollect.capture.withholding import withheld, withheld_piece
from recollect.identity import content_hash
from recollect.model import Checkpoint, CodeChange, ContextFile, FileAccess, Message, ToolCall, ToolResult, Turn
from tests.kit import START
from tests.planted import PLANTED

PLACE = Place(root="/w", cwd="/w/sub")
SAID_CHARS = 200


def reading(place: Place | None = None) -> Reading:
    return Reading(Cleaner(default_redactor()), START, place)


def turn_of(document: object) -> Turn:
    return read_payload(document, reading()).turns[-1]


def strings(value: object) -> list[str]:
    """Return every text inside a value, with the names it stands under."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for name, item in cast("dict[str, Any]", value).items() for text in [name, *strings(item)]]
    if isinstance(value, list):
        return [text for item in cast("list[Any]", value) for text in strings(item)]
    return []


# Whole turns


def test_words_of_a_command_line_are_no_files_that_it_touched() -> None:
    """What looks like a path there may be a pattern or a text, and arguments are not kept."""
    calls = [
        {"id": "t1", "type": "function", "function": {"name": "Bash", "arguments": json.dumps({"command": "cat secret.words src/a.py"})}},
        {"id": "t2", "type": "function", "function": {"name": "Read", "arguments": json.dumps({"file_path": "src/a.py"})}},
    ]
    turn = withheld(turn_of({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": None, "tool_calls": calls}]}))
    assert [[one.path for one in call.accessed] for call in turn.tool_calls] == [[], ["src/a.py"]]


def test_contents_arguments_results_errors_diffs_and_reasoning_go(everything: dict[str, Any]) -> None:
    turn = withheld(turn_of(everything))
    assert [(message.content, message.reasoning) for message in turn.messages] == [(None, None)] * 4
    assert [call.arguments for call in turn.tool_calls] == [None, None]
    assert [(call.result.result, call.result.error) for call in turn.tool_calls if call.result] == [(None, None)] * 2
    assert [change.diff for change in turn.changes] == [None]


def test_hashes_sizes_and_relations_are_those_of_the_full_turn(everything: dict[str, Any]) -> None:
    full = turn_of(everything)
    turn = withheld(full)
    for before, after in zip(full.messages, turn.messages, strict=True):
        assert (after.role, after.content_hash, after.content_bytes) == (before.role, before.content_hash, before.content_bytes)
    for called, kept in zip(full.tool_calls, turn.tool_calls, strict=True):
        assert (kept.tool_name, kept.arguments_hash, kept.status) == (called.tool_name, called.arguments_hash, called.status)
        assert kept.accessed == called.accessed
        assert kept.result is not None
        assert called.result is not None
        assert (kept.result.content_hash, kept.result.result_size_bytes) == (called.result.content_hash, called.result.result_size_bytes)
    assert turn.context_files == full.context_files
    assert turn.checkpoints == full.checkpoints
    assert [msgspec.structs.replace(change, diff=None) for change in full.changes] == list(turn.changes)
    assert turn.char_count == sum(len(message.content_summary) for message in turn.messages)


def test_every_hash_is_a_full_sha_256_of_the_redacted_text() -> None:
    text, secret = PLANTED["github-pat"]
    turn = withheld(turn_of({"messages": [{"role": "user", "content": text}]}))
    assert turn.messages[0].content_hash == content_hash(Cleaner(default_redactor()).text(text))
    assert turn.messages[0].content_hash.startswith("sha256:")
    assert len(turn.messages[0].content_hash) == len("sha256:") + 64
    assert secret not in turn.messages[0].content_summary


@pytest.mark.parametrize("opening", ["word " * 40, "\n" * 190 + "word word ", "  a  b  " * 25, "x" * 200])
def test_a_summary_quotes_nothing_beyond_the_first_200_characters_however_blank_those_are(opening: str) -> None:
    assert len(opening) == SAID_CHARS
    turn = withheld(turn_of({"messages": [{"role": "user", "content": f"{opening}canary more of it"}]}))
    summary = turn.messages[0].content_summary
    assert "canary" not in summary
    assert len(summary) <= SAID_CHARS
    assert summary.startswith(" ".join(opening.split())[:150])


def test_a_short_message_is_its_own_summary() -> None:
    turn = withheld(turn_of({"messages": [{"role": "user", "content": "fix\n the  login"}]}))
    assert turn.messages[0].content_summary == "fix the login"


def test_a_secret_that_crosses_the_cut_is_not_quoted_by_half() -> None:
    text, secret = PLANTED["github-pat"]
    turn = withheld(turn_of({"messages": [{"role": "user", "content": "x" * 180 + " " + text}]}))
    assert secret[:8] not in turn.messages[0].content_summary


def test_what_is_no_reference_is_kept_as_its_hash() -> None:
    turn = withheld(Turn(related_artifacts=("issue-7", "a whole sentence", '{"x":1}', "y" * 300)))
    assert turn.related_artifacts == ("issue-7", *(content_hash(text) for text in ("a whole sentence", '{"x":1}', "y" * 300)))


_ids = st.text("abc-123", min_size=1, max_size=20)
_texts = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=700)
_names = st.one_of(st.none(), _texts)
_numbers = st.one_of(st.none(), st.integers(0, 10**6))
_times = st.one_of(st.none(), st.just(datetime(2026, 1, 1, tzinfo=UTC)))
_json = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-9, 9), _texts), lambda inner: st.dictionaries(_texts, inner, max_size=3)
)
_results = st.builds(
    ToolResult, success=st.booleans(), result=_names, error=_names, content_hash=_texts, source_hash=_names, timestamp=_times
)
_calls = st.builds(
    ToolCall, tool_name=_texts, tool_call_id=_names, arguments=st.one_of(st.none(), st.dictionaries(_texts, _json, max_size=3)),
    arguments_hash=_texts, source_hash=_names, diff_chunk_id=_names, result=st.one_of(st.none(), _results),
    accessed=st.tuples(st.builds(FileAccess, path=_texts, kind=st.just("read"))),
)  # fmt: skip
_messages = st.builds(
    Message, role=_texts, content=_names, content_summary=_texts, content_hash=_texts, source_hash=_names, reasoning=_names,
    token_count=_numbers, timestamp=_times,
)  # fmt: skip
_changes = st.builds(
    CodeChange, file_path=st.just("a.py"), change_type=_texts, change_summary=_names, git_commit=_names, function_name=_names,
    code_before_hash=_names, code_after_hash=_names, diff=_names, severity=_names, language=_names, tool_call_id=_names,
    diff_chunk_id=_names,
)  # fmt: skip
_context = st.builds(
    ContextFile,
    file_path=st.just("a.py"),
    source=_names,
    symbols=st.lists(_texts, max_size=3).map(tuple),
    content_hash=_names,
    language=_names,
)
_checkpoints = st.builds(Checkpoint, checkpoint_id=_names, git_hash=_names, parent_checkpoint=_names)
_turns = st.builds(
    Turn, messages=st.lists(_messages, max_size=3).map(tuple), tool_calls=st.lists(_calls, max_size=3).map(tuple),
    context_files=st.lists(_context, max_size=2).map(tuple), changes=st.lists(_changes, max_size=2).map(tuple),
    checkpoints=st.lists(_checkpoints, max_size=2).map(tuple), model=_names, chat_mode=_names, finish_reason=_names,
    request_attempt_id=_names, base_chat_id=_names, related_artifacts=st.lists(_texts, max_size=3).map(tuple),
    request_id=st.one_of(st.none(), _ids),
)  # fmt: skip


@given(_turns)
def test_of_any_turn_no_text_of_more_than_200_characters_survives_but_a_path(turn: Turn) -> None:
    plain = msgspec.to_builtins(withheld(turn))
    for call in plain["tool_calls"]:
        assert all(access["path"].isprintable() for access in call.pop("accessed"))
    assert [text for text in strings(plain) if len(text) > SAID_CHARS] == []


@given(_turns)
def test_of_any_turn_nothing_survives_of_arguments_results_diffs_and_reasoning(turn: Turn) -> None:
    kept = withheld(turn)
    assert [message.content or message.reasoning for message in kept.messages if message.content or message.reasoning] == []
    assert [call.arguments for call in kept.tool_calls if call.arguments is not None] == []
    assert [call for call in kept.tool_calls if call.result is not None and (call.result.result or call.result.error)] == []
    assert [change.diff for change in kept.changes if change.diff is not None] == []
    shape = [len(part) for part in (kept.messages, kept.tool_calls, kept.context_files, kept.changes, kept.checkpoints)]
    assert shape == [len(part) for part in (turn.messages, turn.tool_calls, turn.context_files, turn.changes, turn.checkpoints)]


@given(_turns)
def test_withholding_what_is_withheld_changes_nothing(turn: Turn) -> None:
    once = withheld(turn)
    assert withheld(once) == once


@given(_turns)
def test_calls_and_changes_go_on_naming_each_other(turn: Turn) -> None:
    kept = withheld(turn)
    for n, call in enumerate(turn.tool_calls):
        for m, change in enumerate(turn.changes):
            if call.tool_call_id == change.tool_call_id:
                assert kept.tool_calls[n].tool_call_id == kept.changes[m].tool_call_id


# Requests that come in pieces

Pieces = list[tuple[Piece, Any]]


def sketched(pieces: Pieces, place: Place | None = None, *, withholds: bool) -> Sketch:
    sketch = Sketch(request_id="r", conversation_id="c")
    for piece, body in pieces:
        cleaned = reading().cleaner.payload(body)
        if not withholds:
            sketch = with_piece(sketch, piece, cleaned)
            continue
        for kind, items in withheld_piece(piece, items_of(piece, cleaned), reading(place)):
            if items or kind == piece:
                sketch = with_piece(sketch, kind, with_items(cleaned if kind == piece else {}, kind, items))
    return sketch


def both(pieces: Pieces, place: Place | None = None) -> tuple[Turn, Turn]:
    """Return what pieces amount to when they were kept in full and withheld at the end, and when each was withheld."""
    late, early = (
        withheld(read_payload(payload_of(sketched(pieces, place, withholds=withholds)), reading(place)).turns[-1])
        for withholds in (False, True)
    )
    return _comparable(late), _comparable(early)


def _comparable(turn: Turn) -> Turn:
    """Leave out what only a sender gives beside a content."""
    replace = msgspec.structs.replace
    return replace(
        turn,
        messages=tuple(replace(message, source_hash=None) for message in turn.messages),
        tool_calls=tuple(
            replace(call, source_hash=None, result=None if call.result is None else replace(call.result, source_hash=None))
            for call in turn.tool_calls
        ),
    )


EDIT = {"path": "src/a.py", "old_str": "x = 1", "replacement": "x = 2\ny = 3"}
STREAMS: dict[str, Pieces] = {
    "messages": [
        ("messages", {"messages": [{"role": "system", "content": "be kind"}, {"role": "user", "content": "do it " * 100, "sequence": 0}]}),
        ("messages", {"messages": [{"role": "assistant", "content": "did it", "sequence": 1, "finish_reason": "stop", "model": "m"}]}),
    ],
    "summaries only": [("messages", {"messages": [{"role": "user", "content_summary": "short", "content_hash": content_hash("long")}]})],
    "no content": [("messages", {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": None}]})],
    "usage and reasoning": [
        ("messages", {"messages": [
            {"role": "user", "content": "x", "checkpoints": [{"commit_hash": "ae09", "workspace_folder": "/w"}]},
            {"role": "assistant", "content": "y", "reasoning_content": "z", "usage": {"prompt_tokens": 9, "completion_tokens": 3}},
        ]}),
    ],
    "calls of messages": [
        ("messages", {"messages": [
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": "t1", "type": "function", "function": {"name": "cat", "arguments": json.dumps({"paths": "a.py:1-9,b.py"})}}]},
            {"role": "tool", "tool_call_id": "t1", "content": "text of a file"},
        ]}),
    ],
    "nested results": [
        ("messages", {"messages": [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "t1", "function": {"name": "x", "arguments": "{}"}}]},
            {"role": "tool", "content": {"tool_call_id": "t1", "content": "nested", "tool_failed": False}},
        ]}),
    ],
    "a failure that only its text tells": [
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "Bash", "arguments": {"command": "make"}}]}),
        ("tool-results", {"tool_results": [{"tool_call_id": "t1", "content": "Error: no such file"}]}),
    ],
    "a failure that a message tells": [
        ("messages", {"messages": [
            {"role": "assistant", "content": "", "tool_calls": [{"id": "t1", "function": {"name": "x", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "t1", "content": "Traceback (most recent call last)"},
        ]}),
    ],
    "blocks": [
        ("messages", {"messages": [
            {"role": "user", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "sequence": 0},
            {"role": "assistant", "sequence": 1, "content": [
                {"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "a.py"}},
                {"type": "tool_use", "id": "t2", "name": "Read", "input": {"file_path": "b.py"}},
            ]},
            {"role": "user", "sequence": 2, "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "text of a"},
                {"type": "tool_result", "tool_use_id": "t2", "content": "text of b", "is_error": True},
            ]},
        ]}),
    ],
    "results of many names": [
        ("tool-calls", [{"tool_call_id": "t1", "tool_name": "x", "arguments": {}}, {"call_id": "t2", "tool": "y", "args": {"a": 1}}]),
        ("tool-results", {"results": [{"call_id": "t1", "output": "o" * 300}, {"id": "t2", "result": {"deep": ["er"]}, "duration_ms": 4}]}),
    ],
    "errors": [
        ("tool-calls", [{"id": "t1", "name": "x"}]),
        ("tool-results", [{"tool_call_id": "t1", "error": "it broke", "tool_failed": True}]),
    ],
    "failures by every flag": [
        ("tool-calls", [{"id": f"t{n}", "name": "Write", "arguments": {"file_path": f"{n}.py", "content": "x"}} for n in range(4)]),
        ("tool-results", [
            {"tool_call_id": "t0", "content": "no", "is_error": True},
            {"tool_call_id": "t1", "content": "no", "status": "error"},
            {"tool_call_id": "t2", "content": "no", "tool_failed": True}]),
        ("messages", [{"role": "tool", "tool_call_id": "t3", "content": "no", "success": False}]),
    ],
    "changes": [
        ("code-changes", {"code_changes": [
            {"file_path": "src/a.py", "diff": "--- a/src/a.py\n+++ b/src/a.py\n@@ -1,1 +1,2 @@\n-x = 1\n+x = 2\n+y = 3\n"},
            {"file_path": "src/b.py", "change_summary": "renamed a thing", "lines_added": 3, "severity": "high", "tool_call_id": "t9"},
        ]}),
    ],
    "edits": [
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT)}]}),
        ("tool-results", {"tool_results": [{"tool_call_id": "t1", "content": "1 file changed", "success": True}]}),
    ],
    "an edit, and the change that is told of it": [
        ("messages", {"messages": [{"role": "user", "content": "x", "sequence": 0}]}),
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT), "diff_chunk_id": "d1"}]}),
        ("code-changes", {"code_changes": [{"file_path": "src/a.py", "tool_call_id": "t1", "lines_added": 9, "diff_chunk_id": "d1"}]}),
    ],
    "a change that is told before the edit": [
        ("code-changes", {"code_changes": [{"file_path": "src/a.py", "tool_call_id": "t1", "line_start": 1, "diff_chunk_id": "d1"}]}),
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT), "diff_chunk_id": "d1"}]}),
    ],
    "a change of the file of another edit": [
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT)}]}),
        ("code-changes", {"code_changes": [{"file_path": "src/a.py", "lines_added": 9}, {"file_path": "src/b.py"}]}),
    ],
    "an edit, and the lines and kind of it that are told": [
        ("code-changes", {"code_changes": [{"file_path": "src/a.py", "tool_call_id": "t1", "line_start": 30, "change_type": "modified"}]}),
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT)}]}),
    ],
    "two edits of a file, of which one is told": [
        ("tool-calls", {"tool_calls": [
            {"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT)},
            {"id": "t2", "name": "update_textdoc", "arguments": {**EDIT, "old_str": "z = 1"}}]}),
        ("code-changes", {"code_changes": [{"file_path": "src/a.py", "tool_call_id": "t1"}]}),
    ],
    "a move that is told": [
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "mv", "arguments": {"source": "a.py", "destination": "b.py"}}]}),
        ("code-changes", {"code_changes": [{"file_path": "b.py", "tool_call_id": "t1", "change_type": "moved", "change_summary": "why"}]}),
    ],
    "an edit, its diff, and the change that is told of it": [
        ("messages", {"messages": [
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "t1", "function": {"name": "update_textdoc", "arguments": json.dumps(EDIT)}},
                {"id": "t2", "function": {"name": "create_textdoc", "arguments": {"path": "src/c.py", "content": "x"}}}]},
            {"role": "diff", "tool_call_id": "t1", "content": [
                {"file_name": "src/a.py", "file_action": "edit", "line1": 3, "line2": 4, "lines_remove": "x = 1\n", "lines_add": "y\n"}]},
            {"role": "diff", "tool_call_id": "t2", "content": [{"file_name": "src/c.py", "file_action": "add", "lines_add": "x\n"}]},
        ]}),
        ("code-changes", {"code_changes": [{"file_path": "src/c.py", "tool_call_id": "t2", "change_summary": "as told"}]}),
    ],
    "edits whose failure messages tell": [
        ("messages", {"messages": [
            {"role": "assistant", "content": "", "sequence": 1, "tool_calls": [
                {"id": f"t{n}", "function": {"name": "create_textdoc", "arguments": {"path": f"src/{n}.py", "content": "x"}}}
                for n in range(5)]},
            {"role": "tool", "sequence": 2, "tool_call_id": "t0", "content": "no", "is_error": True},
            {"role": "tool", "sequence": 3, "tool_call_id": "t1", "content": "no", "tool_failed": True},
            {"role": "tool", "sequence": 4, "tool_call_id": "t2", "content": "Error: no"},
            {"role": "tool", "sequence": 5, "content": {"tool_call_id": "t3", "content": "no", "tool_failed": True}},
            {"role": "tool", "sequence": 6, "tool_call_id": "t4", "content": "written", "tool_failed": False},
        ]}),
    ],
    "an edit that is sent again as failed": [
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT)}]}),
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "update_textdoc", "arguments": json.dumps(EDIT), "success": False}]}),
    ],
    "a file that had a long path": [
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "mv", "arguments": {"source": "s" * 300, "destination": "b.py"}}]}),
        ("code-changes", {"code_changes": [{"file_path": "d.py", "old_path": "c" * 300, "change_summary": "moved"}]}),
    ],
    "a file before anything that was said": [
        ("messages", [{"role": "context_file", "content": json.dumps([{"file_name": "d.py", "file_content": "text", "line1": 1}])}]),
    ],
    "the text of a file": [("context", {"context_files": [{"file_path": "a.py", "file_content": "text"}]})],
    "several files in one edit": [
        ("tool-calls", {"tool_calls": [{"id": "t1", "name": "apply_patch", "diff_chunk_id": "d1", "arguments": {"input": (
            "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** Update File: b.py\n@@\n-x\n+y\n*** End Patch")}}]}),
    ],
    "diffs": [
        ("messages", {"messages": [
            {"role": "user", "content": "x"},
            {"role": "diff", "tool_call_id": "t1", "content": json.dumps([
                {"file_name": "/w/a.py", "file_action": "edit", "line1": 1, "line2": 2, "lines_remove": "x = 1\n", "lines_add": "y\n"}])},
        ]}),
    ],
    "files": [
        ("context", {"context_files": [
            {"file_path": "src/a.py", "line_start": 1, "line_end": 9, "usefulness": 0.5, "source": "vecdb", "symbols": ["f"],
             "content_hash": content_hash("x"), "language": "python"},
            {"file_name": "b.py", "line1": 3, "line2": 4}, {"path": "c.py"},
        ]}),
        ("messages", [
            {"role": "user", "content": "x"},
            {"role": "context_file", "content": json.dumps([{"file_name": "d.py", "file_content": "text", "line1": 1, "line2": 9}])},
        ]),
    ],
    "checkpoints": [
        ("checkpoints", {"checkpoints": [{"checkpoint_id": "k1", "git_hash": "ae09", "parent_checkpoint": "k0", "workspace_dir": "/w"}]}),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", list(STREAMS))
@pytest.mark.parametrize("place", [None, PLACE], ids=["nowhere", "in a folder of a repository"])
def test_pieces_that_are_withheld_at_once_amount_to_what_a_whole_request_keeps(name: str, place: Place | None) -> None:
    late, early = both(STREAMS[name], place)
    if name == "several files in one edit":
        late, early = (
            msgspec.structs.replace(turn, changes=tuple(msgspec.structs.replace(one, diff_chunk_id=None) for one in turn.changes))
            for turn in (late, early)
        )
    assert early == late


def test_what_came_in_pieces_is_hashed_after_secrets_inside_nested_text_are_removed() -> None:
    _, secret = PLANTED["assigned-secret"]
    nested = json.dumps({"command": f"export password='{secret}'", "env": {"password": secret}})
    late, early = both([("tool-calls", [{"id": "t1", "name": "shell", "arguments": nested}])])
    assert early.tool_calls[0].arguments_hash == late.tool_calls[0].arguments_hash


WORD = "canaryword"
LONG = "said " * 40 + WORD  # its first 200 characters end before the word
WORDY: Pieces = [
    ("messages", {"note": WORD, "messages": [
        {"role": "user", "content": LONG, "usage": {"note": WORD, "prompt_tokens": 1}, "extra": WORD, "citations": [WORD],
         "checkpoints": [{"commit_hash": "ae", "message": WORD, "files": [WORD]}]},
        {"role": "assistant", "content": [{"type": "text", "text": LONG}, {"type": "thinking", "thinking": WORD, "signature": WORD},
                                          {"type": "tool_use", "id": "a", "name": "x", "input": {WORD: WORD}}],
         "reasoning_content": WORD, "thinking_blocks": [{"type": "thinking", "thinking": WORD}],
         "tool_calls": [{"id": "b", "function": {"name": "x", "arguments": json.dumps({"a": [WORD]})}, "error": WORD, "note": WORD}]},
        {"role": "tool", "tool_call_id": "b", "content": WORD, "note": WORD},
        {"role": "tool", "content": {"tool_call_id": "a", "content": [{"type": "text", "text": WORD}]}},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": WORD},
                                     {"type": "tool_result", "tool_use_id": "b", "content": WORD}]},
        {"role": "context_file", "content": [{"file_name": "a.py", "file_content": WORD, "note": WORD, "symbols": [{"x": WORD}]}]},
        {"role": "diff", "tool_call_id": "b", "content": [
            {"file_name": "a.py", "file_action": "edit", "lines_add": WORD, "lines_remove": WORD, "application_details": WORD}]},
    ]}),
    ("tool-calls", [
        {"id": "c", "name": "update_textdoc", "arguments": {"path": "a.py", "old_str": WORD, "replacement": WORD}, "note": WORD},
        {"id": "d", "name": "x", "input": WORD, "result": {"success": True, "result": WORD, "error": WORD}, "timestamp": WORD * 10},
    ]),
    ("tool-results", [{"tool_call_id": "c", "content": WORD, "note": WORD}, {"tool_call_id": "d", "result": {"deep": WORD}, "error": WORD},
                      {"tool_call_id": "e", "output": [WORD]}, {"tool_call_id": "f", "content_hash": f"{WORD} {WORD}"}]),
    ("code-changes", [{"file_path": "a.py", "diff": f"+{WORD}", "before": WORD, "after": WORD, "code_after_hash": f"{WORD} x"}]),
    ("context", [{"file_path": "a.py", "file_content": WORD, "content": WORD, "text": WORD, "note": [WORD]}]),
    ("checkpoints", [{"git_hash": "ae", "message": WORD, "diff": WORD}]),
]  # fmt: skip


@pytest.mark.parametrize("wordy", WORDY, ids=[piece for piece, _ in WORDY])
def test_a_sketch_holds_no_word_of_a_content_whichever_field_it_came_in(wordy: tuple[Piece, Any]) -> None:
    assert WORD in msgspec.json.encode(sketched([wordy], withholds=False)).decode()
    assert WORD not in msgspec.json.encode(sketched([wordy], withholds=True)).decode()


def test_a_piece_sent_again_changes_nothing_and_another_in_its_place_takes_it() -> None:
    for pieces in STREAMS.values():
        once, twice = sketched(pieces, withholds=True), sketched([*pieces, *pieces], withholds=True)
        assert once == twice
    changed = sketched([("code-changes", [{"id": "x", "file_path": "a.py"}]), ("code-changes", {"remove": ["x"]})], withholds=True)
    assert changed.changes == {}


def test_messages_of_agents_are_withheld_like_payloads() -> None:
    turns = read_turns(
        [{"role": "user", "content": LONG}, {"role": "assistant", "content": [{"type": "thinking", "thinking": WORD}]}], reading()
    )
    assert WORD not in msgspec.json.encode(withheld(turns[0])).decode()
