"""The edge from a message to a scope; the next passage's number is asked of the passages themselves."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
create table reference (
    message_pk integer not null references message (pk) on delete cascade,
    scope_pk integer not null references scope (pk) on delete cascade,
    primary key (message_pk, scope_pk)
) strict, without rowid;
create index reference_by_scope on reference (scope_pk);

alter table conversation drop column next_passage;
"""
