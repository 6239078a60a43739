"""The search command: one ranked list that reads like an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import InputError
from recollect.recall.asking import asked_of
from recollect.serve.cli.output import age, count, marked, one_line, print_json, safe, styled, width
from recollect.serve.cli.session import command, conversation_of, wants_json

if TYPE_CHECKING:
    from argparse import Namespace

    from recollect.answers import Hit, SearchResult
    from recollect.memory import Memory

_INDENT = 9
_NAME = 7


@command
async def search(memory: Memory, options: Namespace) -> int:
    """Find turns, best first."""
    query = " ".join(options.query)
    conversation = None if options.conversation is None else (await conversation_of(memory, options.conversation)).id
    result = await memory.search(
        query,
        conversation=conversation,
        project=options.project,
        cwd=options.cwd,
        levels=_levels(options.levels),
        limit=options.limit,
        semantic=options.semantic,
    )
    if wants_json(options):
        print_json(result)
    else:
        _print(result, frozenset(asked_of(query, memory.clock.now()).terms), memory, options)
    return 0 if result.hits else 1


def _levels(given: str | None) -> list[int] | None:
    if given is None:
        return None
    try:
        return [int(level) for level in given.split(",")]
    except ValueError as error:
        msg = f"--levels is a list of numbers such as 0,1, not {given!r}"
        raise InputError(msg) from error


def _print(result: SearchResult, wanted: frozenset[str], memory: Memory, options: Namespace) -> None:
    for n, hit in enumerate(result.hits, 1):
        path = " › ".join(part for part in (hit.project, hit.conversation_title or hit.conversation_id[:8]) if part)
        head = f"{n:<2} {hit.score:.2f}  turn {hit.turn_index} · {age(hit.timestamp, memory.clock.now())} · {one_line(path, 60)}"
        found_by = f"[{', '.join(hit.explanation)}]"
        print(styled(head, "cyan") + " " * max(width() - len(head) - len(found_by), 2) + styled(found_by, "dim"))
        _print_hit(hit, wanted)
        if options.explain:
            shares = " + ".join(f"{name} {share:.3f}" for name, share in hit.explanation.items())
            print(" " * _INDENT + styled(f"score    {shares}, confidence {hit.confidence:.2f}", "dim"))
    ran = [name for name, state in result.retrievers.items() if state == "ran"]
    why = [f"{name} {state}" for name, state in result.retrievers.items() if state != "ran"]
    searched = count(result.searched_turns, "turn")
    print(styled(f"{len(result.hits)} shown · {searched} searched · {' and '.join(ran) or 'nothing ran'} ({'; '.join(why)})", "dim"))


def _print_hit(hit: Hit, wanted: frozenset[str]) -> None:
    room = width() - _INDENT - _NAME
    answered = hit.passage if hit.passage and hit.passage not in hit.question else hit.answer
    for name, text in (("you", hit.question), ("agent", answered)):
        if text:
            print(" " * _INDENT + f"{name:<{_NAME}}" + marked(one_line(safe(text), room), wanted))
