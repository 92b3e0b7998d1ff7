"""The loop: poll the executor, let the brain decide, commit, then execute. Nothing else happens here.

What was decided is in the database before anything is ordered, in one transaction a tick, fenced by the driver's
lease. A driver that dies between the two loses nothing: the next one finds the attempt, knows that it is nobody's,
and continues the trial.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Protocol

from hpsearch import events as ev
from hpsearch.errors import StoreUnreachable
from hpsearch.records import Changes
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study import Study

LEASE_TTL_S = 45.0
"""A driver that has not renewed its lease for so long is taken for dead."""

RENEW_S = 5.0
"""How often a lease is renewed and a request to stop is looked for when nothing else is written."""

POLL_S = 1.0
"""The longest wait for events: limits on time are watched this often."""

STOP_GRACE_S = 60.0
"""How long an interrupted study waits for its workers to save."""

STORE_PATIENCE_S = 300.0
"""How long a database that does not answer is waited for while trials train on."""

log = logging.getLogger("hpsearch")


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


class Driver:
    """Drives one study to its end.

    Args:
        study: The brain.
        executor: What runs the attempts.
        store: Where everything is written.
        lease: This driver's claim on the study.
        watch: Called after every tick.
        clock: Seconds since the epoch.
    """

    def __init__(
        self,
        study: Study,
        executor: Executor,
        store: Store,
        lease: Lease,
        watch: Watch = lambda study, changes, now: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._study = study
        self._executor = executor
        self._store = store
        self._lease = lease
        self._watch = watch
        self._clock = clock
        self._stop_requested = False
        self._written = 0.0

    def request_stop(self) -> None:
        """Stop at the next tick: workers save, and the study is left resumable. Safe in a signal handler."""
        self._stop_requested = True

    def run(self, last_seen: float | None = None) -> None:
        """Drive until the study has finished, or was interrupted and is saved.

        Args:
            last_seen: When an earlier driver of this study was last known to live.

        Raises:
            LeaseLost: Another driver took the study over; nothing of this one's was written since.
            StoreUnreachable: The database did not answer for `STORE_PATIENCE_S`.
        """
        study, stop_by = self._study, None
        study.begin(self._clock(), last_seen)
        self._execute(self._tick([]))
        while not study.finished:
            commands = self._tick(self._executor.poll(POLL_S))
            now = self._clock()
            if self._stop_requested and not study.interrupted:
                commands += study.interrupt(now)
                stop_by = now + STOP_GRACE_S
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
        if changes or now - self._written >= RENEW_S:
            if self._write(changes, now):  # no |=, which would forget a signal that comes while it writes
                self._stop_requested = True
            self._written = now
        return changes

    def _write(self, changes: Changes, now: float) -> bool:
        """One transaction, tried again while the database does not answer: trials train on meanwhile."""
        give_up, pause = now + STORE_PATIENCE_S, 0.1
        while True:
            try:
                if changes:
                    study_id = self._study.history.study.id
                    return self._store.commit(study_id, changes, self._lease, self._clock(), LEASE_TTL_S)
                return self._store.renew(self._lease, self._clock(), LEASE_TTL_S)
            except StoreUnreachable as error:
                if self._clock() > give_up:
                    raise
                log.warning("the database does not answer, trying again in %.1f s: %s", pause, error.message)
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
