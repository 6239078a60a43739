"""Turns and all their parts in SQLite: queries and row mapping."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from recollect.clock import iso
from recollect.placing import Head, place_turn
from recollect.store.integrity import in_order, intact
from recollect.store.protocol import Outcome, Outline, PlacedCall, Recording, TurnOutline
from recollect.store.recording import KnownTurn, Situation, checked_span, last_message, plan
from recollect.store.sqlite.lineage import ancestors, key_of, recount, recount_below
from recollect.store.sqlite.removal import forget_before, remove
from recollect.store.sqlite.rows import SELECT_TURN, as_json, read_turns
from recollect.store.sqlite.sealing import create, sealed
from recollect.store.sqlite.writing import Target, delete_turns, insert_turn, retell, shift_sequences, target_of

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import ConversationInfo, Forgotten, Project, Turn
    from recollect.store.protocol import CallFilter, Draft, TurnRange
    from recollect.store.sqlite.database import Connection, Database


class SqliteTurns:
    """The `Turns` facet."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def record(self, workspace: str, conversation_id: str, recording: Recording, at: datetime) -> Outcome:
        """Record turns, whole and once."""
        return await self._database.write(lambda connection: _record(connection, workspace, conversation_id, recording, at))

    async def rewrite(self, workspace: str, draft: Draft, was: str, at: datetime) -> Turn | None:
        """Replace a turn in its place, if its content hash is still `was`."""
        return await self._database.write(lambda connection: _rewrite(connection, workspace, draft, was, at))

    async def restore(
        self, workspace: str, conversation: ConversationInfo, project: Project, drafts: tuple[Draft, ...], *, replace: bool
    ) -> ConversationInfo:
        """Create a conversation with all its turns at the places they carry; one that exists is replaced when asked to."""
        return await self._database.write(
            lambda connection: _restore(connection, workspace, conversation, project, drafts, replace=replace)
        )

    async def history(self, workspace: str, conversation_id: str, span: TurnRange) -> list[Turn]:
        """Return whole turns of a conversation's history, ancestors' first."""
        checked_span(span.first, span.last)
        return await self._database.read(lambda connection: _history(connection, workspace, conversation_id, span))

    async def by_id(self, workspace: str, turn_ids: list[str]) -> list[Turn]:
        """Return whole turns by their ids, in the order asked for."""
        return await self._database.read(lambda connection: _by_id(connection, workspace, turn_ids))

    async def outline(self, workspace: str, conversation_id: str, span: TurnRange) -> Outline:
        """Return the outline of a conversation's history, ancestors' first."""
        return await self._database.read(lambda connection: _outline(connection, workspace, conversation_id, span))

    async def calls(self, workspace: str, conversation_id: str, where: CallFilter) -> list[PlacedCall]:
        """Return where the tool calls of a history stand, newest first."""
        return await self._database.read(lambda connection: _find_calls(connection, workspace, conversation_id, where))

    async def forget_before(self, workspace: str, moment: datetime, project_ids: tuple[str, ...] | None) -> Forgotten:
        """Forget the turns that ended before a moment."""
        return await self._database.write(lambda connection: forget_before(connection, workspace, moment, project_ids))


def _record(connection: Connection, workspace: str, conversation_id: str, recording: Recording, at: datetime) -> Outcome:
    target = target_of(connection, workspace, conversation_id)
    decided = plan(_situation(connection, target, conversation_id, recording), recording)
    if decided.status in {"unchanged", "moved"}:
        return Outcome(status=decided.status, turns=decided.insert)
    if decided.remove_ids:
        rows = connection.rows(
            "select pk from turn where conversation_pk = ? and uuid in (select value from json_each(?))",
            (target.key, as_json(decided.remove_ids)),
        )
        delete_turns(connection, [row[0] for row in rows])
    if decided.truncate_from is not None:
        delete_turns(connection, _keys_in(connection, target.key, decided.truncate_from, None, None, newest=False))
        connection.run("update conversation set next_index = 0, next_sequence = 0 where pk = ?", (target.key,))
    if decided.shift_after is not None:
        shift_sequences(connection, target.key, decided.shift_after, decided.shift_by)
    next_passage = target.next_passage
    for turn, draft in zip(decided.insert, recording.drafts, strict=True):
        next_passage = insert_turn(connection, target, turn, draft.passages, next_passage)
    if decided.status == "created" and not recording.keep_places:
        _advance(connection, target.key, decided.insert, next_passage, at)
    else:
        _recounted(connection, target.key, next_passage, at)
    return Outcome(status=decided.status, turns=decided.insert)


def _situation(connection: Connection, target: Target, conversation_id: str, recording: Recording) -> Situation:
    head = Head(conversation_id=conversation_id, next_index=target.next_index, next_sequence=target.next_sequence)
    known: tuple[KnownTurn, ...] = ()
    if recording.request_id is not None:
        known = _known(connection, target.project_pk, recording.request_id)
    if not known and recording.truncate_from is None:
        return Situation(head=head)
    return Situation(
        head=head,
        known=known,
        inherited_to=target.inherited_to,
        forked_at=connection.value("select coalesce(max(from_turn), -1) from conversation where parent_pk = ?", (target.key,)),
        cut_sequence=connection.value(
            """
            select coalesce(min(sequence), ?3) from turn join message on turn_pk = turn.pk where conversation_pk = ?1 and turn_index >= ?2
            """,
            (target.key, recording.truncate_from, head.next_sequence),
        ),
    )


def _known(connection: Connection, project_pk: int, request_id: str) -> tuple[KnownTurn, ...]:
    rows = connection.rows(
        """
        select t.uuid, c.uuid, t.turn_index, t.content_hash, (select coalesce(min(sequence), 0) from message where turn_pk = t.pk),
            (select count(*) from message where turn_pk = t.pk)
        from turn t join conversation c on c.pk = t.conversation_pk
        where t.request_id = ? and c.project_pk = ? order by t.request_ordinal
        """,
        (request_id, project_pk),
    )
    return tuple(
        KnownTurn(id=row[0], conversation_id=row[1], index=row[2], content_hash=row[3], sequence=row[4], message_count=row[5])
        for row in rows
    )


def _restore(
    connection: Connection, workspace: str, conversation: ConversationInfo, project: Project, drafts: tuple[Draft, ...], *, replace: bool
) -> ConversationInfo:
    if replace:
        remove(connection, workspace, [conversation.id], keep_inherited=True)
    create(connection, workspace, conversation, project, inherits=False)
    _record(connection, workspace, conversation.id, Recording(drafts=drafts, keep_places=True), conversation.updated_at)
    return sealed(connection, workspace, conversation.id)


def _advance(connection: Connection, key: int, turns: tuple[Turn, ...], next_passage: int, at: datetime) -> None:
    messages = sum(len(turn.messages) for turn in turns)
    connection.run(
        """
        update conversation set turn_count = turn_count + ?2, message_count = message_count + ?3, next_index = next_index + ?2,
            next_sequence = next_sequence + ?3, next_passage = ?4, updated_at = ?5, last_message = coalesce(?6, last_message)
        where pk = ?1
        """,
        (key, len(turns), messages, next_passage, iso(at), last_message(turns)),
    )


def _recounted(connection: Connection, key: int, next_passage: int, at: datetime) -> None:
    """Count a conversation again after more than an addition at its end."""
    recount(connection, key)
    retell(connection, key)
    connection.run("update conversation set updated_at = ?, next_passage = ? where pk = ?", (iso(at), next_passage, key))


def _rewrite(connection: Connection, workspace: str, draft: Draft, was: str, at: datetime) -> Turn | None:
    turn = draft.turn
    target = target_of(connection, workspace, turn.conversation_id)
    row = connection.row(
        """
        select t.pk, coalesce((select min(sequence) from message where turn_pk = t.pk), ?4),
            (select count(*) from message where turn_pk = t.pk), (select min(number) from passage where turn_pk = t.pk),
            (select max(number) from passage where turn_pk = t.pk)
        from turn t where t.conversation_pk = ?1 and t.uuid = ?2 and t.content_hash = ?3
        """,
        (target.key, turn.id, was, target.next_sequence),
    )
    if row is None:
        return None
    placed = place_turn(turn, turn.conversation_id, turn.index, row[1])
    delete_turns(connection, [row[0]])
    _shift_after(connection, target.key, placed.index, len(placed.messages) - row[2])
    is_last = row[4] == target.first_passage + target.next_passage - 1
    next_passage = row[3] - target.first_passage if is_last else target.next_passage  # the last turn's numbers are used again
    following = insert_turn(connection, target, placed, draft.passages, next_passage)
    _recounted(connection, target.key, max(following, next_passage), at)
    recount_below(connection, target.key)
    return placed


def _shift_after(connection: Connection, key: int, index: int, by: int) -> None:
    """Move the sequences after a turn, in its conversation and in every branch that shows the turn."""
    if by == 0:
        return
    shift_sequences(connection, key, index, by)
    for child in connection.rows("select pk from conversation where parent_pk = ? and from_turn >= ?", (key, index)):
        connection.run("update conversation set next_sequence = next_sequence + ? where pk = ?", (by, child[0]))
        _shift_after(connection, child[0], index, by)


def _history(connection: Connection, workspace: str, conversation_id: str, span: TurnRange) -> list[Turn]:
    keys = _keys_shown(connection, key_of(connection, workspace, conversation_id), span)
    rows = connection.rows(SELECT_TURN + "where t.pk in (select value from json_each(?)) order by turn_index", (as_json(keys),))
    return in_order([intact(turn, stored) for turn, stored in read_turns(connection, rows)], span.first, span.last)


def _keys_shown(connection: Connection, key: int, span: TurnRange) -> list[int]:
    """Return the keys of the turns that a conversation shows in a span."""
    shown = ancestors(connection, key)
    keys: list[int] = []
    for ancestor in reversed(shown) if span.newest else shown:
        wanted = None if span.limit is None else span.limit - len(keys)
        last = min((n for n in (ancestor.last_index, span.last) if n is not None), default=None)
        keys += _keys_in(connection, ancestor.key, span.first, last, wanted, newest=span.newest)
    return keys


def _keys_in(connection: Connection, key: int, first: int, last: int | None, wanted: int | None, *, newest: bool) -> list[int]:
    if newest:
        rows = connection.rows(
            """
            select pk from turn where conversation_pk = ?1 and turn_index >= ?2 and (?3 is null or turn_index <= ?3)
            order by turn_index desc limit ?4
            """,
            (key, first, last, -1 if wanted is None else wanted),
        )
    else:
        rows = connection.rows(
            """
            select pk from turn where conversation_pk = ?1 and turn_index >= ?2 and (?3 is null or turn_index <= ?3)
            order by turn_index limit ?4
            """,
            (key, first, last, -1 if wanted is None else wanted),
        )
    return [row[0] for row in rows]


def _by_id(connection: Connection, workspace: str, turn_ids: list[str]) -> list[Turn]:
    rows = connection.rows(
        SELECT_TURN + "join workspace w on w.pk = c.workspace_pk where w.name = ? and t.uuid in (select value from json_each(?))",
        (workspace, as_json(turn_ids)),
    )
    found = {turn.id: intact(turn, stored) for turn, stored in read_turns(connection, rows)}
    return [found[turn_id] for turn_id in turn_ids if turn_id in found]


def _outline(connection: Connection, workspace: str, conversation_id: str, span: TurnRange) -> Outline:
    key = key_of(connection, workspace, conversation_id)
    next_index, next_sequence = connection.row("select next_index, next_sequence from conversation where pk = ?", (key,)) or (0, 0)
    rows = connection.rows(
        """
        select t.uuid, c.uuid, turn_index, request_id, t.content_hash,
            (select count(*) + count(tool_call_pk) from tool_call left join tool_result on tool_call_pk = pk where turn_pk = t.pk),
            role, m.content_hash
        from turn t join conversation c on c.pk = t.conversation_pk
            left join message m on m.turn_pk = t.pk and role not in ('system', 'developer')
        where t.pk in (select value from json_each(?)) order by turn_index, sequence
        """,
        (as_json(_keys_shown(connection, key, span)),),
    )
    found: list[TurnOutline] = []
    for head, said in groupby(rows, key=lambda row: row[:6]):
        words = tuple((row[6], row[7]) for row in said if row[6] is not None)
        found.append(
            TurnOutline(
                id=head[0], conversation_id=head[1], index=head[2], request_id=head[3], content_hash=head[4], steps=head[5], said=words
            )
        )
    return Outline(next_index=next_index, next_sequence=next_sequence, turns=tuple(found))


def _find_calls(connection: Connection, workspace: str, conversation_id: str, where: CallFilter) -> list[PlacedCall]:
    found: list[PlacedCall] = []
    for ancestor in reversed(ancestors(connection, key_of(connection, workspace, conversation_id))):
        rows = connection.rows(
            """
            select turn_index, call_order from turn t join tool_call on tool_call.turn_pk = t.pk
            where conversation_pk = ?1 and (?2 is null or turn_index <= ?2) and (?3 is null or tool_name = ?3)
                and (?4 is null or tool_call.status = ?4)
            order by turn_index desc, call_order desc limit ?5
            """,
            (
                ancestor.key,
                ancestor.last_index,
                where.tool_name,
                None if where.success is None else ("success" if where.success else "failed"),
                where.limit - len(found),
            ),
        )
        found += [PlacedCall(turn_index=row[0], order=row[1]) for row in rows]
    return found
