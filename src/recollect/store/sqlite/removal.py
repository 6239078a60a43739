"""Conversations and turns removed, with all that hangs from them; what a branch still shows is handed over to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.clock import iso
from recollect.model import Forgotten, Passage
from recollect.placing import place_turn, unplaced
from recollect.store.recording import chosen_heir
from recollect.store.sqlite.lineage import recount, recount_below
from recollect.store.sqlite.rows import SELECT_TURN, as_json, read_turns
from recollect.store.sqlite.sealing import sealed
from recollect.store.sqlite.writing import delete_turns, insert_turn, retell, target_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from recollect.store.sqlite.database import Connection


def remove(connection: Connection, workspace: str, conversation_ids: list[str], *, keep_inherited: bool) -> Forgotten:
    """Remove conversations; the turns that branches show go to the branch that shows the most of them, when they are kept."""
    conversations = turns = 0
    for conversation_id in conversation_ids:
        row = connection.row(
            "select pk from conversation where workspace_pk = (select pk from workspace where name = ?) and uuid = ?",
            (workspace, conversation_id),
        )
        if row is None:
            continue
        key = int(row[0])
        turns += connection.value("select count(*) from turn where conversation_pk = ?", (key,))
        heirs = [(child[0], child[1]) for child in connection.rows("select pk, from_turn from conversation where parent_pk = ?", (key,))]
        if heirs and keep_inherited:
            turns -= _hand_over(connection, workspace, key, chosen_heir(heirs))
        _adopt(connection, key)
        delete_turns(connection, [row[0] for row in connection.rows("select pk from turn where conversation_pk = ?", (key,))])
        connection.run("delete from conversation where pk = ?", (key,))
        for heir, _ in heirs:
            recount_below(connection, heir)
            retell(connection, heir)
            sealed(connection, workspace, connection.value("select uuid from conversation where pk = ?", (heir,)))
        conversations += 1
    _drop_unused(connection)
    return Forgotten(conversations=conversations, turns=turns)


def _adopt(connection: Connection, key: int) -> None:
    """Let the branches of a conversation that goes fork from its own parent, where they forked or where it did."""
    connection.run(
        """
        update conversation set
            from_turn = (select case when p.parent_pk is null then null else min(conversation.from_turn, p.from_turn) end
                from conversation p where p.pk = ?1),
            branch_of = (select case when p.parent_pk is null then null else p.branch_of end from conversation p where p.pk = ?1),
            parent_pk = (select p.parent_pk from conversation p where p.pk = ?1)
        where parent_pk = ?1
        """,
        (key,),
    )


def _hand_over(connection: Connection, workspace: str, key: int, heir: int) -> int:
    """Give a conversation's turns up to the fork to a branch, under ids that follow from it; other branches now fork from it."""
    heir_id, last = connection.row("select uuid, from_turn from conversation where pk = ?", (heir,)) or ("", -1)
    rows = connection.rows(SELECT_TURN + "where c.pk = ? and turn_index <= ? order by turn_index", (key, last))
    passages = {row[0]: _passages(connection, row[0]) for row in rows}
    turns = [turn for turn, _ in read_turns(connection, rows)]
    delete_turns(connection, [row[0] for row in rows])
    target = target_of(connection, workspace, heir_id)
    next_passage = target.next_passage
    for row, turn in zip(rows, turns, strict=True):
        placed = place_turn(unplaced(turn), heir_id, turn.index, turn.first_sequence)
        next_passage = insert_turn(connection, target, placed, passages[row[0]], next_passage)
    connection.run("update conversation set next_passage = ? where pk = ?", (next_passage, heir))
    connection.run("update conversation set parent_pk = ?2, branch_of = ?3 where parent_pk = ?1 and pk <> ?2", (key, heir, heir_id))
    return len(rows)


def _passages(connection: Connection, turn_pk: int) -> tuple[Passage, ...]:
    rows = connection.rows("select part, ordinal, start, end, terms from passage where turn_pk = ? order by number", (turn_pk,))
    return tuple(Passage(part=row[0], ordinal=row[1], start=row[2], end=row[3], terms=row[4]) for row in rows)


def forget_before(connection: Connection, workspace: str, moment: datetime, project_ids: tuple[str, ...] | None) -> Forgotten:
    """Forget the turns that ended before a moment, and the conversations this leaves empty."""
    rows = connection.rows(
        """
        select t.pk, c.pk from turn t join conversation c on c.pk = t.conversation_pk join workspace w on w.pk = c.workspace_pk
            join project p on p.pk = c.project_pk
        where w.name = ?1 and (?2 is null or p.uuid in (select value from json_each(?2))) and coalesce(t.ended_at, t.started_at) < ?3
        """,
        (workspace, None if project_ids is None else as_json(project_ids), iso(moment)),
    )
    delete_turns(connection, [row[0] for row in rows])
    emptied = 0
    for key in sorted(_with_branches(connection, dict.fromkeys(row[1] for row in rows)), reverse=True):  # branches before their parents
        recount(connection, key)
        shows = connection.value("select turn_count from conversation where pk = ?", (key,))
        if shows or connection.value("select count(*) from conversation where parent_pk = ?", (key,)):
            retell(connection, key)
        else:
            connection.run("delete from conversation where pk = ?", (key,))
            emptied += 1
    _drop_unused(connection)
    return Forgotten(conversations=emptied, turns=len(rows))


def _with_branches(connection: Connection, keys: Iterable[int]) -> set[int]:
    rows = connection.rows(
        """
        with recursive below (pk) as (
            select value from json_each(?) union select c.pk from below join conversation c on c.parent_pk = below.pk
        )
        select pk from below
        """,
        (as_json(list(keys)),),
    )
    return {row[0] for row in rows}


def _drop_unused(connection: Connection) -> None:
    """Delete code files and projects that nothing names any more: a path can be a secret, too."""
    connection.run(
        """
        delete from code_file where not exists (select 1 from access where code_file_pk = code_file.pk)
            and not exists (select 1 from context_file where code_file_pk = code_file.pk)
            and not exists (select 1 from code_change where code_file_pk = code_file.pk)
            and not exists (select 1 from scope where code_file_pk = code_file.pk)
        """,
    )
    connection.run(
        """
        delete from project where not exists (select 1 from conversation where project_pk = project.pk)
            and not exists (select 1 from scope where project_pk = project.pk)
        """,
    )
