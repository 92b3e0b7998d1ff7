"""Time that passes for leases, which end by the database's own clock: they are moved into the past
instead."""

from sqlalchemy import update

from hpsearch.store.schema import studies
from hpsearch.store.store import Store


def let_pass(store: Store, seconds: float) -> None:
    """Let so much time pass for every lease in a database."""
    earlier = {
        "lease_since": studies.c.lease_since - seconds,
        "lease_expires": studies.c.lease_expires - seconds,
    }
    with store._database.transaction("write") as connection:
        connection.execute(update(studies).values(**earlier))
