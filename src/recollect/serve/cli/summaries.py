"""How summaries look on a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.serve.cli.output import safe, styled, wrapped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.model import Summary


def show_summaries(summaries: Sequence[Summary]) -> None:
    """Print summaries, the highest level first."""
    if not summaries:
        print("no summaries yet: the last turns stay as they are")
    for one in sorted(summaries, key=lambda summary: (-summary.level, summary.first_turn)):
        turns = f"turn {one.first_turn}" if one.first_turn == one.last_turn else f"turns {one.first_turn}–{one.last_turn}"
        print(styled(f"{turns} · level {one.level} · {one.author}", "bold"))
        print(wrapped(safe(one.summary)))
        if one.actions:
            print(wrapped(safe(f"did    {one.actions}")))
        for finding in one.key_findings:
            print(wrapped(safe(f"found  {finding}")))
        if one.topics:
            print(safe(f"about  {', '.join(one.topics)}"))
        print()
