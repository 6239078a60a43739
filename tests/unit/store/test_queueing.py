"""A job is found by the workspace of its conversation, whoever wrote it: a process of an older version may still be at work."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import apsw

from recollect.clock import ManualClock
from recollect.memory import Memory


async def test_a_job_that_does_not_name_its_workspace_is_found_in_it(tmp_path: Path, clock: ManualClock) -> None:
    path = tmp_path / "memory.db"
    async with await Memory.open(path, workspace="own", worker=False) as memory:
        conversation = await memory.create_conversation(project="p")
        await conversation.record(user="Why is the queue slow?")
        await memory.distill()
        jobs = memory.store.jobs
        assert await jobs.listed("own") == []
        with apsw.Connection(str(path)) as older:
            older.execute(
                """
                insert into job (conversation_pk, kind, state, again, attempts, since, due_at)
                select pk, 'embed', 'ready', 0, 0, updated_at, updated_at from conversation
                """
            )
        older.close()
        later = clock.now() + timedelta(days=1)
        assert await jobs.lease("other", later, 60, "a") is None
        lease = await jobs.lease("own", later, 60, "b")
        assert lease is not None
        assert lease.conversation_id == conversation.id
