"""Write the files that follow from others: `recollect.sync` from the async doors, the configuration page from the settings.

`python tools/generate.py` writes them; `python tools/generate.py --check` says whether they are up to date.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import get_args, get_origin

import msgspec

from recollect.settings import Settings, fields

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "recollect"

MEMORY = (
    "create_conversation", "load_conversation", "list_conversations", "projects", "sessions", "record", "search", "context",
    "find_similar_conversations", "import_conversation", "save",
)  # fmt: skip
CODE = ("index", "scopes", "find_scopes")
ANALYSIS = ("analyze", "insights")
DISTILLING = ("distill", "rewrite")
UPKEEP = ("forget", "sweep", "verify", "stats", "spending")
AUDIT = ("why", "flow", "file_usage", "context_usage", "tool_reliability", "checkpoints")
CONVERSATION = (
    "record", "begin", "add", "finish", "get_history", "turns", "recent_turns", "get_tool_calls", "accessed_files", "search_history",
    "build_context",    "summaries", "summarize", "raw_char_count", "branch", "export", "change", "archive", "delete",
)  # fmt: skip

HEAD = '''"""The library without `await`: generated from `memory` and `conversation` by tools/generate.py; do not edit.

Each method is the one of the same name, run to its end in the caller's thread.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal, overload

from recollect import conversation as _conversation
from recollect import memory as _memory
from recollect import opening as _opening
from recollect.running import runner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from pydantic_ai.models import Model

    from recollect.answers import (
        AccessedFile,
        Analyses,
        Forgotten,
        HistoryMessage,
        Hit,
        Indexed,
        ModelSpending,
        Recorded,
        Rewritten,
        ScopeHit,
        ScopeUse,
        SearchResult,
        Session,
        SimilarConversation,
        Stats,
        Swept,
        Verification,
    )
    from recollect.clock import Clock, Ids
    from recollect.compose.context import Context, Strategy
    from recollect.distill.models import SummaryModel
    from recollect.documents.exporting import Format
    from recollect.halves.analyzing import Named
    from recollect.model import ConversationInfo, ConversationStatus, Insight, Project, Summary, ToolCall, Turn, TurnStatus
    from recollect.record.shapes import OnEdit
    from recollect.running import Runner
    from recollect.settings import Settings
    from recollect.trace.answers import CheckpointEntry, ContextUsage, FileUsage, Flow, ToolReliability, Why


class Memory:
    """`recollect.Memory`, without `await`."""

    def __init__(self, memory: _memory.Memory, by: Runner) -> None:
        self._of = memory
        self._by = by
        self._closed = False

    @classmethod
    def open(
        cls,
        store: str | os.PathLike[str] | None = None,
        *,
        workspace: str | None = None,
        settings: Settings | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        summary_model: SummaryModel | None = None,
        worker: bool | None = None,
    ) -> Self:
        """Open a memory: what is not given comes from the user's configuration, and a file that is missing is created."""
        chosen = _opening.settings_of(store, workspace, settings)
        by = runner(waits=_opening.needs_a_loop(chosen) or summary_model is not None)
        opened = _memory.Memory.open(settings=chosen, clock=clock, ids=ids, summary_model=summary_model, worker=worker, threads=False)
        try:
            return cls(by.run(opened), by)
        except BaseException:
            by.close()
            raise

    def close(self) -> None:
        """Let go of the store; what was acknowledged is safe. In a forked process nothing is touched: it belongs to the other."""
        if not self._closed and self._by.process == os.getpid():
            self._closed = True
            try:
                self._by.run(self._of.close())
            finally:
                self._by.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()
'''

MIDDLE = '''

class Conversation:
    """`recollect.Conversation`, without `await`."""

    def __init__(self, conversation: _conversation.Conversation, by: Runner) -> None:
        self._of = conversation
        self._by = by

    @property
    def id(self) -> str:
        """The conversation's id."""
        return self._of.id

    @property
    def info(self) -> ConversationInfo:
        """The conversation as of the last call that changed or loaded it."""
        return self._of.info
'''


def methods(path: Path, class_name: str, names: tuple[str, ...]) -> str:
    """Write the methods of a class without their `async`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == class_name)
    found = [node for node in body if isinstance(node, ast.AsyncFunctionDef)]
    return "".join(_method(node) for name in names for node in found if node.name == name)


def _method(node: ast.AsyncFunctionDef) -> str:
    returns = ast.unparse(node.returns) if node.returns is not None else "None"
    if node.decorator_list:  # the only ones there are
        return f"\n    @overload\n    def {node.name}({ast.unparse(node.args)}) -> {returns}: ...\n"
    arguments = node.args.args[1:]
    passed = [argument.arg for argument in arguments] + [f"{argument.arg}={argument.arg}" for argument in node.args.kwonlyargs]
    call = f"self._by.run(self._of.{node.name}({', '.join(passed)}))"
    result = f"Conversation({call}, self._by)" if returns == "Conversation" else call
    documentation = ast.get_docstring(node, clean=False) or ""
    noqa = "  # noqa: A002  the public name" if any(argument.arg == "format" for argument in arguments) else ""
    keyword = "" if returns == "None" else "return "
    return (
        f'\n    def {node.name}({ast.unparse(node.args)}) -> {returns}:{noqa}\n        """{documentation}"""\n        {keyword}{result}\n'
    )


def sync_module() -> str:
    """Return `recollect/sync.py`, formatted."""
    text = HEAD + methods(SOURCE / "memory.py", "Memory", MEMORY) + methods(SOURCE / "halves" / "auditing.py", "Audited", AUDIT)
    text += methods(SOURCE / "halves" / "indexing.py", "Coded", CODE) + methods(SOURCE / "halves" / "analyzing.py", "Analysed", ANALYSIS)
    text += methods(SOURCE / "halves" / "distilling.py", "Distilled", DISTILLING) + methods(SOURCE / "halves" / "upkeep.py", "Kept", UPKEEP)
    text += MIDDLE + methods(SOURCE / "conversation.py", "Conversation", CONVERSATION)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "src/recollect/sync.py", "-"]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT)  # noqa: S603  our own formatter
    return done.stdout


def settings_page() -> str:
    """Return `docs/configuration.md`."""
    lines = [
        "# Configuration",
        "",
        "One YAML file of yours; `recollect config path` prints where it is looked for. `RECOLLECT_CONFIG` names another,",
        "`RECOLLECT_STORE` and `RECOLLECT_WORKSPACE` override what it says, and `--store` and `--workspace` override both. A",
        "file of the project you work on is never read. An unknown key is an error that names the nearest known one.",
        "",
        "This page is generated from the settings (`make generate`), and a test keeps the two alike.",
        "",
        "| setting | default | what it does |",
        "|---|---|---|",
        *_rows(Settings, ""),
        "",
    ]
    return "\n".join(lines)


def _rows(section: type, path: str) -> list[str]:
    rows: list[str] = []
    for name, hint, default, description in fields(section):
        if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
            rows += _rows(hint, f"{path}{name}.")
            continue
        if get_origin(hint) is dict:
            rows.append(f"| `{path}{name}` | none | {description} |")
            rows += _rows(get_args(hint)[1], f"{path}{name}.*.")
            continue
        shown = "the platform's data folder" if path + name == "store" else _shown(default)
        rows.append(f"| `{path}{name}` | {shown} | {description} |")
        inner = next((one for one in getattr(hint, "__args__", ()) if isinstance(one, type) and issubclass(one, msgspec.Struct)), None)
        if inner is not None:
            rows += _rows(inner, f"{path}{name}[].")
    return rows


def _shown(default: object) -> str:
    if default is msgspec.NODEFAULT:
        return "required"
    return "none" if default in {None, (), msgspec.UNSET} else f"`{str(default).lower() if isinstance(default, bool) else default}`"


GENERATED = {SOURCE / "sync.py": sync_module, ROOT / "docs" / "configuration.md": settings_page}


def main() -> int:
    """Write, or check."""
    stale = [path for path, make in GENERATED.items() if not path.exists() or path.read_text(encoding="utf-8") != make()]
    if "--check" in sys.argv:
        for path in stale:
            sys.stderr.write(f"{path.relative_to(ROOT)} is out of date: run `make generate`\n")
        return 1 if stale else 0
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(GENERATED[path](), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
