"""One connection to a database, its settings and its transactions.

The connection is in autocommit mode. Transactions are begun and ended here in plain SQL, so that
their kind can be chosen.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

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

from hpsearch.errors import Damaged, StoreUnreachable, UserError
from hpsearch.store import codec
from hpsearch.store.cells import NOTHING
from hpsearch.store.url import display, in_memory, is_sqlite
from trials.data import files

CONNECT_S = 10
"""How long to wait for a PostgreSQL server to take a connection, in seconds."""


def wait_s() -> float:
    """How long to wait for another writer, in seconds: what the environment says, or 30.

    Raises:
        UserError: The environment says something else.
    """
    given = os.environ.get("HPSEARCH_DATABASE_TIMEOUT", "30")
    if not given.isdecimal() or int(given) == 0:
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
_BROKEN = ("database disk image is malformed", "malformed database schema")
"""How SQLite begins to say that the file is damaged."""


class Database:
    """A connection that is opened when it is needed, dropped when it breaks, and shared by threads
    in turns.

    A failure of the database is raised as `StoreUnreachable`; errors that only a bug of ours can
    cause pass through.
    """

    def __init__(self, url: URL) -> None:
        self.url = url
        self.dialect = url.get_backend_name()
        self._lock = threading.RLock()
        self._connection: Selecting | None = None
        self._name: str | None = None

    def be_known_as(self, name: str) -> None:
        """Take a name among a server's sessions, by which others can end ours; a file has none.

        Args:
            name: At most 63 characters count.
        """
        self._name = name
        with self.connected() as connection:
            self._tell_name(connection)

    def _tell_name(self, connection: Connection) -> None:
        if self._name is not None and self.dialect == "postgresql":
            connection.exec_driver_sql(
                "SELECT set_config('application_name', %s, false)", (self._name[:63],)
            )

    @contextmanager
    def connected(self) -> Iterator[Selecting]:
        """The connection, for a statement that is a transaction of its own."""
        with self._lock, self._failures():
            if self._connection is None:
                self._connection = _connect(self.url)
                self._tell_name(self._connection)
            try:
                yield self._connection
            finally:
                if self._connection is not None and self._connection.invalidated:
                    self.close()

    @contextmanager
    def transaction(self, kind: Literal["read", "write"]) -> Iterator[Selecting]:
        """The connection in a transaction, which commits where the block ends and rolls back where
        it raises.

        A reading one sees one moment of the database throughout. On SQLite, a writing one keeps
        other writers out from its beginning; on PostgreSQL, from its first UPDATE of the same row.
        """
        with self.connected() as connection:
            try:
                connection.exec_driver_sql(_BEGIN[self.dialect][kind])
                yield connection
                connection.exec_driver_sql("COMMIT")
            except BaseException:
                self._roll_back(connection)
                raise

    def begin_again(self, connection: Connection) -> None:
        """Begin a reading transaction anew: PostgreSQL reads no more in one where a SELECT
        failed."""
        self._roll_back(connection)
        connection.exec_driver_sql(_BEGIN[self.dialect]["read"])

    def close(self) -> None:
        """Let go of the connection; the next use opens a new one."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None

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
        except (IntegrityError, DataError, ProgrammingError):
            raise
        except DBAPIError as error:
            lines = str(error.orig).strip().splitlines()
            reason = lines[0] if lines else type(error.orig).__name__
            where = f"{display(self.url)}: {reason}"
            if reason.startswith(_BROKEN):
                hint = "check the path, or restore a backup of the file"
                raise Damaged(reason, where, hint) from error
            raise StoreUnreachable(where, self._remedy(reason)) from error

    def _remedy(self, reason: str) -> str:
        """What to do about a failure of the database."""
        if not is_sqlite(self.url):
            return "check the URL and server"
        # A file that is written ahead needs another beside it, also to be read.
        if "readonly" in reason:
            return (
                "SQLite needs permission to write the file and its folder, even to read it;"
                " get this permission, or copy the file"
            )
        if "locked" in reason:
            return (
                "another program writes to it, or was stopped doing so;"
                f" see which: fuser {self.url.database}"
            )
        return "check the path, its permissions and the disk"


class Selecting(Connection):
    """A connection that has read all rows of a SELECT when it returns them, so that what is damaged
    in them is met here, and not by those who go through them."""

    _mend: Callable[[], str] | None = None
    hiding = ""
    """SQL before each SELECT, which hides rows from it."""

    @contextmanager
    def mending(self, mend: Callable[[], str]) -> Iterator[None]:
        """Hide what is damaged for as long as the block lasts.

        Args:
            mend: Called when a SELECT first comes upon damage; it returns SQL that hides it, which
                is put before that SELECT and all others in the block. Empty lets `Damaged` pass.
        """
        self._mend = mend
        try:
            yield
        finally:
            self._mend = None
            self.hiding = ""

    def execute(self, statement: Any, parameters: Any = None, **options: Any) -> Any:
        """Execute a statement, as SQLAlchemy does.

        Raises:
            Damaged: A row that it reads holds what this program never writes.
        """
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
            if not _may_be_null(column) and any(row[place] is None for row in found.data):
                raise Damaged(NOTHING)
        return found()


def _may_be_null(column: Any) -> bool:
    """Whether what is selected may be NULL: all but a table's own columns that say otherwise."""
    if isinstance(column, Label):
        column = column.element
    if not isinstance(column, Column) or not isinstance(column.table, Table):
        return True
    return bool(column.nullable)


def _hide(
    connection: Connection, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
) -> tuple[str, Any]:
    """Put what hides damage before a SELECT."""
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
        """What psycopg waits for; ten times a second, it is told that nothing has arrived."""
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


def _connect(url: URL) -> Selecting:
    """Open a connection. A file that is missing is made, but nothing is written to it."""
    if is_sqlite(url):
        _refuse_missing_folder(url)
        _refuse_odd(url)
        settings: dict[str, Any] = {"timeout": wait_s(), "check_same_thread": False}
        session = [
            "PRAGMA foreign_keys = ON",
            "PRAGMA synchronous = FULL",  # a commit survives the power cord
        ]
    else:
        settings = {} if "connect_timeout" in url.query else {"connect_timeout": CONNECT_S}
        # A driver frozen in the middle of a commit must not keep its successor waiting forever.
        session = [
            f"SET lock_timeout = {wait_s() * 1000:.0f}",
            f"SET idle_in_transaction_session_timeout = {2 * wait_s() * 1000:.0f}",
        ]
    engine = _engine(url, settings)
    try:
        connection = Selecting(engine)
    except ProgrammingError as error:  # psycopg's word for an option that it does not know
        raise StoreUnreachable(
            f"{display(url)}: {error.orig}", "check the options after the ? in the URL"
        ) from error
    try:
        for statement in session:
            connection.exec_driver_sql(statement)
    except BaseException:
        connection.close()
        raise
    return connection


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
    """Read text that is not UTF-8 as well, for the column's type to refuse it."""
    connection.text_factory = lambda text: text.decode("utf-8", "surrogateescape")


def _refuse_missing_folder(url: URL) -> None:
    folder = Path(str(url.database)).parent
    if in_memory(url) or folder.is_dir():
        return
    raise StoreUnreachable(
        f"{display(url)}: the folder {folder} does not exist", f"mkdir -p {folder}"
    )


def _refuse_odd(url: URL) -> None:
    """SQLite would wait at a pipe forever.

    Raises:
        StoreUnreachable: The file is not a database.
    """
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
    other; the file keeps it.

    SQLite waits for a lock everywhere but here, where others may be doing the same to a new file:
    so we wait.
    """
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
