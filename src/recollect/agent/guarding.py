"""What keeps an agent's tools and model in bounds: rounds, times, failures and repetitions; a capability of pydantic-ai."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from pydantic_ai import ToolReturn
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import (
    ApprovalRequired,
    CallDeferred,
    ModelRetry,
    SkipToolExecution,
    ToolFailed,
    ToolFailedError,
    ToolRetryError,
)
from pydantic_ai.messages import ToolCallPart, tool_return_ta

from recollect.agent.settings import AgentConfig
from recollect.errors import ModelError, RecollectError
from recollect.models.plain import plain_text
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from pydantic_ai import RunContext
    from pydantic_ai.capabilities.abstract import WrapModelRequestHandler, WrapToolExecuteHandler
    from pydantic_ai.messages import ModelResponse
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.tools import ToolDefinition

_DEFAULTS = AgentConfig()
_ERROR_CHARS_MAX = 1_000
_SAME_MAX = 2  # so often in a message may a tool that can change something be called alike and bring back the same
_SIGNALS = (ApprovalRequired, CallDeferred, SkipToolExecution)
LAST_ROUND = "You have used all rounds of tools for this message: answer now, with what you know."


@dataclass
class Guarded(AbstractCapability[Any]):
    """Holds tools to a number of rounds and a time, tells the model of failures, and runs nothing over and over.

    `reading` names the tools that change nothing: called alike again before another tool may have changed something, they
    are answered from before.
    """

    config: AgentConfig = _DEFAULTS
    reading: frozenset[str] = frozenset()
    _done: _Done | None = field(default=None, repr=False)

    async def for_run(self, ctx: RunContext[Any]) -> Guarded:
        """Begin each run with nothing done."""
        return replace(self, _done=_Done(self.reading))

    def get_instructions(self) -> Any:
        """Say when it is time to answer."""
        return self._last_words

    def _last_words(self, ctx: RunContext[Any]) -> str | None:
        return LAST_ROUND if self._is_over(ctx) else None

    def _is_over(self, ctx: RunContext[Any]) -> bool:
        return ctx.run_step > self.config.tool_rounds_max

    async def prepare_tools(self, ctx: RunContext[Any], tool_defs: list[ToolDefinition]) -> list[ToolDefinition]:
        """Offer no tool any more once the rounds are used up."""
        return [] if self._is_over(ctx) else tool_defs

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        """Wait for a model only so long."""
        try:
            async with asyncio.timeout(self.config.model_seconds_max):
                response = await handler(request_context)
        except TimeoutError as error:
            msg = f"the model {request_context.model.model_name!r} took longer than {self.config.model_seconds_max:g} s to answer"
            raise ModelError(msg) from error
        if ctx.run_step > self.config.tool_rounds_max + 1 and any(isinstance(part, ToolCallPart) for part in response.parts):
            msg = (
                f"the model {request_context.model.model_name!r} did not answer: it went on asking for tools after all "
                f"{self.config.tool_rounds_max} rounds of a message (tool_rounds_max)"
            )
            raise ModelError(msg)
        return response

    async def wrap_tool_execute(
        self, ctx: RunContext[Any], *, call: ToolCallPart, tool_def: ToolDefinition, args: dict[str, Any], handler: WrapToolExecuteHandler
    ) -> Any:
        """Run a tool once, for so long at most; whatever goes wrong is told to the model."""
        done = self._done or _Done(self.reading)
        key = f"{call.tool_name} {plain_text(dict(sorted(args.items())))}"
        async with done.taking(key):  # the same call twice in one round is one call
            known = done.known(call.tool_name, key)
            return await self._run(call.tool_name, key, done, lambda: handler(args)) if known is None else known

    async def _run(self, name: str, key: str, done: _Done, run: Callable[[], Awaitable[Any]]) -> Any:
        changes = done.changes
        limit = asyncio.timeout(self.config.tool_seconds_max)
        try:
            async with limit:
                result = tellable(await run())
        except TimeoutError as error:
            late = f"{name} was stopped after {self.config.tool_seconds_max:g} s: ask for less, or do without it"
            raise ToolFailed(done.failed(key, late if limit.expired() else _told(error))) from error
        except _SIGNALS:
            raise
        except (ToolFailed, ToolFailedError) as error:
            raise ToolFailed(done.failed(key, str(error))) from error
        except (ModelRetry, ToolRetryError) as error:
            raise ToolFailed(done.failed(key, _told(error))) from error
        except Exception as error:
            raise ToolFailed(done.failed(key, _told(error))) from error
        if isinstance(result, dict) and (result.get("timed_out") is True or result.get("exit_code") not in {0, None}):
            raise ToolFailed(done.failed(key, plain_text(result)))  # a command that ended badly is no success
        done.succeeded(name, key, result, since=changes)
        return result


class _Done:
    """What tools were called with in one message, and what they brought back."""

    def __init__(self, reading: frozenset[str]) -> None:
        self._reading = reading
        self._fresh: dict[str, Any] = {}
        self.changes = 0
        self._same: dict[str, tuple[str, int]] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    def taking(self, key: str) -> asyncio.Lock:
        """Return what lets a call be made once at a time."""
        return self._locks.setdefault(key, asyncio.Lock())

    def known(self, name: str, key: str) -> Any:
        """Return what a call has brought back already, or None when it is to be made."""
        if key in self._fresh:
            return {
                "same_as_before": "this call was made before in this message, and nothing has changed since",
                "result": self._fresh[key],
            }
        if name not in self._reading and self._same.get(key, ("", 0))[1] >= _SAME_MAX:
            told = f"{name} was called {_SAME_MAX} times with these arguments and brought back the same each time: it was not run again"
            raise ToolFailed(told)
        return None

    def succeeded(self, name: str, key: str, result: Any, *, since: int) -> None:
        """Remember a result; what may have changed something makes the others old, those that are still looked for too."""
        if name not in self._reading:
            self._changed(key, plain_text(result))
        elif since == self.changes:
            self._fresh[key] = result

    def failed(self, key: str, told: str) -> str:
        """Remember a failure, which may have changed something, too."""
        self._changed(key, told)
        return told

    def _changed(self, key: str, said: str) -> None:
        """Count how often a call brought back the same with nothing else done in between: after that it may bring back something else."""
        self.changes += 1
        self._fresh.clear()
        before, times = self._same.get(key, ("", 0))
        self._same = {key: (said, times + 1 if said == before else 1)}


def tellable(result: Any) -> Any:
    """Return what a tool brought back as something a model can be told: as it is, or as text where it is no JSON."""
    told = result.return_value if isinstance(result, ToolReturn) else result
    if isinstance(told, str):
        plain: Any = plain_text(told)
    else:
        try:
            tool_return_ta.dump_json(told).decode()
        except (ValueError, TypeError, RecursionError):
            plain = plain_text(told)
        else:
            return result
    return replace(result, return_value=plain) if isinstance(result, ToolReturn) else plain


def _told(error: BaseException) -> str:
    """Return an error in words for a model."""
    said = str(error) if isinstance(error, RecollectError | ModelRetry) else f"{type(error).__name__}: {error}"
    return shorten(f"Error: {said}", _ERROR_CHARS_MAX)
