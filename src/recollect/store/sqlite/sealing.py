"""A conversation read, and sealed with its checksum: shared by the facets of the SQLite store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.placing import checksum
from recollect.store.sqlite.rows import SELECT_CONVERSATION, conversation_of

if TYPE_CHECKING:
    from recollect.model import ConversationInfo
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
