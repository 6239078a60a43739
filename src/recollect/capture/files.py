"""Which files a tool call touched, and how, from its arguments and its result; pure.

The tool families are those of FORMATS §2: the Refact family, the RagForge family, Claude Code, Codex.
"""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any, cast

from recollect.capture.paths import Place, is_generated, is_temporary
from recollect.limits import ACCESSES_PER_CALL_MAX
from recollect.model import AccessKind, FileAccess

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_PATH_KEYS = ("path", "file_path", "filename", "file", "target_file", "notebook_path", "absolute_path")
_SOURCE, _DESTINATION = ("source", "src", "from"), ("destination", "dest", "to")

# tool name, lower-cased → how it touches what its arguments name
_TOOLS: dict[str, tuple[tuple[AccessKind, tuple[str, ...]], ...]] = {
    **dict.fromkeys(("read", "read_file", "file", "view", "open_file", "read_many_files"), (("read", (*_PATH_KEYS, "paths")),)),
    "cat": (("read", ("paths", "path")),),
    **dict.fromkeys(
        (
            *("write", "edit", "multiedit", "notebookedit", "write_file", "edit_file", "create_file", "delete_path", "delete_file"),
            *("rm", "patch", "create_textdoc", "update_textdoc", "update_textdoc_regex", "update_textdoc_by_lines", "replace_textdoc"),
            *("replace", "str_replace_editor", "str_replace_based_edit_tool"),
        ),
        (("write", _PATH_KEYS),),
    ),
    **dict.fromkeys(("mv", "move_file"), (("write", _SOURCE), ("write", _DESTINATION))),
    "copy_file": (("read", _SOURCE), ("write", _DESTINATION)),
    **dict.fromkeys(("tree", "list_directory", "glob_files", "glob", "ls"), (("list", ("path", "dirpath", "dir_path")),)),
    **dict.fromkeys(("grep", "grep_files", "search_files", "search_file_content"), (("search", ("path", "dir_path")),)),
    **dict.fromkeys(("search_semantic", "search_pattern"), (("search", ("scope",)),)),
    "strategic_planning": (("read", ("important_paths",)),),
    "create_knowledge": (("read", ("filenames",)),),
    "shell": (("list", ("workdir",)),),
}
_COMMA_LISTS = frozenset({"paths", "important_paths", "filenames"})
_SHELLS = frozenset({"bash", "shell", "exec_command", "run_shell_command", "run_command", "execute_bash", "local_shell", "container.exec"})
_PATCHES = frozenset({"apply_patch"})
_RESULT_KINDS: dict[str, AccessKind] = {
    **dict.fromkeys(("grep", "grep_files", "search_files", "brain_search", "search_pattern", "search_file_content"), "search"),
    **dict.fromkeys(("glob", "glob_files"), "list"),
}
_WHOLE_WORKSPACE = frozenset({"workspace", ".", ""})
_PATCHED = re.compile(r"^\*\*\* (?:Update File|Add File|Delete File|Move to): (.+?)\s*$", re.MULTILINE)
_RESULT_LINE = re.compile(r"^((?:[A-Za-z]:)?[\w.@+~/\\-]*[\w-]+\.[A-Za-z0-9_]{1,12})(?::\d+.*|-\d+-.*|\s*)$")
_RESULT_LINES_MAX = 2_000

_READERS = frozenset({"cat", "head", "tail", "less", "more", "nl", "wc", "bat", "xxd", "stat", "file", "diff", "md5sum", "sha256sum"})
_LISTERS = frozenset({"ls", "tree", "find", "fd", "du"})
_SEARCHERS = frozenset({"grep", "rg", "ag", "egrep", "fgrep"})
_WRITERS = frozenset({"rm", "mv", "touch", "tee", "chmod", "truncate", "rmdir", "mkdir"})
_COMMANDS: dict[str, AccessKind] = {
    **dict.fromkeys(_READERS, "read"),
    **dict.fromkeys(_LISTERS, "list"),
    **dict.fromkeys(_SEARCHERS, "search"),
    **dict.fromkeys(_WRITERS, "write"),
}
_TOUCHES = re.compile(r">|\*\*\* Begin Patch|\b(?:sed|cp|" + "|".join(_COMMANDS) + r")\b")
_SEPARATORS = frozenset({"|", "||", "&&", ";", "&", "(", ")", "\n"})
_REDIRECTS = frozenset({">", ">>", "&>", ">|"})
_COMMAND_CHARS_MAX = 20_000
_PATH_LIKE = re.compile(r"^(?:[~.]{0,2}/)?[\w.@+-]+(?:/[\w.@+-]+)*/?$")
_FED = re.compile(r"(?<!<)<<(?!<)-?[ \t]*(['\"]?)(\w+)\1")  # the lines up to this word are fed to a program: no command stands in them
_OPTIONS_WITH_VALUES: dict[str, frozenset[str]] = {  # the word after one of these is no path
    **dict.fromkeys(
        _SEARCHERS,
        frozenset("-A -B -C -m -e -g -t -T -E -d -D --max-count --regexp --glob --iglob --type --type-not --include --exclude".split()),
    ),
    **dict.fromkeys(("head", "tail"), frozenset(("-n", "-c", "--lines", "--bytes"))),
    **dict.fromkeys(("touch",), frozenset(("-d", "-t", "--date"))),
    "stat": frozenset(("-c", "-f", "--format", "--printf")),
    "diff": frozenset(("-U", "-C", "--label", "-L", "-I", "-x", "--exclude")),
    "tree": frozenset(("-L", "-I", "-P")),
    "du": frozenset(("-d", "--max-depth", "--exclude")),
    "fd": frozenset(("-e", "-t", "-d", "-E", "--extension", "--type", "--max-depth", "--exclude")),
    "xxd": frozenset(("-l", "-s", "-c", "-g")),
    "truncate": frozenset(("-s", "--size")),
    "mkdir": frozenset(("-m", "--mode")),
    "sed": frozenset(("-e", "--expression", "-l")),
}
_PATTERN_OPTIONS = frozenset(
    {"-e", "--regexp", "-f", "--file", "--expression", "--files"}
)  # with one of these no plain word is the pattern
_PATTERN_FIRST = _SEARCHERS | {"sed", "fd"}


def accessed_files(tool: str, arguments: dict[str, Any] | None, result: str | None, place: Place) -> tuple[FileAccess, ...]:
    """Return the files a call touched, each once; of two kinds for one path the stronger (write, read, …) stays."""
    name = tool.rpartition("__")[2].lower()
    found: dict[str, AccessKind] = {}
    for kind, path in _named(name, arguments or {}, result):
        located = place.locate(path)
        if not located or located in _WHOLE_WORKSPACE or not _storable(located):
            continue
        if located not in found or _STRENGTH[kind] > _STRENGTH[found[located]]:
            found[located] = kind
        if len(found) >= ACCESSES_PER_CALL_MAX:
            break
    return tuple(
        FileAccess(path=path, kind=kind, temporary=is_temporary(path), generated=is_generated(path)) for path, kind in found.items()
    )


def is_shell(tool: str) -> bool:
    """Tell whether a tool runs what stands in a line of a shell, so that its files are only words of that line."""
    return tool.rpartition("__")[2].lower() in _SHELLS


_STRENGTH: dict[AccessKind, int] = {"list": 0, "search": 1, "read": 2, "write": 3}


def _storable(path: str) -> bool:
    return path.isprintable() and "\ufffd" not in path


def _named(name: str, arguments: dict[str, Any], result: str | None) -> Iterator[tuple[AccessKind, str]]:
    for kind, keys in _TOOLS.get(name, ()):
        for key in keys:
            value = arguments.get(key)
            if value is not None:
                yield from _all(kind, _paths_under(value, is_list=key in _COMMA_LISTS))
    if name in _PATCHES:
        yield from _patched(arguments)
    if name in _SHELLS:
        yield from _commanded(_command_text(arguments))
    if result and name in _RESULT_KINDS:
        yield from _all(_RESULT_KINDS[name], _paths_in_result(result))


def _all(kind: AccessKind, paths: Iterable[str]) -> Iterator[tuple[AccessKind, str]]:
    for path in paths:
        yield kind, path


def _paths_under(value: object, *, is_list: bool) -> Iterable[str]:
    if isinstance(value, list):
        return [item for item in cast("list[Any]", value) if isinstance(item, str)]
    if not isinstance(value, str) or "\n" in value:
        return ()
    return value.split(",") if is_list else (value,)


def _patched(arguments: dict[str, Any]) -> Iterator[tuple[AccessKind, str]]:
    for value in arguments.values():
        if isinstance(value, str):
            yield from _all("write", _PATCHED.findall(value))


def _command_text(arguments: dict[str, Any]) -> str:
    command = arguments.get("command") or arguments.get("cmd") or arguments.get("input") or ""
    if isinstance(command, list):
        words = [str(word) for word in cast("list[Any]", command)]
        return words[2] if len(words) > 2 and words[1] in {"-c", "-lc"} else shlex.join(words)  # noqa: PLR2004  bash -c TEXT
    return command if isinstance(command, str) else ""


def _commanded(command: str) -> Iterator[tuple[AccessKind, str]]:
    """Read the simple commands of a shell line; what a program does with its own arguments is not guessed."""
    if not _TOUCHES.search(command):
        return
    if "*** Begin Patch" in command:
        yield from _all("write", _PATCHED.findall(command))
        return
    try:
        lexer = shlex.shlex(_without_fed(command[:_COMMAND_CHARS_MAX]), posix=True, punctuation_chars="|&;()<>\n")
        lexer.whitespace = " \t\r"
        lexer.commenters = ""
        words = list(lexer)
    except ValueError:
        return
    simple: list[str] = []
    for word in [*words, ";"]:
        if word in _SEPARATORS or set(word) <= {"\n", ";"}:
            yield from _simple_command(simple)
            simple = []
        else:
            simple.append(word)


def _without_fed(command: str) -> str:
    """Return a shell line without the texts that it feeds to programs."""
    kept: list[str] = []
    until: str | None = None
    for line in command.split("\n"):
        if until is None:
            kept.append(line)
            fed = _FED.search(line)
            until = None if fed is None else fed[2]
        elif line.strip() == until:
            until = None
    return "\n".join(kept)


def _simple_command(words: list[str]) -> Iterator[tuple[AccessKind, str]]:
    plain: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word in _REDIRECTS and position + 1 < len(words):
            position += 1
            yield from _all("write", filter(_is_path, [words[position]]))
        elif word in {"<", "<<", "<<<"}:
            position += 1
        else:
            plain.append(word)
        position += 1
    if not plain:
        return
    program = plain[0].rpartition("/")[2]
    arguments = _arguments(program, plain[1:])
    if program == "sed":
        kind: AccessKind = "write" if any(word.startswith("-i") for word in plain) else "read"
    elif program == "cp" and arguments:
        yield from _all("read", filter(_is_path, arguments[:-1]))
        kind, arguments = "write", arguments[-1:]
    elif program in _COMMANDS:
        kind = _COMMANDS[program]
    else:
        return
    yield from _all(kind, filter(_is_path, arguments))


def _arguments(program: str, words: list[str]) -> list[str]:
    """Return what a program is given beside its options, their values, and the pattern or script it begins with."""
    valued = _OPTIONS_WITH_VALUES.get(program, frozenset())
    plain: list[str] = []
    position, has_pattern = 0, program not in _PATTERN_FIRST
    while position < len(words):
        word = words[position]
        if word == "--":
            plain += words[position + 1 :]
            break
        if not word.startswith("-") or word == "-":
            plain.append(word)
        elif program == "find":
            break  # from here on it is told what to look for
        else:
            has_pattern = has_pattern or word.partition("=")[0] in _PATTERN_OPTIONS
            position += word in valued
        position += 1
    return [word for word in plain if word][0 if has_pattern else 1 :]


def _is_path(word: str) -> bool:
    return _PATH_LIKE.match(word) is not None and not word.startswith("/dev/") and not word.isdigit() and ("/" in word or "." in word)


def _paths_in_result(result: str) -> Iterator[str]:
    stripped = result.lstrip()
    if stripped[:1] in {"{", "["}:
        try:
            yield from _paths_in_json(json.loads(stripped))
        except (ValueError, RecursionError):
            pass
        else:
            return
    for line in result.splitlines()[:_RESULT_LINES_MAX]:
        if match := _RESULT_LINE.match(line.strip()):
            yield match[1]


def _paths_in_json(value: object) -> Iterator[str]:
    records: list[Any] = []
    if isinstance(value, list):
        records = cast("list[Any]", value)
    elif isinstance(value, dict):
        record = cast("dict[str, Any]", value)
        for key in ("matches", "results", "files"):
            if isinstance(record.get(key), list):
                records += record[key]
    for item in records:
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            entry = cast("dict[str, Any]", item)
            node = entry.get("node")
            entry = cast("dict[str, Any]", node) if isinstance(node, dict) else entry
            path = next((entry[key] for key in ("file", "path", "file_path", "absolutePath") if isinstance(entry.get(key), str)), None)
            if path is not None:
                yield path
