"""The store: every write to the database, and the loading of studies.

A `Store` may be shared by threads: readers wait for nobody, writers take turns. Every write is one
transaction; a write to a study passes the fence of `hpsearch.store.leases` first. Readers see a
commit completely or not at all.
"""

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing
from typing import Self

from sqlalchemy import Connection, Dialect, delete, false, insert, select, update
from sqlalchemy.exc import IntegrityError

from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes, History
from hpsearch.domain.records import Request, StudyRecord, Trial
from hpsearch.errors import NoDatabase, StudyExists, Unreachable
from hpsearch.store import contents, leases, version
from hpsearch.store.connecting.database import Database
from hpsearch.store.connecting.engine import set_journal
from hpsearch.store.connecting.file_systems import file_system_of
from hpsearch.store.connecting.hints import for_database
from hpsearch.store.connecting.url import display, file_of, parse_url
from hpsearch.store.leases import Entry, Lease
from hpsearch.store.schema import REQUEST, STUDY, requests, studies


class Store:
    """A database of studies. Every method may raise `StoreUnreachable`, and then has had no effect,
    unless the connection broke in the middle of a commit: a `commit` with its revision may be
    repeated. The next call connects again. A missing study raises `StudyNotFound`."""

    def __init__(self, database: Database) -> None:
        """Use `Store.open`; this alone neither connects nor checks anything."""
        self._database = database
        self._inserts = contents.inserts(database.dialect)

    @classmethod
    def unchecked(cls, url: str, patience_s: float | None = None) -> Self:
        """The database at a URL that was opened before. The first call connects to it; `patience_s`
        is the wait for other writers, None for the environment's."""
        return cls(Database(parse_url(url), patience_s, create=False))

    @classmethod
    def open(cls, url: str, *, create: bool = True) -> Self:
        """Open the database at a URL (`sqlite:///file`, `sqlite://` in memory, `postgresql://...`).
        Its tables, and the file, are made if they do not exist, unless `create` is false. Raises
        UserError, StoreUnreachable or Unreachable if it cannot be used."""
        store = cls(Database(parse_url(url)))
        try:
            store._prepare(create)
        except BaseException:
            store.close()
            raise
        return store

    def _prepare(self, create: bool) -> None:
        url = self._database.url
        file = file_of(url)
        if file is not None and not create and not file.exists():
            raise self._missing()
        with self._database.connected() as connection:
            found = version.stored_version(connection, url)
            if found is None and not create:
                raise self._missing()
            if found is not None:
                version.check_version(found, url)
            if file is not None:
                set_journal(connection, file)
        if found is None:
            with self.writing() as connection:
                version.migrate(connection, url)

    def _missing(self) -> NoDatabase:
        return NoDatabase(
            f"there is no study database at {self.display_url}",
            "name another with --storage, or start a study: hpsearch run",
        )

    @property
    def url(self) -> str:
        """The URL it was opened with, password and all; a file's path is absolute."""
        return self._database.url.render_as_string(hide_password=False)

    @property
    def dialect(self) -> Dialect:
        return self._database.dialect

    @property
    def display_url(self) -> str:
        return display(self._database.url)

    def command(self, words: str) -> str:
        return for_database(self.url, f"hpsearch {words}")

    @property
    def caution(self) -> str | None:
        """A note for people on where the database is; None where nothing is to be noted."""
        file = file_of(self._database.url)
        where = None if file is None else file_system_of(file)
        if where is None or not where.is_networked:
            return None
        return (
            f"{file} is on a network file system ({where.kind}): readers and drivers wait for each"
            " other there. With several machines or many readers, use PostgreSQL"
        )

    def close(self) -> None:
        self._database.close()

    def reading(self) -> AbstractContextManager[Connection]:
        """A connection for queries, which see one moment of the database throughout the block.
        Raises Damaged, which names the column, for a cell that cannot be read."""
        return self._database.transaction("read")

    def writing(self) -> AbstractContextManager[Connection]:
        """A connection in one transaction that writes, which is rolled back where the block raises.
        Statements of other modules, such as `heartbeats`, pass the fence themselves."""
        return self._database.transaction("write")

    def create_study(self, record: StudyRecord, whole: Changes | None = None) -> StudyRecord:
        """Add a study, with changes of a `History`, and set its id. Raises StudyExists."""
        statement = insert(studies).returning(STUDY.id)
        try:
            with self.writing() as connection:
                record.id = connection.execute(
                    statement, contents.study_values(record)
                ).scalar_one()
                if whole is not None:
                    contents.write(connection, self._inserts, record.id, whole, revision=0)
        except IntegrityError:
            raise StudyExists(
                f"a study named {record.name} is already in {self.display_url}",
                f"continue it with: hpsearch resume {record.name}; or choose another name",
            ) from None
        return record

    def studies(self) -> list[StudyRecord]:
        with self.reading() as connection:
            return contents.records(connection, StudyRecord)

    def study_names(self) -> list[str]:
        with self.reading() as connection:
            return list(connection.scalars(select(STUDY.name).order_by(STUDY.id)))

    def refuse_read_only(self) -> None:
        """Raise StoreUnreachable if the database cannot be written to."""
        with self.writing() as connection:
            connection.execute(update(studies).where(false()).values(name=STUDY.name))

    def find_study(self, name: str) -> StudyRecord:
        with self.reading() as connection:
            found = contents.records(connection, StudyRecord, STUDY.name == name)
            if not found:
                raise contents.not_found(connection, name)
            return found[0]

    def delete_study(self, study_id: int) -> None:
        with self.writing() as connection:
            deleted = connection.execute(delete(studies).where(STUDY.id == study_id))
            if not deleted.rowcount:
                raise leases.gone(study_id)

    def load(self, name: str) -> History:
        """A study with trials, attempts and reports; without decisions and environments."""
        history = History(self.find_study(name))
        self.refresh(history, -1)
        return history

    def each_trial(self, study_id: int, since_revision: int = -1) -> Iterator[Trial]:
        """The trials of a study that were touched after a revision, or all, by number, with
        attempts and reports, of which few are held at a time. Each is as it was at one moment."""
        with self.reading() as connection:
            numbers = contents.numbers_since(connection, study_id, since_revision)
        for start in range(0, len(numbers), contents.FETCHED):
            some = numbers[start : start + contents.FETCHED]
            with self.reading() as connection:
                found = contents.trials_numbered(connection, study_id, some)
            yield from found.values()

    def refresh(self, history: History, since_revision: int) -> int:
        """Bring a history up to date with the commits of others since the revision that the last
        refresh returned (-1 for all). Its own changes in those places are lost. Returns its
        revision now."""
        if since_revision >= 0 and self.revision(history.study.id) == since_revision:
            return since_revision
        with self.reading() as connection:
            return contents.read(connection, history, since_revision)

    def revision(self, study_id: int) -> int:
        with self.reading() as connection:
            statement = select(STUDY.revision).where(STUDY.id == study_id)
            revision = connection.scalar(statement)
        if revision is None:
            raise leases.gone(study_id)
        return int(revision)

    def acquire(self, study_id: int, owner: str, ttl_s: float) -> Lease:
        """Take a study over, for `ttl_s` seconds by the database's clock unless it is renewed: from
        now on its last owner can write nothing more. The owner is one of `hpsearch.store.owners`.
        Raises StudyHeld if a lease on it has not expired."""
        with self.writing() as connection:
            return leases.acquire(connection, study_id, owner, ttl_s)

    def renew(self, lease: Lease, ttl_s: float, alive_at: float | None = None) -> Entry:
        """Keep a lease for `ttl_s` more seconds. `alive_at` is the time by the owner's own clock,
        until which its successor charges what ran. Raises LeaseLost if another driver has the
        study."""
        with self.writing() as connection:
            return leases.enter(connection, lease, ttl_s, alive_at, writes=False)

    def release(self, lease: Lease) -> None:
        """Give a lease back, so that the next driver need not wait, unless it was lost already."""
        with self.writing() as connection:
            leases.release(connection, lease)

    def holder(self, name: str) -> Lease | None:
        """The lease on a study, live or expired; None if its last driver gave it back."""
        self.find_study(name)
        with self.reading() as connection:
            return leases.holder(connection, name)

    def request_stop(self, name: str, origin: str = "somebody") -> None:
        """Ask the driver of a study to save everything and end, with its next commit or renewal. A
        driver that takes the study over later is not meant. People see `origin`."""
        asked = Request(0, RequestKind.INTERRUPT, {}, origin, time.time())
        study = self.find_study(name)
        with self.writing() as connection:
            of_study = update(studies).where(STUDY.id == study.id)
            connection.execute(of_study.values(stop_requested=True))
            self._add_request(connection, study.id, asked)

    def add_request(self, name: str, request: Request) -> int:
        """Ask something of a study, whose driver answers within a renewal of its lease. The id of
        the request is ignored; returns its id in the database."""
        study = self.find_study(name)
        with self.writing() as connection:
            return self._add_request(connection, study.id, request)

    def _add_request(self, connection: Connection, study_id: int, request: Request) -> int:
        values = contents.new_values(request, study_id=study_id)
        added = insert(requests).values(values).returning(REQUEST.id)
        return int(connection.execute(added).scalar_one())

    def waiting(self, study_id: int) -> list[Request]:
        with self._database.connected() as connection:
            return contents.waiting(connection, study_id)

    def find_request(self, request_id: int) -> Request:
        with self._database.connected() as connection:
            (found,) = contents.records(connection, Request, REQUEST.id == request_id)
            return found

    def commit(
        self,
        study_id: int,
        changes: Changes,
        lease: Lease | None = None,
        ttl_s: float | None = None,
        alive_at: float | None = None,
        revision: int | None = None,
    ) -> Entry:
        """Write the changes of a tick, as `History.drain` gave them, in one transaction.

        Without a lease, the study must be free of a live one. `ttl_s` renews the lease for so many
        seconds, and `alive_at` is as in `renew`. `revision` is the one that this commit makes: if
        the study is at it already, this very commit came through before, and nothing is written
        again.

        Nothing was written where it raises LeaseLost or StudyHeld, as a driver owns the study, or
        Unreachable, as the database is at an older state than the last commit made."""
        assert lease is None or lease.study_id == study_id
        try:
            with self.writing() as connection:
                if lease is None:
                    entry = leases.enter_free(connection, study_id)
                else:
                    entry = leases.enter(connection, lease, ttl_s, alive_at)
                if revision is not None and entry.revision == revision + 1:
                    raise _CameThrough
                if revision is not None and entry.revision != revision:
                    raise Unreachable(
                        f"the study in {self.display_url} is not as this driver has left it: a"
                        " backup was restored",
                        "nothing was written; go on from the backup with hpsearch resume",
                    )
                contents.write(connection, self._inserts, study_id, changes, entry.revision)
        except _CameThrough:
            pass  # the fence's work is rolled back: the study stays at the first time's revision
        return entry


class _CameThrough(Exception):
    """This commit was made before."""


def upgrade(url: str) -> int | None:
    """Bring a database of an older version to this program's, in one transaction. Returns the
    version it was at; None if it was empty. Raises as `Store.open`."""
    database = Database(parse_url(url))
    with closing(database), database.transaction("write") as connection:
        return version.migrate(connection, database.url)
