"""What is kept of a project, and for how long, as the settings say it."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.config import settings_from
from recollect.errors import ConfigError
from recollect.model import Message, Project, Turn
from recollect.policies import KEEPS_ALL, Policy, is_marked, policy_of
from recollect.settings import Settings
from tests.kit import START

SHOP = Project(id="p1", name="shop", root="/w/shop", external_id="shop-7")


def settings(**projects: Any) -> Settings:
    return settings_from({"store": "unused", "projects": {name.replace("_", "-"): value for name, value in projects.items()}})


def named(name: str, **values: Any) -> Settings:
    return settings_from({"store": "unused", "projects": {name: values}})


def test_without_settings_everything_is_kept_for_ever() -> None:
    assert policy_of(Settings(store="unused"), SHOP) == KEEPS_ALL
    assert policy_of(settings(other={"exclude": True}), SHOP) == KEEPS_ALL
    assert KEEPS_ALL.turn_expiry(START) is None
    assert KEEPS_ALL.summary_expiry(START) is None


@pytest.mark.parametrize("name", ["shop-7", "/w/shop", "p1", "shop", "*", "/w/shop/", "/w/x/../shop"])
def test_a_project_goes_by_the_id_of_its_sender_its_folder_its_own_id_its_name_or_the_star(name: str) -> None:
    assert policy_of(named(name, exclude=True), SHOP).excludes


@pytest.mark.parametrize("name", ["sho", "SHOP", "/w", "/w/shop/src", "w/shop", "", "**", "shop*"])
def test_nothing_else_is_taken_for_its_name(name: str) -> None:
    assert not policy_of(named(name, exclude=True), SHOP).excludes


def test_a_project_that_is_named_owes_nothing_to_the_star() -> None:
    chosen = settings_from({"store": "unused", "projects": {"*": {"exclude": True}, "shop": {"privacy": "summary"}}})
    assert policy_of(chosen, SHOP) == Policy(withholds=True, turns_days=2.0, summaries_days=2.0)
    assert policy_of(chosen, Project(id="q", name="q")).excludes


def test_a_folder_may_be_written_from_home_or_through_a_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "shop").mkdir(parents=True)
    (home / "link").symlink_to(home / "shop")
    monkeypatch.setenv("HOME", str(home))
    project = Project(id="p", name="x", root=str((home / "shop").resolve()))
    for name in ("~/shop", "~/shop/", "~/link", str(home / "link")):
        assert policy_of(named(name, exclude=True), project).excludes, name
    assert not policy_of(named("~nobody-at-all/shop", exclude=True), project).excludes


def test_the_folder_of_a_conversation_counts_where_its_project_is_known_by_another() -> None:
    elsewhere = Project(id="p2", name="shop", external_id="shop")
    assert policy_of(named("/w/shop", privacy="summary"), elsewhere, "/w/shop").withholds
    assert not policy_of(named("/w/shop", privacy="summary"), elsewhere).withholds


def test_two_days_are_the_default_of_summary_and_none_of_full() -> None:
    assert policy_of(named("*"), SHOP) == KEEPS_ALL
    summary = policy_of(named("*", privacy="summary"), SHOP)
    assert summary.turn_expiry(START) == summary.summary_expiry(START) == START + timedelta(days=2)


@pytest.mark.parametrize(
    ("retention", "turns", "summaries"),
    [
        ({"turns_days": 5}, 5.0, 2.0),
        ({"summaries_days": 30}, 2.0, 30.0),
        ({"turns_days": "never"}, None, 2.0),
        ({"turns_days": 0.5, "summaries_days": "never"}, 0.5, None),
    ],
)
def test_turns_and_summaries_have_times_of_their_own(retention: dict[str, Any], turns: float | None, summaries: float | None) -> None:
    policy = policy_of(named("*", privacy="summary", retention=retention), SHOP)
    assert (policy.turns_days, policy.summaries_days) == (turns, summaries)
    if turns is not None:
        assert policy.turn_expiry(START) == START + timedelta(days=turns)


def test_full_can_expire_too() -> None:
    policy = policy_of(named("*", retention={"turns_days": 1}), SHOP)
    assert (policy.withholds, policy.turns_days, policy.summaries_days) == (False, 1.0, None)


def test_after_the_end_of_time_is_never() -> None:
    assert Policy(turns_days=1e12).turn_expiry(START) is None
    assert Policy(turns_days=4e6).turn_expiry(START) is None


@pytest.mark.parametrize("days", [0, -1, "forever", "2", True, None])
def test_a_time_is_a_positive_number_of_days_or_never(days: object) -> None:
    values = {"store": "unused", "projects": {"*": {"retention": {"turns_days": days}}}}
    if days is None:
        assert settings_from(values).projects["*"].retention.turns_days is None
        return
    with pytest.raises(ConfigError, match="turns_days"):
        settings_from(values)


@pytest.mark.parametrize(
    "text",
    ["[do not record]", "x [Do Not Record] y", "[do-not-record] that", "[OFF THE RECORD]", "a\n[off-the-record]\n", "[do not\nrecord]",
     "[do\r\n  not\trecord]", "[do\u00a0not\u2003record]", "[off\nthe record]", "[ do not record\n]"],
)  # fmt: skip
def test_a_marker_anywhere_in_what_a_user_says_marks_the_turn(text: str) -> None:
    assert is_marked(Turn(messages=(Message(role="user", content=text),)))
    assert is_marked(Turn(messages=(Message(role="system", content="x"), Message(role="user", content_summary=text))))


@pytest.mark.parametrize(
    "text", ["do not record", "[do not. record]", "[donot record]", "[don't record]", "[do not record", "(do not record)", ""]
)
def test_only_the_marker_is_one(text: str) -> None:
    assert not is_marked(Turn(messages=(Message(role="user", content=text),)))


@pytest.mark.parametrize("role", ["assistant", "system", "tool", "developer"])
def test_only_a_user_can_mark_a_turn(role: str) -> None:
    assert not is_marked(Turn(messages=(Message(role=role, content="[do not record]"), Message(role="user", content="x"))))
