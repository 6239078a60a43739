"""Commands that condense memory: summaries and vectors made now, or by a worker that goes on."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

import msgspec

from recollect.errors import InputError, SpendingError
from recollect.serve.cli.output import Progress, complain, count, print_json, safe
from recollect.serve.cli.session import command, conversation_of, wants_json
from recollect.serve.cli.summaries import show_summaries

if TYPE_CHECKING:
    from argparse import Namespace

    from recollect.answers import Rewritten
    from recollect.memory import Memory

_LOOK_SECONDS = 2.0


@command
async def distill(memory: Memory, options: Namespace) -> int:
    """Do what is due, or say what waits; before that, have a model rewrite what is extractive, if that is asked for."""
    rewritten = await _rewritten(memory, options) if _wants_rewriting(options) else None
    reason = memory.metrics.last_fallback
    code = 0 if rewritten is None else _code(rewritten)
    before = memory.metrics.fallbacks()
    done = await memory.distill(wait=True, rebuild=options.rebuild) if options.wait or options.rebuild else 0
    without = memory.metrics.fallbacks() - before
    if without:
        complain(f"{without:,} of the summaries and titles are extractive, because no model gave them: {memory.metrics.last_fallback}")
    stats = await memory.stats()
    if wants_json(options):
        waits = {"done": done, "jobs": stats.jobs, "summaries": stats.summaries, "passages": stats.passages, "embedded": stats.embedded}
        told = {**waits, "fell_back": {"count": without, "reason": memory.metrics.last_fallback if without else None}}
        print_json(told if rewritten is None else {"rewrite": {**msgspec.to_builtins(rewritten), "reason": reason}, **told})
        return code
    if rewritten is not None:
        print(_told(rewritten, reason))
    waiting = stats.jobs.get("ready", 0) + stats.jobs.get("running", 0)
    levels = ", ".join(f"{number:,} of level {level}" for level, number in stats.summaries.items()) or "none"
    print(f"{count(done, 'job')} done, {waiting:,} waiting, {stats.jobs.get('parked', 0):,} parked")
    print(f"summaries: {levels}; {stats.embedded:,} of {count(stats.passages, 'passage')} embedded")
    for job in await memory.store.jobs.listed(memory.workspace):
        if job.error is not None:
            print(safe(f"{job.state} {job.kind} of {job.conversation_id[:8]} after {count(job.attempts, 'attempt')}: {job.error}"))
    if waiting and not options.wait:
        print("`recollect distill --wait` does it now; a process that opens the memory does it in the background")
    return code


def _wants_rewriting(options: Namespace) -> bool:
    given = [name for name in ("budget_tokens", "conversation", "project") if getattr(options, name) is not None]
    if given and not options.rewrite:
        msg = f"--{given[0].replace('_', '-')} says what to rewrite: give --rewrite, too"
        raise InputError(msg)
    if options.rewrite and options.rebuild:
        msg = "--rebuild deletes what --rewrite would rewrite: give one of them"
        raise InputError(msg)
    return bool(options.rewrite)


async def _rewritten(memory: Memory, options: Namespace) -> Rewritten:
    named = None if options.conversation is None else (await conversation_of(memory, options.conversation)).id
    progress = Progress("summaries rewritten")
    done = await memory.rewrite(conversation=named, project=options.project, budget_tokens=options.budget_tokens, progress=progress.at)
    progress.end()
    if done.stopped is not None:
        complain(f"stopped after {_summaries(done.rewritten)}: {done.stopped}")
    return done


def _told(done: Rewritten, reason: str | None) -> str:
    told = f"{_summaries(done.rewritten)} rewritten for {count(done.tokens, 'token')}"
    refused = f"; {done.refused:,} stayed extractive, the last because {safe(reason or 'nothing of use came')}" if done.refused else ""
    left = f"; {done.left:,} left, whose turns are gone or changed meanwhile" if done.left else ""
    return told + refused + left


def _summaries(number: int) -> str:
    return f"{number:,} {'summary' if number == 1 else 'summaries'}"


def _code(done: Rewritten) -> int:
    if done.is_capped:
        return SpendingError.exit_code
    return 1 if done.refused and not done.rewritten else 0


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
        own = memory.worker(stopped.is_set)
        await own.wake_stale()
        await memory.sweep(thoroughly=False)
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
                    await memory.sweep(thoroughly=False)
    if wants_json(options):
        print_json({"done": done})
    else:
        print(f"{count(done, 'job')} done")
    return 0
