"""The audit: five questions against a scenario whose answers were worked out by hand (`tests.scenario`), alike on every store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from recollect.answers import to_json
from recollect.errors import InputError, NotFoundError
from recollect.memory import Memory
from recollect.store.traced import CheckpointRows, TraceScope
from tests import scenario
from tests.kit import OpenMemory, said
from tests.planted import PLANTED
from tests.scenario import LINE, QUESTIONS

SERVICE = "src/auth/service.py"


async def recorded(memory: Memory) -> Memory:
    for payload in scenario.payloads():
        assert (await memory.record(payload)).status == "created"
    return memory


@pytest.fixture
async def shop(memory: Memory, reopen: OpenMemory) -> Memory:
    """Give a memory of the scenario, on a store where another workspace holds canaries under the same names."""
    theirs = await reopen(workspace=f"{memory.workspace}-theirs")
    for payload in scenario.canaries():
        await theirs.record(payload)
    return await recorded(memory)


def requests_of(answer: Any) -> list[str | None]:
    return [one["request_id"] for one in to_json(answer)["changes"]]


async def test_every_question_is_answered_as_worked_out_by_hand_and_without_the_canaries_of_another_workspace(shop: Memory) -> None:
    scenario.check_answers({name: await one.ask(shop) for name, one in QUESTIONS.items()})


async def test_both_stores_give_equal_answers(shop: Memory, elsewhere: Memory) -> None:
    await recorded(elsewhere)
    for name, question in QUESTIONS.items():
        assert await question.ask(shop) == await question.ask(elsewhere), name


async def test_a_line_is_found_by_its_content_through_a_rename_newest_first(shop: Memory) -> None:
    found = await shop.why(SERVICE, 7, line_text=f"    {LINE}", project="shop")
    assert scenario.told_why(to_json(found)) == scenario.WHY_LINE
    assert found.found_by == "content"


async def test_a_line_that_moved_is_still_found_by_its_content(shop: Memory) -> None:
    assert requests_of(await shop.why(SERVICE, 900, line_text=LINE, project="shop")) == ["req_logout", "req_check"]


async def test_a_change_comes_with_the_context_of_all_turns_of_its_request_by_usefulness(shop: Memory) -> None:
    reason = (await shop.why(SERVICE, 7, line_text=LINE, project="shop")).changes[1]
    assert reason.turn.context_files == (), "they were sent with a later turn of the same request"
    assert scenario.told_context(to_json(reason.context_files)) == scenario.WHY_CONTEXT


async def test_a_change_comes_with_what_was_asked_and_thought(shop: Memory) -> None:
    found = {one.request_id: one for one in (await shop.why(SERVICE, project="shop")).changes}
    assert (found["req_check"].asked, found["req_check"].reasoning) == (scenario.WHY_ASKED, scenario.WHY_REASONING)
    assert found["req_limit"].asked == "Limit attempts", "where the content is not kept, its summary is told"
    assert found["req_limit"].reasoning is None


async def test_a_file_tells_all_its_changes_newest_first_without_those_of_another_file_of_its_former_name(shop: Memory) -> None:
    assert scenario.told_why(to_json(await shop.why(SERVICE, project="shop"))) == scenario.WHY_FILE
    assert requests_of(await shop.why(SERVICE, project="shop", limit=2)) == ["req_logout", "req_limit"]


@pytest.mark.parametrize(("line", "request_id"), scenario.WHY_RANGE.items())
async def test_without_content_a_line_is_found_by_its_number_also_when_later_changes_moved_it(
    memory: Memory, line: int, request_id: str | None
) -> None:
    for payload in scenario.payloads():
        if payload["request_id"].startswith("req_pay"):
            await memory.record(payload)
    found = await memory.why("src/pay.py", line, project="shop")
    assert requests_of(found) == ([] if request_id is None else [request_id])
    assert found.found_by == (None if request_id is None else "range")


async def test_a_line_beside_a_change_is_not_its_own(shop: Memory) -> None:
    """Line 3, `import jwt`, stands in the diff of req_log as context; it was line 1 of the file that req_create made."""
    found = {line: requests_of(await shop.why(SERVICE, line, project="shop")) for line in (1, 3, 11)}
    assert found == {1: ["req_log"], 3: ["req_create"], 11: ["req_limit"]}


async def test_a_line_that_nobody_changed_is_nobodys(shop: Memory) -> None:
    for line, text in ((700, "class Nobody:"), (700, None), (700, "}")):
        found = await shop.why(SERVICE, line, line_text=text, project="shop")
        assert (found.changes, found.found_by) == ((), None)
    assert (await shop.why("src/nobody.py", project="shop")).changes == ()


async def test_a_line_that_no_kept_change_added_is_not_its_own(memory: Memory) -> None:
    diff = "@@ -0,0 +1,3 @@\n+def f():\n+    value = 1\n+    }\n"
    changes = [{"file_path": "a.py", "change_type": "created", "diff": diff, "line_start": 1, "line_end": 3}]
    await memory.record({"project_id": "p", "request_id": "r1", "messages": said("make it", "done"), "code_changes": changes})
    lines = enumerate(("import os", "    value = 1", "    }"), 1)
    told = [await memory.why("a.py", line, line_text=text, project="p") for line, text in lines]
    assert [(one.found_by, len(one.changes)) for one in told] == [(None, 0), ("content", 1), ("range", 1)]


async def test_changes_of_one_conversation_come_in_its_own_order_whatever_the_clock_said(memory: Memory) -> None:
    for n, day in enumerate((9, 8, 10)):
        changes = [{"file_path": "a.py", "lines_added": n}]
        await memory.record(
            {
                "project_id": "p", "request_id": f"r{n}", "chat_meta": {"chat_id": "c1"}, "timestamp": f"2026-02-{day:02}T00:00:00Z",
                "messages": said(f"change {n}", "done"), "code_changes": changes,
            }
        )  # fmt: skip
    assert requests_of(await memory.why("a.py", project="p")) == ["r2", "r1", "r0"]


async def test_a_file_by_its_whole_path_and_by_its_end_is_one_file_where_the_snapshots_tell_the_folder(memory: Memory) -> None:
    chunk = {"file_name": "/w/a.py", "file_action": "edit", "line1": 1, "line2": 1, "lines_remove": "", "lines_add": "x = 1\n"}
    messages = [
        {"role": "user", "content": "Create tests", "checkpoints": [{"workspace_folder": "/w", "commit_hash": "ae09"}]},
        {"role": "context_file", "content": json.dumps([{"file_name": "a.py", "file_content": "", "line1": 1, "line2": 39}])},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "t2", "function": {"name": "patch", "arguments": "{}"}}]},
        {"role": "diff", "tool_call_id": "t2", "content": json.dumps([chunk])},
    ]
    await memory.record({"project_id": "p", "request_id": "r1", "messages": messages})
    (reason,) = (await memory.why("a.py", project="p")).changes
    assert [one.file_path for one in reason.context_files] == ["a.py"]
    assert (await memory.file_usage("a.py", project="p")).followed_by_changes


async def test_the_text_of_a_line_is_read_from_the_file_where_the_directory_is_at_hand(memory: Memory, tmp_path: Path) -> None:
    conversation = await memory.create_conversation(tmp_path)
    secret_line, secret = PLANTED["assigned-secret"]
    added = f"x = compute_everything()\n# {secret_line}"
    call = {"name": "Edit", "arguments": {"file_path": str(tmp_path / "a.py"), "old_string": "pass", "new_string": added}, "result": "ok"}
    await conversation.record(user="compute", tool_calls=[call])
    (tmp_path / "a.py").write_text(f"import b\n\n{added}\n")
    found = await memory.why(str(tmp_path / "a.py"), 3, cwd=tmp_path)
    assert (found.path, found.line_text, found.found_by) == ("a.py", "x = compute_everything()", "content")
    hidden = await memory.why("a.py", 4, cwd=tmp_path)
    assert hidden.found_by == "content", "what is read is cleaned as what was recorded was"
    assert secret not in json.dumps(to_json(hidden))
    assert (await memory.why("a.py", 3, line_text="", cwd=tmp_path)).line_text is None, "an empty text reads no file"


async def test_a_file_is_one_file_in_whichever_worktree_and_through_whichever_link_it_was_changed(memory: Memory, tmp_path: Path) -> None:
    shop, tree, link = tmp_path / "shop", tmp_path / "shop-wt", tmp_path / "link"
    (shop / ".git" / "worktrees" / "shop-wt").mkdir(parents=True)
    (shop / ".git" / "worktrees" / "shop-wt" / "gitdir").write_text(f"{tree}/.git\n")
    (tree / "src").mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {shop}/.git/worktrees/shop-wt\n")
    link.symlink_to(tmp_path)
    for n, (cwd, path) in enumerate([(shop, "src/pay.py"), (tree, "src/pay.py"), (tree, tree / "src/pay.py"), (shop, tree / "src/pay.py"),
                                     (link / "shop", link / "shop" / "src/pay.py")]):  # fmt: skip
        changes = [{"file_path": str(path)}]
        about = {"request_id": f"r{n}", "cwd": str(cwd), "timestamp": f"2026-01-0{n + 1}"}
        await memory.record({**about, "messages": said(f"do {n}", "done"), "code_changes": changes, "context_files": changes})
    conversation = await memory.create_conversation(link / "shop")
    await conversation.record(user="do 5", changes=[{"file_path": str(link / "shop" / "src/pay.py")}])
    assert [one.root for one in await memory.projects()] == [str(shop)]
    for path in ("src/pay.py", shop / "src/pay.py", tree / "src/pay.py", link / "shop" / "src/pay.py"):
        found = await memory.why(str(path), cwd=tree)
        assert [(one.change.file_path, one.asked) for one in found.changes] == [("src/pay.py", f"do {n}") for n in (5, 4, 3, 2, 1, 0)]
        assert (await memory.file_usage(str(path), cwd=shop)).count == 5
    (tree / "src" / "pay.py").write_text("private = 1\n")
    assert (await memory.why(str(tree / "src/pay.py"), 1, cwd=tree)).line_text is None, "no file outside of the root is read for it"


async def test_a_line_is_never_read_from_outside_the_project(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "outside.txt").write_text("private")
    (tmp_path / "project" / "link.txt").symlink_to(tmp_path / "outside.txt")
    await (await memory.create_conversation(tmp_path / "project")).record(user="hello")
    for path in ("../outside.txt", str(tmp_path / "outside.txt"), "link.txt"):
        assert (await memory.why(path, 1, cwd=tmp_path / "project")).line_text is None


async def test_the_end_of_a_path_is_enough_where_one_file_alone_ends_with_it(shop: Memory) -> None:
    assert (await shop.why("service.py", project="shop")).path == SERVICE
    assert (await shop.file_usage("models.py", project="shop")).count == 47
    await shop.record(
        {
            "project_id": "shop", "request_id": "another", "messages": said("another", "file"),
            "code_changes": [{"file_path": "lib/service.py"}], "context_files": [{"file_path": "lib/models.py"}],
        }
    )  # fmt: skip
    with pytest.raises(InputError, match=r"several files end with 'service\.py': say which one is meant, of lib/service\.py, src/auth/"):
        await shop.why("service.py", project="shop")
    with pytest.raises(InputError, match=r"of src/models\.py, lib/models\.py"):
        await shop.file_usage("models.py", project="shop")
    assert (await shop.why("auth/service.py", project="shop")).path == SERVICE


async def test_a_line_begins_at_1_and_a_path_is_not_empty(shop: Memory) -> None:
    for line in (0, -1):
        with pytest.raises(InputError, match="line is a whole number from 1 to"):
            await shop.why(SERVICE, line, project="shop")
    for path in ("", "  ", "x" * 10_000):
        for question in (shop.why(path, project="shop"), shop.file_usage(path, project="shop")):
            with pytest.raises(InputError, match="path is one of 1 to"):
                await question


async def test_a_path_is_found_whichever_way_it_is_written(shop: Memory, tmp_path: Path) -> None:
    for path in ("src/auth/../auth/service.py", "./src/auth/service.py", "src//auth/service.py"):
        assert (await shop.why(path, project="shop")).path == SERVICE
        assert len((await shop.why(path, project="shop")).changes) == 6
    assert (await shop.file_usage("src/auth/../models.py", project="shop")).count == 47
    conversation = await shop.create_conversation(tmp_path / "work")
    await conversation.record(user="do", changes=[{"file_path": "src/x.py"}])
    for path in ("src/auth/../x.py", str(tmp_path / "work" / "src" / ".." / "src" / "x.py")):
        assert (await shop.why(path, cwd=tmp_path / "work")).path == "src/x.py"


async def test_two_names_of_one_file_are_not_two_files(memory: Memory) -> None:
    moved = {"file_path": "lib/a.py", "renamed_from": "src/a.py", "lines_added": 0, "lines_removed": 0}
    for n, change in enumerate([{"file_path": "src/a.py", "change_type": "created"}, moved]):
        about = {"project_id": "p", "request_id": f"r{n}", "timestamp": f"2026-01-0{n + 1}"}
        await memory.record({**about, "messages": said(f"do {n}", "done"), "code_changes": [change]})
    assert requests_of(await memory.why("a.py", project="p")) == ["r1", "r0"]


async def told(memory: Memory, *changes: tuple[str, str | None]) -> None:
    """Record requests r1, r2 … on the first days of January: the path that each changed, and the one it had before."""
    for n, (path, before) in enumerate(changes, 1):
        change = {"file_path": path} if before is None else {"file_path": path, "renamed_from": before}
        about = {"project_id": "p", "request_id": f"r{n}", "timestamp": f"2026-01-{n:02}"}
        await memory.record({**about, "messages": said(f"do {n}", "done"), "code_changes": [change]})


async def test_a_rename_after_the_period_is_followed(memory: Memory) -> None:
    call = {"id": "t", "name": "Write", "arguments": {"file_path": "old.py", "content": "x = 1\n"}, "result": "ok"}
    made = [*said("make it"), {"role": "assistant", "content": "done", "tool_calls": [call]}]
    await memory.record({"project_id": "p", "request_id": "r1", "timestamp": "2026-01-01", "messages": made})
    moved = {"project_id": "p", "request_id": "r2", "timestamp": "2026-01-05", "messages": said("move it", "done")}
    await memory.record({**moved, "code_changes": [{"file_path": "new.py", "renamed_from": "old.py"}]})
    assert requests_of(await memory.why("new.py", project="p")) == ["r2", "r1"]
    assert requests_of(await memory.why("new.py", project="p", since="2026-01-02")) == ["r2"]
    found = await memory.why("new.py", project="p", until="2026-01-04")
    assert (found.path, requests_of(found)) == ("new.py", ["r1"])
    assert requests_of(await memory.why("new.py", 1, line_text="x = 1", project="p", until="2026-01-04")) == ["r1"]


async def test_a_new_file_of_a_former_name_does_not_tell_the_history_of_the_one_that_was_renamed(memory: Memory) -> None:
    await told(memory, ("old.py", None), ("new.py", "old.py"), ("old.py", None), ("last.py", "new.py"))
    assert requests_of(await memory.why("old.py", project="p")) == ["r3"]
    assert requests_of(await memory.why("last.py", project="p")) == ["r4", "r2", "r1"]
    assert requests_of(await memory.why("old.py", project="p", until="2026-01-03")) == ["r2", "r1"], "the file that had the name by then"


async def test_a_name_that_was_renamed_away_tells_where_it_went(memory: Memory) -> None:
    await told(memory, ("src/b.py", "src/a.py"), ("src/b.py", None), ("src/c.py", "src/b.py"), ("src/ab.py", "src/aa.py"))
    found = await memory.why("src/a.py", project="p")
    assert (found.path, [one.change.file_path for one in found.changes]) == ("src/a.py", ["src/b.py"])
    assert requests_of(await memory.why("b.py", project="p")) == ["r3", "r2", "r1"]


async def test_a_flow_runs_over_all_turns_of_its_request(shop: Memory) -> None:
    found = await shop.flow("req_check")
    assert scenario.told_flow(to_json(found)) == scenario.FLOW
    assert len(found.turn_ids) == 3
    assert scenario.told_context(to_json(found.context_files)) == scenario.WHY_CONTEXT
    assert [one.checkpoint_id for one in found.checkpoints] == ["k2"]
    assert found.changes == (), "every change of it was made by a call"


async def test_a_flow_tells_the_changes_that_no_call_made(shop: Memory) -> None:
    found = await shop.flow("req_pay_2")
    assert [(one.file_path, one.line_start, one.line_end) for one in found.changes] == [("src/pay.py", 12, 14)]


async def test_a_flow_can_be_asked_for_by_the_id_of_one_of_its_turns(shop: Memory) -> None:
    whole = await shop.flow("req_check")
    one = await shop.flow(whole.turn_ids[1])
    assert scenario.told_flow(to_json(one)) == scenario.FLOW[3:6]
    with pytest.raises(NotFoundError, match=whole.turn_ids[1]):
        await shop.flow(whole.turn_ids[1], project="blog")


async def test_a_request_that_nobody_made_is_not_found(shop: Memory) -> None:
    with pytest.raises(NotFoundError, match="'req_nobody'"):
        await shop.flow("req_nobody")
    with pytest.raises(NotFoundError):
        await shop.flow("req_check", project="blog")


async def test_requests_of_two_projects_are_never_mixed(shop: Memory) -> None:
    with pytest.raises(InputError, match="several projects have a request 'req_log': say which one is meant, of blog, shop"):
        await shop.flow("req_log")
    assert [step.text for step in (await shop.flow("req_log", project="shop")).steps] == ["Log who logs in", "", "It is logged"]
    assert (await shop.flow("req_log", project="blog")).steps[0].text == "Blog about login"


async def test_a_file_is_context_47_times_with_an_average_of_089_from_ast_and_vecdb(shop: Memory) -> None:
    found = await shop.file_usage("src/models.py", project="shop")
    assert (found.count, found.average_usefulness, found.sources) == (47, 0.89, ("ast", "vecdb"))
    assert found.last_used_at is not None
    assert found.last_used_at.isoformat() == "2026-02-26T12:00:00+00:00"


async def test_the_changes_of_all_turns_of_a_request_follow_its_context(shop: Memory) -> None:
    found = await shop.file_usage("src/models.py", project="shop")
    assert scenario.told_changes(to_json(found.followed_by_changes)) == scenario.USAGE_FOLLOWED


async def test_files_are_ranked_by_use_and_usefulness_and_sources_by_how_they_serve(shop: Memory) -> None:
    found = await shop.context_usage(project="shop", limit=2)
    assert scenario.told_usage(to_json(found.most_used)) == scenario.MOST_USED[:2]
    assert [one.path for one in found.most_useful] == scenario.MOST_USEFUL[:2]
    assert [one.path for one in found.never_useful] == scenario.NEVER_USEFUL
    assert [one.source for one in found.sources] == ["ast", "vecdb", "manual", "tool"]


async def test_files_that_are_listed_tell_the_changes_that_followed_as_each_alone_does(shop: Memory) -> None:
    periods: list[dict[str, Any]] = [{}, scenario.PERIOD, scenario.OLDER]
    for period in periods:
        found = await shop.context_usage(project="shop", **period)
        for one in (*found.most_used, *found.most_useful, *found.never_useful):
            assert one == await shop.file_usage(one.path, project="shop", **period)
    [models] = [one for one in (await shop.context_usage(project="shop")).most_used if one.path == "src/models.py"]
    assert scenario.told_changes(to_json(models.followed_by_changes)) == scenario.USAGE_FOLLOWED


async def test_a_file_that_was_never_context_was_used_0_times(shop: Memory) -> None:
    found = await shop.file_usage("src/nobody.py", project="shop")
    assert (found.path, found.count, found.average_usefulness, found.sources) == ("src/nobody.py", 0, None, ())


async def test_3_of_25_calls_failed_which_is_12_per_cent(shop: Memory) -> None:
    [found] = await shop.tool_reliability("run_tests", project="shop")
    assert (found.calls, found.failures, found.failure_rate) == (25, 3, 0.12)
    assert (found.p50_ms, found.p95_ms) == (100.0, 190.0), "values that occurred, by nearest rank, of the calls that were timed"
    assert [(one.message, one.count) for one in found.common_errors] == scenario.ERRORS
    assert [(one.day, one.calls, one.failures) for one in found.trend] == scenario.TREND


@pytest.mark.parametrize(("count", "p50", "p95"), [(1, 1, 1), (2, 1, 2), (3, 2, 3), (19, 10, 19), (20, 10, 19), (21, 11, 20), (40, 20, 38)])
async def test_percentiles_are_by_nearest_rank(memory: Memory, count: int, p50: float, p95: float) -> None:
    """The rank is n * share, rounded up: of 21 calls 10.5 → 11 and 19.95 → 20."""
    calls = [{"id": f"t{n}", "name": "run", "result": "ok", "duration_ms": n} for n in range(count, 0, -1)]
    await memory.record({"project_id": "p", "messages": [*said("run"), {"role": "assistant", "content": "", "tool_calls": calls}]})
    [found] = await memory.tool_reliability(project="p")
    assert (found.p50_ms, found.p95_ms) == (p50, p95)


async def test_a_tool_that_was_never_called_or_timed_has_no_figures(shop: Memory) -> None:
    assert await shop.tool_reliability("nobody", project="shop") == []
    [cat] = await shop.tool_reliability("cat", project="shop")
    assert (cat.failure_rate, cat.p50_ms, cat.p95_ms, cat.common_errors) == (0.0, None, None, ())


async def test_checkpoints_follow_each_other_by_name_or_by_order_with_the_changes_between_them(shop: Memory) -> None:
    assert scenario.told_checkpoints(to_json(await shop.checkpoints(project="shop"))) == scenario.CHECKPOINTS


async def test_checkpoints_can_be_those_of_one_conversation(shop: Memory) -> None:
    login = (await shop.flow("req_check")).conversation_id
    assert scenario.told_checkpoints(to_json(await shop.checkpoints(login))) == scenario.CHECKPOINTS_LOGIN
    assert await shop.checkpoints(login, project="blog") == []
    assert await shop.checkpoints("no-such-conversation") == []


async def test_a_checkpoint_follows_the_same_one_whatever_period_is_asked_for(shop: Memory) -> None:
    found = await shop.checkpoints(project="shop", since="2026-03-02")
    assert scenario.told_checkpoints(to_json(found)) == [("bb04", 8, "k3", True, ["req_logout"])]


async def test_checkpoints_of_two_folders_are_two_chains(memory: Memory) -> None:
    for n, letter in enumerate("abc"):
        saved = [{"workspace_folder": f"/w{folder}", "commit_hash": f"{folder}{letter}"} for folder in (1, 2)]
        change = {"file_path": f"/w1/{letter}.py"}
        about = {"project_id": "p", "request_id": f"r{n}", "chat_meta": {"chat_id": "c"}, "timestamp": f"2026-01-0{n + 1}"}
        messages = [{"role": "user", "content": f"do {letter}", "checkpoints": saved}, {"role": "assistant", "content": f"did {letter}"}]
        await memory.record({**about, "messages": messages, "code_changes": [change]})
    told = [(one.checkpoint.git_hash, one.parent, [change.request_id for change in one.changes]) for one in await memory.checkpoints()]
    assert told == [
        ("1a", None, ["r0"]), ("2a", None, ["r0"]), ("1b", "1a", ["r1"]), ("2b", "2a", ["r1"]), ("1c", "1b", ["r2"]), ("2c", "2b", ["r2"])
    ]  # fmt: skip


async def test_changes_between_two_checkpoints_of_one_turn_are_placed_by_their_times(memory: Memory) -> None:
    saved = [{"checkpoint_id": f"k{n}", "timestamp": f"2026-01-01T10:0{2 * n - 2}:00Z"} for n in (1, 2)]
    changes = [{"file_path": path, "timestamp": f"2026-01-01T10:0{n}:00Z"} for n, path in ((1, "d.py"), (3, "e.py"))]
    await memory.record({"project_id": "p", "messages": said("do", "done"), "checkpoints": saved, "code_changes": changes})
    found = [(one.checkpoint.checkpoint_id, [change.file_path for change in one.changes]) for one in await memory.checkpoints()]
    assert found == [("k1", ["d.py"]), ("k2", ["e.py"])]


async def test_the_checkpoints_of_a_branch_are_those_of_its_parent_up_to_the_fork_then_its_own(memory: Memory) -> None:
    parent = await memory.create_conversation(project="p")
    for n in range(3):
        await parent.record(user=f"do {n}", checkpoints=[{"checkpoint_id": f"k{n}"}], changes=[{"file_path": f"{n}.py"}])
    branch = await parent.branch(from_turn=0)
    await branch.record(user="another way", changes=[{"file_path": "b1.py"}])
    await branch.record(user="and on", checkpoints=[{"checkpoint_id": "b2"}], changes=[{"file_path": "b2.py"}])

    async def told(*asked: str) -> list[tuple[str | None, str | None, list[str]]]:
        found = await memory.checkpoints(*asked, project="p")
        return sorted((one.checkpoint.checkpoint_id, one.parent, [change.file_path for change in one.changes]) for one in found)

    own = ("b2", "k0", ["b2.py"])
    whole = [("k0", None, ["0.py"]), ("k1", "k0", ["1.py"]), ("k2", "k1", ["2.py"])]
    assert await told(branch.id) == [own, ("k0", None, ["0.py", "b1.py"])]
    assert await told(parent.id) == whole
    assert await told() == [own, *whole]


async def test_every_question_keeps_to_its_period(shop: Memory) -> None:
    """A period has its beginning in it, and its end not; `days` count back from now, 2026-03-02 09:00."""
    newer: dict[str, Any] = {"project": "shop", **scenario.PERIOD}
    older: dict[str, Any] = {"project": "shop", **scenario.OLDER}
    assert requests_of(await shop.why(SERVICE, 7, line_text=LINE, **newer)) == ["req_logout"]
    assert requests_of(await shop.why("src/auth.py", **older)) == ["req_rename", "req_check", "req_create"]
    assert scenario.told_usage(to_json([await shop.file_usage("src/models.py", **older)])) == [scenario.USAGE_OLDER]
    assert scenario.told_usage(to_json([await shop.file_usage("src/models.py", **newer)])) == [scenario.USAGE_NEWER]
    assert (await shop.file_usage("src/models.py", project="shop", days=4)).count == 37, "since 26 February 09:00"
    assert (await shop.file_usage("src/models.py", project="shop", days=3)).count == 0
    assert [one.path for one in (await shop.context_usage(**newer)).never_useful] == ["CHANGELOG.md"]
    assert (await shop.context_usage(**older)).never_useful == ()
    assert scenario.told_tools(to_json(await shop.tool_reliability("run_tests", **newer))) == [scenario.RELIABILITY_NEWER]
    assert [one.checkpoint.checkpoint_id for one in await shop.checkpoints(**older)] == ["aa01", "k2"]
    assert (await shop.file_usage("src/models.py", project="shop", since="2026-02-26T12:00:00Z")).count == 37
    assert (await shop.file_usage("src/models.py", project="shop", until="2026-02-26T12:00:00Z")).count == 10
    with pytest.raises(InputError, match="days or since"):
        await shop.why(SERVICE, days=1, **newer)


async def test_a_change_in_a_period_comes_with_the_context_of_its_whole_request(memory: Memory) -> None:
    first = {"role": "user", "content": "change it", "timestamp": "2026-02-01T00:00:00Z"}
    later = {"role": "user", "content": "thanks", "timestamp": "2026-02-03T00:00:00Z"}
    call = {"id": "t", "name": "Edit", "arguments": {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "result": "ok"}
    made = {"role": "assistant", "content": "done", "tool_calls": [call], "timestamp": "2026-02-01T00:00:01Z"}
    await memory.record(
        {
            "project_id": "p",
            "request_id": "r",
            "messages": [first, made, later],
            "context_files": [{"file_path": "b.py", "usefulness": 0.5}],
        }
    )
    [reason] = (await memory.why("a.py", project="p", until="2026-02-02")).changes
    assert [one.file_path for one in reason.context_files] == ["b.py"]


async def test_every_question_keeps_to_its_project(shop: Memory) -> None:
    assert requests_of(await shop.why(SERVICE, 7, line_text=LINE, project="blog")) == ["req_log"]
    assert scenario.told_usage(to_json([await shop.file_usage("src/models.py", project="blog")])) == [("src/models.py", 1, 0.1, ["blogdb"])]
    assert [one.source for one in (await shop.context_usage(project="blog")).sources] == ["blogdb"]
    assert [(one.tool_name, one.calls, one.failures) for one in await shop.tool_reliability(project="blog")] == [
        ("run_tests", 4, 4),
        ("update_textdoc", 1, 0),
    ]
    assert scenario.told_checkpoints(to_json(await shop.checkpoints(project="blog"))) == [("z9", 0, None, False, ["req_log"])]


async def test_a_question_that_could_mean_several_projects_or_none_is_refused(shop: Memory) -> None:
    for question in (shop.why("src/pay.py"), shop.file_usage("a"), shop.context_usage(), shop.tool_reliability(), shop.checkpoints()):
        with pytest.raises(InputError, match="say which one is meant, of blog, shop"):
            await question
    with pytest.raises(NotFoundError, match="'nowhere'"):
        await shop.tool_reliability(project="nowhere")


async def test_no_question_leaves_its_workspace_whichever_projects_are_named(memory: Memory, reopen: OpenMemory) -> None:
    theirs = await reopen(workspace=f"{memory.workspace}-theirs")
    for payload in scenario.canaries():
        await theirs.record(payload)
    [project] = await theirs.projects()
    mine, trace = memory.workspace, memory.store.trace
    for where in (TraceScope(), TraceScope(project_ids=(project.id,))):
        assert await trace.paths(mine, where, SERVICE) == []
        assert await trace.renamed(mine, where, ["renamed from "]) == []
        assert await trace.changes(mine, where, None, 99) == []
        assert await trace.request(mine, where, ["req_check"]) == []
        assert await trace.followed(mine, where, ["src/models.py"], 99) == {"src/models.py": []}
        assert await trace.context(mine, where) == ([], [])
        assert await trace.tools(mine, where) == ([], [], [])
        assert await trace.checkpoints(mine, where, None) == CheckpointRows()
        assert len(await trace.changes(theirs.workspace, where, None, 99)) == 6, "three requests change two files each"
    with pytest.raises(NotFoundError):
        await memory.flow("req_check")


async def test_requests_that_are_sent_again_and_branches_that_inherit_them_count_once(shop: Memory) -> None:
    for payload in scenario.payloads():
        assert (await shop.record(payload)).status == "unchanged"
    login = await shop.load_conversation((await shop.flow("req_check")).conversation_id)
    await login.branch(from_turn=4, title="another way")
    scenario.check_answers({name: await one.ask(shop) for name, one in QUESTIONS.items()})


async def test_a_change_is_traced_to_its_tool_call(memory: Memory) -> None:
    """LESSONS: tool_call_id was dropped, so a change could never be traced to its tool call; here also where a call has no id."""
    conversation = await memory.create_conversation(project="p")
    edit = {"name": "Edit", "arguments": {"file_path": "a.py", "old_string": "a", "new_string": "b"}, "result": "ok"}
    await conversation.record(user="first", tool_calls=[{"id": "t1", **edit}], changes=[{"file_path": "a.py", "tool_call_id": "t1"}])
    turn = await conversation.record(user="second", tool_calls=[{"name": "Read", "arguments": {"file_path": "a.py"}}, edit])
    found = (await memory.why("a.py", project="p")).changes
    assert [(one.asked, one.tool_call and one.tool_call.tool_name) for one in found] == [("second", "Edit"), ("first", "Edit")]
    flow = await memory.flow(turn.id)
    assert [(call.tool_name, len(call.changes)) for step in flow.steps for call in step.tool_calls] == [("Read", 0), ("Edit", 1)]
    assert flow.changes == ()


async def test_a_recorded_request_has_a_flow_and_statistics_are_of_its_project_alone(shop: Memory) -> None:
    """LESSONS: one node type was written and another queried, so flow was always empty; statistics were not scoped."""
    assert len((await shop.flow("req_check")).steps) == 8
    calls = {project: sum(one.calls for one in await shop.tool_reliability(project=project)) for project in ("shop", "blog")}
    assert calls == {"shop": 34, "blog": 5}


async def test_a_context_file_without_a_usefulness_is_kept_and_left_out_of_averages(shop: Memory) -> None:
    """LESSONS: a missing usefulness lost the context file."""
    found = await shop.file_usage("tests/test_auth.py", project="shop")
    assert (found.count, found.average_usefulness, found.sources) == (1, None, ("ast",))
