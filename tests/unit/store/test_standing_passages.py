"""A turn that is written anew keeps the passages that stay the same: neither their terms nor their vectors are made again."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import apsw

from recollect.config import settings_from
from recollect.memory import Memory


def stored(path: Path) -> dict[str, tuple[int, bool]]:
    """Return the number of each passage by its terms, and whether it has a vector."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    rows = connection.execute("select terms, p.number, e.number from passage p left join embedding e on e.number = p.number").fetchall()
    connection.close()
    return {terms: (number, vector is not None) for terms, number, vector in cast("list[tuple[str, int, int | None]]", rows)}


async def test_what_a_growing_turn_said_before_stays_where_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    memory = await Memory.open(settings=settings_from({"store": f"sqlite://{path}"}), worker=False)
    conversation = await memory.create_conversation(project="p")
    turn = await conversation.begin("Repair the carburettor")
    await memory.distill()
    before = stored(path)
    turn = await conversation.add(turn, [{"role": "assistant", "content": "Looking at gaskets"}])
    turn = await conversation.finish(turn, [{"role": "assistant", "content": "Done with valves"}])
    after = stored(path)
    assert len(after) == 3
    assert before.items() <= after.items()
    assert sorted(has_vector for _, has_vector in after.values()) == [False, False, True]
    await memory.distill()
    assert all(has_vector for _, has_vector in stored(path).values())
    for word in ("carburettor", "gaskets", "valves"):
        assert [hit.id for hit in (await memory.search(word, semantic=False, levels=[0])).hits] == [turn.id]
    assert (await memory.verify()).status == "intact"
    await memory.close()


async def test_what_is_said_no_longer_is_found_no_longer(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    memory = await Memory.open(settings=settings_from({"store": f"sqlite://{path}"}), worker=False)
    payload = {
        "request_id": "r",
        "messages": [{"role": "user", "content": "Repair the carburettor"}, {"role": "assistant", "content": "Gaskets"}],
    }
    await memory.record(payload)
    changed = {**payload, "messages": [payload["messages"][0], {"role": "assistant", "content": "Valves"}]}
    await memory.record(changed, replace=True)
    assert len(stored(path)) == 2
    assert (await memory.search("gaskets", semantic=False)).hits == ()
    assert len((await memory.search("carburettor", semantic=False)).hits) == 1
    assert (await memory.verify()).status == "intact"
    await memory.close()
