"""Opening the database, and finding the study that a command is about."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress

from sqlalchemy import Connection

from hpsearch.cli.launchers import launched_by, queued
from hpsearch.cli.output import chosen_storage, note, submitted_by
from hpsearch.domain.plugins.queued import QueuedJob
from hpsearch.errors import HpsearchError, NoDatabase, StudyNotFound
from hpsearch.store.reading.queries import StudyHead, find_study, only_study
from hpsearch.store.store import Store


@contextmanager
def reading(storage: str) -> Iterator[Connection]:
    """A connection to the database at a URL, of one moment. Raises as `Store.open`."""
    with closing(Store.open(storage, create=False)) as store, store.reading() as connection:
        yield connection


def chosen_study(connection: Connection, name: str | None) -> StudyHead:
    """The study of that name; without a name, the only one, whose name is printed to stderr. Raises
    StudyNotFound, or UserError if there are several."""
    study = only_study(connection) if name is None else find_study(connection, name)
    if name is None:
        note(f"study {study.name}")
    submitted_by(launched_by(study.base, study.name, chosen_storage()))
    return study


def waiting(name: str | None, storage: str) -> QueuedJob | None:
    """The job that waits in a queue, or has only begun, for a study that is not in the database
    yet; without a name for the only one that waits."""
    jobs = queued(storage, name)
    return jobs[0] if len(jobs) == 1 else None


def with_queue(error: HpsearchError) -> HpsearchError:
    """An error; if it is that a study or the database is missing, with what waits in the queue."""
    if isinstance(error, NoDatabase | StudyNotFound):
        lines = []
        with suppress(HpsearchError):  # of the two, this one is told
            for each in queued(chosen_storage()):
                cancel = f"cancel it with: hpsearch stop {each.study}"
                lines.append(f"study {each.study} {each.in_words} - {cancel}")
        if error.hint and not (lines and isinstance(error, NoDatabase)):
            lines.insert(0, error.hint)
        error.hint = "\n  ".join(lines) or None
    return error
