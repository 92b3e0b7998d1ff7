"""The schema version that a database is at, and bringing it to the one of this program."""

from __future__ import annotations

import threading
from pathlib import Path

from sqlalchemy import URL, Connection, inspect

from hpsearch.errors import SchemaMismatch, StoreUnreachable
from hpsearch.store import schema
from hpsearch.store.connecting.url import display, is_sqlite

MIGRATIONS = Path(__file__).parent / "migrations"

_alembic_lock = threading.Lock()  # alembic keeps what it is doing in a global


def known_versions() -> list[str]:
    """All schema versions there have been, oldest first."""
    return sorted(
        f"hpsearch_{path.name[1:5]}" for path in (MIGRATIONS / "versions").glob("v[0-9]*.py")
    )


def stored_version(connection: Connection, url: URL) -> str | None:
    """The schema version of a database of ours; None if it is empty.

    Raises:
        StoreUnreachable: Something else lives in it.
    """
    tables = inspect(connection).get_table_names()
    if not tables:
        return None
    if "alembic_version" in tables and _is_alembics(connection):
        version = connection.exec_driver_sql("SELECT version_num FROM alembic_version").scalar()
        if version is not None and str(version).startswith("hpsearch_"):
            _refuse_half_made(str(version), tables, url)
            return str(version)
    some = ", ".join(sorted(tables)[:3])
    raise StoreUnreachable(
        f"{display(url)} belongs to another program (it has tables named {some});"
        " it was left as it is",
        "name another database or schema with --storage",
    )


def _is_alembics(connection: Connection) -> bool:
    return any(
        column["name"] == "version_num"
        for column in inspect(connection).get_columns("alembic_version")
    )


def _refuse_half_made(version: str, tables: list[str], url: URL) -> None:
    """Refuse a database that lacks tables of its version. A migration is one transaction, so this
    program did not leave it like that.

    Raises:
        StoreUnreachable: It lacks some.
    """
    missing = sorted(set(schema.metadata.tables) - set(tables))
    if version == schema.VERSION and missing:
        raise StoreUnreachable(
            f"{display(url)} is incomplete: it says schema {version}"
            f" but has no table {', '.join(missing)}",
            "restore a backup of it, or name another database with --storage",
        )


def check_version(version: str, url: URL) -> None:
    """Refuse a database that this program was not written for.

    Raises:
        SchemaMismatch: It is older or newer.
    """
    if version < schema.VERSION:
        raise SchemaMismatch(
            f"{display(url)} was made by an older hpsearch"
            f" (schema {version}; this one uses {schema.VERSION})",
            f"back it up, then: hpsearch db upgrade --storage {display(url)}",
        )
    if version > schema.VERSION:
        raise SchemaMismatch(
            f"{display(url)} was made by a newer hpsearch"
            f" (schema {version}; this one knows {schema.VERSION})",
            "install the newer version of hpsearch",
        )


def migrate(connection: Connection, url: URL) -> str | None:
    """Bring an empty or older database to `schema.VERSION`, in a writing transaction of the
    caller's.

    Returns:
        The version it was at; None if it was empty.

    Raises:
        SchemaMismatch: It is newer.
        StoreUnreachable: Something else lives in it.
    """
    from alembic import command  # slow to import, and seldom needed
    from alembic.config import Config

    if not is_sqlite(url):  # SQLite has taken its one lock already
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('hpsearch schema'))")
    version = stored_version(connection, url)  # another process may have been faster
    if version == schema.VERSION:
        return version
    if version is not None and version > schema.VERSION:
        check_version(version, url)
    if version is not None and version not in known_versions():
        raise SchemaMismatch(
            f"{display(url)} says schema {version}, which no released hpsearch has had;"
            " it was left as it is",
            "restore a backup of it, or name another database with --storage",
        )
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    with _alembic_lock:
        command.upgrade(config, "head")
    return version
