"""The tools of a coding agent: plain functions with the words a model reads, confined to one folder and to a memory's project."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from recollect.agent import commands, files, searching
from recollect.agent.confinement import real_root
from recollect.checks import checked_count
from recollect.text import cut, shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from recollect.answers import Hit, ScopeHit
    from recollect.memory import Memory

    Tool = Callable[..., Awaitable[Any]]

HITS_MAX = 20
HIT_CHARS_MAX = 600
SYMBOLS_MAX = 10
DOCSTRING_CHARS_MAX = 300


READING = frozenset({"read_file", "list_directory", "glob_files", "grep_files", "search_code", "search_memory"})  # they change nothing


def code_tools(root: str | os.PathLike[str], *, may_write: bool = False, may_run: bool = False) -> list[Tool]:
    """Return the tools for the files below `root`: those that read, and what else is permitted.

    Paths are told from the root on. A tool that cannot do what it is asked raises a `RecollectError`. A command that runs
    is not confined.
    """
    base = real_root(root)
    tools = _reading(base)
    if may_write:
        tools += _writing(base)
    if may_run:
        tools += _running(base)
    return tools


def _reading(root: Path) -> list[Tool]:
    async def read_file(path: str, first_line: int = 1, last_line: int | None = None) -> dict[str, Any]:
        """Read lines of a text file of the project.

        Args:
            path: The file, from the project's root on, such as "src/app.py".
            first_line: The first line to read, counted from 1.
            last_line: The last line to read; without it, as many as fit. When `is_cut` is true, read on after `last_line`.
        """
        return await asyncio.to_thread(files.read_lines, root, path, first_line, last_line)

    async def list_directory(path: str = ".") -> dict[str, Any]:
        """List what is in a directory of the project: names, kinds (file, directory, link) and sizes.

        Args:
            path: The directory, from the project's root on; "." is the root.
        """
        return await asyncio.to_thread(files.list_folder, root, path)

    async def glob_files(pattern: str, path: str = ".") -> dict[str, Any]:
        """Find files by their names. What the project's ignore files name is left out.

        Args:
            pattern: Such as "**/*.py" or "tests/**/test_*.py"; without a slash it fits names in every directory.
            path: The directory to look in.
        """
        return await asyncio.to_thread(searching.glob, root, pattern, path)

    async def grep_files(pattern: str, path: str = ".", glob: str = "**/*") -> dict[str, Any]:
        """Find lines in files by a regular expression. Binary, very large and ignored files are left out.

        Args:
            pattern: A regular expression in the syntax of RE2 (no look-around, no back-references); "(?i)" ignores case.
            path: The directory or the file to look in.
            glob: Only look in files whose paths fit this pattern, such as "**/*.py".
        """
        return await asyncio.to_thread(searching.grep, root, pattern, path, glob)

    return [read_file, list_directory, glob_files, grep_files]


def memory_tools(memory: Memory, project: str, conversation_id: str | None = None) -> list[Tool]:
    """Return the tools that ask a memory about a project; what is found in the conversation the agent is in is marked."""

    async def search_code(query: str) -> dict[str, Any]:
        """Find functions, classes and methods of the project by what they do, when their names are not known.

        Args:
            query: What the code does, in words, or a name.
        """
        found = await memory.find_scopes(query, project=project, limit=SYMBOLS_MAX)
        return {"symbols": [_symbol(one) for one in found]}

    async def search_memory(query: str, limit: int = 5) -> dict[str, Any]:
        """Find what was said and done in earlier conversations about this project: decisions, errors, solutions.

        Args:
            query: What to look for, in words.
            limit: How many hits to return, at most 20.
        """
        found = await memory.search(query, project=project, limit=checked_count("limit", limit, HITS_MAX))
        return {"hits": [_told(hit, is_here=hit.conversation_id == conversation_id) for hit in found.hits]}

    return [search_code, search_memory]


def _writing(root: Path) -> list[Tool]:
    async def write_file(path: str, content: str) -> dict[str, Any]:
        """Write a whole file of the project; one that is there is replaced, and missing directories are made.

        Args:
            path: The file, from the project's root on.
            content: All that the file is to hold.
        """
        return await asyncio.to_thread(files.write, root, path, content)

    async def edit_file(path: str, old_string: str, new_string: str) -> dict[str, Any]:
        """Replace one place in a file of the project. Read the file first.

        Args:
            path: The file, from the project's root on.
            old_string: The text to replace, exactly as it stands in the file, with enough around it to stand there only once.
            new_string: The text to put in its place.
        """
        return await asyncio.to_thread(files.edit, root, path, old_string, new_string)

    return [write_file, edit_file]


def _running(root: Path) -> list[Tool]:
    async def run_command(command: str, seconds: float = 60) -> dict[str, Any]:
        """Run a shell command in the project's root, and return its output and exit code; long output is cut in the middle.

        Args:
            command: The command. It gets no input, and what it leaves in the background is stopped when it ends.
            seconds: How long it may run, at most 600; then it is stopped and `timed_out` is true.
        """
        return await commands.run(root, command, seconds)

    return [run_command]


def _symbol(found: ScopeHit) -> dict[str, Any]:
    scope = found.scope
    return {
        "name": scope.qualified or scope.name,
        "kind": scope.kind,
        "file": scope.file_path,
        "first_line": scope.line_start,
        "last_line": scope.line_end,
        "signature": shorten(scope.signature, DOCSTRING_CHARS_MAX),
        "docstring": shorten(scope.docstring, DOCSTRING_CHARS_MAX),
        "score": round(found.score, 3),
    }


def _told(hit: Hit, *, is_here: bool) -> dict[str, Any]:
    first, last = hit.span
    question, answer, passage = (cut(text, HIT_CHARS_MAX) for text in (hit.question, hit.answer, hit.passage))
    return {
        "conversation": hit.conversation_id,
        "title": hit.conversation_title,
        "is_this_conversation": is_here,
        "first_turn": first,
        "last_turn": last,
        "when": None if hit.timestamp is None else hit.timestamp.isoformat(),
        "question": question,
        "answer": answer,
        "passage": "" if passage in question or passage in answer else passage,
        "is_stale": hit.stale,
        "score": round(hit.score, 3),
    }
