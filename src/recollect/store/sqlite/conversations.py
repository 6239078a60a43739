"""Workspaces, projects and conversations in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import iso
from recollect.model import Project
from recollect.store.sqlite.removal import remove
from recollect.store.sqlite.rows import SELECT_CONVERSATION, as_json, conversation_of
from recollect.store.sqlite.sealing import create, get, sealed

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import ConversationInfo, Forgotten
    from recollect.store.protocol import ConversationChange, ConversationFilter
    from recollect.store.sqlite.database import Connection, Database


class SqliteConversations:
    """The `Conversations` facet."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, workspace: str, conversation: ConversationInfo, project: Project) -> ConversationInfo:
        """Create a conversation and, where missing, its workspace and project."""
        return await self._database.write(lambda connection: create(connection, workspace, conversation, project, inherits=True))

    async def get(self, workspace: str, conversation_id: str) -> ConversationInfo | None:
        """Return a conversation, or None."""
        return await self._database.read(lambda connection: get(connection, workspace, conversation_id))

    async def change(self, workspace: str, conversation_id: str, change: ConversationChange, at: datetime) -> ConversationInfo | None:
        """Change a conversation's title, tags, status or summary."""
        return await self._database.write(lambda connection: _change(connection, workspace, conversation_id, change, at))

    async def find(self, workspace: str, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
        """Return conversations, the latest change first."""
        return await self._database.read(lambda connection: _find(connection, workspace, where, limit))

    async def branches(self, workspace: str, conversation_id: str) -> list[ConversationInfo]:
        """Return the branches that fork from a conversation, oldest first."""
        return await self._database.read(lambda connection: _branches(connection, workspace, conversation_id))

    async def remove(self, workspace: str, conversation_ids: list[str], *, keep_inherited: bool) -> Forgotten:
        """Remove conversations and all that hangs from them."""
        return await self._database.write(
            lambda connection: remove(connection, workspace, conversation_ids, keep_inherited=keep_inherited),
        )

    async def projects(self, workspace: str) -> list[Project]:
        """Return the projects of a workspace by name."""
        return await self._database.read(lambda connection: _projects(connection, workspace))


def _change(
    connection: Connection, workspace: str, conversation_id: str, change: ConversationChange, at: datetime
) -> ConversationInfo | None:
    if get(connection, workspace, conversation_id) is None:
        return None
    connection.run(
        """
        update conversation set title = coalesce(?3, title), tags = coalesce(?4, tags), status = coalesce(?5, status),
            summary = coalesce(?6, summary), updated_at = ?7
        where uuid = ?2 and workspace_pk = (select pk from workspace where name = ?1)
        """,
        (
            workspace,
            conversation_id,
            change.title,
            None if change.tags is None else as_json(change.tags),
            change.status,
            change.summary,
            iso(at),
        ),
    )
    return sealed(connection, workspace, conversation_id)


def _find(connection: Connection, workspace: str, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
    rows = connection.rows(
        SELECT_CONVERSATION
        + """
        where w.name = ?1
            and (?2 is null or c.status = ?2)
            and (?3 is null or p.uuid in (select value from json_each(?3)))
            and (?4 is null or c.agent = ?4)
            and (?5 is null or c.updated_at < ?5)
            and (?6 is null or exists (
                select 1 from json_each(c.tags) tag where tag.value in (select value from json_each(?6))))
        order by c.updated_at desc, c.pk desc limit ?7
        """,
        (
            workspace,
            where.status,
            as_json(where.project_ids) if where.project_ids is not None else None,
            where.agent,
            None if where.before is None else iso(where.before),
            as_json(where.tags) if where.tags else None,
            limit,
        ),
    )
    return [conversation_of(row) for row in rows]


def _branches(connection: Connection, workspace: str, conversation_id: str) -> list[ConversationInfo]:
    rows = connection.rows(
        """
        select c.uuid from conversation c
        join conversation parent on parent.pk = c.parent_pk join workspace w on w.pk = parent.workspace_pk
        where w.name = ? and parent.uuid = ? order by c.pk
        """,
        (workspace, conversation_id),
    )
    found = [get(connection, workspace, row[0]) for row in rows]
    return [conversation for conversation in found if conversation is not None]


def _projects(connection: Connection, workspace: str) -> list[Project]:
    rows = connection.rows(
        """
        select p.uuid, p.name, p.root, p.external_id from project p join workspace w on w.pk = p.workspace_pk
        where w.name = ? order by p.name, p.uuid
        """,
        (workspace,),
    )
    return [Project(id=row[0], name=row[1], root=row[2], external_id=row[3]) for row in rows]
