"""Each conversation as a JSON file in a folder, where the user asked for that (`persistence.mirror`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.documents.exporting import document_pieces
from recollect.identity import identity
from recollect.store.shapes import ConversationFilter

if TYPE_CHECKING:
    from recollect.model import ConversationInfo
    from recollect.store import Store

_ALL = 1_000_000


class Mirror:
    """The mirror files of one workspace; other files in the folder are left alone."""

    def __init__(self, folder: str, store: Store, workspace: str) -> None:
        self._folder = Path(folder).expanduser()
        self._store = store
        self._workspace = workspace
        self._prefix = identity("mirror", workspace)[:8] + "-"

    async def write(self, conversation_id: str) -> None:
        """Write a conversation as it is now; one that is not kept has no file."""
        info = await self._store.conversations.get(self._workspace, conversation_id)
        if info is not None:
            await self._put(info)

    async def refresh(self) -> None:
        """Write every conversation as it is now, and delete the files of those that are gone."""
        infos = await self._store.conversations.find(self._workspace, ConversationFilter(), _ALL)
        for info in infos:
            await self._put(info)
        kept = {self._file(info.id).name for info in infos}
        for file in self._folder.glob(f"{self._prefix}*.json"):
            if file.name not in kept:
                file.unlink(missing_ok=True)

    async def _put(self, info: ConversationInfo) -> None:
        """Put a document in the place of the one before, whole or not at all."""
        document = "".join([piece async for piece in document_pieces(self._store, self._workspace, info, "json")])
        target = self._file(info.id)
        draft = target.with_suffix(f".{os.getpid()}.tmp")
        self._folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(document, encoding="utf-8")
        draft.replace(target)

    def _file(self, conversation_id: str) -> Path:
        return self._folder / f"{self._prefix}{identity('mirror', conversation_id)}.json"
