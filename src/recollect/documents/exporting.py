"""A conversation of a store → its document, in pieces, so that one may be larger than memory; the way back is `importing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from recollect.documents.document import document_closing, document_opening, document_turn, markdown_opening, markdown_turn
from recollect.errors import InputError
from recollect.limits import TURNS_PER_PAGE
from recollect.store.shapes import TurnRange

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from recollect.model import ConversationInfo, Turn
    from recollect.store import Store

Format = Literal["json", "markdown"]


async def all_turns(store: Store, workspace: str, conversation_id: str) -> AsyncIterator[Turn]:
    """Yield the turns that a conversation shows, what it inherits included, read in pages."""
    first = 0
    while page := await store.turns.history(workspace, conversation_id, TurnRange(first=first, limit=TURNS_PER_PAGE)):
        for turn in page:
            yield turn
        first = page[-1].index + 1


async def document_pieces(store: Store, workspace: str, info: ConversationInfo, form: Format) -> AsyncIterator[str]:
    """Yield a conversation as one document, inherited turns written in."""
    turns = all_turns(store, workspace, info.id)
    if form == "markdown":
        yield markdown_opening(info)
        async for turn in turns:
            yield markdown_turn(turn)
        return
    if form != "json":
        msg = f"a conversation is exported as json or markdown, not as {form!r}"
        raise InputError(msg)
    yield document_opening(info, await store.conversations.owner(workspace, info))
    separator = ""
    async for turn in turns:
        yield separator + document_turn(turn)
        separator = ",\n"
    yield document_closing()
