"""What a unit of work sees of one workspace in Neo4j."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.store.neo4j.audit import Neo4jAudit
from recollect.store.neo4j.coding import Neo4jCode
from recollect.store.neo4j.conversations import Neo4jConversations
from recollect.store.neo4j.derived import Neo4jDerived
from recollect.store.neo4j.jobs import Neo4jJobs
from recollect.store.neo4j.requests import Neo4jRequests
from recollect.store.neo4j.retention import Neo4jRetention
from recollect.store.neo4j.searching import Neo4jSearch
from recollect.store.neo4j.spending import Neo4jSpending
from recollect.store.neo4j.tracing import Neo4jTrace
from recollect.store.neo4j.turns import Neo4jTurns

if TYPE_CHECKING:
    from recollect.store.neo4j.database import Connection


class Neo4jTransaction:
    """The eleven groups of queries in one transaction."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self.conversations = Neo4jConversations(connection, workspace)
        self.turns = Neo4jTurns(connection, workspace)
        self.search = Neo4jSearch(connection, workspace)
        self.derived = Neo4jDerived(connection, workspace)
        self.code = Neo4jCode(connection, workspace)
        self.jobs = Neo4jJobs(connection, workspace)
        self.retention = Neo4jRetention(connection, workspace)
        self.requests = Neo4jRequests(connection, workspace)
        self.spending = Neo4jSpending(connection, workspace)
        self.trace = Neo4jTrace(connection, workspace)
        self.audit = Neo4jAudit(connection, workspace)
