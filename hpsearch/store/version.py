"""The schema version of a database, and its upgrade to this program's."""

from collections.abc import Callable

import sqlalchemy as sa

from hpsearch.errors import StoreUnusable
from hpsearch.store import schema, tallies
from hpsearch.store.connecting.url import display, is_sqlite
from hpsearch.store.contents import rank_all

FIRST = "hpsearch_0009"  # the oldest schema that can be upgraded; earlier ones were never released


def _rank_and_tally(connection: sa.Connection) -> None:
    """Trials get columns for what they are ranked by, and studies their tallies, with indexes."""
    trials, dialect = schema.trials, connection.dialect
    for name, more in (("violation", " DEFAULT 0 NOT NULL"), ("standing", "")):
        kind = trials.c[name].type.compile(dialect)
        connection.exec_driver_sql(f"ALTER TABLE trials ADD COLUMN {name} {kind}{more}")
    for table in (trials, schema.attempts):
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    schema.tallies.create(connection)
    tallies.count_all(connection)


def _place_checkpoints(connection: sa.Connection) -> None:
    """Trials get the resource of their checkpoint, which is taken for their own."""
    kind = schema.trials.c.checkpoint_resource.type.compile(connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE trials ADD COLUMN checkpoint_resource {kind}")
    connection.exec_driver_sql(
        "UPDATE trials SET checkpoint_resource = resource WHERE checkpoint IS NOT NULL"
    )


def _note_gpus(connection: sa.Connection) -> None:
    """Attempts get the GPUs that they are charged for."""
    kind = schema.attempts.c.gpus.type.compile(connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE attempts ADD COLUMN gpus {kind}")


def _keep_first_reservations(connection: sa.Connection) -> None:
    """Attempts get what was reserved for them before they started."""
    kind = schema.attempts.c.first_reserved_gpu_seconds.type.compile(connection.dialect)
    connection.exec_driver_sql(f"ALTER TABLE attempts ADD COLUMN first_reserved_gpu_seconds {kind}")


RANKED = "hpsearch_0010"  # the first schema with what trials are ranked by

MIGRATIONS: dict[str, Callable[[sa.Connection], None]] = {
    RANKED: _rank_and_tally,
    "hpsearch_0011": _place_checkpoints,
    "hpsearch_0012": _note_gpus,
    "hpsearch_0013": _keep_first_reservations,
}
"""By the version that each leads to, oldest first: changes a database of the version before. A new
database needs none: it is made from the tables as they are now."""

VERSIONS = sa.Table(
    "alembic_version", sa.MetaData(), sa.Column("version_num", sa.String(32), primary_key=True)
)
"""One row, with the version. Its name is older than this module."""


def known_versions() -> list[str]:
    """All schema versions there have been, oldest first."""
    return [FIRST, *MIGRATIONS]


def stored_version(connection: sa.Connection, url: sa.URL) -> str | None:
    """The schema version of a database of ours; None if it is empty. Raises StoreUnusable if it
    belongs to another program."""
    inspector = sa.inspect(connection)
    names = inspector.get_table_names  # takes longer, and another process may be making them
    if inspector.has_table(VERSIONS.name) or VERSIONS.name in names():
        found = connection.scalar(sa.select(VERSIONS))
        if found is not None and found.startswith("hpsearch_"):
            return str(found)
    tables = names()
    if not tables:
        return None
    some = ", ".join(sorted(tables)[:3])
    raise StoreUnusable(
        f"{display(url)} belongs to another program (it has tables named {some});"
        " it was left as it is",
        "name another database or schema with --storage",
    )


def check_version(version: str, url: sa.URL) -> None:
    """Refuse a database with another schema version. Raises StoreUnusable."""
    if version == schema.VERSION:
        return
    if version > schema.VERSION:
        what, hint = "a newer hpsearch", "install the newer version of hpsearch"
    elif version in known_versions():
        what = "an older hpsearch"
        hint = f"hpsearch db backup FILE, and then: hpsearch db upgrade --storage {display(url)}"
    else:
        what = "an hpsearch that was never released"
        hint = "start anew: name another database with --storage"
    raise StoreUnusable(
        f"{display(url)} was made by {what} (schema {version}; this one uses {schema.VERSION})",
        hint,
    )


def migrate(connection: sa.Connection, url: sa.URL) -> str | None:
    """Bring an empty or older database to `schema.VERSION`, in a writing transaction of the
    caller's. Returns the version it was at; None if it was empty. Raises StoreUnusable if it is
    newer, or older than all that were released, and StoreUnusable if it belongs to another
    program."""
    if not is_sqlite(url):  # SQLite has taken its one lock already
        connection.exec_driver_sql("SELECT pg_advisory_xact_lock(hashtext('hpsearch schema'))")
    version = stored_version(connection, url)  # another process may have been faster
    if version is None:
        schema.metadata.create_all(connection)
        VERSIONS.create(connection)
        connection.execute(sa.insert(VERSIONS).values(version_num=schema.VERSION))
        return None
    if version not in known_versions():
        check_version(version, url)
    for newer, change in MIGRATIONS.items():
        if newer > version:
            change(connection)
    if version < RANKED:
        rank_all(connection)  # it reads trials, with all columns that they have now
    connection.execute(sa.update(VERSIONS).values(version_num=schema.VERSION))
    return version
