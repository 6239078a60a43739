from __future__ import annotations

import msgspec

from recollect import messages_to_turns
from recollect.answers import to_json
from recollect.placing import Head, checksum, place_turns, unplaced
from tests.kit import START, said


def test_ids_follow_from_the_conversation_and_the_index_or_request() -> None:
    turns = messages_to_turns(said("a", "b", "c"), now=START)
    head = Head(conversation_id="c1", next_index=4, next_sequence=9)
    one, again = place_turns(turns, head), place_turns(turns, head)
    assert one == again
    assert [turn.index for turn in one] == [4, 5]
    assert [m.sequence for turn in one for m in turn.messages] == [9, 10, 11]
    other = place_turns(turns, msgspec.structs.replace(head, conversation_id="c2"))
    assert {turn.id for turn in one}.isdisjoint(turn.id for turn in other)
    requested = [msgspec.structs.replace(turn, request_id="r", request_ordinal=n) for n, turn in enumerate(turns)]
    moved = place_turns(requested, msgspec.structs.replace(head, next_index=77))
    assert [turn.id for turn in moved] == [turn.id for turn in place_turns(requested, head)]


def test_the_hash_of_a_turn_leaves_out_its_times() -> None:
    early = messages_to_turns(said("a", "b"), now=START)[0]
    late = messages_to_turns(said("a", "b"))[0]
    assert early.content_hash == late.content_hash
    assert early.content_hash != messages_to_turns(said("a", "c"))[0].content_hash


def test_a_checksum_sees_every_part_and_not_the_sequence() -> None:
    turn = messages_to_turns(
        [*said("a"), {"role": "assistant", "tool_calls": [{"name": "ls", "arguments": {"path": "x"}, "result": "y"}]}], now=START
    )[0]
    base = checksum(turn)
    moved = msgspec.structs.replace(turn, messages=tuple(msgspec.structs.replace(m, sequence=m.sequence + 5) for m in turn.messages))
    assert checksum(moved) == base
    call = turn.tool_calls[0]
    for damaged in (
        msgspec.structs.replace(turn, index=3),
        msgspec.structs.replace(turn, messages=turn.messages[:1]),
        msgspec.structs.replace(turn, tool_calls=(msgspec.structs.replace(call, tool_name="lt"),)),
        msgspec.structs.replace(turn, tool_calls=(msgspec.structs.replace(call, accessed=()),)),
    ):
        assert checksum(damaged) != base


def test_unplaced_turns_can_be_placed_again() -> None:
    turn = messages_to_turns([*said("a"), {"role": "assistant", "content": "b", "tool_calls": [{"name": "ls"}]}], now=START)[0]
    again = place_turns([unplaced(turn)], Head(conversation_id=""))[0]
    assert again == turn


def test_a_turn_in_json_has_its_user_and_assistant() -> None:
    plain = to_json(messages_to_turns(said("a", "b"), now=START))
    assert (plain[0]["user"], plain[0]["assistant"], plain[0]["started_at"]) == ("a", "b", "2026-03-02T09:00:00Z")
