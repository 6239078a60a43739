"""Vectors, summaries and insights: what it means, for every store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.identity import content_hash
from recollect.model import NOT_RECORDED_TAG
from recollect.placing import checksum
from recollect.quoting import insight_text, summary_passages
from recollect.store.lineage import asked_of, existing, spans_of
from recollect.store.shapes import TurnRange, WordedInsight
from recollect.text import term_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from recollect.model import Insight, Summary
    from recollect.store.protocol import Engine, Transaction
    from recollect.store.shapes import Embedded, InsightFilter, Lease, Unembedded, Vector


class Derived:
    """What was worked out from turns."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def put_summaries(
        self,
        workspace: str,
        summaries: list[Summary],
        *,
        lease: Lease | None = None,
        unless: Mapping[str, str | int] | None = None,
        expiries: Mapping[str, datetime] | None = None,
    ) -> bool:
        """Write summaries with the edges to their sources and what they are searched by; one that exists is replaced.

        Those with an expiry are gone from that moment on.

        With a lease nothing is written, and the answer is False, when somebody else holds the job now, or when a turn
        has no longer the content hash, or a lower summary the checksum, that `unless` says.
        """
        return await self._engine.write(
            workspace, lambda transaction: _put_summaries(transaction, workspace, summaries, lease, unless, expiries or {})
        )

    async def shown_summaries(self, workspace: str, conversation_id: str) -> list[Summary]:
        """Return the summaries that a conversation shows: its own, and its ancestors' that end before the fork; each stretch once."""
        return await self._engine.read(workspace, lambda transaction: _shown(transaction, workspace, conversation_id))

    async def summaries_by_id(self, workspace: str, summary_ids: list[str]) -> list[Summary]:
        """Return summaries by their ids, in the order asked for; unknown ones are left out."""
        if not summary_ids:
            return []
        found = await self._engine.read(workspace, lambda transaction: transaction.derived.summaries_by_id(summary_ids))
        by_id = {summary.id: summary for summary in found}
        return [by_id[summary_id] for summary_id in summary_ids if summary_id in by_id]

    async def forget_distilled(self, workspace: str, conversation_id: str) -> None:
        """Delete every summary and vector of a conversation; they can be made again."""
        await self._engine.write(workspace, lambda transaction: _forget_distilled(transaction, workspace, conversation_id))

    async def unembedded(self, workspace: str, conversation_id: str, model: str, limit: int) -> list[Unembedded]:
        """Return passages of a conversation that have no vector of a model yet."""
        return await self._engine.read(workspace, lambda transaction: transaction.derived.unembedded(conversation_id, model, limit))

    async def known_vectors(self, workspace: str, model: str, text_hashes: list[str]) -> dict[str, Vector]:
        """Return the vectors that texts have already, by the hash of the text."""
        return await self._engine.read(workspace, lambda transaction: transaction.derived.known_vectors(model, text_hashes))

    async def put_embeddings(self, workspace: str, model: str, embedded: list[Embedded], lease: Lease | None = None) -> bool:
        """Write vectors of passages that still say what was embedded; False when somebody else holds the job now."""
        return await self._engine.write(workspace, lambda transaction: _put_embeddings(transaction, model, embedded, lease))

    async def summaries(self, workspace: str, conversation_id: str, level: int | None) -> list[Summary]:
        """Return the summaries of a conversation by level and first turn."""
        return await self._engine.read(workspace, lambda transaction: _summaries(transaction, workspace, conversation_id, level))

    async def put_insights(
        self,
        workspace: str,
        insights: list[Insight],
        *,
        expiries: Mapping[str, datetime] | None = None,
        if_standing: bool = False,
        made_of: Sequence[str] = (),
    ) -> bool:
        """Write insights of conversations; one that exists is replaced. Those with an expiry are gone from that moment on.

        `if_standing` writes nothing, and the answer is False, when the turns that one tells of are not as its fingerprint
        says any more, a summary that it was made of is gone, or its conversation takes nothing more: what was forgotten
        meanwhile does not come back as an insight.
        """
        return await self._engine.write(
            workspace,
            lambda transaction: _put_insights(transaction, workspace, insights, expiries or {}, made_of if if_standing else None),
        )

    async def insights(self, workspace: str, conversation_id: str) -> list[Insight]:
        """Return the insights of a conversation, oldest first."""
        return await self._engine.read(workspace, lambda transaction: _insights(transaction, workspace, conversation_id))

    async def find_insights(self, workspace: str, where: InsightFilter, limit: int) -> list[Insight]:
        """Return insights, newest first."""
        return await self._engine.read(workspace, lambda transaction: transaction.derived.find_insights(where, limit))

    async def insights_having(self, workspace: str, where: InsightFilter, terms: Sequence[str], limit: int) -> list[WordedInsight]:
        """Return insights that have one of some terms, the most promising first."""
        if not terms:
            return []
        return await self._engine.read(workspace, lambda transaction: transaction.derived.insights_having(where, list(terms), limit))

    async def fingerprint(self, workspace: str, conversation_id: str) -> tuple[str, int]:
        """Return the fingerprint of a conversation's turns as they are now, and the index of the last, -1 when there is none."""
        return await self._engine.read(workspace, lambda transaction: _fingerprint(transaction, workspace, conversation_id, None))


async def _put_summaries(
    transaction: Transaction,
    workspace: str,
    summaries: list[Summary],
    lease: Lease | None,
    unless: Mapping[str, str | int] | None,
    expiries: Mapping[str, datetime],
) -> bool:
    if lease is not None and not await transaction.jobs.holds(lease):
        return False
    if unless and await _standing(transaction, summaries[0].level, list(unless)) != dict(unless):
        return False
    owners = {owner: await existing(transaction, workspace, owner) for owner in dict.fromkeys(one.conversation_id for one in summaries)}
    for summary in summaries:
        await transaction.derived.put_summary(summary, checksum(summary), summary_passages(summary), expiries.get(summary.id))
    for owner, held in owners.items():
        if lease is not None:
            await transaction.jobs.wake(owner, "embed", held.conversation.updated_at)
    return True


async def _standing(transaction: Transaction, level: int, source_ids: list[str]) -> dict[str, str | int]:
    """Return what the sources of a summary say now, by their hashes."""
    if level == 1:
        return dict(await transaction.turns.hashes(source_ids))
    return {one.id: checksum(one) for one in await transaction.derived.summaries_by_id(source_ids)}


async def _put_embeddings(transaction: Transaction, model: str, embedded: list[Embedded], lease: Lease | None) -> bool:
    if lease is not None and not await transaction.jobs.holds(lease):
        return False
    await transaction.derived.put_embeddings(model, embedded)
    return True


async def _forget_distilled(transaction: Transaction, workspace: str, conversation_id: str) -> None:
    held = await existing(transaction, workspace, conversation_id)
    await transaction.derived.delete_summaries(conversation_id)
    await transaction.derived.delete_embeddings(conversation_id)
    await transaction.jobs.wake(conversation_id, "embed", held.conversation.updated_at)
    await transaction.jobs.wake(conversation_id, "summarize", held.conversation.updated_at)


async def _shown(transaction: Transaction, workspace: str, conversation_id: str) -> list[Summary]:
    found: dict[tuple[int, int, int], Summary] = {}
    for span in reversed(await spans_of(transaction, workspace, conversation_id)):  # its own come before an ancestor's
        for summary in await transaction.derived.summaries(span.conversation_id, None):
            if span.last is None or summary.last_turn <= span.last:
                found.setdefault((summary.level, summary.first_turn, summary.last_turn), summary)
    return [found[key] for key in sorted(found)]


async def _summaries(transaction: Transaction, workspace: str, conversation_id: str, level: int | None) -> list[Summary]:
    await existing(transaction, workspace, conversation_id)
    return await transaction.derived.summaries(conversation_id, level)


async def _put_insights(
    transaction: Transaction, workspace: str, insights: list[Insight], expiries: Mapping[str, datetime], made_of: Sequence[str] | None
) -> bool:
    for insight in insights:
        held = await existing(transaction, workspace, insight.conversation_id)
        if made_of is None:
            continue
        now, _ = await _fingerprint(transaction, workspace, insight.conversation_id, insight.last_turn)
        standing = len(await transaction.derived.summaries_by_id(list(made_of))) if made_of else 0
        if now != insight.source_hash or standing < len(made_of) or NOT_RECORDED_TAG in held.conversation.tags:
            return False
    for insight in insights:
        worded = WordedInsight(insight, term_text(insight_text(insight)), checksum(insight))
        await transaction.derived.put_insight(worded, expiries.get(insight.id))
    return True


async def _fingerprint(transaction: Transaction, workspace: str, conversation_id: str, last: int | None) -> tuple[str, int]:
    """Hash what the turns of a history say, up to one of them."""
    said: list[str] = []
    newest = -1
    for span in asked_of(await spans_of(transaction, workspace, conversation_id), TurnRange(last=last)):
        for turn in await transaction.turns.outline(span):
            said.append(f"{turn.index} {turn.content_hash}")
            newest = turn.index
    return content_hash("\n".join(said)), newest


async def _insights(transaction: Transaction, workspace: str, conversation_id: str) -> list[Insight]:
    await existing(transaction, workspace, conversation_id)
    return await transaction.derived.insights(conversation_id)
