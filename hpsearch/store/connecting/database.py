"""Connections to a database, and their transactions.

Connections are in autocommit mode. Transactions are begun and ended here in plain SQL, so that
their kind can be chosen.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal

import psycopg
from sqlalchemy import URL, Connection, event
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, ProgrammingError

from hpsearch.errors import Damaged, StoreBusy, StoreUnreachable
from hpsearch.store.connecting import engine
from hpsearch.store.connecting.open_files import OpenFiles, saved_copy
from hpsearch.store.connecting.selecting import Selecting
from hpsearch.store.connecting.url import display, in_memory, is_sqlite

_BEGIN = {
    "sqlite": {"read": "BEGIN", "write": "BEGIN IMMEDIATE"},
    "postgresql": {
        "read": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "write": "BEGIN ISOLATION LEVEL READ COMMITTED",
    },
}


_UNUSABLE = {
    "42501": "ask for the permission, or use a role that has it",
    "42P01": "restore a backup, or name another database with --storage",
    "42703": "restore a backup, or name another database with --storage",
}
"""The advice where PostgreSQL refuses permission, or lacks a table or a column."""
_BROKEN = ("database disk image is malformed", "malformed database schema")
"""How SQLite begins to say that the file is damaged."""


MOST_IDLE = 4  # connections that are kept open for the next use


class Database:
    """A few connections, each opened when it is needed and dropped when it breaks.

    Threads share it: a reader has a connection alone, and writers take turns. A database in memory
    has one connection, which all take in turns. A failure of the database is raised as
    `StoreUnreachable`; errors that only a bug of ours can cause pass through.

    Args:
        url: As `parse_url` gives it.
        patience_s: Seconds to wait for another writer; None for what the environment says.
        create: Whether a file that is missing is made when it is first connected to.
    """

    def __init__(self, url: URL, patience_s: float | None = None, *, create: bool = True) -> None:
        self.url = url
        self.dialect = url.get_backend_name()
        self._patience_s = patience_s
        self._writing = threading.RLock()
        self._writer: Selecting | None = None
        self._using: AbstractContextManager[object] = nullcontext()
        self._file = Path(str(url.database)) if is_sqlite(url) and not in_memory(url) else None
        if in_memory(url):
            self._using = self._writing
        self._name: str | None = None
        self._may_create = create
        self._has_written = False
        """True if a connection has, so that it may hold what no other file does."""
        self._saved: Path | None = None
        """Where the contents of files that were removed or replaced were last saved."""
        self._idle: list[Selecting] = []  # another list each time that all are closed
        self._engine = engine.engine_at(url)
        event.listen(self._engine, "do_connect", self._open)
        event.listen(self._engine, "connect", self._set_up)

    def be_known_as(self, name: str) -> None:
        """Take a name among a server's sessions, by which others can end ours; a file has none. At
        most 63 characters count."""
        self._name = name
        if self.dialect == "postgresql":
            self.close()  # a connection takes the name when it is opened
        with self.connected():
            pass

    @contextmanager
    def connected(self) -> Iterator[Selecting]:
        """A connection, for a statement that is a transaction of its own."""
        with self._using, self._failures():
            idle = self._idle
            connection = self._taken(idle)
            try:
                yield connection
            finally:
                self._give_back(connection, idle)

    def _taken(self, idle: list[Selecting]) -> Selecting:
        while True:
            try:
                connection = idle.pop()
            except IndexError:
                return self._connect()
            files = connection.files
            displaced = None if files is None else files.displaced()
            if files is None or displaced is None:
                return connection
            self._leave(connection, files, displaced)

    def _give_back(self, connection: Selecting, idle: list[Selecting]) -> None:
        if connection.invalidated:
            self._drop_idle()  # what broke it has broken the others as well
        is_current = idle is self._idle and not connection.serves_once
        if is_current and not connection.closed and len(idle) < MOST_IDLE:
            idle.append(connection)
            return
        connection.close()

    def _drop_idle(self) -> None:
        """Close the connections that nobody uses; those in use are closed when they come back."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def _connect(self) -> Selecting:
        try:
            connection = Selecting(self._engine)
        except ProgrammingError as error:  # psycopg's word for an option that it does not know
            raise StoreUnreachable(
                f"{display(self.url)}: {error.orig}", "check the options after the ? in the URL"
            ) from error
        connection.serves_once = "serves_once" in connection.info
        if self._file is not None:
            self._may_create = False
            connection.files = OpenFiles(self._file)
            connection.files.displaced()  # from now on it knows them
        return connection

    def _open(self, _: Any, record: Any, words: Any, settings: dict[str, Any]) -> Any:
        if self.dialect == "postgresql":
            return engine.connected_server(words, settings)
        if self._file is None:
            return engine.connected_file(words, settings, self._wait_s())
        if not self._may_create and not self._file.exists():
            raise StoreUnreachable(
                f"{display(self.url)}: the file was removed{self._where_saved()}",
                "put it back where it was, with the files -wal and -shm beside it",
            )
        engine.refuse_unusable(self.url, self._file)
        immutable = engine.immutable(self._file)
        if immutable is not None:
            record.info["serves_once"] = True
            words, settings = (immutable,), {**settings, "uri": True}
        return engine.connected_file(words, settings, self._wait_s())

    def _set_up(self, own: Any, _: Any) -> None:
        try:
            cursor = own.cursor()
            for statement, *values in engine.settings_of(self.url, self._wait_s(), self._name):
                cursor.execute(statement, values)
            cursor.close()
        except BaseException:
            own.close()
            raise

    def _wait_s(self) -> float:
        return engine.wait_s() if self._patience_s is None else self._patience_s

    def _leave(self, connection: Selecting, files: OpenFiles, displaced: Path) -> None:
        if not self._has_written:
            connection.close()
            return
        what = f"{display(self.url)}: {displaced.name} was removed or replaced while in use"
        own = connection.connection.driver_connection
        assert isinstance(own, sqlite3.Connection)
        assert self._file is not None
        try:
            self._saved = saved_copy(own, self._file)
            files.remove_orphans()
        except (sqlite3.Error, OSError) as error:
            self._idle.append(connection)  # it stays open, for another try
            raise StoreUnreachable(
                f"{what}, and what this process still has open cannot be saved: {error}",
                "make room on the disk, or make the folder writable",
            ) from error
        connection.close()
        self.close()
        raise StoreUnreachable(f"{what}{self._where_saved()}")

    def _where_saved(self) -> str:
        if self._saved is None:
            return ""
        file = self.url.database
        return (
            f"; what it held is saved, put it back with:"
            f" rm -f {file}-wal {file}-shm; mv {self._saved} {file}"
        )

    @contextmanager
    def transaction(self, kind: Literal["read", "write"]) -> Iterator[Selecting]:
        """A connection in a transaction, which commits at the end of the block and rolls back if it
        raises. A reader sees one moment of the database. A writer keeps others out: on SQLite
        from its beginning, on PostgreSQL from its first UPDATE of the same row."""
        turn = self._writing if kind == "write" else self._using
        with turn, self.connected() as connection:
            if kind == "write":
                self._writer = connection
            try:
                connection.exec_driver_sql(_BEGIN[self.dialect][kind])
                self._has_written |= kind == "write"
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise
            finally:
                self._writer = None

    def begin_again(self, connection: Connection) -> None:
        """Begin a reading transaction anew: PostgreSQL reads no more in one where a SELECT
        failed."""
        self._roll_back(connection)
        connection.exec_driver_sql(_BEGIN[self.dialect]["read"])

    def close(self) -> None:
        """Let go of the connections; the next use opens a new one.

        A transaction that writes is waited for in another thread, and rolled back in this one: an
        exception has left it open.
        """
        self._drop_idle()
        with self._writing:
            if self._writer is not None:
                self._writer.close()
            self._has_written = False

    def _roll_back(self, connection: Connection) -> None:
        """Undo what the transaction did. A connection that cannot even do that is of no more
        use."""
        if connection.closed or connection.invalidated:
            return
        try:
            connection.exec_driver_sql("ROLLBACK")
        except DBAPIError:
            connection.invalidate()

    @contextmanager
    def _failures(self) -> Iterator[None]:
        try:
            yield
        except (IntegrityError, DataError):
            raise
        except ProgrammingError as error:
            hint = _UNUSABLE.get(getattr(error.orig, "sqlstate", None) or "")
            if hint is None:
                raise
            raise StoreUnreachable(f"{display(self.url)}: {_first_line(error)}", hint) from error
        except DBAPIError as error:
            reason = _first_line(error)
            where = f"{display(self.url)}: {reason}"
            if reason.startswith(_BROKEN):
                hint = "check the path, or restore a backup of the file"
                raise Damaged(reason, where, hint) from error
            is_busy = "locked" in reason or isinstance(error.orig, psycopg.errors.LockNotAvailable)
            kind = StoreBusy if is_busy else StoreUnreachable
            raise kind(where, self._remedy(reason)) from error

    def _remedy(self, reason: str) -> str:
        if not is_sqlite(self.url):
            if "lock timeout" in reason:
                return "another transaction keeps what is to be written locked; try again"
            if "read-only transaction" in reason:
                return "it is a standby, or was set to read only; name the server that takes writes"
            if "statement timeout" in reason:
                return "the server ends what takes longer than its statement_timeout; set it higher"
            return "check the URL and server"
        if "readonly" in reason:
            return (
                "SQLite needs permission to write the file and its folder;"
                " get this permission, or copy the file"
            )
        if "locked" in reason:
            return (
                "another program writes to it, or was stopped doing so;"
                f" see which: fuser {self.url.database}"
            )
        return "check the path, its permissions and the disk"


def _first_line(error: DBAPIError) -> str:
    lines = str(error.orig).strip().splitlines()
    return lines[0] if lines else type(error.orig).__name__
