"""LoCoMo as conversations of ours: ten long dialogues, and questions with the turns that hold the answer; read from RECOLLECT_DATA only."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

_ADVERSARIAL = 5


class Question(msgspec.Struct, frozen=True):
    """A question, its answer, and where it is held: the index of each turn, with the very words."""

    text: str
    answer: str
    evidence: tuple[tuple[int, str], ...]
    category: int


class Dialogue(msgspec.Struct, frozen=True):
    """A dialogue as turns: what one speaker says is the question, what the other answers the answer."""

    name: str
    turns: list[dict[str, Any]]
    questions: list[Question]


def dialogues() -> list[Dialogue]:
    """Return all ten, or nothing when the data is not there."""
    path = Path(os.environ.get("RECOLLECT_DATA") or "nowhere") / "bench" / "locomo10.json"
    if not path.exists():
        return []
    return [_dialogue(sample) for sample in json.loads(path.read_text(encoding="utf-8"))]


def _dialogue(sample: dict[str, Any]) -> Dialogue:
    talk = sample["conversation"]
    turns: list[dict[str, Any]] = []
    place: dict[str, tuple[int, str]] = {}
    for number in range(1, 100):
        if f"session_{number}" not in talk:
            continue
        moment = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        speaker = None
        for said in talk[f"session_{number}"]:
            text = f"{said['speaker']}: {said['text']}"
            if said["speaker"] == talk["speaker_a"] or speaker is None:
                turns.append({"user": text, "assistant": None, "timestamp": moment})
            else:
                before = turns[-1]["assistant"]
                turns[-1]["assistant"] = text if before is None else f"{before}\n{text}"
            speaker = said["speaker"]
            place[said["dia_id"]] = len(turns) - 1, said["text"]
    questions = [
        Question(one["question"], str(one["answer"]), tuple(sorted({place[e] for e in one["evidence"] if e in place})), one["category"])
        for one in sample["qa"]
        if one["category"] != _ADVERSARIAL
    ]
    return Dialogue(sample["sample_id"], turns, [question for question in questions if question.evidence])


class Utterance(msgspec.Struct, frozen=True):
    """What one speaker says; sessions are counted from 1, `place` is LoCoMo's own name for it."""

    session: int
    place: str
    speaker: str
    text: str
    at: datetime


class Asked(msgspec.Struct, frozen=True):
    """A question with the places of the utterances that hold its answer."""

    text: str
    category: int
    gold: frozenset[str]


class Sample(msgspec.Struct, frozen=True):
    """A dialogue by utterances."""

    name: str
    utterances: list[Utterance]
    questions: list[Asked]


def samples() -> list[Sample]:
    """Return all ten by utterances, or nothing when the data is not there."""
    path = Path(os.environ.get("RECOLLECT_DATA") or "nowhere") / "bench" / "locomo10.json"
    return [_sample(one) for one in json.loads(path.read_text(encoding="utf-8"))] if path.exists() else []


def _sample(sample: dict[str, Any]) -> Sample:
    talk = sample["conversation"]
    said: list[Utterance] = []
    for number in range(1, 100):
        for one in talk.get(f"session_{number}", ()):
            at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
            said.append(Utterance(number, one["dia_id"], one["speaker"], one["text"], at))
    places = {one.place for one in said}
    questions = [
        Asked(one["question"], one["category"], frozenset(re.findall(r"D\d+:\d+", " ".join(one["evidence"]))) & places)
        for one in sample["qa"]
        if one["category"] != _ADVERSARIAL
    ]
    return Sample(sample["sample_id"], said, [one for one in questions if one.gold])
