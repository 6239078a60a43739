"""What is shown of a conversation: its highest summaries and last turns, within a limit, with marks where something is left out."""

from __future__ import annotations

from datetime import UTC, datetime

from recollect.analysis.extractive import overview
from recollect.analysis.material import material_of, material_text
from recollect.limits import ANALYSIS_CHARS_MAX
from recollect.model import ConversationInfo, Message, Summary, Turn

NOW = datetime(2026, 3, 2, tzinfo=UTC)
INFO = ConversationInfo(id="c", title="Fix login", created_at=NOW, updated_at=NOW)


def turn(index: int, words: str = "words") -> Turn:
    said = (Message(role="user", content=f"question{index}"), Message(role="assistant", content=f"answer{index} {words}"))
    return Turn(id=f"t{index}", index=index, messages=said)


def summary(own_id: str, level: int, first: int, last: int, *sources: str, text: str = "told") -> Summary:
    return Summary(
        id=own_id, conversation_id="c", level=level, summary=f"{text} {own_id}", first_turn=first, last_turn=last, turn_count=1,
        char_count=len(text) * 4, created_at=NOW, source_ids=sources,
    )  # fmt: skip


def test_of_summaries_the_highest_are_shown_and_of_turns_those_after_them() -> None:
    shown = [summary("a", 1, 0, 2, "t0"), summary("b", 1, 3, 5, "t3"), summary("c", 1, 6, 8, "t6"), summary("ab", 2, 0, 5, "a", "b")]
    material = material_of(INFO, shown, [turn(0)], [turn(n) for n in range(5, 13)], 12)
    assert [one.id for one in material.summaries] == ["c", "ab"]
    assert [one.index for one in material.turns] == [9, 10, 11, 12]
    text = material_text(material)
    assert "told ab" in text
    assert "told a\n" not in text
    assert "left out" not in text


def test_a_few_of_the_last_turns_are_shown_in_any_case_and_nothing_after_the_last() -> None:
    shown = [summary("a", 1, 0, 9), summary("later", 1, 10, 11)]
    material = material_of(INFO, shown, [turn(0)], [turn(n) for n in range(12)], 9)
    assert [one.id for one in material.summaries] == ["a"]
    assert [one.index for one in material.turns] == [7, 8, 9]


def test_without_summaries_the_first_turn_is_shown_and_the_gap_is_marked() -> None:
    text = material_text(material_of(INFO, [], [turn(0)], [turn(n) for n in range(980, 1_000)], 999))
    assert "question0" in text
    assert "[… 979 turns left out …]" in text
    assert "answer999" in text


def test_the_limit_holds_and_the_newest_turns_are_kept() -> None:
    long = [summary(f"s{n}", 1, n, n, text="long words " * 300) for n in range(40)]
    text = material_text(material_of(INFO, long, [turn(0)], [turn(n, "many words " * 3_000) for n in range(40, 60)], 59))
    assert len(text) <= ANALYSIS_CHARS_MAX
    assert "answer59" in text
    assert "answer41 " not in text
    assert "turns left out …]" in text
    assert "told s0" in text or "long words" in text


def test_an_overview_of_nothing_much_is_still_one() -> None:
    for words in ("", "ok", "```\ncode\n```"):
        said = (Message(role="user", content=words), Message(role="assistant", content=words))
        material = material_of(INFO, [], [], [Turn(id="t", index=0, messages=said)], 0)
        body = overview(material, "")
        assert body["main_topic"] == "Fix login"
        assert body["key_findings"]


def test_an_overview_tells_of_summaries_and_turns_and_is_the_same_every_time() -> None:
    said = (Message(role="user", content="And the tests?"), Message(role="assistant", content="They pass. Still to do: update the docs."))
    told = summary("a", 1, 0, 3, text="Asked: Why does login crash? Answered: The token is None because it expired. It was fixed in")
    material = material_of(INFO, [told], [], [Turn(id="t", index=4, messages=said)], 4)
    body = overview(material, "")
    assert body == overview(material, "")
    assert any("token is None" in finding for finding in body["key_findings"])
    assert body["action_items"] == ["Still to do: update the docs."]
    assert not any(line.startswith(("Asked:", "Answered:")) for line in body["key_findings"])
