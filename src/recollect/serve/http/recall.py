"""Routes that ask memory something in words: search, context, similar conversations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from recollect.answers import to_json
from recollect.limits import SEARCH_LIMIT_MAX
from recollect.serve.http.replies import Remembering, reply, whole

router = APIRouter()
_Share = Annotated[float, Field(ge=0, le=1)]
_BUDGET_MAX = 10_000_000


class _Where(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: str | None = None
    cwd: str | None = None


class Search(_Where):
    """What to look for, and where."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"query": "why does login crash", "project": "shop"}})

    query: str
    conversation: str | None = None
    agent: str | None = None
    tags: list[str] = []
    since: str | None = None
    until: str | None = None
    tool: str | None = None
    file: str | None = None
    levels: list[Annotated[int, Field(ge=0, le=100)]] | None = None
    limit: Annotated[int, Field(ge=0, le=SEARCH_LIMIT_MAX)] = 10
    semantic: bool = True
    minimum_score: _Share = 0.0


class Prompt(_Where):
    """What the agent is about to be asked, and how much it may be told."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"prompt": "Did we fix that bug?", "budget_chars": 20_000}})

    prompt: str
    conversation: str | None = None
    budget_chars: Annotated[int, Field(ge=0, le=_BUDGET_MAX)] | None = None
    budget_tokens: Annotated[int, Field(ge=0, le=_BUDGET_MAX)] | None = None
    strategy: Literal["hybrid", "recent", "relevant"] = "hybrid"
    recent_messages: Annotated[int, Field(ge=0, le=10_000)] | None = None
    relevant_messages: Annotated[int, Field(ge=0, le=500)] | None = None
    include_summary: bool = True
    semantic: bool = True
    other_conversations: bool = True
    wait_seconds: Annotated[float, Field(ge=0, le=60)] | None = None
    messages: list[dict[str, Any]] | None = None


class Similar(_Where):
    """A text to compare with."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"query": "expired tokens", "limit": 5}})

    query: str
    limit: Annotated[int, Field(ge=0, le=SEARCH_LIMIT_MAX)] = 5
    semantic: bool = True


@router.post("/search")
async def search(memory: Remembering, body: Search) -> Response:
    """Find turns and summaries, best first."""
    return reply(await memory.search(**body.model_dump()))


@router.post("/context")
async def context(memory: Remembering, body: Prompt) -> Response:
    """Compose what an agent should know before it is asked something; `rendered` is ready to be put before the prompt."""
    asked = body.model_dump()
    asked["messages"] = None if body.messages is None else memory.recorder.reading().cleaner.payload(body.messages)
    composed = await memory.context(**asked)
    return reply({**to_json(composed), "rendered": composed.render()})


@router.post("/similar")
async def similar(memory: Remembering, body: Similar) -> Response:
    """Find conversations that come close to a text."""
    asked = body.model_dump()
    found = await memory.find_similar_conversations(asked.pop("query"), asked.pop("limit"), **asked)
    return whole(found)
