"""Commands that condense memory: summaries and vectors made now, or by a worker that goes on."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

from recollect.serve.cli.output import count, print_json, safe
from recollect.serve.cli.session import command, conversation_of, wants_json
from recollect.serve.cli.summaries import show_summaries

if TYPE_CHECKING:
    from argparse import Namespace

    from recollect.memory import Memory

_LOOK_SECONDS = 2.0


@command
async def distill(memory: Memory, options: Namespace) -> int:
    """Do what is due, or say what waits."""
    done = await memory.distill(wait=True, rebuild=options.rebuild) if options.wait or options.rebuild else 0
    stats = await memory.stats()
    if wants_json(options):
        print_json({"done": done, "jobs": stats.jobs, "summaries": stats.summaries, "passages": stats.passages, "embedded": stats.embedded})
        return 0
    waiting = stats.jobs.get("ready", 0) + stats.jobs.get("running", 0)
    levels = ", ".join(f"{number:,} of level {level}" for level, number in stats.summaries.items()) or "none"
    print(f"{count(done, 'job')} done, {waiting:,} waiting, {stats.jobs.get('parked', 0):,} parked")
    print(f"summaries: {levels}; {stats.embedded:,} of {count(stats.passages, 'passage')} embedded")
    for job in await memory.store.jobs.listed(memory.workspace):
        if job.error is not None:
            print(safe(f"{job.state} {job.kind} of {job.conversation_id[:8]} after {count(job.attempts, 'attempt')}: {job.error}"))
    if waiting and not options.wait:
        print("`recollect distill --wait` does it now; a process that opens the memory does it in the background")
    return 0


@command
async def summarize(memory: Memory, options: Namespace) -> int:
    """Summarise what is due in a conversation."""
    conversation = await conversation_of(memory, options.id)
    summaries = await conversation.summarize()
    if wants_json(options):
        print_json(summaries)
    else:
        show_summaries(summaries)
    return 0 if summaries else 1


def worker(options: Namespace) -> int:
    """Distil until stopped by a signal."""
    return asyncio.run(_worker(options))


async def _worker(options: Namespace) -> int:
    from recollect.memory import Memory  # noqa: PLC0415  the only command with an event loop of its own
    from recollect.opening import settings_of  # noqa: PLC0415  as above

    settings = settings_of(getattr(options, "store", None), getattr(options, "workspace", None), None)
    stopped = asyncio.Event()
    for sign in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(sign, stopped.set)
    done = 0
    async with await Memory.open(settings=settings, worker=False) as memory:
        own = memory.worker()
        await own.wake_stale()
        await own.sweep()
        while not stopped.is_set():
            if await own.step():
                done += 1
                await asyncio.sleep(0)
            elif options.once:
                break
            else:
                try:
                    await asyncio.wait_for(stopped.wait(), _LOOK_SECONDS)
                except TimeoutError:
                    await own.sweep()
    if wants_json(options):
        print_json({"done": done})
    else:
        print(f"{count(done, 'job')} done")
    return 0
