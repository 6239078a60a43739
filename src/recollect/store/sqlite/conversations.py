"""Workspaces, projects and conversations in SQLite: queries and row mapping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import iso
from recollect.errors import NotFoundError
from recollect.limits import BRANCH_DEPTH_MAX, CONVERSATIONS_PER_PROJECT_MAX, PROJECTS_PER_WORKSPACE_MAX
from recollect.model import ConversationInfo, Forgotten, Project
from recollect.placing import checksum
from recollect.store.recording import Ancestor, lineage
from recollect.store.sqlite.numbering import checked, checked_workspace
from recollect.store.sqlite.rows import SELECT_CONVERSATION, as_json, conversation_of

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.store.protocol import ConversationChange, ConversationFilter
    from recollect.store.sqlite.database import Connection, Database


class SqliteConversations:
    """The `Conversations` facet."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def create(self, workspace: str, conversation: ConversationInfo, project: Project) -> ConversationInfo:
        """Create a conversation and, where missing, its workspace and project."""
        return await self._database.write(lambda connection: _create(connection, workspace, conversation, project))

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


def get(connection: Connection, workspace: str, conversation_id: str) -> ConversationInfo | None:
    """Read one conversation of a workspace."""
    row = connection.row(
        SELECT_CONVERSATION + "where w.name = ? and c.uuid = ? and c.status <> 'removed'",
        (workspace, conversation_id),
    )
    return None if row is None else conversation_of(row)


def key_of(connection: Connection, workspace: str, conversation_id: str) -> int:
    """Return the key of a conversation that can be seen, or raise `NotFoundError`."""
    key = connection.value(
        """
        select pk from conversation
        where workspace_pk = (select pk from workspace where name = ?) and uuid = ? and status <> 'removed'
        """,
        (workspace, conversation_id),
    )
    if key is None:
        msg = f"there is no conversation {conversation_id!r} in workspace {workspace!r}: `recollect conversations` lists them"
        raise NotFoundError(msg)
    return int(key)


def ancestors(connection: Connection, conversation_pk: int) -> list[Ancestor]:
    """Return who shows which turns of a conversation's history, oldest first."""
    chain = connection.rows(
        """
        with recursive chain (pk, uuid, from_turn, parent_pk, depth) as (
            select pk, uuid, from_turn, parent_pk, 0 from conversation where pk = ?
            union all
            select c.pk, c.uuid, c.from_turn, c.parent_pk, depth + 1
            from chain join conversation c on c.pk = chain.parent_pk where depth < ?
        )
        select pk, uuid, case when parent_pk is null then null else from_turn end from chain order by depth
        """,
        (conversation_pk, BRANCH_DEPTH_MAX),
    )
    return lineage([(row[0], row[1], row[2]) for row in chain])


def _workspace_key(connection: Connection, workspace: str) -> int:
    key = connection.value("select pk from workspace where name = ?", (workspace,))
    if key is None:
        key = checked_workspace(connection.inserted("insert into workspace (name) values (?)", (workspace,)))
    return int(key)


def _project_key(connection: Connection, workspace_pk: int, project: Project) -> int:
    key = connection.value("select pk from project where workspace_pk = ? and uuid = ?", (workspace_pk, project.id))
    if key is not None:
        return int(key)
    number = int(connection.value("select coalesce(max(number), 0) + 1 from project where workspace_pk = ?", (workspace_pk,)))
    return connection.inserted(
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


def _create(connection: Connection, workspace: str, conversation: ConversationInfo, project: Project) -> ConversationInfo:
    existing = get(connection, workspace, conversation.id)
    if existing is not None:
        return existing
    workspace_pk = _workspace_key(connection, workspace)
    project_pk = _project_key(connection, workspace_pk, project)
    number = int(connection.value("select coalesce(max(number), 0) + 1 from conversation where project_pk = ?", (project_pk,)))
    parent_pk = None
    if conversation.branch_of is not None:
        parent_pk = connection.value(
            "select pk from conversation where workspace_pk = ? and uuid = ?", (workspace_pk, conversation.branch_of)
        )
    key = connection.inserted(
        """
        insert into conversation (workspace_pk, project_pk, number, uuid, title, tags, status, summary, agent, external_id, cwd, created_at,
            updated_at, turn_count, message_count, next_index, next_sequence, next_passage, branch_of, parent_pk, from_turn, checksum)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, 0, 0, 0, 0, ?, ?, ?, 0)
        """,
        (
            workspace_pk,
            project_pk,
            checked("conversations in a project", number, CONVERSATIONS_PER_PROJECT_MAX),
            conversation.id,
            conversation.title,
            as_json(conversation.tags),
            conversation.status,
            conversation.summary,
            conversation.agent,
            conversation.external_id,
            conversation.cwd,
            iso(conversation.created_at),
            iso(conversation.updated_at),
            conversation.branch_of,
            parent_pk,
            conversation.from_turn,
        ),
    )
    recount(connection, key)
    return _sealed(connection, workspace, conversation.id)


def _sealed(connection: Connection, workspace: str, conversation_id: str) -> ConversationInfo:
    """Write the checksum of a conversation as it now stands, and return it."""
    conversation = get(connection, workspace, conversation_id)
    if conversation is None:
        msg = f"conversation {conversation_id!r} vanished while it was written"
        raise NotFoundError(msg)
    connection.run(
        "update conversation set checksum = ? where uuid = ? and workspace_pk = (select pk from workspace where name = ?)",
        (checksum(conversation), conversation_id, workspace),
    )
    return conversation


def recount(connection: Connection, conversation_pk: int) -> None:
    """Count again what a conversation shows, and where it goes on; an index is never given out twice."""
    turns = messages = next_index = next_sequence = 0
    for ancestor in ancestors(connection, conversation_pk):
        row = connection.row(
            """
            select count(distinct t.pk), count(m.pk), coalesce(max(t.turn_index), -1) + 1, coalesce(max(m.sequence), -1) + 1
            from turn t left join message m on m.turn_pk = t.pk where conversation_pk = ? and (?2 is null or turn_index <= ?2)
            """,
            (ancestor.key, ancestor.last_index),
        )
        if row is not None:
            turns, messages = turns + row[0], messages + row[1]
            next_index, next_sequence = max(next_index, row[2]), max(next_sequence, row[3])
    connection.run(
        """
        update conversation set turn_count = ?2, message_count = ?3, next_index = max(next_index, ?4),
            next_sequence = max(next_sequence, ?5)
        where pk = ?1
        """,
        (conversation_pk, turns, messages, next_index, next_sequence),
    )


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
    return _sealed(connection, workspace, conversation_id)


def _find(connection: Connection, workspace: str, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
    rows = connection.rows(
        SELECT_CONVERSATION
        + """
        where w.name = ?1 and c.status <> 'removed'
            and (?2 is null or c.status = ?2)
            and (?3 is null or p.uuid = ?3)
            and (?4 is null or c.agent = ?4)
            and (?5 is null or c.updated_at < ?5)
            and (?6 is null or exists (
                select 1 from json_each(c.tags) tag where tag.value in (select value from json_each(?6))))
        order by c.updated_at desc, c.pk desc limit ?7
        """,
        (
            workspace,
            where.status,
            where.project_id,
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


def remove(connection: Connection, workspace: str, conversation_ids: list[str], *, keep_inherited: bool) -> Forgotten:
    """Remove conversations; a parent whose turns a branch still shows stays behind, unseen, with those turns alone."""
    removed = Forgotten()
    for conversation_id in conversation_ids:
        row = connection.row(
            """
            select c.pk, c.parent_pk from conversation c join workspace w on w.pk = c.workspace_pk
            where w.name = ? and c.uuid = ? and c.status <> 'removed'
            """,
            (workspace, conversation_id),
        )
        if row is None:
            continue
        key, parent_pk = int(row[0]), row[1]
        before = connection.value("select count(*) from turn where conversation_pk = ?", (key,))
        heirs = [child[0] for child in connection.rows("select pk from conversation where parent_pk = ?", (key,))]
        if heirs and keep_inherited:
            connection.run(
                """
                update conversation set status = 'removed', title = null, tags = '[]', summary = null, agent = null, external_id = null,
                    cwd = null, last_message = null where pk = ?
                """,
                (key,),
            )
            _trim(connection, key)
            kept = connection.value("select count(*) from turn where conversation_pk = ?", (key,))
        else:
            connection.run("delete from conversation where pk = ?", (key,))
            kept = 0
            for heir in heirs:
                recount_below(connection, heir)
        _trim_unseen(connection, parent_pk)
        removed = Forgotten(conversations=removed.conversations + 1, turns=removed.turns + before - kept)
    drop_unused(connection)
    return removed


def recount_below(connection: Connection, conversation_pk: int) -> None:
    """Count again in a conversation and in every branch below it."""
    rows = connection.rows(
        """
        with recursive below (pk) as (
            select ? union select c.pk from below join conversation c on c.parent_pk = below.pk
        )
        select pk from below
        """,
        (conversation_pk,),
    )
    for row in rows:
        recount(connection, row[0])


def _trim(connection: Connection, conversation_pk: int) -> None:
    """Delete the turns of a conversation that no branch shows."""
    connection.run(
        """
        delete from turn where conversation_pk = ?1
            and turn_index > (select coalesce(max(from_turn), -1) from conversation where parent_pk = ?1)
        """,
        (conversation_pk,),
    )


def _trim_unseen(connection: Connection, conversation_pk: int | None) -> None:
    """Go up from a removed branch: an unseen parent keeps only what other branches still show, or goes too."""
    while conversation_pk is not None:
        row = connection.row("select status, parent_pk from conversation where pk = ?", (conversation_pk,))
        if row is None or row[0] != "removed":
            return
        if connection.value("select count(*) from conversation where parent_pk = ?", (conversation_pk,)):
            _trim(connection, conversation_pk)
            return
        connection.run("delete from conversation where pk = ?", (conversation_pk,))
        conversation_pk = row[1]


def drop_unused(connection: Connection) -> None:
    """Delete code files that nothing names any more: a path can be a secret, too."""
    connection.run(
        """
        delete from code_file where not exists (select 1 from access where code_file_pk = code_file.pk)
            and not exists (select 1 from context_file where code_file_pk = code_file.pk)
            and not exists (select 1 from code_change where code_file_pk = code_file.pk)
            and not exists (select 1 from scope where code_file_pk = code_file.pk)
        """,
    )
