"""What a provider's client raised, as one sentence: what went wrong, at which address, and what to do; never a body as it came."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, cast

from pydantic_ai.exceptions import (
    ContentFilterError,
    FallbackExceptionGroup,
    ModelAPIError,
    ModelConnectionError,
    ModelHTTPError,
    ModelTimeoutError,
    UnexpectedModelBehavior,
)

from recollect.checks import masked
from recollect.models.providers import address_of
from recollect.text import shorten

if TYPE_CHECKING:
    from recollect.settings import ModelUse

_SAID_CHARS_MAX = 160
_OTHERS_TOLD_MAX = 3
_CAUSES_MAX = 12
_SAID_NOTHING = "Exceeded maximum output retries"
_UNSENT = frozenset({"pool", "connect"})
_KEY_REFUSED = frozenset({401, 403})
_ERRORS, _UNPAID, _UNKNOWN, _TOO_MANY, _SERVER_ERRORS = 400, 402, 404, 429, 500


class Place(NamedTuple):
    """Where a model is asked: its address, and the settings that name it; both empty for a model that a program brought."""

    address: str
    endpoint: str
    name: str
    key: str


def place_of_model(what: str, use: ModelUse, model: Any = None) -> Place:
    """Return where `models.WHAT` is asked, or a model that a program gives instead of it."""
    if model is not None and getattr(model, "model_name", model) != use.name:
        return Place(masked(str(getattr(model, "base_url", None) or "")).rstrip("/"), "its address", "its name", "its key")
    key = f"a key into {use.key_variable}" if use.key_variable else f"the variable that holds its key into models.{what}.key_variable"
    return Place(masked(address_of(use)), f"models.{what}.endpoint", f"models.{what}.name", key)


def explained(name: str, place: Place, error: BaseException) -> str:
    """Return the sentence."""
    return f"the model {name!r} did not answer: {_told(place, error)}"


def _told(place: Place, error: BaseException) -> str:
    if isinstance(error, FallbackExceptionGroup):
        each = [_told(Place("", *place[1:]), one) for one in error.exceptions[:_OTHERS_TOLD_MAX]]
        return "; then ".join(each)
    at = place.address or "its server"
    if isinstance(error, ModelConnectionError):
        return _unconnected(at, place, error)
    status = error.status_code if isinstance(error, ModelHTTPError) else getattr(error.__cause__, "status_code", None)
    if isinstance(status, int):
        return _refused(at, place, status, _said(error))
    if isinstance(error, ContentFilterError):
        why = shorten(error.message.removeprefix("Content filter triggered. "), _SAID_CHARS_MAX)
        return f"it refused ({why}): ask in other words, or another model"
    if isinstance(error, UnexpectedModelBehavior) and error.message.startswith(_SAID_NOTHING):
        return "it said nothing, though it was asked again: ask in other words, or another model"
    if isinstance(error, UnexpectedModelBehavior | ModelAPIError):
        said = shorten(error.message.partition("\n")[0], _SAID_CHARS_MAX)
        return f"{at} gave no answer that can be used ({said}): ask again, or see that {place.endpoint} and {place.name} are right"
    return shorten(str(error) or type(error).__name__, _SAID_CHARS_MAX * 2)


def _unconnected(at: str, place: Place, error: ModelConnectionError) -> str:
    if isinstance(error, ModelTimeoutError):
        return f"{at} took too long: ask again, or see what its server does"
    if error.phase in _UNSENT:
        return f"{at} cannot be reached ({_reason(error)}): start its server, or correct {place.endpoint}"
    return f"{at} broke off before the answer was whole: ask again"


def _refused(at: str, place: Place, status: int, said: str) -> str:
    told = f"{status}: {said}" if said else f"{status}"
    if status in _KEY_REFUSED:
        return f"{at} does not accept the key ({told}): put {place.key}"
    if status == _UNPAID:
        return f"{at} wants to be paid first ({told}): pay there, or name another model in {place.name}"
    if status == _UNKNOWN:
        return f"{at} knows no such model, or is no such address ({told}): correct {place.name} or {place.endpoint}"
    if status == _TOO_MANY:
        return f"{at} is asked too often or its quota is used up ({told}): ask later"
    if status >= _SERVER_ERRORS:
        return f"the server at {at} failed ({told}): ask again, or look at what it logs"
    if status < _ERRORS:
        return f"{at} sends elsewhere ({status}), which is not followed: put the address that answers into {place.endpoint}"
    return f"{at} does not take what it was sent ({told}): see that {place.name} can do what is asked of it"


def _said(error: BaseException) -> str:
    """Return the message in the body of an error, in whichever of the usual places it stands."""
    body: Any = getattr(error, "body", None)
    for name in ("error", "message"):
        if isinstance(body, dict):
            body = cast("dict[str, Any]", body).get(name, cast("dict[str, Any]", body))
    return shorten(body, _SAID_CHARS_MAX) if isinstance(body, str) and not body.lstrip().startswith(("<", "{")) else ""


def _reason(error: BaseException) -> str:
    """Return what the system says of a connection that could not be made."""
    cause: BaseException | None = error
    told = "no connection"
    for _ in range(_CAUSES_MAX):
        if cause is None:
            break
        if isinstance(cause, ConnectionRefusedError):
            return "nothing listens there"
        told = cause.strerror or told if isinstance(cause, OSError) else told
        cause = cause.__cause__ or cause.__context__
    return told
