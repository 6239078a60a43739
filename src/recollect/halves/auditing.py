"""What people ask about what was done, within a project and a period: the audit half of `Memory`."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recollect.capture.paths import Place, place_of, place_of_root
from recollect.checks import checked_count, checked_number, checked_plain, checked_time
from recollect.errors import InputError, NotFoundError
from recollect.halves.core import Core
from recollect.limits import PATH_CHARS_MAX
from recollect.store.traced import TraceScope

if TYPE_CHECKING:
    import os

    from recollect.model import Project
    from recollect.trace.answers import CheckpointEntry, ContextUsage, FileUsage, Flow, ToolReliability, Why

_DAYS_MAX = 100_000
_FILE_BYTES_MAX = 5_000_000
_NAMED_MAX = 8


class Audited(Core):
    """The audit of a memory; without `project` or `cwd` the project of the current directory is meant, or the only one there is."""

    async def why(
        self,
        path: str,
        line: int | None = None,
        *,
        line_text: str | None = None,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
        limit: int = 10,
    ) -> Why:
        """Return the changes that made a file, or a line of it, what it is, newest first, with what was asked and known.

        A line is found by its text among the lines that changes added, through renames; the text is `line_text`, or is read
        from the file where the project's directory is at hand. Where no text helps, the ranges of the changes decide.
        """
        from recollect.trace.why import why  # noqa: PLC0415  only those who ask need it

        where = await self._trace_scope(project, cwd, days, since, until)
        name, known = await self._named(where, path)
        if line is not None:
            checked_count("line", line, count_min=1)
            given = line_text if line_text is not None else _line_of(path, line, known)  # an empty one says: read no file
            line_text = given and self._clean(given)  # what was recorded is clean, and only alike compares with alike
        count = checked_count("limit", limit)
        return await why(self.store, self.workspace, where, name, line=line, line_text=line_text, limit=count)

    async def flow(
        self,
        request_id: str,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
    ) -> Flow:
        """Return a request from its first message to its last, over all its turns; without a project it is looked for in all."""
        from recollect.trace.flow import flow  # noqa: PLC0415  as above

        where = TraceScope(project_ids=await self._projects.ids(project, cwd))
        found = await flow(self.store, self.workspace, where, checked_plain("request_id", request_id) or "")
        if found is None:
            msg = f"there is no request or turn {str(request_id)[:80]!r} in workspace {self.workspace!r}"
            raise NotFoundError(msg)
        return found

    async def file_usage(
        self,
        path: str,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
    ) -> FileUsage:
        """Return how often a file was context and how useful, and which changes were made in those requests; 0 times is an answer."""
        from recollect.trace.answers import FileUsage  # noqa: PLC0415  as above
        from recollect.trace.usage import file_usage  # noqa: PLC0415  as above

        where = await self._trace_scope(project, cwd, days, since, until)
        name, _ = await self._named(where, path)
        found = await file_usage(self.store, self.workspace, where, name)
        return found or FileUsage(path=name, count=0, average_usefulness=None)

    async def context_usage(
        self,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
        limit: int = 10,
    ) -> ContextUsage:
        """Return which files are context most often, most usefully and never usefully, and how the sources serve."""
        from recollect.trace.usage import context_usage  # noqa: PLC0415  as above

        where = await self._trace_scope(project, cwd, days, since, until)
        return await context_usage(self.store, self.workspace, where, checked_count("limit", limit))

    async def tool_reliability(
        self,
        tool_name: str | None = None,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
    ) -> list[ToolReliability]:
        """Return how tools, or one of them, do: calls, failures, durations, commonest errors, day by day; the most called first."""
        from recollect.trace.tools import tool_reliability  # noqa: PLC0415  as above

        where = await self._trace_scope(project, cwd, days, since, until)
        return await tool_reliability(self.store, self.workspace, where, checked_plain("tool_name", tool_name))

    async def checkpoints(
        self,
        conversation: str | None = None,
        *,
        project: str | None = None,
        cwd: str | os.PathLike[str] | None = None,
        days: float | None = None,
        since: Any = None,
        until: Any = None,
    ) -> list[CheckpointEntry]:
        """Return the checkpoints of a project, or of a conversation, oldest first, each with the changes made after it."""
        from recollect.trace.checkpoints import checkpoints  # noqa: PLC0415  as above

        if conversation is not None:
            where = TraceScope(
                project_ids=await self._projects.ids(project, cwd), since=self._since(days, since), until=checked_time("until", until)
            )
        else:
            where = await self._trace_scope(project, cwd, days, since, until)
        return await checkpoints(self.store, self.workspace, where, checked_plain("conversation", conversation))

    async def _trace_scope(
        self, project: str | None, cwd: str | os.PathLike[str] | None, days: float | None, since: Any, until: Any
    ) -> TraceScope:
        ids = await self._projects.ids(project, cwd) if project is not None or cwd is not None else await self._project_here()
        if not ids:
            meant = str(project or cwd or Path.cwd().name)[:80]
            msg = f"nothing is recorded in the project {meant!r}: `recollect conversations` shows what is"
            raise NotFoundError(msg)
        return TraceScope(project_ids=ids, since=self._since(days, since), until=checked_time("until", until))

    async def _named(self, where: TraceScope, path: str) -> tuple[str, list[Project]]:
        """Return a path as it is kept, and the projects it may be of."""
        known = [one for one in await self.store.conversations.projects(self.workspace) if one.id in (where.project_ids or ())]
        name = _kept(checked_plain("path", path) or "", known)
        if not name:
            msg = f"path is one of 1 to {PATH_CHARS_MAX} characters, not {str(path)[:60]!r}"
            raise InputError(msg)
        return name, known

    async def _project_here(self) -> tuple[str, ...]:
        """Return the project of the current directory, or the only one there is."""
        known = await self.store.conversations.projects(self.workspace)
        root = place_of(str(Path.cwd())).root
        here = [one.id for one in known if one.root is not None and one.root == root]
        if here or len(known) <= 1:
            return tuple(here or [one.id for one in known])
        names = ", ".join(sorted(one.name for one in known)[:_NAMED_MAX]) + (", …" if len(known) > _NAMED_MAX else "")
        msg = f"the current directory is no project of this memory: say which one is meant, of {names}"
        raise InputError(msg)

    def _since(self, days: float | None, since: Any) -> Any:
        if days is None:
            return checked_time("since", since)
        if since is not None:
            msg = "give days or since, not both"
            raise InputError(msg)
        return self.clock.now() - timedelta(days=checked_number("days", days, _DAYS_MAX))


def _kept(path: str, projects: list[Project]) -> str:
    """Return a path as it is kept: relative to the root of its project, in whichever of its worktrees it lies."""
    places = [place_of_root(project.root) for project in projects if project.root is not None]
    located = [place.locate(path) for place in places or [Place()]]
    return next((one for one in located if not one.startswith("/")), located[0])


def _line_of(path: str, line: int, projects: list[Project]) -> str | None:
    """Return the text of a line of a file of a project whose directory is at hand; never of one outside it."""
    for root in (Path(project.root) for project in projects if project.root is not None):
        try:
            file = (root / path).resolve()
            if not file.is_relative_to(root.resolve()) or not file.is_file() or file.stat().st_size > _FILE_BYTES_MAX:
                continue
            lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
        except (OSError, ValueError):
            continue
        if 1 <= line <= len(lines):
            return lines[line - 1]
    return None
