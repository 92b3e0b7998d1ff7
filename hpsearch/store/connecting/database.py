"""Connections to a database, their settings and their transactions.

Connections are in autocommit mode. Transactions are begun and ended here in plain SQL, so that
their kind can be chosen.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import psycopg
from sqlalchemy import (
    URL,
    Column,
    Connection,
    Engine,
    Label,
    Result,
    Select,
    Table,
    create_engine,
    event,
)
from sqlalchemy.exc import DataError, DBAPIError, IntegrityError, OperationalError, ProgrammingError
from sqlalchemy.pool import NullPool

from hpsearch.errors import Damaged, StoreBusy, StoreUnreachable, UserError
from hpsearch.store import codec
from hpsearch.store.cells import NOTHING
from hpsearch.store.connecting.open_files import OpenFiles, saved_copy
from hpsearch.store.connecting.url import display, in_memory, is_sqlite
from trials.data import files

CONNECT_S = 10  # how long to wait for a PostgreSQL server to take a connection, in seconds
MOST_IDLE = 4  # connections that are kept open for the next use


def wait_s() -> float:
    """How long to wait for another writer, in seconds: what the environment says, or 30. Raises
    UserError if the environment says something else."""
    given = os.environ.get("HPSEARCH_DATABASE_TIMEOUT", "30")
    if not given.isdecimal() or len(given) > 6 or int(given) == 0:
        raise UserError(
            f"HPSEARCH_DATABASE_TIMEOUT is {given!r}", "give whole seconds, or nothing for 30"
        )
    return float(given)


def answer_s() -> float:
    """How long to wait for a PostgreSQL server to continue with its answer, in seconds.

    It is longer than the server itself waits for a lock.
    """
    return wait_s() + 5


_BEGIN = {
    "sqlite": {"read": "BEGIN", "write": "BEGIN IMMEDIATE"},
    "postgresql": {
        "read": "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        "write": "BEGIN ISOLATION LEVEL READ COMMITTED",
    },
}


_DAMAGE = ("malformed JSON", "JSON cannot hold BLOB values")
"""How SQLite begins to say that a single value is damaged."""
_UNUSABLE = {
    "42501": "ask for the permission, or use a role that has it",
    "42P01": "restore a backup, or name another database with --storage",
    "42703": "restore a backup, or name another database with --storage",
}
"""The advice where PostgreSQL refuses permission, or lacks a table or a column."""
_BROKEN = ("database disk image is malformed", "malformed database schema")
"""How SQLite begins to say that the file is damaged."""


@dataclass(frozen=True)
class _Session:
    """An open connection, how often all connections had been closed when it was opened, and the
    files that it has open (None for a server, and in memory)."""

    connection: Selecting
    closings: int
    files: OpenFiles | None


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
        self._engine: Engine | None = None
        self._lock = threading.Lock()
        self._idle: list[_Session] = []
        self._closings = 0
        self._writing = threading.RLock()
        self._writer: Selecting | None = None
        self._using: AbstractContextManager[object] = nullcontext()
        if in_memory(url):
            self._using = self._writing
        self._name: str | None = None
        self._may_create = create
        self._has_written = False
        """True if a connection has, so that it may hold what no other file does."""
        self._saved: Path | None = None
        """Where the contents of files that were removed or replaced were last saved."""

    def be_known_as(self, name: str) -> None:
        """Take a name among a server's sessions, by which others can end ours; a file has none.

        Args:
            name: At most 63 characters count.
        """
        self._name = name
        if self.dialect == "postgresql":
            self.close()  # a connection takes the name when it is opened
        with self.connected():
            pass

    @contextmanager
    def connected(self) -> Iterator[Selecting]:
        """A connection, for a statement that is a transaction of its own."""
        with self._using, self._failures():
            session = self._taken()
            try:
                yield session.connection
            finally:
                self._give_back(session)

    def _taken(self) -> _Session:
        while True:
            with self._lock:
                closings = self._closings
                session = self._idle.pop() if self._idle else None
            if session is None:
                return self._opened(closings)
            displaced = None if session.files is None else session.files.displaced()
            if displaced is None:
                return session
            self._leave(session, displaced)

    def _opened(self, closings: int) -> _Session:
        if in_memory(self.url) or not is_sqlite(self.url):
            return _Session(self._connect(), closings, None)
        file = Path(str(self.url.database))
        if not self._may_create and not file.exists():
            raise StoreUnreachable(
                f"{display(self.url)}: the file was removed{self._where_saved()}",
                "put it back where it was, with the files -wal and -shm beside it",
            )
        connection = self._connect()
        self._may_create = False
        files = OpenFiles(file)
        files.displaced()  # from now on it knows them
        return _Session(connection, closings, files)

    def _leave(self, session: _Session, displaced: Path) -> None:
        if not self._has_written:
            session.connection.close()
            return
        what = f"{display(self.url)}: {displaced.name} was removed or replaced while in use"
        own = session.connection.connection.driver_connection
        assert isinstance(own, sqlite3.Connection)
        assert session.files is not None
        try:
            self._saved = saved_copy(own, Path(str(self.url.database)))
            session.files.remove_orphans()
        except (sqlite3.Error, OSError) as error:  # the connection stays open, for another try
            self._give_back(session)
            raise StoreUnreachable(
                f"{what}, and what this process still has open cannot be saved: {error}",
                "make room on the disk, or make the folder writable",
            ) from error
        session.connection.close()
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

    def _give_back(self, session: _Session) -> None:
        connection = session.connection
        if connection.invalidated:
            self._drop_idle()  # what broke it has broken the others as well
        may_stay = not connection.closed and not _is_immutable(connection.engine.url)
        with self._lock:
            is_current = session.closings == self._closings
            if may_stay and is_current and len(self._idle) < MOST_IDLE:
                self._idle.append(session)
                return
        connection.close()

    def _drop_idle(self) -> None:
        with self._lock:
            self._closings += 1
            idle, self._idle = self._idle, []
        for session in idle:
            session.connection.close()

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

    def _connect(self) -> Selecting:
        url = self.url
        if is_sqlite(url):
            _refuse_missing_folder(url)
            _refuse_odd(url)
        patience_s = wait_s() if self._patience_s is None else self._patience_s
        try:
            connection = Selecting(self._engine_of(_immutable_if_it_must_be(url), patience_s))
        except ProgrammingError as error:  # psycopg's word for an option that it does not know
            raise StoreUnreachable(
                f"{display(url)}: {error.orig}", "check the options after the ? in the URL"
            ) from error
        try:
            for statement, *values in self._session(patience_s):
                connection.exec_driver_sql(statement, tuple(values))
        except BaseException:
            connection.close()
            raise
        return connection

    def _engine_of(self, url: URL, patience_s: float) -> Engine:
        if url != self.url:
            return _engine(url, _settings(url, patience_s))
        if self._engine is None:
            self._engine = _engine(url, _settings(url, patience_s))
        return self._engine

    def _session(self, patience_s: float) -> list[tuple[str, ...]]:
        if is_sqlite(self.url):
            durable = "PRAGMA synchronous = FULL"  # a commit survives the power cord
            opens_all = "PRAGMA schema_version"  # the files beside it, too
            return [("PRAGMA foreign_keys = ON",), (durable,), (opens_all,)]
        # A driver frozen in the middle of a commit must not keep its successor waiting forever.
        statements: list[tuple[str, ...]] = [
            (f"SET lock_timeout = {patience_s * 1000:.0f}",),
            (f"SET idle_in_transaction_session_timeout = {2 * wait_s() * 1000:.0f}",),
        ]
        if self._name is not None:
            statements.append(("SELECT set_config('application_name', %s, false)", self._name[:63]))
        return statements

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


class Selecting(Connection):
    """A connection that has read all rows of a SELECT when it returns them, so that what is damaged
    in them is met here, and not by those who go through them."""

    _mend: Callable[[], str] | None = None
    hiding = ""  # SQL before each SELECT, which hides rows from it

    @contextmanager
    def mending(self, mend: Callable[[], str]) -> Iterator[None]:
        """Hide damage within the block. `mend` is called when a SELECT first meets damage, and
        returns SQL that hides it, put before that SELECT and all later ones; empty lets
        `Damaged` pass."""
        self._mend = mend
        try:
            yield
        finally:
            self._mend = None
            self.hiding = ""

    def execute(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """Execute a statement, as SQLAlchemy does."""
        if not isinstance(statement, Select):
            return super().execute(statement, parameters, **options)
        try:
            return self._selected(statement, parameters)
        except Damaged:
            if self._mend is None or self.hiding:
                raise
            self.hiding = self._mend()
            if not self.hiding:
                raise
        return self._selected(statement, parameters)

    def scalar(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """The first cell of the first row; None if there is none."""
        return self.execute(statement, parameters, **options).scalar()

    def scalars(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """The first cell of each row."""
        return self.execute(statement, parameters, **options).scalars()

    def _selected(self, statement: Select[Any], parameters: Any) -> Result[Any]:
        try:
            found = super().execute(statement, parameters).freeze()
        except DBAPIError as error:
            reason, _, _ = str(error.orig).partition("\n")
            # PostgreSQL's word for a number or character in JSON that it has no type for.
            if isinstance(error, DataError) or reason.startswith(_DAMAGE):
                raise Damaged(reason) from error
            raise
        for place, column in enumerate(statement.selected_columns):
            if not _may_be_null(column) and None in map(itemgetter(place), found.data):
                raise Damaged(NOTHING)
        return found()


def _may_be_null(column: Any) -> bool:
    if isinstance(column, Label):
        column = column.element
    if not isinstance(column, Column) or not isinstance(column.table, Table):
        return True
    return bool(column.nullable)


def _hide(
    connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
) -> tuple[str, Any]:
    if context is not None and context.isinsert is False and statement.startswith("SELECT"):
        assert isinstance(connection, Selecting)
        statement = connection.hiding + statement
    return statement, parameters


class _Impatient(psycopg.Connection[Any]):
    """A connection to PostgreSQL that breaks when the server falls silent.

    A server that is stopped, or a network that swallows everything, sends no error: without this, a
    driver would wait for the answer to a commit for as long as it lives.
    """

    def wait(self, gen: Any, *rest: Any, **more: Any) -> Any:
        """Wait for an answer, as psycopg does, but not forever."""
        return super().wait(self._awaited(gen), *rest, **more)

    def _awaited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
        ready, patience_s = None, answer_s()
        give_up = time.monotonic() + patience_s
        while True:
            try:
                wanted = gen.send(ready)
            except StopIteration as end:
                return end.value
            ready = yield wanted
            if ready:
                give_up = time.monotonic() + patience_s
            elif time.monotonic() > give_up:
                self.close()  # whatever it would still answer is of no use to anyone
                raise psycopg.OperationalError(f"the server fell silent for {patience_s:g} s")


def _settings(url: URL, patience_s: float) -> dict[str, Any]:
    if is_sqlite(url):
        return {"timeout": patience_s, "check_same_thread": False}
    return {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_S}


def _immutable_if_it_must_be(url: URL) -> URL:
    """The URL by which to open a database.

    SQLite makes files beside one to read it, unless it is told that nobody writes to it. That holds
    if those files are not there, for as long as one look takes.
    """
    if not is_sqlite(url) or in_memory(url):
        return url
    file = Path(str(url.database))
    is_in_use = Path(f"{file}-wal").exists()
    if is_in_use or not file.exists() or os.access(file.parent, os.W_OK):
        return url
    return url.set(database=f"file:{quote(str(file))}", query={"immutable": "1", "uri": "true"})


def _is_immutable(url: URL) -> bool:
    return "immutable" in url.query


def _engine(url: URL, settings: dict[str, Any]) -> Engine:
    engine = create_engine(
        url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        json_serializer=codec.encode,
        json_deserializer=bytes.decode,  # the column's type decodes it
        connect_args=settings,
    )
    event.listen(engine, "before_cursor_execute", _hide, retval=True)
    if is_sqlite(url):
        event.listen(engine, "connect", _read_any_text)
    else:
        event.listen(
            engine,
            "do_connect",
            lambda _, __, words, settings: _Impatient.connect(*words, **settings),
        )
    return engine


def _read_any_text(connection: sqlite3.Connection, _: Any) -> None:
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")


def _refuse_missing_folder(url: URL) -> None:
    folder = Path(str(url.database)).parent
    if in_memory(url) or folder.is_dir():
        return
    raise StoreUnreachable(
        f"{display(url)}: the folder {folder} does not exist", f"mkdir -p {folder}"
    )


def _refuse_odd(url: URL) -> None:
    """SQLite would wait at a pipe forever."""
    if in_memory(url):
        return
    try:
        files.refuse_odd(Path(str(url.database)))
    except FileNotFoundError:
        return  # it will be made
    except (ValueError, OSError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise StoreUnreachable(f"{display(url)}: {why}", "name another with --storage") from None


def write_ahead(connection: Connection) -> None:
    """Have an SQLite file written ahead, so that readers and the one writer do not block each
    other. SQLite waits for a lock everywhere but here, so this waits itself."""
    give_up = time.monotonic() + wait_s()
    while True:
        try:
            connection.exec_driver_sql("PRAGMA journal_mode = WAL")
        except OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > give_up:
                raise
        else:
            return
        time.sleep(0.01)
