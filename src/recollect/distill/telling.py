"""What a conversation is called when nobody has given it a title; pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.distill.cues import cues
from recollect.distill.models import TITLE_CHARS_MAX
from recollect.distill.sentences import sentences
from recollect.text import shorten

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import Turn


def title_of(turns: Sequence[Turn], before: str | None) -> str | None:
    """Return a title from what was asked: the first sentence that is no chatter; the one it had when nothing was asked."""
    for turn in turns:
        said = sentences(turn.user) or ([turn.user] if turn.user.strip() else [])
        asked = next((one for one in said if cues(one) != frozenset({"chatter"})), said[0] if said else None)
        if asked is not None:
            return shorten(asked.rstrip(" .!…:"), TITLE_CHARS_MAX)
    return before
