"""The schema version that a database is at, and bringing it to the one of this program."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import (
    URL,
    Column,
    Connection,
    MetaData,
    String,
    Table,
    insert,
    inspect,
    select,
    update,
)

from hpsearch.errors import StoreUnreachable, Unreachable
from hpsearch.store import schema
from hpsearch.store.connecting.url import display, is_sqlite

FIRST = "hpsearch_0009"  # the oldest schema that can be upgraded; earlier ones were never released

MIGRATIONS: dict[str, Callable[[Connection], None]] = {}
"""By the version that each leads to, oldest first: changes a database of the version before. A new
database needs none: it is made from the tables as they are now."""

VERSIONS = Table("alembic_version", MetaData(), Column("version_num", String(32), primary_key=True))
"""One row, with the version. Its name is older than this module."""


def known_versions() -> list[str]:
    """All schema versions there have been, oldest first."""
    return [FIRST, *MIGRATIONS]


def stored_version(connection: Connection, url: URL) -> str | None:
    """The schema version of a database of ours; None if it is empty. Raises StoreUnreachable if it
    belongs to another program, or lacks tables."""
    present = inspect(connection)
    tables = present.get_table_names()
    if not tables:
        return None
    if VERSIONS.name in tables:
        columns = {column["name"] for column in present.get_columns(VERSIONS.name)}
        found = connection.scalar(select(VERSIONS)) if "version_num" in columns else None
        if found is not None and found.startswith("hpsearch_"):
            _refuse_half_made(found, tables, url)
            return str(found)
    some = ", ".join(sorted(tables)[:3])
    raise StoreUnreachable(
        f"{display(url)} belongs to another program (it has tables named {some});"
        " it was left as it is",
        "name another database or schema with --storage",
    )


def _refuse_half_made(version: str, tables: list[str], url: URL) -> None:
    missing = sorted(set(schema.metadata.tables) - set(tables))
    if version == schema.VERSION and missing:
        raise StoreUnreachable(
            f"{display(url)} is incomplete: it says schema {version}"
            f" but has no table {', '.join(missing)}",
            "restore a backup of it, or name another database with --storage",
        )


def check_version(version: str, url: URL) -> None:
    """Refuse a database that this program was not written for. Raises Unreachable if its schema is
    older, newer or unknown."""
    if version == schema.VERSION:
        return
    if version > schema.VERSION:
        raise Unreachable(
            f"{display(url)} was made by a newer hpsearch"
            f" (schema {version}; this one knows {schema.VERSION})",
            "install the newer version of hpsearch",
        )
    _refuse_unknown(version, url)
    raise Unreachable(
        f"{display(url)} was made by an older hpsearch"
        f" (schema {version}; this one uses {schema.VERSION})",
        f"back it up, then: hpsearch db upgrade --storage {display(url)}",
    )


def _refuse_unknown(version: str, url: URL) -> None:
    if version not in known_versions():
        raise Unreachable(
            f"{display(url)} says schema {version}, which no released hpsearch has had;"
            " it was left as it is",
            "start anew: name another database with --storage",
        )


def migrate(connection: Connection, url: URL) -> str | None:
    """Bring an empty or older database to `schema.VERSION`, in a writing transaction of the
    caller's. Returns the version it was at; None if it was empty. Raises Unreachable if it is
    newer, or older than all that were released, and StoreUnreachable if it belongs to another
    program."""
    if not is_sqlite(url):  # SQLite has taken its one lock already
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('hpsearch schema'))")
    version = stored_version(connection, url)  # another process may have been faster
    if version is None:
        schema.metadata.create_all(connection)
        VERSIONS.create(connection)
        connection.execute(insert(VERSIONS).values(version_num=schema.VERSION))
        return None
    if version > schema.VERSION:
        check_version(version, url)
    _refuse_unknown(version, url)
    for newer, change in MIGRATIONS.items():
        if newer > version:
            change(connection)
    connection.execute(update(VERSIONS).values(version_num=schema.VERSION))
    return version
