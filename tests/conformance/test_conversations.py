"""Conversations: created, listed, changed, put aside, resumed; by status, tags, directory and project."""

from __future__ import annotations

from pathlib import Path

import pytest

from recollect.clock import ManualClock
from recollect.errors import InputError, NotFoundError
from recollect.memory import Memory


async def test_a_list_shows_the_latest_change_first(memory: Memory, clock: ManualClock) -> None:
    first = await memory.create_conversation(project="p", title="first")
    clock.advance(1)
    await memory.create_conversation(project="p", title="second")
    clock.advance(1)
    await first.record(user="hello", assistant="and a last word")
    infos = await memory.list_conversations()
    assert [info.title for info in infos] == ["first", "second"]
    assert (infos[0].turn_count, infos[0].message_count, infos[0].last_message) == (1, 2, "and a last word")
    assert len(await memory.list_conversations(limit=1)) == 1
    assert await memory.list_conversations(limit=0) == []


async def test_conversations_are_listed_by_status_tags_agent_and_project(memory: Memory) -> None:
    one = await memory.create_conversation(project="p", title="one", tags=["auth", "bug", "auth"], agent="codex")
    await memory.create_conversation(project="q", title="two", tags=["ui"])
    await one.archive()

    async def titles(**where: object) -> list[str | None]:
        return sorted(info.title or "" for info in await memory.list_conversations(**where))  # type: ignore[arg-type]

    assert one.info.tags == ("auth", "bug")
    assert await titles(status="archived") == ["one"]
    assert await titles(status="active") == ["two"]
    assert await titles(tags=["auth", "ui"]) == ["one", "two"]
    assert await titles(tags=["nothing"]) == []
    assert await titles(project="p") == ["one"]
    assert await titles(project="nobody") == []
    assert await titles(agent="codex") == ["one"]
    with pytest.raises(InputError):
        await memory.list_conversations(status="open")  # type: ignore[arg-type]


async def test_sessions_of_a_directory_resolve_links_subdirectories_and_worktrees(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repo"
    (repository / ".git" / "worktrees" / "wt").mkdir(parents=True)
    (repository / "src").mkdir()
    worktree = tmp_path / "wt"
    worktree.mkdir()
    (worktree / ".git").write_text(f"gitdir: {repository}/.git/worktrees/wt\n")
    link = tmp_path / "link"
    link.symlink_to(repository)
    conversation = await memory.create_conversation(cwd=repository / "src")
    await conversation.record(user="hi", assistant="last words")
    for place in (repository, repository / "src", link, link / "src", worktree):
        assert [session.id for session in await memory.sessions(place)] == [conversation.id], place
    monkeypatch.chdir(repository / "src")
    session = (await memory.sessions("."))[0]
    assert (session.turn_count, session.last_message) == (1, "last words")
    assert [session.id for session in await memory.sessions("../../link")] == [conversation.id]
    assert await memory.sessions(tmp_path) == []
    assert [info.project for info in await memory.list_conversations(cwd=link)] == ["repo"]


async def test_a_directory_that_does_not_exist_is_a_project_all_the_same(memory: Memory) -> None:
    conversation = await memory.create_conversation(cwd="/nowhere/at/all")
    await conversation.record(user="hi", tool_calls=[{"name": "Read", "arguments": {"file_path": "/nowhere/at/all/a.py"}, "result": ""}])
    assert [session.id for session in await memory.sessions("/nowhere/at/all")] == [conversation.id]
    assert [file.path for file in await conversation.accessed_files()] == ["a.py"]


async def test_the_same_external_id_gives_the_same_conversation(memory: Memory) -> None:
    one = await memory.create_conversation(project="p", agent="codex", external_id="s1")
    await one.record(user="hi")
    again = await memory.create_conversation(project="p", agent="codex", external_id="s1", title="other")
    assert again.id == one.id
    assert again.info.turn_count == 1
    assert (await memory.create_conversation(project="p", agent="gemini", external_id="s1")).id != one.id


async def test_title_and_tags_can_change_and_are_redacted(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p", title="old")
    info = await conversation.change(title="use password=hunter2hunter2", tags=["a"])
    assert info.title == "use password=[redacted:assigned-secret]"
    assert (await memory.get_info(conversation.id)).tags == ("a",)
    assert (await memory.verify()).status == "intact"
    await conversation.delete()
    with pytest.raises(NotFoundError):
        await conversation.change(title="x")


async def test_tool_calls_are_listed_by_name_and_outcome_newest_first(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="a", tool_calls=[{"name": "ls", "result": "1"}, {"name": "cat", "error": "no"}])
    await conversation.record(user="b", tool_calls=[{"name": "ls", "error": "no"}, {"name": "ls"}])
    calls = await conversation.get_tool_calls()
    assert [(call.tool_name, call.status) for call in calls] == [("ls", "unknown"), ("ls", "failed"), ("cat", "failed"), ("ls", "success")]
    assert [call.status for call in await conversation.get_tool_calls("ls", success=True)] == ["success"]
    assert [call.tool_name for call in await conversation.get_tool_calls(success=False)] == ["ls", "cat"]
    assert len(await conversation.get_tool_calls(limit=2)) == 2


async def test_accessed_files_come_once_with_their_latest_access_writes_first(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(
        user="a",
        tool_calls=[
            {"name": "Read", "arguments": {"file_path": "a.py"}, "result": ""},
            {"name": "Read", "arguments": {"file_path": "b.py"}, "result": ""},
            {"name": "Read", "arguments": {"file_path": "/tmp/x.log"}, "result": ""},
        ],
    )
    await conversation.record(user="b", tool_calls=[{"name": "Edit", "arguments": {"file_path": "a.py"}, "result": ""}])
    files = await conversation.accessed_files()
    assert [(file.path, file.kind, file.turn_index) for file in files] == [("a.py", "write", 1), ("b.py", "read", 0)]
    assert "/tmp/x.log" in [file.path for file in await conversation.accessed_files(temporary=True)]
    assert len(await conversation.accessed_files(max_chars=10)) == 1


async def test_wrong_arguments_are_refused_with_a_sentence(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    for refused in (
        conversation.record(),
        conversation.record(user=["not", "text"]),  # type: ignore[arg-type]
        conversation.record(user="x", tool_calls={"name": "ls"}),  # type: ignore[arg-type]
        conversation.record(user="x", tool_calls=["ls"]),
        conversation.record(messages="text"),
        conversation.record(messages=[]),
        conversation.recent_turns(limit=-1),
        conversation.turns(first=-1),
        memory.create_conversation(project=""),
        memory.create_conversation(cwd=""),
        memory.create_conversation(project="p", tags="auth"),
        memory.create_conversation(project="p", tags=[str(n) for n in range(99)]),
        memory.list_conversations(limit=-1),
        memory.verify("only-an-id"),
        memory.list_conversations(limit=10**30),
        memory.list_conversations(limit="5"),  # type: ignore[arg-type]
        memory.search(5),  # type: ignore[arg-type]
        memory.search("x", limit=1.5),  # type: ignore[arg-type]
        memory.create_conversation(title=5),  # type: ignore[arg-type]
        memory.create_conversation(cwd=5),  # type: ignore[arg-type]
        memory.create_conversation(project=5),  # type: ignore[arg-type]
        memory.create_conversation(agent=5),  # type: ignore[arg-type]
        memory.create_conversation(cwd="~nobody-of-that-name/x"),
        conversation.record(user=""),
        conversation.record(user="x", messages=[{"role": "user", "content": "y"}]),
        conversation.record(user="x", context_files=[{"path": 5}]),
        conversation.turns(first=10**30),
    ):
        with pytest.raises(InputError):
            await refused


async def test_raw_characters_are_counted(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="12345", assistant="123", reasoning="12", tool_calls=[{"name": "ls", "result": "1234"}])
    assert await conversation.raw_char_count() == 14


async def test_a_project_that_was_named_before_its_folder_was_known_learns_it(memory: Memory, tmp_path: Path) -> None:
    await memory.create_conversation(project="late")
    await memory.create_conversation(tmp_path, project="late")
    assert [project.root for project in await memory.projects()] == [str(tmp_path)]
