"""Summaries without a model: what was asked, decided, failed and found, in words a person would accept; never a dump."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from recollect.capture.messages import messages_to_turns
from recollect.distill.actions import Actions
from recollect.distill.cues import cues, sets_a_rule
from recollect.distill.extractive import Told, fold_summaries, summarise_turns
from recollect.distill.sentences import SENTENCE_CHARS_MAX, sentences
from recollect.distill.telling import title_of
from recollect.model import Summary, Turn

TRACE = """Traceback (most recent call last):
  File "/srv/app/auth.py", line 31, in login_user
    return decode(user.token)
TypeError: cannot decode None
"""


def turns(*texts: str, calls: list[dict[str, Any]] | None = None) -> list[Turn]:
    messages: list[dict[str, Any]] = []
    for n, text in enumerate(texts):
        message: dict[str, Any] = {"role": "assistant" if n % 2 else "user", "content": text}
        if n % 2 and calls:
            message["tool_calls"] = calls
        messages.append(message)
    return messages_to_turns(messages)


def summary(n: int, told: Told) -> Summary:
    return Summary(
        id=f"s{n}", conversation_id="c", level=1, summary=told.summary, actions=told.actions, key_findings=told.key_findings, first_turn=n,
        last_turn=n, turn_count=1, char_count=told.chars, created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )  # fmt: skip


def test_what_was_asked_decided_and_found_is_told_and_chatter_is_not() -> None:
    told = summarise_turns(turns(
        "Login crashes when the session token has expired. Find out why.",
        "Sure, happy to help! I looked at auth.py. The crash happens because login_user decodes user.token without a check. "
        "After expiry the token is None.",
        "Fix it then, but never change the public API.",
        "I decided on a null check instead of a refresh. All 12 tests pass now. Let me know if you would like anything else!",
    ))  # fmt: skip
    everything = f"{told.summary} {' '.join(told.key_findings)}"
    assert told.summary.startswith("Asked: Login crashes when the session token has expired.")
    assert "because login_user decodes user.token without a check" in everything
    assert "null check" in everything
    assert "happy to help" not in everything
    assert "Let me know" not in everything
    assert {"token", "login", "crash", "login_user"} & set(told.topics)


def test_traces_dumps_diffs_and_code_are_not_quoted() -> None:
    answer = (
        f"It fails here:\n{TRACE}\n```python\nimport os\nprint(os.environ)\n```\n| a | b |\n|---|---|\n"
        "diff --git a/x b/x\n+ added\n- removed\n{'a': 1, 'b': [2, 3]}\nThe token is None after expiry."
    )
    told = summarise_turns(turns("Why does it crash?", answer))
    everything = f"{told.summary} {' '.join(told.key_findings)}"
    assert "The token is None after expiry." in everything
    for part in ("Traceback", 'File "', "import os", "os.environ", "|---|", "diff --git", "+ added"):
        assert part not in everything


def test_what_says_nearly_the_same_is_told_once() -> None:
    again = "The retry queue drops messages when the broker restarts."
    told = summarise_turns(turns("Look at the queue.", f"{again} {again.upper()} {again.replace('drops', 'dropped')}", "And now?", again))
    everything = f"{told.summary} {' '.join(told.key_findings)}".lower()
    assert everything.count("retry queue") == 1


def test_the_same_turns_give_the_same_summary() -> None:
    made = turns("Fix the parser", "It failed because of a comma. I changed src/parser.py.", "Thanks", "You are welcome")
    assert summarise_turns(made) == summarise_turns(made)


def test_what_was_done_is_told_from_the_calls() -> None:
    read = [{"id": f"r{n}", "name": "Read", "arguments": {"file_path": f"src/{n}.py"}} for n in range(5)]
    run = {"id": "x", "name": "Bash", "arguments": {"command": "pytest -q\nsecond line"}}
    made = messages_to_turns([
        {"role": "user", "content": "check it"},
        {"role": "assistant", "content": "", "tool_calls": [*read, run]},
        {"role": "tool", "tool_call_id": "x", "content": "....F\n=== 1 failed, 4 passed in 2.1s ===", "tool_failed": True},
    ])  # fmt: skip
    told = summarise_turns(made)
    assert told.actions == ("Read 5 files (src/0.py, src/1.py, src/2.py, …); ran pytest -q: 1 failed, 4 passed in 2.1s; failures: Bash.")
    assert told.tools_used == ("Read", "Bash")
    assert told.files_mentioned == tuple(f"src/{n}.py" for n in range(5))


@pytest.mark.parametrize("text", ["", "ok", "👍", "```\ncode only\n```", "x" * 5_000, "\x1b[2mdim\x1b[0m", "a\0b c"])
def test_turns_that_say_nothing_have_a_summary_all_the_same(text: str) -> None:
    told = summarise_turns(turns(text or "hm", text))
    assert told.summary
    assert "\x1b" not in told.summary


def test_a_fold_has_at_most_half_the_characters_and_is_no_concatenation_cut_short() -> None:
    parts = [
        summarise_turns(turns(
            f"Move the {name} module to PostgreSQL.",
            f"The {name} module failed because its {name} index was missing. I decided to add a {name} constraint. Open: {name} docs.",
        ))
        for name in ("orders", "customers", "invoices", "payments", "reports", "sessions")
    ]  # fmt: skip
    low = [summary(n, told) for n, told in enumerate(parts)]
    told = fold_summaries(low, Actions())
    assert told.chars <= sum(one.char_count for one in low) / 2
    mentioned = [name for name in ("orders", "customers", "invoices", "payments", "reports", "sessions") if name in str(told)]
    assert len(mentioned) >= 2
    assert mentioned != ["orders"]
    tiny = fold_summaries([summary(0, Told(summary="Asked: a b.")), summary(1, Told(summary="Asked: c d."))], Actions())
    assert 0 < tiny.chars <= 11


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("We decided to use a queue.", "decision"), ("On a décidé d'utiliser une file.", "decision"),
        ("Chúng tôi quyết định dùng hàng đợi.", "decision"),
        ("The build failed again.", "error"), ("La compilation échoue encore.", "error"), ("Quá trình dựng thất bại.", "error"),
        ("It crashed because the token expired.", "cause"), ("Ça plante parce que le jeton a expiré.", "cause"),
        ("Nguyên nhân là mã đã hết hạn.", "cause"), ("All tests pass now.", "outcome"), ("C'est corrigé.", "outcome"),
        ("Tôi đã sửa lỗi.", "outcome"), ("The docs are not yet written.", "open"), ("Il reste la documentation.", "open"),
        ("Việc còn lại là tài liệu.", "open"), ("Merci beaucoup !", "chatter"), ("Cảm ơn bạn.", "chatter"), ("Sure, of course!", "chatter"),
    ],
)  # fmt: skip
def test_cues_are_known_in_english_french_and_vietnamese(text: str, kind: str) -> None:
    assert kind in cues(text)


def test_rules_are_recognised() -> None:
    assert all(sets_a_rule(text) for text in ("Never touch main.", "Always run the tests", "Do not commit", "Ne fais jamais ça"))
    assert not sets_a_rule("The tests ran.")


def test_sentences_are_split_where_they_end_and_kept_short() -> None:
    text = "See e.g. the docs. It works in v1.2 of src/a.py! Does it? Yes.\n- first item\n- second item\n\n"
    text += "# Heading here\nText **bold** [link](http://x)."
    assert sentences(text) == [
        "See e.g. the docs.", "It works in v1.2 of src/a.py!", "Does it?", "first item", "second item", "Heading here",
        "Text bold link.",
    ]  # fmt: skip
    assert all(len(one) <= SENTENCE_CHARS_MAX for one in sentences("word " * 5_000))


def test_a_title_is_what_was_asked_first() -> None:
    assert title_of(turns("Hello! Please fix the login bug in auth.py. It is urgent.", "ok"), None) == "Please fix the login bug in auth.py"
    assert title_of(turns("Thanks!", "ok"), "before") == "Thanks"
    assert title_of([], "before") == "before"


@pytest.mark.parametrize(
    "text", ["a. " * 13_333, "__a " * 10_000, "**a " * 10_000, " " * 20_000 + "x", "[" * 40_000, "<a " * 13_000, "e.g. " * 8_000]
)
def test_odd_texts_are_cut_up_in_time_that_grows_with_their_length(text: str) -> None:
    work = [sum(1 for _ in sentences(text[: len(text) // part])) for part in (4, 1)]
    assert all(count < 45_000 for count in work)


def test_outcomes_are_lines_that_tell_and_command_no_terminal() -> None:
    def told(result: str) -> str:
        call = {"id": "x", "name": "Bash", "arguments": {"command": "do it"}}
        made = messages_to_turns([
            {"role": "user", "content": "go on then"},
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "x", "content": result},
        ])  # fmt: skip
        return summarise_turns(made).actions

    assert told("\x1b[31m2 failed\x1b[0m, 3 passed \x1b]0;pwned\x07") == "Ran do it: 2 failed, 3 passed."
    assert told('{"id": 9, "token_type": "bearer", "error": "none"}') == "Ran do it."
    assert told("461930e propagate headers in hook scripts") == "Ran do it."
