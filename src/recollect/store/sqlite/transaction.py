"""What a unit of work sees of one workspace in SQLite."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.store.sqlite.audit import SqliteAudit
from recollect.store.sqlite.conversations import SqliteConversations
from recollect.store.sqlite.derived import SqliteDerived
from recollect.store.sqlite.jobs import SqliteJobs
from recollect.store.sqlite.turns import SqliteTurns

if TYPE_CHECKING:
    from recollect.store.sqlite.database import Connection


class SqliteTransaction:
    """The four groups of queries on one connection."""

    def __init__(self, connection: Connection, workspace: str) -> None:
        self.conversations = SqliteConversations(connection, workspace)
        self.turns = SqliteTurns(connection, workspace)
        self.derived = SqliteDerived(connection, workspace)
        self.jobs = SqliteJobs(connection, workspace)
        self.audit = SqliteAudit(connection, workspace)
