"""The driver's loop: poll the executor, let the brain decide, commit, then execute.

A command is sent only after the transaction that decided it has committed: one transaction a tick,
fenced by the driver's lease. A driver that dies between the two loses nothing: the next one finds
the attempt in the database, ends it there, and continues the trial.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from threadpoolctl import threadpool_limits

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import RequestKind
from hpsearch.domain.history import Changes
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import ReportRecord
from hpsearch.running.driver.journal import Journal
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study_file.models import Resources

POLL_S = 1.0  # the longest wait for events: limits on time are checked this often
AWAY_S = 1.0  # a driver that did not listen for this much longer than it meant to was away

USUAL = Resources()

OnTick = Callable[[Study, Changes, float], None]
"""Called after every tick with what it wrote, for a live view; it must not change anything."""


def watched_by(*watches: OnTick) -> OnTick:
    """A watch that calls several, one after another."""

    def watch(study: Study, changes: Changes, now: float) -> None:
        for each in watches:
            each(study, changes, now)

    return watch


@dataclass
class TickTimes:
    """The seconds that a tick took to decide, and to write that to the database."""

    decision_s: float = 0.0
    commit_s: float = 0.0


class Executor(Protocol):
    """Runs attempts on slots.

    Commands for one slot are carried out in the order in which they were given. `(trial, attempt)`
    identifies an attempt. Repeating a command has no effect, and neither has a command for an
    attempt that the executor does not run, or does not run any more.

    A checkpoint that a report names stays until `recorded` says that a later report is in the
    database. If that call is lost, checkpoints that are no longer needed stay. The trial's next
    attempt removes them once a report of its own is on record.
    """

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot."""

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt continue."""

    def stop(self, order: ev.Stop) -> None:
        """End an attempt; where `save` is set, save first and answer with `Stopped`."""

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        """Say that the reports of an attempt up to `resource` are in the database, so that
        checkpoints of earlier reports may be removed, now or with the next report."""

    def avoid(self, order: ev.Avoid) -> None:
        """Run nothing on a node for a while; what runs there goes on."""

    def fill(self, order: ev.Fill) -> None:
        """Hold so many slots on each shared GPU of a type, as far as they have room."""

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """The events in the order they happened; waits up to `timeout_s` for the first one."""


class SteadyClock:
    """Seconds since the epoch when it was made, or `not_before`, and the time that passes from then
    on: it cannot be set, and stops while the machine is suspended."""

    def __init__(
        self,
        not_before: float | None = None,
        wall: Callable[[], float] = time.time,
        passing: Callable[[], float] = time.monotonic,
    ) -> None:
        start = wall() if not_before is None else max(wall(), not_before)
        self._passing = passing
        self._before = start - passing()

    def __call__(self) -> float:
        return self._before + self._passing()


def due_of(study: Study) -> float | None:
    """When the study must decide even if nothing happens; None if there is no such time."""
    running = (live for live in study.running.values() if live.stopping is None)
    return study.spending.due((live.attempt, live.rate) for live in running)


class Driver:
    """Drives one study to its end. `watch` is called after every tick. `clock` gives seconds since
    the epoch and cannot be set; None for a `SteadyClock`. `resources` has the longest waits for the
    driver, its database and its workers; `poll_s` is the longest wait for events."""

    def __init__(
        self,
        study: Study,
        executor: Executor,
        store: Store,
        lease: Lease,
        watch: OnTick | None = None,
        clock: Callable[[], float] | None = None,
        resources: Resources = USUAL,
        poll_s: float = POLL_S,
    ) -> None:
        self.study = study
        self._executor = executor
        self._lease = lease
        self._watch = watch or watched_by()
        self._clock = clock or SteadyClock(lease.alive_at)
        self._resources = resources
        self._poll_s = poll_s
        self._stop_requested = False
        self._signal: str | None = None  # the one that asked for the end
        self._stop_by: float | None = None
        """Until when workers may save, once they were asked to stop."""
        self._listened = 0.0  # when the executor last answered a poll
        self._has_requests = False  # true if requests wait in the database
        self.took = TickTimes()  # of the latest tick
        self.journal = Journal(store, study.history.study, lease, resources, self._clock)

    def request_stop(self, signal: str | None = None) -> None:
        """Stop soon, as a signal of that name asks for it: workers save, and the study can be
        resumed. Safe in a signal handler."""
        self._signal = signal
        self._stop_requested = True

    def run(self) -> None:
        """Drive until the study has finished, or was interrupted and is saved.

        Raises:
            LeaseLost: Another driver took the study over; this one has sent nothing since.
            StoreUnreachable: The database did not answer within the driver's patience.
        """
        # The search factors small matrices. More threads only wait, and take cores from workers.
        with threadpool_limits(1, user_api="blas"):
            self._begin()
            while not self.study.finished:
                self._tick(self._listen())
            self._close()

    def _begin(self) -> None:
        self.journal.begin()
        self._listened = self._clock()
        self.study.begin(self._listened, self._lease.alive_at)
        self._tick([])

    def _close(self) -> None:
        now = self._clock()
        self.study.close(now)
        if self.study.phase is not Phase.INTERRUPTED:  # else they wait for the next driver
            for request in self.journal.requests():
                self.study.on_request(request, now)
        self._commit(now)

    def _listen(self) -> list[ev.Event]:
        """Wait for events. A driver is away while its process is stopped, or waits for the
        database; the silence of workers in this time is not held against them."""
        wait_s = self._wait_s()
        events = self._executor.poll(wait_s)
        now = self._clock()
        away_s = now - self._listened - wait_s
        self._listened = now
        if away_s > AWAY_S:
            self.study.driver_was_away(away_s)
            if self._stop_by is not None:
                self._stop_by += away_s
        return events

    def _wait_s(self) -> float:
        if self._stop_requested and self.study.phase is not Phase.INTERRUPTED:
            return 0.0
        due = due_of(self.study)
        if due is None:
            return self._poll_s
        until_due_s = max(0.0, due - self._clock())
        return min(self._poll_s, until_due_s)

    def _tick(self, events: list[ev.Event]) -> None:
        """Decide on the events and commit it; only then call the executor. It is decided as of the
        moment at which the driver listened: it may be stopped after that."""
        now = self._listened
        began = time.perf_counter()
        commands = self._decide(events, now)
        self.took.decision_s = time.perf_counter() - began
        changes = self._commit(now, commands)
        self._acknowledge(changes.reports)
        self._execute(commands)

    def _decide(self, events: list[ev.Event], now: float) -> list[ev.Command]:
        if self._stop_requested and not self._has_requests:
            self.study.interrupt(self._signal)  # before workers say that they got the same signal
        commands: list[ev.Command] = []
        for event in events:
            commands += self.study.on_event(event, now)
        commands += self._answer_requests(now)
        if self._stop_requested:
            self._interrupt(now)
        commands += self.study.on_tick(now)
        return commands

    def _answer_requests(self, now: float) -> list[ev.Command]:
        if not self._has_requests:
            return []
        self._has_requests = False
        commands: list[ev.Command] = []
        for request in self.journal.requests():
            commands += self.study.on_request(request, now)
            if request.kind is RequestKind.INTERRUPT and request.refused is None:
                self._stop_requested = True
        return commands

    def _interrupt(self, now: float) -> None:
        """Let all workers save and stop, once; stop waiting for them when their time is up."""
        study = self.study
        if self._stop_by is None:
            self._stop_by = self._listened + self._resources.stop_grace_s
        if study.phase is not Phase.INTERRUPTED:
            study.interrupt(self._signal)
        elif self._listened > self._stop_by:
            study.abandon(now)

    def _commit(self, now: float, commands: Sequence[ev.Command] = ()) -> Changes:
        """Write the changes since the last call, and return them. Without changes, renew the lease
        when that is due, and before any command is sent: a driver that has lost its lease sends
        nothing."""
        changes = self.study.history.drain()
        has_news = bool(changes or commands)
        must_write = has_news or now >= self.journal.due
        if must_write:
            began = time.perf_counter()
            entry = self.journal.write(changes, now)
            self.took.commit_s = time.perf_counter() - began
            self._has_requests = entry.has_requests
            # Not `|=`: it would forget a signal that comes while the database is written.
            if entry.stop_requested:
                self._stop_requested = True
        self._watch(self.study, changes, now)
        return changes

    def _acknowledge(self, reports: list[ReportRecord]) -> None:
        for report in reports:
            if report.attempt is not None:
                self._executor.recorded(report.trial, report.attempt, report.resource)

    def _execute(self, commands: list[ev.Command]) -> None:
        executor = self._executor
        for command in commands:
            match command:
                case ev.Launch():
                    executor.launch(command)
                case ev.Advance():
                    executor.advance(command)
                case ev.Stop():
                    executor.stop(command)
                case ev.Avoid():
                    executor.avoid(command)
                case ev.Fill():
                    executor.fill(command)
