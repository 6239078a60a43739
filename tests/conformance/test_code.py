"""Code: read from a project's files, found by name and in words, shown as it is now, and joined to those who speak of it."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from recollect.clock import ManualClock
from recollect.errors import InputError, NotFoundError
from recollect.memory import Memory
from tests.kit import OpenMemory, configured
from tests.left import everywhere, places_of

AUTH = '''"""Who may come in."""


class Door:
    """A door with a lock."""

    def unlock_door(self, key: str) -> bool:
        """Turn the key, once."""
        return key == "right"


def login_user(name: str) -> str:
    """Greet somebody who has the key."""
    return f"hello {name}"
'''
TOOLS = """package tools

// Weigh returns how heavy a parcel is.
func Weigh(parcel string) int {
	return len(parcel)
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "shop"
    (root / "src").mkdir(parents=True)
    (root / "src" / "auth.py").write_text(AUTH)
    (root / "tools.go").write_text(TOOLS)
    (root / "ignored").mkdir()
    (root / "ignored" / "secret.py").write_text("def never_seen(): pass\n")
    (root / ".gitignore").write_text("ignored/\n")
    (root / "notes.txt").write_text("def not_code(): pass\n")
    return root


def add_worktree(project: Path, folder: Path) -> None:
    git = ["git", "-C", str(project), "-c", "user.name=n", "-c", "user.email=e@example.org"]
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "first"], ["worktree", "add", "-q", str(folder)]):
        subprocess.run([*git, *command], check=True, capture_output=True)


async def names(memory: Memory, project: Path) -> list[str]:
    owner = next(one for one in await memory.projects() if one.root == str(project))
    return [scope.qualified for scope in await memory.store.code.scopes(memory.workspace, owner.id, None)]


async def test_an_index_holds_what_the_files_define_and_reads_again_only_what_changed(memory: Memory, project: Path) -> None:
    seen: list[int] = []
    made = await memory.index(project, progress=lambda count, _: seen.append(count))
    assert (made.project, made.root, made.files, made.scopes, made.changed, made.gone) == ("shop", str(project), 2, 4, 2, 0)
    assert seen == [1, 2]
    assert await names(memory, project) == ["Door", "Door.unlock_door", "login_user", "Weigh"]
    assert (await memory.index(project)).changed == 0
    os.utime(project / "tools.go", (1, 1))
    assert (await memory.index(project)).changed == 0
    (project / "tools.go").unlink()
    (project / "src" / "auth.py").write_text("# moved down\n" + AUTH.replace("login_user", "greet_user"))
    again = await memory.index(project)
    assert (again.files, again.scopes, again.changed, again.gone) == (1, 3, 1, 1)
    (found,) = await memory.scopes("greet_user", cwd=project)
    assert (found.scope.line_start, found.scope.line_end, found.scope.kind) == (13, 15, "function")
    assert found.scope.signature == "def greet_user(name: str) -> str"
    assert found.scope.docstring == "Greet somebody who has the key."
    assert await memory.scopes("login_user", cwd=project) == []
    assert (await memory.verify()).status == "intact"


async def test_symbols_are_found_by_qualified_name_and_in_words(memory: Memory, project: Path) -> None:
    await memory.index(project)
    assert [use.scope.file_path for use in await memory.scopes("Door.unlock_door", cwd=project)] == ["src/auth.py"]
    assert (await memory.find_scopes("what does login_user do", cwd=project))[0].scope.name == "login_user"
    assert (await memory.find_scopes("how heavy is a parcel", cwd=project))[0].scope.name == "Weigh"
    hits = await memory.find_scopes("Door.unlock_door key", cwd=project, limit=2)
    assert hits[0].scope.qualified == "Door.unlock_door"
    assert all(0 <= hit.score <= 1 for hit in hits)
    for query in ("", "xyzzy", '"*) OR (', "a" * 9_000):
        assert await memory.find_scopes(query, cwd=project) == []


async def test_symbols_are_found_by_meaning_alone_while_embeddings_are_on(memory: Memory, project: Path) -> None:
    off = configured(memory, agent={"memory": {"embeddings": {"enabled": False}}})
    await off.index(project)
    asked = "credentials of accounts"  # of which no symbol has a word
    assert await off.find_scopes(asked, cwd=project) == await memory.find_scopes(asked, cwd=project) == []
    assert (await off.index(project)).changed == 0
    assert (await memory.index(project)).changed == 2  # what was read without its meaning is read again
    assert [hit.scope.name for hit in await memory.find_scopes(asked, cwd=project)] == ["login_user"]
    assert await off.find_scopes(asked, cwd=project) == []
    assert await memory.find_scopes("a recipe for apple pie", cwd=project) == []
    (project / "src" / "auth.py").unlink()
    assert (await memory.index(project)).gone == 1
    assert await memory.find_scopes(asked, cwd=project) == []


async def test_conversations_that_speak_of_code_are_joined_to_it_before_and_after_it_is_indexed(memory: Memory, project: Path) -> None:
    early = await memory.create_conversation(cwd=project, title="early")
    await early.record(user="Why does login_user greet twice?", assistant="I will get the main door open.")
    await memory.index(project)
    late = await memory.create_conversation(cwd=project, title="late")
    await late.record(
        user="Look at src/auth.py:8",
        assistant="`Door.unlock_door` compares keys.",
        tool_calls=[{"name": "Read", "arguments": {"file_path": "tools.go", "why": "Weigh() is slow"}}],
    )
    await memory.distill()
    titles = {name: [info.title for info in use.conversations] for name in ("login_user", "Door.unlock_door", "Weigh", "Door")
              for use in await memory.scopes(name, cwd=project)}  # fmt: skip
    assert titles == {"login_user": ["early"], "Door.unlock_door": ["late"], "Weigh": [], "Door": []}
    await memory.forget(conversation=early.id)
    assert (await memory.scopes("login_user", cwd=project))[0].conversations == ()


async def test_names_of_other_modules_are_no_symbols_of_the_project(memory: Memory, project: Path) -> None:
    (project / "src" / "limits.py").write_text("LOGIN_LIMIT = 5\n")
    own = await memory.create_conversation(cwd=project, title="own")
    await own.record(user=f"{project}/src/auth.py:8 is wrong, and shop.auth.login_user, and LOGIN_LIMIT", assistant="Yes.")
    other = await memory.create_conversation(cwd=project, title="other")
    for text in (
        "flask_login.login_user(user)",
        "from flask_login import login_user",
        "see requests.auth.Door.unlock_door",
        'File "/usr/lib/python3.11/src/auth.py", line 13, in login_user',
        "other.LOGIN_LIMIT",
    ):
        await other.record(user=text, assistant="Yes.")
    await memory.index(project)
    for _ in range(2):
        for name in ("login_user", "Door.unlock_door", "LOGIN_LIMIT"):
            (use,) = await memory.scopes(name, cwd=project)
            assert [info.title for info in use.conversations] == ["own"]
        await memory.distill()


async def test_a_context_shows_code_as_its_file_has_it_now(memory: Memory, project: Path) -> None:
    await memory.index(project)
    conversation = await memory.create_conversation(cwd=project)
    await conversation.record(user="Hello", assistant="Hi")
    shown = (await memory.context("what does login_user do", conversation=conversation.id)).render()
    assert "function login_user · src/auth.py:12–14 of 14 lines" in shown
    assert '> def login_user(name: str) -> str:\n>     """Greet somebody who has the key."""\n>     return f"hello {name}"' in shown
    (project / "src" / "auth.py").write_text("\n\n" + AUTH.replace("hello", "goodbye"))
    shown = (await memory.context("what does login_user do", conversation=conversation.id)).render()
    assert "src/auth.py:14–16 of 16 lines" in shown
    assert "goodbye" in shown
    assert "hello {name}" not in shown
    (project / "src" / "auth.py").write_text("nothing = 1\n")
    context = await memory.context("what does login_user do", conversation=conversation.id)
    assert "login_user(name" not in context.render()
    assert any("not in its file any more" in left.reason for left in context.left_out)


async def test_what_is_too_long_for_the_section_is_cut_with_a_mark_and_leaves_room_for_others(memory: Memory, project: Path) -> None:
    steps = "".join(f"    step_{n} = {n}\n" for n in range(3_000))
    (project / "giant.py").write_text(f'def giant_worker():\n    """Work a lot."""\n{steps}')
    await memory.index(project)
    alone = await memory.context("giant_worker", project="shop")
    (item,) = [item for item in alone.items if item.kind == "scope"]
    assert item.is_cut
    assert "Work a lot." in item.text
    assert "step_2999" in item.text
    assert "[cut: " in item.text
    assert item.char_count > 9_000
    both = await memory.context("login_user giant_worker", project="shop")
    shown = {item.file_path: item for item in both.items if item.kind == "scope"}
    assert (shown["giant.py"].is_cut, shown["src/auth.py"].is_cut) == (True, False)
    assert "hello {name}" in shown["src/auth.py"].text


async def test_each_symbol_that_is_found_is_shown_or_told_to_be_left_out(memory: Memory, project: Path) -> None:
    (project / "limits.py").write_text("".join(f'LOGIN_LIMIT_{n} = "{"x" * 900}"\n' for n in range(6)) + "LOGIN_LIMIT = 5\n")
    await memory.index(project)
    for query in ("how does login_user heed the login limit", "retry LOGIN_LIMIT of a door", "LOGIN_LIMIT_1 LOGIN_LIMIT_2 LOGIN_LIMIT_3"):
        for budget_chars in (2_000, 5_000, 100_000):
            context = await memory.context(query, project="shop", budget_chars=budget_chars)
            found = [hit.scope.id for hit in await memory.find_scopes(query, project="shop", limit=8)]
            told = [item.id for item in context.items if item.kind == "scope"]
            told += [left.id for left in context.left_out if left.kind == "scope" and left.reason]
            assert sorted(told) == sorted(found) != []


async def test_code_outside_of_its_folder_is_never_shown(memory: Memory, project: Path, tmp_path: Path) -> None:
    await memory.index(project)
    conversation = await memory.create_conversation(cwd=project)
    await conversation.record(user="Hello", assistant="Hi")
    outside = tmp_path / "outside.py"
    outside.write_text(AUTH.replace("hello", "canary"))
    (project / "src" / "auth.py").unlink()
    (project / "src" / "auth.py").symlink_to(outside)
    assert "canary" not in (await memory.context("what does login_user do", conversation=conversation.id)).render()
    assert (await memory.index(project)).files == 1


async def test_secrets_in_code_reach_neither_the_index_nor_a_context(memory: Memory, project: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    (project / "leak.py").write_text(f'def call_service(token="{token}"):\n    """Use {token}."""\n    return "{token}"\n')
    await memory.index(project)
    (use,) = await memory.scopes("call_service", cwd=project)
    assert token not in use.scope.signature + use.scope.docstring
    conversation = await memory.create_conversation(cwd=project)
    await conversation.record(user="Hello", assistant="Hi")
    shown = (await memory.context("what does call_service do", conversation=conversation.id)).render()
    assert "def call_service" in shown
    assert token not in shown


async def test_what_a_project_keeps_holds_for_its_code_too(memory: Memory, project: Path) -> None:
    short = configured(memory, projects={"*": {"privacy": "summary"}})
    await short.index(project)
    (use,) = await short.scopes("login_user", cwd=project)
    assert (use.scope.signature, use.scope.docstring, use.scope.line_start) == ("", "", 12)
    with pytest.raises(InputError, match="not indexed"):
        await configured(memory, projects={"*": {"exclude": True}}).index(project)
    with pytest.raises(NotFoundError, match="no directory"):
        await memory.index(project / "nothing")


async def test_a_policy_that_changes_takes_back_what_was_indexed(memory: Memory, project: Path) -> None:
    await memory.index(project)
    conversation = await memory.create_conversation(cwd=project)
    await conversation.record(user="Hello", assistant="Hi")
    short = configured(memory, projects={"*": {"privacy": "summary"}})
    assert "hello {name}" not in (await short.context("what does login_user do", conversation=conversation.id)).render()
    assert (await short.index(project)).changed == 2
    assert (await memory.scopes("login_user", cwd=project))[0].scope.docstring == ""
    assert (await memory.index(project)).changed == 2
    none = configured(memory, projects={"*": {"exclude": True}})
    shown = await none.context("login_user", conversation=conversation.id)
    assert [item for item in shown.items if item.kind == "scope"] == []
    with pytest.raises(InputError):
        await none.index(project)
    assert await memory.scopes("login_user", cwd=project) == []
    with pytest.raises(InputError, match="a symbol is a name"):
        await memory.scopes(" ", cwd=project)


async def test_a_forgotten_project_takes_its_code_along(memory: Memory, project: Path) -> None:
    (project / "empty.py").write_text("")
    await memory.index(project)
    lonely = await memory.create_conversation(project="other")
    await memory.forget(conversation=lonely.id)
    assert (await memory.index(project)).changed == 0
    assert places_of("unlock_door", everywhere(memory)) != []
    await memory.forget(project="shop")
    assert await memory.projects() == []
    assert places_of("unlock_door", everywhere(memory)) == []
    assert places_of(str(project), everywhere(memory)) == []


async def test_no_half_of_a_secret_is_left_where_a_signature_is_cut(memory: Memory, project: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    padding = ", ".join(f"argument_{n}" for n in range(19))
    (project / "leak.py").write_text(f'def call_service({padding}, token="{token}"):\n    """{"word " * 95}{token}"""\n')
    await memory.index(project)
    assert places_of(token[:12], everywhere(memory)) == []


async def test_a_turn_that_is_written_anew_stays_joined_to_the_code_it_speaks_of(memory: Memory, project: Path) -> None:
    await memory.index(project)
    for own in (memory, configured(memory, agent={"memory": {"embeddings": {"enabled": False}}})):
        conversation = await own.create_conversation(cwd=project)
        turn = await conversation.begin("Why does login_user greet?")
        await own.distill()
        await conversation.finish(turn, [{"role": "assistant", "content": "No reason."}])
        await own.distill()
        assert conversation.id in {info.id for info in (await own.scopes("login_user", cwd=project))[0].conversations}


async def test_who_speaks_of_a_symbol_that_is_new_or_of_a_whole_path_is_joined_to_it(memory: Memory, project: Path) -> None:
    await memory.index(project)
    conversation = await memory.create_conversation(cwd=project)
    await conversation.record(user="We need a logout_user", assistant="I will write it.")
    await memory.distill()
    (project / "src" / "auth.py").write_text(AUTH + "\n\ndef logout_user():\n    return None\n")
    await memory.index(project)
    assert [info.id for info in (await memory.scopes("logout_user", cwd=project))[0].conversations] == [conversation.id]
    await conversation.record(user=f"{project}/src/auth.py:8 is wrong", assistant="Yes")
    await memory.distill()
    assert [info.id for info in (await memory.scopes("Door.unlock_door", cwd=project))[0].conversations] == [conversation.id]


async def test_what_only_shares_a_common_word_is_not_shown(memory: Memory, project: Path) -> None:
    await memory.index(project)
    context = await memory.context("which name would suit our new office dog best, Rex or Bella?", project="shop")
    assert [item for item in context.items if item.kind == "scope"] == []


async def test_what_cannot_be_looked_at_for_a_moment_is_not_gone(memory: Memory, project: Path) -> None:
    await memory.index(project)
    (project / "src").rename(project / "ignored" / "src")
    (project / "src").symlink_to("src")  # leads nowhere, and does not say that there is nothing
    assert (await memory.index(project)).gone == 0
    (project / "src").unlink()
    assert (await memory.index(project)).gone == 1


async def test_in_a_linked_worktree_its_own_files_are_read(memory: Memory, project: Path, tmp_path: Path) -> None:
    add_worktree(project, tmp_path / "feature")
    (tmp_path / "feature" / "src" / "auth.py").write_text("def sign_up_user(): pass\n")
    made = await memory.index(tmp_path / "feature" / "src")
    assert (made.project, made.root) == ("shop", str(tmp_path / "feature"))
    assert await names(memory, project) == ["sign_up_user", "Weigh"]


async def test_code_of_one_workspace_is_unknown_to_another(memory: Memory, reopen: OpenMemory, project: Path) -> None:
    theirs = await reopen(workspace=f"{memory.workspace}-theirs")
    await theirs.index(project)
    assert await memory.scopes("login_user", cwd=project) == []
    assert await memory.find_scopes("login_user", cwd=project) == []
    assert await memory.store.code.having(memory.workspace, None, ["login_user"], 9) == []
    assert [item for item in (await memory.context("login_user")).items if item.kind == "scope"] == []


def till_now(clock: ManualClock) -> None:
    """Move a clock to the present, so that files written before are older than what is recorded next."""
    clock.advance((datetime.now(UTC) - clock.now()).total_seconds())


def move_away(project: Path) -> None:
    project.rename(project.parent / "elsewhere")


def reading(path: Path | str) -> list[dict[str, object]]:
    return [{"name": "Read", "arguments": {"file_path": str(path)}, "result": "…"}]


async def stale_places(memory: Memory) -> dict[tuple[str, int | None], bool]:
    hits = [hit for level in (0, 1) for hit in (await memory.search("marmalade question", levels=[level], limit=50)).hits]
    assert all(("stale" in hit.explanation) == hit.stale for hit in hits)
    return {(hit.kind, hit.turn_index): hit.stale for hit in hits}


@pytest.mark.parametrize("is_indexed", [True, False])
async def test_a_turn_keeps_what_its_file_was_when_it_ended(memory: Memory, project: Path, clock: ManualClock, *, is_indexed: bool) -> None:
    till_now(clock)
    conversation = await memory.create_conversation(cwd=project)
    if is_indexed:
        await memory.index(project)
    await conversation.record(user="marmalade question", assistant="It greets.", tool_calls=reading(project / "src" / "auth.py"))
    await memory.distill()
    assert await stale_places(memory) == {("turn", 0): False}
    (project / "src" / "auth.py").write_text(AUTH + "# more\n")
    assert await stale_places(memory) == {("turn", 0): True}  # as it is on disk, whatever an index says
    if is_indexed:
        await memory.index(project)
        assert await stale_places(memory) == {("turn", 0): True}
    (project / "src" / "auth.py").write_text(AUTH)
    assert await stale_places(memory) == {("turn", 0): False}
    (project / "src" / "auth.py").unlink()
    assert await stale_places(memory) == {("turn", 0): True}


async def test_where_a_file_is_not_at_hand_the_index_tells_whether_it_has_changed(
    memory: Memory, project: Path, clock: ManualClock
) -> None:
    till_now(clock)
    conversation = await memory.create_conversation(cwd=project)
    await memory.index(project)
    for n, name in enumerate(("src/auth.py", "tools.go", "notes.txt")):
        await conversation.record(user=f"marmalade question {n}", assistant="Yes.", tool_calls=reading(project / name))
    await memory.distill()
    (project / "src" / "auth.py").write_text(AUTH + "# more\n")
    (project / "tools.go").unlink()
    await memory.index(project)
    move_away(project)
    found = await stale_places(memory)
    assert [found["turn", n] for n in range(3)] == [True, True, False]


async def test_what_changed_before_anybody_looked_is_not_taken_for_what_the_turn_saw(
    memory: Memory, project: Path, clock: ManualClock
) -> None:
    till_now(clock)
    conversation = await memory.create_conversation(cwd=project)
    await conversation.record(user="marmalade question", assistant="It greets.", tool_calls=reading(project / "src" / "auth.py"))
    (project / "src" / "auth.py").write_text(AUTH + "# more\n")
    later = clock.now().timestamp() + 60
    os.utime(project / "src" / "auth.py", (later, later))
    for again in ("# still more\n", "# and more\n"):
        await memory.distill()
        await memory.index(project)
        assert await stale_places(memory) == {("turn", 0): False}  # nobody can tell
        (project / "src" / "auth.py").write_text(AUTH + again)


async def test_of_a_turn_that_ends_in_the_future_nobody_can_tell_what_it_saw(memory: Memory, project: Path, clock: ManualClock) -> None:
    till_now(clock)
    clock.advance(3_600)
    conversation = await memory.create_conversation(cwd=project)
    await conversation.record(user="marmalade question", assistant="It greets.", tool_calls=reading(project / "src" / "auth.py"))
    await memory.distill()
    (project / "src" / "auth.py").write_text(AUTH + "# more\n")
    assert await stale_places(memory) == {("turn", 0): False}


async def test_a_file_outside_of_the_project_is_not_looked_at(memory: Memory, project: Path, tmp_path: Path, clock: ManualClock) -> None:
    outside = tmp_path / "outside.py"
    outside.write_text(AUTH)
    (project / "link.py").symlink_to(outside)
    (project / "large.py").write_text("#" * 1_000_001)
    till_now(clock)
    conversation = await memory.create_conversation(cwd=project)
    for n, path in enumerate((outside, project / "link.py", project / "large.py", project / "src", project / "nothing.py")):
        await conversation.record(user=f"marmalade question {n}", assistant="Yes.", tool_calls=reading(path))
    await memory.distill()
    outside.write_text("nothing = 1\n")
    (project / "large.py").write_text("#")
    (project / "nothing.py").write_text("#")
    assert set((await stale_places(memory)).values()) == {False}


async def test_a_summary_is_told_by_what_its_last_turns_saw(memory: Memory, project: Path, clock: ManualClock) -> None:
    till_now(clock)
    conversation = await memory.create_conversation(cwd=project)
    auth = project / "src" / "auth.py"
    for n in range(5):
        if n in {1, 2}:
            auth.write_text(AUTH + f"# {n}\n")
            till_now(clock)
        calls = reading(auth) if n < 3 else []
        await conversation.record(user=f"marmalade question {n}", assistant="It greets.", tool_calls=calls)
        await memory.distill()
    found = await stale_places(memory)
    assert [found["turn", n] for n in range(5)] == [True, True, False, False, False]
    assert not found["summary", None]
    auth.write_text(AUTH)
    found = await stale_places(memory)
    assert [found["turn", n] for n in range(5)] == [False, True, True, False, False]
    assert found["summary", None]


async def test_what_a_project_keeps_of_its_code_changes_no_file(memory: Memory, project: Path, clock: ManualClock) -> None:
    till_now(clock)
    conversation = await memory.create_conversation(cwd=project)
    await memory.index(project)
    await conversation.record(user="marmalade question", assistant="It greets.", tool_calls=reading(project / "src" / "auth.py"))
    await memory.distill()
    await configured(memory, projects={"*": {"privacy": "summary"}}).index(project)
    move_away(project)
    assert await stale_places(memory) == {("turn", 0): False}


async def test_hits_whose_files_have_changed_since_say_so_and_rank_a_little_lower(
    memory: Memory, project: Path, clock: ManualClock
) -> None:
    till_now(clock)
    conversation = await memory.create_conversation(cwd=project)
    read = {"name": "Read", "arguments": {"file_path": str(project / "src" / "auth.py")}, "result": "…"}
    for n in range(5):
        await conversation.record(user=f"marmalade question {n}", assistant="It greets.", tool_calls=[read] if n == 1 else [])
    await memory.distill()

    async def found() -> dict[tuple[str, int | None], tuple[bool, float]]:
        hits = [
            *(await memory.search("marmalade question", levels=[0])).hits,
            *(await memory.search("marmalade question", levels=[1])).hits,
        ]
        assert all(("stale" in hit.explanation) == hit.stale for hit in hits)
        return {(hit.kind, hit.turn_index): (hit.stale, hit.score) for hit in hits}

    assert {stale for stale, _ in (await found()).values()} == {False}
    await memory.index(project)
    before = await found()
    assert {stale for stale, _ in before.values()} == {False}
    (project / "src" / "auth.py").write_text(AUTH + "\n# more\n")
    await memory.index(project)
    after = await found()
    assert {place for place, (stale, _) in after.items() if stale} == {("turn", 1), ("summary", None)}
    assert after["turn", 1][1] < before["turn", 1][1]
    assert after["turn", 2] == before["turn", 2]
    shown = (await memory.context("marmalade question 1", conversation=conversation.id, strategy="relevant")).render()
    assert "its files have changed since" in shown
    till_now(clock)
    await conversation.record(user="marmalade again", assistant="It still greets.", tool_calls=[read])
    await memory.index(project)
    assert not (await found())["turn", 5][0]
    (project / "src" / "auth.py").unlink()
    await memory.index(project)
    assert (await found())["turn", 5][0]
