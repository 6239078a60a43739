"""Which call made a change, also where nobody gave the call an id."""

from __future__ import annotations

from recollect.model import CodeChange, FileAccess, ToolCall, Turn
from recollect.trace.making import maker


def called(name: str, call_id: str | None, *written: str, failed: bool = False) -> ToolCall:
    accessed = tuple(FileAccess(path=path, kind="write") for path in written)
    return ToolCall(id=name, tool_name=name, tool_call_id=call_id, status="failed" if failed else "success", accessed=accessed)


def made_by(calls: list[ToolCall], *changes: tuple[str, str | None]) -> list[str | None]:
    own = tuple(CodeChange(id=str(n), file_path=path, tool_call_id=call_id) for n, (path, call_id) in enumerate(changes))
    turn = Turn(tool_calls=tuple(calls), changes=own)
    found = [maker(turn, change) for change in own]
    return [None if one is None else one.tool_name for one in found]


def test_a_change_is_traced_to_the_call_it_names() -> None:
    assert made_by([called("first", "t1", "a.py"), called("second", "t2", "a.py")], ("a.py", "t2"), ("a.py", "t9")) == ["second", None]


def test_a_change_that_names_no_call_is_traced_to_the_nameless_call_that_wrote_its_file() -> None:
    calls = [called("read", None), called("failed", None, "a.py", failed=True), called("edit", None, "a.py"), called("named", "t1", "b.py")]
    assert made_by(calls, ("a.py", None), ("b.py", None)) == ["edit", None]


def test_nameless_calls_on_one_file_made_its_changes_in_their_order() -> None:
    calls = [called("first", None, "a.py"), called("second", None, "a.py")]
    assert made_by(calls, ("a.py", None), ("a.py", None)) == ["first", "second"]
    assert made_by(calls, ("a.py", None)) == [None]
