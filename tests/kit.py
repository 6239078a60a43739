"""Small things that several tests use."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from recollect.config import settings_from
from recollect.memory import Memory
from recollect.settings import Settings

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
SOAK = os.environ.get("RECOLLECT_SOAK") == "1"

OpenMemory = Callable[..., Awaitable[Memory]]


def said(*texts: str) -> list[dict[str, Any]]:
    """Return messages that user and assistant say in turn."""
    return [{"role": "assistant" if n % 2 else "user", "content": text} for n, text in enumerate(texts)]


def configured(memory: Memory, **values: Any) -> Memory:
    """Return a memory on the same store with other settings."""
    settings: Settings = settings_from({"store": memory.store.url, "workspace": memory.workspace, **values})
    return Memory(memory.store, settings, memory.clock, memory.ids)
