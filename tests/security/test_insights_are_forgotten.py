"""What insights say is forgotten with what they tell of, in every byte of the file, whichever way it goes."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import apsw
import pytest

from recollect.model import Insight
from recollect.sync import Memory
from tests.left import places_of

WORD = "xylophonemarmalade"


def in_files(folder: Path) -> list[str]:
    return places_of(WORD, {file.name: file.read_bytes() for file in folder.iterdir()})


def filled(memory: Memory) -> str:
    """Let insights alone say the word, as a model might: no turn has it."""
    doomed = memory.create_conversation(project="doomed", agent="codex")
    for n in range(3):
        doomed.record(user=f"question {n}", assistant="answer", request_id=f"r{n}", timestamp="2025-01-01T00:00:00Z")
    inner = memory._of
    made = [
        Insight(id=f"i{n}", conversation_id=doomed.id, kind=WORD, task=WORD, body={WORD: [f"{WORD} {n} " * 200]}, author=WORD, last_turn=2,
                created_at=datetime(2025, 1, 2, tzinfo=UTC))
        for n in range(40)
    ]  # fmt: skip
    memory._by.run(inner.store.derived.put_insights(inner.workspace, made))
    return doomed.id


@pytest.mark.parametrize(
    "forget",
    [
        lambda memory, doomed: memory.forget(conversation=doomed),
        lambda memory, _: memory.forget(project="doomed"),
        lambda memory, _: memory.forget(origin="codex"),
        lambda memory, _: memory.forget(before=datetime(2025, 6, 1, tzinfo=UTC)),
        lambda memory, doomed: (
            memory.load_conversation(doomed).record(user="anew", request_id="r0", replace=True),
            memory.create_conversation(project="q").record(user="x"),
            memory.forget(project="q"),
        ),
    ],
    ids=["conversation", "project", "origin", "before", "replaced"],
)
def test_after_forget_the_words_of_insights_are_in_no_byte_of_the_files(tmp_path: Path, forget: Callable[[Memory, str], object]) -> None:
    folder = tmp_path / "store"
    with Memory.open(folder / "memory.db") as memory:
        doomed = filled(memory)
        assert in_files(folder)
        assert len(memory.insights(WORD)) == 40
        forget(memory, doomed)
        assert memory.insights() == memory.insights(WORD) == []
        assert in_files(folder) == []
    assert in_files(folder) == []
    with apsw.Connection(str(folder / "memory.db")) as raw:
        raw.execute("insert into insight_terms (insight_terms, rank) values ('integrity-check', 1)")
