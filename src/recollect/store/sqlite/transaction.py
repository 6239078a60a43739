"""What a unit of work sees of one workspace in SQLite; what few need is imported when it is asked for, for a prompt may be waiting."""

from __future__ import annotations

from typing import TYPE_CHECKING

from recollect.store.sqlite.conversations import SqliteConversations
from recollect.store.sqlite.jobs import SqliteJobs
from recollect.store.sqlite.turns import SqliteTurns

if TYPE_CHECKING:
    from recollect.store.sqlite.audit import SqliteAudit
    from recollect.store.sqlite.coding import SqliteCode
    from recollect.store.sqlite.database import Connection
    from recollect.store.sqlite.derived import SqliteDerived
    from recollect.store.sqlite.remembering import Remembered
    from recollect.store.sqlite.requests import SqliteRequests
    from recollect.store.sqlite.retention import SqliteRetention
    from recollect.store.sqlite.searching import SqliteSearch
    from recollect.store.sqlite.spending import SqliteSpending
    from recollect.store.sqlite.tracing import SqliteTrace


class SqliteTransaction:
    """The eleven groups of queries on one connection."""

    def __init__(self, connection: Connection, workspace: str, remembered: Remembered) -> None:
        self._connection = connection
        self._workspace = workspace
        self._remembered = remembered
        self.conversations = SqliteConversations(connection, workspace)
        self.turns = SqliteTurns(connection, workspace)
        self.jobs = SqliteJobs(connection, workspace)

    @property
    def search(self) -> SqliteSearch:
        """Passages to be searched."""
        from recollect.store.sqlite.searching import SqliteSearch  # noqa: PLC0415  see above

        return SqliteSearch(self._connection, self._workspace, self._remembered)

    @property
    def derived(self) -> SqliteDerived:
        """What was worked out from turns."""
        from recollect.store.sqlite.derived import SqliteDerived  # noqa: PLC0415  see above

        return SqliteDerived(self._connection, self._workspace)

    @property
    def code(self) -> SqliteCode:
        """Code files and the scopes in them."""
        from recollect.store.sqlite.coding import SqliteCode  # noqa: PLC0415  see above

        return SqliteCode(self._connection, self._workspace)

    @property
    def retention(self) -> SqliteRetention:
        """What expires."""
        from recollect.store.sqlite.retention import SqliteRetention  # noqa: PLC0415  see above

        return SqliteRetention(self._connection, self._workspace)

    @property
    def requests(self) -> SqliteRequests:
        """Requests that come in pieces."""
        from recollect.store.sqlite.requests import SqliteRequests  # noqa: PLC0415  see above

        return SqliteRequests(self._connection, self._workspace)

    @property
    def spending(self) -> SqliteSpending:
        """What models were asked and spent."""
        from recollect.store.sqlite.spending import SqliteSpending  # noqa: PLC0415  see above

        return SqliteSpending(self._connection, self._workspace)

    @property
    def trace(self) -> SqliteTrace:
        """What the audit asks."""
        from recollect.store.sqlite.tracing import SqliteTrace  # noqa: PLC0415  see above

        return SqliteTrace(self._connection, self._workspace)

    @property
    def audit(self) -> SqliteAudit:
        """Questions about the store itself."""
        from recollect.store.sqlite.audit import SqliteAudit  # noqa: PLC0415  see above

        return SqliteAudit(self._connection, self._workspace)
