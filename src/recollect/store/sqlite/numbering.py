"""Passage numbers: workspace, project, conversation and place in one 63-bit integer, so that a scope is a range; pure."""

from __future__ import annotations

from recollect.errors import TooLargeError
from recollect.limits import (
    CONVERSATIONS_PER_PROJECT_MAX,
    PASSAGES_PER_CONVERSATION_MAX,
    PROJECTS_PER_WORKSPACE_MAX,
    WORKSPACES_PER_FILE_MAX,
)

PASSAGE_BITS = PASSAGES_PER_CONVERSATION_MAX.bit_length()
_CONVERSATION_BITS = CONVERSATIONS_PER_PROJECT_MAX.bit_length()
_PROJECT_BITS = PROJECTS_PER_WORKSPACE_MAX.bit_length()

Range = tuple[int, int]


def conversation_range(workspace: int, project: int, conversation: int) -> Range:
    """Return the numbers that a conversation's passages may have, both ends included."""
    first = ((workspace << _PROJECT_BITS | project) << _CONVERSATION_BITS | conversation) << PASSAGE_BITS
    return first, first | PASSAGES_PER_CONVERSATION_MAX


def conversation_of(place: int) -> tuple[int, int, int]:
    """Return the workspace, the project and the conversation of a passage number without its last part."""
    project = place >> _CONVERSATION_BITS
    return project >> _PROJECT_BITS, project & PROJECTS_PER_WORKSPACE_MAX, place & CONVERSATIONS_PER_PROJECT_MAX


def project_range(workspace: int, project: int) -> Range:
    """Return the numbers of all passages of a project."""
    return conversation_range(workspace, project, 0)[0], conversation_range(workspace, project, CONVERSATIONS_PER_PROJECT_MAX)[1]


def workspace_range(workspace: int) -> Range:
    """Return the numbers of all passages of a workspace."""
    return project_range(workspace, 0)[0], project_range(workspace, PROJECTS_PER_WORKSPACE_MAX)[1]


def checked(what: str, number: int, number_max: int) -> int:
    """Return a number that still fits, or refuse it by the name of its limit."""
    if number > number_max:
        msg = f"this file already holds {number_max:,} {what}, the most one SQLite store takes: use another file or Neo4j"
        raise TooLargeError(msg)
    return number


def checked_workspace(number: int) -> int:
    """Refuse one workspace too many."""
    return checked("workspaces", number, WORKSPACES_PER_FILE_MAX)
