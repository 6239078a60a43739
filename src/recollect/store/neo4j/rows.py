"""Properties ↔ nodes: the only place that knows how the graph spells what is remembered.

A node's properties have the names of the model's fields, `id` spelt `uuid`; nothing is written for None, arguments and
bodies are JSON text, times are native. What is not a field (labels of scope, counts for search) is left when reading.
Times come back as text, which is read many times faster than the driver's own objects.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString, TypeVar

import msgspec

from recollect.clock import from_iso
from recollect.errors import DamagedStoreError
from recollect.identity import identity
from recollect.model import Checkpoint, CodeChange, ContextFile, ConversationInfo, FileAccess, Message, Node, ToolCall, ToolResult, Turn
from recollect.store.integrity import intact_derived
from recollect.store.shapes import Held, StoredTurn

if TYPE_CHECKING:
    from collections.abc import Generator

    from recollect.model import Insight, Scope, Summary

    _Derived = TypeVar("_Derived", Summary, Insight, Scope)

_N = TypeVar("_N", bound=Node)
Properties = dict[str, Any]

_PARTS: dict[type[Node], frozenset[str]] = {  # what are nodes of their own
    Turn: frozenset({"messages", "tool_calls", "context_files", "changes", "checkpoints"}),
    ToolCall: frozenset({"result", "accessed"}),
}
_NONE: frozenset[str] = frozenset()
_AS_JSON = frozenset({"arguments", "body"})

RETURN_TURN: LiteralString = """
    RETURN t {
            .*, timestamp: null, started_at: toString(t.started_at), ended_at: toString(t.ended_at), expires_at: toString(t.expires_at)
        } AS properties,
        COLLECT { MATCH (t)-[:CONTAINS_MESSAGE]->(m) RETURN m {.*, timestamp: toString(m.timestamp)} ORDER BY m.sequence },
        COLLECT {
            MATCH (t)-[:HAS_TOOL_CALL]->(k)
            RETURN [
                k {.*, timestamp: toString(k.timestamp)},
                [(k)-[:PRODUCED_RESULT]->(r) | r {.*, timestamp: toString(r.timestamp)}],
                [(k)-[a:ACCESSED]->(f:CodeFile) | [a.position, f.file_path, a.kind, a.temporary, a.generated]]
            ] ORDER BY k.order
        },
        [(t)-[:USES_CONTEXT]->(part) | part {.*, timestamp: toString(part.timestamp)}],
        COLLECT { MATCH (x:CodeChange {workspace: t.workspace, turn_id: t.uuid}) RETURN x {.*, timestamp: toString(x.timestamp)} },
        [(t)-[:HAS_CHECKPOINT]->(part) | part {.*, timestamp: toString(part.timestamp)}]
"""
RETURN_SUMMARY: LiteralString = "RETURN s {.*, timestamp: null, expires_at: null, created_at: toString(s.created_at)} AS properties\n"
DELETE_SUMMARIES: LiteralString = """
    WITH DISTINCT s
    OPTIONAL MATCH (s)-[:HAS_PASSAGE]->(p)
    WITH s, collect(p) AS gone, count(p) AS passages, sum(p.length) AS terms
    MATCH (c:Conversation {workspace: s.workspace, uuid: s.conversation_id})
    SET c.own_passages = c.own_passages - passages, c.own_terms = c.own_terms - terms
    FOREACH (one IN gone | DETACH DELETE one)
    DETACH DELETE s
"""
RETURN_CONVERSATION: LiteralString = """
    RETURN c {.*, created_at: toString(c.created_at), updated_at: toString(c.updated_at)} AS properties,
        [(p:Project)-[:HAS_CONVERSATION]->(c) | p.name], [(parent:Conversation)-[:HAS_BRANCH]->(c) | parent.uuid]
"""


def written(node: Node, **more: object) -> Properties:
    """Return the properties of a node, and more; what is None is left out."""
    parts = _PARTS.get(type(node), _NONE)
    plain = {name: _plain(name, value) for name, value in msgspec.structs.asdict(node).items() if name not in parts}
    if "id" in plain:
        plain["uuid"] = plain.pop("id")
    plain |= more
    return {name: value for name, value in plain.items() if value is not None}


def _plain(name: str, value: Any) -> Any:
    if name in _AS_JSON:
        return None if value is None else msgspec.json.encode(value).decode()
    return list(value) if isinstance(value, tuple) else value


def read_derived(kind: type[_Derived], properties: Properties) -> _Derived:
    """Return a summary, an insight or a scope, if its checksum is right."""
    with readable():
        node = read(kind, properties)
        stored = int(properties["checksum"])
    return intact_derived(node, stored)


def read(kind: type[_N], properties: Properties, **more: object) -> _N:
    """Return the node that properties tell of."""
    values = {name: properties[key] for name, key in _fields(kind) if key in properties}
    for name in _AS_JSON & values.keys():
        values[name] = msgspec.json.decode(values[name])
    return msgspec.convert({**values, **more}, kind)


_known_fields: dict[type[Node], list[tuple[str, str]]] = {}


def _fields(kind: type[Node]) -> list[tuple[str, str]]:
    if kind not in _known_fields:
        names = [name for name in kind.__struct_fields__ if name not in _PARTS.get(kind, _NONE)]
        _known_fields[kind] = [(name, "uuid" if name == "id" else name) for name in names]
    return _known_fields[kind]


@contextmanager
def readable() -> Generator[None]:
    """Turn what a damaged node does to its reader into an error that says so."""
    try:
        yield
    except (msgspec.DecodeError, msgspec.ValidationError, ValueError, TypeError, LookupError) as error:
        msg = f"a stored node cannot be read ({error}): see `recollect verify`"
        raise DamagedStoreError(msg) from error


def conversation_properties(held: Held) -> Properties:
    """Return every property of a conversation, None for those that are to go."""
    plain = {name: _plain(name, value) for name, value in msgspec.structs.asdict(held.conversation).items() if name != "project"}
    plain["uuid"] = plain.pop("id")
    own = {"next_index": held.next_index, "next_sequence": held.next_sequence, "checksum": held.checksum}
    return {**plain, **own, "has_own_title": held.has_own_title, "told_to": held.told_to}


def held_of(row: list[Any]) -> Held:
    """Read a row of `RETURN_CONVERSATION`."""
    properties, names, parents = row
    with readable():
        return Held(
            conversation=read(ConversationInfo, properties, project=names[0]),
            parent_id=parents[0] if parents else None,
            next_index=properties["next_index"],
            next_sequence=properties["next_sequence"],
            checksum=properties["checksum"],
            has_own_title=properties.get("has_own_title", False),
            told_to=properties.get("told_to", -1),
        )


def stored_turn(row: list[Any]) -> StoredTurn:
    """Read a row of `RETURN_TURN`."""
    properties, messages, calls, context_files, changes, checkpoints = row
    with readable():
        turn = read(
            Turn,
            properties,
            messages=[read(Message, one) for one in messages],
            tool_calls=[_call(*one) for one in calls],
            context_files=[read(ContextFile, one) for one in _in_order(context_files)],
            changes=[read(CodeChange, one) for one in _in_order(changes)],
            checkpoints=[read(Checkpoint, one) for one in _in_order(checkpoints)],
        )
        expires_at = properties.get("expires_at")
        return StoredTurn(turn=turn, checksum=properties["checksum"], expires_at=None if expires_at is None else from_iso(expires_at))


def _in_order(parts: list[Properties]) -> list[Properties]:
    return sorted(parts, key=lambda part: part["order"])


def _call(properties: Properties, results: list[Properties], accessed: list[list[Any]]) -> ToolCall:
    files = [FileAccess(path=one[1], kind=one[2], temporary=one[3], generated=one[4]) for one in sorted(accessed)]
    return read(ToolCall, properties, result=read(ToolResult, results[0]) if results else None, accessed=files)


def scope_term(workspace: str, kind: str, name: str) -> str:
    """Return the word that stands for a workspace, project or conversation in the full-text index."""
    return identity("scope", workspace, kind, name)


def full_text_query(scope: str, terms: list[str]) -> str:
    """Return a full-text query: any of the terms, within a scope."""
    return f"+scope:{_quoted(scope)}^0 +terms:(" + " ".join(_quoted(term) for term in terms) + ")"


def _quoted(term: str) -> str:
    return '"' + term.replace("\\", "\\\\").replace('"', '\\"') + '"'


def code_file_id(workspace: str, project_id: str, path: str) -> str:
    """Return the id of a path in a project."""
    return identity("code_file", workspace, project_id, path)
