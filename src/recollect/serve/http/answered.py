"""What each route answers, with examples: the table from which the OpenAPI document is made; loaded only when it is asked for."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple

import msgspec
from msgspec import UNSET, UnsetType

from recollect.answers import AccessedFile, HistoryMessage, Hit, Recorded, SearchResult, SimilarConversation, Stats, Verification, to_json
from recollect.compose.context import Context, Item, Section
from recollect.model import CodeChange, ContextFile, ConversationInfo, Insight, Json, Message, Project, Summary, ToolCall, Turn
from recollect.record.requests import PIECES
from recollect.trace.answers import CheckpointEntry, ContextUsage, FileUsage, Flow, Reason, SourceUsage, ToolReliability, Why

JSON = "application/json"


class Answer(NamedTuple):
    """What a status says, the types one of which it carries (no type: any JSON object, or text), an example, and as what it is sent."""

    says: str
    types: tuple[object, ...] = ()
    example: Json = None
    media: tuple[str, ...] = (JSON,)


class Health(msgspec.Struct, frozen=True):
    """That the server lives."""

    status: Literal["ok"]
    version: str


class Ready(msgspec.Struct, frozen=True):
    """That the store can be used."""

    status: Literal["ready"]


class BatchLine(msgspec.Struct, frozen=True):
    """What became of one JSON line: as of a request sent alone, or the status it would have had, and `error`, which says why."""

    line: int
    status: int | Literal["created", "unchanged", "replaced", "branched", "pending", "skipped"]
    error: str | UnsetType = UNSET
    conversation_id: str | UnsetType = UNSET
    request_id: str | UnsetType | None = UNSET
    turn_ids: list[str] | UnsetType = UNSET
    notes: dict[str, int] | UnsetType = UNSET


class Batch(msgspec.Struct, frozen=True):
    """What became of JSON lines, in their order; lines that are empty are not counted."""

    recorded: int
    bad: int
    results: list[BatchLine]


class RemovedRequest(msgspec.Struct, frozen=True):
    """A request that was removed, and how many turns it had."""

    request_id: str
    turns: int


class RemovedConversations(msgspec.Struct, frozen=True):
    """How much was removed; turns are counted where it was forgotten."""

    conversations: int
    turns: int | UnsetType = UNSET


class RequestContext(msgspec.Struct, frozen=True):
    """The context a request had, the most useful first."""

    request_id: str
    context_files: list[ContextFile]


def _page(of: Any) -> Any:
    """Return the type of a page of a list."""
    return msgspec.defstruct(f"{of.__name__}Page", [("items", list[of]), ("next_cursor", str | None)], frozen=True)


def _told(of: Any, name: str, fields: list[tuple[str, Any]]) -> Any:
    """Return a type as it is told on its own: with what it works out from its fields."""
    return msgspec.defstruct(name, fields, bases=(of,), namespace={"__doc__": of.__doc__}, frozen=True, kw_only=True)


_TURN = _told(Turn, "ToldTurn", [("user", str), ("assistant", str)])
_CONTEXT = _told(Context, "RenderedContext", [("items", tuple[Item, ...]), ("rendered", str)])
_REQUEST = msgspec.defstruct(
    "ShownRequest",
    [("request_id", str), ("conversation_id", str), ("status", Literal["open", "complete", "failed"]), ("turns", list[_TURN])],
)

_THEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
_CONVERSATION_ID, _TURN_ID = "2e809867-e7f6-896b-843a-5d613c757560", "50039a9c-e01f-8aba-83a1-5d75043caff3"
_RECORDED = Recorded(conversation_id=_CONVERSATION_ID, status="created", request_id="req_1", turn_ids=(_TURN_ID,))
_BATCH: Json = {
    "recorded": 1,
    "bad": 1,
    "results": [
        {"line": 1, **to_json(_RECORDED)},
        {"line": 2, "status": 422, "error": "the document is not JSON: Expecting value: line 1 column 1 (char 0)"},
    ],
}
_INFO = ConversationInfo(
    id=_CONVERSATION_ID, title="Fix login", tags=("auth",), project_id="a58279ce-8da3-8c3d-881a-b3dfd4b5bdb3", project="shop",
    created_at=_THEN, updated_at=_THEN, turn_count=1, message_count=2, last_message="I added a null check",
)  # fmt: skip
_HIT = Hit(
    kind="turn", id=_TURN_ID, conversation_id=_CONVERSATION_ID, project="shop", turn_index=0, question="Fix the login bug",
    answer="I added a null check", passage="Fix the login bug", score=0.89, confidence=0.41, timestamp=_THEN, age_seconds=3_600,
    explanation={"terms": 0.26, "recency": 0.04},
)  # fmt: skip
_FOUND = SearchResult(hits=(_HIT,), retrievers={"terms": "ran", "meaning": "ran"}, searched_turns=1, elapsed_ms=4.1)
_TURN_SAYS = Turn(
    id=_TURN_ID, conversation_id=_CONVERSATION_ID, request_id="req_1", started_at=_THEN, ended_at=_THEN,
    messages=(Message(role="user", content="Fix the login bug"), Message(role="assistant", content="I added a null check", sequence=1)),
)  # fmt: skip
_ITEM = Item(
    kind="turn", id=_TURN_ID, text="> you: Fix the login bug\n> agent: I added a null check", conversation_id=_CONVERSATION_ID,
    first_turn=0, last_turn=0, score=0.92, reason="relevant: terms",
)  # fmt: skip
_SECTION = Section(name="relevant", budget_chars=1_788, char_count=133, items=(_ITEM,))
_COMPOSED = Context(sections=(_SECTION,), budget_chars=2_000, char_count=345, token_estimate=152, retrievers={"terms": "ran"})
_RENDERED: Json = {**to_json(_COMPOSED), "rendered": f"<recollect-5f0c>\n## relevant\n{_ITEM.text}\n</recollect-5f0c>\n"}
_CHANGE = CodeChange(
    id="d270d116-b7fd-8a21-8bc6-68e83af04623", file_path="src/auth.py", line_start=30, line_end=34, lines_added=3, tool_call_id="t1"
)
_FILE = ContextFile(file_path="src/auth.py", line_start=1, line_end=80, usefulness=0.92, source="vecdb")
_CALL = ToolCall(id="e154d753-e2fd-89c8-8c6e-32e8ea644e33", tool_call_id="t1", tool_name="update_textdoc", status="success", duration_ms=41)
_REASON = Reason(change=_CHANGE, tool_call=_CALL, turn=_TURN_SAYS, request_id="req_1", asked="Fix the login bug", context_files=(_FILE,))
_USED = FileUsage(path="src/auth.py", count=47, average_usefulness=0.89, sources=("vecdb", "ast"), last_used_at=_THEN)
_USAGE = ContextUsage(most_used=(_USED,), sources=(SourceUsage(source="vecdb", count=30, files=12, average_usefulness=0.81),))
_WHY = Why(path="src/auth.py", changes=(_REASON,))
_PROJECT = Project(id=_INFO.project_id, name="shop", external_id="shop")
_TOOL = ToolReliability(tool_name="cat", calls=25, failures=3, failure_rate=0.12, p50_ms=12, p95_ms=80)


def _listed(*items: object) -> Json:
    return {"items": to_json(items), "next_cursor": None}


_ADDED = {200: Answer("it is on disk", (Recorded,), to_json(msgspec.structs.replace(_RECORDED, status="replaced")))}
_MADE = {201: Answer("it is there now", (ConversationInfo,), to_json(_INFO))}
_SHOWN = {200: Answer("the conversation", (ConversationInfo,), to_json(_INFO))}
_SUMMARIES = {200: Answer("its summaries", (_page(Summary),))}

ANSWERS: dict[str, dict[int, Answer]] = {
    "POST /ingest/conversation": {
        200: Answer("it was there before (`unchanged`), or is not recorded; of JSON lines: every one was taken", (Recorded, Batch),
                    to_json(msgspec.structs.replace(_RECORDED, status="unchanged"))),
        201: Answer("it is on disk", (Recorded,), to_json(_RECORDED)),
        207: Answer("of JSON lines: some were refused, and the others are on disk", (Batch,), _BATCH),
    },
    "POST /requests/{request_id}/start": {
        200: Answer("it was begun before", (Recorded,), to_json(msgspec.structs.replace(_RECORDED, status="unchanged"))),
        201: Answer("it is there, and open", (Recorded,), to_json(_RECORDED)),
    },
    **{f"POST /requests/{{request_id}}/{piece}": _ADDED for piece in (*PIECES, "finalize")},
    "DELETE /requests/{request_id}": {200: Answer("it is gone", (RemovedRequest,), {"request_id": "req_1", "turns": 1})},
    "GET /requests/{request_id}": {
        200: Answer("the request", (_REQUEST,), {"request_id": "req_1", "conversation_id": _CONVERSATION_ID, "status": "complete",
                                                 "turns": to_json([_TURN_SAYS])}),
    },
    "GET /requests/{request_id}/flow": {200: Answer("its steps", (Flow,))},
    "GET /requests/{request_id}/context": {
        200: Answer("its context", (RequestContext,), {"request_id": "req_1", "context_files": to_json([_FILE])}),
    },
    "GET /conversations": {200: Answer("a page of them", (_page(ConversationInfo),), _listed(_INFO))},
    "POST /conversations": _MADE,
    "POST /conversations/import": _MADE,
    "GET /conversations/{conversation_id}": _SHOWN,
    "PATCH /conversations/{conversation_id}": _SHOWN,
    "DELETE /conversations/{conversation_id}": {200: Answer("it is gone", (RemovedConversations,), {"conversations": 1})},
    "GET /conversations/{conversation_id}/turns": {200: Answer("a page of them", (_page(_TURN),), _listed(_TURN_SAYS))},
    "GET /conversations/{conversation_id}/messages": {200: Answer("a page of them", (_page(HistoryMessage),))},
    "GET /conversations/{conversation_id}/tool-calls": {200: Answer("a page of them", (_page(ToolCall),), _listed(_CALL))},
    "GET /conversations/{conversation_id}/summaries": _SUMMARIES,
    "GET /conversations/{conversation_id}/insights": {200: Answer("what was learned", (_page(Insight),))},
    "GET /conversations/{conversation_id}/files": {200: Answer("the files", (_page(AccessedFile),))},
    "GET /conversations/{conversation_id}/export": {
        200: Answer("the document, in the format that was asked for", media=(JSON, "text/markdown")),
    },
    "POST /conversations/{conversation_id}/branch": _MADE,
    "POST /conversations/{conversation_id}/summarize": _SUMMARIES,
    "POST /search": {200: Answer("hits, best first", (SearchResult,), to_json(_FOUND))},
    "POST /context": {200: Answer("the context", (_CONTEXT,), _RENDERED)},
    "POST /similar": {
        200: Answer("conversations, the closest first", (_page(SimilarConversation),),
                    _listed(SimilarConversation(conversation=_INFO, score=0.89, hit=_HIT))),
    },
    "GET /projects": {200: Answer("the projects", (_page(Project),), _listed(_PROJECT))},
    "GET /projects/{project_id}/files/usage": {
        200: Answer("how the file served; without a path which files and sources serve", (FileUsage, ContextUsage), to_json(_USAGE)),
    },
    "GET /projects/{project_id}/tools": {200: Answer("how reliable tools are", (_page(ToolReliability),), _listed(_TOOL))},
    "GET /projects/{project_id}/checkpoints": {200: Answer("the timeline", (_page(CheckpointEntry),))},
    "GET /projects/{project_id}/why": {200: Answer("the changes, newest first", (Why,), to_json(_WHY))},
    "POST /verify": {200: Answer("the verdict", (Verification,), to_json(Verification(status="matches", id=_TURN_ID, checked=1)))},
    "GET /health": {200: Answer("it lives", (Health,), {"status": "ok", "version": "0.1.0"})},
    "GET /ready": {200: Answer("the store can be used", (Ready,), {"status": "ready"})},
    "GET /stats": {200: Answer("how much there is", (Stats,), to_json(Stats(workspace="default", store="sqlite:///…/memory.db", turns=1)))},
    "GET /metrics": {200: Answer("figures for Prometheus", media=("text/plain",))},
}  # fmt: skip
