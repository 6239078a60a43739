"""What only the engine's wire format has (FORMATS §2): messages that carry files given as context, and diffs; pure.

Neither is something that was said: a file becomes a context file of its turn, a chunk a change, and the text of both
stays out of the messages.
"""

from __future__ import annotations

import json
from typing import Any, cast

from recollect.identity import content_hash

ROLES = frozenset({"context_file", "diff"})


def records_of(content: object) -> list[dict[str, Any]]:
    """Return the records of a content: a list of them, one alone, or the JSON text of either."""
    value: Any = content
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return []
    found = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", one) for one in found if isinstance(one, dict)]


def context_records(content: object) -> list[dict[str, Any]]:
    """Return the files of a context message, each with the hash of its text instead of the text."""
    return [_hashed(one) for one in records_of(content)]


def _hashed(record: dict[str, Any]) -> dict[str, Any]:
    text = record.get("file_content")
    kept = {name: value for name, value in record.items() if name != "file_content"}
    return {**kept, "content_hash": content_hash(text)} if isinstance(text, str) and not kept.get("content_hash") else kept
