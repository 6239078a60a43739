"""A model asked for words, or for JSON of a shape: each call paid from a purse, and its failures told by whether they may pass.

What it is asked about is data: it is fenced under a name that is fresh for each call. Whatever comes back is text, to be
read and checked by whoever asked.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic_ai.exceptions import AgentRunError, ModelAPIError, ModelHTTPError
from pydantic_ai.messages import ModelRequest, SystemPromptPart, UserPromptPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition

from recollect.errors import ModelError
from recollect.fence import fence_name, fenced
from recollect.models.explaining import explained, place_of_model
from recollect.models.metered import sent_text, settle_failed, spent_in
from recollect.models.plain import plain_text

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models import Model
    from pydantic_ai.settings import ModelSettings

    from recollect.models.spending import Purse
    from recollect.settings import ModelUse

_REFUSALS = frozenset({401, 403})  # nobody is served
_PASSING = frozenset({408, 409, 425, 429})
_SERVER_ERRORS = 500
_UNREADABLE = frozenset({400, 422, 501})  # some servers take no schema


class PassingError(ModelError):
    """What failed may work in a moment: `seconds` is how long the server asked to wait."""

    seconds: float | None = None


class RefusedError(ModelError):
    """The server serves nobody with this key: there is no use in asking again."""


class _NoSchemaError(Exception):
    """The server may serve who asks without a schema."""


class Schema(NamedTuple):
    """What an answer has to fit, for servers that hold a model to it; who asks tells the model in words, too."""

    name: str
    json_schema: dict[str, Any]


class Asker:
    """One use of models; it remembers whether its server takes a schema."""

    def __init__(self, what: str, use: ModelUse, purse: Purse, *, seconds_max: float | None = None) -> None:
        self._what = what
        self._use = use
        self._output_tokens_max = use.output_tokens_max
        self._purse = purse
        self._seconds_max = seconds_max
        self._takes_schema = True

    @property
    def spent_tokens(self) -> int:
        """What was spent since this was made."""
        return self._purse.spent_tokens

    async def ask(
        self, model: Model, told: str, material: str, schema: Schema | None = None, *, temperature: float = 0.0, waits: bool = False
    ) -> str:
        """Ask once, and once more where the server takes no schema.

        Raises `SpendingError` at the cap, `RefusedError` or `PassingError` for what they say, `ModelError` for the rest.
        """
        messages: list[ModelMessage] = [ModelRequest(parts=[SystemPromptPart(told), UserPromptPart(fenced(fence_name(), material))])]
        how: ModelSettings = {"max_tokens": self._output_tokens_max, "temperature": temperature}
        if schema is not None and self._takes_schema and model.profile.get("supports_json_schema_output"):
            shape = OutputObjectDefinition(schema.json_schema, name=schema.name)
            try:
                return await self._asked(
                    model, messages, how, ModelRequestParameters(output_mode="native", output_object=shape), waits=waits
                )
            except _NoSchemaError:
                self._takes_schema = False  # from now on it is told in words alone
        return await self._asked(model, messages, how, ModelRequestParameters(), waits=waits)

    async def _asked(
        self, model: Model, messages: list[ModelMessage], how: ModelSettings, wanted: ModelRequestParameters, *, waits: bool
    ) -> str:
        sent = sent_text(messages, wanted)
        async with self._purse.paying(sent, waits=waits) as bill:
            try:
                async with asyncio.timeout(self._seconds_max):
                    answer = await model.request(messages, how, wanted)
            except TimeoutError as error:
                msg = f"the model {model.model_name!r} took longer than {self._seconds_max:g} s (distill.model_seconds_max)"
                raise PassingError(msg) from error
            except Exception as error:
                settle_failed(bill, error)
                if wanted.output_object is not None and isinstance(error, ModelHTTPError) and error.status_code in _UNREADABLE:
                    raise _NoSchemaError from error
                raise self._explained(model, error) from error
            bill.spent = spent_in(sent, answer)
        return plain_text(answer.text or "")

    def _explained(self, model: Model, error: Exception) -> ModelError:
        """Return our own error for a provider's, by whether it may pass."""
        status = error.status_code if isinstance(error, ModelHTTPError) else None
        msg = explained(model.model_name, place_of_model(self._what, self._use, model), error)
        if status in _REFUSALS:
            return RefusedError(msg)
        may_pass = isinstance(error, AgentRunError) if status is None else status in _PASSING or status >= _SERVER_ERRORS
        if not may_pass:
            return ModelError(msg)
        passing = PassingError(msg)
        passing.seconds = error.retry_after if isinstance(error, ModelAPIError) else None
        return passing
