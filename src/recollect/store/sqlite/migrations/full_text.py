"""The passages and their full-text index over analysed terms."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
create table passage (
    number integer primary key,
    turn_pk integer not null references turn (pk) on delete cascade,
    part text not null check (part in ('question', 'answer', 'tool')),
    ordinal integer not null,
    start integer not null,
    end integer not null,
    length integer not null,
    terms text not null
) strict;
create index passage_by_turn on passage (turn_pk);

create virtual table passage_terms using fts5 (
    terms, content = 'passage', content_rowid = 'number', tokenize = "ascii tokenchars '_./-#@+~'"
);
insert into passage_terms (passage_terms, rank) values ('secure-delete', 1);

create trigger passage_terms_added after insert on passage begin
    insert into passage_terms (rowid, terms) values (new.number, new.terms);
end;
create trigger passage_terms_removed after delete on passage begin
    insert into passage_terms (passage_terms, rowid, terms) values ('delete', old.number, old.terms);
end;
"""
