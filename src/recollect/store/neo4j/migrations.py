"""The constraints and indexes of the graph, as the list of steps that made it; each is recorded in the database.

Servers that start at once take turns: a step's record is written first and committed when the step is done, and whoever
writes the same record waits for that. A server that dies leaves no record, and every statement can be run again without
harm. Ids are unique within a workspace, because the same conversation restored into two workspaces has the same ones.
"""

from __future__ import annotations

import asyncio
import random
import re
from typing import TYPE_CHECKING, LiteralString

from recollect.errors import NewerStoreError, StoreBusyError, StoreError

if TYPE_CHECKING:
    from recollect.store.neo4j.database import Database

_RECORDED: LiteralString = "CREATE CONSTRAINT migration_number IF NOT EXISTS FOR (n:Migration) REQUIRE n.number IS UNIQUE"
_TAKEN: LiteralString = "MERGE (m:Migration {number: $number}) ON CREATE SET m.name = $name, m.applied_at = datetime()"

_THE_GRAPH: tuple[LiteralString, ...] = (
    "CREATE CONSTRAINT workspace_name IF NOT EXISTS FOR (n:Workspace) REQUIRE n.name IS UNIQUE",
    "CREATE CONSTRAINT project_uuid IF NOT EXISTS FOR (n:Project) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT conversation_uuid IF NOT EXISTS FOR (n:Conversation) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT turn_uuid IF NOT EXISTS FOR (n:Turn) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT message_uuid IF NOT EXISTS FOR (n:Message) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT tool_call_uuid IF NOT EXISTS FOR (n:ToolCall) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT tool_result_uuid IF NOT EXISTS FOR (n:ToolResult) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT context_file_uuid IF NOT EXISTS FOR (n:ContextFile) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT code_file_uuid IF NOT EXISTS FOR (n:CodeFile) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT code_change_uuid IF NOT EXISTS FOR (n:CodeChange) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT checkpoint_uuid IF NOT EXISTS FOR (n:Checkpoint) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT summary_uuid IF NOT EXISTS FOR (n:Summary) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT insight_uuid IF NOT EXISTS FOR (n:Insight) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT scope_uuid IF NOT EXISTS FOR (n:Scope) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT passage_uuid IF NOT EXISTS FOR (n:Passage) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE INDEX conversation_by_change IF NOT EXISTS FOR (n:Conversation) ON (n.workspace, n.updated_at)",
    "CREATE CONSTRAINT turn_index IF NOT EXISTS FOR (n:Turn) REQUIRE (n.workspace, n.conversation_id, n.index) IS UNIQUE",
    "CREATE INDEX turn_by_request IF NOT EXISTS FOR (n:Turn) ON (n.workspace, n.project_id, n.request_id)",
    "CREATE INDEX code_change_by_turn IF NOT EXISTS FOR (n:CodeChange) ON (n.workspace, n.turn_id)",
    "CREATE INDEX code_file_by_project IF NOT EXISTS FOR (n:CodeFile) ON (n.workspace, n.project_id)",
    "CREATE INDEX checkpoint_by_id IF NOT EXISTS FOR (n:Checkpoint) ON (n.workspace, n.project_id, n.checkpoint_id)",
    "CREATE INDEX checkpoint_by_parent IF NOT EXISTS FOR (n:Checkpoint) ON (n.workspace, n.project_id, n.parent_checkpoint)",
    "CREATE INDEX scope_by_name IF NOT EXISTS FOR (n:Scope) ON (n.workspace, n.project_id, n.name)",
    "CREATE INDEX passage_by_turn IF NOT EXISTS FOR (n:Passage) ON (n.workspace, n.conversation_id, n.turn_index)",
    """
    CREATE FULLTEXT INDEX passage_terms IF NOT EXISTS FOR (n:Passage) ON EACH [n.terms, n.scope]
    OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}}
    """,
)

_DISTILLING: tuple[LiteralString, ...] = (
    "CREATE CONSTRAINT job_uuid IF NOT EXISTS FOR (n:Job) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE INDEX job_by_state IF NOT EXISTS FOR (n:Job) ON (n.workspace, n.state, n.due_at)",
    "CREATE INDEX passage_by_text IF NOT EXISTS FOR (n:Passage) ON (n.workspace, n.embedding_hash)",
    "CREATE VECTOR INDEX passage_embedding IF NOT EXISTS FOR (n:Passage) ON (n.embedding)",
    "MATCH (p:Passage) WHERE p.level IS NULL SET p.level = 0",
    """
    MATCH (c:Conversation) UNWIND ['embed', 'summarize'] AS kind
    MERGE (j:Job {workspace: c.workspace, uuid: c.uuid + ':' + kind})
    ON CREATE SET j.conversation_id = c.uuid, j.project_id = c.project_id, j.kind = kind, j.state = 'ready', j.again = false,
        j.attempts = 0, j.since = c.updated_at, j.due_at = c.updated_at
    """,
)

_RECALLING: tuple[LiteralString, ...] = (  # what a vector is made of has changed, so they are made again
    """
    MATCH (p:Passage) WHERE p.embedding_model IS NOT NULL
    REMOVE p.embedding, p.embedding_scale, p.embedding_hash, p.embedding_model
    """,
    """
    MATCH (c:Conversation)
    MERGE (j:Job {workspace: c.workspace, uuid: c.uuid + ':embed'})
    ON CREATE SET j.conversation_id = c.uuid, j.project_id = c.project_id, j.kind = 'embed', j.state = 'ready', j.again = false,
        j.attempts = 0, j.since = c.updated_at, j.due_at = c.updated_at
    ON MATCH SET j.again = true
    """,
)

_RETAINING: tuple[LiteralString, ...] = (
    "CREATE INDEX turn_by_expiry IF NOT EXISTS FOR (n:Turn) ON (n.workspace, n.expires_at)",
    "CREATE INDEX summary_by_expiry IF NOT EXISTS FOR (n:Summary) ON (n.workspace, n.expires_at)",
    "CREATE CONSTRAINT open_request_id IF NOT EXISTS FOR (n:OpenRequest) REQUIRE (n.workspace, n.request_id) IS UNIQUE",
    "CREATE INDEX code_change_by_path IF NOT EXISTS FOR (n:CodeChange) ON (n.workspace, n.file_path)",
    "CREATE INDEX context_file_by_path IF NOT EXISTS FOR (n:ContextFile) ON (n.workspace, n.file_path)",
)

_CODING: tuple[LiteralString, ...] = (
    "MATCH (s:Scope) DETACH DELETE s",  # read from the files again
    "CREATE INDEX scope_by_path IF NOT EXISTS FOR (n:Scope) ON (n.workspace, n.project_id, n.file_path)",
    """
    CREATE FULLTEXT INDEX scope_terms IF NOT EXISTS FOR (n:Scope) ON EACH [n.terms, n.scope]
    OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}}
    """,
)

_SPENDING: tuple[LiteralString, ...] = (
    "CREATE CONSTRAINT model_call_uuid IF NOT EXISTS FOR (n:ModelCall) REQUIRE (n.workspace, n.uuid) IS UNIQUE",
    "CREATE CONSTRAINT model_use_name IF NOT EXISTS FOR (n:ModelUse) REQUIRE (n.workspace, n.use) IS UNIQUE",
    "CREATE INDEX model_call_by_use IF NOT EXISTS FOR (n:ModelCall) ON (n.workspace, n.use, n.timestamp)",
)

_ANALYSING: tuple[LiteralString, ...] = (
    "MATCH (i:Insight) DETACH DELETE i",  # nothing made any yet
    "CREATE INDEX insight_by_expiry IF NOT EXISTS FOR (n:Insight) ON (n.workspace, n.expires_at)",
    "CREATE INDEX insight_by_time IF NOT EXISTS FOR (n:Insight) ON (n.workspace, n.created_at)",
    """
    CREATE FULLTEXT INDEX insight_terms IF NOT EXISTS FOR (n:Insight) ON EACH [n.terms, n.scope]
    OPTIONS {indexConfig: {`fulltext.analyzer`: 'whitespace', `fulltext.eventually_consistent`: false}}
    """,
)

_RENAMING: tuple[LiteralString, ...] = (
    "CREATE INDEX code_change_by_type IF NOT EXISTS FOR (n:CodeChange) ON (n.workspace, n.change_type)",
)

MIGRATIONS: tuple[tuple[str, tuple[LiteralString, ...]], ...] = (
    ("the_graph", _THE_GRAPH),
    ("distilling", _DISTILLING),
    ("recalling", _RECALLING),
    ("retaining", _RETAINING),
    ("coding", _CODING),
    ("spending", _SPENDING),
    ("analysing", _ANALYSING),
    ("renaming", _RENAMING),
)

INDEXES = tuple(
    name
    for _, statements in MIGRATIONS
    for name in re.findall(r"CREATE (?:CONSTRAINT|(?:FULLTEXT |VECTOR )?INDEX) (\w+)", " ".join(statements))
)  # a constraint has an index of its name
MIGRATION_SECONDS_MAX = 3_600.0  # one step, and the wait for another server that takes it
_SCHEMA_ATTEMPTS_MAX = 20
_PAUSE_SECONDS_MAX = 0.5


async def migrate(database: Database, migrations: tuple[tuple[str, tuple[LiteralString, ...]], ...] = MIGRATIONS) -> None:
    """Bring the database up to date; refuse one that was made by a newer Recollect."""
    version = await _version(database)
    if version > len(migrations):
        msg = (
            f"{database.address.url} was made by a newer Recollect (schema {version}, this one knows {len(migrations)}): upgrade Recollect"
        )
        raise NewerStoreError(msg)
    if version == len(migrations):
        return
    await _patiently(database, _RECORDED, StoreError)  # which says that it exists now, too
    for number, (name, statements) in enumerate(migrations[version:], version + 1):
        async with database.first_to(_TAKEN, seconds_max=MIGRATION_SECONDS_MAX, number=number, name=name) as is_first:
            if is_first:
                for statement in statements:
                    await _patiently(database, statement, StoreBusyError)
                await database.run("CALL db.awaitIndexes(300)")


async def _version(database: Database) -> int:
    rows = await database.read(lambda connection: connection.rows("MATCH (m:Migration) RETURN coalesce(max(m.number), 0)"))
    return int(rows[0][0])


async def _patiently(database: Database, statement: LiteralString, refusal: type[StoreError]) -> None:
    """Run a statement that the locks of others, who start or write at this moment, may refuse."""
    for attempt in range(_SCHEMA_ATTEMPTS_MAX):
        try:
            await database.run(statement)
        except refusal:
            if attempt == _SCHEMA_ATTEMPTS_MAX - 1:
                raise
            await asyncio.sleep(random.uniform(0, _PAUSE_SECONDS_MAX))  # noqa: S311  jitter, not a secret
        else:
            return
