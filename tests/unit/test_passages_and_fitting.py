from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from recollect import messages_to_turns
from recollect.compose.fitting import fit_turn
from recollect.distill.passages import cut_passages, stretches
from recollect.limits import PASSAGE_CHARS_MAX, TOOL_STEP_CHARS_MAX
from recollect.model import Turn
from recollect.quoting import passage_text


def turn_of(user: str, assistant: str, result: str) -> Turn:
    call = {"id": "t", "name": "ls", "arguments": {"path": "src"}}
    messages = [{"role": "user", "content": user}, {"role": "assistant", "content": assistant, "tool_calls": [call]}]
    return messages_to_turns([*messages, {"role": "tool", "tool_call_id": "t", "content": result}])[0]


@given(st.text(max_size=5_000))
def test_stretches_cover_a_text_exactly_once(text: str) -> None:
    found = stretches(text)
    assert "".join(text[start:end] for start, end in found) == text
    assert all(end - start <= PASSAGE_CHARS_MAX for start, end in found)


def test_stretches_break_at_paragraphs_and_sentences() -> None:
    text = ("A sentence about login. " * 80).strip()
    assert all(text[:end].endswith(". ") for _, end in stretches(text)[:-1])


def test_every_part_of_a_turn_becomes_a_passage_and_shows_its_own_text() -> None:
    turn = turn_of("why does it crash", "because of the token", "src/auth.py")
    passages = cut_passages(turn)
    assert [(p.part, passage_text(turn, p)) for p in passages] == [
        ("question", "why does it crash"),
        ("answer", "because of the token"),
        ("tool", 'ls {"path":"src"}\nsrc/auth.py'),
    ]


def test_a_tool_step_is_cut_to_fit() -> None:
    turn = turn_of("x", "y", "word " * 10_000)
    assert sum(p.end - p.start for p in cut_passages(turn) if p.part == "tool") <= TOOL_STEP_CHARS_MAX


def test_one_tool_result_of_more_than_5_kb_does_not_empty_the_turn() -> None:
    """LESSONS: one long tool result emptied the recent-turns section."""
    turn = turn_of("short question", "short answer", "r" * 50_000)
    fitted = fit_turn(turn, 2_000)
    assert (fitted.user, fitted.assistant) == ("short question", "short answer")
    assert fitted.char_count <= 2_000
    result = fitted.tool_calls[0].result
    assert result is not None
    assert "cut:" in (result.result or "")


@given(st.text(max_size=3_000), st.text(max_size=3_000), st.text(max_size=3_000), st.integers(min_value=300, max_value=4_000))
def test_a_fitted_turn_keeps_its_budget_and_all_its_parts(user: str, assistant: str, result: str, budget: int) -> None:
    turn = turn_of(user, assistant, result)
    fitted = fit_turn(turn, budget)
    assert fitted.char_count <= budget
    assert len(fitted.messages) == len(turn.messages)
    assert len(fitted.tool_calls) == len(turn.tool_calls)
