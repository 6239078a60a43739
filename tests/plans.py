"""How SQLite goes about the queries that tests run: each is explained once, and may not go through all that a memory holds.

A query that does so on purpose is named here with its reason. What is small however much is remembered (workspaces, projects,
the rows a query made itself) may be gone through.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from recollect.store.sqlite.database import Connection

# the beginning of a query, or a part that no other has → why it may look at everything
WHOLE = {
    "select pk, hex(uuid) from conversation where workspace_pk": "verification reads everything",
    "with own (pk) as (select c.pk from conversation c": "stats count everything",
    "select level, count(*) from summary": "stats count everything",
    "from job cross join conversation c on c.pk = conversation_pk where job.workspace_pk": "every job is asked for",
    "order by c.updated_at desc, c.created_at desc": "a list of conversations, in the order of their index, up to a limit",
    "order by due_at, pk limit 1": "the first job that may be done, in the order of its index",
    "delete from project where workspace_pk": "whether a project has any conversation left: the first entry of an index",
    "select coalesce(max(number), 0) + 1 from conversation where project_pk": "the last entry of an index",
    "select coalesce(sum(case when c.parent_pk is null": "how many turns were searched; reads conversations, never turns",
    "with file as materialized": "a filter of turns by anything at all",
    "join conversation c on c.project_pk = p.pk cross join turn t on t.conversation_pk = c.pk": "the audit of whole projects in a period",
    "from conversation c cross join project p on p.pk = c.project_pk cross join turn t": "the files of a whole project, stamped by `index`",
    "substr(f.file_path, -length(?3) - 1)": "a path by its end, among the paths of a project",
    "where x.change_type = 'renamed'": "renames, which are few and have an index of their own",
    "substr(code_file.file_path, -length(value) - 1)": "a path by its end, among the paths of a project",
    "select file_path, content_hash, line_count, embedder from code_file": "the index of a whole project",
    "select count(*) from scope where project_pk": "counts the scopes of a project",
    "delete from scope where project_pk = ?": "takes a project's index away",
    "delete from indexed_file where code_file_pk in (select pk from code_file where project_pk = ?)": "takes a project's index away",
    "select i.signs from workspace w": "what the symbols of a project mean, a bit a dimension",
    "and (?3 is null or s.name = ?3 or s.qualified = ?3)": "the symbols of a project",
    "delete from code_file where not exists": "paths that nothing names any more, after something was forgotten",
    "coalesce(t.ended_at, t.started_at) < ?3": "`forget --before`, which asks for all that is older",
    "with recursive told (pk, below) as": "`forget --before`, which asks for all that is older",
    "x.created_at < ?2 and (?3 is null or p.uuid in (select value from json_each(?3))) or c.uuid in": "`forget --before`, as above",
    "and (?2 is null or c.uuid = ?2) and (?4 is null or i.kind = ?4)": "a list of insights, which are few",
    "select coalesce(t.conversation_pk, s.conversation_pk) from passage p": "another embedder: every passage is looked at, once",
    "select block, model, heads, bits from plane where stamp > ?": "a thousandth of the vectors, by their blocks",
    "select request_id from open_request where workspace_pk": "open requests, which are few",
}
_GROWING = frozenset(
    "access checkpoint code_change code_file context_file conversation embedding indexed_file insight job message open_request passage "
    "plane reference scope summary summary_source tool_call tool_result turn".split()
)
_QUERY = ("select", "insert", "update", "delete", "with")
_NAMED = re.compile(
    r"\b(?:from|join|into|update)\s+([a-z_]+)(?:\s+(?:as\s+)?(?!on\b|join\b|where\b|cross\b|left\b|order\b|using\b|set\b|limit\b|group\b"
    r"|union\b|select\b|values\b|natural\b)([a-z_]+))?"
)
_SCANNED = re.compile(r"SCAN ([a-z_]+)(?: USING (?:COVERING )?INDEX \w+)?$")
_WIDE = re.compile(r"SEARCH ([a-z_]+) USING (?:COVERING )?INDEX \w+ \((?:workspace_pk|project_pk)=\?\)")


def going_through(connection: Connection, query: str, bindings: Sequence[object]) -> list[str]:
    """Return the steps of a query that go through a whole table that grows, or through a whole workspace or project of one."""
    plan = [str(row[3]) for row in connection.raw.execute("explain query plan " + query, tuple(bindings))]  # pyright: ignore[reportArgumentType]
    tables = {alias or table: table for table, alias in _NAMED.findall(" ".join(query.split()).lower())}
    found: list[str] = []
    for step in plan:
        match = _SCANNED.match(step) or _WIDE.match(step)
        if match is not None and tables.get(match[1], match[1]) in _GROWING:
            found.append(step)
    return found


@contextmanager
def explained() -> Generator[None]:
    """Have every query that is run explained once, and refuse one that goes through everything without a reason."""
    seen: set[str] = set()
    real: dict[str, Any] = {name: getattr(Connection, name) for name in ("run", "run_many", "rows", "row", "inserted")}

    def watched(name: str) -> Any:
        def run(connection: Connection, query: str, bindings: Sequence[Any] = ()) -> Any:
            is_empty = name == "run_many" and not bindings
            if query not in seen and not is_empty:
                seen.add(query)
                _check(connection, query, bindings[0] if name == "run_many" else bindings)
            return real[name](connection, query, bindings)

        return run

    with pytest.MonkeyPatch.context() as patch:
        for name in real:
            patch.setattr(Connection, name, watched(name))
        yield


def _check(connection: Connection, query: str, bindings: Sequence[object]) -> None:
    text = " ".join(query.split())
    if text.split(" ", 1)[0].lower() in _QUERY and not any(known in text for known in WHOLE):
        wide = going_through(connection, query, bindings)
        assert not wide, f"{text}\ngoes through everything: {wide}; begin at an index, or say in tests/plans.py why it may"
