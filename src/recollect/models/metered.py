"""Any model of pydantic-ai, with a purse: each of its requests is looked at before, written down after, and capped by the day."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from socket import gaierror
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import BinaryContent, ModelRequest, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.wrapper import WrapperModel

from recollect.models.plain import plain_text
from recollect.models.spending import Spent, spent_on
from recollect.tokens import token_estimate

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
    from pydantic_ai.settings import ModelSettings

    from recollect.models.spending import Bill, Purse

_PICTURE = "[picture] " * 400  # what one takes, about, whatever its bytes


class Metered(WrapperModel):
    """A model whose requests are paid from a purse; `SpendingError` when it has not enough left."""

    def __init__(self, wrapped: Model, purse: Purse) -> None:
        super().__init__(wrapped)
        self._purse = purse

    async def request(
        self, messages: list[ModelMessage], model_settings: ModelSettings | None, model_request_parameters: ModelRequestParameters
    ) -> ModelResponse:
        """Ask the model once."""
        sent = sent_text(messages, model_request_parameters)
        async with self._purse.paying(sent) as bill:
            try:
                response = await super().request(messages, model_settings, model_request_parameters)
            except Exception as error:
                settle_failed(bill, error)
                raise
            bill.spent = spent_in(sent, response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Ask the model once, and hand on its answer as it comes; what broke off is counted, too."""
        sent = sent_text(messages, model_request_parameters)
        async with self._purse.paying(sent) as bill, AsyncExitStack() as stack:
            asked = super().request_stream(messages, model_settings, model_request_parameters, run_context)
            try:
                response = await stack.enter_async_context(asked)
            except Exception as error:
                settle_failed(bill, error)
                raise
            try:
                yield response
            finally:
                bill.spent = _streamed(sent, response.get())


def settle_failed(bill: Bill, error: BaseException) -> None:
    """Put on a bill what a request took that a model's server did not answer: nothing, when there was no server."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ConnectionRefusedError | gaierror) and type(cause).__name__ != "ConnectError":
        cause = cause.__cause__ or cause.__context__
    if cause is None:
        bill.refused()
    else:
        bill.unreached()


def _streamed(sent: str, response: ModelResponse) -> Spent:
    """Return what a stream took, as far as it came: what is counted before its end is not the whole."""
    counted = spent_in(sent, response)
    if response.finish_reason is not None:
        return counted
    return Spent(counted.input_tokens, max(counted.output_tokens, token_estimate(_said(response))))


def spent_in(sent: str, response: ModelResponse) -> Spent:
    """Return what a response took."""
    return spent_on(sent, _said(response), response.usage.input_tokens, response.usage.output_tokens)


def sent_text(messages: Sequence[ModelMessage], parameters: ModelRequestParameters) -> str:
    """Return about what a request sends, to estimate what it takes: messages, instructions and the schemas of tools."""
    told_in = [one.instructions for one in messages if isinstance(one, ModelRequest) and one.instructions]
    shapes = [[tool.name, tool.description, tool.parameters_json_schema] for tool in parameters.function_tools]
    output = None if parameters.output_object is None else parameters.output_object.json_schema
    told = [plain_text(shapes), plain_text(output) if output else "", *told_in[-1:]]
    return "\n".join([*told, *(_part_text(part) for message in messages for part in message.parts)])


def _part_text(part: Any) -> str:
    content = part.args if isinstance(part, ToolCallPart) else getattr(part, "content", None)
    pieces: list[Any] = content if isinstance(content, list) else [content]
    return "\n".join(_PICTURE if isinstance(piece, BinaryContent) else plain_text(piece) for piece in pieces if piece is not None)


def _said(response: ModelResponse) -> str:
    parts = [part for part in response.parts if isinstance(part, TextPart | ThinkingPart | ToolCallPart)]
    return "\n".join(_part_text(part) for part in parts)
