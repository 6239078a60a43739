"""What a process remembers of a file between searches, so that it need not be read again: planes, and how common terms are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.store.sqlite.planes import Planes

_FREQUENCIES_MAX = 20_000


class Remembered:
    """Kept by the engine; only units of work that read use it, and those run one at a time."""

    def __init__(self) -> None:
        self.frequencies: dict[tuple[Any, ...], tuple[int, int]] = {}
        self._planes: Planes | None = None

    def planes(self, model: str) -> Planes:
        """Return the planes of a model, empty before it is first asked for."""
        if self._planes is None or self._planes.model != model:
            from recollect.store.sqlite.planes import Planes  # noqa: PLC0415  only those who search by meaning need NumPy

            self._planes = Planes(model)
        return self._planes

    def remember(self, key: tuple[Any, ...], passages: int, count: int) -> None:
        """Keep how many of so many passages have a term."""
        if len(self.frequencies) >= _FREQUENCIES_MAX:
            self.frequencies.clear()
        self.frequencies[key] = (passages, count)
