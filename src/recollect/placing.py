"""Where a turn stands: its index, the ids and sequences that follow from it, and the hashes that prove it; pure.

Both stores call this inside the transaction that knows the head of the conversation, so both give the same ids.
"""

from __future__ import annotations

from hashlib import sha256
from zlib import crc32

import msgspec

from recollect.identity import HASH_PREFIX, identity, part_identity
from recollect.model import ConversationInfo, Insight, Message, Node, Scope, Summary, ToolCall, Turn

_replace = msgspec.structs.replace


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Where a conversation goes on: the index and the message sequence that come next."""

    conversation_id: str
    next_index: int = 0
    next_sequence: int = 0


def turn_id(conversation_id: str, request_id: str | None, ordinal: int, index: int) -> str:
    """Return the id of a turn: by its request where it has one, else by its index."""
    if request_id is not None:
        return identity("turn", conversation_id, "request", request_id, ordinal)
    return identity("turn", conversation_id, "index", index)


def place_turns(turns: list[Turn], head: Head) -> list[Turn]:
    """Give turns that follow the head their index, ids, sequences and hash."""
    placed: list[Turn] = []
    index, sequence = head.next_index, head.next_sequence
    for turn in turns:
        placed.append(place_turn(turn, head.conversation_id, index, sequence))
        index += 1
        sequence += len(turn.messages)
    return placed


def place_turn(turn: Turn, conversation_id: str, index: int, sequence: int) -> Turn:
    """Give one turn its place; every id below it follows from the turn's."""
    own_id = turn_id(conversation_id, turn.request_id, turn.request_ordinal, index)
    messages = tuple(
        _replace(message, id=part_identity("message", own_id, n), sequence=sequence + n) for n, message in enumerate(turn.messages)
    )
    by_place = {str(n): message.id for n, message in enumerate(messages)}
    return _replace(
        turn,
        id=own_id,
        conversation_id=conversation_id,
        index=index,
        messages=messages,
        tool_calls=tuple(_place_call(call, own_id, n, by_place) for n, call in enumerate(turn.tool_calls)),
        context_files=tuple(_replace(part, id=part_identity("context_file", own_id, n)) for n, part in enumerate(turn.context_files)),
        changes=tuple(_replace(part, id=part_identity("code_change", own_id, n)) for n, part in enumerate(turn.changes)),
        checkpoints=tuple(_replace(part, id=part_identity("checkpoint", own_id, n)) for n, part in enumerate(turn.checkpoints)),
        content_hash=turn_hash(turn),
    )


def _place_call(call: ToolCall, own_id: str, order: int, by_place: dict[str, str]) -> ToolCall:
    call_id = part_identity("tool_call", own_id, order)
    result = call.result
    return _replace(
        call,
        id=call_id,
        order=order,
        message_id=by_place.get(call.message_id) if call.message_id is not None else None,
        result=_replace(result, id=part_identity("tool_result", call_id, 0)) if result is not None else None,
    )


def unplaced(turn: Turn) -> Turn:
    """Return a turn whose tool calls name their messages by place again, ready to be placed anew."""
    places = {message.id: str(n) for n, message in enumerate(turn.messages)}
    calls = tuple(_replace(call, message_id=places.get(call.message_id or "")) for call in turn.tool_calls)
    return _replace(turn, tool_calls=calls)


def turn_hash(turn: Turn) -> str:
    """Hash what a turn says, without its times and ids, so that the same turn sent again is recognised."""
    said = (
        turn.request_id,
        turn.request_ordinal,
        turn.status,
        [(m.role, m.content_hash, m.source_hash, m.reasoning, m.token_count) for m in turn.messages],
        [
            (
                c.tool_call_id,
                c.tool_name,
                c.arguments_hash,
                c.status,
                c.duration_ms,
                None if c.result is None else (c.result.content_hash, c.result.error, c.result.success),
            )
            for c in turn.tool_calls
        ],
        [(f.file_path, f.line_start, f.line_end, f.usefulness, f.source, f.symbols, f.content_hash) for f in turn.context_files],
        [
            (c.file_path, c.change_type, c.change_summary, c.git_commit, c.line_start, c.line_end, c.function_name, c.lines_added,
             c.lines_removed, c.code_before_hash, c.code_after_hash, c.diff, c.severity, c.tool_call_id)
            for c in turn.changes
        ],
        [(c.checkpoint_id, c.git_hash, c.parent_checkpoint, c.workspace_dir) for c in turn.checkpoints],
        (turn.model, turn.chat_mode, turn.finish_reason, turn.request_attempt_id, turn.base_chat_id, turn.related_artifacts),
    )  # fmt: skip
    return HASH_PREFIX + sha256(msgspec.msgpack.encode(said)).hexdigest()


def checksum(node: Turn | ConversationInfo | Summary | Insight | Scope) -> int:
    """Return a number that any damage to the stored node, or to any part stored below it, would change.

    A conversation's counts, last message and time of change are left out, because each turn moves them; so are the
    sequences of messages, which move when an earlier turn is replaced by a longer one.
    """
    covered: Node = node
    if isinstance(node, Turn):
        covered = _replace(node, messages=tuple(_replace(message, sequence=n) for n, message in enumerate(node.messages)))
    if isinstance(node, ConversationInfo):
        covered = _replace(node, updated_at=node.created_at, turn_count=0, message_count=0, last_message=None, project="")
    return crc32(msgspec.msgpack.encode(covered))


def outline(messages: tuple[Message, ...]) -> list[tuple[str, str]]:
    """Return what makes a message recognisable in a history: who spoke, and the hash of what was said."""
    return [(message.role, message.content_hash) for message in messages if message.role not in {"system", "developer"}]
