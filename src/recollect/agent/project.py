"""The file of an agent project → the user's settings with its `agent` block over them; nothing else of it is heeded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec

from recollect.config import load_settings, read_values, settings_from
from recollect.errors import ConfigError

if TYPE_CHECKING:
    import os

    from recollect.settings import Settings

_BLOCK = "agent"


def project_settings(path: str | os.PathLike[str], settings: Settings | None = None) -> Settings:
    """Return settings, the user's own by default, with the `agent` block of a project's YAML file over them.

    A project's file names no store, no endpoint and no key, since whoever wrote the project is not who pays for them:
    `ConfigError` when it does, or when it mirrors conversations to a folder that is not its own.
    """
    file = Path(path)
    base = load_settings() if settings is None else settings
    values = read_values(file, is_named=True)
    other = next((key for key in values if key != _BLOCK), None)
    if other is not None:
        msg = (
            f"{file} says {str(other)[:60]!r}: a project's file holds the block 'agent' alone, the rest is read from your own configuration"
        )
        raise ConfigError(msg)
    block = _over(msgspec.to_builtins(base.agent), values.get(_BLOCK))
    read = settings_from({"store": base.store, _BLOCK: block}, str(file)).agent
    mirror = read.memory.persistence.mirror
    if mirror is None or mirror == base.agent.memory.persistence.mirror:
        return msgspec.structs.replace(base, agent=read)
    folder = (file.parent / mirror).resolve()
    if not folder.is_relative_to(file.parent.resolve()):
        msg = f"{file} mirrors conversations to {mirror!r}, which is not below its own folder: name one that is"
        raise ConfigError(msg)
    persistence = msgspec.structs.replace(read.memory.persistence, mirror=str(folder))
    return msgspec.structs.replace(
        base, agent=msgspec.structs.replace(read, memory=msgspec.structs.replace(read.memory, persistence=persistence))
    )


def _over(base: Any, given: Any) -> Any:
    """Return values with others over them, group by group."""
    if not isinstance(base, dict) or not isinstance(given, dict):
        return base if given is None else given
    known, more = cast("dict[str, Any]", base), cast("dict[str, Any]", given)
    return {**known, **{key: _over(known.get(key), value) for key, value in more.items()}}
