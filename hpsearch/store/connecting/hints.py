"""Commands that messages suggest: each works as it stands, for the database that it is about."""

import os
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from hpsearch.errors import HpsearchError

DEFAULT_STORAGE = "sqlite:///hpsearch.db"  # the database of a command that names none
OF_A_DATABASE = (
    *("check", "run", "resume", "submit", "train", "import", "ls", "status", "best", "trials"),
    *("show", "export", "report", "dashboard", "mcp", "stop", "enqueue", "rm"),
    *("db upgrade", "db check"),
)
"""The commands that have the option --storage."""
_COMMAND = re.compile(
    rf"\bhpsearch (?:{'|'.join(OF_A_DATABASE)})\b"
    r"(?: '[^'\n]*'| \w(?:[\w./-]*\w)?)?"  # the name of a study, or a file
    r"(?=(?P<rest>[^\n]*))"
)


def for_database(storage: str, text: str) -> str:
    """A text in which each command names a database, without the password, unless the command would
    find that one by itself or names one already."""
    if not _COMMAND.search(text):
        return text
    from hpsearch.store.connecting.url import display, parse_url  # most texts need no SQLAlchemy

    found = os.environ.get("HPSEARCH_STORAGE") or DEFAULT_STORAGE
    if parse_url(storage) == parse_url(found):
        return text
    shown = display(parse_url(storage))

    def named(command: re.Match[str]) -> str:
        own, *_ = _COMMAND.split(command["rest"], maxsplit=1)
        option = "" if "--storage" in own else f" --storage {shlex.quote(shown)}"
        return command[0] + option

    return _COMMAND.sub(named, text)


@contextmanager
def suggesting_for(storage: str) -> Iterator[None]:
    """Errors out of the block suggest commands for this database."""
    try:
        yield
    except HpsearchError as error:
        error.hint = error.hint and for_database(storage, error.hint)
        raise
