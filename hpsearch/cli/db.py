"""`hpsearch db upgrade` and `hpsearch db check`."""

from __future__ import annotations

from contextlib import closing

from hpsearch.cli.output import note
from hpsearch.errors import UserError
from hpsearch.store import schema
from hpsearch.store.audit.checkpoints import unusable
from hpsearch.store.audit.invariants import violations
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store, upgrade
from hpsearch.words.numbers import count


def upgrade_database(storage: str) -> None:
    """Bring the database to this program's schema version; create the tables if it is empty."""
    before = upgrade(storage)
    if before is None:
        note(f"created the tables of schema {schema.VERSION}")
    elif before == schema.VERSION:
        note(f"the database is already at schema {schema.VERSION}")
    else:
        note(f"upgraded the database from schema {before} to {schema.VERSION}")


def check_database(name: str | None, storage: str) -> None:
    """Check the tables, and the checkpoints that they name.

    Args:
        name: The study to check; None for all.
        storage: The database's URL.

    Raises:
        UserError: Problems were found; it lists all of them.
    """
    with closing(Store.open(storage, create=False)) as store:
        with store.reading() as connection:
            study_id = None if name is None else find_study(connection, name).id
            found = violations(connection, study_id)
        found += unusable(store, name)
    if found:
        problems = [f"  {each}" for each in found]
        lines = [f"{count(len(found), 'problem')} found:", *problems]
        raise UserError("\n".join(lines))
    note("no problems found")
