"""Database URLs: SQLite for one machine, and PostgreSQL (through psycopg 3) for several."""

from pathlib import Path
from typing import Any

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from hpsearch.errors import UserError

_DRIVERS = {
    "sqlite": "sqlite",
    "sqlite+pysqlite": "sqlite",
    "postgresql": "postgresql+psycopg",
    "postgresql+psycopg": "postgresql+psycopg",
    "postgres": "postgresql+psycopg",
}
_SUPPORTED = "use sqlite:///hpsearch.db (a file) or postgresql://user:password@host/database"


def parse_url(text: str) -> URL:
    """Read a database URL; a file's path becomes absolute. Raises UserError for another one."""
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
        what = f"sqlite://{url.host} does not name a file"
        raise UserError(what, f"three slashes: sqlite:///{url.host}")
    if url.query:
        what = f"sqlite takes no options, and this URL has {', '.join(url.query)}"
        raise UserError(what, "leave out what follows the ?")
    if in_memory(url):
        return url
    file = Path(str(url.database)).expanduser().absolute()
    return url.set(database=str(file))


def connect_args(url: URL) -> dict[str, Any]:
    """The arguments for connections beside those in the URL. psycopg prepares no statements: the
    next transaction may be on another connection of a pooler."""
    return {"prepare_threshold": None} if url.get_driver_name() == "psycopg" else {}


def is_sqlite(url: URL) -> bool:
    return url.drivername.startswith("sqlite")


def in_memory(url: URL) -> bool:
    """True of an SQLite database that lives only as long as its connection."""
    return is_sqlite(url) and url.database in (None, "", ":memory:")


def file_of(url: URL) -> Path | None:
    if not is_sqlite(url) or in_memory(url):
        return None
    return Path(str(url.database))


def refuse_in_memory(url: URL, example: str = "sqlite:///hpsearch.db") -> None:
    """Refuse an SQLite database that is not a file; `example` shows how to name one."""
    if in_memory(url):
        raise UserError("a database in memory ends with the program", f"name a file: {example}")


def display(url: URL) -> str:
    """The URL as a person would write it, without its passwords."""
    secrets = [key for key in ("password", "sslpassword") if key in url.query]
    hidden = dict.fromkeys(secrets, "hidden")
    shown = url.set(drivername=url.get_backend_name()).update_query_dict(hidden)
    return shown.render_as_string(hide_password=True)
