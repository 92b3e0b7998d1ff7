"""The schema version of a database, and its upgrade to this program's."""

from collections.abc import Callable

import sqlalchemy as sa

from hpsearch.errors import StoreUnusable
from hpsearch.store import schema
from hpsearch.store.connecting.url import display, is_sqlite

FIRST = 1


def _add_files(connection: sa.Connection) -> None:
    column = sa.schema.CreateColumn(schema.environments.c.files).compile(connection)
    connection.exec_driver_sql(f"ALTER TABLE environments ADD COLUMN {column}")


def _add_versions(connection: sa.Connection) -> None:
    schema.versions.create(connection)
    column = sa.schema.CreateColumn(schema.trials.c.version).compile(connection)
    connection.exec_driver_sql(f"ALTER TABLE trials ADD COLUMN {column} DEFAULT 1")


def _name_revision_runs(connection: sa.Connection) -> None:
    """Runs of changed code had the role of repeats, which each repeat a trial."""
    of_code = "UPDATE trials SET role = 'revision' WHERE role = 'confirm' AND repeats IS NULL"
    connection.exec_driver_sql(of_code)


MIGRATIONS: dict[int, Callable[[sa.Connection], None]] = {
    2: _add_files,
    3: _add_versions,
    4: schema.revisions.create,
    5: _name_revision_runs,
}
"""By the version that each leads to, rising from `FIRST` + 1: changes a database of the version
before. A new database needs none: it is made from the tables as they are now."""

VERSIONS = sa.Table(
    "hpsearch_schema", sa.MetaData(), sa.Column("version", sa.Integer, primary_key=True)
)
"""One row, with the version."""

FORMER = sa.table("alembic_version", sa.column("version_num"))
"""Where versions before 0.2.0 kept theirs, and other programs still do."""


def stored_version(connection: sa.Connection, url: sa.URL) -> int | None:
    """The schema version of a database of ours; None if it is empty. Raises StoreUnusable if it
    was made before version 0.2.0, or belongs to another program."""
    inspector = sa.inspect(connection)
    names = inspector.get_table_names  # takes longer, and another process may be making them
    if inspector.has_table(VERSIONS.name) or VERSIONS.name in names():
        found = connection.scalar(sa.select(VERSIONS))
        if isinstance(found, int):
            return found
    tables = names()
    if not tables:
        return None
    if FORMER.name in tables:
        former = connection.scalar(sa.select(FORMER))
        if str(former).startswith("hpsearch_"):
            raise StoreUnusable(
                f"{display(url)} was made by an hpsearch before 0.2.0 (schema {former}), whose"
                " databases are not read; it was left as it is",
                "begin a new database: name another file with --storage, such as"
                " sqlite:///new.db, or another database of PostgreSQL",
            )
    some = ", ".join(sorted(tables)[:3])
    raise StoreUnusable(
        f"{display(url)} belongs to another program (it has tables named {some});"
        " it was left as it is",
        "name another database or schema with --storage",
    )


def check_version(version: int, url: sa.URL) -> None:
    """Refuse a database with another schema version. Raises StoreUnusable."""
    if version == schema.VERSION:
        return
    if version > schema.VERSION:
        what, hint = "a newer hpsearch", "install the newer version of hpsearch"
    else:
        what = "an older hpsearch"
        hint = f"make a copy of it, and then: hpsearch db upgrade --storage {display(url)}"
    raise StoreUnusable(
        f"{display(url)} was made by {what} (schema {version}; this one uses {schema.VERSION})",
        hint,
    )


def migrate(connection: sa.Connection, url: sa.URL) -> int | None:
    """Bring an empty or older database to `schema.VERSION`, in a writing transaction of the
    caller's. Returns the version it was at; None if it was empty. Raises StoreUnusable."""
    if not is_sqlite(url):  # SQLite has taken its one lock already
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('hpsearch schema'))")
    version = stored_version(connection, url)  # another process may have been faster
    if version is None:
        schema.metadata.create_all(connection)
        VERSIONS.create(connection)
        connection.execute(sa.insert(VERSIONS).values(version=schema.VERSION))
        return None
    if version > schema.VERSION:
        check_version(version, url)
    for newer, change in MIGRATIONS.items():
        if newer > version:
            change(connection)
    connection.execute(sa.update(VERSIONS).values(version=schema.VERSION))
    return version
