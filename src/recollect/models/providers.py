"""A use of a model, as the user configured it → a model that can be asked; the one place that knows providers."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from recollect.errors import ConfigError, ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx2
    from pydantic_ai.models import Model

    from recollect.config import ModelUse

_PLACEHOLDER_KEY = "none"  # local servers need no key, and the protocol's client needs something to send
_ENDPOINTS = {  # named here, because the clients would take another one from the environment, and a project may set that
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "openai": "https://api.openai.com/v1",
}


def load_packages(*uses: ModelUse) -> None:
    """Load what takes seconds to load before anybody waits for a model; what is missing is told when it is asked."""
    for provider in {use.provider for use in uses if use.name is not None}:
        with suppress(ImportError):
            import_module(f"pydantic_ai.models.{provider}")


@asynccontextmanager
async def open_model(use: ModelUse, what: str) -> AsyncGenerator[Model]:
    """Give the model of a use, with connections of its own that end with it.

    Raises `ConfigError` where a package is missing, `ModelError` where its key is. Redirects are not followed: a key
    goes to the server that the user named, and to no other.
    """
    key = _key(use, what)
    try:
        import httpx2  # noqa: PLC0415  only those who ask a model need it

        client = httpx2.AsyncClient(follow_redirects=False, timeout=None)  # whoever asks sets the limit
        model = _made(use, key, client)
    except ImportError as error:
        extra = "recollect[models]" if use.provider == "openai" else f"pydantic-ai-slim[{use.provider}]"
        msg = f"models.{what} names a model of {use.provider}, which needs one more package: pip install '{extra}'"
        raise ConfigError(msg) from error
    async with client:
        yield model


def _key(use: ModelUse, what: str) -> str | None:
    if use.key_variable is None:
        return None
    key = os.environ.get(use.key_variable)
    if not key:
        msg = f"models.{what}.key_variable names {use.key_variable}, which is not set in the environment"
        raise ModelError(msg)
    return key


def _made(use: ModelUse, key: str | None, client: httpx2.AsyncClient) -> Model:
    name, endpoint, key = use.name or "", use.endpoint or _ENDPOINTS[use.provider], key or _PLACEHOLDER_KEY
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
