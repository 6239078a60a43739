"""Retention: what has expired is in no read from that very moment on, and in no byte of a store after the next sweep."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from recollect.answers import Forgotten, Swept, to_json
from recollect.clock import CountedIds, ManualClock
from recollect.config import settings_from
from recollect.conversation import Conversation
from recollect.documents.copying import copy_store
from recollect.errors import NotFoundError
from recollect.memory import Memory
from recollect.model import ConversationInfo, Summary
from recollect.store.shapes import TurnRange
from tests.kit import START, configured, said
from tests.left import everywhere, places_of, said_in

DAY_SECONDS = 24 * 60 * 60.0
INSTANT = 1e-6
WORD, OTHER = "zebrafish", "giraffeneck"
WAIT_SECONDS_MAX = 120.0


def keeping(memory: Memory, privacy: str = "full", **retention: Any) -> Memory:
    """Return a memory whose projects, but for `lasting`, keep things for so long."""
    chosen = {"privacy": privacy, "retention": retention}
    return configured(memory, projects={"*": chosen, "lasting": {}}, server={"open_seconds_max": 3_600})


def telling(word: str, request: str = "r1") -> dict[str, Any]:
    """Return a request that says a word wherever it can."""
    return {
        "request_id": request,
        "project_id": "fleeting",
        "chat_meta": {"chat_id": "c1"},
        "messages": [
            {"role": "user", "content": f"what about the {word}?"},
            {
                "role": "assistant",
                "content": f"the {word} swims",
                "reasoning_content": f"I think of the {word}",
                "tool_calls": [
                    {"id": "t1", "function": {"name": f"find_{word}", "arguments": json.dumps({"path": f"{word}.py"})}},
                    {"id": "t2", "function": {"name": "read_file", "arguments": json.dumps({"path": f"src/{word}.py"})}},
                ],
            },
            {"role": "tool", "tool_call_id": "t1", "content": f"Error: no {word}"},
            {"role": "tool", "tool_call_id": "t2", "content": f"class {word}: ..."},
        ],
        "context_files": [{"file_path": f"docs/{word}.md", "usefulness": 0.5, "source": word, "symbols": [word]}],
        "code_changes": [{"file_path": f"src/{word}.py", "diff": f"+{word}", "change_summary": word, "tool_call_id": "t2"}],
        "checkpoints": [{"checkpoint_id": f"k-{word}", "git_hash": word, "workspace_dir": f"/w/{word}"}],
        "related_artifacts": [word],
    }


async def lasting(memory: Memory) -> Conversation:
    """Record what never expires."""
    conversation = await memory.create_conversation(project="lasting")
    await conversation.record(user=f"what about the {OTHER}?", assistant="it stretches")
    return conversation


async def fleeting(memory: Memory, request: str = "r1") -> Conversation:
    recorded = await memory.record(telling(WORD, request))
    return await memory.load_conversation(recorded.conversation_id)


READS: dict[str, Callable[[Memory, str], Awaitable[Any]]] = {
    "history": lambda memory, own: memory.store.turns.history(memory.workspace, own, TurnRange()),
    "messages": lambda memory, own: _of(memory, own, lambda one: one.get_history()),
    "turns": lambda memory, own: _of(memory, own, lambda one: one.turns()),
    "recent turns": lambda memory, own: _of(memory, own, lambda one: one.recent_turns()),
    "tool calls": lambda memory, own: _of(memory, own, lambda one: one.get_tool_calls()),
    "accessed files": lambda memory, own: _of(memory, own, lambda one: one.accessed_files()),
    "summaries": lambda memory, own: _of(memory, own, lambda one: one.summaries()),
    "json": lambda memory, own: _of(memory, own, lambda one: one.export()),
    "markdown": lambda memory, own: _of(memory, own, lambda one: one.export("markdown")),
    "its own search": lambda memory, own: _of(memory, own, lambda one: one.search_history(WORD)),
    "its own context": lambda memory, own: _of(memory, own, lambda one: one.build_context(query="what swims?")),
    "search": lambda memory, _: memory.search(WORD),
    "search without meaning": lambda memory, _: memory.search(WORD, semantic=False),
    "search by file": lambda memory, _: memory.search("what swims", file=f"src/{WORD}.py"),
    "context": lambda memory, _: memory.context("what swims?"),
    "context of the conversation": lambda memory, own: memory.context("what swims?", conversation=own),
    "similar": lambda memory, _: memory.find_similar_conversations(f"{WORD} swims"),
    "list": lambda memory, _: memory.list_conversations(),
    "sessions": lambda memory, _: memory.sessions("/nowhere"),
    "info": lambda memory, own: memory.get_info(own),
    "projects": lambda memory, _: memory.projects(),
    "why": lambda memory, _: memory.why(f"src/{WORD}.py", project="fleeting"),
    "flow": lambda memory, _: memory.flow("r1"),
    "usage": lambda memory, _: memory.file_usage(f"docs/{WORD}.md", project="fleeting"),
    "context usage": lambda memory, _: memory.context_usage(project="fleeting"),
    "tools": lambda memory, _: memory.tool_reliability(project="fleeting"),
    "checkpoints": lambda memory, _: memory.checkpoints(project="fleeting"),
    "checkpoints of the conversation": lambda memory, own: memory.checkpoints(own),
    "the same conversation again": lambda memory, _: memory.create_conversation(project="fleeting", external_id="c1"),
}
NAMES_ITSELF = {"usage", "why"}  # the answer repeats the path that was asked for


async def _of(memory: Memory, own: str, ask: Callable[[Conversation], Awaitable[Any]]) -> Any:
    """Ask a conversation that somebody has held since before; nothing is read on the way to it."""
    return await ask(Conversation(memory, ConversationInfo(id=own, created_at=START, updated_at=START)))


async def told_by(ask: Callable[[Memory, str], Awaitable[Any]], memory: Memory, own: str) -> str:
    """Return what a read answers, as text; that there is nothing to read is an answer, too."""
    try:
        answer = await ask(memory, own)
    except NotFoundError:
        return ""
    if isinstance(answer, Conversation):
        answer = answer.info
    return json.dumps(to_json(answer), default=str)


@pytest.mark.parametrize("name", list(READS))
async def test_from_the_very_moment_no_read_tells_of_what_has_expired(memory: Memory, clock: ManualClock, name: str) -> None:
    own = keeping(memory, turns_days=1, summaries_days=1)
    await lasting(own)
    conversation = await fleeting(own)
    await own.store.derived.put_summaries(own.workspace, [_summary(conversation.id)], expiries={"s1": START + timedelta(days=1)})
    await own.distill()
    clock.advance(DAY_SECONDS - INSTANT)
    before = await told_by(READS[name], own, conversation.id)
    assert WORD in before or name in {"sessions", "projects"}
    clock.advance(INSTANT)
    after = await told_by(READS[name], own, conversation.id)
    if name in NAMES_ITSELF:
        assert json.loads(after or "{}").get("count", 0) == 0
        assert not json.loads(after or "{}").get("changes")
    else:
        assert WORD not in after
    assert (await own.stats()).turns == 1
    assert (await own.search(OTHER)).hits


def _summary(conversation_id: str, summary_id: str = "s1", sources: tuple[str, ...] = (), level: int = 1) -> Summary:
    return Summary(
        id=summary_id, conversation_id=conversation_id, level=level, summary=f"told of the {WORD}", first_turn=0, last_turn=0, turn_count=1,
        char_count=20, created_at=START, source_ids=sources,
    )  # fmt: skip


async def test_statistics_count_nothing_that_has_expired(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days=1)
    await fleeting(own)
    await own.distill()
    clock.advance(DAY_SECONDS)
    stats = await own.stats()
    assert (stats.conversations, stats.turns, stats.messages, stats.tool_calls, stats.passages, stats.embedded) == (0, 0, 0, 0, 0, 0)
    assert stats.summaries == {}
    assert stats.jobs.get("ready", 0) == 0


async def test_verifying_a_content_of_an_expired_turn_says_unknown(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await own.create_conversation(project="fleeting")
    turn = await conversation.record(user="a question")
    for record_id in (turn.id, turn.messages[0].id):
        assert (await own.verify(record_id, "a question")).status == "matches"
        assert (await own.verify(record_id, "another")).status == "differs"
    clock.advance(DAY_SECONDS)
    for record_id in (turn.id, turn.messages[0].id):
        assert (await own.verify(record_id, "a question")).status == "unknown"


async def test_in_summary_the_whole_content_is_still_verified(memory: Memory) -> None:
    own = keeping(memory, "summary")
    conversation = await own.create_conversation(project="fleeting")
    text = f"{WORD} " * 100
    turn = await conversation.record(user=text, tool_calls=[{"name": "x", "arguments": {"a": WORD}, "result": f"{WORD} of a result"}])
    assert turn.messages[0].content_hash.startswith("sha256:")
    assert (await own.verify(turn.messages[0].id, text)).status == "matches"
    assert (await own.verify(turn.messages[0].id, text[:200])).status == "differs"
    assert (await own.verify(turn.tool_calls[0].id, f"{WORD} of a result")).status == "matches"
    assert (await own.verify("nobody", text)).status == "unknown"


# Sweeping

SWEEPS: dict[str, Callable[[Memory], Awaitable[object]]] = {
    "a sweep": lambda memory: memory.sweep(),
    "a worker": lambda memory: memory.sweep(thoroughly=False),
}


@pytest.mark.parametrize("sweep", list(SWEEPS))
@pytest.mark.parametrize("is_read_before", [False, True], ids=["unread", "read before"])
async def test_after_a_sweep_what_has_expired_is_in_no_byte_of_the_store(
    memory: Memory, clock: ManualClock, sweep: str, is_read_before: bool
) -> None:
    own = keeping(memory, turns_days=1, summaries_days=1)
    await lasting(own)
    for n in range(6):
        await own.record({**telling(WORD, f"r{n}"), "title": None})
    await own.distill()
    assert (await own.stats()).summaries
    assert len(places_of(WORD, everywhere(own))) >= 1
    clock.advance(DAY_SECONDS)
    if is_read_before:
        assert (await own.search(WORD)).hits == ()
    await SWEEPS[sweep](own)
    assert places_of(WORD, everywhere(own)) == []
    assert places_of(OTHER, everywhere(own)) != []
    assert (await own.verify()).status == "intact"
    assert [info.project for info in await own.list_conversations()] == ["lasting"]
    assert len((await own.search(OTHER)).hits) == 1


async def test_a_sweep_says_what_it_removed_also_in_passing_since_the_last_one(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days="never")
    for n in range(6):
        await own.record(telling(WORD, f"r{n}"))
    assert await own.sweep() == Swept()
    clock.advance(DAY_SECONDS)
    assert await own.sweep() == Swept(turns=6, conversations=1)
    assert await own.sweep() == Swept()
    await own.record(telling(WORD, "again"))
    clock.advance(DAY_SECONDS)
    assert await own.list_conversations() == []
    assert await own.sweep() == Swept(turns=1, conversations=1)


async def test_nothing_else_goes_with_what_has_expired(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await fleeting(own)
    clock.advance(DAY_SECONDS / 2)
    await conversation.record(user="second", assistant="stays", request_id="r2")
    await conversation.record(messages=said("third", "stays too"))
    clock.advance(DAY_SECONDS / 2)
    swept = await own.sweep()
    assert (swept.turns, swept.conversations) == (1, 0)
    info = await own.get_info(conversation.id)
    assert (info.turn_count, info.message_count, info.last_message) == (2, 4, "stays too")
    turns = await conversation.turns()
    assert [(turn.index, turn.user) for turn in turns] == [(1, "second"), (2, "third")]
    assert [message.sequence for turn in turns for message in turn.messages] == [2, 3, 4, 5]
    added = await conversation.record(user="fourth")
    assert (added.index, added.messages[0].sequence) == (3, 6), "a place is never given out twice"
    assert (await own.verify()).status == "intact"


async def test_a_workspace_of_somebody_else_is_left_alone(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    other = configured(own, workspace=f"{own.workspace}-other", projects={"*": {"retention": {"turns_days": 1}}})
    for one in (own, other):
        await fleeting(one)
    clock.advance(DAY_SECONDS)
    assert (await own.sweep()).turns == 1
    assert places_of(WORD, said_in(own.store.url, other.workspace)) != []
    assert (await other.stats()).turns == 0


async def test_the_background_worker_sweeps_by_itself(memory: Memory, store_url: str, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days=1)
    await fleeting(own)
    clock.advance(DAY_SECONDS)
    async with await Memory.open(settings=own.settings, clock=clock, worker=True) as working:
        end = asyncio.get_running_loop().time() + WAIT_SECONDS_MAX
        while places_of(WORD, said_in(store_url, own.workspace)):
            assert asyncio.get_running_loop().time() < end
            await asyncio.sleep(0.05)
        assert working.metrics is not None


@pytest.mark.parametrize("as_json", [False, True])
async def test_the_command_line_sweeps_and_says_what_it_did(store_url: str, workspace: str, tmp_path: Path, as_json: bool) -> None:
    settings = {"store": store_url, "workspace": workspace, "projects": {"*": {"privacy": "summary"}}}
    three_days_ago = ManualClock(datetime.now(UTC) - timedelta(days=3))
    async with await Memory.open(settings=settings_from(settings), clock=three_days_ago, worker=False) as memory:
        await memory.record(telling(WORD))
        assert places_of(WORD, said_in(store_url, workspace)) != []
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(settings))
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "recollect", *(["--json"] if as_json else []), "sweep"],
        env={**os.environ, "RECOLLECT_CONFIG": str(config)},
        capture_output=True,
        text=True,
        check=True,
    )
    if as_json:
        assert json.loads(done.stdout) == {"conversations": 1, "turns": 1, "summaries": 0, "insights": 0, "closed": 0}
    else:
        assert done.stdout == "1 turn, 0 summaries and 0 insights had expired; 0 requests closed that nobody had finalized\n"
    assert places_of(WORD, said_in(store_url, workspace)) == []


async def test_a_mirror_loses_it_at_the_sweep_too_whoever_took_it_out_of_the_store(
    memory: Memory, clock: ManualClock, tmp_path: Path
) -> None:
    folder = tmp_path / "mirror"
    own = keeping(memory, turns_days=1)
    mirrored = configured(own, projects={"*": {"retention": {"turns_days": 1}}}, agent={"memory": {"persistence": {"mirror": str(folder)}}})
    conversation = await fleeting(mirrored)
    clock.advance(DAY_SECONDS / 2)
    await conversation.record(user="stays")
    clock.advance(DAY_SECONDS / 2)
    await own.sweep()
    assert any(WORD in file.read_text() for file in folder.iterdir())
    await mirrored.sweep()
    assert ["stays" in file.read_text() and WORD not in file.read_text() for file in folder.iterdir()] == [True]


async def test_a_worker_takes_it_out_of_the_mirror_with_the_store(memory: Memory, clock: ManualClock, tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    mirrored = configured(
        memory, projects={"*": {"retention": {"turns_days": 1}}}, agent={"memory": {"persistence": {"mirror": str(folder)}}}
    )
    await fleeting(mirrored)
    assert any(WORD in file.read_text() for file in folder.iterdir())
    clock.advance(DAY_SECONDS)
    await mirrored.sweep(thoroughly=False)
    assert list(folder.iterdir()) == []


# How long


async def test_two_days_are_the_default_in_summary_for_turns_and_summaries(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, "summary")
    conversation = await own.create_conversation(project="fleeting")
    for n in range(6):
        await conversation.record(user=f"question {n}", assistant="answer")
    await own.distill()
    clock.advance(2 * DAY_SECONDS - INSTANT)
    assert (await own.stats()).turns == 6
    assert len(await conversation.summaries()) == 1
    clock.advance(INSTANT)
    stats = await own.stats()
    assert (stats.conversations, stats.turns, stats.summaries) == (0, 0, {})


@pytest.mark.parametrize(
    ("privacy", "retention"),
    [("full", {}), ("full", {"turns_days": "never"}), ("summary", {"turns_days": "never", "summaries_days": "never"})],
)
async def test_what_never_expires_is_there_after_a_hundred_years(
    memory: Memory, clock: ManualClock, privacy: str, retention: dict[str, Any]
) -> None:
    own = keeping(memory, privacy, **retention)
    conversation = await own.create_conversation(project="fleeting")
    for n in range(6):
        await conversation.record(user=f"question {n}", assistant="answer")
    await own.distill()
    clock.advance(36_500 * DAY_SECONDS)
    assert await own.sweep() == Swept()
    assert (await own.stats()).turns == 6
    assert len(await conversation.summaries()) == 1


async def test_the_time_runs_from_the_recording_whatever_time_the_sender_gave(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await own.create_conversation(project="fleeting")
    await conversation.record(user="old", timestamp="2001-01-01T00:00:00Z")
    clock.advance(DAY_SECONDS - INSTANT)
    assert (await own.stats()).turns == 1
    clock.advance(INSTANT)
    assert (await own.stats()).turns == 0


async def test_a_turn_that_goes_on_is_kept_from_its_last_word_on(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await own.create_conversation(project="fleeting")
    turn = await conversation.begin("question")
    clock.advance(DAY_SECONDS / 2)
    await conversation.finish(turn, [{"role": "assistant", "content": "answer"}])
    clock.advance(DAY_SECONDS / 2)
    assert [one.assistant for one in await conversation.turns()] == ["answer"]
    clock.advance(DAY_SECONDS / 2)
    assert (await own.stats()).turns == 0


# What hangs from it


async def test_summaries_outlive_their_turns_and_expire_on_their_own(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days=3)
    conversation = await own.create_conversation(project="fleeting")
    for n in range(6):
        await conversation.record(user=f"question {n} about the {WORD}", assistant=f"the {WORD} swims {n} miles")
    await own.distill()
    (summary,) = await conversation.summaries()
    clock.advance(DAY_SECONDS)
    assert await own.sweep() == Swept(turns=6)
    assert await conversation.turns() == []
    assert await conversation.summaries() == [summary]
    assert [hit.kind for hit in (await own.search(WORD)).hits] == ["summary"]
    info = await own.get_info(conversation.id)
    assert (info.turn_count, info.message_count, info.last_message) == (0, 0, None)
    await own.distill()
    assert await conversation.summaries() == [summary]
    assert (await own.verify()).status == "intact"
    clock.advance(2 * DAY_SECONDS - INSTANT)
    assert await conversation.summaries() == [summary]
    clock.advance(INSTANT)
    assert await own.list_conversations() == []
    assert await own.sweep() == Swept(summaries=1, conversations=1)
    assert places_of(WORD, everywhere(own)) == []
    assert await own.projects() == []


async def test_summaries_may_go_before_their_turns(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=3, summaries_days=1)
    conversation = await own.create_conversation(project="fleeting")
    for n in range(6):
        await conversation.record(user=f"question {n}", assistant="answer")
    await own.distill()
    clock.advance(DAY_SECONDS)
    assert await conversation.summaries() == []
    assert len(await conversation.turns()) == 6
    assert await own.sweep() == Swept(summaries=1)
    assert (await own.verify()).status == "intact"


async def test_summaries_go_by_the_policy_of_the_folder_a_conversation_is_held_in(
    memory: Memory, clock: ManualClock, tmp_path: Path
) -> None:
    own = configured(memory, projects={str(tmp_path): {"retention": {"turns_days": 3, "summaries_days": 1}}})
    conversation = await own.create_conversation(cwd=tmp_path, project="named")
    for n in range(6):
        await conversation.record(user=f"question {n}", assistant="answer")
    await own.distill()
    assert len(await conversation.summaries()) == 1
    clock.advance(DAY_SECONDS)
    assert await conversation.summaries() == []
    assert len(await conversation.turns()) == 6


async def test_a_higher_summary_stays_when_those_it_folds_expire(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days=2)
    conversation = await own.create_conversation(project="fleeting")
    turn = await conversation.record(user="x")
    low, high = _summary(conversation.id, "low", (turn.id,)), _summary(conversation.id, "high", ("low",), level=2)
    day = timedelta(days=1)
    await own.store.derived.put_summaries(own.workspace, [low, high], expiries={"low": START + day, "high": START + 2 * day})
    clock.advance(DAY_SECONDS)
    assert [one.id for one in await conversation.summaries()] == ["high"]
    assert (await own.verify()).status == "intact"
    clock.advance(DAY_SECONDS)
    assert await own.list_conversations() == []


FORGETS: dict[str, Callable[[Memory, Conversation], Awaitable[object]]] = {
    "forget it": lambda memory, own: memory.forget(conversation=own.id),
    "forget its project": lambda memory, _: memory.forget(project="fleeting"),
    "forget what was before": lambda memory, _: memory.forget(before=memory.clock.now()),
    "forget what was before in its project": lambda memory, _: memory.forget(before=memory.clock.now(), project="fleeting"),
    "delete it": lambda _, own: own.delete(),
}


@pytest.mark.parametrize("name", list(FORGETS))
async def test_forget_and_delete_take_summaries_of_expired_turns_too(memory: Memory, clock: ManualClock, name: str) -> None:
    own = keeping(memory, turns_days=1, summaries_days="never")
    conversation = await own.create_conversation(project="fleeting")
    for n in range(12):
        await conversation.record(user=f"question {n} about the {WORD}", assistant=f"the {WORD} swims {n} miles")
    await configured(own, projects=to_json(own.settings.projects), distill={"fold_chars": 100}).distill()
    assert len({one.level for one in await conversation.summaries()}) > 1
    await lasting(own)
    clock.advance(DAY_SECONDS)
    assert await conversation.turns() == []
    assert await conversation.summaries() != []
    await FORGETS[name](own, conversation)
    assert WORD not in json.dumps(to_json((await own.search(WORD)).hits))
    assert "fleeting" not in [info.project for info in await own.list_conversations()]
    await own.store.erase()
    assert places_of(WORD, everywhere(own)) == []


async def test_forgetting_a_time_leaves_summaries_that_were_made_later(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days="never")
    conversation = await own.create_conversation(project="fleeting")
    for n in range(6):
        await conversation.record(user=f"question {n}", assistant="answer")
    await own.distill()
    clock.advance(DAY_SECONDS)
    assert await own.forget(before=START) == Forgotten()
    assert await own.forget(before=clock.now(), project="another") == Forgotten()
    assert len(await conversation.summaries()) == 1


async def test_forgetting_a_time_takes_what_was_made_later_of_what_was_said_then(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days="never")
    conversation = await own.create_conversation(project="fleeting")
    for n in range(12):
        await conversation.record(user=f"question {n} about the {WORD}", assistant=f"the {WORD} swims {n} miles")
    await own.distill()
    clock.advance(DAY_SECONDS)
    forgotten = clock.now()
    assert await conversation.turns() == []
    clock.advance(DAY_SECONDS)
    await configured(own, projects=to_json(own.settings.projects), distill={"fold_chars": 100}).distill()
    await conversation.summarize()
    folds = [one for one in await conversation.summaries() if one.level > 1]
    assert all(one.created_at > forgotten for one in folds)
    assert folds, "what was folded was said before"
    await own.forget(before=forgotten)
    await own.store.erase()
    assert places_of(WORD, everywhere(own)) == []
    assert (await own.verify()).status == "intact"
    assert await own.list_conversations() == []


async def test_titles_and_summaries_that_told_of_it_go_and_are_told_anew(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days=1)
    conversation = await own.create_conversation(project="fleeting")
    for n in range(2):
        await conversation.record(user=f"Please feed the {WORD} {n}", assistant=f"I have fed the {WORD}")
    clock.advance(DAY_SECONDS / 2)
    for n in range(2):
        await conversation.record(user=f"Please feed the {OTHER} {n}", assistant=f"I have fed the {OTHER}")
    await own.distill()
    info = await own.get_info(conversation.id)
    assert WORD in (info.title or "")
    assert WORD in (info.summary or "")
    clock.advance(DAY_SECONDS / 2)
    info = await own.get_info(conversation.id)
    assert (info.title, info.summary) == (None, None)
    await own.distill()
    info = await own.get_info(conversation.id)
    assert OTHER in (info.title or "")
    assert OTHER in (info.summary or "")
    assert WORD not in json.dumps(to_json(info))


async def test_a_title_that_somebody_gave_stays(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await own.create_conversation(project="fleeting", title="mine")
    await conversation.record(user="first")
    await own.distill()
    clock.advance(DAY_SECONDS / 2)
    await conversation.record(user="second")
    clock.advance(DAY_SECONDS / 2)
    assert (await own.get_info(conversation.id)).title == "mine"


async def test_a_summary_that_was_imported_goes_with_the_turns_it_told_of(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    source = await memory.create_conversation(project="fleeting")
    await source.record(user=f"the {WORD}")
    document = json.loads(await source.export())
    document["conversation"] |= {"id": "imported", "summary": f"told of the {WORD}"}
    conversation = await own.import_conversation(document)
    assert WORD in ((await own.get_info("imported")).summary or "")
    clock.advance(DAY_SECONDS / 2)
    await conversation.record(user="later")
    clock.advance(DAY_SECONDS / 2)
    assert WORD not in json.dumps(to_json(await own.get_info("imported")))


async def test_a_summary_that_is_imported_into_a_project_of_summaries_is_not_taken_over(memory: Memory) -> None:
    source = await memory.create_conversation(project="lasting")
    await source.record(user="said " * 60 + WORD, assistant="yes")
    await memory.distill()
    document = json.loads(await source.export())
    document["conversation"] |= {"id": "imported", "summary": f"told of the {WORD}"}
    document["project"] |= {"name": "fleeting", "external_id": "fleeting"}
    own = keeping(memory, "summary")
    imported = await own.import_conversation(document)
    assert WORD not in await imported.export()


async def test_a_branch_keeps_what_is_its_own_and_loses_what_it_inherited(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days=1)
    parent = await own.create_conversation(project="fleeting")
    for n in range(2):
        await parent.record(user=f"Please feed the {WORD} {n}")
    await own.distill()
    branch = await parent.branch(from_turn=1)
    clock.advance(DAY_SECONDS / 2)
    await branch.record(user="own words")
    await own.distill()
    clock.advance(DAY_SECONDS / 2)
    assert await own.sweep() == Swept(turns=2)
    assert [(turn.index, turn.user) for turn in await branch.turns()] == [(2, "own words")]
    info = await own.get_info(branch.id)
    assert (info.turn_count, info.message_count, info.last_message) == (1, 1, "own words")
    assert WORD not in json.dumps(to_json(await own.list_conversations()))
    assert places_of(WORD, everywhere(own)) == []
    assert (await own.verify()).status == "intact"
    clock.advance(DAY_SECONDS / 2)
    assert await own.sweep() == Swept(turns=1, conversations=2)
    assert await own.list_conversations() == []


async def test_what_a_branch_inherits_of_a_deleted_parent_keeps_its_time(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    parent = await own.create_conversation(project="fleeting")
    await parent.record(user=WORD)
    branch = await parent.branch()
    clock.advance(DAY_SECONDS / 2)
    await branch.record(user="own words")
    await parent.delete()
    assert [turn.user for turn in await branch.turns()] == [WORD, "own words"]
    clock.advance(DAY_SECONDS / 2)
    assert [turn.user for turn in await branch.turns()] == ["own words"]


async def test_a_branch_tells_nothing_that_was_distilled_of_a_forgotten_parent(memory: Memory) -> None:
    parent = await memory.create_conversation(project="fleeting")
    await parent.record(user=f"Please feed the {WORD}")
    await parent.record(user="and then?")
    await memory.distill()
    assert WORD in ((await memory.get_info(parent.id)).title or "")
    branch = await parent.branch(from_turn=0)
    await branch.record(user="own words")
    await memory.forget(conversation=parent.id)
    assert WORD not in json.dumps(to_json(await memory.get_info(branch.id)))
    assert places_of(WORD, everywhere(memory)) == []


# What comes again


async def test_a_request_that_is_sent_again_after_it_expired_is_recorded_again(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await own.create_conversation(project="fleeting", external_id="c1")
    await conversation.record(user="question", request_id="r1")
    await lasting(own)
    clock.advance(DAY_SECONDS)
    again = await own.create_conversation(project="fleeting", external_id="c1")
    await again.record(user="question", request_id="r1")
    clock.advance(DAY_SECONDS / 2)
    assert [turn.user for turn in await again.turns()] == ["question"]


async def test_a_change_of_a_conversation_does_not_answer_with_what_has_expired(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await fleeting(own)
    clock.advance(DAY_SECONDS / 2)
    await conversation.record(user="stays")
    await own.distill()
    clock.advance(DAY_SECONDS / 2)
    assert WORD not in json.dumps(to_json(await conversation.change(tags=["x"])))


async def test_a_request_that_comes_in_pieces_expires_whole_and_does_not_come_back(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1 / 48, summaries_days=1)
    await own.requests.start("r1", {"project_id": "fleeting", "chat_meta": {"chat_id": "c1"}})
    await own.requests.add("r1", "messages", {"messages": [{"role": "user", "content": WORD, "sequence": 0}]})
    clock.advance(DAY_SECONDS / 48)
    assert await own.store.requests.get(own.workspace, "r1") is None
    clock.advance(2 * 3_600)
    assert await own.sweep() == Swept(turns=1, conversations=1)
    assert places_of(WORD, everywhere(own)) == []
    assert await own.list_conversations() == []
    with pytest.raises(NotFoundError):
        await own.requests.finalize("r1")


async def test_a_request_that_goes_on_outlives_the_turns_before_it(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1 / 24)
    chat = {"project_id": "fleeting", "chat_meta": {"chat_id": "c1"}}
    await own.record({**chat, "request_id": "r1", "messages": said("before")})
    clock.advance(1_800)
    await own.requests.start("r2", chat)
    await own.requests.add("r2", "messages", {"messages": [{"role": "user", "content": "now", "sequence": 0}]})
    clock.advance(1_800)
    await own.requests.add("r2", "messages", {"messages": [{"role": "assistant", "content": "done", "sequence": 1}]})
    closed = await own.requests.finalize("r2")
    conversation = await own.load_conversation(closed.conversation_id)
    assert [(turn.user, turn.assistant, turn.status) for turn in await conversation.turns()] == [("now", "done", "complete")]


async def test_forgetting_a_time_leaves_a_request_that_goes_on(memory: Memory, clock: ManualClock) -> None:
    chat = {"project_id": "fleeting", "chat_meta": {"chat_id": "c1"}}
    await memory.record({**chat, "request_id": "r1", "messages": said(WORD)})
    clock.advance(10)
    await memory.requests.start("r2", chat)
    assert (await memory.forget(before=START + timedelta(seconds=5))).turns == 1
    await memory.requests.add("r2", "messages", {"messages": [{"role": "user", "content": "now", "sequence": 0}]})
    assert (await memory.requests.finalize("r2")).status == "replaced"
    clock.advance(10)
    assert (await memory.forget(before=clock.now())).turns == 1
    assert await memory.list_conversations() == []


async def test_a_conversation_that_is_not_to_be_recorded_stays_so_when_its_turns_have_expired(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1)
    conversation = await own.create_conversation(project="fleeting", external_id="c1")
    await conversation.record(user="before")
    await conversation.change(tags=["do-not-record"])
    clock.advance(DAY_SECONDS)
    assert await own.sweep() == Swept(turns=1)
    recorded = await own.record({"project_id": "fleeting", "chat_id": "c1", "messages": said(WORD)})
    assert recorded.status == "skipped"
    assert places_of(WORD, everywhere(own)) == []


# Copies


async def test_a_copy_keeps_the_times_of_turns_and_summaries(
    store_url: str, workspace: str, ids: CountedIds, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    clock = ManualClock(datetime.now(UTC))  # a copy goes by the machine's own
    target = f"sqlite://{tmp_path / 'copy.db'}" if store_url.startswith("neo4j") else request.getfixturevalue("neo4j_url")
    retention = {"turns_days": 1, "summaries_days": 3}
    settings = settings_from({"store": store_url, "workspace": workspace, "projects": {"fleeting": {"retention": retention}}})
    async with await Memory.open(settings=settings, clock=clock, ids=ids, worker=False) as memory:
        conversation = await memory.create_conversation(project="fleeting")
        for n in range(6):
            await conversation.record(user=f"question {n}", assistant="answer")
        await memory.distill()
    await copy_store(store_url, target, workspace=workspace)
    async with await Memory.open(target, workspace=workspace, clock=clock, worker=False) as copy:
        clock.advance(DAY_SECONDS - INSTANT)
        assert (await copy.stats()).turns == 6
        clock.advance(INSTANT)
        stats = await copy.stats()
        assert (stats.turns, stats.summaries) == (0, {"1": 1})
        clock.advance(2 * DAY_SECONDS)
        assert (await copy.stats()).summaries == {}
        assert await copy.list_conversations() == []


async def test_rebuilding_keeps_summaries_whose_turns_are_gone(memory: Memory, clock: ManualClock) -> None:
    own = keeping(memory, turns_days=1, summaries_days="never")
    conversation = await own.create_conversation(project="fleeting")
    for n in range(6):
        await conversation.record(user=f"question {n} about the {WORD}", assistant="answer")
    await own.distill()
    before = await conversation.summaries()
    clock.advance(DAY_SECONDS)
    await conversation.record(user="later")
    await own.distill(rebuild=True)
    assert await conversation.summaries() == before
