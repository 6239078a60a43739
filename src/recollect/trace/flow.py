"""A request from its first message to its last: who said what, which tools were called, what they changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import InputError
from recollect.trace.answers import Flow, Step, TracedCall
from recollect.trace.making import maker
from recollect.trace.why import by_usefulness

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import ConversationInfo, Message, ToolCall, Turn
    from recollect.store import Store
    from recollect.store.traced import TraceScope


async def flow(store: Store, workspace: str, where: TraceScope, request_id: str) -> Flow | None:
    """Return the flow of a request over all its turns, or of one turn by its own id; None when there is neither.

    `InputError` when several projects have a request of this id, since each counts its own.
    """
    found = [turn_id for turn_id, _ in await store.trace.request(workspace, where, [request_id])]
    turns = await store.turns.by_id(workspace, found or [request_id])
    owners = [await store.conversations.get(workspace, one) for one in dict.fromkeys(turn.conversation_id for turn in turns)]
    known = [one for one in owners if one is not None and (where.project_ids is None or one.project_id in where.project_ids)]
    if len({one.project_id for one in known}) > 1:
        msg = f"several projects have a request {request_id[:80]!r}: say which one is meant, of {_names(known)}"
        raise InputError(msg)
    return _flow(turns) if known else None


def _names(known: Sequence[ConversationInfo]) -> str:
    return ", ".join(sorted({one.project for one in known}))


def _flow(turns: Sequence[Turn]) -> Flow:
    return Flow(
        request_id=turns[0].request_id,
        conversation_id=turns[-1].conversation_id,
        turn_ids=tuple(turn.id for turn in turns),
        status=turns[-1].status,
        steps=tuple(_step(turn, message) for turn in turns for message in turn.messages),
        context_files=by_usefulness(part for turn in turns for part in turn.context_files),
        changes=tuple(change for turn in turns for change in turn.changes if maker(turn, change) is None),
        checkpoints=tuple(part for turn in turns for part in turn.checkpoints),
    )


def _step(turn: Turn, message: Message) -> Step:
    return Step(
        sequence=message.sequence,
        role=message.role,
        text=message.text,
        reasoning=message.reasoning,
        timestamp=message.timestamp,
        tool_calls=tuple(_call(turn, call) for call in turn.calls_of(message)),
    )


def _call(turn: Turn, call: ToolCall) -> TracedCall:
    result = call.result
    return TracedCall(
        id=call.id, tool_call_id=call.tool_call_id, tool_name=call.tool_name, arguments=call.arguments, status=call.status,
        duration_ms=call.duration_ms, result=None if result is None else result.result, error=None if result is None else result.error,
        accessed=call.accessed, changes=tuple(change for change in turn.changes if maker(turn, change) is call),
    )  # fmt: skip
