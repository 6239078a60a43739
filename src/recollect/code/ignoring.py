"""Which paths of a project its ignore files leave out, by the rules of Git: the deepest file, and in it the last match, decides."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from recollect.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

IGNORE_FILES = (".recollectignore", ".ignore", ".gitignore")  # what stands first decides first
_EXCLUDED = ".git/info/exclude"
IGNORE_FILE_BYTES_MAX = 1_000_000
_PATTERN_CHARS_MAX = 1_000
_PATTERN_WILDCARDS_MAX = 8  # matching takes time with the power of their number
_WILDCARDS = re.compile(r"\*+")


class Rules(msgspec.Struct, frozen=True):
    """The rules of one folder, and of those above it."""

    folder: str = ""  # relative to the root, with a slash at the end unless it is the root
    specs: tuple[Any, ...] = ()  # GitIgnoreSpecs, which are loaded late
    above: Rules | None = None

    def ignores(self, path: str) -> bool:
        """Tell whether a path relative to the root is left out; a folder's path ends with a slash."""
        rules: Rules | None = self
        while rules is not None:
            below = path.removeprefix(rules.folder)
            for spec in rules.specs:
                verdict = spec.check_file(below).include
                if verdict is not None:
                    return verdict
            rules = rules.above
        return False


def rules_of(root: Path, folder: str, names: Collection[str], above: Rules | None) -> Rules | None:
    """Return the rules that hold in a folder with these names in it; those of the folders above when it has none of its own."""
    wanted = [name for name in IGNORE_FILES if name in names]
    if not folder:
        wanted.append(_EXCLUDED)
    found = [spec for name in wanted if (spec := _spec(root / folder / name)) is not None]
    return Rules(folder, tuple(found), above) if found else above


def _spec(path: Path) -> Any:
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as opened:
            text = opened.read(IGNORE_FILE_BYTES_MAX).decode("utf-8-sig", "replace")
    except OSError:
        return None
    try:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415  an extra: only those who walk a project need it
    except ImportError as error:
        msg = "walking a project needs pathspec, which is not installed: pip install 'recollect[code]'"
        raise ConfigError(msg) from error
    return GitIgnoreSpec.from_lines([line for line in text.splitlines() if _is_sound(line)])


def _is_sound(line: str) -> bool:
    from pathspec import GitIgnoreSpec  # noqa: PLC0415  as above

    if len(line) > _PATTERN_CHARS_MAX or len(_WILDCARDS.findall(line)) > _PATTERN_WILDCARDS_MAX:
        return False
    try:
        GitIgnoreSpec.from_lines([line])
    except ValueError:
        return False
    return True
