"""Distilling: how fast, how flat in memory, how much shorter; and how much of what matters summaries still find, on LoCoMo."""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.corpus import turns
from bench.locomo import Dialogue, dialogues
from recollect import Memory
from recollect.distill.embedders import default_embedder
from recollect.distill.sentences import sentences
from recollect.quoting import summary_text
from recollect.text import terms

if TYPE_CHECKING:
    from recollect.conversation import Conversation
    from recollect.model import Summary

_BACKLOG = 10_000
_PER_CONVERSATION = 500
_TOP = 5


async def _backlog(path: Path, count: int) -> dict[str, float]:
    corpus = turns(2_000)
    async with await Memory.open(path, worker=False) as memory:
        conversations: list[Conversation] = []
        for n in range(count):
            if n % _PER_CONVERSATION == 0:
                conversations.append(await memory.create_conversation(project=f"project {len(conversations)}"))
            await conversations[-1].record(**corpus[n % len(corpus)])
        await memory.distill(wait=False)
        before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        before = time.process_time()
        await memory.distill()
        spent = time.process_time() - before
        after_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        stats = await memory.stats()
        assert stats.embedded == stats.passages
        raw = sum([sum(turn.char_count for turn in await one.turns()) for one in conversations])
        levels = [summary for one in conversations for summary in await one.summaries()]
    chars = {level: sum(one.char_count for one in levels if one.level == level) for level in (1, 2)}
    covered = sum(
        one.char_count for one in levels if one.level == 1 and any(one.id in high.source_ids for high in levels if high.level == 2)
    )
    return {
        "turns": count,
        "turns_per_cpu_second": round(count / spent),
        "peak_memory_grew_mb": round((after_kb - before_kb) / 1_024),
        "level_1_share_of_turns": round(chars[1] / raw, 3),
        "level_2_share_of_level_1": round(chars[2] / covered, 3) if covered else 0,
        "summaries": len(levels),
    }


def _embedding() -> dict[str, float]:
    texts = [arguments["assistant"] for arguments in turns(4_000)]
    embedder = default_embedder()
    before = time.process_time()
    embedder.vectors(texts)
    return {"embedded_texts_per_cpu_second": round(len(texts) / (time.process_time() - before))}


def _leading(dialogue: Dialogue, summary: Summary) -> str:
    """Return as many characters of the leading sentences of the turns that a summary covers as the summary has."""
    window = dialogue.turns[summary.first_turn : summary.last_turn + 1]
    source = [one for turn in window for said in (turn["user"], turn["assistant"]) if said for one in sentences(said)]
    return " ".join(source)[: len(summary_text(summary))]


async def _found(memory: Memory, conversation: Conversation, dialogue: Dialogue, level: int) -> tuple[int, int]:
    """Count the evidence whose information is in a summary among the first few: half its words that question or answer share."""
    found = wanted = 0
    for question in dialogue.questions:
        result = await memory.search(question.text, conversation=conversation.id, levels=[level], limit=_TOP)
        asked = set(terms(f"{question.text} {question.answer}"))
        for turn, words in question.evidence:
            telling = asked & set(terms(words))
            covering = [set(terms(hit.passage)) for hit in result.hits if (hit.first_turn or 0) <= turn <= (hit.last_turn or 0)]
            found += any(len(telling & said) * 2 >= len(telling) for said in covering)
            wanted += 1
    return found, wanted


async def _quality(folder: Path, every: list[Dialogue]) -> dict[str, float]:
    totals: dict[str, list[int]] = {}
    for dialogue in every:
        async with await Memory.open(folder / f"{dialogue.name}.db", worker=False) as memory:
            conversation = await memory.create_conversation(project="locomo")
            for arguments in dialogue.turns:
                await conversation.record(**arguments)
            await memory.distill()
            for level in (1, 2):
                found, wanted = await _found(memory, conversation, dialogue, level)
                _add(totals, f"level_{level}", found, wanted)
            summaries = await conversation.summaries()
            leading = [
                msgspec.structs.replace(one, summary=_leading(dialogue, one), actions="", key_findings=(), topics=(), files_mentioned=())
                for one in summaries
            ]
            await memory.store.derived.put_summaries(memory.workspace, leading)
            for level in (1, 2):
                found, wanted = await _found(memory, conversation, dialogue, level)
                _add(totals, f"leading_{level}", found, wanted)
    shares = {name: total[0] / total[1] for name, total in totals.items() if len(total) > 1 and total[1]}
    return {
        **{f"locomo_found_at_{_TOP}_{name}": round(share, 3) for name, share in shares.items() if name.startswith(("level", "leading"))},
        "locomo_level_1_against_leading": round(shares["level_1"] / shares["leading_1"], 2),
        "locomo_level_2_against_leading": round(shares["level_2"] / shares["leading_2"], 2),
    }


def _add(totals: dict[str, list[int]], name: str, found: int, wanted: int) -> None:
    before = totals.get(name, [0, 0])
    totals[name] = [before[0] + found, before[1] + wanted]


def measure() -> dict[str, float | str]:
    """Measure all of it."""
    results: dict[str, float | str] = {}
    with tempfile.TemporaryDirectory() as folder:
        results |= asyncio.run(_backlog(Path(folder) / "backlog.db", _BACKLOG))
        results |= _embedding()
        every = dialogues()
        if every:  # weights were chosen on the first half
            for half, part in (("0_to_4", every[:5]), ("5_to_9", every[5:])):
                found = asyncio.run(_quality(Path(folder), part))
                results |= {f"{name}_of_{half}": value for name, value in found.items()}
        else:
            results["locomo"] = "not run: RECOLLECT_DATA has no bench/locomo10.json"
    return results
