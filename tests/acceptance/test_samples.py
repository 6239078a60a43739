"""Real transcripts, where there are any, pass through the public doors: nothing raises, nothing is lost, all is intact."""

from __future__ import annotations

from pathlib import Path

from bench.transcripts import transcripts
from recollect import messages_to_turns
from recollect.sync import Memory


def test_real_transcripts_are_read_recorded_found_and_intact(tmp_path: Path) -> None:
    found = transcripts()
    print(f"{len(found)} transcripts" if found else "RECOLLECT_DATA is not set: no real transcripts to try")
    with Memory.open(tmp_path / "memory.db") as memory:
        for messages in found:
            turns = messages_to_turns(messages)
            assert sum(len(turn.tool_calls) for turn in turns) >= 0
            if not turns:
                continue
            conversation = memory.create_conversation(project="samples")
            conversation.record(messages=messages)
            assert len(conversation.turns()) == len(turns)
            document = conversation.export()
            assert memory.import_conversation(document).export() == document
        assert memory.verify().status == "intact"
        if found:
            assert memory.search("error").hits
