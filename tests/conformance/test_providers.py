"""Anthropic's and Google's protocols, spoken with real servers on loopback: summaries come, are paid for, fail and stay at home."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from recollect.agent.agent import ConversationAgent
from recollect.agent.settings import Reply
from recollect.clock import CountedIds, ManualClock
from recollect.config import settings_from
from recollect.errors import ConfigError, ModelError
from recollect.memory import Memory
from recollect.model import Summary
from recollect.models.providers import open_model
from recollect.settings import ModelUse
from recollect.store import Store
from tests.endpoint import AnthropicEndpoint, AnthropicStream, Endpoint, GoogleEndpoint, GoogleStream, Line
from tests.kit import configured
from tests.small_model import SmallModel

SAID = "The login crash came from an expired token; a null check was added."
ANSWER = json.dumps({"summary": SAID, "key_findings": ["expired tokens are None"], "files_mentioned": ["invented.py"], "topics": ["login"]})
pytestmark = [
    pytest.mark.filterwarnings("ignore:invalid escape sequence:DeprecationWarning"),  # in a package of Google's, when it is compiled
    pytest.mark.filterwarnings("ignore:The model:DeprecationWarning"),  # Anthropic's own, about a name that is only spoken here
]
PROVIDERS: dict[str, tuple[type[Endpoint], str, str]] = {
    "anthropic": (AnthropicEndpoint, "claude-sonnet-4-5", "authorization"),
    "google": (GoogleEndpoint, "gemini-2.5-flash", "x-goog-api-key"),
}


@pytest.fixture(params=sorted(PROVIDERS))
def provider(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SHOP_KEY", "k-very-secret")
    return request.param


@pytest.fixture
def made(store: Store, workspace: str, clock: ManualClock, ids: CountedIds) -> Any:
    def memory(provider: str, url: str, **more: Any) -> Memory:
        use = {"provider": provider, "name": PROVIDERS[provider][1], "endpoint": url, "key_variable": "SHOP_KEY", **more}
        return Memory(store, settings_from({"store": store.url, "workspace": workspace, "models": {"summaries": use}}), clock, ids)

    return memory


async def distilled(memory: Memory) -> Summary:
    conversation = await memory.create_conversation(project="shop")
    for n in range(5):
        await conversation.record(user=f"Login crashes with an expired token, part {n}", assistant=f"Added null check {n} to login_user")
    await memory.distill()
    (summary,) = await conversation.summaries()
    return summary


def server(provider: str, *lines: Line, location: str | None = None) -> Endpoint:
    return PROVIDERS[provider][0](*lines, location=location)


async def test_it_writes_a_summary_and_its_own_count_of_tokens_is_recorded(made: Any, provider: str) -> None:
    with server(provider, ANSWER) as endpoint:
        memory = made(provider, endpoint.url, input_price=2.0, output_price=10.0)
        summary = await distilled(memory)
        told = endpoint.answer(ANSWER, endpoint.asked[0])
    assert (summary.summary, summary.author) == (SAID, PROVIDERS[provider][1])
    assert "invented.py" not in summary.files_mentioned
    assert len(endpoint.asked) == 1
    assert endpoint.headers[0][PROVIDERS[provider][2]].endswith("k-very-secret")
    counts = told.get("usage") or told["usageMetadata"]
    tokens_in, tokens_out = list(counts.values())[:2]
    (spent,) = await memory.spending()
    assert (spent.use, spent.calls, spent.failures, spent.input_tokens, spent.output_tokens) == ("summaries", 1, 0, tokens_in, tokens_out)
    assert spent.cost == pytest.approx((tokens_in * 2 + tokens_out * 10) / 1_000_000)


async def test_what_is_told_and_what_is_shown_go_apart(made: Any, provider: str) -> None:
    with server(provider, ANSWER) as endpoint:
        await distilled(made(provider, endpoint.url))
    (asked,) = endpoint.asked
    told = json.dumps(asked["system" if provider == "anthropic" else "systemInstruction"])
    shown = json.dumps(asked["messages" if provider == "anthropic" else "contents"])
    assert "Login crashes" not in told
    assert "<recollect-memory-" in shown
    assert "Login crashes" in shown


@pytest.mark.parametrize("line", [500, 429, b"<html>garbage", b"{}", "I cannot help with that.", "[" * 5_000])
async def test_a_failure_falls_back_is_not_repeated_and_is_seen(made: Any, provider: str, line: Line) -> None:
    with server(provider, line) as endpoint:
        memory = made(provider, endpoint.url)
        assert (await distilled(memory)).author == "extractive"
    assert len(endpoint.asked) == 1
    (spent,) = await memory.spending()
    assert spent.calls == 1


@pytest.mark.parametrize("status", [302, 307])
async def test_a_redirect_is_not_followed_and_a_key_goes_nowhere_else(made: Any, provider: str, status: int) -> None:
    with server(provider, ANSWER) as other, server(provider, status, location=f"{other.url}/elsewhere") as endpoint:
        assert (await distilled(made(provider, endpoint.url))).author == "extractive"
        assert (len(endpoint.asked), other.asked) == (1, [])


@pytest.mark.parametrize("of", ["anthropic", "google", "openai"])
async def test_where_a_key_goes_is_not_for_the_environment_to_say(of: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "OPENAI_BASE_URL"):
        monkeypatch.setenv(name, "http://elsewhere.invalid")
    monkeypatch.setenv("SHOP_KEY", "k-very-secret")
    async with open_model(ModelUse(name="m", provider=of, key_variable="SHOP_KEY"), "summaries") as model:
        assert "elsewhere" not in str(model.base_url)
        assert str(model.base_url).startswith("https://")


async def test_a_key_that_was_not_named_is_not_sent(made: Any, provider: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "GOOGLE_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "k-of-another")
    with server(provider, ANSWER) as endpoint:
        assert (await distilled(made(provider, endpoint.url, key_variable=None))).author != "extractive"
    assert "k-of-another" not in str(endpoint.headers)


async def test_at_the_cap_nothing_is_sent(made: Any, provider: str) -> None:
    with server(provider, ANSWER) as endpoint:
        assert (await distilled(made(provider, endpoint.url, daily_tokens_max=10))).author == "extractive"
    assert endpoint.asked == []


@pytest.mark.parametrize(
    ("of", "module", "install"),
    [
        ("anthropic", "anthropic", r"pip install 'pydantic-ai-slim\[anthropic\]'"),
        ("google", "google.genai", r"pip install 'pydantic-ai-slim\[google\]'"),
        ("openai", "openai", r"pip install 'recollect\[models\]'"),
    ],
)
async def test_a_package_that_is_missing_is_named_with_how_to_install_it(
    of: Any, module: str, install: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = [
        name
        for name in sys.modules
        if name == module or name.startswith((f"{module}.", f"pydantic_ai.models.{of}", f"pydantic_ai.providers.{of}"))
    ]
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ConfigError, match=install):
        async with open_model(ModelUse(name="m", provider=of, endpoint="http://127.0.0.1:1"), "summaries"):
            pass


async def test_a_real_model_writes_a_summary_and_a_title_or_costs_none(
    real_model: SmallModel, store: Store, workspace: str, clock: ManualClock, ids: CountedIds
) -> None:
    use = {"name": real_model.name, "endpoint": real_model.endpoint, "output_tokens_max": 12}
    models = {"summaries": use, "titles": use}
    memory = Memory(store, settings_from({"store": store.url, "workspace": workspace, "models": models}), clock, ids)
    conversation = await memory.create_conversation(project="shop")
    await conversation.record(user="Fix the login bug", assistant="Added a null check.")
    for _ in range(4):
        await conversation.record(user="Go on.", assistant="Done.")
    await memory.distill()
    (summary,) = await conversation.summaries()
    assert summary.author in {real_model.name, "extractive"}
    assert summary.summary
    assert (await memory.get_info(conversation.id)).title
    spent = {one.use: one for one in await memory.spending()}
    assert set(spent) == {"summaries", "titles"}
    assert all(one.input_tokens > 50 and 0 < one.output_tokens <= 12 and not one.failures for one in spent.values())
    assert (await memory.verify()).status == "intact"


STREAMS: dict[str, type[AnthropicStream | GoogleStream]] = {"anthropic": AnthropicStream, "google": GoogleStream}


@pytest.mark.parametrize("is_cut", [False, True])
async def test_a_streamed_answer_is_whole_when_its_protocol_says_so_and_fails_where_it_only_ends(
    memory: Memory, provider: str, *, is_cut: bool
) -> None:
    endpoint = STREAMS[provider]("The port is 8123.")
    endpoint.is_cut = is_cut
    with endpoint:
        use = {"provider": provider, "name": PROVIDERS[provider][1], "endpoint": endpoint.url, "key_variable": "SHOP_KEY"}
        conversation = await ConversationAgent(configured(memory, models={"agent": use})).create_conversation(project="shop")
        said = conversation.stream_message("Which port?")
        if is_cut:
            with pytest.raises(ModelError, match="broke off before the answer was whole"):
                [event async for event in said]
        else:
            assert isinstance([event async for event in said][-1], Reply)
    (turn,) = await conversation.turns()
    assert (turn.assistant, turn.status) == ("The port is 8123.", "failed" if is_cut else "complete")
