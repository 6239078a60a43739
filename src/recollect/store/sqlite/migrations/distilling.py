"""Jobs and vectors; a passage may belong to a summary; all that is there is distilled."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
alter table conversation add column has_own_title integer not null default 0;
alter table conversation add column told_to integer not null default -1;

create table job (
    pk integer primary key,
    conversation_pk integer not null references conversation (pk) on delete cascade,
    kind text not null check (kind in ('embed', 'summarize')),
    state text not null check (state in ('ready', 'running', 'parked')),
    again integer not null,
    attempts integer not null,
    since text not null,
    due_at text not null,
    lease_until text,
    token text,
    error text,
    unique (conversation_pk, kind)
) strict;
insert into job (conversation_pk, kind, state, again, attempts, since, due_at)
    select pk, 'embed', 'ready', 0, 0, updated_at, updated_at from conversation
    union all select pk, 'summarize', 'ready', 0, 0, updated_at, updated_at from conversation;

create table passage_of_any (
    number integer primary key,
    turn_pk integer references turn (pk) on delete cascade,
    summary_pk integer references summary (pk) on delete cascade,
    level integer not null,
    last_turn integer not null,
    part text not null check (part in ('question', 'answer', 'tool', 'summary')),
    ordinal integer not null,
    start integer not null,
    end integer not null,
    length integer not null,
    terms text not null,
    check ((turn_pk is null) <> (summary_pk is null))
) strict;
insert into passage_of_any
    select number, turn_pk, null, 0, turn_index, part, ordinal, start, end, length, terms from passage join turn on turn.pk = turn_pk;
drop table passage;
alter table passage_of_any rename to passage;
create index passage_by_turn on passage (turn_pk) where turn_pk is not null;
create index passage_by_summary on passage (summary_pk) where summary_pk is not null;
create trigger passage_terms_added after insert on passage begin
    insert into passage_terms (rowid, terms) values (new.number, new.terms);
end;
create trigger passage_terms_removed after delete on passage begin
    insert into passage_terms (passage_terms, rowid, terms) values ('delete', old.number, old.terms);
end;

create table embedding (
    number integer primary key references passage (number) on delete cascade,
    model text not null,
    text_hash text not null,
    scale real not null,
    vector blob not null
) strict;
create index embedding_by_text on embedding (text_hash, model);
"""
