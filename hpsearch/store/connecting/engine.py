"""Engines of SQLAlchemy: how a connection is opened, and what it is set to."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool

from hpsearch.errors import StoreUnreachable, UserError
from hpsearch.store import codec
from hpsearch.store.connecting.selecting import hide
from hpsearch.store.connecting.url import display, is_sqlite
from trials.data import files

CONNECT_S = 10  # how long to wait for a PostgreSQL server to take a connection, in seconds


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


def engine_at(url: URL) -> Engine:
    """An engine for a database, each connection of which is opened and closed by its user: a pool
    would add a quarter to the time of a small transaction."""
    engine = create_engine(
        url,
        poolclass=NullPool,
        isolation_level="AUTOCOMMIT",
        json_serializer=codec.encode,
        json_deserializer=bytes.decode,  # the column's type decodes it
    )
    event.listen(engine, "before_cursor_execute", hide, retval=True)
    return engine


def connected_file(words: Any, settings: dict[str, Any], patience_s: float) -> Any:
    """A connection to an SQLite database, with the words that SQLAlchemy would connect with."""
    connection = sqlite3.connect(
        *words, **{**settings, "timeout": patience_s, "check_same_thread": False}
    )
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    return connection


def connected_server(words: Any, settings: dict[str, Any]) -> Any:
    """A connection to a PostgreSQL server, which does not wait for it forever."""
    return _Impatient.connect(*words, **{"connect_timeout": CONNECT_S, **settings})


def settings_of(url: URL, patience_s: float, name: str | None) -> list[tuple[str, ...]]:
    """The statements that a new connection begins with, each with its values. A server shows the
    `name` among its sessions."""
    if is_sqlite(url):
        durable = "PRAGMA synchronous = FULL"  # a commit survives the power cord
        opens_all = "PRAGMA schema_version"  # the files beside it, too
        return [("PRAGMA foreign_keys = ON",), (durable,), (opens_all,)]
    # A driver frozen in the middle of a commit must not keep its successor waiting forever.
    statements: list[tuple[str, ...]] = [
        (f"SET lock_timeout = {patience_s * 1000:.0f}",),
        (f"SET idle_in_transaction_session_timeout = {2 * wait_s() * 1000:.0f}",),
    ]
    if name is not None:
        statements.append(("SELECT set_config('application_name', %s, false)", name[:63]))
    return statements


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


def immutable(file: Path) -> str | None:
    """The name by which to open a database where no file can be made beside it; None if it can be
    opened as it is.

    SQLite makes files beside one to read it, unless it is told that nobody writes to it. That holds
    if those files are not there, for as long as one look takes.
    """
    is_in_use = Path(f"{file}-wal").exists()
    if is_in_use or not file.exists() or os.access(file.parent, os.W_OK):
        return None
    return f"file:{quote(str(file))}?immutable=1"


def refuse_unusable(url: URL, file: Path) -> None:
    """Refuse a file whose folder is missing, or at which SQLite would wait forever, such as a
    pipe."""
    if not file.parent.is_dir():
        raise StoreUnreachable(
            f"{display(url)}: the folder {file.parent} does not exist", f"mkdir -p {file.parent}"
        )
    try:
        files.refuse_odd(file)
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
