"""Which commands there are, what they take, and where each is written; only the one that is called is imported."""

from __future__ import annotations

import argparse
import math
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from recollect import __version__
from recollect.errors import InputError
from recollect.limits import COUNT_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

Parser = argparse.ArgumentParser
_PROGRAM = "recollect"
_DIGITS_MAX = len(str(COUNT_MAX)) - 1


class Command(NamedTuple):
    """A command: what it says of itself, what it takes, and its home (`module:function`)."""

    help: str
    takes: Callable[[Parser], None]
    home: str


def _whole(text: str) -> int:
    """Read a number of things."""
    if not text.isdecimal() or len(text) > _DIGITS_MAX:
        msg = f"a whole number from 0 to {COUNT_MAX:,} is expected, not {text[:40]!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _some(text: str) -> int:
    """Read a number of things that are asked for: none is no question."""
    if _whole(text) == 0:
        msg = f"a whole number from 1 to {COUNT_MAX:,} is expected, not {text[:40]!r}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _seconds(text: str) -> float:
    """Read how long something may take."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        msg = f"a number of seconds from 0 on is expected, not {text[:40]!r}"
        raise argparse.ArgumentTypeError(msg)
    return seconds


def _limit(parser: Parser, default: int, what: str) -> None:
    parser.add_argument("--limit", type=_some, default=default, metavar="N", help=f"at most so many {what} (default {default})")


def _id(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", help="a conversation's id, or a beginning of it that no other has")


def _where(parser: Parser) -> None:
    parser.add_argument("--project", metavar="P", help="a project: the id its sender gave it, else its folder's name")
    parser.add_argument("--cwd", metavar="D", help="the project of a directory")


def _conversations(parser: Parser) -> None:
    _where(parser)
    parser.add_argument("--status", choices=("active", "archived"), help="only these")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="only those with this tag; again for any of several")
    parser.add_argument("--agent", metavar="A", help="only those an agent brought")
    _limit(parser, 50, "conversations")


def _sessions(parser: Parser) -> None:
    parser.add_argument("--cwd", default=".", metavar="D", help="the project of a directory (default: this one)")


def _show(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--first", type=_whole, default=0, metavar="N", help="from this turn on")
    parser.add_argument("--last", type=_whole, metavar="N", help="up to this turn")
    parser.add_argument("--recent", type=_whole, metavar="CHARS", help="only the newest turns within so many characters")
    parser.add_argument("--reasoning", action="store_true", help="with the agent's reasoning")
    parser.add_argument("--summaries", action="store_true", help="its summaries instead of its turns, the highest level first")
    parser.add_argument("--level", type=_whole, metavar="N", help="only summaries of this level")
    parser.add_argument("--full", action="store_true", help="texts and results in full length")


def _new(parser: Parser) -> None:
    _where(parser)
    parser.add_argument("--title", metavar="T", help="what it is about")
    parser.add_argument("--tag", action="append", default=[], metavar="T", help="a tag; again for several")
    parser.add_argument("--agent", metavar="A", help="which agent it is with")


def _record(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--user", metavar="TEXT", help="what the user said")
    parser.add_argument("--assistant", metavar="TEXT", help="what the agent answered")
    parser.add_argument("--messages", metavar="FILE", help="a JSON list of chat messages instead; - is standard input")
    parser.add_argument("--request-id", metavar="R", help="the request's own id: sending it again changes nothing")
    parser.add_argument("--replace", action="store_true", help="replace what the same request said before")
    parser.add_argument("--on-edit", choices=("branch", "replace"), default="branch", help="what an edited past does (default branch)")


def _edit(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--title", metavar="T", help="another title")
    parser.add_argument("--tag", action="append", metavar="T", help="these tags instead; again for several")


def _archive(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--undo", action="store_true", help="make it active again")


def _branch(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--turn", type=_whole, metavar="N", help="fork after this turn (default: the last)")
    parser.add_argument("--message", type=_whole, metavar="N", help="fork after the turn that holds this message")
    parser.add_argument("--title", metavar="T", help="a title of its own")


def _export(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--format", choices=("json", "markdown"), default="json", help="json imports back, markdown is for reading")
    parser.add_argument("--output", metavar="FILE", help="write to a file instead of standard output")


def _forget(parser: Parser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--conversation", metavar="ID", help="a conversation")
    what.add_argument("--origin", metavar="AGENT", help="everything an agent brought")
    parser.add_argument("--project", metavar="P", help="a project; with --before, only its older turns")
    parser.add_argument("--before", metavar="DATE", help="turns that ended before a day or time (ISO 8601, UTC)")


def _tool_calls(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--tool", metavar="NAME", help="only calls of this tool")
    outcome = parser.add_mutually_exclusive_group()
    outcome.add_argument("--failed", dest="success", action="store_const", const=False, help="only those that failed")
    outcome.add_argument("--succeeded", dest="success", action="store_const", const=True, help="only those that did not")
    _limit(parser, 100, "calls")


def _files(parser: Parser) -> None:
    _id(parser)
    parser.add_argument("--max-chars", type=_whole, default=5_000, metavar="N", help="at most so many characters (default 5,000)")
    parser.add_argument("--temporary", action="store_true", help="temporary files too")


def _search(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="what to look for, in words")
    _where(parser)
    parser.add_argument("--conversation", metavar="ID", help="only in one conversation and what it inherits")
    parser.add_argument("--levels", metavar="0,1", help="only turns (0) or summaries of a level")
    parser.add_argument("--no-semantic", dest="semantic", action="store_false", help="by words alone")
    parser.add_argument("--agent", metavar="A", help="only conversations of this agent")
    parser.add_argument("--tag", action="append", metavar="T", help="only conversations with this tag; may be given again")
    parser.add_argument("--since", metavar="DATE", help="only turns since a day or time (ISO 8601, UTC)")
    parser.add_argument("--until", metavar="DATE", help="only turns before a day or time")
    parser.add_argument("--tool", metavar="NAME", help="only turns that used this tool")
    parser.add_argument("--file", metavar="PATH", help="only turns that touched this file")
    parser.add_argument("--min-score", type=float, default=0.0, metavar="X", help="only hits of at least this score, from 0 to 1")
    parser.add_argument("--explain", action="store_true", help="say what each signal contributed")
    _limit(parser, 10, "hits")


def _context(parser: Parser) -> None:
    parser.add_argument("prompt", metavar="PROMPT", nargs="+", help="what the agent is about to be asked")
    _where(parser)
    parser.add_argument("--conversation", metavar="ID", help="the conversation it is asked in, and the rest of its project")
    parser.add_argument("--budget", type=_whole, metavar="CHARS", help="at most so many characters (default: compose.budget_chars)")
    parser.add_argument("--tokens", type=_whole, metavar="N", help="at most so many tokens, by a safe estimate")
    parser.add_argument("--strategy", choices=("hybrid", "recent", "relevant"), default="hybrid", help="what goes in (default hybrid)")
    parser.add_argument("--wait", type=_seconds, metavar="SECONDS", help="wait so long for distilling that is under way")
    parser.add_argument("--no-semantic", dest="semantic", action="store_false", help="by words alone")
    parser.add_argument("--explain", action="store_true", help="say why each item is in, and why others are not")


def _similar(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="a text to compare with")
    _where(parser)
    parser.add_argument("--no-semantic", dest="semantic", action="store_false", help="by words alone")
    _limit(parser, 5, "conversations")


def _ingest(parser: Parser) -> None:
    parser.add_argument("file", metavar="FILE", help="a payload, a JSON array or JSON lines of them; - is standard input")
    parser.add_argument("--replace", action="store_true", help="replace what the same request said before")
    parser.add_argument("--on-edit", choices=("branch", "replace"), default="branch", help="what an edited past does (default branch)")


def _import(parser: Parser) -> None:
    parser.add_argument("agent", choices=("recollect", "openai"), help="recollect: an export; openai: a JSON list of chat messages")
    parser.add_argument("path", nargs="+", metavar="PATH", help="files; - is standard input")
    parser.add_argument("--replace", action="store_true", help="replace a conversation that is already there")
    parser.add_argument("--new-id", action="store_true", help="import an export as a new conversation")
    _where(parser)


def _period(parser: Parser) -> None:
    _where(parser)
    parser.add_argument("--days", type=float, metavar="N", help="only the last so many days (default: all)")
    parser.add_argument("--since", metavar="DATE", help="only since a day or time (ISO 8601, UTC)")
    parser.add_argument("--until", metavar="DATE", help="only before a day or time")


def _why(parser: Parser) -> None:
    parser.add_argument("place", metavar="PATH[:LINE]", help="a file, or a line of it")
    parser.add_argument("--text", metavar="TEXT", help="what the line says (default: read from the file)")
    _period(parser)
    _limit(parser, 10, "changes")


def _flow(parser: Parser) -> None:
    parser.add_argument("request", metavar="REQUEST", help="a request's id, or a turn's")
    _where(parser)


def _usage_of(parser: Parser) -> None:
    parser.add_argument("path", nargs="?", metavar="PATH", help="a file; without it the most used ones, and which sources serve best")
    _period(parser)
    _limit(parser, 10, "files")


def _tools(parser: Parser) -> None:
    parser.add_argument("--tool", metavar="NAME", help="only this tool")
    _period(parser)


def _checkpoints(parser: Parser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="only those of a conversation")
    _period(parser)


def _index(parser: Parser) -> None:
    parser.add_argument("directory", nargs="?", default=".", metavar="DIR", help="whose project's code is read (default: this one)")
    parser.add_argument("--project", metavar="P", help="the project it belongs to (default: the directory's own)")
    parser.add_argument("--again", action="store_true", help="read every file anew, not only those that changed")
    parser.add_argument("--watch", action="store_true", help="go on, and read again what changes, until it is stopped")


def _scopes(parser: Parser) -> None:
    parser.add_argument("name", metavar="NAME", help="a function, class or method, such as login_user or Memory.open")
    _where(parser)


def _chat(parser: Parser) -> None:
    parser.add_argument("message", nargs="*", metavar="MESSAGE", help="answer this and end; - is what comes in a pipe")
    parser.add_argument("--cwd", default=".", metavar="D", help="the directory to work in (default: this one)")
    parser.add_argument("--resume", nargs="?", const="", metavar="ID", help="go on with this conversation, or one of the directory's")
    parser.add_argument("--write", action="store_true", help="let the agent write and edit files below the project's root")
    parser.add_argument("--run", action="store_true", help="let the agent run commands, which are not confined")
    parser.add_argument("--offline", action="store_true", help="without a model: answers come from memory alone")


def _init(parser: Parser) -> None:
    parser.add_argument("directory", metavar="DIR", help="the folder to write to, which is made if it is missing")


def _analyze(parser: Parser) -> None:
    parser.add_argument("id", nargs="*", metavar="ID", help="these conversations (default: those that changed last)")
    _where(parser)
    parser.add_argument("--task", metavar="TEXT", help="what to look for")
    parser.add_argument("--schema", metavar="FILE", help="a JSON schema that the insights have to fit; it needs a model")
    parser.add_argument("--concurrency", type=_whole, default=4, metavar="N", help="so many at once are asked of a model (default 4)")
    parser.add_argument("--again", action="store_true", help="also those that have not changed since")
    parser.add_argument("--show", action="store_true", help="only show what was found before")
    parser.add_argument("--search", metavar="WORDS", help="as --show, what comes closest to some words first")
    parser.add_argument("--kind", metavar="K", help="with --show or --search: only insights of this kind")
    _limit(parser, 50, "conversations, or insights that are shown")


def _verify(parser: Parser) -> None:
    parser.add_argument("id", nargs="?", metavar="ID", help="a message, turn, tool call or file; without it the whole store is checked")
    parser.add_argument("--content", metavar="FILE", help="what it should say; - is standard input")


def _copy(parser: Parser) -> None:
    parser.add_argument("source", metavar="FROM", help="the store to copy: a file, or neo4j://host:7687")
    parser.add_argument("target", metavar="TO", help="the store to copy into; what it has already is left, so a copy can be taken up again")


def _distill(parser: Parser) -> None:
    parser.add_argument("--wait", action="store_true", help="do it here and now (default: say what waits)")
    parser.add_argument("--rebuild", action="store_true", help="delete all summaries and vectors, and make them again under the same ids")
    parser.add_argument("--rewrite", action="store_true", help="have the model of models.summaries rewrite extractive summaries")
    parser.add_argument("--budget-tokens", type=_whole, metavar="N", help="with --rewrite: stop before more tokens are spent")
    parser.add_argument("--conversation", metavar="ID", help="with --rewrite: only those of a conversation")
    parser.add_argument("--project", metavar="P", help="with --rewrite: only those of a project")


def _worker(parser: Parser) -> None:
    parser.add_argument("--once", action="store_true", help="stop when nothing is due any more")


def _serve(parser: Parser) -> None:
    parser.add_argument("--host", metavar="H", help="the address to listen on (default: server.host, which is loopback)")
    parser.add_argument("--port", type=_whole, metavar="P", help="the port (default: server.port); 0 takes a free one")
    parser.add_argument("--no-worker", dest="worker", action="store_false", help="do not distil what is recorded")


def _token(parser: Parser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    create = actions.add_parser("create", help="create a token and print it, once", parents=[_common()])
    create.add_argument("--role", choices=("read", "write", "admin"), default="read", help="what it may do (default read)")
    create.add_argument("--label", metavar="L", help="what it is for")
    create.add_argument("--days", type=_whole, metavar="N", help="so many days until it expires (default: never)")
    actions.add_parser("list", help="list the tokens, never their secrets", parents=[_common()])
    revoke = actions.add_parser("revoke", help="refuse a token from now on", parents=[_common()])
    revoke.add_argument("id", metavar="ID", help="the token's id, as the list shows it")


def _config(parser: Parser) -> None:
    parser.add_argument("what", choices=("path", "show"), help="where the file is looked for, or what is set")


def _demo(parser: Parser) -> None:
    parser.add_argument("--serve", action="store_true", help="serve the tour's memory over HTTP afterwards, until it is stopped")


def _stats(parser: Parser) -> None:
    parser.add_argument("--models", action="store_true", help="what models were asked and spent instead")


def _nothing(_: Parser) -> None:
    return


COMMANDS: dict[str, Command] = {
    "conversations": Command("list conversations, the latest change first", _conversations, "conversations:list_them"),
    "sessions": Command("list what can be resumed in a directory", _sessions, "conversations:sessions"),
    "show": Command("show a conversation", _show, "conversations:show"),
    "search": Command("find turns and summaries, best first", _search, "search:search"),
    "context": Command("compose what an agent should know before it is asked something", _context, "search:context"),
    "similar": Command("find conversations that come close to a text", _similar, "search:similar"),
    "files": Command("list the files a conversation's tools touched, each with its latest access", _files, "conversations:files"),
    "tool-calls": Command("list a conversation's tool calls", _tool_calls, "conversations:tool_calls"),
    "new": Command("create a conversation", _new, "conversations:new"),
    "record": Command("record a turn", _record, "conversations:record"),
    "ingest": Command("record an engine's requests", _ingest, "ingest:ingest"),
    "import": Command("import conversations", _import, "ingest:import_them"),
    "export": Command("write a conversation as JSON or Markdown", _export, "conversations:export"),
    "edit": Command("change a conversation's title or tags", _edit, "conversations:edit"),
    "archive": Command("put a conversation aside", _archive, "conversations:archive"),
    "branch": Command("fork a conversation", _branch, "conversations:branch"),
    "delete": Command("delete a conversation; its branches keep what they inherited", _id, "conversations:delete"),
    "forget": Command("forget for good: a conversation, a project, a time, an agent", _forget, "conversations:forget"),
    "why": Command("say why a file or a line is as it is", _why, "audit:why"),
    "flow": Command("show a request from its first message to its last", _flow, "audit:flow"),
    "usage": Command("say how files and sources serve as context", _usage_of, "audit:usage"),
    "tools": Command("say how reliable tools are", _tools, "audit:tools"),
    "checkpoints": Command("show the timeline of checkpoints, and what changed between them", _checkpoints, "audit:checkpoints"),
    "index": Command("read the functions, classes and methods of a project's code", _index, "code:index"),
    "scopes": Command("show the symbols of a name, and the conversations about them", _scopes, "code:scopes"),
    "chat": Command("talk with an agent that remembers", _chat, "chat:chat"),
    "init": Command("write a starter project: an agent with memory and tools, an example, a test", _init, "init:init"),
    "analyze": Command("find out what was learned in conversations, or show it", _analyze, "analyze:analyze"),
    "verify": Command("check a content, or the whole store", _verify, "state:verify"),
    "copy": Command("copy a whole store into another, all workspaces or the one that is named", _copy, "copy:copy"),
    "summarize": Command("summarise what is due in a conversation, and show it", _id, "distill:summarize"),
    "distill": Command("make the summaries and vectors that are due", _distill, "distill:distill"),
    "worker": Command("distil what is recorded, until it is stopped", _worker, "distill:worker"),
    "sweep": Command("remove what has expired, and close requests that were never finalized", _nothing, "state:sweep"),
    "serve": Command("serve the memory over HTTP, until it is stopped", _serve, "serve:serve"),
    "token": Command("create, list or revoke a token of the HTTP door", _token, "tokens:token"),
    "stats": Command("say how much is remembered", _stats, "state:stats"),
    "doctor": Command("say whether everything is in order", _nothing, "state:doctor"),
    "config": Command("say where settings come from", _config, "state:config"),
    "demo": Command("take a short guided tour in a fresh file", _demo, "demo:demo"),
}


def parse(arguments: list[str]) -> tuple[argparse.Namespace, Callable[[argparse.Namespace], int]]:
    """Read the command line; argparse itself ends the program, with code 2, when it makes no sense."""
    named = _named(arguments)
    options = _parser({named: COMMANDS[named]} if named in COMMANDS else COMMANDS).parse_args(arguments)
    if options.version:
        return options, _version
    if options.command not in COMMANDS:
        return options, _usage
    module, _, function = COMMANDS[options.command].home.partition(":")
    run: Callable[[argparse.Namespace], int] = getattr(import_module(f"recollect.serve.cli.{module}"), function)
    return options, run


def _named(arguments: list[str]) -> str | None:
    """Return the word at the place of the command: the value of an option may be called like one."""
    before = Parser(prog=_PROGRAM, add_help=False, parents=[_common()])
    before.add_argument("words", nargs=argparse.REMAINDER)
    words: list[str] = before.parse_known_args(arguments)[0].words
    return next(iter(words), None)


def _version(options: argparse.Namespace) -> int:
    if getattr(options, "json", False):
        from recollect.serve.cli.output import print_json  # noqa: PLC0415  only those who asked for JSON need it

        print_json({"version": __version__})
    else:
        print(f"{_PROGRAM} {__version__}")
    return 0


def _usage(options: argparse.Namespace) -> int:
    if getattr(options, "json", False):
        msg = "there is no command: `recollect --help` lists them"
        raise InputError(msg)
    _parser(COMMANDS).print_help()
    return 2


def _common() -> Parser:
    shared: dict[str, Any] = {"default": argparse.SUPPRESS}
    common = Parser(add_help=False)
    common.add_argument("--store", metavar="URL", help="which store (default: RECOLLECT_STORE, else your own file)", **shared)
    common.add_argument("--workspace", metavar="NAME", help="which workspace (default: RECOLLECT_WORKSPACE, else 'default')", **shared)
    common.add_argument("--json", action="store_true", help="one JSON document on standard output", **shared)
    return common


def _parser(commands: dict[str, Command]) -> Parser:
    top = Parser(prog=_PROGRAM, description="The memory of coding agents.", parents=[_common()])
    top.add_argument("--version", action="store_true", help="print the version")
    commanded = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, command in commands.items():
        parser = commanded.add_parser(name, help=command.help, description=command.help.capitalize() + ".", parents=[_common()])
        command.takes(parser)
    return top
