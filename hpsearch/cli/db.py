"""`hpsearch db upgrade` and `hpsearch db check`: the database itself."""

from __future__ import annotations

from contextlib import closing

from hpsearch.cli.output import note
from hpsearch.errors import UserError
from hpsearch.store import schema
from hpsearch.store.invariants import violations
from hpsearch.store.queries import id_of_study
from hpsearch.store.saved import unusable
from hpsearch.store.store import Store
from hpsearch.store.store import upgrade as upgrade_schema
from hpsearch.views.numbers import count


def upgrade(storage: str) -> None:
    """Bring the database to this program's schema version; make its tables where it is empty."""
    before = upgrade_schema(storage)
    if before == schema.VERSION:
        note(f"the database is at schema {schema.VERSION} already")
    else:
        note(f"upgraded the database from {'nothing' if before is None else before} to {schema.VERSION}")


def check(name: str | None, storage: str) -> None:
    """Look for anything that must not be, in one study or in all: in the tables, and in the checkpoints they name.

    Raises:
        UserError: Something was found; it lists everything.
    """
    with closing(Store.open(storage, create=False)) as store:
        with store.reading() as connection:
            study_id = None if name is None else id_of_study(connection, name)
            found = violations(connection, study_id)
        found += unusable(store, study_id)
    if found:
        raise UserError(
            "\n".join([f"{count(len(found), 'thing')} found that must not be:", *(f"  {v}" for v in found)])
        )
    note("all is as it must be")
