"""How long a database is waited for."""

import os

from hpsearch.errors import UserError

CONNECT_S = 10  # how long to wait for a PostgreSQL server to take a connection, in seconds


def wait_s() -> float:
    """The seconds to wait for another writer, by `HPSEARCH_DATABASE_TIMEOUT`. Raises UserError."""
    given = os.environ.get("HPSEARCH_DATABASE_TIMEOUT", "30")
    if not given.isdecimal() or len(given) > 6 or int(given) == 0:
        raise UserError(
            f"HPSEARCH_DATABASE_TIMEOUT is {given!r}", "give whole seconds, or nothing for 30"
        )
    return float(given)


def answer_s() -> float:
    """The seconds to wait for PostgreSQL's answer: longer than it waits for a lock itself."""
    return wait_s() + 5
