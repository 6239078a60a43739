"""Insights: found in conversations with or without a model, kept as long as what they tell of, found again in words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from recollect import batch_analyze
from recollect.clock import ManualClock
from recollect.documents.copying import copy_store
from recollect.errors import ConfigError, InputError, NotFoundError
from recollect.memory import Memory
from recollect.model import Insight
from recollect.store.shapes import InsightFilter
from tests.kit import OpenMemory, configured
from tests.left import everywhere, places_of

NOW = datetime(2026, 3, 2, tzinfo=UTC)
DAY_SECONDS = 24 * 60 * 60.0
WORD = "zebrafish"


async def talked(memory: Memory, *answers: str, project: str = "shop", title: str | None = None) -> str:
    conversation = await memory.create_conversation(project=project, title=title)
    for n, answer in enumerate(answers or ("The token is None after expiry, so a null check was added.",)):
        await conversation.record(user=f"Why does the login crash, part {n}?", assistant=answer, request_id=f"{conversation.id}-{n}")
    return conversation.id


def insight(conversation_id: str, words: str, own_id: str = "i", **more: Any) -> Insight:
    values: dict[str, Any] = {"kind": "k", "body": {"said": words}, "last_turn": 0, "created_at": NOW}
    return Insight(id=own_id, conversation_id=conversation_id, **{**values, **more})


async def put(memory: Memory, *insights: Insight) -> None:
    await memory.store.derived.put_insights(memory.workspace, list(insights))


async def test_without_a_model_insights_are_in_the_words_of_the_conversation(memory: Memory) -> None:
    own_id = await talked(
        memory, "The token is None after expiry. I decided on a null check in login_user.", "All tests pass. Remaining: the docs are old."
    )
    (item,) = (await memory.analyze([own_id])).items
    assert item.status == "done"
    assert item.insight is not None
    assert (item.insight.kind, item.insight.author, item.insight.last_turn) == ("overview", "extractive", 1)
    body = item.insight.body
    assert "login crash" in body["main_topic"]
    assert "I decided on a null check in login_user." in body["key_findings"]
    assert body["action_items"] == ["Remaining: the docs are old."]
    assert await memory.insights() == [item.insight]
    assert await memory.spending() == []


async def test_what_has_not_changed_is_left_and_what_has_is_found_anew_in_its_place(memory: Memory, clock: ManualClock) -> None:
    own_id = await talked(memory)
    (first,) = (await memory.analyze()).items
    clock.advance(60)
    (second,) = (await memory.analyze()).items
    assert (first.status, second.status, second.insight) == ("done", "unchanged", first.insight)
    await (await memory.load_conversation(own_id)).record(user="And the docs?", assistant="The docs were updated because they were wrong.")
    (third,) = (await memory.analyze()).items
    assert third.status == "done"
    assert first.insight is not None
    assert third.insight is not None
    assert (third.insight.id, third.insight.last_turn) == (first.insight.id, 1)
    assert third.insight.source_hash != first.insight.source_hash
    assert await memory.insights() == [third.insight]
    assert [item.status for item in (await memory.analyze(again=True)).items] == ["done"]


async def test_each_task_has_an_insight_of_its_own(memory: Memory) -> None:
    own_id = await talked(memory, "The token is None. Prices are rounded because of a float.")
    await memory.analyze([own_id])
    (other,) = (await memory.analyze([own_id], task="what about prices")).items
    assert other.insight is not None
    assert other.insight.body["key_findings"][0] == "Prices are rounded because of a float."
    assert sorted(one.task for one in await memory.insights(conversation=own_id)) == ["", "what about prices"]


async def test_the_newest_conversations_of_a_project_are_analysed_and_progress_is_told(memory: Memory, clock: ManualClock) -> None:
    made: list[str] = []
    for n in range(4):
        clock.advance(1)
        made.append(await talked(memory, project="shop" if n else "other"))
    told: list[tuple[int, int]] = []
    analyses = await memory.analyze(project="shop", limit=2, progress=lambda through, of: told.append((through, of)))
    assert [item.conversation_id for item in analyses.items] == [made[3], made[2]]
    assert told == [(1, 2), (2, 2)]
    assert (await memory.analyze(project="nothing recorded here")).items == ()


async def test_what_cannot_be_analysed_is_told_and_stops_nothing(memory: Memory) -> None:
    good = await talked(memory)
    empty = (await memory.create_conversation(project="p")).id
    silent = await talked(memory)
    await (await memory.load_conversation(silent)).change(tags=["do-not-record"])
    analyses = await memory.analyze(["nobody", empty, silent, good, good])
    assert [item.status for item in analyses.items] == ["failed", "skipped", "skipped", "done"]
    assert "no conversation 'nobody'" in str(analyses.items[0].reason)
    assert [one.conversation_id for one in await memory.insights()] == [good]


async def test_of_an_excluded_project_nothing_is_found_and_nothing_when_memory_is_off(memory: Memory) -> None:
    own_id = await talked(memory)
    for values in ({"projects": {"shop": {"exclude": True}}}, {"agent": {"memory": {"enabled": False}}}):
        (item,) = (await configured(memory, **values).analyze([own_id])).items
        assert item.status == "skipped"
    assert await memory.insights() == []


async def test_a_schema_of_ones_own_needs_a_model_and_nonsense_is_refused(memory: Memory) -> None:
    own_id = await talked(memory)
    with pytest.raises(ConfigError, match="needs a model"):
        await memory.analyze([own_id], output_schema={"type": "object"})
    for schema in ("text", {"type": "array"}, {"type": "object", "unheard": 1}, int):
        with pytest.raises(InputError):
            await memory.analyze([own_id], output_schema=schema)
    nonsense: tuple[dict[str, Any], ...] = ({"concurrency": 0}, {"concurrency": -1}, {"retries": 99}, {"limit": -1}, {"task": "x" * 5_000})
    for values in nonsense:
        with pytest.raises(InputError):
            await memory.analyze(**values)
    with pytest.raises(InputError, match="list of ids"):
        await memory.analyze(own_id)
    with pytest.raises(InputError, match="from 1 to"):
        await batch_analyze([own_id], memory=memory, concurrency=0)


async def test_many_are_analysed_at_once_by_what_holds_them(memory: Memory) -> None:
    first, second = await talked(memory), await talked(memory)
    held = await memory.load_conversation(first)
    analyses = await batch_analyze([held], "what was decided")
    assert [one.task for one in analyses.insights] == ["what was decided"]
    infos = await memory.list_conversations()
    assert len((await batch_analyze([*infos, second], memory=memory)).insights) == 2
    with pytest.raises(InputError, match="memory="):
        await batch_analyze(infos)


async def test_insights_are_found_in_words_best_first_within_their_scope(memory: Memory) -> None:
    mine, other = await talked(memory, project="mine"), await talked(memory, project="other")
    await put(memory, insight(mine, "expired tokens crash the login", "a"), insight(mine, "prices are rounded", "b", task="money"))
    await put(memory, *[insight(other, f"tokens tokens {n}", f"o{n}", kind="noise") for n in range(30)])
    hits = await memory.insights("why do expired tokens crash?", limit=3)
    assert (hits[0].id, hits[0].kind, hits[0].conversation_id, hits[0].project) == ("a", "insight", mine, "mine")
    assert hits[0].passage == "expired tokens crash the login"
    assert all(0 <= hit.score <= 1 for hit in hits)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert [hit.id for hit in await memory.insights("tokens", project="mine")] == ["a"]
    assert [hit.id for hit in await memory.insights("tokens", conversation=mine)] == ["a"]
    assert [hit.id for hit in await memory.insights("tokens", kind="k")] == ["a"]
    assert await memory.insights("tokens", conversation=mine, project="other") == []
    assert [hit.question for hit in await memory.insights("rounding prices")] == ["money"]
    for odd in ("", '"', "a OR b", "*", "nothing-of-the-kind"):
        assert await memory.insights(odd) == []
    assert [one.id for one in await memory.insights(kind="k")] == ["a", "b"]
    assert await memory.insights(project="nowhere") == await memory.insights("tokens", project="nowhere") == []
    with pytest.raises(NotFoundError):
        await memory.insights(conversation="nobody")


async def test_insights_stay_in_their_workspace(memory: Memory, reopen: OpenMemory) -> None:
    theirs = await reopen(workspace=f"{memory.workspace}-theirs")
    own_id = await talked(theirs)
    await put(theirs, insight(own_id, WORD))
    document = await (await theirs.load_conversation(own_id)).export()
    await memory.import_conversation(document)
    project_ids = tuple(project.id for project in await theirs.projects())
    derived = memory.store.derived
    for where in (InsightFilter(), InsightFilter(conversation_id=own_id), InsightFilter(project_ids=project_ids)):
        assert await derived.find_insights(memory.workspace, where, 9) == []
        assert await derived.insights_having(memory.workspace, where, [WORD], 9) == []
    assert await memory.insights(WORD) == []
    await put(memory, insight(own_id, "mine"))
    await memory.forget(conversation=own_id)
    assert [one.body for one in await theirs.insights()] == [{"said": WORD}]


async def test_insights_go_with_their_conversation(memory: Memory) -> None:
    kept, doomed = await talked(memory), await talked(memory)
    await put(memory, insight(kept, WORD, "a"), insight(doomed, WORD, "b"))
    await memory.forget(conversation=doomed)
    assert [one.id for one in await memory.insights()] == ["a"]
    assert [hit.id for hit in await memory.insights(WORD)] == ["a"]
    await (await memory.load_conversation(kept)).delete()
    assert await memory.insights() == await memory.insights(WORD) == []


async def test_insights_go_with_a_turn_they_tell_of_and_not_with_a_later_one(memory: Memory) -> None:
    own_id = await talked(memory, "one", "two", "three")
    conversation = await memory.load_conversation(own_id)
    await put(memory, insight(own_id, "early", "a", last_turn=0), insight(own_id, "late", "b", last_turn=2))
    await conversation.record(user="anew", assistant="three", request_id=f"{own_id}-2", replace=True)
    assert [one.id for one in await memory.insights()] == ["a"]
    await put(memory, insight(own_id, "again", "b", last_turn=2))
    await conversation.record(user="anew", assistant="one", request_id=f"{own_id}-0", replace=True)
    assert await memory.insights() == await memory.insights("early again") == []


async def test_a_branch_loses_its_insights_with_an_inherited_turn_and_not_with_one_after_the_fork(memory: Memory) -> None:
    own_id = await talked(memory, "one", "two", "three")
    conversation = await memory.load_conversation(own_id)
    branch = await conversation.branch(from_turn=1)
    await branch.record(user="otherwise", assistant="yes")
    twig = await branch.branch()
    await put(memory, insight(branch.id, "branch", "b", last_turn=2), insight(twig.id, "twig", "t", last_turn=2))
    await conversation.record(user="anew", assistant="three", request_id=f"{own_id}-2", replace=True)
    assert len(await memory.insights()) == 2
    await memory.store.turns.remove(memory.workspace, [(await conversation.turns())[0].id])
    assert await memory.insights() == []


async def test_forgetting_what_is_old_takes_its_insights_along(memory: Memory, clock: ManualClock) -> None:
    own_id = await talked(memory, f"the {WORD} swims")
    await memory.analyze()
    clock.advance(10 * DAY_SECONDS)
    young = await talked(memory, "it stretches")
    await memory.analyze()
    await memory.forget(before=clock.now() - timedelta(days=1))
    assert [one.conversation_id for one in await memory.insights()] == [young]
    with pytest.raises(NotFoundError):
        await memory.get_info(own_id)
    assert places_of(WORD, everywhere(memory)) == []


async def test_insights_expire_as_summaries_do_and_leave_nothing_behind(memory: Memory, clock: ManualClock) -> None:
    keeping = {"retention": {"turns_days": 1, "summaries_days": 3}}
    own = configured(memory, projects={"shop": keeping, "lasting": {}}, agent={"memory": {"summarization": {"enabled": False}}})
    fleeting, lasting = await talked(own, f"the {WORD} swims"), await talked(own, "it stretches", project="lasting")
    await own.analyze()
    clock.advance(2 * DAY_SECONDS)
    assert [one.conversation_id for one in await own.insights(WORD)] == [f"{fleeting}"]
    assert await (await own.load_conversation(fleeting)).turns() == []
    assert {item.status for item in (await own.analyze([fleeting])).items} == {"skipped"}
    clock.advance(DAY_SECONDS)
    assert await own.insights(WORD) == []
    assert [one.conversation_id for one in await own.insights()] == [lasting]
    with pytest.raises(NotFoundError):
        await own.get_info(fleeting)
    swept = await own.sweep()
    assert (swept.insights, swept.turns) == (1, 1)
    assert places_of(WORD, everywhere(own)) == []
    assert (await own.verify()).status == "intact"


async def test_what_expired_with_its_turns_is_forgotten_with_what_was_before(memory: Memory, clock: ManualClock) -> None:
    own = configured(memory, projects={"shop": {"retention": {"turns_days": 1, "summaries_days": "never"}}})
    own_id = await talked(own, f"the {WORD} swims")
    await own.analyze()
    clock.advance(2 * DAY_SECONDS)
    assert len(await own.insights(WORD)) == 1
    await own.forget(before=clock.now(), project="shop")
    assert await own.insights() == []
    assert places_of(WORD, everywhere(own)) == []
    with pytest.raises(NotFoundError):
        await own.get_info(own_id)


async def test_a_conversation_whose_turns_have_expired_stays_for_its_insights(memory: Memory, clock: ManualClock) -> None:
    own = configured(memory, projects={"shop": {"retention": {"turns_days": 1, "summaries_days": "never"}}})
    own_id = await talked(own)
    await own.analyze()
    clock.advance(2 * DAY_SECONDS)
    await own.sweep()
    assert [one.conversation_id for one in await own.insights()] == [own_id]


async def test_similar_conversations_come_with_what_was_learned_there_newest_first(memory: Memory) -> None:
    own_id = await talked(memory)
    await put(memory, *[insight(own_id, f"finding {n}", f"i{n}", created_at=NOW + timedelta(seconds=n)) for n in range(5)])
    (similar,) = await memory.find_similar_conversations("login crash")
    assert [one.id for one in similar.learned] == ["i4", "i3", "i2"]


async def test_what_was_learned_is_told_once_whatever_it_was_asked_for(memory: Memory) -> None:
    own_id = await talked(memory)
    said = [("tokens expire", 0), ("dates are in UTC", 1), ("tokens expire", 2), ("tokens expire", 3)]
    made = [insight(own_id, text, f"i{n}", task=f"task {n}", created_at=NOW + timedelta(seconds=n)) for text, n in said]
    await put(memory, *made)
    (similar,) = await memory.find_similar_conversations("login crash")
    assert [one.id for one in similar.learned] == ["i3", "i1"]


async def test_a_copy_has_the_insights_and_when_they_are_gone(memory: Memory, elsewhere: Memory, clock: ManualClock) -> None:
    own = configured(memory, projects={"shop": {"retention": {"turns_days": "never", "summaries_days": 3}}})
    await talked(own, f"the {WORD} swims")
    await own.analyze()
    for _ in range(2):
        await copy_store(own.store.url, elsewhere.store.url, workspace=own.workspace)
        assert await elsewhere.insights() == await own.insights()
        assert [hit.id for hit in await elsewhere.insights(WORD)] == [hit.id for hit in await own.insights(WORD)]
    clock.advance(3 * DAY_SECONDS)
    assert await elsewhere.insights() == await elsewhere.insights(WORD) == []


async def test_an_insight_is_only_written_while_what_it_tells_of_stands(memory: Memory) -> None:
    own_id = await talked(memory, "one", "two")
    derived = memory.store.derived
    source_hash, last = await derived.fingerprint(memory.workspace, own_id)
    made = insight(own_id, "x", source_hash=source_hash, last_turn=last)
    await (await memory.load_conversation(own_id)).record(user="later", assistant="is no matter")
    assert not await derived.put_insights(memory.workspace, [made], if_standing=True, made_of=["no summary of that id"])
    assert await derived.put_insights(memory.workspace, [made], if_standing=True)
    await (await memory.load_conversation(own_id)).record(user="anew", request_id=f"{own_id}-0", replace=True)
    assert not await derived.put_insights(memory.workspace, [made], if_standing=True)
    assert await memory.insights() == []
