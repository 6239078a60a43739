"""Ids that follow from what a thing is, and hashes that follow from what it says; a leaf of the import graph."""

from __future__ import annotations

from hashlib import sha256

import msgspec

from recollect.clock import uuid_text

HASH_PREFIX = "sha256:"


def identity(kind: str, *parts: str | int | None) -> str:
    """Return the id of a thing: the same kind and parts give the same id on every machine and in every store."""
    texts = [kind, *("" if part is None else str(part) for part in parts)]
    key = "".join([f"{len(text)}:{text}" for text in texts])
    return uuid_text(sha256(key.encode("utf-8", "replace")).digest()[:16])


def part_identity(kind: str, owner: str, place: int) -> str:
    """Return the id of a part by its place below an owner, whose id is of fixed length."""
    return uuid_text(sha256(f"{kind}:{owner}:{place}".encode()).digest()[:16])


def content_hash(text: str) -> str:
    """Return the full SHA-256 of a text, with its prefix."""
    return HASH_PREFIX + sha256(text.encode(errors="replace")).hexdigest()


def canonical(value: object) -> str:
    """Return JSON whose text depends on the value alone, so that it can be hashed."""
    return msgspec.json.encode(value, order="sorted").decode()
