"""A process's part in a study that several processes ask: the brain, for one transaction at a time.

A transaction keeps all other writers of the study out from its beginning. The process brings its
copy of the history up to date, lets the brain decide, and writes the changes; where others have
written since its last one, it makes a new brain. A process that dies in a transaction has written
nothing: the next one finds that it has died.
"""

import logging
import os
import threading
import time
from collections.abc import Callable
from contextlib import closing
from typing import TypeVar

from sqlalchemy import Connection

from hpsearch.asking.transaction import Transaction
from hpsearch.brain.study import Study
from hpsearch.domain.events import Avoid, Fill
from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import History
from hpsearch.domain.records import StudyRecord, StudyState
from hpsearch.errors import HpsearchError, UserError
from hpsearch.running.creation.study import spec_of
from hpsearch.running.driver.journal import RENEW_S, patiently
from hpsearch.running.study_run.brain import build_study
from hpsearch.store import contents, heartbeats, leases, owners
from hpsearch.store.connecting.hints import suggesting_for
from hpsearch.store.heartbeats import Heartbeat, Key
from hpsearch.store.store import Store
from hpsearch.study_file.models import StudySpec

log = logging.getLogger("hpsearch")

T = TypeVar("T")

_OWN_ATTEMPTS: dict[str, dict[Key, int]] = {}
"""By the uid of a study, the attempts of this process that run, each with its thread."""


class _NothingNew(Exception):
    """Nothing has changed and nothing is written: others need not read again."""


class AskingSession:
    """The transactions of one process on one study. Safe to share between threads."""

    def __init__(self, store: Store, record: StudyRecord) -> None:
        self.store = store
        self.study_id = record.id
        self.name = record.name
        self.spec: StudySpec = spec_of(record)
        self.owner = owners.this_process()
        self.own_attempts = _OWN_ATTEMPTS.setdefault(record.uid or f"{store.url} {record.name}", {})
        self._steady: tuple[float, float] | None = None
        """The study's time at the last transaction, and the time by `time.monotonic` then."""
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._inserts = contents.inserts(store.dialect)
        self._begin_again(record)

    def _begin_again(self, record: StudyRecord) -> None:
        self._history = History(record)
        self._revision = -1
        self._brain: Study | None = None

    @property
    def ttl_s(self) -> float:
        """The seconds of silence after which a process counts as dead."""
        return self.spec.resources.lease_s

    def take(
        self, act: Callable[[Transaction], T], opens: Callable[[Transaction], None] | None = None
    ) -> T:
        """Act on the study as it is now, and write the changes. While the database does not answer
        this waits, as long as the study file says, and may call `act` again. `opens` is called
        first, with a study that is over too: it may let the study go on. Raises StudyHeld if a
        driver owns the study, StoreUnreachable if the database did not answer for too long, and
        UserError if this process is a fork of the one that opened the study."""
        if os.getpid() != self._process:
            raise UserError(
                f"study {self.name} was opened in another process, of which this one is a fork",
                "open it in this process: hpsearch.create or hpsearch.resume",
            )
        patience_s = self.spec.resources.database_patience_s
        with suggesting_for(self.store.url), self._lock:
            return patiently(lambda: self._once(act, opens), patience_s, time.monotonic, self.name)

    def _once(
        self, act: Callable[[Transaction], T], opens: Callable[[Transaction], None] | None
    ) -> T:
        result: list[T] = []
        launched: set[Key] = set()
        try:
            with self.store.writing() as connection:
                entry = leases.enter_free(connection, self.study_id)
                transaction = self._transaction(connection, entry)
                if opens is not None:
                    opens(transaction)
                self._bring_in_the_brain(transaction)
                if entry.has_requests:
                    self._answer_requests(connection, transaction)
                transaction.launched = launched
                result.append(act(transaction))
                self.own_attempts.update(dict.fromkeys(launched, threading.get_ident()))
                self._write(connection, transaction, entry.revision)
        except _NothingNew:
            return result[0]
        except BaseException:
            for key in launched:  # the next transaction sees if they are in the database
                self.own_attempts.pop(key, None)
            self._begin_again(self._history.study)
            raise
        self._revision = entry.revision
        return result[0]

    def _transaction(self, connection: Connection, entry: leases.Entry) -> Transaction:
        if entry.revision != self._revision + 1:
            contents.read(connection, self._history, self._revision)
            self._brain = None
        clock, last_seen = heartbeats.moment(connection, self.study_id)
        beats = heartbeats.read(connection, self.study_id)
        return Transaction(
            history=self._history,
            brain=self._brain,
            now=self._now(clock, last_seen),
            last_seen=last_seen,
            stop_requested=entry.stop_requested,
            beats=beats,
            dead=[beat for beat in beats if self._is_dead(beat)],
            owner=self.owner,
            revision=entry.revision - 1,
        )

    def _now(self, clock: float, last_seen: float | None) -> float:
        """The study's time, which never runs backwards. While this process has trials, it counts by
        a clock that nobody can set, and that stands still while the machine is suspended."""
        passing = time.monotonic()
        if self.own_attempts and self._steady is not None:
            study, then = self._steady
            clock = study + (passing - then)
        now = max(clock, last_seen or 0.0)
        self._steady = now, passing
        return now

    def _is_dead(self, beat: Heartbeat) -> bool:
        """True if nobody works on an attempt any more. A process is alive for itself, but an
        attempt that it does not hold was lost with the answer of a transaction."""
        if beat.owner == self.owner:
            return beat.key not in self.own_attempts
        return not beat.live or owners.is_dead(beat.owner)

    def _bring_in_the_brain(self, transaction: Transaction) -> None:
        """Let the brain take part, unless the study is over, and end attempts of dead processes."""
        study = self._history.study
        if study.state is not StudyState.RUNNING:
            self._brain = transaction.brain = None
            return
        if study.spec != self.spec.text:
            self.spec = spec_of(study)
        worked_s = transaction.worked_s()
        if transaction.brain is None:
            brain = build_study(self._history, self.spec)
            running = {beat.key for beat in transaction.beats}
            brain.join(transaction.now, transaction.last_seen or 0.0, running)
            self._brain = transaction.brain = brain
        transaction.active_s = study.active_seconds + worked_s
        transaction.brain.spending.time.begin(transaction.now, transaction.active_s)
        transaction.end_lost_attempts()

    def _answer_requests(self, connection: Connection, transaction: Transaction) -> None:
        if transaction.brain is None:
            return
        for request in contents.waiting(connection, self.study_id):
            stops_all = request.kind is RequestKind.INTERRUPT
            is_stopping = transaction.stop_requested and not transaction.forgets_stop
            if stops_all and not is_stopping:
                request.refused = leases.FORGOTTEN
            for command in transaction.brain.on_request(request, transaction.now):
                assert not isinstance(command, Avoid | Fill), "it has no nodes"
                transaction.free_slot_of((command.trial, command.attempt))

    def _write(self, connection: Connection, transaction: Transaction, revision: int) -> None:
        history, study_id = self._history, self.study_id
        transaction.close_if_finished()
        before = {beat.key for beat in transaction.beats}
        running = transaction.running()
        changes = history.drain()
        forgets_stop = transaction.forgets_stop
        if not changes and running == before and not forgets_stop:
            raise _NothingNew
        if transaction.active_s is not None:
            history.study.active_seconds = transaction.active_s
        changes.study = history.study
        contents.write(connection, self._inserts, study_id, changes, revision)
        heartbeats.end(connection, study_id, before - running)
        for key in running - before:
            heartbeats.begin(connection, study_id, key, self.owner, self.ttl_s)
        heartbeats.renew(connection, study_id, self.owner, self.ttl_s)
        heartbeats.seen(connection, study_id, transaction.now, forgets_stop=forgets_stop)


class HeartbeatThread:
    """Renews the heartbeats of a session while it holds attempts, by a connection of its own."""

    def __init__(self, session: AskingSession) -> None:
        self._session = session
        self._every_s = min(RENEW_S, session.ttl_s / 4)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="hpsearch heartbeats", daemon=True)
        self._thread.start()

    def end(self) -> None:
        self._ended.set()

    def close(self) -> None:
        """End the thread; wait for it for a moment."""
        self.end()
        self._thread.join(self._every_s)

    def _run(self) -> None:
        with closing(Store.unchecked(self._session.store.url)) as store:
            while not self._ended.wait(self._every_s):
                if self._session.own_attempts:
                    self._beat(store)

    def _beat(self, store: Store) -> None:
        session = self._session
        try:
            with store.writing() as connection:
                heartbeats.renew(connection, session.study_id, session.owner, session.ttl_s)
        except HpsearchError as error:
            log.warning("no sign of life of this process was written: %s", error.message)
