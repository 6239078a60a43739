"""The command that talks: a conversation in the terminal with an agent that remembers, its tools and its memory in sight."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from contextlib import aclosing, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.agent.agent import ConversationAgent, load_packages
from recollect.agent.settings import AgentConfig, ContextComposed, Reply, TextPiece, ToolBegun, ToolEnded
from recollect.answers import to_json
from recollect.errors import InputError, NotFoundError, RecollectError
from recollect.memory import Memory
from recollect.opening import settings_of
from recollect.serve.cli.output import age, complain, count, one_line, safe, styled, width
from recollect.serve.cli.session import conversation_of, wants_json

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from recollect.agent.conversing import AgentConversation
    from recollect.agent.settings import Event
    from recollect.compose.context import Context

_SESSIONS_SHOWN_MAX = 10
_TURNS_SHOWN = 3
_COMMANDS = frozenset({"/context", "/new", "/help", "/?"})
_UNKNOWN = re.compile(r"/[^/\s]*")  # with another slash it is a path, or meant to be sent
_HELP = "/context shows the memory of the last answer, /new begins anew, /exit ends; Ctrl-C stops an answer, Ctrl-D ends"


def chat(options: Namespace) -> int:
    """Talk until there is no more to say; a message on the command line or in a pipe is answered, and that is all."""
    os.environ.setdefault("PYDANTIC_AI_NO_BANNER", "1")  # the answer is what is wanted
    if not Path(options.cwd).is_dir():
        msg = f"{options.cwd[:200]!r} is no directory: name the one to work in"
        raise InputError(msg)
    settings = settings_of(getattr(options, "store", None), getattr(options, "workspace", None), None)
    with asyncio.Runner() as runner:
        memory = runner.run(Memory.open(settings=settings))
        try:
            config = AgentConfig(may_write=options.write, may_run=options.run)
            return _Chat(runner, memory, ConversationAgent(memory, _model(options), config=config), options).run()
        finally:
            runner.run(memory.close())


def _model(options: Namespace) -> Any:
    if not options.offline:
        return None
    load_packages()
    from recollect.agent.scripted import recalling_model  # noqa: PLC0415  a model of the user's own needs none of it

    return recalling_model()


class _Chat:
    """One talk: what was said last, and in which conversation."""

    def __init__(self, runner: asyncio.Runner, memory: Memory, agent: ConversationAgent, options: Namespace) -> None:
        self._runner = runner
        self._memory = memory
        self._agent = agent
        self._options = options
        self._conversation: AgentConversation | None = None
        self._context: Context | None = None
        self._shows = _JsonLines() if wants_json(options) else _Terminal()
        self._is_watched = sys.stdin.isatty() and not options.message and not wants_json(options)

    def run(self) -> int:
        """Answer what is asked, message by message."""
        if self._options.resume is not None:
            self._conversation = self._resumed(self._options.resume)
        if self._is_watched:
            self._greet()
        said = 0
        for said, message in enumerate(self._messages(), 1):  # noqa: B007  how many there were
            try:
                self._runner.run(self._said(message))
            except KeyboardInterrupt:
                complain("stopped; what there is of the answer is kept")
                if not self._is_watched:
                    raise
            except RecollectError as error:
                if not self._is_watched:
                    raise
                complain(str(error))
        if not said and not self._is_watched:
            msg = "there is nothing to answer: give a message, or put one into the pipe"
            raise InputError(msg)
        return 0

    def _messages(self) -> Iterator[str]:
        """Yield what is asked: on the command line, in a pipe, or by a person."""
        if not self._is_watched:
            words: list[str] = self._options.message or ["-"]
            piped = sys.stdin.read().strip() if words[-1] == "-" else ""
            message = "\n\n".join(part for part in (" ".join(words[:-1] if words[-1] == "-" else words).strip(), piped) if part)
            yield from [message] if message else []
            return
        with suppress(ImportError):
            import_module("readline")  # lines are edited, and earlier ones come back, where there is one
        while True:
            try:
                line = input(styled("› ", "cyan")).strip()
            except KeyboardInterrupt:
                print()
                continue
            except EOFError:
                print()
                return
            if line in {"/exit", "/quit"}:
                return
            if line in _COMMANDS:
                self._command(line)
            elif _UNKNOWN.fullmatch(line.partition(" ")[0]):
                complain(f"{one_line(line, 40)!r} is no command: {_HELP}; a text that begins with // is sent")
            elif line:
                yield line

    def _command(self, line: str) -> None:
        if line == "/new":
            self._conversation = None
            print("a new conversation begins with your next message")
        elif line == "/context":
            print(safe(self._context.render()) if self._context is not None and self._context.items else "nothing was recalled")
        else:
            print(_HELP)

    def _greet(self) -> None:
        print(styled(f"recollect · {self._memory.workspace} · {_HELP}", "dim"))
        if self._conversation is not None:
            info = self._conversation.info
            print(styled(safe(f"going on with {info.title or info.id[:8]} · {count(info.turn_count, 'turn')}"), "dim"))
            for turn in self._runner.run(self._conversation.recent_turns(limit=_TURNS_SHOWN)):
                print(f"{styled('›', 'cyan')} {one_line(turn.user, width() - 4)}")
                print(f"  {one_line(turn.assistant, width() - 4)}")

    async def _said(self, message: str) -> None:
        if self._conversation is None:
            self._conversation = await self._agent.create_conversation(self._options.cwd)
        async with aclosing(self._conversation.stream_message(message)) as events:  # whoever reads may have gone
            async for event in events:
                if isinstance(event, ContextComposed):
                    self._context = event.context
                self._shows.event(event)

    def _resumed(self, given: str) -> AgentConversation | None:
        """Return the conversation to go on with: the one that is named, or one of this directory's by choice."""
        if given:
            found = self._runner.run(conversation_of(self._memory, given))
            return self._runner.run(self._agent.load_conversation(found.id, cwd=self._options.cwd))
        sessions = self._runner.run(self._memory.sessions(self._options.cwd))[:_SESSIONS_SHOWN_MAX]
        if not sessions:
            msg = f"there is no conversation to resume in {self._options.cwd!r}: leave --resume out to begin one"
            raise NotFoundError(msg)
        chosen = self._choice([f"{age(one.last_activity_at, self._memory.clock.now())} · {count(one.turn_count, 'turn')} · "
                               f"{one.last_message or 'nothing said yet'}" for one in sessions]) if self._is_watched else 0  # fmt: skip
        return None if chosen is None else self._runner.run(self._agent.load_conversation(sessions[chosen].id, cwd=self._options.cwd))

    def _choice(self, lines: list[str]) -> int | None:
        """Have a person choose; None begins a new conversation."""
        for n, line in enumerate(lines, 1):
            print(f"{n:>3}  {one_line(line, width() - 5)}")
        while True:
            try:
                given = input(f"which? 1–{len(lines)}, Enter for the first, n for a new one: ").strip().lower()
            except EOFError:
                return None
            if given in {"n", "new"}:
                return None
            if not given or (given.isdecimal() and 1 <= int(given) <= len(lines)):
                return int(given or 1) - 1


class _Terminal:
    """Shows an answer to a person as it comes."""

    def __init__(self) -> None:
        self._is_within = False

    def event(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, TextPiece):
            print(safe(event.text), end="", flush=True)
            self._is_within = not event.text.endswith("\n")
            return
        if isinstance(event, ContextComposed):
            self._aside(_told(event.context))
        elif isinstance(event, ToolBegun):
            given = msgspec.json.encode(event.arguments).decode() if event.arguments else ""
            self._aside(f"→ {event.tool_name} {given}")
        elif isinstance(event, ToolEnded):
            self._aside(f"← {'failed: ' if event.is_failed else ''}{event.result}")
        elif isinstance(event, Reply):
            self._line()

    def _aside(self, text: str) -> None:
        self._line()
        print(styled("  " + one_line(text, width() - 3), "dim"), flush=True)

    def _line(self) -> None:
        if self._is_within:
            print()
        self._is_within = False


class _JsonLines:
    """Tells a program of an answer as it comes: a JSON document a line, the last one the whole answer."""

    def event(self, event: Event) -> None:
        """Print one event."""
        if isinstance(event, Reply):
            turn = event.turn
            told = {"conversation_id": turn.conversation_id, "turn_index": turn.index, "content": event.content}
            told |= {"reasoning": event.reasoning, "tool_calls": to_json(event.tool_calls)}
        elif isinstance(event, ContextComposed):
            told = {"items": to_json(event.context.items), "char_count": event.context.char_count}
        else:
            told = to_json(event)
        name = {"ContextComposed": "context", "TextPiece": "text", "ReasoningPiece": "reasoning", "ToolBegun": "tool_call"}
        kind = {**name, "ToolEnded": "tool_result", "Reply": "reply"}[type(event).__name__]
        print(msgspec.json.encode({"event": kind, **told}).decode(), flush=True)


def _told(context: Context) -> str:
    """Say in a line what was recalled."""
    kinds: dict[str, int] = {}
    for item in context.items:
        kinds[item.kind] = kinds.get(item.kind, 0) + 1
    if not kinds:
        return "nothing recalled"
    plural = {"summary": "summaries"}
    shown = [count(number, kind) if number == 1 or kind not in plural else f"{number:,} {plural[kind]}" for kind, number in kinds.items()]
    return f"recalled {', '.join(shown)} · {context.char_count:,} characters"
