"""Damage to what a store holds, done around our own code, as a bad disk or a stranger's query would."""

from __future__ import annotations

from pathlib import Path
from typing import LiteralString

import apsw
from neo4j import GraphDatabase

from recollect.memory import Memory

_IN_A_FILE: dict[str, LiteralString] = {
    "summary": "update summary set summary = 'spoilt'",
    "insight": "update insight set body = '{}'",
    "scope": "update scope set line_end = line_end + 1",
}
_ON_A_SERVER: dict[str, LiteralString] = {
    "summary": "MATCH (n:Summary {workspace: $w}) SET n.summary = 'spoilt'",
    "insight": "MATCH (n:Insight {workspace: $w}) SET n.body = '{}'",
    "scope": "MATCH (n:Scope {workspace: $w}) SET n.line_end = n.line_end + 1",
}


def spoil(memory: Memory, kind: str) -> None:
    """Change every record of a kind."""
    url = memory.store.url
    if url.startswith("sqlite"):
        connection = apsw.Connection(str(Path(url.removeprefix("sqlite://"))))
        connection.execute(_IN_A_FILE[kind])
        connection.close()
        return
    with GraphDatabase.driver(url) as driver:
        driver.execute_query(_ON_A_SERVER[kind], w=memory.workspace)
