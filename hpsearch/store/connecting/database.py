"""The connections to a database, and their transactions.

Connections are in autocommit mode. Transactions are begun and ended here in plain SQL, so that
their kind can be chosen; the pool rolls back what a connection has left open.
"""

import threading
import weakref
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal

from sqlalchemy import URL, Connection
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from hpsearch.errors import Damaged, HpsearchError, StoreBusy, StoreUnreachable, StoreUnusable
from hpsearch.store.connecting.engine import engine_at
from hpsearch.store.connecting.url import display, in_memory, is_sqlite
from hpsearch.store.connecting.waiting import wait_s

_BEGIN = {
    "sqlite": {"read": "BEGIN", "write": "BEGIN IMMEDIATE"},
    "postgresql": {
        "read": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "write": "BEGIN ISOLATION LEVEL READ COMMITTED",
    },
}

LOCK_NOT_AVAILABLE = "55P03"  # PostgreSQL's code for a lock that was not given in time

_HINTS = {
    "statement pooling": "PgBouncer pools statements, and a transaction has several: set pool_mode"
    " = transaction for this database",
    "lock timeout": "another transaction keeps what is to be written locked; try again",
    "locked": "another program writes to it, or was stopped doing so; see which: fuser {file}",
    "readonly": "SQLite needs permission to write the file and its folder, or copy the file",
    "read-only transaction": "it is a standby, or was set to read only; name the server that takes"
    " writes",
    "no schema has been selected": "its search_path names no schema that exists: make one, or name"
    " one in the URL, such as ?options=-csearch_path%3Dpublic",
    "permission denied": "ask for the permission, or use a role that has it",
}
"""By a part of what a database says, what to do."""

_LASTING = (
    *("statement pooling", "readonly", "permission denied", "no schema has been selected"),
    *("not a database", "authentication failed", "no password supplied", "no such user"),
    *("does not exist", "no such database", "no pg_hba.conf entry", "no such table"),
    "no such column",
)
"""Parts of what a database says where waiting does not help."""


class Database:
    """A pool of connections, each opened when it is needed and dropped when it breaks.

    Threads share it: a reader has a connection alone, and writers take turns. A database in memory
    has one connection, which all take in turns. A failure of the database raises
    `StoreUnreachable`; errors that only a bug of ours can cause pass through. The arguments are
    those of `engine.engine_at`."""

    def __init__(self, url: URL, patience_s: float | None = None, *, create: bool = True) -> None:
        self.url = url
        self._writing = threading.RLock()
        self._using: AbstractContextManager[object] = nullcontext()
        if in_memory(url):
            self._using = self._writing
        self._patience_s = patience_s
        self._engine = engine_at(url, patience_s, create=create)
        self.dialect = self._engine.dialect
        weakref.finalize(self, self._engine.dispose)

    @contextmanager
    def connected(self) -> Iterator[Connection]:
        """A connection, for a statement that is a transaction of its own."""
        with self._using, self._failures(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def transaction(self, kind: Literal["read", "write"]) -> Iterator[Connection]:
        """A connection in a transaction, which commits at the end of the block and rolls back if it
        raises. A reader sees one moment of the database. A writer keeps others out: on SQLite
        from its beginning, on PostgreSQL from its first UPDATE of the same row."""
        turn = self._writing if kind == "write" else self._using
        with turn, self.connected() as connection:
            connection.exec_driver_sql(self._begin(kind))
            yield connection
            connection.exec_driver_sql("COMMIT")

    def _begin(self, kind: Literal["read", "write"]) -> str:
        begin = _BEGIN[self.dialect.name][kind]
        if is_sqlite(self.url):
            return begin
        # A driver frozen in the middle of a commit must not keep its successor waiting forever.
        lock_s = wait_s() if self._patience_s is None else self._patience_s
        lock = f"SET LOCAL lock_timeout = {lock_s * 1000:.0f}"
        idle = f"SET LOCAL idle_in_transaction_session_timeout = {wait_s() * 1000:.0f}"
        return f"{begin}; {lock}; {idle}"  # one way to the server

    def close(self) -> None:
        """Let go of the connections; the next use opens a new one. Waits for a writer."""
        with self._writing:
            self._engine.dispose()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, DataError):
            raise
        except DBAPIError as error:
            failure = self._failure(error)
            if failure is None:
                raise
            raise failure from error

    def _failure(self, error: DBAPIError) -> HpsearchError | None:
        lines = str(error.orig).strip().splitlines()
        reason = lines[0] if lines else type(error.orig).__name__
        where = f"{display(self.url)}: {reason}"
        hint = next((_HINTS[part] for part in _HINTS if part in reason), None)
        sqlstate = getattr(error.orig, "sqlstate", None)
        if isinstance(error, ProgrammingError):
            if sqlstate is None and not is_sqlite(self.url):
                return StoreUnusable(where, "check the options after the ? in the URL")
            if hint is None:
                return None
        if "malformed JSON" in reason:
            return Damaged(where)
        if "malformed" in reason:
            return Damaged(where, "check the path, or restore a backup of the file")
        is_busy = "locked" in reason or sqlstate == LOCK_NOT_AVAILABLE
        kind = StoreBusy if is_busy else StoreUnreachable
        if any(part in reason for part in _LASTING):
            kind = StoreUnusable
        usual = "check the path, its permissions and the disk"
        if not is_sqlite(self.url):
            usual = "check the URL and server"
        return kind(where, (hint or usual).format(file=self.url.database))
