"""What befalls the drivers of a simulated study: clocks that are set, stalls, outages, and every
way to end.

The real brain, driver and store run on a virtual time. `Disturbed.run` takes a study from driver to
driver until it has finished, each like a new process with new workers, and keeps what truly
happened beside it: for how long each attempt held its slot, and for how long drivers worked. What
is drawn comes from a `random.Random`, so that a seed repeats it.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from benchmarks.simulation.running import Curves, SimulatedExecutor
from hpsearch.domain import events as ev
from hpsearch.domain.history import Changes, History
from hpsearch.domain.records import StudyState
from hpsearch.errors import ClusterLost, StoreUnreachable
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import Driver, SteadyClock
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.leases import Lease
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import Resources, StudySpec
from support.running.leases import let_pass

Key = tuple[int, int]
"""(trial, attempt)"""

ENDS = ("exception", "kill", "at once", "interrupt", "abandon", "outage")
"""How a driver may end: an error, SIGKILL, a second Ctrl-C, a first one, one that no worker obeys,
no database."""

LONGEST_PAUSE_S = 10.0
"""The longest pause between two attempts of a driver at a database that does not answer."""

PATIENCE = Resources(database_patience=120.0, stop_grace=20.0)


SAVE_S = 8.0
"""How long a worker that is asked to save takes for it."""


class Killed(BaseException):
    """The process of the driver is no more: nothing of it runs again."""


@dataclass(frozen=True)
class Troubles:
    """What happens to one driver, by the number of the poll in which it does.

    Args:
        stalls: Seconds for which its process is stopped while workers continue.
        outages: Seconds for which the database does not answer from then on.
        clock_set: Seconds by which its machine's clock is set, forward (as a suspended machine sees
            it) or back.
        end: The number of the poll in which it ends, and how; None for the end of the study.
    """

    stalls: Mapping[int, float] = field(default_factory=dict)
    outages: Mapping[int, float] = field(default_factory=dict)
    clock_set: Mapping[int, float] = field(default_factory=dict)
    end: tuple[int, str] | None = None

    @classmethod
    def drawn(
        cls, draw: random.Random, *, last: bool, polls: int = 200, longest_s: float = 20_000.0
    ) -> Troubles:
        """Random ones within so many polls.

        Args:
            draw: Where they come from.
            last: Whether this driver may come to the study's end.
            polls: Troubles begin within so many.
            longest_s: The longest stall; clocks are set by as much at most.
        """

        def some(most: int, low: float, high: float) -> dict[int, float]:
            return {
                draw.randrange(1, polls): draw.uniform(low, high)
                for _ in range(draw.randint(0, most))
            }

        return cls(
            stalls=some(2, 0.5, longest_s) if draw.random() < 0.5 else {},
            outages=some(2, 0.5, 0.9 * PATIENCE.database_patience_s),
            clock_set=some(3, -longest_s, longest_s),
            end=None if last else (draw.randrange(1, polls), draw.choice(ENDS)),
        )


class DisturbedStore(Store):
    """A store that does not answer while it is away, and notes the time of the last word it took
    in."""

    executor: DisturbedExecutor | None = None
    away_until = -math.inf
    last_word = 0.0

    def commit(self, study_id: int, changes: Changes, *rest: Any, **more: Any) -> bool:
        return self._answering(super().commit, study_id, changes, *rest, **more)

    def renew(self, lease: Lease, *rest: Any, **more: Any) -> bool:
        return self._answering(super().renew, lease, *rest, **more)

    def _answering(self, method: Any, *arguments: Any, **more: Any) -> bool:
        if self.executor is not None and self.executor.now < self.away_until:
            raise StoreUnreachable("the server is away")
        answer: bool = method(*arguments, **more)
        if self.executor is not None:
            self.last_word = self.executor.now
        return answer


class DisturbedExecutor(SimulatedExecutor):
    """The workers of one driver, and its troubles.

    Args:
        curves: What configurations would do.
        spec: The study.
        workers: How many slots.
        store: Goes away in outages.
        troubles: What happens, and when.
        start: The true time at which it begins.
        wall_offset: Seconds by which the machine's clock is ahead of the true time.
    """

    def __init__(
        self,
        curves: Curves,
        spec: StudySpec,
        workers: int,
        store: DisturbedStore,
        troubles: Troubles,
        start: float,
        wall_offset: float,
    ) -> None:
        super().__init__(curves, trial_budget(spec), workers)
        self.now = self._booted = start
        self.driver: Driver | None = None
        self.held: dict[Key, list[float]] = {}
        """For each attempt, when it took its slot and gave it back, in true time."""
        self.saved: list[Key] = []
        """The attempts that obeyed a stop, and were heard."""
        self.wall_offset = wall_offset
        self._saving: dict[Key, float] = {}
        self._store = store
        self._troubles = troubles
        self._polls = 0
        self._deaf = False

    def wall(self) -> float:
        """What the machine's clock shows."""
        return self.now + self.wall_offset

    def passing(self) -> float:
        """A clock that nobody sets, from a beginning of its own."""
        return self.now - self._booted

    def let_pass(self, seconds: float) -> None:
        """Time goes by in which the workers work and nobody listens to them."""
        until = self.now + seconds
        while self._happens and self._happens[0].time <= until:
            self._happen(heapq.heappop(self._happens))
        self.now = until

    def launch(self, order: ev.Launch) -> None:
        self.held.setdefault((order.trial, order.attempt), [self.now, math.inf])
        super().launch(order)

    def stop(self, order: ev.Stop) -> None:
        if not order.save:
            self._gave_back((order.trial, order.attempt))
            super().stop(order)
        elif not self._deaf:
            self._saving[order.trial, order.attempt] = self.now + SAVE_S

    def poll(self, timeout_s: float) -> list[ev.Event]:
        self._polls += 1
        self._disturb(self._polls)
        first_save = min(self._saving.values(), default=math.inf)
        events = super().poll(min(timeout_s, max(0.0, first_save - self.now)))
        for key in [key for key, at in self._saving.items() if at <= self.now]:
            del self._saving[key]
            super().stop(ev.Stop(*key, save=True))
        for event in events:
            if isinstance(event, ev.Finished | ev.Stopped | ev.Failed):
                self._gave_back((event.trial, event.attempt))
            if isinstance(event, ev.Stopped):
                self.saved.append((event.trial, event.attempt))
        return events

    def end(self, at: float) -> None:
        """The driver is gone, and its workers with it."""
        for times in self.held.values():
            times[1] = min(times[1], at)

    def _happen(self, moment: Any) -> None:
        if moment.run is not None and moment.run.key in self._saving:
            self.now = moment.time
        else:
            super()._happen(moment)

    def _gave_back(self, key: Key) -> None:
        if key in self.held:
            self.held[key][1] = min(self.held[key][1], self.now)

    def _disturb(self, poll: int) -> None:
        self.wall_offset += self._troubles.clock_set.get(poll, 0.0)
        if poll in self._troubles.stalls:
            self.let_pass(self._troubles.stalls[poll])
        if poll in self._troubles.outages:
            self._store.away_until = self.now + self._troubles.outages[poll]
        if self._troubles.end is not None and self._troubles.end[0] == poll:
            self._end_driver(self._troubles.end[1])

    def _end_driver(self, how: str) -> None:
        assert self.driver is not None
        match how:
            case "exception":
                raise ClusterLost("the cluster is gone", "resume")
            case "kill":
                raise Killed
            case "at once":
                raise KeyboardInterrupt
            case "interrupt":
                self.driver.request_stop()
            case "abandon":
                self._deaf = True
                self.driver.request_stop()
            case "outage":
                self._store.away_until = math.inf


@dataclass(frozen=True)
class Session:
    """What truly happened under one driver; times are true ones."""

    began: float
    ended: float
    how: str
    last_word: float
    """When the database last took in something of it."""
    held: Mapping[Key, Sequence[float]]
    saved: Sequence[Key]
    troubles: Troubles

    @property
    def outages_s(self) -> float:
        """For how long the database may have kept it waiting, with the driver's last pause in each
        outage."""
        return sum(seconds + LONGEST_PAUSE_S for seconds in self.troubles.outages.values())


class Disturbed:
    """A study and what befalls its drivers.

    Args:
        store: An empty database.
        spec: The study.
        curves: What configurations would do.
        workers: How many slots each driver has.
    """

    def __init__(
        self, store: DisturbedStore, spec: StudySpec, curves: Curves, workers: int
    ) -> None:
        self.sessions: list[Session] = []
        self._store = store
        self._spec = spec
        self._curves = curves
        self._workers = workers
        self._now = 1_000_000.0
        create_study(store, spec, "")

    def run(self, draw: random.Random, most_drivers: int = 8) -> History:
        """Driver after driver, troubled and with idle time between them, until the study has
        finished."""
        for number in range(most_drivers):
            last = number == most_drivers - 1
            history = self.drive(
                Troubles.drawn(draw, last=last), wall_offset=draw.uniform(-4000.0, 4000.0)
            )
            if self.sessions[-1].how == "finished":
                return history
            self.idle(draw.uniform(0.0, 60_000.0))
        raise AssertionError(f"not finished after {most_drivers} drivers")

    def idle(self, seconds: float) -> None:
        """Time in which nobody drives the study."""
        self._now += seconds

    def drive(self, troubles: Troubles, wall_offset: float = 0.0) -> History:
        """One driver, from the database alone, to its end; what the database has then."""
        store, name = self._store, self._spec.study
        history = store.load(name)
        executor = DisturbedExecutor(
            self._curves, self._spec, self._workers, store, troubles, self._now, wall_offset
        )
        store.executor, store.away_until, store.last_word = executor, -math.inf, self._now
        lease = store.acquire(history.study.id, f"driver-{len(self.sessions)}", LEASE_TTL_S)
        clock = SteadyClock(lease.alive_at, executor.wall, executor.passing)
        study = build_study(history, self._spec)
        executor.driver = Driver(study, executor, store, lease, clock=clock, resources=PATIENCE)
        with self._sleeping(executor):
            try:
                executor.driver.run()
            except Killed:
                let_pass(store, 2 * LEASE_TTL_S)
            except StoreUnreachable:  # so the lease could not be given back either
                let_pass(store, 2 * LEASE_TTL_S)
            except (ClusterLost, KeyboardInterrupt):
                store.release(lease)
            else:
                store.release(lease)
        executor.end(executor.now)
        left = store.load(name)
        over = left.study.state not in (StudyState.RUNNING, StudyState.INTERRUPTED)
        how = "finished" if over or troubles.end is None else troubles.end[1]
        self.sessions.append(
            Session(
                self._now,
                executor.now,
                how,
                store.last_word,
                executor.held,
                executor.saved,
                troubles,
            )
        )
        self._now, store.executor = executor.now, None
        return left

    @contextmanager
    def _sleeping(self, executor: DisturbedExecutor) -> Iterator[None]:
        """The driver's pauses take virtual time."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("hpsearch.running.driver.journal.time.sleep", executor.let_pass)
            yield
