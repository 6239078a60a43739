"""What is left of words: the bytes of a store's files, and every property of a workspace in Neo4j, read around our own code."""

from __future__ import annotations

from pathlib import Path

from neo4j import GraphDatabase

from recollect.memory import Memory


def said_in(url: str, workspace: str) -> dict[str, bytes]:
    """Return everything that a store says, by where it says it: files by their names, nodes and edges by their labels and types."""
    if url.startswith("sqlite"):
        path = Path(url.removeprefix("sqlite://"))
        return {file.name: file.read_bytes() for file in path.parent.glob(f"{path.name}*")}
    with GraphDatabase.driver(url) as driver:
        nodes, _, _ = driver.execute_query(
            "MATCH (n) WHERE n.workspace = $w OR n.name = $w RETURN labels(n)[0], properties(n)", w=workspace
        )
        edges, _, _ = driver.execute_query("MATCH (n {workspace: $w})-[r]-() RETURN type(r), properties(r)", w=workspace)
    found: dict[str, bytes] = {}
    for record in [*nodes, *edges]:
        kind, properties = record.values()
        found[kind] = found.get(kind, b"") + str(properties).encode() + b"\n"
    return found


def everywhere(memory: Memory) -> dict[str, bytes]:
    """Return everything that the store of a memory says of its workspace."""
    return said_in(memory.store.url, memory.workspace)


def places_of(word: str, said: dict[str, bytes]) -> list[str]:
    """Return where a word stands, however it is written."""
    needle = word.lower().encode()
    return sorted(place for place, content in said.items() if needle in content.lower())
