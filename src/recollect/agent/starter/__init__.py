"""A starter project: an agent with memory and tools, its configuration, an example conversation, a test; runs as it is written."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from recollect.errors import ConflictError, InputError

if TYPE_CHECKING:
    import os

FILES = ("README.md", "agent.yaml", "agent.py", "example.json", "test_agent.py")
_NAME = "%NAME%"


def write_starter(folder: str | os.PathLike[str]) -> list[Path]:
    """Write the project into a folder, which is made if it is missing; nothing that is there is touched, `ConflictError` if it would be."""
    if not str(folder).strip():
        msg = "a starter project needs a folder: name one, or . for this one"
        raise InputError(msg)
    target = Path(folder).absolute()
    taken = [name for name in FILES if (target / name).exists()]
    if taken:
        msg = f"{target} has {', '.join(taken)} already: choose another folder, or move them away"
        raise ConflictError(msg)
    shown = target.name.encode(errors="replace").decode().replace("\\", "/").replace('"', "'")  # it stands in a docstring
    try:
        target.mkdir(parents=True, exist_ok=True)
        written = [target / name for name in FILES]
        for path in written:
            text = files(__package__ or "").joinpath(f"{path.name}.txt").read_text(encoding="utf-8")
            with path.open("x", encoding="utf-8") as opened:
                opened.write(text.replace(_NAME, shown))
    except OSError as error:
        msg = f"the project cannot be written to {target}: {error.strerror or error}"
        raise InputError(msg) from error
    return written
