"""What each half of `Memory` has of the whole, said once: the parts a memory is made of, and what only the whole can do."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from recollect.clock import Clock, Ids
    from recollect.config import Settings
    from recollect.distill.background import Background
    from recollect.distill.metrics import Metrics
    from recollect.distill.models import SummaryModel
    from recollect.model import ConversationInfo
    from recollect.projects import Projects
    from recollect.recalling import Recall
    from recollect.recorder import Recorder
    from recollect.requests import OpenRequests
    from recollect.store import Store


class Half:
    """A part of what a memory does; `Memory` is all of them and makes what is named here."""

    store: Store
    workspace: str
    settings: Settings
    clock: Clock
    ids: Ids
    metrics: Metrics
    recorder: Recorder
    _projects: Projects
    _summary_model: SummaryModel | None
    _background: Background | None

    @cached_property
    def recall(self) -> Recall:
        """What is asked in words."""
        raise NotImplementedError

    @cached_property
    def requests(self) -> OpenRequests:
        """Requests that come in pieces."""
        raise NotImplementedError

    async def get_info(self, conversation_id: str) -> ConversationInfo:
        """Return what a list shows of a conversation."""
        raise NotImplementedError

    def _clean(self, text: str) -> str:
        raise NotImplementedError

    async def _mirrored_anew(self) -> None:
        raise NotImplementedError
