"""What models were asked and spent: bookkeeping that says nothing of what was asked."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
create table model_call (
    pk integer primary key,
    workspace text not null,
    uuid text not null,
    use text not null,
    model text not null,
    input_tokens integer not null,
    output_tokens integer not null,
    duration_ms real not null,
    cost real,
    is_failed integer not null,
    is_open integer not null,
    timestamp text not null,
    unique (workspace, uuid)
) strict;
create index model_call_by_use on model_call (workspace, use, timestamp);
"""
