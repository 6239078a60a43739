"""What a memory is made of: store, settings and parts, each made when it is first needed; every half of `Memory` stands on it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from recollect.capture.paths import place_of
from recollect.checks import checked_name, checked_text
from recollect.distill.metrics import Metrics
from recollect.errors import InputError, NotFoundError
from recollect.identity import identity
from recollect.limits import TAG_CHARS_MAX, TAGS_MAX, TITLE_CHARS_MAX
from recollect.model import ConversationInfo
from recollect.projects import Projects
from recollect.record.recorder import Recorder
from recollect.text import shorten

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from recollect.clock import Clock, Ids
    from recollect.compose.contexts import Contexts
    from recollect.distill.background import Background
    from recollect.distill.models import SummaryModel
    from recollect.documents.mirror import Mirror
    from recollect.model import Project
    from recollect.recall.recalling import Recall
    from recollect.record.requests import OpenRequests
    from recollect.settings import Settings
    from recollect.store import Store


class Core:
    """One workspace of one store, with what records, finds and composes."""

    def __init__(self, store: Store, settings: Settings, clock: Clock, ids: Ids, *, summary_model: SummaryModel | None = None) -> None:
        self.store = store
        self.settings = settings
        self.workspace = settings.workspace
        self.clock = clock
        self.ids = ids
        self.metrics = Metrics()
        self.recorder = Recorder(store, settings.workspace, settings, clock, on_recorded=self._recorded)
        self._summary_model = summary_model
        self._background: Background | None = None
        self._projects = Projects(store, settings.workspace, self._clean)

    @cached_property
    def recall(self) -> Recall:
        """What is asked in words."""
        from recollect.recall.recalling import Recall  # noqa: PLC0415  only those who ask need it

        return Recall(self.store, self.settings, self.clock, self.metrics)

    @cached_property
    def contexts(self) -> Contexts:
        """What is composed."""
        from recollect.compose.contexts import Contexts  # noqa: PLC0415  as above

        return Contexts(self.store, self.settings, self.clock, self.recall, self._clean)

    @cached_property
    def requests(self) -> OpenRequests:
        """Requests that come in pieces."""
        from recollect.record.requests import OpenRequests  # noqa: PLC0415  as above

        return OpenRequests(self.store, self.settings, self.clock, self.recorder, self._begun)

    @cached_property
    def _mirror(self) -> Mirror | None:
        folder = self.settings.agent.memory.persistence.mirror
        if folder is None:
            return None
        from recollect.documents.mirror import Mirror  # noqa: PLC0415  only those who mirror need it

        return Mirror(folder, self.store, self.workspace)

    def _recorded(self, turns: int, seconds: float) -> None:
        self.metrics.recorded(turns, seconds)
        if self._background is not None:
            self._background.wake()

    async def get_info(self, conversation_id: str) -> ConversationInfo:
        """Return what a list shows of a conversation."""
        info = await self.store.conversations.get(self.workspace, conversation_id)
        if info is None:
            msg = f"there is no conversation {conversation_id!r} in workspace {self.workspace!r}: `recollect conversations` lists them"
            raise NotFoundError(msg)
        return info

    async def mirrored(self, conversation_id: str) -> None:
        """Keep the conversation as a JSON file too, where the user asked for that."""
        if self._mirror is not None and self.recorder.enabled:
            await self._mirror.write(conversation_id)

    async def _mirrored_anew(self) -> None:
        """Write every mirror file again after something was removed."""
        if self._mirror is not None:
            await self._mirror.refresh()

    def _begun(
        self,
        cwd: str | os.PathLike[str] | None,
        *,
        project: str | None,
        title: str | None,
        tags: Sequence[str] = (),
        agent: str | None,
        external_id: str | None,
    ) -> tuple[ConversationInfo, Project]:
        """Return a conversation as it begins, and its project; nothing is written."""
        place = place_of(None if cwd is None else self._projects.path(cwd))
        owner = self._projects.of(project, place)
        agent = None if agent is None else self._clean_name("agent", agent)
        external_id = None if external_id is None else self._clean_name("external_id", external_id)
        own_id = self.ids.fresh() if external_id is None else identity("conversation", self.workspace, owner.id, agent, external_id)
        now = self.clock.now()
        info = ConversationInfo(
            id=own_id, title=None if title is None else self.clean_title(title), tags=self.clean_tags(tags), agent=agent,
            external_id=external_id, project_id=owner.id, project=owner.name, cwd=place.cwd, created_at=now, updated_at=now,
        )  # fmt: skip
        return info, owner

    def _clean_name(self, name: str, value: object) -> str:
        return checked_name(name, self._clean(checked_text(name, value)))

    def _clean(self, text: str) -> str:
        return self.recorder.reading().cleaner.text(text)

    def clean_title(self, title: str) -> str:
        """Return a title without secrets, on one line."""
        return shorten(self._clean(checked_text("title", title)), TITLE_CHARS_MAX)

    def clean_tags(self, tags: Sequence[str]) -> tuple[str, ...]:
        """Return tags without secrets, each once."""
        if isinstance(tags, str):
            msg = f"tags is a list of words, not the text {tags!r}"
            raise InputError(msg)
        kept = tuple(dict.fromkeys(self._clean(str(tag)).strip()[:TAG_CHARS_MAX] for tag in tags if str(tag).strip()))
        if len(kept) > TAGS_MAX:
            msg = f"a conversation has at most {TAGS_MAX} tags, not {len(kept)}"
            raise InputError(msg)
        return kept
