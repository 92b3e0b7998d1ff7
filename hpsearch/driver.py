"""The loop: poll the executor, let the brain decide, commit, then execute. Nothing else happens here.

What was decided is in the database before anything is ordered, in one transaction a tick, fenced by the driver's
lease. A driver that dies between the two loses nothing: the next one finds the attempt, knows that it is nobody's,
and continues the trial.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from hpsearch import events as ev
from hpsearch.errors import StoreUnreachable
from hpsearch.records import Changes
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study import Study

LEASE_TTL_S = 45.0
"""A driver that has not renewed its lease for so long is taken for dead, where a study file says nothing else."""

RENEW_S = 5.0
"""How often, at the least, a lease is renewed and a request to stop is looked for when nothing else is written."""

POLL_S = 1.0
"""The longest wait for events: limits on time are watched this often."""

STOP_GRACE_S = 60.0
"""How long an interrupted study waits for its workers to save, where a study file says nothing else."""

STORE_PATIENCE_S = 300.0
"""How long a database that does not answer is waited for while trials train on; see `Patience`."""

log = logging.getLogger("hpsearch")

T = TypeVar("T")


@dataclass(frozen=True)
class Patience:
    """How long a driver, its database and its workers are waited for.

    Args:
        lease_s: Seconds after which a driver that has not renewed its lease is taken for dead.
        database_s: Seconds that a database which does not answer is waited for; then the driver ends, resumable.
        workers_s: Seconds that an interrupted study waits for its workers to save.
    """

    lease_s: float = LEASE_TTL_S
    database_s: float = STORE_PATIENCE_S
    workers_s: float = STOP_GRACE_S


class Executor(Protocol):
    """Runs attempts on slots. Commands are carried out in order for each slot, and repeating one does nothing."""

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot."""

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""

    def stop(self, order: ev.Stop) -> None:
        """End an attempt; where `save` is set, save first and answer with `Stopped`."""

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """Events in the order they happened; waits up to `timeout_s` for the first one."""


Watch = Callable[[Study, Changes, float], None]
"""Called after every tick with what it wrote, for a live view; it must not change anything."""


def due_of(study: Study) -> float | None:
    """When the study must be asked next, though nothing happens: an attempt will need more of the budget, or stop."""
    running = (live for live in study.live.values() if live.stopping is None)
    return study.books.due((live.attempt, live.slot.gpus) for live in running)


class Driver:
    """Drives one study to its end.

    Args:
        study: The brain.
        executor: What runs the attempts.
        store: Where everything is written.
        lease: This driver's claim on the study.
        watch: Called after every tick.
        clock: Seconds since the epoch.
        patience: How long it waits for the database and for workers that save, and others for it.
    """

    def __init__(
        self,
        study: Study,
        executor: Executor,
        store: Store,
        lease: Lease,
        watch: Watch = lambda study, changes, now: None,
        clock: Callable[[], float] = time.time,
        patience: Patience = Patience(),
    ) -> None:
        self._study = study
        self._executor = executor
        self._store = store
        self._lease = lease
        self._watch = watch
        self._clock = clock
        self._patience = patience
        self._renew_s = min(RENEW_S, patience.lease_s / 4)
        self._stop_requested = False
        self._written = 0.0
        self._revision = 0

    def request_stop(self) -> None:
        """Stop at the next tick: workers save, and the study is left resumable. Safe in a signal handler."""
        self._stop_requested = True

    def run(self, last_seen: float | None = None) -> None:
        """Drive until the study has finished, or was interrupted and is saved.

        Args:
            last_seen: When an earlier driver of this study was last known to live.

        Raises:
            LeaseLost: Another driver took the study over; nothing of this one's was written since.
            StoreUnreachable: The database did not answer for as long as there was patience.
        """
        study, stop_by = self._study, None
        self._revision = self._patiently(lambda: self._store.revision(study.history.study.id))
        study.begin(self._clock(), last_seen)
        self._execute(self._tick([]))
        while not study.finished:
            due = due_of(study)
            wait = POLL_S if due is None else min(POLL_S, max(0.0, due - self._clock()))
            commands = self._tick(self._executor.poll(wait))
            now = self._clock()
            if self._stop_requested and not study.interrupted:
                commands += study.interrupt(now)
                stop_by = now + self._patience.workers_s
            if stop_by is not None and now > stop_by:
                study.abandon(now)
                self._commit(now)
            self._execute(commands)
        now = self._clock()
        study.close(now)
        self._watch(study, self._commit(now), now)

    def _tick(self, events: list[ev.Event]) -> list[ev.Command]:
        """Decide on what happened and commit it; the commands may go out afterwards."""
        now = self._clock()
        commands: list[ev.Command] = []
        for event in events:
            commands += self._study.on_event(event, now)
        commands += self._study.on_tick(now)
        self._watch(self._study, self._commit(now), now)
        return commands

    def _commit(self, now: float) -> Changes:
        changes = self._study.history.drain()
        if changes or now - self._written >= self._renew_s:
            if self._patiently(lambda: self._write(changes)):  # no |=, which would forget a signal that comes meanwhile
                self._stop_requested = True
            self._written = now
        return changes

    def _write(self, changes: Changes) -> bool:
        """One transaction; returns whether a stop has been requested.

        It is named by the revision it makes: where it came through though its answer was lost, trying it again writes
        nothing twice.
        """
        lease_s = self._patience.lease_s
        if not changes:
            return self._store.renew(self._lease, self._clock(), lease_s)
        study_id, revision = self._study.history.study.id, self._revision + 1
        stop = self._store.commit(study_id, changes, self._lease, self._clock(), lease_s, revision)
        self._revision = revision
        return stop

    def _patiently(self, call: Callable[[], T]) -> T:
        """Call the database, again and again while it does not answer: trials train on meanwhile."""
        began, pause, troubled = self._clock(), 0.1, False
        while True:
            try:
                answer = call()
            except StoreUnreachable as error:
                waited = self._clock() - began
                if waited > self._patience.database_s:
                    name = self._study.history.study.name
                    hint = f"all is saved as of the last report; when it answers again: hpsearch resume {name}"
                    raise StoreUnreachable(f"{error.message} - waited {waited:.0f} s for it", hint) from error
                log.warning("the database does not answer, trying again in %.1f s: %s", pause, error.message)
            else:
                if troubled:
                    log.warning("the database answers again, after %.1f s", self._clock() - began)
                return answer
            troubled = True
            time.sleep(pause)
            pause = min(10.0, pause * 2)

    def _execute(self, commands: list[ev.Command]) -> None:
        for command in commands:
            match command:
                case ev.Launch():
                    self._executor.launch(command)
                case ev.Advance():
                    self._executor.advance(command)
                case ev.Stop():
                    self._executor.stop(command)
