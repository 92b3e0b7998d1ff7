"""Copies of an SQLite database while programs write to it."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

from sqlalchemy import URL

from hpsearch.errors import Damaged, StoreUnreachable
from hpsearch.store import schema, version
from hpsearch.store.audit.invariants import Violation, violations
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import display, file_of, parse_url


def copy(url: URL, to: Path) -> list[Violation]:
    """Copy a database, of any schema version, to a path where nothing is.

    The copy is the database at one moment. With a write-ahead log no writer waits for it; with the
    rollback journal of a network file system, commits do.

    Returns:
        The violations in the copy, which are those of the database; none are looked for in one of
        another schema version.

    Raises:
        Damaged: SQLite finds the copy damaged.
        StoreUnreachable: There is no such database, or the copy cannot be written.
    """
    file = file_of(url)
    assert file is not None
    missing = StoreUnreachable(f"there is no study database at {display(url)}")
    if not file.exists():
        raise missing
    with closing(Database(url, create=False)) as database, database.connected() as connection:
        if version.stored_version(connection, url) is None:
            raise missing
        connection.exec_driver_sql("VACUUM INTO ?", (str(to),))
    shutil.copymode(file, to)
    return _checked(to)


def _checked(copied: Path) -> list[Violation]:
    url = parse_url(f"sqlite:///{copied}")
    database = Database(url, create=False)
    with closing(database), database.transaction("read") as connection:
        found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
        if found != ["ok"]:
            raise Damaged(f"{found[0]} (in the copy)", "restore an earlier backup")
        if version.stored_version(connection, url) != schema.VERSION:
            return []
        return violations(connection)
