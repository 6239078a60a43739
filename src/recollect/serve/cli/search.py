"""The commands that ask memory something in words: one ranked list, a composed context, similar conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.errors import InputError
from recollect.quoting import insight_text
from recollect.recall.asking import asked_of
from recollect.serve.cli.output import age, count, marked, one_line, print_json, safe, styled, width
from recollect.serve.cli.session import command, conversation_of, wants_json
from recollect.text import terms

if TYPE_CHECKING:
    from argparse import Namespace

    from recollect.answers import Hit, SearchResult
    from recollect.compose.context import Context
    from recollect.memory import Memory

_INDENT = 9
_NAME = 7


@command
async def search(memory: Memory, options: Namespace) -> int:
    """Find turns and summaries, best first."""
    query = " ".join(options.query)
    conversation = None if options.conversation is None else (await conversation_of(memory, options.conversation)).id
    result = await memory.search(
        query,
        conversation=conversation,
        project=options.project,
        cwd=options.cwd,
        agent=options.agent,
        tags=options.tag or (),
        since=options.since,
        until=options.until,
        tool=options.tool,
        file=options.file,
        levels=_levels(options.levels),
        limit=options.limit,
        semantic=options.semantic,
        minimum_score=options.min_score,
    )
    if wants_json(options):
        print_json(result)
    else:
        _print(result, query, memory, explain=options.explain)
    return 0 if result.hits else 1


@command
async def context(memory: Memory, options: Namespace) -> int:
    """Compose what matters for a prompt."""
    conversation = None if options.conversation is None else (await conversation_of(memory, options.conversation)).id
    made = await memory.context(
        " ".join(options.prompt),
        conversation=conversation,
        project=options.project,
        cwd=options.cwd,
        budget_chars=options.budget,
        budget_tokens=options.tokens,
        strategy=options.strategy,
        wait_seconds=options.wait,
        semantic=options.semantic,
    )
    if wants_json(options):
        print_json(made)
    elif options.explain:
        _explain(made)
    elif made.items:
        print(safe(made.render()))
    else:
        print(styled("nothing is remembered that would help", "dim"))
    return 0 if made.items else 1


@command
async def similar(memory: Memory, options: Namespace) -> int:
    """Find conversations that come close to a text."""
    query = " ".join(options.query)
    found = await memory.find_similar_conversations(
        query, options.limit, project=options.project, cwd=options.cwd, semantic=options.semantic
    )
    if wants_json(options):
        print_json(found)
        return 0 if found else 1
    wanted = frozenset(asked_of(query, memory.clock.now()).terms)
    for n, one in enumerate(found, 1):
        info = one.conversation
        path = _path(info.project, info.title, info.id)
        head = (
            f"{n:<2} {one.score:.2f}  {one_line(path, 60)} · {count(info.turn_count, 'turn')} · {age(info.updated_at, memory.clock.now())}"
        )
        print(styled(head, "cyan"))
        told = info.summary or one.hit.answer or one.hit.question
        print(" " * _INDENT + marked(one_line(safe(told), width() - _INDENT), wanted))
        for insight in one.learned:
            text = " · ".join(insight_text(insight).splitlines())
            print(" " * _INDENT + f"{'learned':<{_NAME + 2}}" + marked(one_line(safe(text), width() - _INDENT - _NAME - 2), wanted))
    print(styled(f"{count(len(found), 'conversation')} shown", "dim"))
    return 0 if found else 1


def _path(project: str, title: str | None, conversation_id: str) -> str:
    return " › ".join(part for part in (project, title or conversation_id[:8]) if part)


def _levels(given: str | None) -> list[int] | None:
    if given is None:
        return None
    try:
        return [int(level) for level in given.split(",")]
    except ValueError as error:
        msg = f"--levels is a list of numbers such as 0,1, not {given!r}"
        raise InputError(msg) from error


def _print(result: SearchResult, query: str, memory: Memory, *, explain: bool) -> None:
    wanted = frozenset(asked_of(query, memory.clock.now()).terms)
    for n, hit in enumerate(result.hits, 1):
        path = _path(hit.project, hit.conversation_title, hit.conversation_id)
        place = f"turn {hit.turn_index}" if hit.kind == "turn" else f"summary of turns {hit.first_turn}–{hit.last_turn} · level {hit.level}"
        stale = " · its files have changed since" if hit.stale else ""
        head = f"{n:<2} {hit.score:.2f}  {place} · {age(hit.timestamp, memory.clock.now())}{stale} · {one_line(path, 60)}"
        found_by = f"[{', '.join(hit.explanation)}]"
        print(styled(head, "cyan") + " " * max(width() - len(head) - len(found_by), 2) + styled(found_by, "dim"))
        _print_hit(hit, wanted)
        if explain:
            shares = " + ".join(f"{name} {share:.3f}" for name, share in hit.explanation.items())
            print(" " * _INDENT + styled(f"score    {shares}, confidence {hit.confidence:.2f}", "dim"))
    ran = [name for name, state in result.retrievers.items() if state.startswith("ran")]
    why = [f"{name} {state}" for name, state in result.retrievers.items() if state != "ran"]
    searched = count(result.searched_turns, "turn")
    reasons = f" ({'; '.join(why)})" if why else ""
    print(styled(f"{len(result.hits)} shown · {searched} searched · {' and '.join(ran) or 'nothing ran'}{reasons}", "dim"))


def _print_hit(hit: Hit, wanted: frozenset[str]) -> None:
    if hit.kind == "summary":
        lines = hit.passage.splitlines()
        telling = max(lines[1:], key=lambda line: len(wanted & set(terms(line))), default="")
        for text in (hit.answer, telling if wanted & set(terms(telling)) else ""):
            if text:
                print(" " * _INDENT + marked(one_line(safe(text), width() - _INDENT), wanted))
        return
    room = width() - _INDENT - _NAME
    answered = hit.passage if hit.passage and hit.passage not in hit.question else hit.answer
    for name, text in (("you", hit.question), ("agent", answered)):
        if text:
            print(" " * _INDENT + f"{name:<{_NAME}}" + marked(one_line(safe(text), room), wanted))


def _explain(made: Context) -> None:
    """Print every item with its reason, and everything left out with its own."""
    for section in made.sections:
        if section.items:
            print(styled(f"{section.name}  {section.char_count:,} of {section.budget_chars:,} characters", "cyan"))
        for item in section.items:
            cut = " (cut)" if item.is_cut else ""
            print(f"  {one_line(_what(item.kind, item.first_turn, item.last_turn, item.id), 40):<40}  {item.reason}{cut}")
    if made.left_out:
        print(styled("left out", "cyan"))
    for left in made.left_out:
        print(f"  {one_line(_what(left.kind, left.first_turn, left.last_turn, left.id), 40):<40}  {left.section}: {left.reason}")
    print(styled(f"{made.char_count:,} of {made.budget_chars:,} characters · about {made.token_estimate:,} tokens", "dim"))


def _what(kind: str, first: int | None, last: int | None, own_id: str) -> str:
    if kind == "file" or first is None:
        return f"{kind} {own_id}"
    return f"{kind} of turn {first}" if first == last else f"{kind} of turns {first}–{last}"
