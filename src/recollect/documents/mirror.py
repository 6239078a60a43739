"""Each conversation as a JSON file in a folder, where the user asked for that (`persistence.mirror`)."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.documents.exporting import document_pieces
from recollect.errors import NotFoundError
from recollect.identity import identity
from recollect.store.shapes import ConversationFilter

if TYPE_CHECKING:
    from recollect.model import ConversationInfo
    from recollect.store import Store

_ALL = 1_000_000
_DRAFT = ".tmp"
_writing = threading.Lock()  # the threads of a process share the names of their drafts


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
        """Delete the files of conversations that are gone, and write the others as they are now."""
        infos = await self._store.conversations.find(self._workspace, ConversationFilter(), _ALL)
        kept = {self._file(info.id).name for info in infos}
        for file in self._folder.glob(f"{self._prefix}*.json"):
            if file.name not in kept:
                file.unlink(missing_ok=True)
        self._clear_drafts()
        for info in infos:
            await self._put(info)

    async def _put(self, info: ConversationInfo) -> None:
        """Put a document in the place of the one before, whole or not at all; a conversation that went meanwhile has none."""
        target = self._file(info.id)
        try:
            document = "".join([piece async for piece in document_pieces(self._store, self._workspace, info, "json")])
        except NotFoundError:
            target.unlink(missing_ok=True)
            return
        draft = target.with_suffix(f".{os.getpid()}{_DRAFT}")
        with _writing:
            self._folder.mkdir(parents=True, exist_ok=True)
            try:
                draft.write_text(document, encoding="utf-8")
                draft.replace(target)
            finally:
                draft.unlink(missing_ok=True)

    def _clear_drafts(self) -> None:
        """Delete what a process that died left of a file."""
        with _writing:
            for draft in self._folder.glob(f"{self._prefix}*{_DRAFT}"):
                writer = draft.name.removesuffix(_DRAFT).rpartition(".")[2]
                if not (writer.isdecimal() and _lives(int(writer))):
                    draft.unlink(missing_ok=True)

    def _file(self, conversation_id: str) -> Path:
        return self._folder / f"{self._prefix}{identity('mirror', conversation_id)}.json"


def _lives(process: int) -> bool:
    """Tell whether another process may still be writing."""
    if process == os.getpid():
        return False  # one thread of ours writes at a time, and it is this one
    if os.name != "posix":
        return True  # there, asking is killing
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
