"""What speaks for each turn and summary: every signal between 0 and 1, from the passages a store found; pure.

The signals are of owners, a turn or a summary each. Terms are BM25 over the counts of the scope, divided by the most
that the question could reach: 1 means that everything asked for is there. They are the same whichever store found the
passages.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recollect.clock import from_iso
from recollect.recall.counting import counted
from recollect.store.shapes import Found

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from recollect.recall.asking import Asked
    from recollect.store.shapes import Candidates

    Floats = NDArray[np.float64]
    Places = NDArray[np.intp]

_K1 = 0.9
_B = 0.4
_WINDOW_TURNS = 5
_SESSION_K = 1.5
_RECENT_DAYS = 14.0
_DAY_SECONDS = 86_400.0
_TURNS_MAX = 2**32  # no conversation has so many
DISTANCES = (-2, -1, 1, 2)


class Signals(msgspec.Struct, frozen=True):
    """The signals of each owner, one row each; `best` is the passage that speaks most for it.

    `neighbours` holds the rows of the turns two and one before and one and two after, -1 where there is none.
    """

    owners: list[Found]
    best: Places
    terms: Floats
    around: Floats
    meaning: Floats
    phrase: Floats
    session: Floats
    speaker: Floats
    time: Floats
    recency: Floats
    coverage: Floats
    neighbours: Places


def signals(found: Candidates, asked: Asked, vector: Sequence[float], now: datetime) -> Signals:
    """Work out what speaks for every owner among the candidates."""
    passages = found.passages
    owners, owner_of = _owners(passages)
    idf = _weights(found, asked.terms)
    counts = counted([one.terms for one in passages], asked.terms)
    lengths = np.array([one.length for one in passages], np.float64)
    whole = max(float(idf.sum()), 1e-9)
    lexical = _bm25(counts, lengths, idf, found.average_length) / whole
    cosine = np.maximum(_cosines(passages, vector), 0.0)
    phrases = _phrases(passages, counts, asked)
    best = _best(owner_of, len(owners), lexical + cosine + phrases)
    pooled = _pooled(counts, owner_of, len(owners))
    pooled_lengths = _pooled(lengths[:, None], owner_of, len(owners))[:, 0]
    levels = np.array([one.level for one in owners], np.intp)
    conversations = _conversations(owners)
    neighbours = _neighbours(owners, levels, conversations)
    turn_length = found.average_length * found.passage_count / max(found.turn_count, 1)
    around = _around(pooled, pooled_lengths, neighbours, idf, max(turn_length, 1.0)) / whole
    terms = _most(lexical, owner_of, len(owners))
    return Signals(
        owners=owners,
        best=best,
        terms=terms,
        around=np.where(levels > 0, terms, around),
        meaning=_most(cosine, owner_of, len(owners)),
        phrase=_most(phrases, owner_of, len(owners)),
        session=_session(conversations, pooled * (levels == 0)[:, None], idf) / whole,
        speaker=_most(_spoken(passages, asked), owner_of, len(owners)),
        time=np.array([_timely(one, asked) for one in owners]) if asked.periods else np.zeros(len(owners)),
        recency=_recency(owners, now),
        coverage=((pooled > 0) * idf).sum(axis=1) / whole,
        neighbours=neighbours,
    )


def _owners(passages: Sequence[Found]) -> tuple[list[Found], Places]:
    """Return one passage for each owner, and the row of each passage's owner."""
    rows: dict[str, int] = {}
    owners: list[Found] = []
    owner_of = np.empty(len(passages), np.intp)
    for n, one in enumerate(passages):
        row = rows.setdefault(one.owner_id, len(owners))
        if row == len(owners):
            owners.append(one)
        owner_of[n] = row
    return owners, owner_of


def _weights(found: Candidates, terms: Sequence[str]) -> Floats:
    having = np.array([min(found.document_frequency.get(term, 0), found.passage_count) for term in terms], np.float64)
    return np.log(1 + (found.passage_count - having + 0.5) / (having + 0.5))


def _bm25(counts: Floats, lengths: Floats, idf: Floats, usual_length: float) -> Floats:
    norm = _K1 * (1 - _B + _B * lengths / max(usual_length, 1.0))
    return (counts / (counts + norm[:, None]) * idf).sum(axis=1)


def _cosines(passages: Sequence[Found], vector: Sequence[float]) -> Floats:
    """Return the cosine of each passage's vector with the question's; 0 where there is none."""
    cosines = np.zeros(len(passages), np.float64)
    size = len(vector)
    rows = [n for n, one in enumerate(passages) if size and one.vector is not None and len(one.vector) == size]
    if rows:
        values = np.frombuffer(b"".join([passages[n].vector or b"" for n in rows]), np.int8).reshape(len(rows), size).astype(np.float64)
        cosines[rows] = values @ np.array(vector, np.float64) * np.array([passages[n].scale for n in rows], np.float64)
    return np.minimum(cosines, 1.0)


def _phrases(passages: Sequence[Found], counts: Floats, asked: Asked) -> Floats:
    """Return the share of the question's pairs of words that stand side by side; quoted phrases count whole."""
    found = np.zeros(len(passages), np.float64)
    pairs = [(f" {one} {other} ", f" {other} {one} ") for one, other in asked.pairs]
    phrases = [f" {' '.join(phrase)} " for phrase in asked.phrases]
    if not pairs:
        return found
    for n in np.flatnonzero((counts > 0).sum(axis=1) > 1).tolist():
        text = f" {passages[n].terms} "
        met = sum(pair in text or turned in text for pair, turned in pairs) / len(pairs)
        found[n] = max(met, sum(phrase in text for phrase in phrases) / len(phrases)) if phrases else met
    return found


def _spoken(passages: Sequence[Found], asked: Asked) -> Floats:
    if not asked.speakers:
        return np.zeros(len(passages), np.float64)
    return np.array([one.terms.split(" ", 1)[0] in asked.speakers for one in passages], np.float64)


def _pooled(values: Floats, owner_of: Places, owners: int) -> Floats:
    pooled = np.zeros((owners, values.shape[1]), np.float64)
    np.add.at(pooled, owner_of, values)
    return pooled


def _most(values: Floats, owner_of: Places, owners: int) -> Floats:
    most = np.zeros(owners, np.float64)
    np.maximum.at(most, owner_of, values)
    return most


def _best(owner_of: Places, owners: int, values: Floats) -> Places:
    """Return the passage of each owner that has the most; of equals the first."""
    order = np.lexsort((-values, owner_of))
    return order[np.searchsorted(owner_of[order], np.arange(owners))]


def _conversations(owners: Sequence[Found]) -> Places:
    """Return a number for the conversation of each owner."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(one.conversation_id, len(numbers)) for one in owners], np.intp)


def _neighbours(owners: Sequence[Found], levels: Places, conversations: Places) -> Places:
    rows = np.full((len(owners), len(DISTANCES)), -1, np.intp)
    turns = np.flatnonzero(levels == 0)
    if len(turns):
        places = (conversations * _TURNS_MAX + np.array([one.last_turn for one in owners], np.intp))[turns]
        order = np.argsort(places)
        for column, distance in enumerate(DISTANCES):
            found = order[np.minimum(np.searchsorted(places, places + distance, sorter=order), len(order) - 1)]
            rows[turns, column] = np.where(places[found] == places + distance, turns[found], -1)
    return rows


def _around(pooled: Floats, lengths: Floats, neighbours: Places, idf: Floats, turn_length: float) -> Floats:
    """Return BM25 over each turn together with its neighbours, as if they were one text."""
    counts, total = pooled.copy(), lengths.copy()
    for rows in neighbours.T:
        has = rows >= 0
        counts[has] += pooled[rows[has]]
        total[has] += lengths[rows[has]]
    return _bm25(counts, total, idf, turn_length * _WINDOW_TURNS)


def _session(conversations: Places, pooled: Floats, idf: Floats) -> Floats:
    """Return how much of what is asked for occurs in an owner's conversation at all."""
    if not len(conversations):
        return np.zeros(0)
    counts = _pooled(pooled, conversations, int(conversations.max()) + 1)
    return (counts / (counts + _SESSION_K) * idf).sum(axis=1)[conversations]


def _timely(one: Found, asked: Asked) -> float:
    if one.at is None:
        return 0.0
    moment = from_iso(one.at)
    return max(period.share(moment) for period in asked.periods)


def _recency(owners: Sequence[Found], now: datetime) -> Floats:
    """Return how fresh owners are: 1 for what was just said, half of it a fortnight later; 0 where no time is known."""
    recency = np.zeros(len(owners), np.float64)
    known = [row for row, one in enumerate(owners) if one.at is not None]
    if known:
        moments = np.array([from_iso(owners[row].at or "").timestamp() for row in known])
        recency[known] = 0.5 ** (np.maximum(now.timestamp() - moments, 0.0) / _DAY_SECONDS / _RECENT_DAYS)
    return recency
