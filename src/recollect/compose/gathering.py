"""Reads from the store what a context may be made of; what is relevant is recall's to say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from recollect.compose.material import CodePiece, Material
from recollect.store.shapes import ConversationFilter, Elsewhere, Question, SearchScope, TurnRange

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from recollect.answers import ScopeHit, SearchResult
    from recollect.compose.material import Plan
    from recollect.model import ConversationInfo
    from recollect.store import Store

    Searching = Callable[[str, SearchScope, Elsewhere | None, int], Awaitable[SearchResult]]

_QUESTIONS_MAX = 2_000
_RECENT_TURNS_MAX = 12
_SESSIONS_MAX = 5
_SPARE_HITS = 5  # so many more than may be shown, so that the explanation can say what was left out
_CODE_SCORE_MIN = 0.3


class CodeAccess(NamedTuple):
    """How code is reached: symbols by a question, whether and where a project's may be shown, and what no text may keep."""

    find: Callable[[str, tuple[str, ...] | None], Awaitable[list[ScopeHit]]]
    root_of: Callable[[str], Awaitable[tuple[bool, str | None]]]
    clean: Callable[[str], str]


class Gatherer:
    """Reads for one context."""

    def __init__(
        self,
        store: Store,
        workspace: str,
        search: Searching,
        code: CodeAccess,
        plan: Plan,
        now: datetime,
    ) -> None:
        self._store = store
        self._workspace = workspace
        self._search = search
        self._reach = code
        self._plan = plan
        self._now = now

    async def of_conversation(self, info: ConversationInfo, prompt: str | None, *, elsewhere: bool) -> Material:
        """Read one conversation, and what is relevant in it and, if asked for, in the rest of its project."""
        shares, turns = self._plan.shares, self._store.turns
        questions = await turns.questions(self._workspace, info.id, _QUESTIONS_MAX)
        recent = (
            await turns.history(self._workspace, info.id, TurnRange(limit=_RECENT_TURNS_MAX, newest=True)) if "recent" in shares else []
        )
        files = await turns.accesses(self._workspace, info.id) if "files" in shares else []
        summaries = await self._store.derived.shown_summaries(self._workspace, info.id) if "summaries" in shares else []
        asked = prompt or (questions[0].text if questions else "")
        found = await self._found(asked, SearchScope(conversation_id=info.id), await self._elsewhere(info) if elsewhere else None)
        return Material(
            now=self._now,
            info=info,
            goal=await self._goal(info.id, questions),
            questions=tuple(questions),
            recent=tuple(recent),
            files=tuple(files),
            summaries=tuple(summaries),
            code=tuple(await self._code(asked, (info.project_id,))),
            hits=() if found is None else found.hits,
            retrievers={} if found is None else found.retrievers,
        )

    async def of_scope(self, project_ids: tuple[str, ...] | None, prompt: str) -> Material:
        """Read what is relevant in some projects or everywhere, and how their latest conversations ended."""
        found = await self._found(prompt, SearchScope(project_ids=project_ids))
        sessions: list[ConversationInfo] = []
        if "summaries" in self._plan.shares:
            sessions = await self._store.conversations.find(self._workspace, ConversationFilter(project_ids=project_ids), _SESSIONS_MAX)
        return Material(
            now=self._now,
            sessions=tuple(sessions),
            code=tuple(await self._code(prompt, project_ids)),
            hits=() if found is None else found.hits,
            retrievers={} if found is None else found.retrievers,
        )

    async def _found(self, prompt: str, scope: SearchScope, elsewhere: Elsewhere | None = None) -> SearchResult | None:
        if "relevant" not in self._plan.shares or not self._plan.relevant_messages or not prompt.strip():
            return None
        return await self._search(prompt, scope, elsewhere, self._plan.relevant_messages + _SPARE_HITS)

    async def _elsewhere(self, info: ConversationInfo) -> Elsewhere | None:
        """Return the rest of a conversation's project."""
        if not info.project_id:
            return None
        family = await self._store.conversations.family(self._workspace, info.id)
        return Elsewhere(SearchScope(project_ids=(info.project_id,)), frozenset(family))

    async def _goal(self, conversation_id: str, questions: list[Question]) -> Question | None:
        """Return the first thing a user said, also where there are more than were read."""
        if len(questions) < _QUESTIONS_MAX:
            return questions[-1] if questions else None
        for turn in await self._store.turns.history(self._workspace, conversation_id, TurnRange(limit=1)):
            for message in turn.messages:
                if message.role == "user":
                    return Question(
                        conversation_id=turn.conversation_id, turn_index=turn.index, message_id=message.id, text=message.text,
                        at=message.timestamp,
                    )  # fmt: skip
        return None

    async def _code(self, prompt: str, project_ids: tuple[str, ...] | None) -> list[CodePiece]:
        """Return the symbols of the code that a question may be about, each as its file has it now."""
        if "code" not in self._plan.shares or not prompt.strip():
            return []
        hits = await self._reach.find(prompt, project_ids)
        roots = {one: await self._reach.root_of(one) for one in dict.fromkeys(hit.scope.project_id for hit in hits)}
        return [self._piece(hit, roots[hit.scope.project_id][1]) for hit in hits if roots[hit.scope.project_id][0]]

    def _piece(self, hit: ScopeHit, root: str | None) -> CodePiece:
        scope = hit.scope
        is_far = hit.score < _CODE_SCORE_MIN
        bare = CodePiece(scope=scope, score=hit.score, line_start=scope.line_start, line_end=scope.line_end, is_far=is_far)
        if is_far or root is None or not Path(root).is_dir():
            return bare
        from recollect.code.bodies import body_of  # noqa: PLC0415  only where code was indexed

        body = body_of(Path(root), scope)
        if body is None:
            return msgspec.structs.replace(bare, is_gone=True)
        return CodePiece(
            scope=scope, score=hit.score, text=self._reach.clean(body.text), line_start=body.line_start, line_end=body.line_end,
            file_lines=body.file_lines,
        )  # fmt: skip
