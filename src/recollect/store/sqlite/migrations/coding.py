"""What an index of code holds: symbols with their words, the files they were read from, and where those are."""

from __future__ import annotations

from typing import LiteralString

STEP: LiteralString = """
delete from scope; -- read from the files again
alter table scope add column qualified text not null default '';
alter table scope add column docstring text not null default '';
alter table scope add column terms text not null default '';
create index scope_by_qualified on scope (project_pk, qualified);

create virtual table scope_terms using fts5 (
    terms, content = 'scope', content_rowid = 'pk', tokenize = "ascii tokenchars '_./-#@+~'"
);
insert into scope_terms (scope_terms, rank) values ('secure-delete', 1);
create trigger scope_terms_added after insert on scope begin
    insert into scope_terms (rowid, terms) values (new.pk, new.terms);
end;
create trigger scope_terms_removed after delete on scope begin
    insert into scope_terms (scope_terms, rowid, terms) values ('delete', old.pk, old.terms);
end;
create trigger scope_terms_changed after update of terms on scope when old.terms <> new.terms begin
    insert into scope_terms (scope_terms, rowid, terms) values ('delete', old.pk, old.terms);
    insert into scope_terms (rowid, terms) values (new.pk, new.terms);
end;

create table indexed_file (
    code_file_pk integer primary key references code_file (pk) on delete cascade,
    content_hash text not null,
    line_count integer not null
) strict;
alter table project add column code_root text;
alter table access add column file_hash text; -- of the file when it was first indexed after the access
"""
