"""The commands of `hpsearch db`: `upgrade` and `check`."""

from contextlib import closing

from hpsearch.cli.output import note
from hpsearch.domain.numbers import count
from hpsearch.errors import UserError
from hpsearch.store import schema
from hpsearch.store.audit.checkpoints import unusable
from hpsearch.store.audit.invariants import violations
from hpsearch.store.reading.queries import find_study
from hpsearch.store.store import Store, upgrade


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
    """Check the tables of one study or all, and their checkpoints. Raises UserError for all."""
    with closing(Store.open(storage, create=False)) as store:
        if store.caution is not None:
            note(store.caution)
        with store.reading() as connection:
            study_id = None if name is None else find_study(connection, name).id
            found = violations(connection, study_id)
        found += unusable(store, name)
    if found:
        problems = "".join(f"\n  {each}" for each in found)
        raise UserError(f"{count(len(found), 'problem')} found:{problems}")
    note("no problems found")
