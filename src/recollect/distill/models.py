"""Summaries by a model: what a model is asked and answers, checked against the graph; and the scripted one that tests use.

Nothing a model says is trusted: its answer is parsed into a type, cut to size, and loses every file and tool that does
not occur. What cannot be used is a `ModelError`, and the extractive summary takes its place.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

import msgspec
from msgspec import Meta

from recollect.distill.extractive import Told
from recollect.errors import ModelError
from recollect.quoting import summary_text
from recollect.text import cut, shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.distill.embedders import Embedder
    from recollect.model import Summary, Turn

_TURN_CHARS_MAX = 6_000
_SUMMARY_CHARS_MAX = 2_000
_ACTIONS_CHARS_MAX = 1_000
_FINDING_CHARS_MAX = 320
_FINDINGS_MAX = 5
_TOPICS_MAX = 4
_TOPIC_CHARS_MAX = 60
TITLE_CHARS_MAX = 70
_REFUSED = re.compile(r"(?i)(?:i(?:'|’)?m sorry|sorry,|i (?:can(?:not|(?:'|’)?t)|am unable|won(?:'|’)?t)|as an ai\b|unable to\b)")


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is to summarise: the words of a window, and the facts of the graph that it may not change."""

    level: int
    text: str
    facts: Told
    turn_count: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a model is to answer, as JSON."""

    summary: Annotated[str, Meta(min_length=1)]
    actions: str = ""
    key_findings: list[str] = []
    files_mentioned: list[str] = []
    tools_used: list[str] = []
    topics: list[str] = []


class SummaryModel(Protocol):
    """Something that can write a summary."""

    @property
    def name(self) -> str:
        """Who is named as the author."""
        ...

    async def summarise(self, asked: Asked) -> str:
        """Answer with the JSON of an `Answer`; `ModelError` when it cannot."""
        ...


class TitleModel(Protocol):
    """Something that can name a conversation."""

    async def title(self, text: str) -> str:
        """Return a title for what a conversation is about; `ModelError` when it cannot."""
        ...


class Writers(NamedTuple):
    """Who writes summaries and titles, and who makes vectors; None stands for what needs no model of a provider."""

    summaries: SummaryModel | None = None
    titles: TitleModel | None = None
    vectors: Embedder | None = None


async def titled_by(model: TitleModel, text: str, seconds_max: float) -> str:
    """Have a model name a conversation; raises `ModelError` for whatever is of no use."""
    try:
        async with asyncio.timeout(seconds_max):
            said = await model.title(text)
    except TimeoutError as error:
        msg = f"the model took longer than {seconds_max:g} s for a title"
        raise ModelError(msg) from error
    except ModelError:
        raise
    except Exception as error:
        msg = f"the model failed at a title: {type(error).__name__}"
        raise ModelError(msg) from error
    title = shorten(_line(_keepable()(said)).strip(" .\"'*#`"), TITLE_CHARS_MAX)
    if not title or title[0] in "{[<" or _REFUSED.match(title):
        msg = "the model gave no title that can be used"
        raise ModelError(msg)
    return title


async def told_by(model: SummaryModel, asked: Asked, seconds_max: float) -> Told:
    """Have a model summarise; raises `ModelError` for whatever is of no use: refusals, nonsense, silence."""
    try:
        async with asyncio.timeout(seconds_max):
            said = await model.summarise(asked)
    except TimeoutError as error:
        msg = f"the model {model.name!r} took longer than {seconds_max:g} s for a summary"
        raise ModelError(msg) from error
    except ModelError:
        raise
    except Exception as error:
        msg = f"the model {model.name!r} failed: {type(error).__name__}"
        raise ModelError(msg) from error
    return checked(said, asked.facts, model.name)


def _keepable() -> Callable[[str], str]:
    """Return what makes words of a model fit to be kept: no secrets, no commands to a terminal, nothing that no store can hold."""
    from recollect.capture.clean import Cleaner  # noqa: PLC0415  the rules load when a model has said something
    from recollect.capture.secrets import default_redactor  # noqa: PLC0415  as above

    cleaner = Cleaner(default_redactor())

    def keep(said: str) -> str:
        return "".join(one for one in cleaner.text(said) if one.isprintable() or one.isspace())

    return keep


def _line(text: str) -> str:
    return " ".join(text.split())


def checked(said: str, facts: Told, name: str) -> Told:
    """Read a model's answer into the type, and let it add nothing to files and tools."""
    try:
        answer = msgspec.json.decode(_unfenced(said), type=Answer)
    except (msgspec.DecodeError, msgspec.ValidationError, AttributeError, TypeError, ValueError) as error:
        msg = f"the model {name!r} gave no summary that can be read: {error}"
        raise ModelError(msg) from error
    keep = _keepable()
    if not (summary := _line(keep(answer.summary))):
        msg = f"the model {name!r} gave an empty summary"
        raise ModelError(msg)
    return Told(
        summary=cut(summary, _SUMMARY_CHARS_MAX),
        actions=facts.actions or cut(_line(keep(answer.actions)), _ACTIONS_CHARS_MAX),
        key_findings=tuple(shorten(keep(one), _FINDING_CHARS_MAX) for one in answer.key_findings if one.strip())[:_FINDINGS_MAX],
        files_mentioned=_known(answer.files_mentioned, facts.files_mentioned),
        tools_used=_known(answer.tools_used, facts.tools_used),
        topics=tuple(shorten(keep(one), _TOPIC_CHARS_MAX) for one in answer.topics if one.strip())[:_TOPICS_MAX] or facts.topics,
    )


def _known(named: Iterable[str], facts: tuple[str, ...]) -> tuple[str, ...]:
    """Return the facts, those that were named first; what is no fact is dropped."""
    first = [name for name in dict.fromkeys(named) if name in facts]
    return (*first, *(fact for fact in facts if fact not in first))


def _unfenced(said: str) -> str:
    text = said.strip()
    first, last = text.find("{"), text.rfind("}")
    return text[first : last + 1] if 0 <= first < last else text


def turns_text(turns: Sequence[Turn]) -> str:
    """Return turns as a model reads them."""
    return "\n\n".join(cut(f"turn {turn.index}\nuser: {turn.user}\nassistant: {turn.assistant}", _TURN_CHARS_MAX) for turn in turns)


def summaries_text(summaries: Sequence[Summary]) -> str:
    """Return summaries as a model reads them."""
    return "\n\n".join(f"turns {one.first_turn} to {one.last_turn}\n{summary_text(one)}" for one in summaries)


Line = str | Exception | Callable[[Asked], Awaitable[str]]


class ScriptedModel:
    """A model that says what it was told to, line by line, and the last line again; for tests and for trying things out.

    A line is an answer, an error to be raised, or a coroutine function that is asked.
    """

    def __init__(self, *lines: Line, name: str = "scripted") -> None:
        self.name = name
        self.asked: list[Asked] = []
        self._lines: list[Line] = list(lines) or [msgspec.json.encode({"summary": "As scripted."}).decode()]

    async def summarise(self, asked: Asked) -> str:
        """Say the next line."""
        self.asked.append(asked)
        line: Any = self._lines.pop(0) if len(self._lines) > 1 else self._lines[0]
        if isinstance(line, Exception):
            raise line
        return line if isinstance(line, str) else await line(asked)
