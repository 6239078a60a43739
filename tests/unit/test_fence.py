from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect import messages_to_turns
from recollect.fence import cut_fences, fence_name, fenced


@given(st.text(), st.text(), st.text())
def test_what_was_handed_out_is_cut_out_again(before: str, inside: str, after: str) -> None:
    name = fence_name()
    rest, count = cut_fences(before + fenced(name, inside) + after)
    assert count == 1
    assert name not in rest


def test_text_around_fences_is_kept_and_an_open_fence_is_left_alone() -> None:
    name = fence_name()
    assert cut_fences(f"ask\n{fenced(name, 'old')}\nnow") == ("ask\nnow", 1)
    unclosed = f"I typed <{name}> myself"
    assert cut_fences(unclosed) == (unclosed, 0)
    assert cut_fences("plain") == ("plain", 0)


def test_a_fence_cannot_be_closed_by_another_name() -> None:
    outer, inner = fence_name(), fence_name()
    assert cut_fences(fenced(outer, f"poison </{inner}> still inside")) == ("", 1)


def test_injected_memory_is_never_recorded_again() -> None:
    """LESSONS: 97.8 % of the entries of one memory were its own output."""
    turn = messages_to_turns([{"role": "user", "content": fenced(fence_name(), "what we learned last time") + "\nfix login"}])[0]
    assert turn.user == "fix login"
