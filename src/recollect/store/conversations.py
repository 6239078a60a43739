"""Conversations created, changed, found and removed: what it means, for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from recollect.answers import Forgotten
from recollect.clock import in_utc
from recollect.errors import ConflictError, StoreBusyError, TooLargeError
from recollect.limits import BRANCH_DEPTH_MAX
from recollect.model import Project
from recollect.store.lineage import below, recounted, retold, sealed
from recollect.store.removal import drop_empty, remove
from recollect.store.shapes import Held

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.model import ConversationInfo
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.shapes import ConversationChange, ConversationFilter, Lease

_replace = msgspec.structs.replace


class Conversations:
    """Workspaces, projects and conversations."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def create(self, workspace: str, conversation: ConversationInfo, project: Project) -> ConversationInfo:
        """Create a conversation and, where missing, its workspace and project; one that exists is returned as it is."""
        if conversation.external_id is not None and (known := await self.get(workspace, conversation.id)) is not None:
            return known  # a request of a conversation that goes on: no need to keep others from writing
        return await self._engine.write(workspace, lambda transaction: create(transaction, conversation, project, inherits=True))

    async def tell(self, workspace: str, seen: Held, title: str | None, summary: str, lease: Lease) -> None:
        """Write what a conversation is about, as it was distilled; a title that somebody gave stays.

        Nothing is written when the conversation has changed since it was seen, or somebody else holds the job.
        """
        await self._engine.write(workspace, lambda transaction: _tell(transaction, seen, title, summary, lease))

    async def put_project(self, workspace: str, project: Project) -> None:
        """Write a project that may have no conversation; one that exists is left as it is."""
        await self._engine.write(workspace, lambda transaction: transaction.conversations.put_project(project))

    async def put(self, workspace: str, held: Held) -> None:
        """Write a conversation just as another store holds it; `ConflictError` when it has gone on here."""
        await self._engine.write(workspace, lambda transaction: _put(transaction, held))

    async def get(self, workspace: str, conversation_id: str) -> ConversationInfo | None:
        """Return a conversation, or None."""
        held = await self.held(workspace, conversation_id)
        return None if held is None else held.conversation

    async def held(self, workspace: str, conversation_id: str) -> Held | None:
        """Return a conversation with its parent and where it goes on, or None."""
        return await self._engine.read(workspace, lambda transaction: transaction.conversations.held(conversation_id))

    async def change(self, workspace: str, conversation_id: str, change: ConversationChange, at: datetime) -> ConversationInfo | None:
        """Change a conversation's title, tags, status or summary; None when there is none."""
        return await self._engine.write(workspace, lambda transaction: _change(transaction, conversation_id, change, at))

    async def find(self, workspace: str, where: ConversationFilter, limit: int) -> list[ConversationInfo]:
        """Return conversations, the latest change first."""
        asked = where if where.before is None else _replace(where, before=in_utc(where.before))
        return await self._engine.read(workspace, lambda transaction: transaction.conversations.find(asked, limit))

    async def branches(self, workspace: str, conversation_id: str) -> list[ConversationInfo]:
        """Return the branches that fork from a conversation, oldest first."""
        found = await self._engine.read(workspace, lambda transaction: transaction.conversations.branches(conversation_id))
        return [held.conversation for held in found]

    async def family(self, workspace: str, conversation_id: str) -> set[str]:
        """Return the ids of a conversation and of all it is related to by branching."""
        return await self._engine.read(workspace, lambda transaction: _family(transaction, conversation_id))

    async def below(self, workspace: str, conversation_ids: list[str]) -> list[Held]:
        """Return every branch below conversations, each after the one it inherits from."""
        return await self._engine.read(workspace, lambda transaction: below(transaction, conversation_ids))

    async def remove(self, workspace: str, conversation_ids: list[str], *, keep_inherited: bool) -> Forgotten:
        """Remove conversations and all that hangs from them; inherited turns stay with their branches when kept."""
        if not conversation_ids:
            return Forgotten()
        return await self._engine.write(workspace, lambda transaction: remove(transaction, conversation_ids, keep_inherited=keep_inherited))

    async def drop_empty(self, workspace: str, conversation_id: str) -> None:
        """Remove a conversation in which nothing was recorded after all; one that holds or awaits anything stays."""
        await self._engine.write(workspace, lambda transaction: drop_empty(transaction, conversation_id))

    async def owner(self, workspace: str, info: ConversationInfo) -> Project:
        """Return the project a conversation belongs to."""
        known = await self.projects(workspace)
        return next((one for one in known if one.id == info.project_id), Project(id=info.project_id, name=info.project))

    async def projects(self, workspace: str) -> list[Project]:
        """Return the projects of a workspace by name."""
        return await self._engine.read(workspace, lambda transaction: transaction.conversations.projects())


async def create(transaction: Transaction, conversation: ConversationInfo, project: Project, *, inherits: bool) -> ConversationInfo:
    """Create a conversation; as a branch it inherits its parent's turns, unless it brings them along."""
    known = await transaction.conversations.held(conversation.id)
    if known is not None:
        return known.conversation
    parent_id = None
    if conversation.branch_of is not None and inherits:
        depth = len(await transaction.conversations.chain(conversation.branch_of))
        if depth >= BRANCH_DEPTH_MAX:
            msg = f"branches are at most {BRANCH_DEPTH_MAX} deep: export conversation {conversation.branch_of} and import it as a new one"
            raise TooLargeError(msg)
        parent_id = conversation.branch_of if depth else None
    empty = _replace(conversation, turn_count=0, message_count=0, last_message=None, project_id=project.id, project=project.name)
    held = Held(conversation=empty, parent_id=parent_id)
    if parent_id is not None:
        held = await retold(transaction, await recounted(transaction, held))
    await transaction.conversations.put_project(project)
    await transaction.conversations.create(sealed(held))
    written = await transaction.conversations.held(conversation.id)  # a project that was there keeps the name it has
    if written is None:
        msg = f"conversation {conversation.id!r} could not be written: try again"
        raise StoreBusyError(msg)
    return written.conversation


async def _put(transaction: Transaction, held: Held) -> None:
    known = await transaction.conversations.held(held.conversation.id)
    if known is None:
        await transaction.conversations.create(held)
    elif known.next_index > held.next_index:
        msg = f"conversation {held.conversation.id} has gone on to turn {known.next_index - 1} since it was copied: copy the other way"
        raise ConflictError(msg)
    else:
        await transaction.conversations.update(held)


async def _tell(transaction: Transaction, seen: Held, title: str | None, summary: str, lease: Lease) -> None:
    held = await transaction.conversations.held(seen.conversation.id)
    if held is None or held != seen or not await transaction.jobs.holds(lease):
        return
    is_ours = held.conversation.title is None or held.has_own_title
    conversation = _replace(held.conversation, title=title if is_ours else held.conversation.title, summary=summary)
    told = _replace(held, conversation=conversation, has_own_title=is_ours and title is not None, told_to=held.next_index - 1)
    await transaction.conversations.update(sealed(told))


async def _change(transaction: Transaction, conversation_id: str, change: ConversationChange, at: datetime) -> ConversationInfo | None:
    held = await transaction.conversations.held(conversation_id)
    if held is None:
        return None
    wanted = {name: value for name, value in msgspec.structs.asdict(change).items() if value is not None}
    own_title = held.has_own_title and change.title is None
    changed = sealed(_replace(held, conversation=_replace(held.conversation, updated_at=at, **wanted), has_own_title=own_title))
    await transaction.conversations.update(changed)
    return changed.conversation


async def _family(transaction: Transaction, conversation_id: str) -> set[str]:
    chain = await transaction.conversations.chain(conversation_id)
    eldest = chain[-1].conversation_id if chain else conversation_id
    return {eldest, *(held.conversation.id for held in await below(transaction, [eldest]))}
