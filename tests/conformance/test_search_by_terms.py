"""Search by terms, which needs nothing but what was recorded: scoped first, with question and answer together."""

from __future__ import annotations

import pytest

from recollect.errors import InputError, NotFoundError
from recollect.memory import Memory


async def filled(memory: Memory) -> str:
    conversation = await memory.create_conversation(project="shop", title="Fix login")
    await conversation.record(user="Login crashes when the token has expired", assistant="login_user reads user.token without a check")
    await conversation.record(
        user="Run the tests", assistant="ok", tool_calls=[{"name": "shell", "arguments": {"cmd": "pytest"}, "error": "ImportError: redis"}]
    )
    await conversation.record(user="Où est la gestion des erreurs ?", assistant="Voir getUserById dans src/auth/login.py:31")
    await conversation.record(user="Sửa lỗi đăng nhập", assistant="Đã thêm kiểm tra")
    return conversation.id


async def found(memory: Memory, query: str) -> list[int | None]:
    return [hit.turn_index for hit in (await memory.search(query)).hits]


async def test_a_turn_is_found_by_its_question_its_answer_and_its_tools(memory: Memory) -> None:
    await filled(memory)
    assert await found(memory, "why does login crash") == [0, 2]
    assert await found(memory, "redis ImportError") == [1]
    assert await found(memory, "pytest") == [1]


async def test_a_hit_on_an_answer_comes_with_its_question(memory: Memory) -> None:
    """LESSONS: a hit on an answer came back without its question."""
    await filled(memory)
    hit = (await memory.search("login_user")).hits[0]
    assert hit.question == "Login crashes when the token has expired"
    assert hit.answer == "login_user reads user.token without a check"
    assert (hit.kind, hit.level, hit.conversation_title, hit.project) == ("turn", 0, "Fix login", "shop")
    assert 0 < hit.score <= 1
    assert sum(hit.explanation.values()) == pytest.approx(hit.score)


async def test_identifiers_paths_and_accents_are_found_as_people_write_them(memory: Memory) -> None:
    await filled(memory)
    for query in (
        "getUserById",
        "getuserbyid",
        "get user by id",
        "src/auth/login.py",
        "src/auth/login.py:31",
        "login.py",
        "gestion des erreurs",
    ):
        assert 2 in await found(memory, query), query
    for query in ("sua loi dang nhap", "Sửa lỗi", "đăng nhập", "kiem tra"):
        assert await found(memory, query) == [3], query


async def test_search_says_which_retrievers_ran_and_why_one_did_not(memory: Memory) -> None:
    await filled(memory)
    result = await memory.search("login")
    assert result.retrievers["terms"] == "ran"
    assert result.retrievers["meaning"].startswith("not run:")
    assert result.searched_turns == 4
    assert "switched off" in (await memory.search("login", semantic=False)).retrievers["meaning"]
    assert (await memory.search("login", semantic=False)).hits, "without embeddings search still finds"
    assert (await memory.search("login", levels=[1])).retrievers["terms"].startswith("not run:")
    assert (await memory.search("the of and")).retrievers["terms"].startswith("not run:")


@pytest.mark.parametrize(
    "query",
    ["", " ", "src/auth.py:12", "null-check", '"', "'", '"unbalanced', "a OR", "NEAR(", "*", "col:x", "^x", "(((", "\0", "\ud800", "-",
     "AND OR NOT",
     "x" * 100_000, "𝔘𝔫𝔦𝔠𝔬𝔡𝔢", "%_%", "; drop table turn; --", "{}", "\n\t", "🙂", "login AND NOT", "a" + "\u0301" * 5_000],
)  # fmt: skip
async def test_any_string_at_all_is_a_legal_search(memory: Memory, query: str) -> None:
    conversation_id = await filled(memory)
    assert (await memory.search(query)).elapsed_ms >= 0
    assert (await memory.search(query, conversation=conversation_id)).elapsed_ms >= 0


async def test_search_where_nothing_is_recorded_finds_nothing_and_says_so(memory: Memory) -> None:
    assert (await memory.search("x")).hits == ()
    assert "nothing is recorded" in (await memory.search("x", project="nobody")).retrievers["terms"]
    with pytest.raises(NotFoundError):
        await memory.search("x", conversation="nobody")
    for limit in (-1, 10_000_000):
        with pytest.raises(InputError):
            await memory.search("x", limit=limit)


async def test_a_replaced_turn_is_no_longer_found(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="giraffe", assistant="x", request_id="r")
    await conversation.record(user="elephant", assistant="x", request_id="r", replace=True)
    assert (await memory.search("giraffe")).hits == ()
    assert len((await memory.search("elephant")).hits) == 1


async def test_more_of_the_question_answered_is_a_higher_score_and_a_higher_confidence(memory: Memory) -> None:
    conversation = await memory.create_conversation(project="p")
    await conversation.record(user="alpha beta gamma", assistant="x")
    for n in range(4):
        await conversation.record(user=f"nothing of the kind {n}", assistant="z")
    await conversation.record(user="alpha", assistant="y")
    hits = (await memory.search("alpha beta gamma")).hits
    assert [hit.turn_index for hit in hits] == [0, 5]
    assert 1 > hits[0].score > hits[1].score > 0
    assert 1 > hits[0].confidence > hits[1].confidence > 0


async def test_the_turns_searched_are_counted_once_whatever_was_branched_replaced_or_deleted(memory: Memory) -> None:
    parent = await memory.create_conversation(project="p")
    for n in range(6):
        await parent.record(user=f"alpha {n}", assistant="beta", request_id=f"r{n}")
    left = await parent.branch(from_turn=3)
    await left.record(user="alpha left", assistant="beta")
    right = await left.branch(from_turn=2)
    await right.record(user="alpha right", assistant="beta")
    await parent.record(user="alpha again", assistant="beta", request_id="r5", replace=True)
    await (await memory.create_conversation(project="q")).record(user="alpha elsewhere", assistant="beta")

    async def searched(**where: str) -> int:
        return (await memory.search("alpha", **where)).searched_turns  # type: ignore[arg-type]

    assert (await searched(), await searched(project="p"), await searched(project="q")) == (9, 8, 1)
    assert (await searched(conversation=left.id), await searched(conversation=right.id)) == (5, 4)
    await parent.delete()
    assert (await searched(), await searched(project="p")) == (7, 6), "left took the four turns it shows over, right inherits from it"
    await memory.forget(conversation=left.id)
    assert await searched() == len(await right.turns()) + 1
