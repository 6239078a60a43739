"""Redaction: megabytes per CPU-second, on generated turns and, when there are any, on real transcripts."""

from __future__ import annotations

import os
import time
from pathlib import Path

from bench.corpus import turns
from recollect.capture.secrets import default_redactor

_CHUNK = 4_096


def _rate(text: str) -> float:
    redactor = default_redactor()
    chunks = [text[start : start + _CHUNK] for start in range(0, len(text), _CHUNK)]
    for chunk in chunks[:50]:
        redactor.redact(chunk)
    before = time.process_time()
    for chunk in chunks:
        redactor.redact(chunk)
    return len(text.encode()) / 1e6 / (time.process_time() - before)


def measure() -> dict[str, float | str]:
    """Measure in pieces of 4 kB."""
    generated = "\n".join(str(turn) for turn in turns(1_000))
    found: dict[str, float | str] = {"rules": len(default_redactor().rules), "generated_mb_per_cpu_second": round(_rate(generated), 1)}
    data = os.environ.get("RECOLLECT_DATA")
    samples = sorted(Path(data, "samples").rglob("*.jsonl")) if data else []
    if not samples:
        return {**found, "transcripts": "RECOLLECT_DATA is not set: no real transcripts to measure on"}
    text = "".join(path.read_text(errors="replace") for path in samples)
    return {**found, "transcripts_mb_per_cpu_second": round(_rate(text), 1)}
