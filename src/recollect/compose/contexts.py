"""A context for a prompt: what is asked, how much of what, waiting for what is under way, and what to do without a memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.capture.shapes import read_message
from recollect.checks import checked_count, checked_number, checked_text
from recollect.compose.composing import composed, fitted
from recollect.compose.context import Context, Item, LeftOut, Section, Strategy
from recollect.compose.fallback import history_fallback
from recollect.compose.gathering import CodeAccess, Gatherer
from recollect.compose.material import Plan
from recollect.compose.rendering import around_chars, heading, sized
from recollect.compose.wording import worded
from recollect.errors import InputError, StoreError
from recollect.opening import off_the_loop
from recollect.policies import policy_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from recollect.answers import ScopeHit, SearchResult
    from recollect.clock import Clock
    from recollect.model import ConversationInfo
    from recollect.recall.recalling import Recall
    from recollect.settings import Settings
    from recollect.store import Store
    from recollect.store.shapes import Elsewhere, SearchScope

STRATEGIES: dict[Strategy, tuple[str, ...]] = {
    "hybrid": ("goal", "constraints", "queries", "recent", "files", "code", "summaries"),
    "recent": ("goal", "constraints", "queries", "recent", "files", "summaries"),
    "relevant": ("goal", "constraints", "files", "code", "summaries"),
}
_LOOK_SECONDS = 0.05
_SCOPES_MAX = 8
_BUDGET_CHARS_MAX = 10_000_000
_WAIT_SECONDS_MAX = 60.0


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """How a context is wanted; None stands for what the settings say."""

    strategy: Strategy = "hybrid"
    budget_chars: int | None = None
    budget_tokens: int | None = None
    recent_messages: int | None = None
    relevant_messages: int | None = None
    include_summary: bool = True
    semantic: bool = True
    other_conversations: bool = True
    wait_seconds: float | None = None
    messages: Sequence[Any] | None = None
    before_turn: int | None = None


class Contexts:
    """Composes contexts of one workspace."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, recall: Recall, clean: Callable[[str], str]) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._recall = recall
        self._clean = clean

    async def of_conversation(self, found: Callable[[], Awaitable[ConversationInfo]], prompt: str | None, wanted: Wanted) -> Context:
        """Compose from one conversation and, unless that is switched off, the rest of its project."""
        plan, seconds = self._plan(wanted), self._wait_seconds(wanted)

        async def made() -> Context:
            info = await found()
            await self._settled(info.id, seconds)
            material = await self._gatherer(plan, wanted).of_conversation(info, prompt, elsewhere=wanted.other_conversations)
            return composed(material if wanted.before_turn is None else material.before(wanted.before_turn), plan)

        return await _or_history(made, plan, wanted)

    async def of_scope(self, found: Callable[[], Awaitable[tuple[str, ...] | None]], prompt: str, wanted: Wanted) -> Context:
        """Compose from some projects, or from everything."""
        plan = self._plan(wanted)
        checked_text("prompt", prompt)
        self._wait_seconds(wanted)  # nothing is waited for here, and what is no number of seconds is refused all the same

        async def made() -> Context:
            return composed(await self._gatherer(plan, wanted).of_scope(await found(), prompt), plan)

        return await _or_history(made, plan, wanted)

    def _wait_seconds(self, wanted: Wanted) -> float:
        if wanted.wait_seconds is None:
            return self._settings.compose.wait_seconds
        return checked_number("wait_seconds", wanted.wait_seconds, _WAIT_SECONDS_MAX)

    def _gatherer(self, plan: Plan, wanted: Wanted) -> Gatherer:
        async def search(query: str, scope: SearchScope, elsewhere: Elsewhere | None, limit: int) -> SearchResult:
            return await self._recall.search(query, scope, limit=limit, semantic=wanted.semantic, elsewhere=elsewhere)

        async def find_code(query: str, project_ids: tuple[str, ...] | None) -> list[ScopeHit]:
            return await self._recall.scopes(query, project_ids, limit=_SCOPES_MAX, semantic=wanted.semantic)

        code = CodeAccess(find_code, self._kept_root, self._clean)
        return Gatherer(self._store, self._settings.workspace, search, code, plan, self._clock.now())

    async def _kept_root(self, project_id: str) -> tuple[bool, str | None]:
        """Tell whether code of a project may be shown, and where its text is, if that may be, too."""
        workspace = self._settings.workspace
        root = await self._store.code.root(workspace, project_id)
        known = next((one for one in await self._store.conversations.projects(workspace) if one.id == project_id), None)
        if known is None or not self._settings.projects:
            return True, root
        policy = policy_of(self._settings, known, root)
        return not policy.excludes, None if policy.withholds else root

    def _plan(self, wanted: Wanted) -> Plan:
        if str(wanted.strategy) not in STRATEGIES:
            msg = f"a strategy is {', '.join(STRATEGIES)}, not {str(wanted.strategy)[:60]!r}"
            raise InputError(msg)
        compose = self._settings.compose
        names = [name for name in STRATEGIES[wanted.strategy] if wanted.include_summary or name != "summaries"]
        shares = {name: float(getattr(compose, name)) for name in names}
        rest = "recent" if wanted.strategy == "recent" else "relevant"
        shares[rest] = round(1 - sum(share for name, share in shares.items() if name != rest), 6)
        budget = (
            compose.budget_chars if wanted.budget_chars is None else checked_count("budget_chars", wanted.budget_chars, _BUDGET_CHARS_MAX)
        )
        if wanted.budget_tokens is not None:
            checked_count("budget_tokens", wanted.budget_tokens, _BUDGET_CHARS_MAX)
        recent = compose.recent_messages if wanted.recent_messages is None else wanted.recent_messages
        relevant = compose.relevant_messages if wanted.relevant_messages is None else wanted.relevant_messages
        return Plan(
            budget_chars=budget,
            budget_tokens=wanted.budget_tokens,
            shares=shares,
            recent_messages=checked_count("recent_messages", recent),
            relevant_messages=checked_count("relevant_messages", relevant, 500),
        )

    async def _settled(self, conversation_id: str, seconds: float) -> None:
        """Wait until nothing of a conversation is to be distilled by and by, and never longer than asked."""
        end = time.monotonic() + seconds
        while seconds > 0 and time.monotonic() < end:
            waiting = [job for job in await self._store.jobs.listed(self._settings.workspace) if job.conversation_id == conversation_id]
            now = self._clock.now()
            if all(job.state == "parked" or (job.state == "ready" and job.attempts and job.due_at > now) for job in waiting):
                return
            await _sleep(min(_LOOK_SECONDS, max(end - time.monotonic(), 0.0)))


async def _sleep(seconds: float) -> None:
    """Wait without blocking an event loop, if there is one."""
    await off_the_loop(partial(time.sleep, seconds))


async def _or_history(made: Callable[[], Awaitable[Context]], plan: Plan, wanted: Wanted) -> Context:
    """Return the context, or the messages at hand where the memory cannot be reached or has nothing."""
    if wanted.messages is None:
        return await made()
    if isinstance(wanted.messages, str | dict):
        msg = f"messages is a list of messages, not {type(wanted.messages).__name__}"
        raise InputError(msg)
    messages = list(wanted.messages)
    try:
        context = await made()
    except StoreError as error:
        retrievers = {"terms": f"not run: {error}", "meaning": "not run: as terms"}
    else:
        if context.items:
            return context
        retrievers = context.retrievers
    return fitted(lambda budget_chars: _history(messages, plan, budget_chars, retrievers), plan)


def _history(messages: Sequence[Any], plan: Plan, budget_chars: int, retrievers: dict[str, str]) -> Context:
    """Return messages as a context: when there is not room for all, the last of them."""
    room = budget_chars - around_chars() - len(heading("history"))
    items: list[Item] = []
    left: list[LeftOut] = []
    for n, message in reversed(list(enumerate(history_fallback(messages)))):
        role, text = _said(message)
        made = None if left else worded(f"### {role}", text, room - 1)
        if made is None:
            left.append(LeftOut(kind="message", id=str(n), section="history", reason="no room is left in the budget"))
            continue
        items.insert(0, Item(kind="message", id=str(n), text=made[0], reason="there is no memory to ask", is_cut=made[1]))
        room -= items[0].char_count
    taken = len(heading("history")) + sum(item.char_count for item in items) if items else 0
    section = Section(name="history", budget_chars=max(plan.budget_chars, taken), items=tuple(items), char_count=taken)
    return sized(
        Context(
            sections=(section,),
            budget_chars=plan.budget_chars,
            budget_tokens=plan.budget_tokens,
            left_out=tuple(left),
            retrievers=retrievers,
        )
    )


def _said(message: object) -> tuple[str, str]:
    """Return who says what in a message of any shape that agents use."""
    if not isinstance(message, dict):
        return str(getattr(message, "role", "message")), str(getattr(message, "content", message))
    raw = read_message(cast("dict[str, Any]", message), Counter())
    if raw is None:
        return "message", str(cast("object", message))
    called = ", ".join(call.name or "a tool" for call in raw.calls)
    parts = [
        raw.text or "",
        f"[calls {called}]" if called else "",
        *[one.content if isinstance(one.content, str) else "" for one in raw.results],
    ]
    return raw.role, "\n".join(part for part in parts if part)
