"""What is kept of a project, and for how long, as the user's settings say it; pure but for looking where a folder is."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from recollect.model import Project, Turn
    from recollect.settings import ProjectSettings, Settings

_DEFAULT_DAYS = {"full": None, "summary": 2.0}
_MARKER = re.compile(r"\[\s*(?:do[\s-]+not[\s-]+record|off[\s-]+the[\s-]+record)\s*\]", re.IGNORECASE)
ANY_PROJECT = "*"


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of one project: everything, or summaries and relations, or nothing; and for how many days."""

    withholds: bool = False
    excludes: bool = False
    turns_days: float | None = None
    summaries_days: float | None = None

    def turn_expiry(self, recorded_at: datetime) -> datetime | None:
        """Return the moment from which a turn is gone: so long after it was recorded, whatever time its sender gave it."""
        return _after(recorded_at, self.turns_days)

    def summary_expiry(self, made_at: datetime) -> datetime | None:
        """Return the moment from which a summary is gone."""
        return _after(made_at, self.summaries_days)


KEEPS_ALL = Policy()


def _after(moment: datetime, days: float | None) -> datetime | None:
    try:
        return None if days is None else moment + timedelta(days=days)
    except OverflowError:  # after the end of time is never
        return None


def policy_of(settings: Settings, project: Project, folder: str | None = None) -> Policy:
    """Return the policy of a project: by its own id, its folder, its name, else that of all others.

    `folder` is where a conversation of a named project is held; a project may be worked on in several.
    """
    if not settings.projects:
        return KEEPS_ALL
    projects = {_folder(name): chosen for name, chosen in settings.projects.items()}
    found = _named(projects, [project.external_id, folder, project.root, project.id, project.name])
    return KEEPS_ALL if found is None else _policy(found)


def _named(projects: Mapping[str, ProjectSettings], names: Iterable[str | None]) -> ProjectSettings | None:
    return next((projects[name] for name in (*names, ANY_PROJECT) if name is not None and name in projects), None)


def _folder(name: str) -> str:
    """Return a folder as projects name theirs, `~` and links resolved, without a slash at its end; any other name as it is."""
    try:
        path = Path(name).expanduser()
        return str(path.resolve()) if path.is_absolute() else name
    except (RuntimeError, OSError, ValueError):  # a home that nobody has, or a name that is no path
        return name


def _policy(chosen: ProjectSettings) -> Policy:
    default = _DEFAULT_DAYS[chosen.privacy]
    return Policy(
        withholds=chosen.privacy == "summary",
        excludes=chosen.exclude,
        turns_days=_days(chosen.retention.turns_days, default),
        summaries_days=_days(chosen.retention.summaries_days, default),
    )


def _days(given: float | str | None, default: float | None) -> float | None:
    if given is None:
        return default
    return None if isinstance(given, str) else given


def is_marked(turn: Turn) -> bool:
    """Tell whether a user asked, in the turn itself, that it is not recorded."""
    return any(message.role == "user" and _MARKER.search(message.text) for message in turn.messages)
