"""Copies of an SQLite database while programs write to it.

A copy names the checkpoints that its original named at that moment. As a study goes on in the
original, they go. So a copy keeps the revision of each study: until a study has gone on in the
copy, too, what is gone of its checkpoints is no damage.
"""

import shutil
import time
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from hpsearch.domain.records import StudyState
from hpsearch.errors import Damaged, NoDatabase
from hpsearch.store import schema, version
from hpsearch.store.audit.invariants import Violation, violations
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.url import display, file_of, parse_url
from hpsearch.store.store import Store

COPIED = sa.Table(
    "copied",
    sa.MetaData(),
    sa.Column("study_id", sa.Integer, primary_key=True),
    sa.Column("revision", sa.BigInteger, nullable=False),
    sa.Column("at", sa.Double, nullable=False),
    sa.Column("original", sa.Text, nullable=False),
)
"""In a copy alone: the studies as they were, when it was made, and of which file."""


@dataclass(frozen=True)
class Copied:
    """The findings about a copy.

    Args:
        violations: Those of the database; none are looked for in one of another schema version.
        running: The names of studies that ran, and go on in the original.
    """

    violations: list[Violation]
    running: list[str]


def copy(url: sa.URL, to: Path) -> Copied:
    """Copy a database, of any schema version, to a path where nothing is.

    The copy is the database at one moment. With a write-ahead log no writer waits for it; with the
    rollback journal of a network file system, commits do.

    Raises:
        Damaged: SQLite finds the copy damaged.
        StoreUnreachable: There is no such database, or the copy cannot be written.
    """
    file = file_of(url)
    assert file is not None
    missing = NoDatabase(f"there is no study database at {display(url)}")
    if not file.exists():
        raise missing
    with closing(Database(url, create=False)) as database, database.connected() as connection:
        if version.stored_version(connection, url) is None:
            raise missing
        connection.exec_driver_sql("VACUUM INTO ?", (str(to),))
    shutil.copymode(file, to)
    copied = parse_url(f"sqlite:///{to}")
    with closing(Database(copied, create=False)) as database:
        with database.transaction("write") as connection:
            _note_revisions(connection, file)
        with database.transaction("read") as connection:
            studies = schema.studies.c
            running = sa.select(studies.name).where(studies.state == StudyState.RUNNING)
            names = connection.scalars(running.order_by(studies.name)).all()
            return Copied(_violations(connection, copied), list(names))


def _note_revisions(connection: sa.Connection, original: Path) -> None:
    studies = schema.studies.c
    COPIED.drop(connection, checkfirst=True)  # of the copy that the original was made from
    COPIED.create(connection)
    when, path = sa.literal(time.time()), sa.literal(str(original.resolve()))
    now = sa.select(studies.id, studies.revision, when, path)
    connection.execute(COPIED.insert().from_select(list(COPIED.columns), now))


def _violations(connection: sa.Connection, url: sa.URL) -> list[Violation]:
    found = connection.exec_driver_sql("PRAGMA integrity_check").scalars().all()
    if found != ["ok"]:
        raise Damaged(f"{found[0]} (in the copy)", "restore an earlier backup")
    if version.stored_version(connection, url) != schema.VERSION:
        return []
    return violations(connection)


def unchanged_since_copied(connection: sa.Connection) -> Mapping[str, float]:
    """When a database was copied, by each study that is as it was then; empty of an original."""
    if not sa.inspect(connection).has_table(COPIED.name):
        return {}
    studies = schema.studies.c
    same = (COPIED.c.study_id == studies.id) & (COPIED.c.revision == studies.revision)
    rows = connection.execute(sa.select(studies.name, COPIED.c.at).where(same))
    return dict(tuple(row) for row in rows)


def original_of(store: Store, name: str) -> str | None:
    """The file that a study's checkpoints belong to, where this database is a copy beside it in
    which the study has not gone on. None of an original, and of a copy that was put in its place.
    """
    file = file_of(parse_url(store.url))
    with store.reading() as connection:
        if name not in unchanged_since_copied(connection):
            return None
        original: str | None = connection.scalar(sa.select(COPIED.c.original).limit(1))
    return None if file is not None and str(file.resolve()) == original else original
