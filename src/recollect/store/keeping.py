"""What a store keeps beside the graph, by query: what expires, requests that come in pieces, what models spent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from recollect.answers import ModelSpending
    from recollect.model import ModelCall
    from recollect.store.shapes import Room


class RetentionRows(Protocol):
    """What has a time after which it is gone, by query; each with its conversation."""

    async def soonest(self, until: datetime) -> datetime | None:
        """Return when the next of it expires, or None when nothing does until then."""
        ...

    async def turns(self, now: datetime) -> list[tuple[str, str]]:
        """Return the turns that have expired."""
        ...

    async def summaries(self, now: datetime) -> list[tuple[str, str]]:
        """Return the summaries that have expired."""
        ...

    async def told_before(self, moment: datetime, project_ids: tuple[str, ...] | None) -> list[tuple[str, str]]:
        """Return the summaries that were made before a moment, and all of whose turns are gone, and those that fold them, whenever made."""
        ...

    async def delete_summaries(self, summary_ids: list[str]) -> None:
        """Delete summaries; those that fold them stay until their own time is over."""
        ...

    async def insights(self, now: datetime) -> list[tuple[str, str]]:
        """Return the insights that have expired."""
        ...

    async def insights_before(self, moment: datetime, project_ids: tuple[str, ...] | None, owners: list[str]) -> list[tuple[str, str]]:
        """Return the insights that were made before a moment, and all of some conversations."""
        ...

    async def delete_insights(self, insight_ids: list[str]) -> None:
        """Delete insights."""
        ...

    async def expiries(self, conversation_id: str) -> dict[str, datetime]:
        """Return when the summaries and insights of a conversation expire; those that never do are left out."""
        ...


class RequestRows(Protocol):
    """Requests that come in pieces: what is known of each so far, until it is whole."""

    async def get(self, request_id: str) -> str | None:
        """Return the sketch of a request, or None."""
        ...

    async def put(self, request_id: str, conversation_id: str, sketch: str, at: datetime) -> None:
        """Write the sketch of a request of a conversation."""
        ...

    async def delete(self, request_id: str) -> bool:
        """Delete the sketch of a request; False when there is none."""
        ...

    async def owner(self, request_id: str) -> str | None:
        """Return the conversation of a request, or None when there is no sketch of it."""
        ...

    async def is_open(self, conversation_id: str) -> bool:
        """Tell whether a conversation has a request that is not whole yet."""
        ...

    async def forget(self, conversation_ids: list[str]) -> None:
        """Delete the sketches of conversations that go."""
        ...

    async def forget_told(self, turn_ids: list[str]) -> None:
        """Delete the sketches of requests of which a turn goes, while it is still there: a sketch says all that it said."""
        ...

    async def idle(self, before: datetime) -> list[str]:
        """Return the requests to which nothing came since a moment, the oldest first."""
        ...


class SpendingRows(Protocol):
    """What models were asked and spent, by query."""

    async def put(self, call: ModelCall) -> None:
        """Write a call down, in the place of what was written of it before."""
        ...

    async def hold(self, use: str) -> None:
        """Let nobody else write down a call of this use until the transaction ends."""
        ...

    async def tokens(self, use: str, since: datetime, underway_since: datetime) -> Room:
        """Count the tokens, in and out, of a use since a moment; what is open counts as under way only from another moment on."""
        ...

    async def totals(self, since: datetime | None) -> list[ModelSpending]:
        """Return what was spent since a moment, or ever, by use and model."""
        ...
