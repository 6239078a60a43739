"""Do not record: a project, a conversation, or a turn of which somebody said so leaves no word in a store."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from recollect.clock import ManualClock
from recollect.errors import InputError, NotAllowedError, NotFoundError
from recollect.memory import Memory
from tests.kit import OpenMemory, configured, said
from tests.left import places_of, said_in

WORD, OTHER = "zebrafish", "giraffeneck"
MARKER = "[do not record]"
TAG = "do-not-record"


def left(memory: Memory, word: str = WORD) -> list[str]:
    """Return where a word is left."""
    return places_of(word, said_in(memory.store.url, memory.workspace))


def payload(*texts: str, project: str = "shop", **more: Any) -> dict[str, Any]:
    return {"project_id": project, "chat_meta": {"chat_id": "c1"}, "messages": said(*texts), **more}


def telling(word: str) -> dict[str, Any]:
    """Return the parts of a turn that say a word."""
    return {
        "tool_calls": [{"name": word, "arguments": {"file_path": f"{word}.py"}, "result": word}],
        "context_files": [{"file_path": f"{word}.md", "symbols": [word]}],
        "changes": [{"file_path": f"{word}.py", "diff": f"+{word}"}],
        "checkpoints": [{"git_hash": word}],
    }


def message(sequence: int, text: str, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": text, "sequence": sequence}]}


# A project


@pytest.mark.parametrize("name", ["shop", "*", "its own id", "its folder", "its folder with a slash"])
async def test_of_an_excluded_project_nothing_is_kept_by_any_door(memory: Memory, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    exported = await memory.create_conversation(folder, project="shop")
    await exported.record(user="earlier", assistant="kept")
    document = json.loads(await exported.export())
    document["conversation"] |= {"id": "imported", "title": WORD}
    names = {"its own id": exported.info.project_id, "its folder": str(folder), "its folder with a slash": f"{folder}/"}
    own = configured(memory, projects={names.get(name, name): {"exclude": True}})

    recorded = await own.record(payload(WORD, WORD, request_id="r1", cwd=str(folder), title=WORD))
    assert recorded.status == "skipped"
    conversation = await own.create_conversation(folder, project="shop", title=WORD, tags=[WORD], external_id="c9")
    assert (await conversation.record(user=WORD, assistant=WORD, **telling(WORD))).user == WORD
    assert (await conversation.record(messages=said(WORD, WORD))).user == WORD
    assert (await conversation.begin(WORD)).status == "open"
    with pytest.raises(NotAllowedError, match="exclude"):
        await own.import_conversation(document)
    head = {"project_id": "shop", "cwd": str(folder), "chat_meta": {"chat_id": "c2"}, "title": WORD}
    assert (await own.requests.start("r2", head)).status == "skipped"
    assert (await own.requests.add("r2", "messages", message(0, WORD))).status == "skipped"
    assert (await own.requests.add("r2", "tool-results", [{"tool_call_id": "t1", "content": WORD}])).status == "skipped"
    assert (await own.requests.finalize("r2")).status == "skipped"
    old = await own.load_conversation(exported.id)
    await old.record(user=WORD, assistant=WORD)
    assert left(own) == []
    assert [turn.user for turn in await old.turns()] == ["earlier"], "what was recorded before is still there, and read"
    assert (await own.stats()).conversations == 1


async def test_what_was_open_when_a_project_was_excluded_takes_nothing_more(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="shop", external_id="c1")
    turn = await conversation.begin("before")
    head = {"project_id": "shop", "chat_meta": {"chat_id": "c1"}}
    await memory.requests.start("r1", head)
    await memory.requests.add("r1", "messages", message(0, "asked"))
    own = configured(memory, projects={"shop": {"exclude": True}})
    old = await own.load_conversation(conversation.id)
    await old.finish(await old.add(turn, [{"role": "assistant", "content": WORD}]), [{"role": "assistant", "content": WORD}])
    assert (await own.requests.add("r1", "messages", message(1, WORD, "assistant"))).status == "skipped"
    assert (await own.requests.finalize("r1")).status == "skipped"
    assert (await own.requests.start("r2", {**head, "title": WORD})).status == "skipped"
    assert (await own.requests.add("r2", "messages", message(0, WORD))).status == "skipped"
    assert [(turn.user, turn.assistant, turn.status) for turn in await old.turns()] == [
        ("before", "", "complete"), ("asked", "", "complete")
    ]  # fmt: skip
    assert left(own) == []
    assert (await own.verify()).status == "intact"


async def test_other_projects_are_recorded_beside_an_excluded_one(memory: Memory) -> None:
    own = configured(memory, projects={"*": {"exclude": True}, "shop": {}})
    assert (await own.record(payload("kept"))).status == "created"
    assert (await own.record(payload(WORD, project="other"))).status == "skipped"
    assert [project.name for project in await own.projects()] == ["shop"]
    assert left(own) == []


async def test_a_folder_excludes_by_the_name_of_the_folder_too(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "private-notes"
    folder.mkdir()
    own = configured(memory, projects={"private-notes": {"exclude": True}})
    conversation = await own.create_conversation(folder)
    await conversation.record(user=WORD)
    assert left(own) == []
    assert await own.projects() == []


async def test_a_folder_is_what_counts_where_the_project_was_first_named_without_one(memory: Memory, tmp_path: Path) -> None:
    """A project that a sender named is known without a folder; a conversation in an excluded one is not recorded all the same."""
    await (await memory.create_conversation(project="shop")).record(user="elsewhere")
    inside = await memory.create_conversation(tmp_path, project="shop")
    own = configured(memory, projects={str(tmp_path): {"exclude": True}})
    await (await own.load_conversation(inside.id)).record(user=WORD)
    assert left(own) == []


async def test_an_excluded_project_with_a_mirror_is_passed_over_too(memory: Memory, tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    own = configured(memory, projects={"*": {"exclude": True}}, agent={"memory": {"persistence": {"mirror": str(folder)}}})
    assert (await own.record(payload(WORD))).status == "skipped"
    assert not folder.exists() or not any(folder.iterdir())


# A conversation


async def test_a_conversation_with_the_tag_takes_no_more_turns_by_any_door(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="shop", external_id="c1")
    await conversation.record(user="before", assistant="kept")
    await conversation.change(tags=["x", TAG])
    await conversation.record(user=WORD, assistant=WORD, **telling(WORD))
    await conversation.record(messages=said("before", "kept", WORD, WORD))
    assert (await memory.record(payload("before", "kept", WORD, request_id="r1"))).status == "skipped"
    assert (await memory.record(payload(WORD), conversation=conversation.id)).status == "skipped"
    assert (await memory.requests.start("r2", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})).status == "skipped"
    assert (await memory.requests.add("r2", "messages", message(0, WORD))).status == "skipped"
    assert (await memory.requests.finalize("r2")).status == "skipped"
    assert [turn.user for turn in await conversation.turns()] == ["before"]
    assert left(memory) == []
    await conversation.change(tags=["x"])
    await conversation.record(user="after")
    assert [turn.user for turn in await conversation.turns()] == ["before", "after"]


async def test_a_conversation_may_be_begun_with_the_tag(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="shop", tags=[TAG])
    await conversation.record(user=WORD)
    assert left(memory) == []
    assert (await memory.get_info(conversation.id)).turn_count == 0


async def test_a_tag_that_another_process_sets_holds_from_the_next_turn_on(memory: Memory, store_url: str) -> None:
    conversation = await memory.create_conversation(project="shop")
    await conversation.record(user="before")
    await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-m", "recollect", "--store", store_url, "--workspace", memory.workspace, "edit", conversation.id, "--tag", TAG],
        env=os.environ,
        capture_output=True,
        check=True,
    )
    await conversation.record(user=WORD)
    assert [turn.user for turn in await conversation.turns()] == ["before"]
    assert left(memory) == []


async def test_an_open_turn_takes_nothing_more_once_the_tag_is_set(memory: Memory, reopen: OpenMemory) -> None:
    conversation = await memory.create_conversation(project="shop")
    turn = await conversation.begin("before")
    await (await (await reopen()).load_conversation(conversation.id)).change(tags=[TAG])
    asked = {"role": "assistant", "content": WORD, "tool_calls": [{"id": "t1", "name": WORD, "arguments": {"a": WORD}}]}
    await conversation.add(turn, [asked, {"role": "tool", "tool_call_id": "t1", "content": WORD}])
    closed = await conversation.finish(turn, [{"role": "assistant", "content": WORD}])
    assert (closed.status, closed.user, closed.assistant) == ("complete", "before", "")
    assert left(memory) == []
    assert (await memory.verify()).status == "intact"


async def test_a_request_that_comes_in_pieces_takes_nothing_more_once_the_tag_is_set(memory: Memory, reopen: OpenMemory) -> None:
    started = await memory.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await memory.requests.add("r1", "messages", message(0, "before"))
    await (await (await reopen()).load_conversation(started.conversation_id)).change(tags=[TAG])
    assert (await memory.requests.add("r1", "messages", message(1, WORD, "assistant"))).status == "skipped"
    assert (await memory.requests.add("r1", "tool-results", [{"tool_call_id": "t1", "content": WORD}])).status == "skipped"
    assert (await memory.requests.finalize("r1")).status == "skipped"
    conversation = await memory.load_conversation(started.conversation_id)
    assert [(turn.user, turn.status) for turn in await conversation.turns()] == [("before", "complete")]
    assert left(memory) == []


async def test_a_request_that_nobody_finalizes_is_closed_with_the_tag_too(memory: Memory, clock: ManualClock) -> None:
    started = await memory.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await memory.requests.add("r1", "messages", message(0, "before"))
    conversation = await memory.load_conversation(started.conversation_id)
    await conversation.change(tags=[TAG])
    clock.advance(2 * 3_600)
    assert (await memory.sweep()).closed == 1
    assert [(turn.user, turn.status) for turn in await conversation.turns()] == [("before", "failed")]
    assert (await memory.verify()).status == "intact"


async def test_a_branch_of_a_conversation_with_the_tag_has_it_too(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="shop")
    await conversation.record(user="before")
    await conversation.change(tags=[TAG])
    branch = await conversation.branch()
    await branch.record(user=WORD)
    assert left(memory) == []


# A turn


async def test_a_turn_in_which_the_user_says_so_is_not_recorded_by_any_door(memory: Memory) -> None:
    marked = f"{WORD} {MARKER}"
    conversation = await memory.create_conversation(project="shop")
    shown = await conversation.record(user=marked, assistant=WORD, reasoning=WORD, **telling(WORD))
    assert shown.user == marked, "the caller sees what it said"
    await conversation.record(messages=said(marked, WORD))
    assert (await memory.record(payload(marked, WORD, request_id="r1", code_changes=[{"file_path": f"{WORD}.py"}]))).status == "skipped"
    assert (await memory.record(payload(marked), conversation=conversation.id)).status == "skipped"
    assert (await conversation.begin(marked)).status == "open"
    assert await conversation.turns() == []
    assert left(memory) == []


@pytest.mark.parametrize("reason", ["marker", "tag", "project", "everything is off", "tag, and saved later"])
async def test_a_turn_that_is_not_recorded_goes_on_and_ends_all_the_same(memory: Memory, reason: str) -> None:
    values: dict[str, Any] = {"projects": {"shop": {"exclude": True}}} if reason == "project" else {}
    if reason == "everything is off":
        values = {"agent": {"memory": {"enabled": False}}}
    if reason == "tag, and saved later":
        values = {"agent": {"memory": {"persistence": {"auto_save": False}}}}
    own = configured(memory, **values)
    conversation = await own.create_conversation(project="shop", tags=[TAG] if reason.startswith("tag") else [])
    begun = await conversation.begin(f"{WORD} {MARKER}" if reason == "marker" else WORD)
    if reason.startswith("tag"):
        await conversation.change(tags=[])
    kept = await conversation.begin("kept")
    call = {"id": "t1", "name": WORD, "arguments": {"file_path": WORD}}
    grown = await conversation.add(begun, [{"role": "assistant", "content": WORD, "tool_calls": [call]}])
    assert (grown.id, grown.status, grown.assistant) == (begun.id, "open", WORD), "the caller sees what it said"
    done = await conversation.finish(grown, [{"role": "tool", "tool_call_id": "t1", "content": WORD}], status="failed")
    assert (done.status, [call.status for call in done.tool_calls]) == ("failed", ["success"])
    with pytest.raises(InputError, match="only an open turn"):
        await conversation.add(done, [{"role": "assistant", "content": WORD}])
    await conversation.finish(kept, [{"role": "assistant", "content": "said"}])
    assert left(own) == []
    if reason in {"marker", "tag", "tag, and saved later"}:
        assert [(turn.user, turn.assistant) for turn in await conversation.turns()] == [("kept", "said")]


@pytest.mark.parametrize(
    "content",
    [
        f"{MARKER} {WORD}",
        f"{WORD}\n\n[Off The Record]",
        f"{WORD} [do not\nrecord]",
        f"{WORD} [do\u00a0not\trecord]",
        [{"type": "text", "text": WORD}, {"type": "text", "text": MARKER}],
        "x" * 300 + MARKER + WORD,
    ],
)
async def test_the_marker_may_stand_anywhere_in_what_the_user_says(memory: Memory, content: Any) -> None:
    messages = [{"role": "user", "content": content}, {"role": "assistant", "content": WORD}]
    for own in (memory, configured(memory, projects={"*": {"privacy": "summary"}})):
        assert (await own.record({"project_id": "shop", "messages": messages})).status == "skipped"
        await own.requests.start("r", {"project_id": "shop"})
        assert (await own.requests.add("r", "messages", {"messages": messages})).status == "skipped"
        await own.requests.finalize("r")
    assert left(memory) == []


async def test_only_the_turn_that_is_marked_is_left_out_of_a_history_however_often_it_comes(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="shop", external_id="c1")
    texts = ["first", "one", f"{MARKER} {WORD}", f"secret {WORD}", "third", "three"]
    statuses = [(await memory.record(payload(*texts[:length], request_id=f"r{length}"))).status for length in (2, 4, 6)]
    assert [turn.user for turn in await conversation.turns()] == ["first", "third"]
    assert statuses == ["created", "skipped", "created"]
    await conversation.record(messages=said(*texts))
    await conversation.record(messages=said(*texts, "fourth"))
    assert [turn.user for turn in await conversation.turns()] == ["first", "third", "fourth"]
    assert left(memory) == []


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize("earlier", [[], ["first", "one"]])
async def test_a_request_that_is_sent_again_with_the_marker_goes_with_what_it_had_said(
    memory: Memory, earlier: list[str], replace: bool
) -> None:
    conversation = await memory.create_conversation(project="shop", external_id="c1")
    if earlier:
        await memory.record(payload(*earlier, request_id="r1"))
    await memory.record(payload(*earlier, WORD, f"secret {WORD}", request_id="r2"))
    assert left(memory) != []
    answer = await memory.record(payload(*earlier, f"{WORD} {MARKER}", f"secret {WORD}", request_id="r2"), replace=replace)
    assert answer.status == "skipped"
    assert left(memory) == []
    assert (await memory.verify()).status == "intact"
    if earlier:
        assert [turn.user for turn in await conversation.turns()] == ["first"]


async def test_a_request_under_way_that_is_sent_whole_with_the_marker_does_not_come_back(memory: Memory) -> None:
    await memory.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await memory.requests.add("r1", "messages", message(0, WORD))
    whole = {**payload(f"{WORD} {MARKER}", request_id="r1"), "project_id": "shop", "chat_meta": {"chat_id": "c1"}}
    assert (await memory.record(whole)).status == "skipped"
    assert left(memory) == []
    with pytest.raises(NotFoundError):
        await memory.requests.add("r1", "messages", message(1, WORD))


async def test_a_request_of_several_turns_keeps_those_that_are_not_marked(memory: Memory) -> None:
    recorded = await memory.record(payload("first", "one", f"{MARKER} {WORD}", WORD, "third", "three", request_id="r1"))
    assert recorded.status == "created"
    assert len(recorded.turn_ids) == 2
    assert left(memory) == []
    assert (await memory.record(payload("first", "one", f"{MARKER} {WORD}", WORD, "third", "three", request_id="r1"))).status == "unchanged"


async def test_a_marked_turn_of_an_imported_conversation_is_left_out(memory: Memory) -> None:
    document = {
        "format": "recollect-conversation",
        "version": 1,
        "conversation": {"id": "imported", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"},
        "project": {"name": "shop", "external_id": "shop", "root": None},
        "turns": [
            {"index": n, "messages": [{"role": "user", "content": text, "sequence": n}], "tool_calls": []}
            for n, text in enumerate(["first", f"{MARKER} {WORD}", "third"])
        ],
    }
    imported = await memory.import_conversation(document)
    assert [(turn.index, turn.user) for turn in await imported.turns()] == [(0, "first"), (2, "third")]
    assert left(memory) == []


@pytest.mark.parametrize("privacy", ["full", "summary"])
async def test_when_the_marker_comes_late_what_was_kept_of_the_request_goes(memory: Memory, privacy: str) -> None:
    own = configured(memory, projects={"*": {"privacy": privacy}})
    await own.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await own.requests.add("r1", "messages", message(1, WORD, "assistant"))
    await own.requests.add("r1", "tool-calls", [{"id": "t1", "name": f"tool_{WORD}", "arguments": {"path": f"{WORD}.py"}}])
    await own.requests.add("r1", "context", [{"file_path": f"{WORD}.md"}])
    assert left(own) != []
    assert (await own.requests.add("r1", "messages", message(0, f"{MARKER} fix it"))).status == "skipped"
    assert (await own.stats()).turns == 0
    assert (await own.requests.add("r1", "tool-results", [{"tool_call_id": "t1", "content": WORD}])).status == "skipped"
    assert (await own.requests.add("r1", "code-changes", [{"file_path": f"{WORD}.py"}])).status == "skipped"
    assert (await own.requests.finalize("r1")).status == "skipped"
    await own.sweep()
    assert left(own) == []
    assert await own.list_conversations() == [], "a conversation in which nothing was to be recorded is none"
    assert (await own.verify()).status == "intact"


async def test_what_was_kept_of_a_dropped_request_is_off_the_disk_at_once(memory: Memory) -> None:
    await memory.record(payload("before", "kept", request_id="r0"))
    await memory.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await memory.requests.add("r1", "messages", message(1, WORD, "assistant"))
    await memory.requests.add("r1", "messages", message(0, MARKER))
    assert left(memory) == []


async def test_a_dropped_request_leaves_the_rest_of_its_conversation(memory: Memory) -> None:
    await memory.record(payload("before", "kept", request_id="r0"))
    await memory.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await memory.requests.add("r1", "messages", message(1, WORD, "assistant"))
    await memory.requests.add("r1", "messages", message(0, MARKER))
    assert (await memory.requests.finalize("r1")).status == "skipped"
    (info,) = await memory.list_conversations()
    assert (info.turn_count, info.last_message) == (1, "kept")
    await memory.sweep()
    assert left(memory) == []


async def test_a_dropped_request_is_remembered_by_another_process(memory: Memory, reopen: OpenMemory) -> None:
    await memory.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await memory.requests.add("r1", "messages", message(0, f"{MARKER} {WORD}"))
    other = await reopen()
    assert (await other.requests.add("r1", "messages", message(1, WORD, "assistant"))).status == "skipped"
    assert (await other.requests.finalize("r1")).status == "skipped"
    assert left(memory) == []


async def test_a_dropped_request_that_nobody_finalizes_goes_with_the_sweep(memory: Memory, clock: ManualClock) -> None:
    await memory.requests.start("r1", {"project_id": "shop", "chat_meta": {"chat_id": "c1"}})
    await memory.requests.add("r1", "messages", message(0, f"{MARKER} {WORD}"))
    clock.advance(2 * 3_600)
    assert (await memory.sweep()).closed == 1
    assert await memory.list_conversations() == []
    assert await memory.projects() == []


async def test_nothing_waits_to_be_saved_of_what_is_not_to_be_recorded(memory: Memory) -> None:
    later = configured(memory, agent={"memory": {"persistence": {"auto_save": False}}}, projects={"hidden": {"exclude": True}})
    conversation = await later.create_conversation(project="shop")
    await conversation.record(user=f"{MARKER} {WORD}")
    await (await later.create_conversation(project="hidden")).record(user=WORD)
    await conversation.record(user=OTHER)
    assert await later.save() == 1
    assert left(later) == []
    assert left(later, OTHER) != []


async def test_a_request_of_which_nothing_is_recorded_begins_no_conversation(memory: Memory) -> None:
    recorded = await memory.record(payload(f"{MARKER} {WORD}", "noted", request_id="r"))
    assert recorded.status == "skipped"
    assert await memory.list_conversations() == []
    assert await memory.projects() == []
    told = await memory.record(payload("Fix login", "Done", request_id="r2"))
    assert (await memory.record(payload(f"{MARKER} {WORD}", "noted", request_id="r3"))).status == "skipped"
    assert [one.id for one in await memory.list_conversations()] == [told.conversation_id]
