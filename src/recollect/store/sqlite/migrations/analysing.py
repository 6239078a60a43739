"""What insights were made of and by whom, the words they are found by, and when they are gone."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
delete from insight; -- nothing made any yet
alter table insight add column task text not null default '';
alter table insight add column author text not null default '';
alter table insight add column source_hash text not null default '';
alter table insight add column last_turn integer not null default -1;
alter table insight add column terms text not null default '';
alter table insight add column expires_at text;
create index insight_by_expiry on insight (expires_at) where expires_at is not null;

create virtual table insight_terms using fts5 (
    terms, content = 'insight', content_rowid = 'pk', tokenize = "ascii tokenchars '_./-#@+~'"
);
insert into insight_terms (insight_terms, rank) values ('secure-delete', 1);
create trigger insight_terms_added after insert on insight begin
    insert into insight_terms (rowid, terms) values (new.pk, new.terms);
end;
create trigger insight_terms_removed after delete on insight begin
    insert into insight_terms (insight_terms, rowid, terms) values ('delete', old.pk, old.terms);
end;
"""
