"""Commands about conversations: list, show, record, fork, export, put aside, forget."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from recollect.answers import to_json
from recollect.capture.clean import parse_json
from recollect.clock import from_iso
from recollect.errors import InputError
from recollect.serve.cli.output import age, complain, count, one_line, print_json, safe, styled, table, width, wrapped
from recollect.serve.cli.session import command, conversation_of, read_file, wants_json

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from recollect.conversation import Conversation
    from recollect.memory import Memory
    from recollect.model import ConversationInfo, ToolCall, Turn

_ID_SHOWN = 8
_TEXT_LINES_MAX = 12
_INDENT = "       "


@command
async def list_them(memory: Memory, options: Namespace) -> int:
    """List conversations."""
    found = await memory.list_conversations(
        status=options.status, tags=options.tag, cwd=options.cwd, project=options.project, agent=options.agent, limit=options.limit
    )
    if wants_json(options):
        print_json(found)
    elif found:
        now = memory.clock.now()
        rows = [(info.id[:_ID_SHOWN], age(info.updated_at, now), info.turn_count, info.project, _titled(info)) for info in found]
        table(("id", "changed", "turns", "project", "title"), rows, stretch=4)
    elif await memory.list_conversations(limit=1):
        print("No conversation matches.")
    else:
        print("No conversations here yet. `recollect demo` shows what can be done; `recollect ingest FILE` records.")
    return 0 if found else 1


def _titled(info: ConversationInfo) -> str:
    title = info.title or info.last_message or "untitled"
    marks = [f"[{mark}]" for mark, holds in (("archived", info.status == "archived"), ("branch", info.branch_of)) if holds]
    return " ".join([*marks, title, *(f"#{tag}" for tag in info.tags)])


@command
async def sessions(memory: Memory, options: Namespace) -> int:
    """List what can be resumed in a directory."""
    found = await memory.sessions(options.cwd)
    if wants_json(options):
        print_json(found)
    elif found:
        now = memory.clock.now()
        rows = [(one.id[:_ID_SHOWN], age(one.last_activity_at, now), one.turn_count, one.last_message or "") for one in found]
        table(("id", "last activity", "turns", "last message"), rows, stretch=3)
    else:
        print(f"Nothing was recorded for {options.cwd} yet.")
    return 0 if found else 1


@command
async def show(memory: Memory, options: Namespace) -> int:
    """Show a conversation."""
    conversation = await conversation_of(memory, options.id)
    if options.summaries:
        return await _show_summaries(conversation, options)
    if options.recent is not None:
        turns = await conversation.recent_turns(options.recent, limit=1_000)
    else:
        turns = await conversation.turns(options.first, options.last)
    if wants_json(options):
        print_json({"conversation": to_json(conversation.info), "turns": to_json(turns)})
        return 0
    info, now = conversation.info, memory.clock.now()
    print(styled(safe(info.title or "Untitled conversation"), "bold"))
    facts = [info.id, info.project, count(info.turn_count, "turn"), f"changed {age(info.updated_at, now)}"]
    facts += [f"branch of {info.branch_of[:_ID_SHOWN]} after turn {info.from_turn}"] if info.branch_of else []
    print(styled(safe(" · ".join([*facts, *(f"#{tag}" for tag in info.tags)])), "dim"))
    for turn in turns:
        print()
        for line in _shown_turn(turn, memory, options):
            print(line)
    return 0


async def _show_summaries(conversation: Conversation, options: Namespace) -> int:
    from recollect.serve.cli.summaries import show_summaries  # noqa: PLC0415  only this option needs it

    summaries = await conversation.summaries(options.level)
    if wants_json(options):
        print_json({"conversation": to_json(conversation.info), "summaries": to_json(summaries)})
    else:
        print(styled(safe(conversation.info.title or "Untitled conversation"), "bold"))
        if conversation.info.summary:
            print(wrapped(safe(conversation.info.summary), 0))
        print()
        show_summaries(summaries)
    return 0


def _shown_turn(turn: Turn, memory: Memory, options: Namespace) -> Iterator[str]:
    status = "" if turn.status == "complete" else f" · {turn.status}"
    request = f" · {turn.request_id}" if turn.request_id else ""
    yield styled(safe(f"turn {turn.index} · {age(turn.started_at, memory.clock.now())}{request}{status}"), "cyan")
    for message in turn.messages:
        name = {"user": "you", "assistant": "agent"}.get(message.role, message.role)
        if message.text:
            yield from _block(name, message.text, full=options.full)
        if message.reasoning and options.reasoning:
            yield from _block("thinks", message.reasoning, full=options.full)
        for call in turn.calls_of(message):
            yield _shown_call(call)
            if options.full and call.result is not None:
                yield from _block("", call.result.error or call.result.result or "", full=True)
    for change in turn.changes:
        lines = f"  +{change.lines_added or 0} −{change.lines_removed or 0}"
        yield f"{'change':<{len(_INDENT)}}" + safe(f"{change.file_path}{lines}  {change.change_summary or change.change_type}")
    if turn.context_files:
        named = (
            f"{part.usefulness:.2f} {part.file_path}" if part.usefulness is not None else part.file_path for part in turn.context_files
        )
        yield f"{'given':<{len(_INDENT)}}" + one_line(" · ".join(named), width() - len(_INDENT))


def _block(name: str, text: str, *, full: bool) -> Iterator[str]:
    lines = safe(text).splitlines()
    shown = lines if full else lines[:_TEXT_LINES_MAX]
    for n, line in enumerate(shown):
        shown_name = name if n == 0 else ""
        yield f"{shown_name:<{len(_INDENT) - 1}} " + (line if full else one_line(line, width() - len(_INDENT)))
    if len(lines) > len(shown):
        yield _INDENT + styled(f"… {count(len(lines) - len(shown), 'more line')}, --full shows them", "dim")


def _shown_call(call: ToolCall) -> str:
    sign = {"success": styled("✓", "green"), "failed": styled("✗", "red"), "unknown": "?"}[call.status]
    given = "" if call.arguments is None else msgspec.json.encode(call.arguments).decode()
    outcome = "" if call.result is None else (call.result.error or call.result.result or "")
    text = f"{call.tool_name} {given}" + (f" → {outcome}" if outcome else "")
    return f"{'tool':<{len(_INDENT)}}{sign} {one_line(text, width() - len(_INDENT) - 2)}"


@command
async def new(memory: Memory, options: Namespace) -> int:
    """Create a conversation."""
    cwd = options.cwd if options.cwd is not None or options.project is not None else "."
    conversation = await memory.create_conversation(
        cwd, project=options.project, title=options.title, tags=options.tag, agent=options.agent
    )
    if wants_json(options):
        print_json(conversation.info)
    else:
        print(conversation.id)
    return 0


@command
async def record(memory: Memory, options: Namespace) -> int:
    """Record a turn."""
    conversation = await conversation_of(memory, options.id)
    messages = None if options.messages is None else parse_json(read_file(options.messages))
    if messages is not None and not isinstance(messages, list):
        msg = f"{'standard input' if options.messages == '-' else options.messages} holds no JSON list of messages"
        raise InputError(msg)
    from recollect.capture.recorded import Said  # noqa: PLC0415  those who list read no payloads

    said = Said(user=options.user, assistant=options.assistant, request_id=options.request_id)
    result, notes = await conversation.submit(said, messages, replace=options.replace, on_edit=options.on_edit)
    if wants_json(options):
        print_json(result.recorded(None, notes))
        return 0
    for turn in result.turns or ():
        print(f"{result.status}: turn {turn.index} of {turn.conversation_id}")
    if not result.turns:
        print(f"{result.status}: nothing is new")
    if notes:
        complain(", ".join(f"{number:,} {name.replace('_', ' ')}" for name, number in notes.items()))
    return 0


@command
async def edit(memory: Memory, options: Namespace) -> int:
    """Change a conversation's title or tags."""
    if options.title is None and options.tag is None:
        msg = "there is nothing to change: give --title or --tag"
        raise InputError(msg)
    conversation = await conversation_of(memory, options.id)
    return _told(await conversation.change(title=options.title, tags=options.tag), options, "changed")


@command
async def archive(memory: Memory, options: Namespace) -> int:
    """Put a conversation aside."""
    conversation = await conversation_of(memory, options.id)
    info = await conversation.change(status="active" if options.undo else "archived")
    return _told(info, options, "active again:" if options.undo else "archived")


@command
async def branch(memory: Memory, options: Namespace) -> int:
    """Fork a conversation."""
    conversation = await conversation_of(memory, options.id)
    forked = await conversation.branch(from_turn=options.turn, from_message=options.message, title=options.title)
    if wants_json(options):
        print_json(forked.info)
    else:
        print(forked.id)
    return 0


def _told(info: ConversationInfo, options: Namespace, what: str) -> int:
    if wants_json(options):
        print_json(info)
    else:
        print(f"{what} {info.id}  {safe(info.title or '')}".rstrip())
    return 0


@command
async def export(memory: Memory, options: Namespace) -> int:
    """Write a conversation as JSON or Markdown."""
    if wants_json(options) and options.output is None and options.format != "json":
        msg = f"{options.format} is no JSON document: leave out --json, or name a file with --output"
        raise InputError(msg)
    conversation = await conversation_of(memory, options.id)
    if options.output is None:
        async for piece in conversation.export_pieces(options.format):
            print(piece, end="")
        return 0
    try:
        with Path(options.output).open("w", encoding="utf-8") as file:
            async for piece in conversation.export_pieces(options.format):
                file.write(piece)
    except OSError as error:
        msg = f"cannot write {options.output}: {error.strerror or error}"
        raise InputError(msg) from error
    if wants_json(options):
        info = conversation.info
        print_json({"conversation": info.id, "turns": info.turn_count, "format": options.format, "output": options.output})
    return 0


@command
async def delete(memory: Memory, options: Namespace) -> int:
    """Delete a conversation."""
    conversation = await conversation_of(memory, options.id)
    await conversation.delete()
    return _told(conversation.info, options, "deleted")


@command
async def forget(memory: Memory, options: Namespace) -> int:
    """Forget for good."""
    before = None
    if options.before is not None:
        try:
            before = from_iso(options.before)
        except ValueError as error:
            msg = f"--before is a day or time such as 2026-01-31, not {options.before!r}"
            raise InputError(msg) from error
    named = None if options.conversation is None else (await conversation_of(memory, options.conversation)).id
    forgotten = await memory.forget(conversation=named, project=options.project, before=before, origin=options.origin)
    if wants_json(options):
        print_json(forgotten)
    else:
        print(f"forgotten: {count(forgotten.conversations, 'conversation')}, {count(forgotten.turns, 'turn')}")
    return 0 if forgotten.conversations or forgotten.turns else 1


@command
async def tool_calls(memory: Memory, options: Namespace) -> int:
    """List a conversation's tool calls."""
    conversation = await conversation_of(memory, options.id)
    found = await conversation.get_tool_calls(options.tool, success=options.success, limit=options.limit)
    if wants_json(options):
        print_json(found)
    for call in found if not wants_json(options) else ():
        print(_shown_call(call))
    if not found and not wants_json(options):
        print("No tool call matches.")
    return 0 if found else 1


@command
async def files(memory: Memory, options: Namespace) -> int:
    """List the files a conversation's tools touched."""
    conversation = await conversation_of(memory, options.id)
    found = await conversation.accessed_files(options.max_chars, temporary=options.temporary)
    if wants_json(options):
        print_json(found)
    elif found:
        table(("kind", "turn", "tool", "path"), [(one.kind, one.turn_index, one.tool_name, one.path) for one in found], stretch=3)
    else:
        print("No tool of this conversation touched a file.")
    return 0 if found else 1
