"""A list of messages as an agent holds it → turns: the public door of capture."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from recollect.capture.clean import Cleaner
from recollect.capture.paths import place_of
from recollect.capture.reading import Reading
from recollect.capture.shapes import read_message
from recollect.capture.turns import build_turns
from recollect.clock import SystemClock
from recollect.errors import InputError
from recollect.placing import Head, place_turns

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import Turn


def messages_to_turns(messages: Iterable[Any], *, cwd: str | None = None, now: datetime | None = None) -> list[Turn]:
    """Group chat messages into turns, secrets removed; OpenAI chat, Responses items and Anthropic blocks are read alike.

    A turn is a user message and everything up to the next one. What is unreadable is left out; `InputError` is raised
    only when `messages` is no list at all. `cwd` makes file paths relative to its project.
    """
    from recollect.capture.secrets import default_redactor  # noqa: PLC0415  the rules load when something is to be cleaned

    reading = Reading(Cleaner(default_redactor()), now or SystemClock().now(), place_of(cwd))
    return place_turns(read_turns(messages, reading), Head(conversation_id=""))


def read_turns(messages: object, reading: Reading) -> list[Turn]:
    """Group messages into turns that have no place yet."""
    if isinstance(messages, str | bytes | dict) or not isinstance(messages, Iterable):
        msg = f"messages are a list of chat messages, not {type(messages).__name__}"
        raise InputError(msg)
    read = [read_message(item, reading.notes) for item in reading.cleaner.payload(list(messages))]
    return build_turns([message for message in read if message is not None], reading)
