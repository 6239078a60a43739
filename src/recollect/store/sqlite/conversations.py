"""Projects and conversations in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import iso
from recollect.limits import BRANCH_DEPTH_MAX, CONVERSATIONS_PER_PROJECT_MAX, PROJECTS_PER_WORKSPACE_MAX
from recollect.model import Project
from recollect.store.shapes import Link
from recollect.store.sqlite.numbering import checked, checked_workspace
from recollect.store.sqlite.rows import SELECT_CONVERSATION, as_json, conversation_row, held_of

if TYPE_CHECKING:
    from recollect.model import ConversationInfo
    from recollect.store.shapes import ConversationFilter, Held
    from recollect.store.sqlite.database import Connection


class SqliteConversations:
    """The `ConversationRows` of a transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self._connection = connection
        self._workspace = workspace

    async def held(self, conversation_id: str) -> Held | None:
        """Return a conversation, or None."""
        row = self._connection.row(SELECT_CONVERSATION + "where w.name = ? and c.uuid = ?", (self._workspace, conversation_id))
        return None if row is None else held_of(row)

    async def by_id(self, conversation_ids: list[str]) -> list[ConversationInfo]:
        """Return conversations in any order."""
        rows = self._connection.rows(
            SELECT_CONVERSATION + "where w.name = ? and c.uuid in (select value from json_each(?))",
            (self._workspace, as_json(conversation_ids)),
        )
        return [held_of(row).conversation for row in rows]

    async def find(self, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
        """Return conversations, the latest change first."""
        rows = self._connection.rows(
            SELECT_CONVERSATION
            + """
            where w.name = ?1
                and (?2 is null or c.status = ?2)
                and (?3 is null or p.uuid in (select value from json_each(?3)))
                and (?4 is null or c.agent = ?4)
                and (?5 is null or c.updated_at < ?5)
                and (?6 is null or exists (
                    select 1 from json_each(c.tags) tag where tag.value in (select value from json_each(?6))))
            order by c.updated_at desc, c.created_at desc, c.uuid desc limit ?7
            """,
            (
                self._workspace,
                where.status,
                as_json(where.project_ids) if where.project_ids is not None else None,
                where.agent,
                None if where.before is None else iso(where.before),
                as_json(where.tags) if where.tags else None,
                limit,
            ),
        )
        return [held_of(row).conversation for row in rows]

    async def branches(self, conversation_id: str) -> list[Held]:
        """Return the conversations that inherit from one, oldest first."""
        rows = self._connection.rows(
            SELECT_CONVERSATION
            + """
            where c.parent_pk = (select pk from conversation where workspace_pk = (select pk from workspace where name = ?) and uuid = ?)
            order by c.created_at, c.uuid
            """,
            (self._workspace, conversation_id),
        )
        return [held_of(row) for row in rows]

    async def chain(self, conversation_id: str) -> list[Link]:
        """Return a conversation, its parent, and so on to the eldest."""
        rows = self._connection.rows(
            """
            with recursive chain (uuid, from_turn, parent_pk, depth) as (
                select uuid, from_turn, parent_pk, 0 from conversation
                where workspace_pk = (select pk from workspace where name = ?1) and uuid = ?2
                union all
                select c.uuid, c.from_turn, c.parent_pk, depth + 1 from chain join conversation c on c.pk = chain.parent_pk where depth < ?3
            )
            select uuid, case when parent_pk is null then null else from_turn end from chain order by depth
            """,
            (self._workspace, conversation_id, BRANCH_DEPTH_MAX),
        )
        return [Link(conversation_id=row[0], from_turn=row[1]) for row in rows]

    async def projects(self) -> list[Project]:
        """Return the projects of the workspace by name."""
        rows = self._connection.rows(
            """
            select p.uuid, p.name, p.root, p.external_id from project p join workspace w on w.pk = p.workspace_pk
            where w.name = ? order by p.name, p.uuid
            """,
            (self._workspace,),
        )
        return [Project(id=row[0], name=row[1], root=row[2], external_id=row[3]) for row in rows]

    async def put_project(self, project: Project) -> None:
        """Write a project and its workspace, where they are missing; one that has no folder yet gets the one that is given."""
        workspace_pk = self._workspace_key()
        known = self._project_key(workspace_pk, project.id)
        if known is not None:
            if project.root is not None:
                self._connection.run("update project set root = ? where pk = ? and root is null", (project.root, known))
            return
        number = int(self._connection.value("select coalesce(max(number), 0) + 1 from project where workspace_pk = ?", (workspace_pk,)))
        self._connection.run(
            "insert into project (workspace_pk, number, uuid, name, root, external_id) values (?, ?, ?, ?, ?, ?)",
            (
                workspace_pk,
                checked("projects in a workspace", number, PROJECTS_PER_WORKSPACE_MAX),
                project.id,
                project.name,
                project.root,
                project.external_id,
            ),
        )

    async def create(self, held: Held) -> None:
        """Write a new conversation of a project that is there."""
        workspace_pk = self._workspace_key()
        project_pk = self._project_key(workspace_pk, held.conversation.project_id)
        number = int(self._connection.value("select coalesce(max(number), 0) + 1 from conversation where project_pk = ?", (project_pk,)))
        self._connection.run(
            """
            insert into conversation (workspace_pk, project_pk, number, uuid, title, tags, status, summary, agent, external_id, cwd,
                created_at, updated_at, turn_count, message_count, next_index, next_sequence, last_message, branch_of, from_turn, checksum,
                has_own_title, told_to, parent_pk)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,
                (select pk from conversation where workspace_pk = ?1 and uuid = ?24))
            """,
            (
                workspace_pk,
                project_pk,
                checked("conversations in a project", number, CONVERSATIONS_PER_PROJECT_MAX),
                *conversation_row(held),
                held.parent_id,
            ),
        )

    def _workspace_key(self) -> int:
        key = self._connection.value("select pk from workspace where name = ?", (self._workspace,))
        if key is None:
            key = checked_workspace(self._connection.inserted("insert into workspace (name) values (?)", (self._workspace,)))
        return int(key)

    def _project_key(self, workspace_pk: int, project_id: str) -> int | None:
        key: int | None = self._connection.value("select pk from project where workspace_pk = ? and uuid = ?", (workspace_pk, project_id))
        return key

    async def update(self, held: Held) -> None:
        """Write a conversation as it is now, its parent included."""
        self._connection.run(
            """
            update conversation set uuid = ?2, title = ?3, tags = ?4, status = ?5, summary = ?6, agent = ?7, external_id = ?8, cwd = ?9,
                created_at = ?10, updated_at = ?11, turn_count = ?12, message_count = ?13, next_index = ?14, next_sequence = ?15,
                last_message = ?16, branch_of = ?17, from_turn = ?18, checksum = ?19, has_own_title = ?20, told_to = ?21,
                parent_pk = (select pk from conversation parent where parent.workspace_pk = conversation.workspace_pk and uuid = ?22)
            where uuid = ?2 and workspace_pk = (select pk from workspace where name = ?1)
            """,
            (self._workspace, *conversation_row(held), held.parent_id),
        )

    async def delete(self, conversation_id: str) -> None:
        """Delete a conversation with its turns and all that hangs from them."""
        self._connection.run(
            "delete from conversation where workspace_pk = (select pk from workspace where name = ?) and uuid = ?",
            (self._workspace, conversation_id),
        )

    async def drop_unused(self, project_ids: list[str]) -> None:
        """Delete those of some projects, and of all code files, that nothing names any more: a path can be a secret, too."""
        self._connection.run(
            """
            delete from code_file where not exists (select 1 from access where code_file_pk = code_file.pk)
                and not exists (select 1 from context_file where code_file_pk = code_file.pk)
                and not exists (select 1 from code_change where code_file_pk = code_file.pk)
                and not exists (select 1 from scope where code_file_pk = code_file.pk)
                and not exists (select 1 from indexed_file where code_file_pk = code_file.pk)
            """,
        )
        self._connection.run(
            """
            delete from project where workspace_pk = (select pk from workspace where name = ?)
                and uuid in (select value from json_each(?))
                and not exists (select 1 from conversation where project_pk = project.pk)
                and not exists (select 1 from scope where project_pk = project.pk)
            """,
            (self._workspace, as_json(project_ids)),
        )
