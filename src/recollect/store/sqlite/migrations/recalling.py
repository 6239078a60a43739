"""Counts and planes for search: what a scope holds without reading it, and one bit a dimension of each vector.

`tally` counts the passages of a conversation, and their terms, by level; its key is the upper part of their numbers, so a
scope is a range of it. `plane` packs the signs of the vectors of 1,024 numbers into a row; one whose model is empty has
to be packed again. What a vector is made of has changed with this step, so the vectors are made again.
"""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
create table tally (
    conversation integer not null,
    level integer not null,
    passages integer not null,
    terms integer not null,
    primary key (conversation, level)
) strict, without rowid;
insert into tally select number >> 20, level, count(*), sum(length) from passage group by 1, 2;
create trigger passage_tallied after insert on passage begin
    insert into tally values (new.number >> 20, new.level, 1, new.length)
    on conflict do update set passages = passages + 1, terms = terms + excluded.terms;
end;
create trigger passage_untallied after delete on passage begin
    update tally set passages = passages - 1, terms = terms - old.length where conversation = old.number >> 20 and level = old.level;
end;

create table plane (
    block integer primary key,
    model text not null,
    stamp integer not null,
    heads blob not null,
    bits blob not null
) strict;
create index plane_by_stamp on plane (stamp);
create trigger plane_spoilt after delete on embedding begin
    update plane set model = '', heads = x'', bits = x'', stamp = (select max(stamp) + 1 from plane)
    where block = old.number >> 10 and model <> '';
end;

delete from embedding;
insert into job (conversation_pk, kind, state, again, attempts, since, due_at)
    select pk, 'embed', 'ready', 0, 0, updated_at, updated_at from conversation where true
    on conflict (conversation_pk, kind) do update set again = 1, state = case state when 'parked' then 'ready' else state end;
"""
