"""Who shows which turns, where a conversation goes on, and how much it holds: shared by the facets of the SQLite store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import NotFoundError
from recollect.limits import BRANCH_DEPTH_MAX
from recollect.store.recording import Ancestor, lineage

if TYPE_CHECKING:
    from recollect.store.sqlite.database import Connection


def key_of(connection: Connection, workspace: str, conversation_id: str) -> int:
    """Return the key of a conversation that can be seen, or raise `NotFoundError`."""
    key = connection.value(
        """
        select pk from conversation
        where workspace_pk = (select pk from workspace where name = ?) and uuid = ?
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
