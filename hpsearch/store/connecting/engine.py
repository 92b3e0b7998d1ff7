"""Engines of SQLAlchemy, which open connections and give them their settings."""

import os
import sqlite3
import time
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import URL, Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError, OperationalError
from sqlalchemy.pool import NullPool, Pool, QueuePool, StaticPool

from hpsearch.errors import StoreUnreachable, StoreUnusable
from hpsearch.store import codec
from hpsearch.store.connecting.file_systems import file_system_of
from hpsearch.store.connecting.url import connect_args, display, file_of, in_memory, is_sqlite
from hpsearch.store.connecting.waiting import CONNECT_S, wait_s

LOG_BYTES = 64 * 2**20
"""The size that SQLite's write-ahead log is cut back to. It grows past that while somebody reads
for long: what was committed since then cannot be moved into the database yet."""


def engine_at(url: URL, patience_s: float | None, *, create: bool) -> Engine:
    """An engine whose connections are in autocommit mode, and wait `patience_s` seconds for another
    writer (None for `wait_s`). With `create`, an SQLite file that is missing is made."""
    engine = create_engine(
        url,
        poolclass=_pool_of(url),
        isolation_level="AUTOCOMMIT",
        connect_args=connect_args(url),
        json_serializer=codec.encode,
        json_deserializer=bytes.decode,  # the column's type decodes it
    )
    opening = _Opening(url, patience_s, create=create)
    event.listen(engine, "do_connect", opening.connect)
    event.listen(engine, "connect", opening.set_up)
    event.listen(engine, "checkout", opening.refuse_replaced)
    return engine


def _pool_of(url: URL) -> type[Pool]:
    if in_memory(url):
        return StaticPool
    file = file_of(url)
    if file is not None and _is_immutable(file):
        return NullPool  # somebody else may write to it between two uses
    return QueuePool


class _Opening:
    """Opens the connections to one database."""

    def __init__(self, url: URL, patience_s: float | None, *, create: bool) -> None:
        self._url = url
        self._file = file_of(url)
        self._patience_s = patience_s
        self._may_create = create

    def connect(self, _: Any, record: Any, words: Any, settings: dict[str, Any]) -> Any:
        if not is_sqlite(self._url):
            from hpsearch.store.connecting.impatient import Impatient

            return Impatient.connect(*words, **{"connect_timeout": CONNECT_S, **settings})
        settings = {**settings, "timeout": self._wait_s(), "check_same_thread": False}
        file = self._file
        if file is None:
            return sqlite3.connect(*words, **settings)
        self._refuse_missing(file)
        if _is_immutable(file):
            return sqlite3.connect(f"file:{quote(str(file))}?immutable=1", **settings, uri=True)
        connection = sqlite3.connect(file, **settings)
        self._may_create = False
        record.info["file"] = _identity(file)
        return connection

    def _refuse_missing(self, file: Path) -> None:
        if not file.parent.is_dir():
            what = f"{display(self._url)}: the folder {file.parent} does not exist"
            raise StoreUnusable(what, f"mkdir -p {file.parent}")
        if file.is_dir():
            what = f"{display(self._url)}: {file} is a folder"
            raise StoreUnusable(what, "check the path, and name a file in it")
        if not self._may_create and not file.exists():
            what = f"{display(self._url)}: the file was removed"
            raise StoreUnreachable(what, "put it back where it was")

    def refuse_replaced(self, _: Any, record: Any, __: Any) -> None:
        """Refuse a connection whose file was removed or replaced: what it writes would be lost.
        SQLAlchemy connects anew then."""
        known = record.info.get("file")
        if known is not None and known != _identity(self._file):
            raise DisconnectionError(f"{self._file} was removed or replaced")

    def set_up(self, own: Any, _: Any) -> None:
        """Give a new connection of SQLite its settings. Those of a session of PostgreSQL would stay
        on a pooler's connections, which other programs get."""
        if not is_sqlite(self._url):
            return
        own.execute("PRAGMA foreign_keys = ON")
        own.execute("PRAGMA synchronous = FULL")  # a commit survives the power cord
        own.execute(f"PRAGMA journal_size_limit = {LOG_BYTES}")

    def _wait_s(self) -> float:
        return wait_s() if self._patience_s is None else self._patience_s


def _identity(file: Path | None) -> tuple[int, int] | None:
    try:
        status = os.stat(file)  # type: ignore[arg-type]  # noqa: PTH116 - as quick as can be
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_immutable(file: Path) -> bool:
    """True for a database with a write-ahead log in a folder that takes no new files. To read it,
    SQLite makes files beside it, unless it knows that nobody writes to it."""
    is_in_use = Path(f"{file}-wal").exists()
    takes_no_files = file.exists() and not is_in_use and not os.access(file.parent, os.W_OK)
    return takes_no_files and _has_log(file)


def _has_log(file: Path) -> bool:
    """True if a database is written ahead, by its header (https://sqlite.org/fileformat.html)."""
    try:
        with file.open("rb") as opened:
            return opened.read(20)[18:] == b"\2\2"
    except OSError:
        return True  # opening it says what is wrong


def set_journal(connection: Connection, file: Path) -> None:
    """Have an SQLite file written ahead, so that readers and the writer do not block each other; on
    a network file system, where that would damage it, have it keep a rollback journal. SQLite waits
    for a lock everywhere but here, so this function waits itself. Raises StoreUnusable where
    locks do not work."""
    where = file_system_of(file)
    if where.is_networked and not where.has_locks:
        raise StoreUnusable(
            f"{file} is on a network file system ({where.kind}) where machines do not see each"
            " other's locks, which would damage the database",
            "put it on a local disk, or use PostgreSQL",
        )
    journal = "DELETE" if where.is_networked else "WAL"
    give_up = time.monotonic() + wait_s()
    while True:
        try:
            connection.exec_driver_sql(f"PRAGMA journal_mode = {journal}")
        except OperationalError as error:
            if "locked" not in str(error.orig) or time.monotonic() > give_up:
                raise
        else:
            return
        time.sleep(0.01)
