"""A model that is configured writes summaries and titles; what it spends is seen and capped; what it says is never trusted."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from recollect.clock import CountedIds, ManualClock
from recollect.config import settings_from
from recollect.memory import Memory
from recollect.model import ModelCall, Summary
from recollect.settings import Settings
from recollect.store import Store
from tests.endpoint import Endpoint, Line

SAID = "The login crash came from an expired token; a null check was added."
ANSWER = json.dumps({"summary": SAID, "key_findings": ["expired tokens are None"], "files_mentioned": ["invented.py"], "topics": ["login"]})


def configured(store: Store, workspace: str, endpoint: str, uses: tuple[str, ...] = ("summaries",), **more: Any) -> Settings:
    models = {use: {"name": "small", "endpoint": endpoint, **more} for use in uses}
    values = {"store": store.url, "workspace": workspace, "models": models, "distill": {"model_seconds_max": 120.0}}
    return settings_from(values)


async def distilled(memory: Memory, turns: int = 5) -> list[Summary]:
    conversation = await memory.create_conversation(project="shop")
    for n in range(turns):
        await conversation.record(user=f"Login crashes with an expired token, part {n}", assistant=f"Added null check {n} to login_user")
    await memory.distill()
    return await conversation.summaries()


@pytest.fixture
def made(store: Store, workspace: str, clock: ManualClock, ids: CountedIds) -> Any:
    def memory(endpoint: str, uses: tuple[str, ...] = ("summaries",), **more: Any) -> Memory:
        return Memory(store, configured(store, workspace, endpoint, uses, **more), clock, ids)

    return memory


async def test_a_configured_model_writes_the_summaries_and_its_calls_are_seen(made: Any) -> None:
    with Endpoint(ANSWER) as endpoint:
        memory = made(endpoint.url, input_price=2.0, output_price=10.0)
        (summary,) = await distilled(memory)
    assert (summary.summary, summary.author, summary.key_findings) == (SAID, "small", ("expired tokens are None",))
    (spent,) = await memory.spending()
    assert (spent.use, spent.model, spent.calls, spent.failures) == ("summaries", "small", 1, 0)
    assert spent.input_tokens > 0
    assert spent.output_tokens == len(ANSWER.split())
    assert spent.cost == pytest.approx((spent.input_tokens * 2 + spent.output_tokens * 10) / 1_000_000)


async def test_what_is_summarised_is_fenced_as_data_and_a_model_adds_no_file(made: Any) -> None:
    with Endpoint(ANSWER) as endpoint:
        (summary,) = await distilled(made(endpoint.url))
    system, user = endpoint.asked[0]["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "Login crashes" not in system["content"]
    assert user["content"].startswith("<recollect-memory-")
    assert "invented.py" not in summary.files_mentioned


async def test_without_a_name_no_model_is_asked(memory: Memory) -> None:
    (summary,) = await distilled(memory)
    assert summary.author == "extractive"
    assert await memory.spending() == []


async def test_at_the_cap_nothing_is_sent_and_summaries_are_extractive(made: Any) -> None:
    with Endpoint(ANSWER) as endpoint:
        memory = made(endpoint.url, daily_tokens_max=900, output_tokens_max=300)
        summaries = await distilled(memory, 14)
    assert len(endpoint.asked) == 1
    assert [one.author for one in summaries if one.level == 1] == ["small", *["extractive"] * 3]
    (spent,) = await memory.spending()
    assert spent.input_tokens + spent.output_tokens <= 900


async def test_a_cap_is_for_a_day(made: Any, clock: ManualClock) -> None:
    with Endpoint(ANSWER) as endpoint:
        memory = made(endpoint.url, daily_tokens_max=900, output_tokens_max=300)
        await distilled(memory, 14)
        clock.advance(timedelta(days=1).total_seconds())
        (first, *_) = await distilled(memory)
    assert first.author == "small"
    assert len(endpoint.asked) == 2
    assert len(await memory.spending(since=clock.now() - timedelta(hours=1))) == 1


@pytest.mark.parametrize("line", [500, 429, b"<html>garbage", b"{}", "I cannot help with that.", '{"summary": ""}', "[" * 5_000])
async def test_a_model_that_is_of_no_use_costs_no_summary_and_its_call_is_seen(made: Any, line: Line) -> None:
    with Endpoint(line) as endpoint:
        memory = made(endpoint.url)
        (summary,) = await distilled(memory)
    assert summary.author == "extractive"
    assert [one.calls for one in await memory.spending()] == [len(endpoint.asked)]


async def test_an_endpoint_that_is_away_or_slow_costs_no_summary(store: Store, workspace: str, clock: ManualClock, ids: CountedIds) -> None:
    with Endpoint(60.0) as endpoint:
        settings = configured(store, workspace, endpoint.url)
        values = {"store": store.url, "workspace": workspace, "distill": {"model_seconds_max": 0.2}}
        hasty = settings_from({**values, "models": {"summaries": {"name": "small", "endpoint": settings.models.summaries.endpoint}}})
        (late,) = await distilled(Memory(store, hasty, clock, ids))
    (away,) = await distilled(Memory(store, settings, clock, ids))
    assert (late.author, away.author) == ("extractive", "extractive")


async def test_a_redirect_is_not_followed_and_a_key_goes_nowhere_else(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_KEY", "k-very-secret")
    with Endpoint(ANSWER) as other, Endpoint(307, location=f"{other.url}/chat/completions") as endpoint:
        (summary,) = await distilled(made(endpoint.url, key_variable="SHOP_KEY"))
    assert summary.author == "extractive"
    assert (len(endpoint.asked), other.asked) == (1, [])
    assert endpoint.headers[0]["authorization"] == "Bearer k-very-secret"


async def test_a_missing_key_is_told_and_costs_no_summary(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SHOP_KEY", raising=False)
    with Endpoint(ANSWER) as endpoint:
        (summary,) = await distilled(made(endpoint.url, key_variable="SHOP_KEY"))
    assert (summary.author, endpoint.asked) == ("extractive", [])


async def test_a_configured_model_writes_the_title_once(made: Any) -> None:
    with Endpoint('"Expired tokens crash login."\n') as endpoint:
        memory = made(endpoint.url, ("titles",))
        conversation = await memory.create_conversation(project="shop")
        for n in range(12):
            await conversation.record(user=f"Login crashes, part {n}", assistant=f"Added null check {n}")
            await memory.distill()
    assert (await memory.get_info(conversation.id)).title == "Expired tokens crash login"
    assert len(endpoint.asked) == 1


async def test_a_title_of_the_users_own_is_kept_and_none_is_asked_for(made: Any) -> None:
    with Endpoint("Another title") as endpoint:
        memory = made(endpoint.url, ("titles",))
        conversation = await memory.create_conversation(project="shop", title="Mine")
        for n in range(5):
            await conversation.record(user=f"Login crashes, part {n}", assistant="Added a null check")
        await memory.distill()
    assert ((await memory.get_info(conversation.id)).title, endpoint.asked) == ("Mine", [])


async def test_calls_are_counted_once_and_in_their_own_workspace(store: Store, workspace: str, clock: ManualClock) -> None:
    call = ModelCall(id="m1", use="summaries", model="small", input_tokens=10, output_tokens=5, duration_ms=2.5, timestamp=clock.now())
    begun = structs.replace(call, input_tokens=10, output_tokens=2_000, is_failed=True, is_open=True)
    assert (await store.spending.reserve(workspace, begun, None, clock.now(), clock.now())).is_granted
    for _ in range(2):
        await store.spending.put(workspace, call)
    await store.spending.put(f"{workspace}-other", ModelCall(id="m1", use="titles", model="small", input_tokens=1, timestamp=clock.now()))
    later = clock.now() + timedelta(seconds=1)
    asked = ModelCall(id="m2", use="summaries", model="small", input_tokens=1, is_open=True, timestamp=later)
    room = await store.spending.reserve(workspace, asked, 15, clock.now(), clock.now())
    assert (room.is_granted, room.spent_tokens, room.underway_tokens) == (False, 15, 0)
    assert (await store.spending.reserve(workspace, asked, 15, later, clock.now())).spent_tokens == 0, "a day begins anew"
    room = await store.spending.reserve(workspace, structs.replace(asked, id="m3"), 1, later, later)
    assert (room.is_granted, room.spent_tokens, room.underway_tokens) == (False, 0, 1), "what is being asked for is not to be had"
    gone = later + timedelta(hours=1)
    room = await store.spending.reserve(workspace, structs.replace(asked, id="m3", timestamp=gone), 1, later, gone)
    assert (room.spent_tokens, room.underway_tokens) == (1, 0), "who asked and never said what it took is gone"
    await store.spending.put(workspace, structs.replace(asked, is_open=False, input_tokens=0))
    (total,) = await store.spending.totals(workspace)
    assert (total.calls, total.failures, total.input_tokens, total.output_tokens, total.duration_ms, total.cost) == (2, 0, 10, 5, 2.5, None)


async def test_what_was_spent_survives_forgetting(made: Any) -> None:
    with Endpoint(ANSWER) as endpoint:
        memory = made(endpoint.url)
        await distilled(memory)
    before = await memory.spending()
    await memory.forget(project="shop")
    assert await memory.spending() == before
