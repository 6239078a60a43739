"""An overview without a model: the title, the findings of summaries and turns, and what was left open; deterministic."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.analysis.shapes import ACTIONS_MAX, FINDINGS_MAX, checked_overview, lines
from recollect.distill.actions import Actions
from recollect.distill.cues import cues
from recollect.distill.extractive import AUTHOR, NOTHING, fold_summaries, quoted, summarise_turns
from recollect.distill.sentences import sentences
from recollect.distill.telling import title_of
from recollect.model import Summary
from recollect.text import terms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from recollect.analysis.material import Material
    from recollect.distill.extractive import Told
    from recollect.model import Json

__all__ = ["AUTHOR", "overview"]

_TELLING = ("cause", "decision", "outcome", "error")


def overview(material: Material, task: str) -> dict[str, Json]:
    """Return an overview in the words of the conversation; findings that have words of the task come first."""
    told = _told(material)
    wanted = frozenset(terms(task))
    actions = lines(_left_open(material), ACTIONS_MAX)
    said = [(one, speaker) for one, speaker in quoted(told.summary) if one != NOTHING]
    answers = sorted((one for one, speaker in said if speaker != "user"), key=lambda one: -sum(kind in cues(one) for kind in _TELLING))
    findings = [*told.key_findings, *answers] or [one for one, _ in said]
    findings.sort(key=lambda one: (-len(wanted & frozenset(terms(one))), one in actions))
    asked = title_of(material.turns, None)
    topic = material.conversation.title or asked or ", ".join(told.topics) or told.summary
    return checked_overview(
        {
            "main_topic": topic,
            "key_findings": lines(findings, FINDINGS_MAX) or [told.actions or told.summary],
            "action_items": actions,
        }
    )


def _told(material: Material) -> Told:
    """Summarise the summaries with what the turns after them came to."""
    recent = summarise_turns(material.turns)
    if not material.summaries:
        return recent
    last = material.summaries[-1]
    newest = Summary(
        id="", conversation_id=last.conversation_id, level=last.level, summary=recent.summary, key_findings=recent.key_findings,
        first_turn=last.last_turn, last_turn=last.last_turn, turn_count=len(material.turns), char_count=recent.chars,
        created_at=last.created_at,
    )  # fmt: skip
    told = fold_summaries([*material.summaries, newest], Actions())
    return msgspec.structs.replace(told, topics=told.topics or recent.topics, actions=recent.actions)


def _left_open(material: Material) -> Iterable[str]:
    """Yield what was said to be left to do, the latest first: later turns may have done what earlier ones left."""
    for turn in reversed(material.turns):
        yield from (one for one in sentences(turn.assistant) if "open" in cues(one) and "chatter" not in cues(one))
