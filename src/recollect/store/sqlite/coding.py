"""Code files and scopes in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from recollect.model import Reference, Scope
from recollect.store.coded import Cited, IndexedFile, Unstamped, Whereabouts, WordedScope
from recollect.store.integrity import intact_derived
from recollect.store.sqlite.rows import as_json, moment

if TYPE_CHECKING:
    from recollect.store.coded import ReadFile, Stamp, Stretch
    from recollect.store.sqlite.database import Connection, Row

_PROJECT: LiteralString = "(select p.pk from project p join workspace w on w.pk = p.workspace_pk where w.name = ?1 and p.uuid = ?2)"
SELECT_SCOPE: LiteralString = """
    select s.uuid, p.uuid, s.name, s.qualified, s.kind, f.file_path, s.line_start, s.line_end, s.signature, s.docstring, s.content_hash,
        s.terms, s.checksum
    from scope s join code_file f on f.pk = s.code_file_pk join project p on p.pk = s.project_pk
"""
_IN_ORDER: LiteralString = "order by f.file_path, s.line_start, s.uuid"
_UNSTAMPED: LiteralString = """
    select distinct c.uuid, t.uuid, f.file_path, coalesce(t.ended_at, t.started_at), c.cwd, p.root, p.code_root
    from conversation c cross join project p on p.pk = c.project_pk cross join turn t on t.conversation_pk = c.pk
        cross join tool_call k on k.turn_pk = t.pk cross join access a on a.tool_call_pk = k.pk
        cross join code_file f on f.pk = a.code_file_pk
    where c.workspace_pk = (select pk from workspace where name = ?1)
"""
_NOT_STAMPED: LiteralString = """
    and a.file_hash is null and not a.temporary and not a.generated and t.status <> 'open'
    order by c.uuid, t.turn_index desc, f.file_path limit ?3
"""


class SqliteCode:
    """The `CodeRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    def _key(self, project_id: str) -> int | None:
        key: int | None = self._connection.value("select " + _PROJECT, (self._workspace, project_id))
        return key

    async def root(self, project_id: str) -> str | None:
        """Return the folder that a project's index was made of, or None."""
        found: str | None = self._connection.value("select code_root from project where pk = " + _PROJECT, (self._workspace, project_id))
        return found

    async def set_root(self, project_id: str, root: str) -> None:
        """Write the folder that a project's index is made of."""
        self._connection.run("update project set code_root = ?3 where pk = " + _PROJECT, (self._workspace, project_id, root))

    async def files(self, project_id: str) -> list[IndexedFile]:
        """Return the files of a project's index, by path."""
        rows = self._connection.rows(
            """
            select file_path, content_hash, line_count, embedder from code_file join indexed_file on code_file_pk = pk
            where project_pk = ? order by file_path
            """,
            (self._key(project_id),),
        )
        return [IndexedFile(path=row[0], content_hash=row[1], line_count=row[2], embedder=row[3]) for row in rows]

    async def put_files(self, project_id: str, files: list[ReadFile]) -> None:
        """Write files, each in the place of the one with its path."""
        key = self._key(project_id)
        self._connection.run_many(
            "insert into code_file (project_pk, file_path) values (?, ?) on conflict do nothing", [(key, one.file.path) for one in files]
        )
        self._connection.run_many(
            """
            insert or replace into indexed_file (code_file_pk, content_hash, line_count, embedder, signs)
            select pk, ?3, ?4, ?5, ?6 from code_file where project_pk = ?1 and file_path = ?2
            """,
            [(key, one.file.path, one.file.content_hash, one.file.line_count, one.file.embedder, one.signs) for one in files],
        )

    async def drop_files(self, project_id: str, paths: list[str]) -> None:
        """Take files out of an index."""
        self._connection.run(
            """
            delete from indexed_file where code_file_pk in (
                select pk from code_file where project_pk = ? and file_path in (select value from json_each(?)))
            """,
            (self._key(project_id), as_json(paths)),
        )

    async def clear(self, project_id: str) -> None:
        """Take everything out of a project's index, and where it was made of."""
        key = self._key(project_id)
        self._connection.run("delete from scope where project_pk = ?", (key,))
        self._connection.run("delete from indexed_file where code_file_pk in (select pk from code_file where project_pk = ?)", (key,))
        self._connection.run("update project set code_root = null where pk = ?", (key,))

    async def put_scopes(self, project_id: str, scopes: list[WordedScope]) -> None:
        """Write scopes, each in the place of one with its id."""
        key = self._key(project_id)
        known: dict[str, int] = dict(
            self._connection.rows(
                "select uuid, pk from scope where +project_pk = ? and uuid in (select value from json_each(?))",
                (key, as_json([one.scope.id for one in scopes])),
            )
        )
        self._connection.run_many(
            "insert into code_file (project_pk, file_path) values (?, ?) on conflict do nothing",
            [(key, path) for path in dict.fromkeys(one.scope.file_path for one in scopes)],
        )
        for one in scopes:
            if one.scope.id in known:
                self._connection.run(
                    """
                    update scope set code_file_pk = (select pk from code_file where project_pk = ?1 and file_path = ?2), name = ?3,
                        qualified = ?4, kind = ?5, line_start = ?6, line_end = ?7, signature = ?8, docstring = ?9, content_hash = ?10,
                        terms = ?11, checksum = ?12
                    where pk = ?13
                    """,
                    (*_values(key, one), known[one.scope.id]),
                )
        self._add(key, list({one.scope.id: one for one in scopes if one.scope.id not in known}.values()))

    def _add(self, project_pk: int | None, scopes: list[WordedScope]) -> None:
        """Insert scopes, and then their words, at once: for the reason see `passages`."""
        first = int(self._connection.value("select coalesce(max(pk), 0) + 1 from scope"))
        self._connection.run_many(
            """
            insert into scope (project_pk, code_file_pk, name, qualified, kind, line_start, line_end, signature, docstring,
                content_hash, terms, checksum, uuid, pk)
            values (?1, (select pk from code_file where project_pk = ?1 and file_path = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12,
                ?13, ?14)
            """,
            [(*_values(project_pk, one), one.scope.id, key) for key, one in enumerate(scopes, first)],
        )
        self._connection.run_many(
            "insert into scope_terms (rowid, terms) values (?, ?)", [(key, one.terms) for key, one in enumerate(scopes, first)]
        )

    async def drop_scopes(self, project_id: str, paths: list[str], kept_ids: list[str]) -> None:
        """Delete the scopes of some files, but for those of some ids."""
        self._connection.run(
            """
            delete from scope where +project_pk = ?1 and uuid not in (select value from json_each(?3)) and code_file_pk in (
                select pk from code_file where project_pk = ?1 and file_path in (select value from json_each(?2)))
            """,
            (self._key(project_id), as_json(paths), as_json(kept_ids)),
        )

    async def scopes(self, project_id: str, name: str | None) -> list[Scope]:
        """Return scopes by path, line and id: all, or those of one name, qualified or not."""
        rows = self._connection.rows(
            SELECT_SCOPE + "where s.project_pk = " + _PROJECT + " and (?3 is null or s.name = ?3 or s.qualified = ?3)" + _IN_ORDER,
            (self._workspace, project_id, name),
        )
        return [scope_of(row) for row in rows]

    async def count(self, project_id: str) -> int:
        """Count the scopes of a project."""
        return int(self._connection.value("select count(*) from scope where project_pk = ?", (self._key(project_id),)))

    async def named(self, project_id: str, names: list[str]) -> list[Scope]:
        """Return the scopes of some names, qualified or not, by path, line and id."""
        rows = self._connection.rows(
            SELECT_SCOPE
            + "where s.pk in (select pk from scope where project_pk = "
            + _PROJECT
            + " and name in (select value from json_each(?3)) union select pk from scope where project_pk = "
            + _PROJECT
            + " and qualified in (select value from json_each(?3)))"
            + _IN_ORDER,
            (self._workspace, project_id, as_json(names)),
        )
        return [scope_of(row) for row in rows]

    async def in_files(self, project_id: str, paths: list[str]) -> list[Scope]:
        """Return the scopes of some files, by path, line and id."""
        rows = self._connection.rows(
            SELECT_SCOPE
            + "where s.code_file_pk in (select pk from code_file where project_pk = "
            + _PROJECT
            + """
                and exists (
                    select 1 from json_each(?3) where code_file.file_path = value
                        or substr(code_file.file_path, -length(value) - 1) = '/' || value))
            """
            + _IN_ORDER,
            (self._workspace, project_id, as_json(paths)),
        )
        return [scope_of(row) for row in rows]

    async def having(self, project_ids: list[str] | None, terms: list[str], limit: int) -> list[WordedScope]:
        """Return scopes that have one of some terms, those with the most of what is rare first."""
        rows = self._connection.rows(
            SELECT_SCOPE
            + """
                join scope_terms x on x.rowid = s.pk join workspace w on w.pk = p.workspace_pk
            where scope_terms match ?2 and w.name = ?1 and (?3 is null or p.uuid in (select value from json_each(?3)))
            order by x.rank, f.file_path, s.line_start, s.uuid limit ?4
            """,
            (self._workspace, _query(terms), None if project_ids is None else as_json(project_ids), limit),
        )
        return [WordedScope(scope_of(row), row[11], row[12]) for row in rows]

    async def signs(self, project_ids: list[str] | None, embedder: str) -> list[bytes]:
        """Return the packed signs of the files of some projects, as far as an embedder made them."""
        rows = self._connection.rows(
            """
            select i.signs from workspace w join project p on p.workspace_pk = w.pk join code_file f on f.project_pk = p.pk
                join indexed_file i on i.code_file_pk = f.pk
            where w.name = ?1 and (?2 is null or p.uuid in (select value from json_each(?2))) and i.embedder = ?3 and i.signs <> x''
            """,
            (self._workspace, None if project_ids is None else as_json(project_ids), embedder),
        )
        return [row[0] for row in rows]

    async def by_id(self, scope_ids: list[str]) -> list[WordedScope]:
        """Return scopes by path, line and id."""
        rows = self._connection.rows(
            SELECT_SCOPE
            + """
            where +p.workspace_pk = (select pk from workspace where name = ?1) and s.uuid in (select value from json_each(?2))
            """
            + _IN_ORDER,
            (self._workspace, as_json(scope_ids)),
        )
        return [WordedScope(scope_of(row), row[11], row[12]) for row in rows]

    async def unstamped(self, conversation_id: str, newest: int, limit: int) -> list[Unstamped]:
        """Return files that the newest turns of a conversation accessed and that are not stamped."""
        return self._unstamped(
            _UNSTAMPED + "and c.uuid = ?2 and t.turn_index >= c.next_index - ?4" + _NOT_STAMPED,
            (self._workspace, conversation_id, limit, newest),
        )

    async def unstamped_of(self, project_id: str, limit: int) -> list[Unstamped]:
        """Return files that turns of a project accessed and that are not stamped."""
        return self._unstamped(_UNSTAMPED + "and c.project_pk = " + _PROJECT + _NOT_STAMPED, (self._workspace, project_id, limit))

    def _unstamped(self, query: LiteralString, values: tuple[object, ...]) -> list[Unstamped]:
        return [
            Unstamped(row[0], row[1], row[2], moment(row[3]), Whereabouts(row[4], row[5], row[6]))
            for row in self._connection.rows(query, values)
        ]

    async def stamp(self, stamps: list[Stamp]) -> None:
        """Write the hash of a file at each access of a turn to it that has none."""
        self._connection.run_many(
            """
            update access set file_hash = ?5 where file_hash is null
                and tool_call_pk in (
                    select k.pk from turn t join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
                        join tool_call k on k.turn_pk = t.pk
                    where w.name = ?1 and c.uuid = ?2 and t.uuid = ?3)
                and code_file_pk in (
                    select f.pk from workspace w join conversation c on c.workspace_pk = w.pk
                        join code_file f on f.project_pk = c.project_pk
                    where w.name = ?1 and c.uuid = ?2 and f.file_path = ?4)
            """,
            [(self._workspace, one.conversation_id, one.turn_id, one.path, one.file_hash) for one in stamps],
        )

    async def cited(self, owners: list[Stretch]) -> list[Cited]:
        """Return the files that turns accessed, each as the last of the turns that accessed it saw it, if that is known."""
        rows = self._connection.rows(
            """
            select owner, file_path, file_hash, content_hash, cwd, root, code_root from (
                select asked.value ->> 0 as owner, asked.key as place, a.code_file_pk as file, a.file_hash as file_hash, c.cwd as cwd,
                    max(t.turn_index)
                from json_each(?2) asked
                    cross join conversation c on c.uuid = asked.value ->> 1 and c.workspace_pk = (select pk from workspace where name = ?1)
                    cross join turn t on t.conversation_pk = c.pk and t.turn_index between asked.value ->> 2 and asked.value ->> 3
                    cross join tool_call k on k.turn_pk = t.pk cross join access a on a.tool_call_pk = k.pk
                where not a.temporary and not a.generated
                group by asked.key, a.code_file_pk
            ) cross join code_file f on f.pk = file cross join project p on p.pk = f.project_pk
                left join indexed_file i on i.code_file_pk = file
            where file_hash > '' order by place, file_path
            """,
            (self._workspace, as_json(owners)),
        )
        return [Cited(row[0], row[1], row[2], row[3], Whereabouts(row[4], row[5], row[6])) for row in rows]

    async def put_references(self, references: list[Reference]) -> None:
        """Write that messages speak of scopes."""
        self._connection.run_many(
            """
            insert into reference (message_pk, scope_pk)
            select m.pk, s.pk from message m join turn t on t.pk = m.turn_pk join conversation c on c.pk = t.conversation_pk
                join workspace w on w.pk = c.workspace_pk join project p on p.workspace_pk = w.pk join scope s on s.project_pk = p.pk
            where w.name = ?1 and m.uuid = ?2 and s.uuid = ?3
            on conflict do nothing
            """,
            [(self._workspace, one.message_id, one.scope_id) for one in references],
        )

    async def references(self, scope_ids: list[str]) -> list[Reference]:
        """Return who speaks of scopes, by scope, conversation and message."""
        rows = self._connection.rows(
            """
            select m.uuid, c.uuid, s.uuid from scope s join reference r on r.scope_pk = s.pk join message m on m.pk = r.message_pk
                join turn t on t.pk = m.turn_pk join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
            where w.name = ?1 and s.uuid in (select value from json_each(?2)) order by s.uuid, c.uuid, m.sequence
            """,
            (self._workspace, as_json(scope_ids)),
        )
        return [Reference(message_id=row[0], scope_id=row[2], conversation_id=row[1]) for row in rows]


def _values(project_pk: int | None, one: WordedScope) -> tuple[object, ...]:
    scope = one.scope
    return (
        project_pk, scope.file_path, scope.name, scope.qualified, scope.kind, scope.line_start, scope.line_end, scope.signature,
        scope.docstring, scope.content_hash, one.terms, one.checksum,
    )  # fmt: skip


def scope_of(row: Row) -> Scope:
    """Read a row of `SELECT_SCOPE`."""
    scope = Scope(
        id=row[0], project_id=row[1], name=row[2], qualified=row[3], kind=row[4], file_path=row[5], line_start=row[6], line_end=row[7],
        signature=row[8], docstring=row[9], content_hash=row[10],
    )  # fmt: skip
    return intact_derived(scope, row[12])


def _query(terms: list[str]) -> str:
    return " OR ".join('"' + term.replace('"', '""') + '"' for term in terms)
