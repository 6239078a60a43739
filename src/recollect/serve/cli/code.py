"""The commands about code: reading a project's symbols, and which of a name there are and who speaks of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from recollect.errors import ConfigError
from recollect.serve.cli.output import Progress, age, count, one_line, print_json, safe, styled, width
from recollect.serve.cli.session import command, wants_json

if TYPE_CHECKING:
    from argparse import Namespace

    from recollect.answers import Indexed, ScopeUse
    from recollect.memory import Memory

_CONVERSATIONS_SHOWN_MAX = 5


@command
async def index(memory: Memory, options: Namespace) -> int:
    """Read the symbols of a project's files, and go on whenever they change, if asked to."""
    progress = Progress("files")
    try:
        made = await memory.index(
            options.directory, project=options.project, again=options.again, progress=lambda looked_at, _: progress.at(looked_at)
        )
    finally:
        progress.end()
    _tell(made, options)
    if options.watch:
        await _watched(memory, options, made.root)
    return 0


def _tell(made: Indexed, options: Namespace) -> None:
    if wants_json(options):
        print_json(made)
        return
    parts = [f"{made.changed} read anew", *([f"{made.gone} gone"] if made.gone else [])]
    parts += [f"{made.unreadable} unreadable"] if made.unreadable else []
    print(safe(f"{made.project}: {count(made.scopes, 'symbol')} in {count(made.files, 'file')} ({', '.join(parts)})"))


async def _watched(memory: Memory, options: Namespace, root: str) -> None:
    """Index again after each change of a file, until interrupted."""
    try:
        from watchfiles import watch  # noqa: PLC0415  an extra: only those who watch need it
    except ImportError as error:
        msg = "following the changes of files needs watchfiles, which is not installed: pip install 'recollect[code]'"
        raise ConfigError(msg) from error
    print(safe(f"following {root}; Ctrl-C ends it"), file=sys.stderr)
    for _ in watch(root, raise_interrupt=False):  # nothing else waits for this process
        made = await memory.index(options.directory, project=options.project)
        if made.changed or made.gone:
            _tell(made, options)


@command
async def scopes(memory: Memory, options: Namespace) -> int:
    """Show the symbols of a name, and the conversations that speak of them."""
    found = await memory.scopes(options.name, project=options.project, cwd=options.cwd)
    if wants_json(options):
        print_json(found)
    elif not found:
        print(safe(f"no symbol is called {options.name}: `recollect index` reads the code of a directory"))
    for use in [] if wants_json(options) else found:
        _show(use, memory)
    return 0 if found else 1


def _show(use: ScopeUse, memory: Memory) -> None:
    scope = use.scope
    print(
        styled(safe(f"{scope.kind} {scope.qualified or scope.name}"), "bold"),
        safe(f"· {scope.file_path}:{scope.line_start}–{scope.line_end}"),
    )
    if scope.signature:
        print(safe("    " + one_line(scope.signature, width() - 4)))
    if scope.docstring:
        print(styled(safe("    " + one_line(scope.docstring, width() - 4)), "dim"))
    for info in use.conversations[:_CONVERSATIONS_SHOWN_MAX]:
        title = info.title or info.last_message or "untitled"
        print(safe("    spoken of in " + one_line(f"{info.id[:8]} · {age(info.updated_at, memory.clock.now())} · {title}", width() - 17)))
    if len(use.conversations) > _CONVERSATIONS_SHOWN_MAX:
        print(f"    and {count(len(use.conversations) - _CONVERSATIONS_SHOWN_MAX, 'more conversation')}")
