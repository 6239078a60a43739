"""Vectors: the shipped embedder does the arithmetic it was trained with, and an endpoint is asked as its protocol says."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from recollect.clock import ManualClock, RandomIds
from recollect.config import Embeddings, Settings, settings_from
from recollect.distill.embedders import default_embedder
from recollect.distill.endpoint import EndpointEmbedder
from recollect.distill.vectors import quantised, restored
from recollect.errors import ConfigError, ModelError
from recollect.memory import Memory
from tests.kit import START

TEXTS = [
    "The login crashes when the token has expired.", "getUserById in src/auth/login.py:123456 v1.2.3",
    "don't won't it's the user's O'Reilly's",
    "", "đăng nhập thất bại", "naïve café l'été", "____x __init__ a_b.c-d'e", "zzqxv unknownword",
]  # fmt: skip


def test_vectors_have_length_one_and_similar_texts_are_near() -> None:
    rows = default_embedder().vectors([*TEXTS, "Signing in fails because the session ran out.", "Bananas are yellow."])
    lengths = np.linalg.norm(rows, axis=1)
    assert np.allclose(lengths[lengths > 0], 1, atol=1e-5)
    assert lengths[3] == 0
    assert rows[0] @ rows[-2] > rows[0] @ rows[-1]


def test_the_arithmetic_is_that_of_the_reference() -> None:
    path = Path(os.environ.get("RECOLLECT_DATA") or "nowhere") / "embedder" / "embed.py"
    if not path.exists():
        pytest.skip("RECOLLECT_DATA has no embedder/embed.py to compare with")
    specification = importlib.util.spec_from_file_location("reference", path)
    assert specification is not None
    assert specification.loader is not None
    reference = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(reference)
    expected = reference.Embedder(path.parent / "static256").embed(TEXTS)
    assert np.abs(expected - default_embedder().vectors(TEXTS)).max() < 1e-6


def test_one_byte_a_number_keeps_the_angle() -> None:
    rows = default_embedder().vectors(TEXTS)
    back = restored(quantised(rows), rows.shape[1])
    assert np.abs(back - rows).max() < 0.01
    assert np.abs(back @ back.T - rows @ rows.T).max() < 0.02


def test_a_rare_word_weighs_more_than_a_common_one() -> None:
    embedder = default_embedder()
    assert embedder.rarity("the") < embedder.rarity("function") < embedder.rarity("kubernetes")


class Endpoint:
    """A real server on loopback that speaks `/v1/embeddings`."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []
        self.keys: list[str | None] = []
        self.fault: tuple[int, bytes] | None = None
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                endpoint.asked.append(body["input"])
                endpoint.keys.append(self.headers.get("Authorization"))
                rows = [{"index": n, "embedding": [float(len(text)), 1.0, 2.0]} for n, text in enumerate(body["input"])]
                status, answer = endpoint.fault or (200, json.dumps({"data": rows[::-1], "model": body["model"]}).encode())
                self.send_response(status)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the server's own name
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def endpoint() -> Generator[Endpoint]:
    server = Endpoint()
    yield server
    server.close()


def embeddings(endpoint: Endpoint, **more: Any) -> Embeddings:
    return Embeddings(endpoint=endpoint.url, model="m", dimension=3, **more)


async def test_an_endpoint_is_asked_in_batches_with_its_key(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "k")
    embedder = EndpointEmbedder(embeddings(endpoint, batch_size=2, key_variable="MY_KEY"))
    rows = await embedder.embed(["a", "bb", "ccc"])
    assert endpoint.asked == [["a", "bb"], ["ccc"]]
    assert set(endpoint.keys) == {"Bearer k"}
    assert rows.shape == (3, 3)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1)
    assert rows[0][0] < rows[1][0] < rows[2][0], "rows are in the order asked for, however they came"


@pytest.mark.parametrize(
    ("fault", "says"),
    [((500, b"no"), "500"), ((200, b"[]"), "cannot be read|no vectors"), ((200, b'{"data": []}'), "asked for 1"), ((401, b"who?"), "401")],
)
async def test_an_endpoint_that_cannot_is_an_error_that_says_so(endpoint: Endpoint, fault: tuple[int, bytes], says: str) -> None:
    endpoint.fault = fault
    with pytest.raises(ModelError, match=says):
        await EndpointEmbedder(embeddings(endpoint)).embed(["a"])


async def test_what_is_wrong_with_the_settings_is_said(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with pytest.raises(ModelError, match="MY_KEY"):
        await EndpointEmbedder(embeddings(endpoint, key_variable="MY_KEY")).embed(["a"])
    with pytest.raises(ConfigError, match="dimension"):
        EndpointEmbedder(Embeddings(endpoint=endpoint.url, model="m"))
    with pytest.raises(ConfigError, match="address"):
        EndpointEmbedder(Embeddings(endpoint="file:///etc/passwd", model="m", dimension=3))


async def test_the_same_text_is_embedded_once_and_another_model_embeds_anew(endpoint: Endpoint, tmp_path: Path) -> None:
    def settings(model: str) -> Settings:
        block = {"endpoint": endpoint.url, "model": model, "dimension": 3}
        return settings_from({"store": f"sqlite://{tmp_path}/m.db", "agent": {"memory": {"embeddings": block}}})

    async with await Memory.open(settings=settings("one"), clock=ManualClock(START), ids=RandomIds(), worker=False) as memory:
        for _ in range(2):
            conversation = await memory.create_conversation(project="p")
            await conversation.record(user="the very same question", assistant="the very same answer")
            await memory.distill()
        texts = [text for batch in endpoint.asked for text in batch]
        assert len(texts) == len(set(texts)) == 2
    async with await Memory.open(settings=settings("two"), worker=False) as memory:
        assert (await memory.search("question")).hits, "search goes on while vectors are made anew"
        await memory.distill()
        assert len([text for batch in endpoint.asked for text in batch if text != "question"]) == 4
        stats = await memory.stats()
        assert stats.embedded == stats.passages == 4


async def test_an_endpoint_that_is_away_loses_nothing(tmp_path: Path) -> None:
    block = {"endpoint": "http://127.0.0.1:1/v1", "model": "m", "dimension": 3}
    clock = ManualClock(START)
    settings = settings_from({"store": f"sqlite://{tmp_path}/m.db", "agent": {"memory": {"embeddings": block}}})
    async with await Memory.open(settings=settings, clock=clock, worker=False) as memory:
        await (await memory.create_conversation(project="p")).record(user="question", assistant="answer")
        for _ in range(6):
            await memory.distill()
            clock.advance(2_000)
        assert (await memory.stats()).jobs == {"ready": 0, "running": 0, "parked": 1}
        (job,) = await memory.store.jobs.listed(memory.workspace)
        assert job.error is not None
        assert "cannot be reached" in job.error
        assert (await memory.search("question")).hits


def test_the_command_line_asks_an_endpoint_too(endpoint: Endpoint, tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    block = f"{{endpoint: '{endpoint.url}', model: m, dimension: 3}}"
    config.write_text(f"agent: {{memory: {{embeddings: {block}}}}}\n")
    environment = {**os.environ, "RECOLLECT_CONFIG": str(config), "RECOLLECT_STORE": f"sqlite://{tmp_path}/m.db"}

    def run(*arguments: str) -> str:
        done = subprocess.run([sys.executable, "-m", "recollect", *arguments], env=environment, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.strip()

    conversation = run("new", "--project", "p")
    run("record", conversation, "--user", "a question", "--assistant", "an answer")
    assert "2 of 2 passages embedded" in run("distill", "--wait")
    assert len(endpoint.asked[0]) == 2
