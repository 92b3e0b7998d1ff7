"""Database URLs: which are taken, and how they are shown to people.

Two databases are supported: SQLite, for one machine, and PostgreSQL (through psycopg 3), for
several.
"""

from __future__ import annotations

from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from hpsearch.errors import UserError
from hpsearch.store import codec

_DRIVERS = {
    "sqlite": "sqlite+pysqlite",
    "sqlite+pysqlite": "sqlite+pysqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}
_SUPPORTED = "use sqlite:///hpsearch.db (a file) or postgresql://user:password@host/database"
_SECRETS = ("password", "sslpassword")


def parse_url(text: str) -> URL:
    """Read a database URL; a file's path is made absolute. Raises UserError if it is no URL, or of
    a database that is not supported."""
    try:
        url = make_url(text)
    except (ArgumentError, ValueError):  # its text may hold a password: it is not repeated
        raise UserError("the storage is not given as a database URL", _SUPPORTED) from None
    if url.drivername not in _DRIVERS:
        raise UserError(f"databases of the kind {url.drivername} are not supported", _SUPPORTED)
    url = url.set(drivername=_DRIVERS[url.drivername])
    if not is_sqlite(url):
        return url
    if url.host is not None:
        raise UserError(
            f"sqlite://{url.host} names no file", f"three slashes: sqlite:///{url.host}"
        )
    if url.query:
        given = ", ".join(url.query)
        raise UserError(
            f"sqlite takes no options, and this URL has {given}", "leave out what follows the ?"
        )
    if in_memory(url):
        return url
    file = _file(str(url.database))
    return url.set(database=str(file))


def _file(name: str) -> Path:
    if not codec.storable(name):
        raise UserError(
            f"the storage {name[:60]!r} has a character that no URL can have", _SUPPORTED
        )
    try:
        path = Path(name).expanduser().absolute()
        path.exists()
    except (OSError, RuntimeError) as error:  # too long, or no such home
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise UserError(
            f"the storage {name[:60]!r} is not a file that can be opened: {why}", _SUPPORTED
        ) from None
    return path


def is_sqlite(url: URL) -> bool:
    return url.drivername.startswith("sqlite")


def in_memory(url: URL) -> bool:
    """True if it is an SQLite database that lives only as long as its connection."""
    return is_sqlite(url) and url.database in (None, "", ":memory:")


def refuse_in_memory(url: URL, example: str = "sqlite:///hpsearch.db") -> None:
    """Refuse an SQLite database that is not a file; `example` shows how to name one."""
    if in_memory(url):
        raise UserError("a database in memory ends with the program", f"name a file: {example}")


def display(url: URL) -> str:
    """The URL as a person would write it, with its passwords left out."""
    hidden = {key: "hidden" for key in _SECRETS if key in url.query}
    shown = url.set(drivername=url.get_backend_name()).update_query_dict(hidden)
    return shown.render_as_string(hide_password=True)
