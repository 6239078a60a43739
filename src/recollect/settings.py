"""What can be set: a frozen group of values for each part, checked one by one; `config` reads them and checks them together.

Each setting's description stands here; `docs/configuration.md` is generated from it and a test keeps the two alike.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import msgspec
from msgspec import UNSET, Meta, UnsetType

if TYPE_CHECKING:
    from collections.abc import Iterator

TURNS_DUE = 5  # so many turns that are not summarised yet make a window due, where nothing else is set
_Count = Annotated[int, Meta(ge=1)]
_Part = Annotated[float, Meta(ge=0, le=1)]
_Share = Annotated[float, Meta(gt=0, le=1)]
_Name = Annotated[str, Meta(min_length=1)]
_Price = Annotated[float, Meta(ge=0)]
_Days = Annotated[float, Meta(gt=0)] | Literal["never"]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A group of settings."""


class Rule(Section, frozen=True, kw_only=True):
    """A kind of secret of the user's own."""

    kind: Annotated[str, Meta(description="the name that the placeholder shows", min_length=1, max_length=60, pattern=r"^[\w.-]+$")]
    regex: Annotated[str, Meta(description="the secret, as an RE2 expression", min_length=1)]
    keywords: Annotated[tuple[str, ...], Meta(description="words of which one must occur for the rule to run; none: it always runs")] = ()
    group: Annotated[int, Meta(description="which group of the expression is the secret; 0 is all of it", ge=0)] = 0


class Secrets(Section, frozen=True, kw_only=True):
    """What is removed before anything is written."""

    rules: Annotated[tuple[Rule, ...], Meta(description="kinds of secrets beside the shipped ones")] = ()
    exceptions: Annotated[tuple[str, ...], Meta(description="RE2 expressions; a match that one of them finds is kept")] = ()


class Summarization(Section, frozen=True, kw_only=True):
    """Summaries of an agent's conversations."""

    enabled: Annotated[bool, Meta(description="`false` makes no summaries, as `distill.enabled`")] = True
    every_n_messages: Annotated[_Count | None, Meta(description="as `distill.every_messages`")] = None


class Embeddings(Section, frozen=True, kw_only=True):
    """Search by meaning."""

    enabled: Annotated[bool, Meta(description="`false` makes no vectors")] = True
    model: Annotated[
        str | None,
        Meta(description="the model an agent project names; the one that ships is used unless `models.embeddings` names this one"),
    ] = None
    dimension: Annotated[
        _Count | None, Meta(description="how long its vectors are; where `models.embeddings` says so, too, both agree")
    ] = None


class Distill(Section, frozen=True, kw_only=True):
    """Summaries and vectors, made in the background."""

    enabled: Annotated[bool, Meta(description="`false` makes no summaries; vectors are `agent.memory.embeddings.enabled`")] = True
    worker: Annotated[
        bool, Meta(description="a library process that opens a memory works in the background; `RECOLLECT_WORKER=off` switches it off, too")
    ] = True
    every_turns: Annotated[
        _Count | UnsetType | None,
        Meta(description="summarise when so many turns are not summarised yet, those that stay raw included; 5 where nothing else is set"),
    ] = UNSET
    every_messages: Annotated[_Count | None, Meta(description="or as soon as a window has so many messages")] = None
    every_chars: Annotated[_Count | None, Meta(description="or as soon as a window has so many characters")] = None
    context_share: Annotated[_Share | None, Meta(description="or as soon as a window takes this share of the context budget")] = None
    keep_raw_turns: Annotated[int, Meta(description="so many turns at the end are never summarised", ge=0)] = 2
    oversized_chars: Annotated[int, Meta(description="a turn of more characters is a window of its own", ge=1)] = 20_000
    fold_chars: Annotated[int, Meta(description="summaries of a level are folded into the next at so many characters", ge=1)] = 10_000
    fold_share: Annotated[_Share | None, Meta(description="or at this share of the context budget")] = None
    context_chars: Annotated[int, Meta(description="the context budget that the shares are of", ge=1_000)] = 100_000
    model_seconds_max: Annotated[float, Meta(description="how long a model may take for a summary", gt=0, le=3_600)] = 120.0


class Compose(Section, frozen=True, kw_only=True):
    """What an agent is handed before a call; shares are of the budget, and what one leaves goes to what is relevant."""

    budget_chars: Annotated[int, Meta(description="the most characters a context has", ge=0, le=10_000_000)] = 100_000
    goal: Annotated[_Part, Meta(description="share of the first user message")] = 0.05
    constraints: Annotated[_Part, Meta(description="share of messages that set a constraint or correct something")] = 0.05
    queries: Annotated[_Part, Meta(description="share of the last user queries")] = 0.05
    recent: Annotated[_Part, Meta(description="share of the most recent turns")] = 0.05
    files: Annotated[_Part, Meta(description="share of the files touched so far")] = 0.05
    code: Annotated[_Part, Meta(description="share of code that the question names")] = 0.1
    summaries: Annotated[_Part, Meta(description="share of summaries that no higher one tells of")] = 0.1
    recent_messages: Annotated[int, Meta(description="so many messages of recent turns at most", ge=0)] = 10
    relevant_messages: Annotated[int, Meta(description="so many relevant turns and summaries at most", ge=0, le=500)] = 20
    wait_seconds: Annotated[float, Meta(description="how long a context waits for distilling that is under way", ge=0, le=60)] = 0.0


class Persistence(Section, frozen=True, kw_only=True):
    """Where and when turns are kept."""

    type: Annotated[
        Literal["files", "neo4j"], Meta(description="`files` is the embedded store; `neo4j` needs a `store` that names one")
    ] = "files"
    auto_save: Annotated[bool, Meta(description="`false` keeps turns in the process until `save()`; closing discards the rest")] = True
    mirror: Annotated[str | None, Meta(description="a folder that also holds each conversation as a JSON file")] = None


class AgentMemory(Section, frozen=True, kw_only=True):
    """The memory block of an agent project, accepted as it stands there."""

    enabled: Annotated[bool, Meta(description="`false` records nothing; reading goes on")] = True
    max_context_messages: Annotated[
        int, Meta(description="so many messages, recent and relevant together, are in a context that a conversation builds", ge=1)
    ] = 20
    summarization: Annotated[Summarization, Meta(description="summaries")] = Summarization()
    embeddings: Annotated[Embeddings, Meta(description="search by meaning")] = Embeddings()
    persistence: Annotated[Persistence, Meta(description="where and when turns are kept")] = Persistence()


class Agent(Section, frozen=True, kw_only=True):
    """Settings an agent project brings along."""

    memory: Annotated[AgentMemory, Meta(description="its memory block")] = AgentMemory()


class Neo4j(Section, frozen=True, kw_only=True):
    """The Neo4j server, when `store` names one."""

    user: Annotated[str | None, Meta(description="who asks; also `RECOLLECT_NEO4J_USER`, else `NEO4J_USERNAME`")] = None
    password: Annotated[
        str | None, Meta(description="also `RECOLLECT_NEO4J_PASSWORD`, else `NEO4J_PASSWORD`; it is never shown or logged")
    ] = None
    retry_seconds: Annotated[float, Meta(description="how long a server that is away or busy is tried again", ge=0)] = 30.0

    def __repr__(self) -> str:
        return f"Neo4j(user={self.user!r}, retry_seconds={self.retry_seconds!r})"


class Retention(Section, frozen=True, kw_only=True):
    """How long a project's memory is kept."""

    turns_days: Annotated[
        _Days | None,
        Meta(description="turns are gone so many days after they were recorded; `never` keeps them; by default 2 with `summary`"),
    ] = None
    summaries_days: Annotated[
        _Days | None, Meta(description="summaries are gone so many days after they were made; `never` keeps them; by default as above")
    ] = None


class ProjectSettings(Section, frozen=True, kw_only=True):
    """What is kept of a project, and for how long."""

    privacy: Annotated[
        Literal["full", "summary"],
        Meta(description="`full` keeps what was said, secrets removed; `summary` keeps 200 characters of a message, hashes and relations"),
    ] = "full"
    retention: Annotated[Retention, Meta(description="how long it is kept")] = Retention()
    exclude: Annotated[bool, Meta(description="`true` records nothing of it")] = False


class ModelUse(Section, frozen=True, kw_only=True):
    """A model for one use; without a name it is off."""

    name: Annotated[_Name | None, Meta(description="the model's name at its provider; without one this use is off")] = None
    provider: Annotated[
        Literal["openai", "anthropic", "google"],
        Meta(description="whose protocol it speaks; `openai` is every OpenAI-compatible server, the others are extras of pydantic-ai"),
    ] = "openai"
    endpoint: Annotated[str | None, Meta(description="its server, such as `http://localhost:11434/v1`; by default the provider's own")] = (
        None
    )
    key_variable: Annotated[str | None, Meta(description="the environment variable that holds its key; a local server needs none")] = None
    daily_tokens_max: Annotated[
        _Count | None, Meta(description="the most tokens, in and out, that this use spends in a day (UTC); more is refused")
    ] = None
    output_tokens_max: Annotated[int, Meta(description="the most tokens of one answer", ge=1)] = 2_000
    input_price: Annotated[_Price | None, Meta(description="what a million tokens in cost, for `recollect stats --models`")] = None
    output_price: Annotated[_Price | None, Meta(description="what a million tokens out cost")] = None


class EmbeddingUse(Section, frozen=True, kw_only=True):
    """A model that makes vectors at an OpenAI-compatible server; without a name the embedder that ships makes them."""

    name: Annotated[_Name | None, Meta(description="the model's name at its server; without one the embedder that ships is used")] = None
    endpoint: Annotated[str | None, Meta(description="its OpenAI-compatible server, such as `http://localhost:11434/v1`")] = None
    key_variable: Annotated[str | None, Meta(description="the environment variable that holds its key; a local server needs none")] = None
    dimension: Annotated[_Count | None, Meta(description="how long its vectors are")] = None
    batch_size: Annotated[int, Meta(description="how many texts are sent at once", ge=1, le=2_048)] = 64
    daily_tokens_max: Annotated[
        _Count | None, Meta(description="the most tokens that are embedded in a day (UTC), by workers and searches together")
    ] = None
    input_price: Annotated[_Price | None, Meta(description="what a million tokens cost, for `recollect stats --models`")] = None

    @property
    def output_tokens_max(self) -> int:
        """A vector is no answer in tokens."""
        return 0

    @property
    def output_price(self) -> None:
        """As there is none, it costs nothing."""
        return


class Models(Section, frozen=True, kw_only=True):
    """Models of providers; none is asked until it is named here."""

    summaries: Annotated[ModelUse, Meta(description="writes summaries; without one they are extractive")] = ModelUse()
    titles: Annotated[ModelUse, Meta(description="writes titles; without one they are the first request")] = ModelUse()
    agent: Annotated[
        ModelUse, Meta(description="what `ConversationAgent` and `recollect chat` talk with, unless a program gives them one")
    ] = ModelUse()
    analysis: Annotated[ModelUse, Meta(description="finds insights; without one they are taken from what was said")] = ModelUse()
    embeddings: Annotated[
        EmbeddingUse, Meta(description="makes the vectors of search by meaning; without one the embedder that ships does")
    ] = EmbeddingUse()


class Server(Section, frozen=True, kw_only=True):
    """`recollect serve`."""

    host: Annotated[str, Meta(description="the address to listen on; any but loopback needs tokens, and TLS in front of it")] = "127.0.0.1"
    port: Annotated[int, Meta(description="the port to listen on; 0 takes a free one", ge=0, le=65_535)] = 8_722
    hosts: Annotated[tuple[str, ...], Meta(description="names, beside those of loopback, under which it may be asked")] = ()
    tokens: Annotated[str | None, Meta(description="the file of tokens (default: `tokens.json` beside the configuration)")] = None
    audit_log: Annotated[str | None, Meta(description="the file that says who asked what (default: `audit.log` beside it)")] = None
    body_bytes_max: Annotated[int, Meta(description="the most bytes a request's body has", ge=1_024)] = 32 * 1024 * 1024
    requests_at_once_max: Annotated[int, Meta(description="more requests than this at once are told to come back later", ge=1)] = 64
    per_second: Annotated[float, Meta(description="requests a second that a token may send for long", gt=0)] = 200.0
    burst: Annotated[int, Meta(description="requests a token may send at once", ge=1)] = 400
    open_seconds_max: Annotated[float, Meta(description="a request that comes in pieces is closed when nothing came for so long", gt=0)] = (
        3_600.0
    )


class Settings(Section, frozen=True, kw_only=True):
    """Everything that can be set."""

    store: Annotated[
        str, Meta(description="where memory lives: `sqlite:///path/to/memory.db`, a plain path, or `neo4j://host:7687/database`")
    ] = ""
    workspace: Annotated[str, Meta(description="who may see it; every read and write stays inside", min_length=1, max_length=200)] = (
        "default"
    )
    durability: Annotated[
        Literal["process", "power"],
        Meta(description="what an acknowledged turn survives: the death of every process, or a power cut too (one fdatasync a turn)"),
    ] = "process"
    neo4j: Annotated[Neo4j, Meta(description="the Neo4j server, when `store` names one")] = Neo4j()
    secrets: Annotated[Secrets, Meta(description="what is removed before anything is written")] = Secrets()
    distill: Annotated[Distill, Meta(description="summaries and vectors, made in the background")] = Distill()
    compose: Annotated[Compose, Meta(description="what an agent is handed before a call")] = Compose()
    agent: Annotated[Agent, Meta(description="settings an agent project brings along")] = Agent()
    projects: Annotated[
        dict[str, ProjectSettings],
        Meta(description="by the project's id, its folder, or its folder's name; `*` stands for those that are not named"),
    ] = {}
    models: Annotated[Models, Meta(description="models of providers; none is asked until it is named")] = Models()
    server: Annotated[Server, Meta(description="`recollect serve`")] = Server()


def messages_due(settings: Settings) -> int | None:
    """Return how many messages of a window make it due."""
    return settings.distill.every_messages or settings.agent.memory.summarization.every_n_messages


def turns_due(settings: Settings) -> int | None:
    """Return how many turns that are not summarised yet make a window due: as it is set, else 5 where nothing else makes one due."""
    distill = settings.distill
    if distill.every_turns is not UNSET:
        return distill.every_turns
    others = (messages_due(settings), distill.every_chars, distill.context_share)
    return TURNS_DUE if all(one is None for one in others) else None


def model_uses(settings: Settings) -> Iterator[tuple[str, ModelUse]]:
    """Yield each use of a model that answers in words, by its name."""
    for name, use in msgspec.structs.asdict(settings.models).items():
        if isinstance(use, ModelUse):
            yield name, use


def fields(section: type[Section]) -> Iterator[tuple[str, Any, object, str]]:
    """Yield the name, type, default and description of each setting of a section."""
    hints = get_type_hints(section, include_extras=True)
    defaults = {field.name: field.default for field in msgspec.structs.fields(section)}
    for name, hint in hints.items():
        annotated = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        meta = next((extra for extra in annotated[1:] if isinstance(extra, Meta)), None)
        yield name, annotated[0], defaults.get(name), (meta.description or "") if meta else ""
