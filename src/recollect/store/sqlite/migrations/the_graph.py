"""Every node and edge of the graph."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
create table workspace (
    pk integer primary key,
    name text not null unique
) strict;

create table project (
    pk integer primary key,
    workspace_pk integer not null references workspace (pk) on delete cascade,
    number integer not null,
    uuid text not null,
    name text not null,
    root text,
    external_id text,
    unique (workspace_pk, uuid),
    unique (workspace_pk, number)
) strict;

create table conversation (
    pk integer primary key,
    workspace_pk integer not null references workspace (pk) on delete cascade,
    project_pk integer not null references project (pk) on delete cascade,
    number integer not null,
    uuid text not null,
    title text,
    tags text not null,
    status text not null check (status in ('active', 'archived')),
    summary text,
    agent text,
    external_id text,
    cwd text,
    created_at text not null,
    updated_at text not null,
    turn_count integer not null,
    message_count integer not null,
    next_index integer not null,
    next_sequence integer not null,
    next_passage integer not null,
    last_message text,
    branch_of text,
    parent_pk integer references conversation (pk) on delete set null,
    from_turn integer,
    checksum integer not null,
    unique (workspace_pk, uuid),
    unique (project_pk, number)
) strict;
create index conversation_by_change on conversation (workspace_pk, updated_at desc);
create index conversation_by_parent on conversation (parent_pk) where parent_pk is not null;

create table turn (
    pk integer primary key,
    conversation_pk integer not null references conversation (pk) on delete cascade,
    uuid text not null,
    turn_index integer not null,
    request_id text,
    request_ordinal integer not null,
    status text not null check (status in ('open', 'complete', 'failed')),
    model text,
    chat_mode text,
    finish_reason text,
    prompt_tokens integer,
    completion_tokens integer,
    request_attempt_id text,
    base_chat_id text,
    related_artifacts text not null,
    char_count integer not null,
    started_at text,
    ended_at text,
    content_hash text not null,
    checksum integer not null,
    unique (conversation_pk, turn_index)
) strict;
create index turn_by_uuid on turn (uuid);
create index turn_by_request on turn (request_id) where request_id is not null;
create index turn_by_end on turn (ended_at);

create table message (
    pk integer primary key,
    turn_pk integer not null references turn (pk) on delete cascade,
    uuid text not null,
    sequence integer not null,
    role text not null,
    content text,
    content_summary text not null,
    content_hash text not null,
    source_hash text,
    content_bytes integer not null,
    reasoning text,
    token_count integer,
    timestamp text
) strict;
create index message_by_uuid on message (uuid);
create index message_by_turn on message (turn_pk, sequence);

create table tool_call (
    pk integer primary key,
    turn_pk integer not null references turn (pk) on delete cascade,
    uuid text not null,
    message_id text,
    tool_call_id text,
    tool_name text not null,
    arguments text,
    arguments_hash text not null,
    source_hash text,
    status text not null check (status in ('success', 'failed', 'unknown')),
    duration_ms real,
    call_order integer not null,
    iteration integer not null,
    timestamp text,
    diff_chunk_id text
) strict;
create index tool_call_by_uuid on tool_call (uuid);
create index tool_call_by_turn on tool_call (turn_pk, call_order);
create index tool_call_by_name on tool_call (tool_name, status);

create table tool_result (
    tool_call_pk integer primary key references tool_call (pk) on delete cascade,
    uuid text not null,
    success integer,
    result text,
    error text,
    result_size_bytes integer not null,
    content_hash text not null,
    source_hash text,
    timestamp text
) strict;
create index tool_result_by_uuid on tool_result (uuid);

create table code_file (
    pk integer primary key,
    project_pk integer not null references project (pk) on delete cascade,
    file_path text not null,
    language text,
    unique (project_pk, file_path)
) strict;

create table access (
    tool_call_pk integer not null references tool_call (pk) on delete cascade,
    position integer not null,
    code_file_pk integer not null references code_file (pk) on delete cascade,
    kind text not null check (kind in ('read', 'write', 'search', 'list')),
    temporary integer not null,
    generated integer not null,
    primary key (tool_call_pk, position)
) strict, without rowid;
create index access_by_file on access (code_file_pk);

create table context_file (
    pk integer primary key,
    turn_pk integer not null references turn (pk) on delete cascade,
    uuid text not null,
    code_file_pk integer not null references code_file (pk) on delete cascade,
    line_start integer,
    line_end integer,
    usefulness real,
    source text,
    symbols text not null,
    content_hash text,
    language text,
    timestamp text
) strict;
create index context_file_by_uuid on context_file (uuid);
create index context_file_by_turn on context_file (turn_pk);
create index context_file_by_file on context_file (code_file_pk);

create table code_change (
    pk integer primary key,
    turn_pk integer not null references turn (pk) on delete cascade,
    uuid text not null,
    code_file_pk integer not null references code_file (pk) on delete cascade,
    change_type text not null,
    change_summary text,
    git_commit text,
    line_start integer,
    line_end integer,
    function_name text,
    lines_added integer,
    lines_removed integer,
    code_before_hash text,
    code_after_hash text,
    diff text,
    severity text,
    language text,
    tool_call_id text,
    diff_chunk_id text,
    timestamp text
) strict;
create index code_change_by_uuid on code_change (uuid);
create index code_change_by_turn on code_change (turn_pk);
create index code_change_by_file on code_change (code_file_pk);

create table checkpoint (
    pk integer primary key,
    turn_pk integer not null references turn (pk) on delete cascade,
    uuid text not null,
    checkpoint_id text,
    git_hash text,
    parent_checkpoint text,
    workspace_dir text,
    timestamp text
) strict;
create index checkpoint_by_uuid on checkpoint (uuid);
create index checkpoint_by_turn on checkpoint (turn_pk);

create table summary (
    pk integer primary key,
    conversation_pk integer not null references conversation (pk) on delete cascade,
    uuid text not null,
    level integer not null check (level >= 1),
    summary text not null,
    actions text not null,
    key_findings text not null,
    files_mentioned text not null,
    tools_used text not null,
    topics text not null,
    first_turn integer not null,
    last_turn integer not null,
    turn_count integer not null,
    char_count integer not null,
    author text not null,
    created_at text not null,
    source_ids text not null,
    checksum integer not null
) strict;
create index summary_by_uuid on summary (uuid);
create index summary_by_conversation on summary (conversation_pk, level, first_turn);

create table summary_source (
    summary_pk integer not null references summary (pk) on delete cascade,
    turn_pk integer references turn (pk) on delete cascade,
    source_pk integer references summary (pk) on delete cascade,
    check ((turn_pk is null) <> (source_pk is null))
) strict;
create index summary_source_by_summary on summary_source (summary_pk);
create index summary_source_by_turn on summary_source (turn_pk) where turn_pk is not null;
create index summary_source_by_source on summary_source (source_pk) where source_pk is not null;

create table insight (
    pk integer primary key,
    conversation_pk integer not null references conversation (pk) on delete cascade,
    uuid text not null,
    kind text not null,
    body text not null,
    created_at text not null,
    checksum integer not null
) strict;
create index insight_by_uuid on insight (uuid);
create index insight_by_conversation on insight (conversation_pk);

create table scope (
    pk integer primary key,
    project_pk integer not null references project (pk) on delete cascade,
    uuid text not null,
    code_file_pk integer not null references code_file (pk) on delete cascade,
    name text not null,
    kind text not null,
    line_start integer not null,
    line_end integer not null,
    signature text not null,
    content_hash text not null,
    checksum integer not null
) strict;
create index scope_by_uuid on scope (uuid);
create index scope_by_name on scope (project_pk, name);
create index scope_by_file on scope (code_file_pk);
"""
