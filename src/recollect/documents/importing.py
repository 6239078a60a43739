"""A document → the conversation it tells of, recorded again under its own id or a fresh one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from recollect.capture.clean import parse_json
from recollect.documents.document import document_closing, document_opening, document_turn, read_document, refuse_altered
from recollect.errors import ConflictError
from recollect.identity import identity
from recollect.model import Project
from recollect.placing import place_turn, unplaced
from recollect.store.shapes import TurnRange

if TYPE_CHECKING:
    from collections.abc import Sequence

    from recollect.clock import Ids
    from recollect.model import ConversationInfo, Json, Turn
    from recollect.record.recorder import Recorder
    from recollect.store import Store

_replace = msgspec.structs.replace


class Importer:
    """Reads documents into one workspace."""

    def __init__(self, store: Store, workspace: str, recorder: Recorder, ids: Ids) -> None:
        self._store = store
        self._workspace = workspace
        self._recorder = recorder
        self._ids = ids

    async def read(self, document: Any, *, replace: bool, new_id: bool) -> ConversationInfo:
        """Record what a document tells; the same again changes nothing, another under its id is a `ConflictError`."""
        parsed = parse_json(document) if isinstance(document, str | bytes) else document
        refuse_altered(parsed)
        cleaned: Json = self._recorder.reading().cleaner.payload(parsed)
        read = read_document(cleaned, "")
        project = self._project(read.project)
        own_id = self._ids.fresh() if new_id else read.conversation.id
        info = _replace(read.conversation, id=own_id, project_id=project.id, project=project.name)
        existing = await self._store.conversations.get(self._workspace, own_id)
        if existing is not None and await self._holds(existing, info, read.turns):
            return existing
        if existing is not None and not replace:
            msg = f"conversation {own_id} is already there with other content: import it with replace, or under a new id"
            raise ConflictError(msg)
        turns = [_replace(turn, request_id=None) for turn in read.turns] if new_id else read.turns
        return await self._recorder.restore(info, project, turns, replace=replace)

    async def _holds(self, existing: ConversationInfo, info: ConversationInfo, turns: Sequence[Turn]) -> bool:
        """Tell whether a conversation says just what a document says; whose project it is in does not matter."""
        nowhere = Project(id="", name="")
        same = _replace(existing, branch_of=info.branch_of, from_turn=info.from_turn, cwd=info.cwd)
        stored = await self._store.turns.history(self._workspace, existing.id, TurnRange())
        return _document(stored, same, nowhere) == _document(turns, info, nowhere)

    def _project(self, project: Project) -> Project:
        key = ("name", project.external_id) if project.external_id is not None else ("root", project.root)
        return _replace(project, id=identity("project", self._workspace, *key))


def _document(turns: Sequence[Turn], info: ConversationInfo, project: Project) -> str:
    placed = [place_turn(unplaced(turn) if turn.id else turn, info.id, turn.index, turn.first_sequence) for turn in turns]
    return document_opening(info, project) + ",\n".join(document_turn(turn) for turn in placed) + document_closing()
