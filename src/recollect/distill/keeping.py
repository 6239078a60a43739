"""Which policy a conversation is kept under: by its project, and by the folder it is held in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.capture.paths import place_of
from recollect.errors import InputError
from recollect.policies import KEEPS_ALL, policy_of

if TYPE_CHECKING:
    from recollect.model import ConversationInfo, Project
    from recollect.policies import Policy
    from recollect.settings import Settings
    from recollect.store import Store


async def conversation_policy(store: Store, workspace: str, settings: Settings, info: ConversationInfo) -> Policy:
    """Return the policy of a conversation's project."""
    if not settings.projects:
        return KEEPS_ALL
    return policy_in(settings, await store.conversations.owner(workspace, info), info.cwd)


def policy_in(settings: Settings, project: Project, cwd: str | None) -> Policy:
    """Return the policy of a project as it is worked on in a directory."""
    return policy_of(settings, project, _folder(cwd))


def _folder(cwd: str | None) -> str | None:
    """Return the root of a working directory; None of one that cannot be looked at, such as another machine's."""
    try:
        return place_of(cwd).root
    except InputError:
        return None
