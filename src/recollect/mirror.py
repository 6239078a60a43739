"""Each conversation as a JSON file in a folder, where the user asked for that (`persistence.mirror`)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.identity import identity

if TYPE_CHECKING:
    from collections.abc import Iterable


class Mirror:
    """The mirror files of one workspace; other files in the folder are left alone."""

    def __init__(self, folder: str, workspace: str) -> None:
        self._folder = Path(folder).expanduser()
        self._prefix = identity("mirror", workspace)[:8] + "-"

    def _file(self, conversation_id: str) -> Path:
        return self._folder / f"{self._prefix}{identity('mirror', conversation_id)}.json"

    def write(self, conversation_id: str, document: str) -> None:
        """Put a document in the place of the one before, whole or not at all."""
        target = self._file(conversation_id)
        draft = target.with_suffix(f".{os.getpid()}.tmp")
        self._folder.mkdir(parents=True, exist_ok=True)
        draft.write_text(document, encoding="utf-8")
        draft.replace(target)

    def keep_only(self, conversation_ids: Iterable[str]) -> None:
        """Delete the files of conversations that are gone."""
        kept = {self._file(conversation_id).name for conversation_id in conversation_ids}
        for file in self._folder.glob(f"{self._prefix}*.json"):
            if file.name not in kept:
                file.unlink(missing_ok=True)
