"""A model that makes vectors is a use like any other: named in one place, seen, capped by the day, and never waited for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.clock import CountedIds, ManualClock
from recollect.config import settings_from
from recollect.conversation import Conversation
from recollect.errors import ModelError, SpendingError
from recollect.memory import Memory
from recollect.models.embedding import EndpointEmbedder, configured_embedder
from recollect.settings import Settings
from recollect.store import Store
from tests.endpoint import EmbeddingEndpoint, Line

DONE = {"ready": 0, "running": 0, "parked": 0}


def naming(store: Store, workspace: str, url: str, **more: Any) -> Settings:
    embeddings = {"name": "m", "endpoint": url, "dimension": 3, **more}
    return settings_from({"store": store.url, "workspace": workspace, "models": {"embeddings": embeddings}})


@pytest.fixture
def made(store: Store, workspace: str, clock: ManualClock, ids: CountedIds) -> Any:
    def memory(url: str, **more: Any) -> Memory:
        return Memory(store, naming(store, workspace, url, **more), clock, ids)

    return memory


@pytest.fixture
def embedder(store: Store, workspace: str, clock: ManualClock, ids: CountedIds) -> Any:
    def one(url: str, **more: Any) -> EndpointEmbedder:
        return configured_embedder(naming(store, workspace, url, **more), store, clock, ids)

    return one


async def asked(memory: Memory, question: str = "question", answer: str = "answer") -> Conversation:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user=question, assistant=answer)
    return conversation


async def test_it_is_asked_in_batches_with_its_key(embedder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "k")
    with EmbeddingEndpoint() as endpoint:
        rows = await embedder(endpoint.url, batch_size=2, key_variable="MY_KEY").embed(["a", "bb", "ccc"])
    assert [one["input"] for one in endpoint.asked] == [["a", "bb"], ["ccc"]]
    assert {one["authorization"] for one in endpoint.headers} == {"Bearer k"}
    assert rows.shape == (3, 3)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows[0][0] < rows[1][0] < rows[2][0], "rows are in the order asked for, however they came"


@pytest.mark.parametrize(("line", "says"), [(500, "500"), (b"[]", "no vectors"), (b'{"data": []}', "asked for 1"), (401, "401")])
async def test_what_it_cannot_do_is_an_error_that_says_so(embedder: Any, line: Line, says: str) -> None:
    with EmbeddingEndpoint(line) as endpoint:
        with pytest.raises(ModelError, match=says):
            await embedder(endpoint.url).embed(["a"])
        assert len(endpoint.asked) == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_not_followed_and_a_key_goes_nowhere_else(embedder: Any, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "k-very-secret")
    with EmbeddingEndpoint() as other, EmbeddingEndpoint(status, location=f"{other.url}/embeddings") as endpoint:
        with pytest.raises(ModelError, match=str(status)):
            await embedder(endpoint.url, key_variable="MY_KEY").embed(["a"])
        assert (len(endpoint.asked), other.asked) == (1, [])


async def test_a_missing_key_is_told_and_nothing_is_sent(embedder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with EmbeddingEndpoint() as endpoint:
        with pytest.raises(ModelError, match="MY_KEY"):
            await embedder(endpoint.url, key_variable="MY_KEY").embed(["a"])
        assert endpoint.asked == []


async def test_every_call_of_workers_and_searches_is_written_down(made: Any) -> None:
    with EmbeddingEndpoint() as endpoint:
        memory = made(endpoint.url, input_price=2.0)
        await asked(memory)
        await memory.distill()
        assert (await memory.search("question")).retrievers["meaning"] == "ran"
    (spent,) = await memory.spending()
    assert (spent.use, spent.model, spent.calls, spent.failures, spent.output_tokens) == ("embeddings", "m", 2, 0, 0)
    assert spent.input_tokens == sum(len(text.split()) for text in endpoint.texts)
    assert spent.cost == pytest.approx(spent.input_tokens * 2 / 1_000_000)


async def test_a_server_that_counts_no_tokens_is_billed_by_estimate_and_one_that_is_away_not_at_all(made: Any) -> None:
    with EmbeddingEndpoint(b'{"data": [{"index": 0, "embedding": [1, 2, 3]}]}') as endpoint:
        memory = made(endpoint.url)
        await asked(memory)
        await memory.search("the login question of yesterday")
    assert (before := (await memory.spending())[0]).input_tokens > 3
    assert "cannot be reached" in (await memory.search("the login question of yesterday")).retrievers["meaning"]
    (after,) = await memory.spending()
    assert (after.calls, after.failures, after.input_tokens) == (2, 1, before.input_tokens)


async def test_the_same_text_is_embedded_once_and_another_model_embeds_anew(made: Any) -> None:
    with EmbeddingEndpoint() as endpoint:
        memory = made(endpoint.url)
        for _ in range(2):
            await asked(memory, "the very same question", "the very same answer")
            await memory.distill()
        assert len(endpoint.texts) == len(set(endpoint.texts)) == 2
        other = made(endpoint.url, name="other")
        assert (await other.search("question")).hits, "search goes on while vectors are made anew"
        await other.distill()
        assert len([text for text in endpoint.texts if text != "question"]) == 4
        stats = await other.stats()
        assert stats.embedded == stats.passages == 4


async def test_one_that_is_away_loses_nothing(made: Any, clock: ManualClock) -> None:
    memory = made("http://127.0.0.1:1/v1")
    await asked(memory)
    for _ in range(6):
        await memory.distill()
        clock.advance(2_000)
    assert (await memory.stats()).jobs == {**DONE, "parked": 1}
    (job,) = await memory.store.jobs.listed(memory.workspace)
    assert "cannot be reached" in (job.error or "")
    assert (await memory.search("question")).hits


async def test_at_the_cap_a_search_goes_on_by_words_and_says_so(made: Any) -> None:
    with EmbeddingEndpoint() as endpoint:
        memory = made(endpoint.url, daily_tokens_max=1)
        await asked(memory, "the login question")
        found = await memory.search("login")
    assert endpoint.asked == []
    assert found.hits
    assert found.retrievers["meaning"].startswith("not run: models.embeddings has spent 0 of its 1 tokens of today")
    assert await memory.spending() == []


async def test_at_the_cap_passages_wait_for_the_next_day_and_nothing_is_parked_or_lost(made: Any, clock: ManualClock) -> None:
    with EmbeddingEndpoint() as endpoint:
        memory = made(endpoint.url, daily_tokens_max=60)
        conversation = await memory.create_conversation(project="p")
        for n in range(8):
            await conversation.record(user=f"Why does the parser fail in part {n}?", assistant=f"Because of the comma {n}, and I fixed it.")
        for _ in range(12):
            await memory.distill()
            clock.advance(2_000)
        first = len(endpoint.texts)
        stats = await memory.stats()
        assert 0 < stats.embedded == first < stats.passages, "what the day holds is done, in smaller batches, and kept"
        assert stats.jobs == {**DONE, "ready": 1}
        assert stats.summaries == {"1": 2}, "summaries do not mind"
        (job,) = await memory.store.jobs.listed(memory.workspace)
        assert job.attempts == 1
        assert "daily_tokens_max" in (job.error or "")
        for _ in range(40):
            clock.advance(timedelta(hours=6).total_seconds())
            await memory.distill()
        stats = await memory.stats()
    assert (stats.embedded, stats.jobs) == (stats.passages, DONE)
    assert len(endpoint.texts) == len(set(endpoint.texts)), "nothing was paid for twice"
    assert all(one.input_tokens > 0 for one in await memory.spending())


async def test_a_capped_job_is_not_tried_again_at_once(made: Any, clock: ManualClock) -> None:
    with EmbeddingEndpoint() as endpoint:
        memory = made(endpoint.url, daily_tokens_max=1)
        await asked(memory)
        assert await memory.distill() == 2, "the vectors, and the summaries"
        assert await memory.distill() == 0
        clock.advance(1_000)
        assert await memory.distill() == 1
        assert endpoint.asked == []


async def test_a_context_does_not_wait_for_the_next_day(made: Any) -> None:
    with EmbeddingEndpoint() as endpoint:
        memory = made(endpoint.url, daily_tokens_max=1)
        conversation = await asked(memory)
        await memory.distill()
        context = await memory.context("question", conversation=conversation.id, wait_seconds=60)
    assert "answer" in context.render()


async def test_a_call_that_does_not_fit_is_refused_before_it_is_sent(embedder: Any) -> None:
    with EmbeddingEndpoint() as endpoint:
        capped = embedder(endpoint.url, daily_tokens_max=10)
        await capped.embed(["a b c"])
        with pytest.raises(SpendingError, match="wait until midnight UTC"):
            await capped.embed(["word " * 20])
    assert endpoint.texts == ["a b c"]


def test_the_command_line_asks_it_and_the_doctor_says_whether_it_could_be(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    environment = {**os.environ, "RECOLLECT_CONFIG": str(config), "RECOLLECT_STORE": f"sqlite://{tmp_path}/m.db", "MY_KEY": "k"}

    def run(*arguments: str, code: int = 0) -> str:
        done = subprocess.run([sys.executable, "-m", "recollect", *arguments], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (code, "")
        return done.stdout.strip()

    with EmbeddingEndpoint() as endpoint:
        use = f"name: m, endpoint: '{endpoint.url}', dimension: 3, key_variable: MY_KEY, daily_tokens_max: 1000"
        config.write_text(f"models: {{embeddings: {{{use}}}}}\n")
        conversation = run("new", "--project", "p")
        run("record", conversation, "--user", "a question", "--assistant", "an answer")
        assert "2 of 2 passages embedded" in run("distill", "--wait")
        assert len(endpoint.asked[0]["input"]) == 2
        told = run("stats", "--models")
        assert re.search(r"today +embeddings m: 1 call, \d+ tokens in, 0 out, \d+\.\d s \(\d+\.\d s a call\)", told)
        ((spent,), caps) = (json.loads(run("stats", "--models", "--json"))[name] for name in ("today", "caps"))
        left = 1_000 - spent["input_tokens"]
        assert caps == {"embeddings": {"daily_tokens_max": 1_000, "left_tokens": left}}
        assert f"cap     embeddings {left} of 1,000 tokens are left today (UTC)" in told
        assert f"by m at {endpoint.url}" in run("doctor")
    environment["MY_KEY"] = ""
    assert "MY_KEY is to hold the key" in run("doctor", code=1)
