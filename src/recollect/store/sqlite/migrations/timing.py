"""When the turns of a conversation were, without reading the turns: what the audit asks of a period begins there."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
create index turn_by_time on turn (conversation_pk, ended_at, started_at);
"""
