"""Whatever a caller holds → values and text that JSON can hold; pure, and never raises."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

SUMMARY_CHARS_MAX = 200
DEPTH_MAX = 64
INTEGER_MAX = 2**63 - 1

Json = dict[str, Any]


def plain(value: object, depth: int = 0) -> Any:
    """Return a copy for JSON, so that what the caller changes next changes nothing here; what cannot be read becomes a mark."""
    try:
        return _copied(value, depth)
    except Exception:  # noqa: BLE001  a caller's object may raise anything while it is read
        return f"[unreadable {type(value).__name__}]"


def _copied(value: object, depth: int) -> Any:
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int):
        return value if abs(value) <= INTEGER_MAX else str(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping | list | tuple | set | frozenset):
        if depth == DEPTH_MAX:
            return "…"
        if isinstance(value, Mapping):
            return {str(key): plain(item, depth + 1) for key, item in list(cast("Mapping[Any, Any]", value).items())}
        return [plain(item, depth + 1) for item in list(cast("list[Any]", value))]
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def encoded(body: Json) -> bytes:
    """Return plain values as JSON in UTF-8; lone surrogates become question marks, as in `hash_of`."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def as_text(value: object) -> str | None:
    """Return a content as text: strings as they are, blocks by their text, the rest as JSON with sorted keys."""
    value = plain(value)
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list):
        blocks: list[Any] = [cast("Json", item).get("text") if isinstance(item, dict) else item for item in cast("list[Any]", value)]
        if blocks and all(isinstance(block, str) for block in blocks):
            return "\n".join(blocks)
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def hash_of(text: str) -> str:
    """Return the SHA-256 of a text as the server writes it."""
    return "sha256:" + sha256(text.encode(errors="replace")).hexdigest()


def one_line(text: str) -> str:
    """Return the first 200 characters on one line."""
    return " ".join(text[: SUMMARY_CHARS_MAX * 4].split())[:SUMMARY_CHARS_MAX]
