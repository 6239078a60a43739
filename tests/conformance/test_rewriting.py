"""Extractive summaries are rewritten by a model within a budget: each in its place, checked, and what is done stays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect import sync
from recollect.clock import CountedIds, ManualClock, RandomIds
from recollect.config import settings_from
from recollect.conversation import Conversation
from recollect.distill.models import Asked, ScriptedModel
from recollect.distill.models import Line as Said
from recollect.distill.rewriting import REFUSALS_MAX
from recollect.errors import ConfigError, InputError
from recollect.memory import Memory
from recollect.model import Summary
from recollect.settings import Settings
from recollect.store import Store
from tests.endpoint import Endpoint

ANSWER = json.dumps({"summary": "Rewritten words.", "key_findings": ["a finding"], "files_mentioned": ["invented.py"], "topics": ["login"]})


def with_model(memory: Memory, *lines: Said, **settings: Any) -> Memory:
    values: dict[str, Any] = {"store": memory.store.url, "workspace": memory.workspace, **settings}
    model = ScriptedModel(*lines, name="better")
    return Memory(memory.store, settings_from(values), memory.clock, RandomIds(), summary_model=model)


def asked(memory: Memory) -> list[Asked]:
    model = memory._summary_model
    assert isinstance(model, ScriptedModel)
    return model.asked


async def filled(memory: Memory, turns: int, project: str = "p") -> Conversation:
    conversation = await memory.create_conversation(project=project)
    calls = [{"name": "Read", "arguments": {"file_path": "src/auth.py"}}]
    for n in range(turns):
        await conversation.record(user=f"Fix bug number {n} in the login", assistant="It failed at a comma. " * 4, tool_calls=calls)
    return conversation


def fixed(one: Summary) -> tuple[Any, ...]:
    return one.id, one.level, one.first_turn, one.last_turn, one.turn_count, one.source_ids, one.created_at, one.conversation_id


async def test_each_is_rewritten_in_its_place_and_loses_no_fact(memory: Memory, clock: ManualClock) -> None:
    conversation = await filled(memory, 8)
    await memory.distill()
    before = await conversation.summaries()
    clock.advance(86_400)
    own = with_model(memory, ANSWER)
    done = await own.rewrite()
    after = await conversation.summaries()
    assert (done.rewritten, done.refused, done.left, done.stopped) == (2, 0, 0, None)
    assert [fixed(one) for one in after] == [fixed(one) for one in before]
    for one, other in zip(after, before, strict=True):
        assert (one.summary, one.author, one.key_findings, one.topics) == ("Rewritten words.", "better", ("a finding",), ("login",))
        assert (one.files_mentioned, one.tools_used, one.actions) == (other.files_mentioned, other.tools_used, other.actions)
        assert one.char_count == len(one.summary) + len(one.actions) + sum(map(len, one.key_findings))
    assert (await memory.verify()).status == "intact"
    assert (await own.rewrite()).rewritten == 0, "what a model wrote is not extractive any more"


async def test_vectors_of_what_was_rewritten_are_made_anew(memory: Memory) -> None:
    await filled(memory, 5)
    await memory.distill()
    await with_model(memory, json.dumps({"summary": "The xylophone was tuned."})).rewrite()
    stats = await memory.stats()
    assert stats.embedded < stats.passages
    await memory.distill()
    stats = await memory.stats()
    assert stats.embedded == stats.passages
    found = await memory.search("xylophone", levels=[1])
    assert (found.hits[0].answer or found.hits[0].passage).startswith("The xylophone")


async def test_the_latest_conversations_come_first_and_low_levels_before_what_folds_them(memory: Memory, clock: ManualClock) -> None:
    folding = {"distill": {"fold_chars": 100}}
    own = with_model(memory, ANSWER, **folding)
    plain = Memory(memory.store, own.settings, memory.clock, RandomIds())
    older = await filled(plain, 14)
    clock.advance(60)
    newer = await filled(plain, 14)
    await plain.distill()
    levels = [one.level for one in await newer.summaries()]
    assert max(levels) >= 2
    order: list[tuple[str, int]] = []

    async def noted(one: Asked) -> str:
        order.append((one.text, one.level))
        return ANSWER

    again = with_model(memory, noted, **folding)
    done = await again.rewrite()
    assert [level for _, level in order] == levels + [one.level for one in await older.summaries()]
    assert done.rewritten == len(order)
    assert "Rewritten words." in next(text for text, level in order if level == 2), "a fold is made of what was rewritten"


async def test_a_fold_by_a_model_follows_when_what_it_folds_was_rewritten(memory: Memory) -> None:
    async def only_folds(one: Asked) -> str:
        return ANSWER if one.level > 1 else "no"

    folding = {"distill": {"fold_chars": 100}}
    first = with_model(memory, only_folds, **folding)
    conversation = await filled(first, 14)
    await first.distill()
    assert {one.level: one.author for one in await conversation.summaries()} == {1: "extractive", 2: "better"}
    second = with_model(memory, json.dumps({"summary": "Anew."}), **folding)
    done = await second.rewrite()
    after = await conversation.summaries()
    assert {one.summary for one in after} == {"Anew."}
    assert done.rewritten == len(after)


async def test_only_a_conversation_or_a_project_is_rewritten_where_one_is_named(memory: Memory) -> None:
    first, second, other = await filled(memory, 5), await filled(memory, 5), await filled(memory, 5, project="q")
    await memory.distill()
    own = with_model(memory, ANSWER)
    assert (await own.rewrite(conversation=second.id)).rewritten == 1
    assert (await own.rewrite(project="q")).rewritten == 1
    assert [[one.author for one in await each.summaries()] for each in (first, second, other)] == [["extractive"], ["better"], ["better"]]
    assert (await own.rewrite(project="no such project")).rewritten == 0
    with pytest.raises(InputError, match="not both"):
        await own.rewrite(conversation=first.id, project="p")


async def test_what_a_model_cannot_leaves_the_summary_as_it_was_and_is_counted(memory: Memory) -> None:
    conversation = await filled(memory, 8)
    await memory.distill()
    before = await conversation.summaries()
    done = await with_model(memory, "I cannot help with that.", ANSWER).rewrite()
    after = await conversation.summaries()
    assert (done.rewritten, done.refused) == (1, 1)
    assert after[0] == before[0]
    assert after[1].author == "better"


async def test_a_model_that_is_of_no_use_again_and_again_is_asked_no_more(memory: Memory) -> None:
    await filled(memory, 29)
    await memory.distill()
    own = with_model(memory, ConnectionError("away"))
    done = await own.rewrite()
    assert (done.rewritten, done.refused, done.is_capped) == (0, REFUSALS_MAX, False)
    assert len(asked(own)) == REFUSALS_MAX
    assert "5 times in a row" in (done.stopped or "")


async def test_what_changed_meanwhile_or_is_gone_is_left(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    for n in range(8):
        await conversation.record(user=f"question {n}", assistant="answer", request_id=f"r{n}")
    await memory.distill()

    async def meanwhile(_: Asked) -> str:
        await conversation.record(user="the marmalade instead", assistant="jam", request_id="r1", replace=True)
        return ANSWER

    done = await with_model(memory, meanwhile, ANSWER).rewrite()
    assert (done.rewritten, done.left) == (1, 1)
    assert [(one.first_turn, one.author) for one in await conversation.summaries()] == [(3, "better")]

    async def forgotten(_: Asked) -> str:
        await memory.forget(conversation=conversation.id)
        return ANSWER

    await memory.distill()
    assert (await with_model(memory, forgotten).rewrite()).rewritten == 0
    assert (await memory.stats()).summaries == {}


async def test_a_summary_is_gone_when_it_was_to_be_and_one_that_outlives_its_turns_is_left(memory: Memory, clock: ManualClock) -> None:
    kept = {"projects": {"*": {"retention": {"turns_days": 1, "summaries_days": 10}}}}
    plain = Memory(memory.store, settings_from({"store": memory.store.url, "workspace": memory.workspace, **kept}), clock, RandomIds())
    conversation = await filled(plain, 5)
    await plain.distill()
    own = with_model(memory, ANSWER, **kept)
    clock.advance(timedelta(hours=12).total_seconds())
    assert (await own.rewrite()).rewritten == 1
    clock.advance(timedelta(days=2).total_seconds())
    assert [one.author for one in await conversation.summaries()] == ["better"]
    assert await conversation.turns() == []
    other = await filled(plain, 5)
    await plain.distill()
    clock.advance(timedelta(days=2).total_seconds())
    done = await own.rewrite()
    assert (done.rewritten, done.left) == (0, 1)
    assert [one.author for one in await other.summaries()] == ["extractive"]
    clock.advance(timedelta(days=6).total_seconds())
    left = [info.id for info in await memory.list_conversations()]
    assert left == [other.id], "ten days after it was made, not after it was rewritten"


def configured(store: Store, workspace: str, url: str, **more: Any) -> Settings:
    use = {"name": "small", "endpoint": url, "output_tokens_max": 300, **more}
    return settings_from({"store": store.url, "workspace": workspace, "models": {"summaries": use}})


async def test_it_ends_before_the_budget_of_the_run_is_passed_and_goes_on_with_the_next(
    memory: Memory, store: Store, workspace: str, clock: ManualClock, ids: CountedIds
) -> None:
    conversation = await filled(memory, 14)
    await memory.distill()
    with Endpoint(ANSWER) as endpoint:
        own = Memory(store, configured(store, workspace, endpoint.url), clock, ids)
        spent = 0
        for run in range(1, 3):
            done = await own.rewrite(budget_tokens=900)
            assert done.rewritten >= 1
            assert 0 < done.tokens <= 900
            assert not done.is_capped
            assert "of the 900 tokens of this run are spent" in (done.stopped or "")
            spent += done.tokens
            assert sum(one.input_tokens + one.output_tokens for one in await own.spending()) == spent, f"after run {run}"
        assert (await own.rewrite(budget_tokens=100_000)).stopped is None
    assert {one.author for one in await conversation.summaries()} == {"small"}


async def test_at_the_cap_of_the_day_it_stops_and_what_is_done_stays(
    memory: Memory, store: Store, workspace: str, clock: ManualClock, ids: CountedIds
) -> None:
    conversation = await filled(memory, 14)
    await memory.distill()
    with Endpoint(ANSWER) as endpoint:
        own = Memory(store, configured(store, workspace, endpoint.url, daily_tokens_max=1_200), clock, ids)
        done = await own.rewrite(budget_tokens=100_000)
    assert done.is_capped
    assert "of its 1,200 tokens of today" in (done.stopped or "")
    authors = [one.author for one in await conversation.summaries()]
    assert authors == ["small"] * done.rewritten + ["extractive"] * (len(authors) - done.rewritten)
    assert 0 < done.rewritten < len(authors)


async def test_what_makes_no_sense_is_said(memory: Memory) -> None:
    with pytest.raises(ConfigError, match=r"models\.summaries"):
        await memory.rewrite()
    with pytest.raises(InputError, match="pays for nothing"):
        await memory.rewrite(budget_tokens=0)
    with pytest.raises(InputError, match="counts no tokens"):
        await with_model(memory, ANSWER).rewrite(budget_tokens=5)


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path) -> Command:
    """Run commands on a file of their own, which their configuration lies beside."""
    environment = {**os.environ, "RECOLLECT_CONFIG": str(tmp_path / "config.yaml"), "RECOLLECT_STORE": f"sqlite://{tmp_path}/m.db"}

    def run(*arguments: str) -> tuple[int, str, str]:
        command = [sys.executable, "-m", "recollect", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout, done.stderr

    return run


def distilled(store: str) -> str:
    """Record what makes four summaries without a model; returns the id of the conversation."""
    with sync.Memory.open(store, worker=False) as memory:
        conversation = memory.create_conversation(project="p")
        for n in range(14):
            conversation.record(user=f"Fix bug number {n} in the login", assistant="It failed at a comma.")
        memory.distill()
        return conversation.id


def test_why_a_model_gave_nothing_is_said(tmp_path: Path, run: Command) -> None:
    config, store = tmp_path / "config.yaml", f"sqlite://{tmp_path}/m.db"
    distilled(store)
    with Endpoint("no") as useless:
        config.write_text(json.dumps({"models": {"summaries": {"name": "small", "endpoint": useless.url}}}))
        assert "4 stayed extractive, the last because the model 'small' gave" in run("distill", "--rewrite")[1]
    away = f"{useless.url} cannot be reached (nothing listens there)"
    code, out, _ = run("distill", "--rewrite")
    assert (code, away in out, "of no use" in out) == (1, True, False)
    code, out, _ = run("distill", "--rewrite", "--json")
    assert away in json.loads(out)["rewrite"]["reason"]
    code, out, said = run("distill", "--rebuild", "--wait", "--json")
    assert json.loads(out)["fell_back"]["count"] == 4
    assert away in json.loads(out)["fell_back"]["reason"]
    assert said.count("\n") == 1
    assert said.startswith("recollect: 4 of the summaries and titles are extractive, because no model gave them: the model 'small' did not")
    config.write_text(json.dumps({"models": {"summaries": {"name": "small", "endpoint": useless.url, "key_variable": "NO_SUCH_KEY"}}}))
    assert "NO_SUCH_KEY, which is not set" in run("distill", "--rewrite")[1]


def test_it_is_asked_without_await_and_on_the_command_line(tmp_path: Path, run: Command) -> None:
    config, store = tmp_path / "config.yaml", f"sqlite://{tmp_path}/m.db"
    conversation_id = distilled(store)
    config.write_text("{}")
    code, _, said = run("distill", "--rewrite")
    assert (code, "models.summaries" in said) == (2, True)
    assert run("distill", "--budget-tokens", "5")[0] == 2
    assert run("distill", "--rewrite", "--rebuild")[0] == 2
    with Endpoint(ANSWER) as endpoint:

        def capped(**more: Any) -> None:
            use = {"name": "small", "endpoint": endpoint.url, "output_tokens_max": 300, **more}
            config.write_text(json.dumps({"models": {"summaries": use}}))

        capped()
        code, out, said = run("distill", "--rewrite", "--budget-tokens", "1100", "--conversation", conversation_id[:8], "--json")
        first: dict[str, Any] = json.loads(out)["rewrite"]
        assert (code, first["is_capped"], first["rewritten"] >= 1) == (0, False, True)
        assert f"stopped after {first['rewritten']} summar" in said
        capped(daily_tokens_max=1)
        code, out, said = run("distill", "--rewrite")
        assert (code, "0 summaries rewritten for 0 tokens" in out) == (4, True)
        assert "of its 1 tokens of today" in said
        capped()
        code, out, said = run("distill", "--rewrite", "--project", "p", "--wait")
        assert (code, said) == (0, "")
        assert f"{4 - first['rewritten']} summar" in out
        assert "0 waiting" in out
        settings = settings_from({"store": store, "models": {"summaries": {"name": "small", "endpoint": endpoint.url}}})
        with sync.Memory.open(settings=settings, worker=False) as memory:
            assert memory.rewrite().rewritten == 0
    with Endpoint("no") as useless:
        config.write_text(json.dumps({"models": {"summaries": {"name": "small", "endpoint": useless.url}}}))
        with sync.Memory.open(store, settings=settings_from({"store": store}), worker=False) as memory:
            memory.distill(rebuild=True)
        code, out, _ = run("distill", "--rewrite", "--json")
        assert (code, json.loads(out)["rewrite"]["refused"]) == (1, 4)
