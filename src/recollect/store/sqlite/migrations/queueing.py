"""Work that waits is found by its turn and by who holds it, however much of it waits; two indexes at which no query begins go.

A job knows the workspace of its conversation, whoever writes it, and a workspace the embedder whose missing vectors were
asked for last.
"""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
alter table job add column workspace_pk integer references workspace (pk) on delete cascade;
update job set workspace_pk = (select workspace_pk from conversation where pk = conversation_pk);
create trigger job_placed after insert on job begin
    update job set workspace_pk = (select workspace_pk from conversation where pk = new.conversation_pk) where pk = new.pk;
end;
create index job_by_turn on job (workspace_pk, due_at);
create index job_by_token on job (token) where token is not null;

alter table workspace add column embedder text;

drop index turn_by_end;
drop index tool_call_by_name;
"""
