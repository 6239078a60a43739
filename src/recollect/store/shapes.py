"""What is asked of a store, what it answers, and what passes between its facets and a backend: frozen, without meaning of their own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal

import msgspec

from recollect.errors import StoreError
from recollect.model import ConversationInfo, ConversationStatus, Insight, JobKind, Passage, PassagePart, Summary, Turn
from recollect.store.coded import Cited


class ConversationFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which conversations: every given condition must hold, any of the tags."""

    status: ConversationStatus | None = None
    tags: tuple[str, ...] = ()
    project_ids: tuple[str, ...] | None = None
    agent: str | None = None
    before: datetime | None = None


class ConversationChange(msgspec.Struct, frozen=True, kw_only=True):
    """What to change of a conversation; None leaves it as it is."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    status: ConversationStatus | None = None
    summary: str | None = None


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """A turn that has no place yet, with the passages it is searched by, and the moment from which it is gone."""

    turn: Turn
    passages: tuple[Passage, ...] = ()
    expires_at: datetime | None = None


class OvertakenError(StoreError):
    """Another piece came to the request meanwhile; whoever sees this reads again."""


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A request that comes in pieces goes on: what is known of it is `was` until now, and `now` from then on; None where nothing is."""

    request_id: str
    conversation_id: str
    was: str | None
    now: str | None


class Recording(msgspec.Struct, frozen=True, kw_only=True):
    """Turns to be recorded together.

    `expected_index` is the index the caller believes comes next: when the conversation has moved on meanwhile, nothing
    is written and the outcome is *moved*. `truncate_from` removes the conversation's own turns from that index on, in
    the same transaction. `keep_places` records turns at the indexes and sequences they carry, for restoring. `step` is
    taken in the same transaction, too; when the request is not where it goes on from, that is an `OvertakenError`.
    """

    drafts: tuple[Draft, ...]
    request_id: str | None = None
    replace: bool = False
    expected_index: int | None = None
    truncate_from: int | None = None
    keep_places: bool = False
    step: Step | None = None


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a recording."""

    status: Literal["created", "unchanged", "replaced", "moved", "skipped"]
    turns: tuple[Turn, ...] = ()


class InsightFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which insights: every given condition must hold."""

    conversation_id: str | None = None
    project_ids: tuple[str, ...] | None = None
    kind: str | None = None


class WordedInsight(msgspec.Struct, frozen=True):
    """An insight with the terms it is found by, and its checksum."""

    insight: Insight
    terms: str
    checksum: int


class TurnRange(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns of a conversation's history, by index, both ends included; `newest` takes them from the end.

    The answer is in index order either way.
    """

    first: int = 0
    last: int | None = None
    limit: int | None = None
    newest: bool = False


class CallFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which tool calls of a conversation's history, newest first."""

    tool_name: str | None = None
    success: bool | None = None
    limit: int = 100


class TurnOutline(msgspec.Struct, frozen=True, kw_only=True):
    """What recognition needs to know of a recorded turn: who said what, by hash, without system messages.

    `steps` counts its tool calls and their results.
    """

    id: str
    conversation_id: str
    index: int
    request_id: str | None
    content_hash: str
    steps: int
    said: tuple[tuple[str, str], ...]


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's history in outline, and where it goes on."""

    next_index: int
    next_sequence: int
    turns: tuple[TurnOutline, ...]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What a user said, and where."""

    conversation_id: str
    turn_index: int
    message_id: str
    text: str
    at: datetime | None = None


class PlacedCall(msgspec.Struct, frozen=True, kw_only=True):
    """Where a tool call stands: the turn it belongs to, and its order there."""

    turn_index: int
    order: int


class Vector(msgspec.Struct, frozen=True):
    """A vector as it is stored: whole numbers from -127 to 127, one byte each, times a scale."""

    scale: float
    values: bytes


class TurnFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which turns count: every given condition must hold, any of the tags; a summary counts when it tells of one that does."""

    agent: str | None = None
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    tool: str | None = None
    file: str | None = None


class SearchScope(msgspec.Struct, frozen=True, kw_only=True):
    """Where to search: one conversation with its lineage, some projects, or the whole workspace when both are None.

    Of some levels, or all; among the turns that a filter lets through.
    """

    conversation_id: str | None = None
    project_ids: tuple[str, ...] | None = None
    levels: tuple[int, ...] | None = None
    where: TurnFilter = TurnFilter()


class Elsewhere(msgspec.Struct, frozen=True):
    """A second scope to search, without some conversations, because the first one has them."""

    scope: SearchScope
    without: frozenset[str]


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """What passages are looked for by: terms, a vector of a model, or both; each chooses by at most `limit` of them.

    `hits` is how many turns are wanted in the end, `per_conversation` how many of one conversation.
    """

    terms: tuple[str, ...] = ()
    model: str | None = None
    vector: tuple[float, ...] = ()
    limit: int
    hits: int = 0
    per_conversation: int | None = None


class Found(msgspec.Struct, frozen=True, gc=False):
    """A passage with what scoring needs, of a turn (level 0) or of a summary of the turns from `first_turn` to `last_turn`.

    `length` counts its terms; `at` is when its owner was said or made. Its vector, as in `Vector`, is there when one of the
    model asked for is. Flat, because a search reads hundreds of them.
    """

    owner_id: str
    level: int
    conversation_id: str
    first_turn: int
    last_turn: int
    part: PassagePart
    ordinal: int
    start: int
    end: int
    terms: str
    length: int
    at: str | None = None
    scale: float | None = None
    vector: bytes | None = None

    @property
    def passage(self) -> Passage:
        """Where in its owner it is, and its terms."""
        return Passage(part=self.part, ordinal=self.ordinal, start=self.start, end=self.end, terms=self.terms)


class Candidates(msgspec.Struct, frozen=True, kw_only=True):
    """What scoring needs: passages of the turns and summaries worth it, and the counts of the scope they were found in.

    `embedded_count` is how many of the scope's passages have a vector of the model.
    """

    passages: tuple[Found, ...] = ()
    passage_count: int = 0
    embedded_count: int = 0
    turn_count: int = 0
    average_length: float = 0.0
    document_frequency: Mapping[str, int] = {}


class Owners(msgspec.Struct, frozen=True, kw_only=True):
    """What hits are told from: turns, summaries and the conversations they are in, by their ids; what is gone is not among them.

    `cited` are the files that they tell of, as they were then.
    """

    turns: Mapping[str, Turn]
    summaries: Mapping[str, Summary]
    conversations: Mapping[str, ConversationInfo]
    cited: tuple[Cited, ...] = ()


class HashRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The hashes kept for a message, call, result, context file or change; none of either is known where nobody told the content.

    Of a message that is not `whole`, the first may be that of its summary, where the sender gave one of another kind.
    """

    kind: str
    content_hash: str | None
    source_hash: str | None = None
    whole: bool = True


# What passes between the facets and a backend


class Held(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation as a store holds it: with the parent it inherits from, where it goes on, and the checksum of its own fields.

    `has_own_title` says that its title was generated and may be again; `told_to` is the last turn its summary tells of.
    """

    conversation: ConversationInfo
    parent_id: str | None = None
    next_index: int = 0
    next_sequence: int = 0
    checksum: int = 0
    has_own_title: bool = False
    told_to: int = -1


class Link(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation of a lineage; `from_turn` is the last turn it inherits, None when it inherits nothing."""

    conversation_id: str
    from_turn: int | None = None


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """A conversation's own turns in a range of indexes, both ends included; `newest` counts the limit from the end."""

    conversation_id: str
    first: int = 0
    last: int | None = None
    limit: int | None = None
    newest: bool = False

    def shows(self, index: int) -> bool:
        """Tell whether a turn of the conversation is in the range."""
        return self.first <= index and (self.last is None or index <= self.last)


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """How much a span holds, and the numbers that follow it."""

    turns: int = 0
    messages: int = 0
    next_index: int = 0
    next_sequence: int = 0


class StoredTurn(msgspec.Struct, frozen=True, kw_only=True):
    """A turn as it is stored: in its place, with the checksum over all its rows; passages only on the way in."""

    turn: Turn
    checksum: int
    passages: tuple[Passage, ...] = ()
    expires_at: datetime | None = None


class Advance(msgspec.Struct, frozen=True, kw_only=True):
    """What turns at the end add to their conversation."""

    turns: int
    messages: int
    at: datetime
    last_message: str | None


class TurnSize(msgspec.Struct, frozen=True):
    """A turn as planning sees it."""

    id: str
    index: int
    chars: int
    messages: int
    is_open: bool = False


class SummarySize(msgspec.Struct, frozen=True):
    """A summary as planning sees it."""

    id: str
    level: int
    first_turn: int
    last_turn: int
    chars: int
    source_ids: tuple[str, ...] = ()


class Unembedded(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that has no vector of a model yet; `key` is the backend's own."""

    key: int | str
    owner_id: str
    level: int
    passage: Passage


class Embedded(msgspec.Struct, frozen=True, kw_only=True):
    """A vector for a passage that has these terms, with the hash of the text it was made of."""

    key: int | str
    terms: str
    text_hash: str
    vector: Vector


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A job that one worker holds until a moment; the token tells it from any other holding."""

    conversation_id: str
    kind: JobKind
    token: str
    attempts: int


class Area(msgspec.Struct, frozen=True, kw_only=True):
    """Where to look for passages: some spans, some projects, or the whole workspace when both are None; of some levels, or all."""

    spans: tuple[Span, ...] | None = None
    project_ids: tuple[str, ...] | None = None
    levels: tuple[int, ...] | None = None
    where: TurnFilter = TurnFilter()


class Counts(msgspec.Struct, frozen=True):
    """What an area holds; the terms are those of its passages."""

    passages: int
    terms: int
    turns: int


DerivedKind = Literal["summary", "insight", "scope"]
DERIVED_KINDS: tuple[DerivedKind, ...] = ("summary", "insight", "scope")


class RecordKey(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be checked, of any kind; `key` is the backend's own, the ids are as readable as they are."""

    key: int | str
    id: str
    conversation_id: str


class Room(msgspec.Struct, frozen=True, kw_only=True):
    """What a use of a model has spent, what is being asked for at this moment, and whether there was room for a call."""

    spent_tokens: int = 0
    underway_tokens: int = 0
    is_granted: bool = False
