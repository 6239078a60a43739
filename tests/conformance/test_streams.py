"""A request may come in pieces: kept from the first, in any order, each as often as it likes, replaceable, closed once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from recollect.answers import to_json
from recollect.capture.sketch import Piece
from recollect.clock import CountedIds, ManualClock
from recollect.errors import ConflictError, InputError, NotFoundError, TooLargeError
from recollect.identity import content_hash
from recollect.memory import Memory
from recollect.model import Turn
from recollect.settings import Settings
from recollect.store import Store
from tests.kit import SOAK, OpenMemory, configured

Sent = tuple[Piece, dict[str, Any]]
HEAD: dict[str, Any] = {"project_id": "shop", "chat_meta": {"chat_id": "c1", "chat_mode": "AGENT"}, "timestamp": "2026-03-02T09:00:00Z"}
HOUR = 3_600


def says(sequence: int, content: str, role: str = "", **more: Any) -> Sent:
    role = role or ("assistant" if sequence % 2 else "user")
    return "messages", {"messages": [{"role": role, "content": content, "sequence": sequence, **more}]}


EVERY_PIECE: list[Sent] = [
    says(0, "Fix login"),
    says(1, "I look"),
    ("context", {"context_files": [{"file_path": "a.py", "usefulness": 0.9}]}),
    ("tool-calls", {"tool_calls": [{"id": "t1", "name": "cat", "arguments": {"paths": "a.py"}, "message_sequence": 1}]}),
    ("tool-results", {"tool_results": [{"tool_call_id": "t1", "content": "x = 1", "success": True, "duration_ms": 4}]}),
    ("code-changes", {"code_changes": [{"file_path": "a.py", "tool_call_id": "t1", "lines_added": 3}]}),
    ("checkpoints", {"checkpoints": [{"git_hash": "ae09"}]}),
    ("model-response", {"model": "m", "finish_reason": "stop"}),
]


async def stream(memory: Memory, request_id: str, pieces: list[Sent], head: dict[str, Any] | None = None) -> None:
    await memory.requests.start(request_id, HEAD if head is None else head)
    for piece, body in pieces:
        await memory.requests.add(request_id, piece, body)


async def turns_of(memory: Memory, request_id: str) -> list[Turn]:
    flow = await memory.flow(request_id)
    return await memory.store.turns.by_id(memory.workspace, list(flow.turn_ids))


async def turn_of(memory: Memory, request_id: str = "r") -> Turn:
    turns = await turns_of(memory, request_id)
    assert len(turns) == 1
    return turns[0]


_PLACED = {"id", "conversation_id", "message_id", "timestamp", "started_at", "ended_at", "index", "content_hash", "order", "sequence"}


def without_place(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_place(item) for key, item in cast("dict[str, Any]", value).items() if key not in _PLACED}
    return [without_place(item) for item in cast("list[Any]", value)] if isinstance(value, list | tuple) else value


def told(turn: Turn) -> dict[str, Any]:
    """Return what a turn says, wherever it stands; its parts beside the messages have no order of their own."""
    plain = without_place(to_json(turn))
    places = {message.id: n for n, message in enumerate(turn.messages)}
    plain["tool_calls"] = [
        {**one, "place": places.get(call.message_id or "")} for one, call in zip(plain["tool_calls"], turn.tool_calls, strict=True)
    ]
    plain["messages"] = [{**one, "hash": message.content_hash} for one, message in zip(plain["messages"], turn.messages, strict=True)]
    return plain | {name: sorted(plain[name], key=repr) for name in ("tool_calls", "context_files", "changes", "checkpoints")}


# From the first piece on


async def test_a_request_is_there_and_open_from_its_start(memory: Memory) -> None:
    begun = await memory.requests.start("r", HEAD)
    assert (begun.status, begun.request_id, len(begun.turn_ids)) == ("created", "r", 1)
    turn = await turn_of(memory)
    assert (turn.status, turn.request_id, turn.chat_mode) == ("open", "r", "AGENT")
    info = (await memory.list_conversations())[0]
    assert (info.id, info.project, info.external_id) == (begun.conversation_id, "shop", "c1")
    assert (await memory.flow("r")).status == "open"


async def test_every_piece_is_stored_before_it_is_acknowledged(memory: Memory, reopen: OpenMemory) -> None:
    await memory.requests.start("r", HEAD)
    other = await reopen()
    for sequence, text in enumerate(["Fix login", "I look", "and again"]):
        await memory.requests.add("r", *says(sequence, text, "assistant" if sequence else "user"))
        assert [message.content for message in (await turn_of(other)).messages][-1] == text
    assert (await turn_of(other)).status == "open"
    assert (await other.search("Fix login")).hits[0].question == "Fix login"
    assert (await other.verify()).status == "intact"


async def test_a_stream_goes_on_after_a_restart(memory: Memory, reopen: OpenMemory) -> None:
    await stream(memory, "r", [says(0, "Fix login")])
    after = await reopen()
    await after.requests.add("r", *says(1, "Done"))
    again = await reopen()
    assert (await again.requests.start("r", HEAD)).status == "unchanged"
    done = await again.requests.finalize("r")
    assert done.status == "replaced"
    turn = await turn_of(memory)
    assert (turn.status, turn.user, turn.assistant) == ("complete", "Fix login", "Done")


async def test_without_a_time_of_its_own_a_request_began_when_it_was_started(memory: Memory, clock: ManualClock) -> None:
    began = clock.now()
    await memory.requests.start("r", {"project_id": "shop"})
    clock.advance(60)
    await memory.requests.add("r", *says(0, "Fix login"))
    clock.advance(60)
    await memory.requests.finalize("r")
    assert (await turn_of(memory)).started_at == began


# Each piece once, however often it is sent


async def test_every_piece_is_idempotent(memory: Memory) -> None:
    await stream(memory, "r", EVERY_PIECE)
    before = await turn_of(memory)
    for piece, body in [*EVERY_PIECE, *reversed(EVERY_PIECE)]:
        assert (await memory.requests.add("r", piece, body)).status == "unchanged"
    assert (await memory.requests.start("r", HEAD)).status == "unchanged"
    assert told(await turn_of(memory)) == told(before)
    assert (len(before.messages), len(before.tool_calls), len(before.context_files), len(before.changes)) == (2, 1, 1, 1)
    assert (before.model, before.finish_reason, len(before.checkpoints)) == ("m", "stop", 1)


async def test_a_request_is_finalized_once_and_then_takes_nothing_more(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "Fix login"), says(1, "Done")])
    first = await memory.requests.finalize("r", "failed")
    assert (await turn_of(memory)).status == "failed"
    again = await memory.requests.finalize("r", "complete")
    assert (again.status, again.turn_ids) == ("unchanged", first.turn_ids)
    assert (await turn_of(memory)).status == "failed"
    with pytest.raises(ConflictError, match="is finalized"):
        await memory.requests.add("r", *says(2, "and more"))
    with pytest.raises(ConflictError, match="is finalized"):
        await memory.requests.add("r", "messages", {"truncate_from": 0})
    with pytest.raises(ConflictError, match="is recorded already"):
        await memory.requests.start("r", HEAD)


async def test_what_was_never_started_takes_no_piece(memory: Memory) -> None:
    for act in (memory.requests.add("r", *says(0, "x")), memory.requests.finalize("r"), memory.requests.delete("r")):
        with pytest.raises(NotFoundError, match="there is no request 'r'"):
            await act
    assert (await memory.stats()).conversations == 0


async def test_a_piece_that_cannot_be_read_is_refused_and_changes_nothing(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "Fix login")])
    before = await turn_of(memory)
    for piece in ("messages", "context", "tool-calls", "tool-results", "code-changes", "checkpoints", "model-response"):
        for body in (7, None, "text", [7], {piece: 1} if piece == "model-response" else {"messages": 7, "context_files": 7}):
            if piece == "model-response" and isinstance(body, dict):
                continue
            if isinstance(body, dict) and piece not in {"messages", "context"}:
                continue
            with pytest.raises(InputError):
                await memory.requests.add("r", piece, body)
    with pytest.raises(TooLargeError):
        await memory.requests.add("r", "checkpoints", {"checkpoints": [{"git_hash": str(n)} for n in range(20_001)]})
    for wrong in ("", " ", "x" * 201, 7, None):
        with pytest.raises(InputError):
            await memory.requests.start(cast("Any", wrong), HEAD)
    with pytest.raises(InputError, match="complete or failed"):
        await memory.requests.finalize("r", cast("Any", "open"))
    assert told(await turn_of(memory)) == told(before)


async def test_a_piece_that_is_refused_does_not_stand_in_the_way_of_those_that_follow(memory: Memory) -> None:
    await stream(memory, "a", [says(0, "one"), says(1, "answer one")])
    with pytest.raises(InputError):
        await memory.requests.add("a", "messages", {"messages": 7})
    await memory.requests.add("a", "checkpoints", {"checkpoints": [{"git_hash": "ae09"}]})
    await memory.requests.finalize("a")
    turn = await turn_of(memory, "a")
    assert (turn.status, turn.user, len(turn.checkpoints)) == ("complete", "one", 1)


async def places(memory: Memory) -> list[tuple[int, list[tuple[int, str | None]]]]:
    """Return the turns of the only conversation by index, each with its messages by sequence."""
    conversation = await memory.load_conversation((await memory.list_conversations())[0].id)
    return [(turn.index, [(one.sequence, one.content) for one in turn.messages]) for turn in await conversation.turns()]


async def test_a_request_may_grow_by_a_turn_while_a_later_one_is_under_way(memory: Memory) -> None:
    await stream(memory, "a", [says(0, "one"), says(1, "answer one")])
    await stream(memory, "b", [says(0, "two"), says(1, "answer two")])
    await memory.requests.add("a", *says(2, "three"))
    await memory.requests.add("a", *says(3, "answer three"))
    await memory.requests.add("b", *says(2, "and more", "assistant"))
    for request_id in ("a", "b"):
        await memory.requests.finalize(request_id)
    assert await places(memory) == [
        (0, [(0, "one"), (1, "answer one")]),
        (1, [(2, "two"), (3, "answer two"), (4, "and more")]),
        (2, [(5, "three"), (6, "answer three")]),
    ]
    assert [turn.user for turn in await turns_of(memory, "a")] == ["one", "three"]
    assert (await memory.verify()).status == "intact"


async def test_a_history_that_was_cut_can_grow_again(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "one"), says(1, "answer one"), says(2, "two"), says(3, "answer two")])
    for _ in range(2):
        await memory.requests.add("r", "messages", {"truncate_from": 2})
        await memory.requests.add("r", *says(2, "two, edited"))
        await memory.requests.add("r", *says(3, "another answer"))
    assert await places(memory) == [(0, [(0, "one"), (1, "answer one")]), (1, [(2, "two, edited"), (3, "another answer")])]


async def test_a_request_can_grow_when_the_one_behind_it_was_deleted(memory: Memory) -> None:
    await stream(memory, "a", [says(0, "one"), says(1, "answer one")])
    await stream(memory, "b", [says(0, "two"), says(1, "answer two")])
    await memory.requests.delete("b")
    await memory.requests.add("a", *says(2, "three"))
    assert [turn.user for turn in await turns_of(memory, "a")] == ["one", "three"]


async def test_a_whole_request_may_come_again_with_fewer_turns_and_with_more(memory: Memory) -> None:
    def whole(*texts: str) -> dict[str, Any]:
        roles = ("user", "assistant")
        return {**HEAD, "request_id": "r", "messages": [{"role": roles[n % 2], "content": text} for n, text in enumerate(texts)]}

    for texts in (("one", "1", "two", "2"), ("one", "1"), ("one", "1", "two", "2, again"), ("one", "1, longer", "two", "2", "three")):
        await memory.record(whole(*texts), replace=True)
        said = [text for _, messages in await places(memory) for _, text in messages]
        assert said == list(texts)
        assert [index for index, _ in await places(memory)] == list(range((len(texts) + 1) // 2))
    assert (await memory.verify()).status == "intact"


async def test_a_piece_that_comes_once_more_after_its_request_was_closed_changes_nothing(memory: Memory) -> None:
    await stream(memory, "r", EVERY_PIECE)
    closed = await memory.requests.finalize("r")
    before = await turn_of(memory)
    for piece, body in EVERY_PIECE:
        again = await memory.requests.add("r", piece, body)
        assert (again.status, again.turn_ids) == ("unchanged", closed.turn_ids), piece
    others: list[Sent] = [
        says(1, "I look elsewhere"),
        ("context", {"context_files": [{"file_path": "b.py"}]}),
        ("tool-results", {"tool_results": [{"tool_call_id": "t1", "content": "x = 2"}]}),
        ("tool-calls", {"tool_calls": [{"id": "t2", "name": "cat"}]}),
        ("checkpoints", {"checkpoints": [{"git_hash": "ae10"}]}),
        ("model-response", {"model": "other"}),
    ]
    for piece, body in others:
        with pytest.raises(ConflictError, match="is finalized"):
            await memory.requests.add("r", piece, body)
    assert told(await turn_of(memory)) == told(before)


@pytest.mark.parametrize(
    ("piece", "body"),
    [
        ("context", {"context_files": [{"file_path": "a.py", "usefulness": 0.4}]}),
        ("tool-results", {"tool_results": [{"tool_call_id": "t1", "content": "x = 1", "success": False}]}),
        ("checkpoints", {"checkpoints": [{"git_hash": "ae09", "workspace_dir": "/elsewhere"}]}),
        ("model-response", {"model": "m", "finish_reason": "stop", "usage": {"prompt_tokens": 99}}),
    ],
)
async def test_what_says_something_else_of_what_is_known_is_refused_once_its_request_was_closed(
    memory: Memory, piece: Piece, body: dict[str, Any]
) -> None:
    await stream(memory, "r", EVERY_PIECE)
    await memory.requests.finalize("r")
    with pytest.raises(ConflictError):
        await memory.requests.add("r", piece, body)


async def test_a_whole_request_takes_the_place_of_one_under_the_same_id_that_is_under_way(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "hi")])
    whole = {**HEAD, "request_id": "r", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "whole"}]}
    assert (await memory.record(whole, replace=True)).status == "replaced"
    with pytest.raises(ConflictError):
        await memory.requests.add("r", *says(1, "a piece that comes late"))
    assert (await memory.requests.finalize("r")).status == "unchanged"
    turn = await turn_of(memory)
    assert (turn.status, [message.content for message in turn.messages]) == ("complete", ["hi", "whole"])


async def test_a_request_that_writes_nothing_begins_no_conversation(memory: Memory) -> None:
    whole = {
        "project_id": "shop",
        "request_id": "r",
        "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes"}],
    }
    recorded = await memory.record({**whole, "chat_meta": {"chat_id": "c1"}})
    elsewhere = {"chat_meta": {"chat_id": "c2"}}
    again = await memory.record({**whole, **elsewhere})
    assert (again.status, again.conversation_id) == ("unchanged", recorded.conversation_id)
    two = [*whole["messages"], {"role": "user", "content": "and"}, {"role": "assistant", "content": "no"}]
    with pytest.raises(ConflictError):
        await memory.record({**whole, **elsewhere, "messages": two})
    with pytest.raises(ConflictError):
        await memory.requests.start("r", {"project_id": "shop", **elsewhere})
    assert [info.id for info in await memory.list_conversations()] == [recorded.conversation_id]


async def test_a_piece_notes_what_could_not_be_read_of_it_and_of_no_other(memory: Memory) -> None:
    await memory.requests.start("r", HEAD)
    assert (await memory.requests.add("r", *says(0, "Fix login"))).notes == {}
    strange = await memory.requests.add("r", "context", {"context_files": [{"line_start": 3}, {"file_path": "a.py", "usefulness": "much"}]})
    assert strange.notes == {"context_files_unreadable": 1, "usefulness_unreadable": 1}
    assert (await memory.requests.add("r", "messages", {"foo": 1})).notes == {"not_a_message": 1}
    assert (await memory.requests.add("r", "checkpoints", {"checkpoints": [{"git_hash": "ae09"}]})).notes == {}


# In any order


def whole_payload(random_: random.Random) -> dict[str, Any]:
    """Return a request of one turn, with every part, all of it told apart by ids and sequences."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Fix the login", "sequence": 0}]
    calls: list[dict[str, Any]] = []
    for sequence in range(1, random_.randrange(2, 6)):
        messages.append({"role": "assistant", "content": f"step {sequence}", "sequence": sequence, "completion_tokens": sequence})
        for n in range(random_.randrange(3)):
            outcome: dict[str, Any] = {"content": f"result {sequence} {n}", "success": bool(random_.randrange(2)), "duration_ms": n}
            called = {"id": f"t{sequence}-{n}", "name": "cat", "arguments": {"paths": f"{sequence}-{n}.py"}}
            calls.append({"sequence": sequence, "call": called, "outcome": outcome if random_.random() < 0.8 else None})
    made = [one["call"]["id"] for one in calls] or [None]
    return {
        "messages": messages,
        "calls": calls,
        "context_files": [{"file_path": f"c{n}.py", "usefulness": n / 4, "source": "vecdb"} for n in range(random_.randrange(4))],
        "code_changes": [{"file_path": f"d{n}.py", "tool_call_id": random_.choice(made)} for n in range(random_.randrange(3))],
        "checkpoints": [{"git_hash": f"ae{n}"} for n in range(random_.randrange(3))],
        "model_response": {"model": "m", "finish_reason": "stop"},
    }


def as_whole(payload: dict[str, Any]) -> dict[str, Any]:
    """Return what an engine would send at once."""
    messages = [dict(message) for message in payload["messages"]]
    for one in payload["calls"]:
        messages[one["sequence"]].setdefault("tool_calls", []).append(one["call"])
    done = [one for one in payload["calls"] if one["outcome"] is not None]
    listed = [
        {"tool_call_id": one["call"]["id"], "tool_name": "cat", "result": one["outcome"]["content"],
         "success": one["outcome"]["success"], "duration_ms": one["outcome"]["duration_ms"]}
        for one in done
    ]  # fmt: skip
    parts = {name: payload[name] for name in ("context_files", "code_changes", "checkpoints", "model_response")}
    return {**HEAD, "project_id": "whole", "request_id": "r", "messages": messages, "tool_calls": listed, **parts}


def as_pieces(payload: dict[str, Any], random_: random.Random) -> list[Sent]:
    """Return the same in pieces of one or several items, shuffled, some of them twice."""
    items: dict[Piece, list[dict[str, Any]]] = {
        "messages": payload["messages"],
        "context": payload["context_files"],
        "tool-calls": [{**one["call"], "message_sequence": one["sequence"]} for one in payload["calls"]],
        "tool-results": [{"tool_call_id": one["call"]["id"], **one["outcome"]} for one in payload["calls"] if one["outcome"]],
        "code-changes": payload["code_changes"],
        "checkpoints": payload["checkpoints"],
    }
    names = {"context": "context_files"}
    sent: list[Sent] = [("model-response", payload["model_response"])]
    for piece, all_ in items.items():
        left = list(all_)
        while left:
            size = random_.randrange(1, len(left) + 1)
            sent.append((piece, {names.get(piece, piece.replace("-", "_")): left[:size]}))
            left = left[size:]
    sent += [one for one in sent if random_.random() < 0.3]
    random_.shuffle(sent)
    return sent


@settings(max_examples=200 if SOAK else 12, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(seed=st.integers(min_value=0, max_value=2**32))
async def test_pieces_in_any_order_make_the_turn_that_the_whole_payload_makes(
    store: Store, clock: ManualClock, ids: CountedIds, seed: int
) -> None:
    random_ = random.Random(seed)
    memory = Memory(store, Settings(store=store.url, workspace=f"w-{ids.fresh()}"), clock, ids)
    payload = whole_payload(random_)
    recorded = await memory.record(as_whole(payload))
    await stream(memory, "r", as_pieces(payload, random_), {**HEAD, "project_id": "stream"})
    closed = await memory.requests.finalize("r")
    assert closed.conversation_id != recorded.conversation_id
    one, other = await memory.store.turns.by_id(memory.workspace, [*recorded.turn_ids, *closed.turn_ids])
    assert told(one) == told(other)
    assert (await memory.verify()).status == "intact"


@pytest.mark.parametrize("privacy", ["full", "summary"])
async def test_a_told_change_is_joined_to_its_edit_in_a_stream_as_in_the_whole_payload(memory: Memory, privacy: str) -> None:
    own = configured(memory, projects={"*": {"privacy": privacy}})
    edits = [
        {"id": f"t{n}", "name": "Edit", "arguments": {"file_path": "x.py", "old_string": f"old {n}", "new_string": f"new line {n}"}}
        for n in (1, 2)
    ]
    change = {"file_path": "x.py", "tool_call_id": "t1", "line_start": 30, "line_end": 30, "change_summary": "as told"}
    asked, answered = ({"role": "user", "content": "Do it"}, {"role": "assistant", "content": "ok", "tool_calls": edits})
    whole = {**HEAD, "project_id": "whole", "request_id": "r", "messages": [asked, answered], "code_changes": [change]}
    recorded = await own.record(whole)
    pieces: list[Sent] = [("code-changes", change), says(0, "Do it"), says(1, "ok"), ("tool-calls", {"tool_calls": edits})]
    await stream(own, "s", pieces)
    closed = await own.requests.finalize("s")
    one, other = await own.store.turns.by_id(own.workspace, [*recorded.turn_ids, *closed.turn_ids])
    assert told(one)["changes"] == told(other)["changes"]
    kept = {part.tool_call_id: part for part in other.changes}
    assert (len(other.changes), kept["t1"].line_start, kept["t1"].change_summary) == (2, 30, "as told")
    assert kept["t1"].code_after_hash == content_hash("new line 1")
    assert [part.diff is None for part in other.changes] == [privacy == "summary"] * 2
    if privacy == "full":
        why = await own.why("x.py", 30, line_text="new line 1", project="shop")
        assert (why.found_by, [reason.change.tool_call_id for reason in why.changes]) == ("content", ["t1"])


async def test_what_a_tool_gave_may_come_before_the_call_and_the_message_that_made_it(memory: Memory) -> None:
    await memory.requests.start("r", HEAD)
    await memory.requests.add("r", "tool-results", {"tool_results": [{"tool_call_id": "t1", "content": "boom", "success": False}]})
    early = (await turn_of(memory)).tool_calls[0]
    assert (early.tool_name, early.status, early.tool_call_id) == ("unknown", "failed", "t1")
    call = {"id": "t1", "name": "cat", "arguments": {"paths": "a.py"}, "message_sequence": 1}
    await memory.requests.add("r", "tool-calls", {"tool_calls": [call]})
    await memory.requests.add("r", *says(1, "I look"))
    await memory.requests.add("r", *says(0, "Fix login"))
    turn = await turn_of(memory)
    assert [message.content for message in turn.messages] == ["Fix login", "I look"]
    joined = turn.tool_calls[0]
    assert (joined.tool_name, joined.status, joined.result and joined.result.result) == ("cat", "failed", "boom")
    assert (joined.message_id, len(turn.tool_calls)) == (turn.messages[1].id, 1)


async def test_a_file_may_come_before_anything_was_said(memory: Memory) -> None:
    file = {"role": "context_file", "content": [{"file_name": "a.py", "file_content": "x = 1"}], "sequence": 1}
    for request_id, own in (("r1", memory), ("r2", configured(memory, projects={"*": {"privacy": "summary"}}))):
        await stream(own, request_id, [("messages", {"messages": [file]})])
        assert [part.file_path for part in (await turn_of(own, request_id)).context_files] == ["a.py"]
        await own.requests.add(request_id, *says(0, f"Fix {request_id}"))
        await own.requests.finalize(request_id)
        turn = await turn_of(own, request_id)
        assert (turn.user, len(turn.messages), turn.context_files[0].content_hash) == (f"Fix {request_id}", 1, content_hash("x = 1"))


async def test_a_file_given_with_a_question_comes_with_it_when_the_turns_before_are_known(memory: Memory) -> None:
    history = [{"role": "user", "content": "Fix login"}, {"role": "assistant", "content": "Done"}]
    file = {"role": "context_file", "content": [{"file_name": "a.py", "file_content": "x = 1"}]}
    more = [file, {"role": "user", "content": "And logout?"}, {"role": "assistant", "content": "Done, too"}]
    numbered = [{**message, "sequence": n} for n, message in enumerate([*history, *more])]
    await memory.record({**HEAD, "request_id": "r1", "messages": history})
    await memory.record({**HEAD, "request_id": "r2", "messages": numbered})
    other = {**HEAD, "chat_meta": {"chat_id": "c2"}}
    await stream(memory, "s1", [("messages", {"messages": history})], other)
    await memory.requests.finalize("s1")
    await stream(memory, "s2", [("messages", {"messages": [message]}) for message in numbered], other)
    await memory.requests.finalize("s2")
    for request_id in ("r2", "s2"):
        turn = await turn_of(memory, request_id)
        assert (turn.user, [part.file_path for part in turn.context_files]) == ("And logout?", ["a.py"])
    for request_id in ("r1", "s1"):
        assert (await turn_of(memory, request_id)).context_files == ()


# Several at once


async def test_two_processes_stream_different_requests_into_one_conversation(memory: Memory, reopen: OpenMemory) -> None:
    others = [memory, await reopen()]

    async def send(own: Memory, request_id: str) -> None:
        await stream(own, request_id, [says(0, f"ask {request_id}"), says(1, f"answer {request_id}")])
        await own.requests.finalize(request_id)

    await asyncio.gather(*(send(others[n % 2], f"r{n}") for n in range(8)))
    info = (await memory.list_conversations())[0]
    turns = await (await memory.load_conversation(info.id)).turns()
    assert sorted((turn.request_id, turn.user, turn.assistant, turn.status) for turn in turns) == [
        (f"r{n}", f"ask r{n}", f"answer r{n}", "complete") for n in range(8)
    ]
    assert [turn.index for turn in turns] == list(range(8))
    assert (await memory.verify()).status == "intact"


async def test_pieces_of_one_request_that_come_at_once_are_all_kept(memory: Memory) -> None:
    await memory.requests.start("r", HEAD)
    pieces = [says(n, f"part {n}", "user" if n == 0 else "assistant") for n in range(12)]
    await asyncio.gather(*(memory.requests.add("r", *piece) for piece in reversed(pieces)))
    assert [message.content for message in (await turn_of(memory)).messages] == [f"part {n}" for n in range(12)]


async def test_two_projects_may_use_the_same_request_id(memory: Memory) -> None:
    whole = await memory.record({"request_id": "r", "project_id": "other", "messages": [{"role": "user", "content": "elsewhere"}]})
    await stream(memory, "r", [says(0, "Fix login"), says(1, "Done")])
    assert await memory.requests.delete("r") == 1
    assert (await turn_of(memory)).user == "elsewhere"
    await stream(memory, "r", [says(0, "Fix login"), says(1, "Done")])
    done = await memory.requests.finalize("r")
    assert (await memory.flow("r", project="shop")).turn_ids == done.turn_ids
    with pytest.raises(ConflictError, match="in 2 conversations"):
        await memory.requests.delete("r")
    assert await memory.requests.delete("r", whole.conversation_id) == 1
    assert (await turn_of(memory)).conversation_id == done.conversation_id


# Histories


async def test_a_request_may_have_several_turns(memory: Memory) -> None:
    await stream(memory, "r", [says(n, text) for n, text in enumerate(["one", "answer one", "two", "answer two"])])
    turns = await turns_of(memory, "r")
    assert [(turn.user, turn.assistant, turn.status) for turn in turns] == [
        ("one", "answer one", "complete"),
        ("two", "answer two", "open"),
    ]
    done = await memory.requests.finalize("r")
    assert len(done.turn_ids) == 2
    assert [turn.status for turn in await turns_of(memory, "r")] == ["complete", "complete"]
    assert await memory.requests.delete("r") == 2


async def test_a_piece_with_the_whole_history_records_what_is_new_in_it(memory: Memory) -> None:
    await stream(memory, "r1", [says(0, "one"), says(1, "answer one")])
    await memory.requests.finalize("r1")
    history = [body["messages"][0] for _, body in (says(n, text) for n, text in enumerate(["one", "answer one", "two", "answer two"]))]
    await stream(memory, "r2", [("messages", {"messages": history[:3]}), ("messages", {"messages": history})])
    await memory.requests.finalize("r2")
    info = (await memory.list_conversations())[0]
    turns = await (await memory.load_conversation(info.id)).turns()
    assert [(turn.request_id, turn.user, turn.assistant) for turn in turns] == [
        ("r1", "one", "answer one"), ("r2", "two", "answer two")
    ]  # fmt: skip


def history(*texts: str) -> list[Sent]:
    return [says(n, text) for n, text in enumerate(texts)]


async def whole_history(memory: Memory) -> list[tuple[str | None, str, str]]:
    (info,) = await memory.list_conversations()
    turns = await (await memory.load_conversation(info.id)).turns()
    return [(turn.request_id, turn.user, turn.assistant) for turn in turns]


async def test_a_history_that_makes_an_earlier_turn_grow_does_not_double_it(memory: Memory) -> None:
    file: Sent = ("context", {"context_files": [{"file_path": "a.py"}]})
    await stream(memory, "r1", [*history("one", "answer one"), file])
    await memory.requests.finalize("r1")
    pieces = [
        says(0, "one"),
        says(1, "answer one"),
        says(2, "and more", "assistant"),
        says(3, "two", "user"),
        says(4, "answer two", "assistant"),
    ]
    for request_id, order in (("r2", pieces), ("r3", [*pieces[::-1], says(5, "three", "user"), says(6, "answer three", "assistant")])):
        await stream(memory, request_id, order)
        await memory.requests.finalize(request_id)
    assert await whole_history(memory) == [
        ("r1", "one", "answer one\n\nand more"), ("r2", "two", "answer two"), ("r3", "three", "answer three")
    ]  # fmt: skip
    assert [part.file_path for part in (await turn_of(memory, "r1")).context_files] == ["a.py"]
    assert (await memory.verify()).status == "intact"


async def test_a_request_that_only_goes_on_with_the_last_turn_takes_it_over(memory: Memory) -> None:
    call = {"id": "t1", "function": {"name": "cat", "arguments": '{"paths": "a.py"}'}}
    asked = says(1, "I look", tool_calls=[call])
    await stream(memory, "r1", [says(0, "one"), asked, ("checkpoints", {"checkpoints": [{"git_hash": "ae09"}]})])
    await memory.requests.finalize("r1")
    answered = says(2, "x = 1", "tool", tool_call_id="t1")
    await stream(memory, "r2", [says(0, "one"), asked, answered, says(3, "done")])
    await memory.requests.finalize("r2")
    assert await whole_history(memory) == [("r2", "one", "I look\n\ndone")]
    turn = await turn_of(memory, "r2")
    assert ([call.status for call in turn.tool_calls], [one.git_hash for one in turn.checkpoints]) == (["success"], ["ae09"])
    await stream(memory, "r3", [says(0, "two"), says(1, "answer two")])
    await memory.requests.finalize("r3")
    assert [user for _, user, _ in await whole_history(memory)] == ["one", "two"]
    assert (await memory.verify()).status == "intact"


@pytest.mark.parametrize("known", [("one", "answer one"), ("zero", "answer zero", "one", "answer one"), ("one", "answer one", "x", "y")])
async def test_a_history_in_which_an_earlier_turn_was_edited_takes_its_place(memory: Memory, known: tuple[str, ...]) -> None:
    for n in range(0, len(known), 2):
        await stream(memory, f"k{n}", history(*known[: n + 2]))
        await memory.requests.finalize(f"k{n}")
    edited = ["answer one, edited" if text == "answer one" else text for text in known]
    await stream(memory, "r", history(*edited, "two", "answer two")[::-1])
    assert len(await whole_history(memory)) > len(edited) // 2, "what another request said stays until this one is whole"
    await memory.requests.finalize("r")
    told = [(user, answer) for _, user, answer in await whole_history(memory)]
    assert told == list(zip([*edited, "two"][::2], [*edited, "two", "answer two"][1::2], strict=True))
    assert (await memory.verify()).status == "intact"


async def test_a_history_that_is_known_adds_its_last_turn_alone(memory: Memory) -> None:
    for n in (2, 4):
        await stream(memory, f"r{n}", history("one", "answer one", "two", "answer two")[:n])
        await memory.requests.finalize(f"r{n}")
    await stream(memory, "again", history("one", "answer one", "two", "answer two"))
    await memory.requests.finalize("again")
    assert [user for _, user, _ in await whole_history(memory)] == ["one", "two", "two"]


async def test_the_same_words_again_are_no_edited_history(memory: Memory) -> None:
    for n in range(3):
        await stream(memory, f"r{n}", history("go on", f"answer {n}"))
        await memory.requests.finalize(f"r{n}")
    assert [answer for _, _, answer in await whole_history(memory)] == ["answer 0", "answer 1", "answer 2"]


async def test_a_turn_that_a_branch_shows_or_another_request_still_tells_stays(memory: Memory) -> None:
    await stream(memory, "r1", history("one", "answer one"))
    await stream(memory, "r2", history("one", "answer one, edited", "two", "answer two"))
    await memory.requests.finalize("r2")
    assert [user for _, user, _ in await whole_history(memory)] == ["one", "one", "two"]
    await memory.requests.finalize("r1")
    (info,) = await memory.list_conversations()
    branch = await (await memory.load_conversation(info.id)).branch(from_turn=0)
    await stream(memory, "r3", history("one", "answer one, edited", "two", "answer two", "three", "answer three"))
    await memory.requests.finalize("r3")
    assert [turn.assistant for turn in await branch.turns()] == ["answer one"]
    assert (await memory.verify()).status == "intact"


async def test_a_message_under_the_same_sequence_takes_the_place_of_the_first(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "Fix login"), says(1, "Dunno")])
    assert (await memory.requests.add("r", *says(1, "Done"))).status == "replaced"
    turn = await turn_of(memory)
    assert ([message.content for message in turn.messages], len(turn.messages)) == (["Fix login", "Done"], 2)
    assert not (await memory.search("Dunno", semantic=False)).hits


async def test_a_history_can_be_cut_replaced_and_thinned_out(memory: Memory) -> None:
    await stream(memory, "r", [says(n, f"part {n}", "user" if n == 0 else "assistant") for n in range(6)])

    async def said() -> list[str | None]:
        return [message.content for message in (await turn_of(memory)).messages]

    await memory.requests.add("r", "messages", {"truncate_from": 4})
    assert await said() == ["part 0", "part 1", "part 2", "part 3"]
    cut = {"truncate_from": 2, "messages": [{"role": "assistant", "content": "instead", "sequence": 2}]}
    await memory.requests.add("r", "messages", cut)
    assert await said() == ["part 0", "part 1", "instead"]
    await memory.requests.add("r", "messages", {"remove": ["000000000001"]})
    assert await said() == ["part 0", "instead"]
    fresh = [{"role": "user", "content": "anew", "sequence": 0}]
    await memory.requests.add("r", "messages", {"replace": True, "messages": fresh})
    assert await said() == ["anew"]
    assert not (await memory.search("part", semantic=False)).hits


async def test_a_message_can_be_removed_by_the_sequence_it_was_sent_under(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "Fix login"), says(1, "Dunno"), says(2, "Done", "assistant")])
    await memory.requests.add("r", "messages", {"remove": [1]})
    assert [message.content for message in (await turn_of(memory)).messages] == ["Fix login", "Done"]


async def test_other_parts_can_be_replaced_and_removed_too(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "Fix login"), says(1, "Done")])
    calls = [{"id": f"t{n}", "name": "cat", "message_sequence": 1} for n in range(3)]
    await memory.requests.add("r", "tool-calls", {"tool_calls": calls})
    await memory.requests.add("r", "tool-calls", {"remove": ["t1"]})
    assert [call.tool_call_id for call in (await turn_of(memory)).tool_calls] == ["t0", "t2"]
    await memory.requests.add("r", "checkpoints", {"checkpoints": [{"git_hash": "old"}]})
    await memory.requests.add("r", "checkpoints", {"replace": True, "checkpoints": [{"git_hash": "new"}]})
    assert [one.git_hash for one in (await turn_of(memory)).checkpoints] == ["new"]


# Ends


async def test_a_request_can_be_deleted_open_or_whole(memory: Memory) -> None:
    await stream(memory, "open", [says(0, "canary of the open one")])
    await stream(memory, "whole", [says(0, "canary of the whole one")])
    await memory.requests.finalize("whole")
    for request_id in ("open", "whole"):
        assert await memory.requests.delete(request_id) == 1
        with pytest.raises(NotFoundError):
            await memory.flow(request_id)
        with pytest.raises(NotFoundError):
            await memory.requests.add(request_id, *says(1, "late"))
    assert not (await memory.search("canary", semantic=False)).hits
    assert (await memory.requests.start("whole", HEAD)).status == "created"


async def test_what_is_never_finalized_stays_visible_until_the_sweep_closes_it(memory: Memory, clock: ManualClock) -> None:
    await stream(memory, "idle", [says(0, "left alone")])
    clock.advance(HOUR / 2)
    await stream(memory, "busy", [says(0, "still at it")])
    clock.advance(HOUR / 2)
    assert await memory.requests.close_idle() == 0, "an hour has not passed yet"
    assert (await turn_of(memory, "idle")).status == "open"
    clock.advance(1)
    assert (await memory.sweep()).closed == 1
    idle, busy = await turn_of(memory, "idle"), await turn_of(memory, "busy")
    assert (idle.status, idle.user, busy.status) == ("failed", "left alone", "open")
    with pytest.raises(ConflictError, match="is finalized"):
        await memory.requests.add("idle", *says(1, "too late"))
    clock.advance(HOUR)
    assert await memory.requests.close_idle() == 1
    assert await memory.requests.close_idle() == 0


async def test_each_piece_starts_the_hour_anew_and_the_hour_can_be_set(memory: Memory, clock: ManualClock) -> None:
    await memory.requests.start("r", HEAD)
    for n in range(3):
        clock.advance(HOUR - 1)
        await memory.requests.add("r", *says(n, f"part {n}", "user" if n == 0 else "assistant"))
        assert await memory.requests.close_idle() == 0
    clock.advance(11)
    assert await configured(memory, server={"open_seconds_max": 10.0}).requests.close_idle() == 1
    assert (await turn_of(memory)).status == "failed"


async def test_a_sweep_after_a_restart_closes_what_the_dead_process_had_begun(
    memory: Memory, reopen: OpenMemory, clock: ManualClock
) -> None:
    await stream(memory, "r", [says(0, "left alone")])
    clock.advance(HOUR + 1)
    assert (await (await reopen()).sweep()).closed == 1
    assert (await turn_of(memory)).status == "failed"


async def test_two_processes_that_add_to_one_request_lose_nothing(memory: Memory, reopen: OpenMemory) -> None:
    other = await reopen()
    await memory.requests.start("r", HEAD)
    await memory.requests.add("r", *says(0, "Fix it"))
    senders = [(memory, number) for number in range(1, 6)] + [(other, number) for number in range(6, 11)]
    await asyncio.gather(*(one.requests.add("r", *says(number, f"said {number}", "assistant")) for one, number in senders))
    await other.requests.finalize("r")
    (turn,) = await turns_of(memory, "r")
    assert [message.content for message in turn.messages] == ["Fix it", *(f"said {number}" for number in range(1, 11))]
    assert turn.status == "complete"


async def test_two_processes_that_begin_one_request_begin_it_once(memory: Memory, reopen: OpenMemory) -> None:
    other = await reopen()
    begun = await asyncio.gather(memory.requests.start("r", HEAD), other.requests.start("r", HEAD))
    assert len({one.conversation_id for one in begun}) == 1
    assert len(await turns_of(memory, "r")) == 1


Meanwhile = Callable[[Callable[[], Awaitable[object]]], None]


@pytest.fixture
def meanwhile(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Meanwhile:
    """Let something happen, once, after a memory has read how a request stands and before it writes."""

    def happens(act: Callable[[], Awaitable[object]]) -> None:
        record, left = memory.recorder.history, [act]

        async def late(*args: Any, **kwargs: Any) -> Any:
            if left:
                await left.pop()()
            return await record(*args, **kwargs)

        monkeypatch.setattr(memory.recorder, "history", late)

    return happens


async def test_a_request_that_another_process_begins_meanwhile_is_begun_once(
    memory: Memory, reopen: OpenMemory, meanwhile: Meanwhile
) -> None:
    other = await reopen()
    meanwhile(lambda: other.requests.start("r", HEAD))
    assert (await memory.requests.start("r", HEAD)).status != "skipped"
    assert len(await turns_of(memory, "r")) == 1


async def test_what_another_process_adds_meanwhile_stays(memory: Memory, reopen: OpenMemory, meanwhile: Meanwhile) -> None:
    other = await reopen()
    await stream(memory, "r", [says(0, "Fix login")])
    meanwhile(lambda: other.requests.add("r", *says(1, "from there")))
    await memory.requests.add("r", *says(3, "from here"))
    assert [message.content for message in (await turn_of(memory)).messages] == ["Fix login", "from there", "from here"]


async def test_nothing_is_added_to_what_another_process_finalizes_meanwhile(
    memory: Memory, reopen: OpenMemory, meanwhile: Meanwhile
) -> None:
    other = await reopen()
    await stream(memory, "r", [says(0, "Fix login"), says(1, "Done")])
    meanwhile(lambda: other.requests.finalize("r"))
    with pytest.raises(ConflictError, match="is finalized"):
        await memory.requests.add("r", *says(3, "too late"))
    turn = await turn_of(memory)
    assert (turn.status, turn.assistant) == ("complete", "Done")


@pytest.mark.parametrize("ends", ["finalize", "sweep"])
async def test_what_another_process_adds_while_a_request_is_closed_is_not_lost(
    ends: str, memory: Memory, reopen: OpenMemory, clock: ManualClock, meanwhile: Meanwhile
) -> None:
    other = await reopen()
    await stream(memory, "r", [says(0, "Fix login")])
    clock.advance(HOUR + 1)
    meanwhile(lambda: other.requests.add("r", *says(1, "just in time")))
    if ends == "finalize":
        await memory.requests.finalize("r")
    else:
        assert (await memory.sweep()).closed == 0
    turn = await turn_of(memory)
    assert (turn.status, turn.assistant) == ("complete" if ends == "finalize" else "open", "just in time")


async def test_a_piece_that_is_refused_leaves_the_request_as_it_was(memory: Memory) -> None:
    await stream(memory, "r", [says(0, "Fix login"), says(1, "I look")])
    before = await memory.store.requests.get(memory.workspace, "r")
    conversation = await memory.load_conversation((await memory.list_conversations())[0].id)
    await conversation.branch(title="another way")
    with pytest.raises(ConflictError, match="inherited by a branch"):
        await memory.requests.add("r", *says(1, "something else"))
    assert await memory.store.requests.get(memory.workspace, "r") == before


@pytest.mark.parametrize("elsewhere", [{"project_id": "other"}, {"chat_meta": {"chat_id": "c2"}}, {"cwd": "/somewhere/else"}])
async def test_a_request_that_is_under_way_elsewhere_is_not_joined(memory: Memory, elsewhere: dict[str, Any]) -> None:
    await stream(memory, "r", [says(0, "Fix login")])
    with pytest.raises(ConflictError, match="under way in another conversation"):
        await memory.requests.start(
            "r", {**HEAD, **elsewhere} if "chat_meta" in elsewhere else {"timestamp": HEAD["timestamp"], **elsewhere}
        )
    assert [one.name for one in await memory.projects()] == ["shop"]
    assert (await turn_of(memory)).user == "Fix login"


async def test_a_request_under_way_may_be_begun_again_without_saying_where(memory: Memory) -> None:
    begun = await memory.requests.start("r", HEAD)
    assert (await memory.requests.start("r", {})).conversation_id == begun.conversation_id


async def test_a_sweep_leaves_what_was_sent_again_as_a_whole_as_it_is(memory: Memory, clock: ManualClock) -> None:
    await stream(memory, "r", [says(0, "Fix login")])
    whole = {**HEAD, "request_id": "r", "messages": [{"role": "user", "content": "Fix login"}, {"role": "assistant", "content": "Done"}]}
    assert (await memory.record(whole, replace=True)).status == "replaced"
    clock.advance(HOUR + 1)
    await memory.sweep()
    turn = await turn_of(memory)
    assert (turn.status, turn.assistant) == ("complete", "Done")
    assert (await memory.sweep()).closed == 0


async def test_a_request_that_a_branch_inherits_can_still_be_closed(memory: Memory, clock: ManualClock) -> None:
    await stream(memory, "r", [says(0, "Fix login"), says(1, "I look")])
    conversation = await memory.load_conversation((await memory.list_conversations())[0].id)
    branch = await conversation.branch(title="another way")
    with pytest.raises(ConflictError, match="inherited by a branch"):
        await memory.requests.add("r", *says(1, "something else"))
    await stream(memory, "later", [says(0, "left alone, too")])
    clock.advance(HOUR + 1)
    assert await memory.requests.close_idle() == 2
    assert [turn.status for turn in await conversation.turns()] == ["failed", "failed"]
    assert [(turn.status, turn.assistant) for turn in await branch.turns()] == [("failed", "I look")]
    assert (await memory.verify()).status == "intact"


async def test_a_deleted_conversation_takes_its_open_requests_along(memory: Memory, clock: ManualClock) -> None:
    await stream(memory, "r", [says(0, "Fix login")])
    await (await memory.load_conversation((await memory.list_conversations())[0].id)).delete()
    with pytest.raises(NotFoundError, match="begin it with start"):
        await memory.requests.add("r", *says(1, "late"))
    clock.advance(HOUR + 1)
    assert await memory.requests.close_idle() == 0
    assert (await memory.stats()).turns == 0


# What is not kept


async def test_secrets_are_gone_from_every_piece_before_it_is_kept(memory: Memory) -> None:
    secret = "ghp_" + "q7Zk2mWx9Lr4Tn8Vb3Yc6Hd1Jf5Gs0Pa2QeU"
    await stream(memory, "r", [says(0, f"the key is {secret}")], {**HEAD, "title": f"use {secret}"})
    await memory.requests.add("r", "tool-results", {"tool_results": [{"tool_call_id": "t1", "content": secret}]})
    assert secret not in (await memory.store.requests.get(memory.workspace, "r") or secret)
    await memory.requests.finalize("r")
    conversation = await memory.load_conversation((await memory.list_conversations())[0].id)
    assert secret not in await conversation.export()


async def test_a_request_that_asks_not_to_be_recorded_is_dropped_with_what_it_had_said(memory: Memory) -> None:
    await stream(memory, "r", [says(1, "canary")])
    assert (await memory.requests.add("r", *says(0, "[off the record] fix this"))).status == "skipped"
    assert (await memory.requests.add("r", *says(2, "canary", "assistant"))).status == "skipped"
    assert "canary" not in (await memory.store.requests.get(memory.workspace, "r") or "")
    assert (await memory.requests.finalize("r")).status == "skipped"
    assert (await memory.stats()).turns == 0


@pytest.mark.parametrize("values", [{"projects": {"shop": {"exclude": True}}}, {"agent": {"memory": {"enabled": False}}}])
async def test_of_an_excluded_project_every_piece_is_passed_over(memory: Memory, values: dict[str, Any]) -> None:
    own = configured(memory, **values)
    assert (await own.requests.start("r", HEAD)).status == "skipped"
    assert (await own.requests.start("r", HEAD)).status == "skipped"
    assert (await own.requests.add("r", *says(0, "canary"))).status == "skipped"
    assert (await own.requests.finalize("r")).status == "skipped"
    assert await memory.store.requests.get(memory.workspace, "r") is None
    assert (await memory.stats()).turns == 0


async def test_of_a_head_and_a_response_a_short_part_is_kept_where_no_content_is(memory: Memory) -> None:
    own = configured(memory, projects={"*": {"privacy": "summary"}})
    words = "word " * 60
    head = {"project_id": "shop", "title": words + "canary", "agent": words + "canary", "timestamp": "canary at nine"}
    await own.requests.start("r", head)
    await own.requests.add("r", "model-response", {"model": words + "canary", "finish_reason": words + "canary"})
    kept = await own.store.requests.get(own.workspace, "r")
    assert kept is not None
    assert "canary" not in kept
    await own.requests.finalize("r")
    assert "canary" not in str(to_json(await turn_of(own)))
