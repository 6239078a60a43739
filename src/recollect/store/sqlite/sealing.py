"""A conversation created, read, and sealed with its checksum: shared by the facets of the SQLite store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import iso
from recollect.errors import NotFoundError, TooLargeError
from recollect.limits import BRANCH_DEPTH_MAX, CONVERSATIONS_PER_PROJECT_MAX, PROJECTS_PER_WORKSPACE_MAX
from recollect.placing import checksum
from recollect.store.sqlite.lineage import ancestors, recount
from recollect.store.sqlite.numbering import checked, checked_workspace
from recollect.store.sqlite.rows import SELECT_CONVERSATION, as_json, conversation_of
from recollect.store.sqlite.writing import retell

if TYPE_CHECKING:
    from recollect.model import ConversationInfo, Project
    from recollect.store.sqlite.database import Connection


def get(connection: Connection, workspace: str, conversation_id: str) -> ConversationInfo | None:
    """Read one conversation of a workspace."""
    row = connection.row(
        SELECT_CONVERSATION + "where w.name = ? and c.uuid = ?",
        (workspace, conversation_id),
    )
    return None if row is None else conversation_of(row)


def sealed(connection: Connection, workspace: str, conversation_id: str) -> ConversationInfo:
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


def create(connection: Connection, workspace: str, conversation: ConversationInfo, project: Project, *, inherits: bool) -> ConversationInfo:
    """Create a conversation; as a branch it inherits its parent's turns, unless it brings them along."""
    existing = get(connection, workspace, conversation.id)
    if existing is not None:
        return existing
    workspace_pk = _workspace_key(connection, workspace)
    project_pk = _project_key(connection, workspace_pk, project)
    number = int(connection.value("select coalesce(max(number), 0) + 1 from conversation where project_pk = ?", (project_pk,)))
    parent_pk = None
    if conversation.branch_of is not None and inherits:
        parent_pk = connection.value(
            "select pk from conversation where workspace_pk = ? and uuid = ?", (workspace_pk, conversation.branch_of)
        )
        if parent_pk is not None and len(ancestors(connection, parent_pk)) >= BRANCH_DEPTH_MAX:
            msg = f"branches are at most {BRANCH_DEPTH_MAX} deep: export conversation {conversation.branch_of} and import it as a new one"
            raise TooLargeError(msg)
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
    if parent_pk is not None:
        retell(connection, key)
    return sealed(connection, workspace, conversation.id)
