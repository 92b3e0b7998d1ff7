"""Space that a database does not use, given back to the disk."""

from contextlib import closing
from pathlib import Path

from sqlalchemy import URL

from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.engine import LOG_BYTES


def unused(url: URL) -> int:
    """The bytes of an SQLite database that hold nothing."""
    with closing(Database(url, create=False)) as database, database.connected() as connection:
        pages = connection.exec_driver_sql("PRAGMA freelist_count").scalar_one()
        return int(pages * connection.exec_driver_sql("PRAGMA page_size").scalar_one())


def shrink(url: URL) -> None:
    """Write an SQLite database anew, without unused space. Others that write to it wait until it is
    done, for about as long as a copy takes."""
    with closing(Database(url, create=False)) as database, database.connected() as connection:
        connection.exec_driver_sql("VACUUM")


def cut_log(url: URL, file: Path) -> int | None:
    """Cut the write-ahead log of an SQLite database back, unless somebody uses the database at this
    moment. Returns its size in bytes if it stays larger than it would be by itself, as a program
    has been reading for long."""
    with closing(Database(url, create=False)) as database, database.connected() as connection:
        connection.exec_driver_sql("PRAGMA busy_timeout = 0")  # nobody waits for this
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
        log = Path(f"{file}-wal")
        left = log.stat().st_size if log.exists() else 0
    return left if left > LOG_BYTES else None
