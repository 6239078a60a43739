"""Summaries without a model: the sentences that carry a window, and the facts of the graph; deterministic.

A sentence counts by how close it is to the centre of the window, how rare its words are, what it does (asks, decides,
fails, explains, concludes, leaves open) and where it stands. What says nearly the same as a chosen one is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from recollect.distill.actions import Actions
from recollect.distill.cues import cues
from recollect.distill.embedders import StaticEmbedder, default_embedder
from recollect.distill.sentences import sentences
from recollect.text import fold, parts_of, raw_tokens, shorten, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from recollect.distill.embedders import Matrix
    from recollect.model import Summary, Turn

AUTHOR = "extractive"
NOTHING = "Nothing was said."
_SAID_MAX = 4
_FINDINGS_MAX = 5
_TOPICS_MAX = 4
_CANDIDATES_MAX = 400
_NEARLY_THE_SAME = 0.86
_FOLD_SHARE = 0.5
_SPOKEN_SHARE = 0.4
_SPOKEN_CHARS_MIN = 280
_TOPIC_CHARS_MIN = 3

_CENTRALITY = 0.5
_RARITY = 2.0
_CUE_WEIGHTS = {"decision": 0.25, "error": 0.2, "cause": 0.25, "outcome": 0.2, "open": 0.1, "chatter": -0.5}
_REQUEST = 0.3
_LAST_WORD = 0.2
_QUESTION_BACK = -0.3


_PATH = re.compile(r"\S*/\S*")


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """What a summary says, whoever wrote it."""

    summary: str
    actions: str = ""
    key_findings: tuple[str, ...] = ()
    files_mentioned: tuple[str, ...] = ()
    tools_used: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()

    @property
    def chars(self) -> int:
        """How long its words are."""
        return len(self.summary) + len(self.actions) + sum(map(len, self.key_findings))


class _Candidate(msgspec.Struct, frozen=True):
    text: str
    speaker: str
    place: int
    bonus: float
    does: frozenset[str]


def summarise_turns(turns: Sequence[Turn], embedder: StaticEmbedder | None = None) -> Told:
    """Summarise whole turns."""
    actions = Actions()
    for turn in turns:
        actions.add(turn)
    candidates = _numbered([candidate for turn in turns for candidate in _of_turn(turn)])
    room = max(int(sum(len(candidate.text) for candidate in candidates) * _SPOKEN_SHARE), _SPOKEN_CHARS_MIN)
    return _told(candidates, actions, embedder or default_embedder(), room)


def fold_summaries(summaries: Sequence[Summary], actions: Actions, embedder: StaticEmbedder | None = None) -> Told:
    """Summarise summaries, in at most half their characters; what was done is told anew from the graph."""
    candidates: list[_Candidate] = []
    for one in summaries:
        for text in (*quoted(one.summary), *((finding, "") for finding in one.key_findings)):
            said, speaker = text
            if said == NOTHING:
                continue
            does = cues(said)
            candidates.append(_Candidate(said, speaker, 0, _REQUEST / 2 if speaker == "user" else 0.0, does))
    room = int(sum(one.char_count for one in summaries) * _FOLD_SHARE)
    done = actions.told()
    return _told(_numbered(candidates), actions, embedder or default_embedder(), room, shorten(done, max(room // 3, 1)) if done else "")


def _of_turn(turn: Turn) -> Iterable[_Candidate]:
    spoken = [message for message in turn.messages if message.role in {"user", "assistant"} and message.text]
    for message in spoken:
        own = sentences(message.text)
        for n, text in enumerate(own):
            does = cues(text)
            bonus = 0.0
            if message.role == "user":
                bonus += _REQUEST if n == 0 else _REQUEST / 3
            elif message is spoken[-1] and n in {0, len(own) - 1}:
                bonus += _LAST_WORD
            if message.role == "assistant" and text.endswith("?"):
                bonus += _QUESTION_BACK
            yield _Candidate(text, message.role, 0, bonus, does)


def _numbered(candidates: Sequence[_Candidate]) -> list[_Candidate]:
    once = {candidate.text.casefold(): candidate for candidate in reversed(candidates)}
    kept = [candidate for candidate in candidates if once.get(candidate.text.casefold()) is candidate]
    if len(kept) > _CANDIDATES_MAX:  # the beginning and the end say most
        kept = [*kept[: _CANDIDATES_MAX // 2], *kept[-_CANDIDATES_MAX // 2 :]]
    return [msgspec.structs.replace(candidate, place=n) for n, candidate in enumerate(kept)]


def _told(candidates: list[_Candidate], actions: Actions, embedder: StaticEmbedder, room: int, told: str | None = None) -> Told:
    """Fill a summary: `room` is for what is said, and for what was done where that is given."""
    done = actions.told() if told is None else told
    vectors = embedder.vectors([candidate.text for candidate in candidates])
    scores = _scores(candidates, vectors, embedder)
    chosen = _chosen(candidates, vectors, scores, room if told is None else room - len(done))
    said, findings = _shared_out(chosen)
    spoken = _spoken(said) or done or NOTHING
    found = tuple(candidate.text for candidate in findings)
    if told is not None:  # who spoke is said beside the sentences
        while found and len(done) + len(spoken) + sum(map(len, found)) > room:
            found = found[:-1]
        spoken = shorten(spoken, max(room - len(done), 1))
    return Told(
        summary=spoken,
        actions=done,
        key_findings=found,
        files_mentioned=actions.files,
        tools_used=actions.tools,
        topics=_topics(candidates, embedder),
    )


def _scores(candidates: Sequence[_Candidate], vectors: Matrix, embedder: StaticEmbedder) -> list[float]:
    if not candidates:
        return []
    centre = vectors.sum(axis=0)
    centre /= max(float(np.linalg.norm(centre)), 1e-9)
    central = vectors @ centre
    return [
        _CENTRALITY * float(central[n]) + _RARITY * _informative(candidate.text, embedder) + candidate.bonus
        + sum(_CUE_WEIGHTS[kind] for kind in sorted(candidate.does))
        for n, candidate in enumerate(candidates)
    ]  # fmt: skip


def _informative(text: str, embedder: StaticEmbedder) -> float:
    """Return, from 0 to 1, how much the words of a sentence tell apart: many rare ones are better than few."""
    weights: dict[str, float] = {}
    for raw in set(raw_tokens(fold(text))):
        weights.update(_weighed(embedder, raw))
    weight = sum(sorted(weights.values()))
    return weight / (weight + 8.0)


def _chosen(candidates: Sequence[_Candidate], vectors: Matrix, scores: Sequence[float], room: int) -> list[tuple[float, _Candidate]]:
    """Choose the best that say something new, until there are enough or the room is used up."""
    chosen: list[int] = []
    used = 0
    best = sorted(range(len(candidates)), key=lambda one: (-scores[one], one))
    asked = (n for n, one in enumerate(candidates) if one.speaker == "user" and "chatter" not in one.does)
    request = next(asked, None)  # what was asked first is told in any case
    for n in best if request is None else [request, *(one for one in best if one != request)]:
        cost = len(candidates[n].text) + 1
        if used + cost > room and chosen:
            continue
        if chosen and float(np.max(vectors[chosen] @ vectors[n])) >= _NEARLY_THE_SAME:
            continue
        chosen.append(n)
        used += cost
        if len(chosen) == _SAID_MAX + _FINDINGS_MAX:
            break
    if used > room and chosen:  # not even one fits whole
        only = candidates[chosen[0]]
        return [(scores[chosen[0]], msgspec.structs.replace(only, text=shorten(only.text, max(room, 1))))]
    return [(scores[n], candidates[n]) for n in chosen]


def _shared_out(chosen: Sequence[tuple[float, _Candidate]]) -> tuple[list[_Candidate], list[_Candidate]]:
    """Share what was chosen out: what was asked and answered, and what was found."""
    requests = [candidate for _, candidate in chosen if candidate.speaker == "user"][: _SAID_MAX // 2]
    others = [candidate for _, candidate in chosen if candidate not in requests]
    answers = sorted(others, key=lambda one: -sum(kind in one.does for kind in ("outcome", "decision")))
    said = [*requests, *answers[: _SAID_MAX - len(requests)]] if len(chosen) > 1 else [candidate for _, candidate in chosen]
    findings = [candidate for candidate in others if candidate not in said][:_FINDINGS_MAX]
    return sorted(said, key=lambda one: one.place), sorted(findings, key=lambda one: one.place)


def _spoken(said: Sequence[_Candidate]) -> str:
    """Return sentences in order, with who spoke where that changes."""
    parts: list[str] = []
    speaker = ""
    for one in said:
        mark = ""
        if one.speaker != speaker and one.speaker:
            mark = "Asked: " if one.speaker == "user" else "Answered: "
        speaker = one.speaker or speaker
        text = one.text if one.text[-1:] in ".!?…" else f"{one.text}."
        parts.append(mark + text)
    return " ".join(parts)


def quoted(summary: str) -> list[tuple[str, str]]:
    """Take a summary apart again: each sentence with its speaker."""
    found: list[tuple[str, str]] = []
    speaker = ""
    for sentence in sentences(summary):
        said = sentence
        for mark, who in (("Asked: ", "user"), ("Answered: ", "assistant")):
            if sentence.startswith(mark):
                speaker, said = who, sentence.removeprefix(mark)
        found.append((said, speaker))
    return found


def _topics(candidates: Sequence[_Candidate], embedder: StaticEmbedder) -> tuple[str, ...]:
    """Return what it is about: words that are frequent here and rare elsewhere, as they are written most often."""
    said: Counter[str] = Counter()
    for candidate in candidates:
        said.update(set(raw_tokens(_PATH.sub(" ", candidate.text) if "/" in candidate.text else candidate.text)))
    usual: dict[str, str] = {}  # term → how it is written most often
    total: Counter[str] = Counter()
    for raw in sorted(said, key=lambda raw: (-said[raw], raw.lower(), raw)):
        term = _term(raw)
        if term:
            usual.setdefault(term, raw)
            total[term] += said[raw]
    weighed = {term: times * _topical(embedder, usual[term]) for term, times in total.items()}
    best = sorted(weighed, key=lambda term: (-weighed[term], term))[:_TOPICS_MAX]
    return tuple(usual[term] for term in best)


@lru_cache(maxsize=50_000)
def _weighed(embedder: StaticEmbedder, raw: str) -> tuple[tuple[str, float], ...]:
    return tuple((part, max(embedder.rarity(part) - 1.0, 0.0)) for part in parts_of(raw))


@lru_cache(maxsize=50_000)
def _term(raw: str) -> str:
    """Return what a token is counted as, or nothing when it is no topic."""
    return "" if len(raw) < _TOPIC_CHARS_MIN or raw.isdecimal() else next(iter(terms(raw)), "")


@lru_cache(maxsize=50_000)
def _topical(embedder: StaticEmbedder, raw: str) -> float:
    return max(embedder.rarity(fold(raw).lower()) - 1.0, 0.1)
