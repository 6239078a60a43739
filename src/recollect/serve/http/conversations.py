"""Routes about conversations: listed, created, changed, read, exported, imported, branched, summarised, deleted."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from recollect.answers import to_json
from recollect.limits import COUNT_MAX
from recollect.serve.http.examples import raw_body
from recollect.serve.http.replies import PAGE_MAX, Remembering, cursor_at, page, page_back, read_body, reply, start_of, whole
from recollect.store.shapes import TurnRange

router = APIRouter(prefix="/conversations")
Limit = Annotated[int, Query(ge=1, le=PAGE_MAX, description="at most so many")]
Cursor = Annotated[str | None, Query(max_length=200, description="the `next_cursor` of the page before")]
OwnId = Annotated[str, Path(min_length=1, max_length=200, description="the conversation's id")]
Index = Annotated[int, Field(ge=0, le=COUNT_MAX)]
Status = Literal["active", "archived"]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class NewConversation(_Body):
    """A conversation to be created; the same `external_id` gives the same one."""

    model_config = ConfigDict(json_schema_extra={"example": {"project": "shop", "title": "Fix login", "tags": ["auth"]}})

    project: str | None = None
    cwd: str | None = None
    title: str | None = None
    tags: list[str] = []
    agent: str | None = None
    external_id: str | None = None


class Changes(_Body):
    """What to change; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"example": {"title": "Fix the login", "status": "archived"}})

    title: str | None = None
    tags: list[str] | None = None
    status: Status | None = None


class Fork(_Body):
    """Where to fork: after a turn, or after the turn that holds a message; without either after the last."""

    model_config = ConfigDict(json_schema_extra={"example": {"from_turn": 3, "title": "another way"}})

    from_turn: Index | None = None
    from_message: Index | None = None
    title: str | None = None


@router.get("")
async def listed(
    memory: Remembering,
    *,
    status: Status | None = None,
    tag: Annotated[list[str] | None, Query(description="any of these")] = None,
    project: str | None = None,
    agent: str | None = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List conversations, the latest change first."""
    start = start_of(cursor)
    found = await memory.list_conversations(
        status=status, tags=tag or (), project=project, agent=agent, limit=min(start + limit + 1, COUNT_MAX)
    )
    return reply(page(found, limit, start))


@router.post("", status_code=201)
async def create(memory: Remembering, body: NewConversation) -> Response:
    """Create a conversation."""
    made = await memory.create_conversation(
        body.cwd, project=body.project, title=body.title, tags=body.tags, agent=body.agent, external_id=body.external_id
    )
    return reply(made.info, 201)


@router.post("/import", status_code=201, openapi_extra=raw_body({"format": "recollect-conversation"}))
async def import_document(request: Request, memory: Remembering, *, replace: bool = False, new_id: bool = False) -> Response:
    """Import an exported conversation."""
    made = await memory.import_conversation(await read_body(request), replace=replace, new_id=new_id)
    return reply(made.info, 201)


@router.get("/{conversation_id}")
async def show(memory: Remembering, conversation_id: OwnId) -> Response:
    """Show a conversation."""
    return reply(await memory.get_info(conversation_id))


@router.patch("/{conversation_id}")
async def change(memory: Remembering, conversation_id: OwnId, body: Changes) -> Response:
    """Change a conversation's title, tags or status."""
    conversation = await memory.load_conversation(conversation_id)
    return reply(await conversation.change(title=body.title, tags=body.tags, status=body.status))


@router.delete("/{conversation_id}")
async def delete(memory: Remembering, conversation_id: OwnId, *, forget: bool = False) -> Response:
    """Delete a conversation; its branches keep what they inherited, unless it is to be forgotten."""
    if forget:
        return reply(await memory.forget(conversation=conversation_id))
    await (await memory.load_conversation(conversation_id)).delete()
    return reply({"conversations": 1})


@router.get("/{conversation_id}/turns")
async def turns(
    memory: Remembering,
    conversation_id: OwnId,
    *,
    first: Annotated[int, Query(ge=0, le=COUNT_MAX)] = 0,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> Response:
    """List whole turns, oldest first."""
    start = start_of(cursor) if cursor is not None else first
    found = await memory.store.turns.history(memory.workspace, conversation_id, TurnRange(first=min(start, COUNT_MAX), limit=limit + 1))
    following = cursor_at(found[limit].index) if len(found) > limit else None
    return reply({"items": to_json(found[:limit]), "next_cursor": following})


@router.get("/{conversation_id}/messages")
async def messages(
    memory: Remembering, conversation_id: OwnId, *, limit: Limit = 100, cursor: Cursor = None, reasoning: bool = False
) -> Response:
    """List the last messages, oldest first, with their tool calls; the next page has those before them."""
    start = start_of(cursor)
    conversation = await memory.load_conversation(conversation_id)
    found = await conversation.get_history(min(start + limit + 1, COUNT_MAX), include_reasoning=reasoning)
    return reply(page_back(found, limit, start))


@router.get("/{conversation_id}/tool-calls")
async def tool_calls(
    memory: Remembering,
    conversation_id: OwnId,
    *,
    tool_name: str | None = None,
    success: bool | None = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> Response:
    """List tool calls, newest first."""
    start = start_of(cursor)
    conversation = await memory.load_conversation(conversation_id)
    found = await conversation.get_tool_calls(tool_name, success=success, limit=min(start + limit + 1, COUNT_MAX))
    return reply(page(found, limit, start))


@router.get("/{conversation_id}/summaries")
async def summaries(memory: Remembering, conversation_id: OwnId, *, level: Annotated[int | None, Query(ge=1, le=100)] = None) -> Response:
    """List summaries."""
    found = await (await memory.load_conversation(conversation_id)).summaries(level)
    return whole(found)


@router.get("/{conversation_id}/insights")
async def insights(memory: Remembering, conversation_id: OwnId, *, limit: Limit = 50) -> Response:
    """List what was learned in it, newest first."""
    return whole(await memory.insights(conversation=conversation_id, limit=limit))


@router.get("/{conversation_id}/files")
async def files(memory: Remembering, conversation_id: OwnId) -> Response:
    """List the files its tools touched, each with its latest access."""
    found = await (await memory.load_conversation(conversation_id)).accessed_files(COUNT_MAX)
    return whole(found)


@router.get("/{conversation_id}/export")
async def export(memory: Remembering, conversation_id: OwnId, *, format: Literal["json", "markdown"] = "json") -> Response:  # noqa: A002  the public name
    """Export a conversation as JSON that imports back, or as Markdown for reading."""
    document = await (await memory.load_conversation(conversation_id)).export(format)
    return Response(document, media_type="application/json" if format == "json" else "text/markdown")


@router.post("/{conversation_id}/branch", status_code=201)
async def branch(memory: Remembering, conversation_id: OwnId, body: Fork) -> Response:
    """Fork a conversation."""
    conversation = await memory.load_conversation(conversation_id)
    made: Any = await conversation.branch(from_message=body.from_message, from_turn=body.from_turn, title=body.title)
    return reply(made.info, 201)


@router.post("/{conversation_id}/summarize")
async def summarize(memory: Remembering, conversation_id: OwnId) -> Response:
    """Summarise what is due in a conversation."""
    found = await (await memory.load_conversation(conversation_id)).summarize()
    return whole(found)
