"""Opening the database, and finding the study that a command is about."""

from collections.abc import Iterator
from contextlib import closing, contextmanager

from sqlalchemy import Connection

from hpsearch.cli.output import note
from hpsearch.store.reading.queries import StudyHead, find_study, only_study
from hpsearch.store.store import Store


@contextmanager
def reading(storage: str) -> Iterator[Connection]:
    """A connection to the database at a URL; all reads within it see the same state.

    Raises:
        StoreUnreachable: It does not answer, or is not a database of this program.
        Unreachable: It is older or newer than this program.
        UserError: `storage` is not a URL of a supported database.
    """
    with closing(Store.open(storage, create=False)) as store, store.reading() as connection:
        yield connection


def chosen_study(connection: Connection, name: str | None) -> StudyHead:
    """The study of that name; without a name, the only one, whose name is printed to stderr.

    Raises:
        StudyNotFound: There is no such study, or no study at all.
        UserError: No name was given and there are several.
    """
    if name is not None:
        return find_study(connection, name)
    study = only_study(connection)
    note(f"study {study.name}")
    return study
