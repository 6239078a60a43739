"""A use of a model, as the user configured it → a model that can be asked; the one place that knows providers."""

from __future__ import annotations

from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from recollect.errors import ConfigError
from recollect.models.keys import key_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx2
    from pydantic_ai.models import Model

    from recollect.settings import ModelUse

_PLACEHOLDER_KEY = "none"  # local servers need no key, and the protocol's client needs something to send
_ENDPOINTS = {  # named here, because the clients would take another one from the environment, and a project may set that
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "openai": "https://api.openai.com/v1",
}
_AUTHORIZATIONS = frozenset({"authorization", "x-api-key", "x-goog-api-key"})
_SPOKEN = frozenset(
    {"accept", "accept-encoding", "connection", "content-length", "content-type", "host", "transfer-encoding", "user-agent",
     "anthropic-version", "anthropic-beta"}
)  # fmt: skip
_SPOKEN_OF = ("x-stainless-", "x-goog-api-client")


def load_packages(*uses: ModelUse) -> None:
    """Load what takes seconds to load before anybody waits for a model; what is missing is told when it is asked."""
    for provider in {use.provider for use in uses if use.name is not None}:
        with suppress(ImportError):
            import_module(f"pydantic_ai.models.{provider}")


def address_of(use: ModelUse) -> str:
    """Return where a use asks: the user's own endpoint, else the one of its provider."""
    return use.endpoint or _ENDPOINTS[use.provider]


@asynccontextmanager
async def open_model(use: ModelUse, what: str) -> AsyncGenerator[Model]:
    """Give the model of a use, with connections of its own that end with it.

    Raises `ConfigError` where a package is missing, `ModelError` where its key is. Redirects are not followed: a key
    goes to the server that the user named, and to no other.
    """
    key = key_of(use.key_variable, what) or _PLACEHOLDER_KEY
    endpoint = address_of(use)
    try:
        import httpx2  # noqa: PLC0415  only those who ask a model need it

        from recollect.models.streaming import EndsWhole  # noqa: PLC0415  as above

        client = httpx2.AsyncClient(
            follow_redirects=False,
            timeout=None,  # whoever asks sets the limit
            trust_env=endpoint.startswith("https:"),  # a proxy of the environment is used where it sees nothing of what is said
            event_hooks={"request": [_Only(key)], "response": [EndsWhole(use.provider)]},
        )
        model = _made(use, endpoint, key, client)
    except ImportError as error:
        extra = "recollect[models]" if use.provider == "openai" else f"pydantic-ai-slim[{use.provider}]"
        msg = f"models.{what} names a model of {use.provider}, which needs one more package: pip install '{extra}'"
        raise ConfigError(msg) from error
    async with client:
        yield model


class _Only:
    """Lets a request say what its protocol needs and nothing else: the clients take headers, and other keys, from the environment."""

    def __init__(self, key: str) -> None:
        self._key = key
        self._values = frozenset({key, f"Bearer {key}"})

    async def __call__(self, request: httpx2.Request) -> None:
        for name, value in list(request.headers.items()):
            is_key = name in _AUTHORIZATIONS and value in self._values
            if not (is_key or name in _SPOKEN or name.startswith(_SPOKEN_OF)):
                del request.headers[name]
        if not any(name in request.headers for name in _AUTHORIZATIONS):  # the one of the environment took the place of ours
            request.headers["authorization"] = f"Bearer {self._key}"


def _made(use: ModelUse, endpoint: str, key: str, client: httpx2.AsyncClient) -> Model:
    name = use.name or ""
    if use.provider == "anthropic":
        from anthropic import AsyncAnthropic  # noqa: PLC0415  as above
        from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415  as above
        from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415  as above

        messages = AsyncAnthropic(base_url=endpoint, api_key=key, http_client=client, max_retries=0)
        return AnthropicModel(name, provider=AnthropicProvider(anthropic_client=messages))
    if use.provider == "google":
        from pydantic_ai.models.google import GoogleModel  # noqa: PLC0415  as above
        from pydantic_ai.providers.google import GoogleProvider  # noqa: PLC0415  as above

        return GoogleModel(name, provider=GoogleProvider(api_key=key, base_url=endpoint, http_client=client))
    from openai import AsyncOpenAI  # noqa: PLC0415  as above
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415  as above
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415  as above

    asked = AsyncOpenAI(base_url=endpoint, api_key=key, http_client=client, max_retries=0)
    return OpenAIChatModel(name, provider=OpenAIProvider(openai_client=asked))
