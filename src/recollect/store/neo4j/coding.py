"""Code files and scopes in Neo4j: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, LiteralString

from recollect.clock import from_iso
from recollect.model import Reference, Scope
from recollect.store.coded import Cited, IndexedFile, Unstamped, Whereabouts, WordedScope
from recollect.store.neo4j.rows import code_file_id, full_text_query, read_derived, scope_term, written

if TYPE_CHECKING:
    from recollect.store.coded import ReadFile, Stamp, Stretch
    from recollect.store.neo4j.database import Connection

_LOCKED: LiteralString = "MATCH (p:Project {workspace: $workspace, uuid: $project_id}) SET p.name = p.name\nWITH p\n"
_OF_PROJECT: LiteralString = "MATCH (s:Scope) WHERE s.workspace = $workspace AND s.project_id = $project_id AND s.name IS NOT NULL\n"
_NOT_STAMPED: LiteralString = """
    MATCH (p:Project)-[:HAS_CONVERSATION]->(c) WHERE t.status <> 'open'
    MATCH (t)-[:HAS_TOOL_CALL]->()-[a:ACCESSED]->(f)
    WHERE a.file_hash IS NULL AND NOT coalesce(a.temporary, false) AND NOT coalesce(a.generated, false)
    RETURN DISTINCT c.uuid, t.uuid, f.file_path, toString(coalesce(t.ended_at, t.started_at)), c.cwd, p.root, p.code_root, t.index
    ORDER BY c.uuid, t.index DESC, f.file_path LIMIT $limit
"""
_IN_ORDER: LiteralString = " RETURN properties(s) ORDER BY s.file_path, s.line_start, s.uuid"


class Neo4jCode:
    """The `CodeRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def root(self, project_id: str) -> str | None:
        """Return the folder that a project's index was made of, or None."""
        row = await self._connection.row(
            "MATCH (p:Project {workspace: $workspace, uuid: $project_id}) RETURN p.code_root",
            workspace=self._workspace,
            project_id=project_id,
        )
        return None if row is None else row[0]

    async def set_root(self, project_id: str, root: str) -> None:
        """Write the folder that a project's index is made of."""
        await self._connection.run(
            "MATCH (p:Project {workspace: $workspace, uuid: $project_id}) SET p.code_root = $root",
            workspace=self._workspace,
            project_id=project_id,
            root=root,
        )

    async def files(self, project_id: str) -> list[IndexedFile]:
        """Return the files of a project's index, by path."""
        rows = await self._connection.rows(
            """
            MATCH (f:CodeFile) WHERE f.workspace = $workspace AND f.project_id = $project_id AND f.indexed_hash IS NOT NULL
            RETURN f.file_path, f.indexed_hash, f.line_count, f.embedder ORDER BY f.file_path
            """,
            workspace=self._workspace,
            project_id=project_id,
        )
        return [IndexedFile(path=row[0], content_hash=row[1], line_count=row[2], embedder=row[3]) for row in rows]

    async def put_files(self, project_id: str, files: list[ReadFile]) -> None:
        """Write files, each in the place of the one with its path."""
        await self._connection.run(
            _LOCKED
            + """
            UNWIND $rows AS row
            MERGE (f:CodeFile {workspace: $workspace, uuid: row.file.uuid}) ON CREATE SET f += row.file
            SET f.indexed_hash = row.indexed_hash, f.line_count = row.line_count, f.embedder = row.embedder, f.signs = row.signs
            """,
            workspace=self._workspace,
            project_id=project_id,
            rows=[
                {
                    "file": self._file(project_id, one.file.path),
                    "indexed_hash": one.file.content_hash,
                    "line_count": one.file.line_count,
                    "embedder": one.file.embedder,
                    "signs": one.signs,
                }
                for one in files
            ],
        )

    def _file(self, project_id: str, path: str) -> dict[str, Any]:
        own_id = code_file_id(self._workspace, project_id, path)
        return {"workspace": self._workspace, "project_id": project_id, "uuid": own_id, "file_path": path}

    async def drop_files(self, project_id: str, paths: list[str]) -> None:
        """Take files out of an index."""
        await self._connection.run(
            _LOCKED
            + """
            MATCH (f:CodeFile) WHERE f.workspace = $workspace AND f.project_id = $project_id AND f.file_path IN $paths
            REMOVE f.indexed_hash, f.line_count, f.embedder, f.signs
            """,
            workspace=self._workspace,
            project_id=project_id,
            paths=paths,
        )

    async def clear(self, project_id: str) -> None:
        """Take everything out of a project's index, and where it was made of."""
        await self._connection.run(
            _LOCKED
            + """
            REMOVE p.code_root
            WITH p
            CALL (p) { MATCH (s:Scope) WHERE s.workspace = $workspace AND s.project_id = $project_id DETACH DELETE s }
            CALL (p) {
                MATCH (f:CodeFile) WHERE f.workspace = $workspace AND f.project_id = $project_id AND f.indexed_hash IS NOT NULL
                REMOVE f.indexed_hash, f.line_count, f.embedder, f.signs
            }
            """,
            workspace=self._workspace,
            project_id=project_id,
        )

    async def put_scopes(self, project_id: str, scopes: list[WordedScope]) -> None:
        """Write scopes, each in the place of one with its id."""
        shared = {"workspace": self._workspace, "project_id": project_id}
        word = f"{scope_term(self._workspace, 'workspace', '')} {scope_term(self._workspace, 'project', project_id)}"
        rows: list[dict[str, Any]] = [
            {
                "file": self._file(project_id, one.scope.file_path),
                "scope": written(one.scope, **shared, checksum=one.checksum, terms=one.terms, scope=word),
            }
            for one in scopes
        ]
        await self._connection.run(
            _LOCKED
            + """
            UNWIND $rows AS row
            MERGE (f:CodeFile {workspace: $workspace, uuid: row.file.uuid}) ON CREATE SET f += row.file
            MERGE (s:Scope {workspace: $workspace, uuid: row.scope.uuid}) SET s = row.scope
            WITH s, f
            CALL (s) { MATCH (s)-[old:DEFINED_IN]->() DELETE old }
            CREATE (s)-[:DEFINED_IN]->(f)
            """,
            workspace=self._workspace,
            project_id=project_id,
            rows=rows,
        )

    async def drop_scopes(self, project_id: str, paths: list[str], kept_ids: list[str]) -> None:
        """Delete the scopes of some files, but for those of some ids."""
        await self._connection.run(
            _LOCKED + _OF_PROJECT + "AND s.file_path IN $paths AND NOT s.uuid IN $kept_ids DETACH DELETE s",
            workspace=self._workspace,
            project_id=project_id,
            paths=paths,
            kept_ids=kept_ids,
        )

    async def scopes(self, project_id: str, name: str | None) -> list[Scope]:
        """Return scopes by path, line and id: all, or those of one name, qualified or not."""
        return await self._read(
            _OF_PROJECT + "AND ($name IS NULL OR s.name = $name OR s.qualified = $name)" + _IN_ORDER, project_id=project_id, name=name
        )

    async def count(self, project_id: str) -> int:
        """Count the scopes of a project."""
        row = await self._connection.row(_OF_PROJECT + "RETURN count(s)", workspace=self._workspace, project_id=project_id)
        return 0 if row is None else int(row[0])

    async def named(self, project_id: str, names: list[str]) -> list[Scope]:
        """Return the scopes of some names, qualified or not, by path, line and id."""
        return await self._read(
            _OF_PROJECT + "AND (s.name IN $names OR s.qualified IN $names)" + _IN_ORDER, project_id=project_id, names=names
        )

    async def in_files(self, project_id: str, paths: list[str]) -> list[Scope]:
        """Return the scopes of some files, by path, line and id."""
        query: LiteralString = "AND any(path IN $paths WHERE s.file_path = path OR s.file_path ENDS WITH '/' + path)"
        return await self._read(_OF_PROJECT + query + _IN_ORDER, project_id=project_id, paths=paths)

    async def _read(self, query: LiteralString, **parameters: Any) -> list[Scope]:
        rows = await self._connection.rows(query, workspace=self._workspace, **parameters)
        return [read_derived(Scope, row[0]) for row in rows]

    async def having(self, project_ids: list[str] | None, terms: list[str], limit: int) -> list[WordedScope]:
        """Return scopes that have one of some terms, those with the most of what is rare first."""
        kind, names = ("workspace", [""]) if project_ids is None else ("project", project_ids)
        rows = await self._connection.rows(
            """
            UNWIND $queries AS one
            CALL (one) {
                CALL db.index.fulltext.queryNodes('scope_terms', one, {limit: $limit}) YIELD node, score
                RETURN node, score
            }
            RETURN properties(node), node.terms, node.checksum
            ORDER BY score DESC, node.file_path, node.line_start, node.uuid LIMIT $limit
            """,
            queries=[full_text_query(scope_term(self._workspace, kind, name), terms) for name in names],
            limit=limit,
        )
        return [WordedScope(read_derived(Scope, row[0]), row[1], row[2]) for row in rows]

    async def signs(self, project_ids: list[str] | None, embedder: str) -> list[bytes]:
        """Return the packed signs of the files of some projects, as far as an embedder made them."""
        rows = await self._connection.rows(
            """
            MATCH (f:CodeFile) WHERE f.workspace = $workspace AND ($project_ids IS NULL OR f.project_id IN $project_ids)
                AND f.embedder = $embedder AND f.signs IS NOT NULL
            RETURN f.signs
            """,
            workspace=self._workspace,
            project_ids=project_ids,
            embedder=embedder,
        )
        return [bytes(row[0]) for row in rows if row[0]]

    async def by_id(self, scope_ids: list[str]) -> list[WordedScope]:
        """Return scopes by path, line and id."""
        rows = await self._connection.rows(
            "MATCH (s:Scope) WHERE s.workspace = $workspace AND s.uuid IN $scope_ids"
            " RETURN properties(s), s.terms, s.checksum ORDER BY s.file_path, s.line_start, s.uuid",
            workspace=self._workspace,
            scope_ids=scope_ids,
        )
        return [WordedScope(read_derived(Scope, row[0]), row[1], row[2]) for row in rows]

    async def unstamped(self, conversation_id: str, newest: int, limit: int) -> list[Unstamped]:
        """Return files that the newest turns of a conversation accessed and that are not stamped."""
        query: LiteralString = """
            MATCH (c:Conversation {workspace: $workspace, uuid: $conversation_id})
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.conversation_id = c.uuid AND t.index >= c.next_index - $newest
        """
        return await self._unstamped(query + _NOT_STAMPED, conversation_id=conversation_id, newest=newest, limit=limit)

    async def unstamped_of(self, project_id: str, limit: int) -> list[Unstamped]:
        """Return files that turns of a project accessed and that are not stamped."""
        query: LiteralString = """
            MATCH (:Project {workspace: $workspace, uuid: $project_id})-[:HAS_CONVERSATION]->(c)-[:HAS_TURN]->(t)
        """
        return await self._unstamped(query + _NOT_STAMPED, project_id=project_id, limit=limit)

    async def _unstamped(self, query: LiteralString, **parameters: Any) -> list[Unstamped]:
        rows = await self._connection.rows(query, workspace=self._workspace, **parameters)
        return [
            Unstamped(row[0], row[1], row[2], None if row[3] is None else from_iso(row[3]), Whereabouts(row[4], row[5], row[6]))
            for row in rows
        ]

    async def stamp(self, stamps: list[Stamp]) -> None:
        """Write the hash of a file at each access of a turn to it that has none."""
        await self._connection.run(
            """
            UNWIND $conversation_ids AS id
            MATCH (c:Conversation {workspace: $workspace, uuid: id}) SET c.own_turns = c.own_turns
            WITH count(c) AS locked
            UNWIND $rows AS row
            MATCH (t:Turn {workspace: $workspace, uuid: row.turn_id})-[:HAS_TOOL_CALL]->()-[a:ACCESSED]->(f:CodeFile)
            WHERE t.conversation_id = row.conversation_id AND f.file_path = row.path AND a.file_hash IS NULL
            SET a.file_hash = row.file_hash
            """,
            workspace=self._workspace,
            conversation_ids=sorted({one.conversation_id for one in stamps}),
            rows=[one._asdict() for one in stamps],
        )

    async def cited(self, owners: list[Stretch]) -> list[Cited]:
        """Return the files that turns accessed, each as the last of the turns that accessed it saw it, if that is known."""
        rows = await self._connection.rows(
            """
            UNWIND range(0, size($owners) - 1) AS place
            WITH place, $owners[place] AS one
            MATCH (t:Turn) WHERE t.workspace = $workspace AND t.conversation_id = one[1] AND one[2] <= t.index AND t.index <= one[3]
            MATCH (t)-[:HAS_TOOL_CALL]->()-[a:ACCESSED]->(f)
            WHERE NOT coalesce(a.temporary, false) AND NOT coalesce(a.generated, false)
            WITH place, one, f, max([t.index, coalesce(a.file_hash, '')])[1] AS file_hash
            WHERE file_hash > ''
            MATCH (c:Conversation {workspace: $workspace, uuid: one[1]})
            MATCH (p:Project {workspace: $workspace, uuid: f.project_id})
            RETURN one[0], f.file_path, file_hash, f.indexed_hash, c.cwd, p.root, p.code_root ORDER BY place, f.file_path
            """,
            workspace=self._workspace,
            owners=[list(one) for one in owners],
        )
        return [Cited(row[0], row[1], row[2], row[3], Whereabouts(row[4], row[5], row[6])) for row in rows]

    async def put_references(self, references: list[Reference]) -> None:
        """Write that messages speak of scopes."""
        await self._connection.run(
            """
            UNWIND $rows AS row
            MATCH (m:Message {workspace: $workspace, uuid: row.message_id}) MATCH (s:Scope {workspace: $workspace, uuid: row.scope_id})
            MERGE (m)-[:REFERENCES_CODE]->(s)
            """,
            workspace=self._workspace,
            rows=[{"message_id": one.message_id, "scope_id": one.scope_id} for one in references],
        )

    async def references(self, scope_ids: list[str]) -> list[Reference]:
        """Return who speaks of scopes, by scope, conversation and message."""
        rows = await self._connection.rows(
            """
            MATCH (m:Message)-[:REFERENCES_CODE]->(s:Scope) WHERE s.workspace = $workspace AND s.uuid IN $scope_ids
            RETURN m.uuid, m.conversation_id, s.uuid ORDER BY s.uuid, m.conversation_id, m.sequence
            """,
            workspace=self._workspace,
            scope_ids=scope_ids,
        )
        return [Reference(message_id=row[0], scope_id=row[2], conversation_id=row[1]) for row in rows]
