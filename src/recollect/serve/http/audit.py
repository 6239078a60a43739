"""Routes of the audit: projects, how files and tools serve, checkpoints, why, verification."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, ConfigDict

from recollect.limits import COUNT_MAX, PATH_CHARS_MAX
from recollect.serve.http.replies import Remembering, reply, whole

router = APIRouter()
ProjectId = Annotated[str, Path(min_length=1, max_length=PATH_CHARS_MAX, description="the id its sender gave it, its own id, or its name")]
Days = Annotated[float | None, Query(ge=0, le=100_000, description="only the last so many days")]
Moment = Annotated[str | None, Query(max_length=64, description="a day or time, ISO 8601")]
Count = Annotated[int, Query(ge=1, le=1_000)]


class Content(BaseModel):
    """A content, and the id of what it should be."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"id": "3c40afa4-…", "content": "Fix the login bug"}})

    id: str
    content: str


@router.get("/projects")
async def projects(memory: Remembering) -> Response:
    """List the projects of the workspace."""
    return whole(await memory.projects())


@router.get("/projects/{project_id:path}/files/usage")
async def usage(
    memory: Remembering,
    project_id: ProjectId,
    *,
    path: Annotated[str | None, Query(max_length=PATH_CHARS_MAX)] = None,
    days: Days = None,
    since: Moment = None,
    until: Moment = None,
    limit: Count = 10,
) -> Response:
    """Tell how a file served as context; without a path which files do most, and which sources serve best."""
    if path is not None:
        return reply(await memory.file_usage(path, project=project_id, days=days, since=since, until=until))
    return reply(await memory.context_usage(project=project_id, days=days, since=since, until=until, limit=limit))


@router.get("/projects/{project_id:path}/tools")
async def tools(
    memory: Remembering, project_id: ProjectId, *, tool: str | None = None, days: Days = None, since: Moment = None, until: Moment = None
) -> Response:
    """Tell how reliable tools are."""
    found = await memory.tool_reliability(tool, project=project_id, days=days, since=since, until=until)
    return whole(found)


@router.get("/projects/{project_id:path}/checkpoints")
async def checkpoints(
    memory: Remembering,
    project_id: ProjectId,
    *,
    conversation: str | None = None,
    days: Days = None,
    since: Moment = None,
    until: Moment = None,
) -> Response:
    """Show the timeline of checkpoints, with what changed between them."""
    found = await memory.checkpoints(conversation, project=project_id, days=days, since=since, until=until)
    return whole(found)


@router.get("/projects/{project_id:path}/why")
async def why(
    memory: Remembering,
    project_id: ProjectId,
    *,
    path: Annotated[str, Query(min_length=1, max_length=PATH_CHARS_MAX)],
    line: Annotated[int | None, Query(ge=1, le=COUNT_MAX)] = None,
    text: Annotated[str | None, Query(max_length=PATH_CHARS_MAX, description="what the line says")] = None,
    days: Days = None,
    since: Moment = None,
    until: Moment = None,
    limit: Count = 10,
) -> Response:
    """Tell why a file, or a line of it, is as it is; found by `text` or by its number: no file of the server is read."""
    return reply(await memory.why(path, line, line_text=text or "", project=project_id, days=days, since=since, until=until, limit=limit))


@router.post("/verify")
async def verify(memory: Remembering, body: Content) -> Response:
    """Compare a content with the hash of what was recorded."""
    return reply(await memory.verify(body.id, body.content))
