"""The memory of coding agents: public names, nothing else; each is imported when it is first used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from recollect.agent.agent import ConversationAgent
    from recollect.agent.project import project_settings
    from recollect.agent.settings import AgentConfig, Reply
    from recollect.answers import (
        AccessedFile,
        Analyses,
        Analysis,
        Hit,
        Recorded,
        SearchResult,
        Session,
        SimilarConversation,
        Stats,
        Verification,
    )
    from recollect.capture.messages import messages_to_turns
    from recollect.capture.payload import engine_payload_to_turns
    from recollect.compose.context import Context, Item, LeftOut, Section
    from recollect.compose.fallback import history_fallback
    from recollect.config import load_settings
    from recollect.conversation import Conversation
    from recollect.documents.copying import copy_store
    from recollect.errors import (
        ConfigError,
        ConflictError,
        DamagedStoreError,
        InputError,
        NewerStoreError,
        NotAllowedError,
        NotFoundError,
        RecollectError,
        StoreBusyError,
        StoreError,
        StoreUnavailableError,
        TooLargeError,
    )
    from recollect.halves.analyzing import batch_analyze
    from recollect.memory import Memory
    from recollect.model import Checkpoint, CodeChange, ContextFile, ConversationInfo, Insight, Message, Summary, ToolCall, ToolResult, Turn
    from recollect.settings import Settings
    from recollect.trace.answers import CheckpointEntry, ContextUsage, FileUsage, Flow, ToolReliability, Why

_HOMES = {
    "recollect.agent.agent": ("ConversationAgent",),
    "recollect.agent.project": ("project_settings",),
    "recollect.agent.settings": ("AgentConfig", "Reply"),
    "recollect.halves.analyzing": ("batch_analyze",),
    "recollect.answers": (
        "AccessedFile",
        "Analyses",
        "Analysis",
        "Hit",
        "Recorded",
        "SearchResult",
        "Session",
        "Stats",
        "Verification",
        "SimilarConversation",
    ),
    "recollect.capture.messages": ("messages_to_turns",),
    "recollect.capture.payload": ("engine_payload_to_turns",),
    "recollect.compose.context": ("Context", "Item", "LeftOut", "Section"),
    "recollect.compose.fallback": ("history_fallback",),
    "recollect.config": ("load_settings",),
    "recollect.conversation": ("Conversation",),
    "recollect.documents.copying": ("copy_store",),
    "recollect.errors": (
        "ConfigError",
        "ConflictError",
        "DamagedStoreError",
        "InputError",
        "NewerStoreError",
        "NotAllowedError",
        "NotFoundError",
        "RecollectError",
        "StoreBusyError",
        "StoreError",
        "StoreUnavailableError",
        "TooLargeError",
    ),
    "recollect.memory": ("Memory",),
    "recollect.model": (
        "Checkpoint",
        "CodeChange",
        "ContextFile",
        "ConversationInfo",
        "Insight",
        "Message",
        "Summary",
        "ToolCall",
        "ToolResult",
        "Turn",
    ),
    "recollect.settings": ("Settings",),
    "recollect.trace.answers": ("CheckpointEntry", "ContextUsage", "FileUsage", "Flow", "ToolReliability", "Why"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__version__ = "0.1.0"
__all__ = [
    "AccessedFile",
    "AgentConfig",
    "Analyses",
    "Analysis",
    "Checkpoint",
    "CheckpointEntry",
    "CodeChange",
    "ConfigError",
    "ConflictError",
    "Context",
    "ContextFile",
    "ContextUsage",
    "Conversation",
    "ConversationAgent",
    "ConversationInfo",
    "DamagedStoreError",
    "FileUsage",
    "Flow",
    "Hit",
    "InputError",
    "Insight",
    "Item",
    "LeftOut",
    "Memory",
    "Message",
    "NewerStoreError",
    "NotAllowedError",
    "NotFoundError",
    "RecollectError",
    "Recorded",
    "Reply",
    "SearchResult",
    "Section",
    "Session",
    "Settings",
    "SimilarConversation",
    "Stats",
    "StoreBusyError",
    "StoreError",
    "StoreUnavailableError",
    "Summary",
    "TooLargeError",
    "ToolCall",
    "ToolReliability",
    "ToolResult",
    "Turn",
    "Verification",
    "Why",
    "__version__",
    "batch_analyze",
    "copy_store",
    "engine_payload_to_turns",
    "history_fallback",
    "load_settings",
    "messages_to_turns",
    "project_settings",
]


def __getattr__(name: str) -> Any:
    home = _HOME_OF.get(name)
    if home is None:
        msg = f"module 'recollect' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module  # noqa: PLC0415  nothing is imported before it is asked for

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
