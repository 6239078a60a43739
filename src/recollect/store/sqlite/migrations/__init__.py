"""The schema of the SQLite file, as the list of steps that made it; each step is a file, and runs once, in one transaction.

Plain tables and foreign keys that cascade: any SQLite tool can read the file. Times are ISO 8601 in UTC, lists and
arguments are JSON. Passages are numbered so that a scope is a range of them (`numbering`). Deleting a passage removes
its terms from the full-text index by trigger, so no tool can leave them behind. Uuids follow from identity, so the same
conversation restored into two workspaces has the same ones: they are indexed, and unique below their parent only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

if TYPE_CHECKING:
    from collections.abc import Callable

    import apsw

APPLICATION_ID = 0x5243_4C54  # "RCLT"

STEPS = (
    "the_graph",
    "full_text",
    "references",
    "distilling",
    "recalling",
    "retaining",
    "coding",
    "timing",
    "spending",
    "analysing",
    "gathering",
    "meaning",
    "queueing",
    "renaming",
)


def _step(name: str) -> Callable[[apsw.Connection], None]:
    def run(connection: apsw.Connection) -> None:
        from importlib import import_module  # noqa: PLC0415  a file that is up to date needs none of them

        statements: LiteralString = import_module(f"recollect.store.sqlite.migrations.{name}").STEP
        connection.execute(statements)

    return run


MIGRATIONS = tuple(_step(name) for name in STEPS)
