"""Turns and summaries may have a time after which they are gone; requests that come in pieces are kept until they are whole."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
alter table turn add column expires_at text;
alter table summary add column expires_at text;
create index turn_by_expiry on turn (expires_at) where expires_at is not null;
create index summary_by_expiry on summary (expires_at) where expires_at is not null;

create table open_request (
    pk integer primary key,
    conversation_pk integer not null references conversation (pk) on delete cascade,
    workspace_pk integer not null references workspace (pk) on delete cascade,
    request_id text not null,
    sketch text not null,
    updated_at text not null,
    unique (workspace_pk, request_id)
) strict;
create index open_request_by_conversation on open_request (conversation_pk);
create index open_request_by_time on open_request (updated_at);
"""
