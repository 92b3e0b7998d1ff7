"""A whole study on recorded or computed curves, on simulated slots and a virtual clock.

The brain, search, driver and store are the real ones. Nothing is trained, and nothing waits:
`Curves` have the metrics of a configuration at a resource, and the time that it takes to get there.
The clock starts at 0 and moves only in `poll`, to the next event; `clock` is the driver's clock.
The same orders give exactly the same events.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import EarlierStudy, ErrorKind
from hpsearch.domain.history import History
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import POLL_S, Driver, OnTick
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from trials.contract import Budget, Diverged

_Key = tuple[int, int]  # (trial, attempt)


OWNER = "simulation"

IN_MEMORY = "sqlite://"


class Curves(Protocol):
    """The metrics and the speed of configurations."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics at a resource. Raises Diverged if training does not get there."""

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training from nothing up to a resource."""


@dataclass
class _Run:
    order: ev.Launch
    slot: str
    resource: float
    until: float
    trained_until: float  # the time at which the last report was made
    started: float
    start_up_s: float  # seconds until it trained, as long as they are not reported; else 0
    waiting: bool = False
    named: list[tuple[float, str]] = field(default_factory=list)
    """The checkpoints that its reports have named, oldest first, each with the report's resource.
    Those before the newest one on record are removed."""

    @property
    def key(self) -> _Key:
        return self.order.trial, self.order.attempt


class _Moment(NamedTuple):
    time: float
    number: int  # puts events at the same time in order
    run: _Run | None  # the run that reports or ends; None if a slot is lost
    level: float | None  # the resource at which it reports; None if it ends


class SimulatedExecutor:
    """Runs attempts on simulated slots, each with so many GPUs.

    At the times `losses` the slot that has worked longest is lost, with its attempt, and a new one
    replaces it at once. The first attempt on a slot trains after `cold_s` seconds, each later one
    after `warm_s`. If they keep nothing, each begins again from nothing.
    """

    def __init__(
        self,
        curves: Curves,
        budget: Budget,
        workers: int,
        gpus: float = 1.0,
        losses: Sequence[float] = (),
        *,
        cold_s: float = 0.0,
        warm_s: float = 0.0,
        keeps: bool = True,
    ) -> None:
        self.now = 0.0
        self.checkpoints: dict[int, set[str]] = {}
        """For each trial, the checkpoints that would be on the disk."""
        self._curves = curves
        self._budget = budget
        self._gpus = gpus
        self._cold_s = cold_s
        self._warm_s = warm_s
        self._keeps = keeps
        self._warm: set[str] = set()  # the slots on which an attempt has trained
        self._runs: dict[_Key, _Run] = {}
        self._happens: list[_Moment] = []
        self._count = 0
        self._made = 0
        self._ready: list[ev.Event] = []
        for _ in range(workers):
            self._slot_up()
        for time in losses:
            self._at(time, None)

    def clock(self) -> float:
        """The virtual time, in seconds."""
        return self.now

    # ---------------------------------------------------------------------------------- commands

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot."""
        key = (order.trial, order.attempt)
        if key in self._runs:
            return
        start_up_s = self._warm_s if order.slot in self._warm else self._cold_s
        trains_from = self.now + start_up_s
        run = _Run(order, order.slot, 0.0, order.until, trains_from, self.now, start_up_s)
        resumed = order.resume_from
        if resumed:
            resource = self._resource_of(resumed)
            of_trial = self.checkpoints.get(order.trial, set())
            left = of_trial - {resumed}
            run.resource = resource
            run.named = [(resource, name) for name in (*left, resumed)]
        self._runs[key] = run
        self._train(run)

    def advance(self, order: ev.Advance) -> None:
        """Let a waiting attempt train on."""
        run = self._runs.get((order.trial, order.attempt))
        if run is None or order.until <= run.until:
            return
        run.until = order.until
        if run.waiting:
            run.waiting = False
            run.trained_until = self.now
            self._train(run)

    def stop(self, order: ev.Stop) -> None:
        """End an attempt, in the state of its last report."""
        run = self._runs.pop((order.trial, order.attempt), None)
        if run is not None:
            stopped = ev.Stopped(order.trial, order.attempt, run.resource, self._save(run))
            self._ready.append(stopped)

    def avoid(self, order: ev.Avoid) -> None:
        """Nothing: the simulated nodes work."""

    def fill(self, order: ev.Fill) -> None:
        """Nothing: the simulated slots share no GPU."""

    def recorded(self, trial: int, attempt: int, resource: float) -> None:
        """Reports are in the database: remove the checkpoints that only earlier ones named."""
        run = self._runs.get((trial, attempt))
        if run is None:
            return
        known = [name for reported, name in run.named if reported <= resource]
        later = run.named[len(known) :]
        if not known:
            return
        run.named = [(resource, known[-1]), *later]
        needed = {name for _, name in run.named}
        for name in set(known) - needed:
            self._remove(trial, name)

    # ------------------------------------------------------------------------------------ events

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """The next events; the clock moves to them, or by the timeout if none comes before."""
        give_up = self.now + timeout_s
        while not self._ready:
            if not self._happens or self._happens[0].time > give_up:
                self.now = give_up
                break
            next_moment = heapq.heappop(self._happens)
            self._happen(next_moment)
        events, self._ready = self._ready, []
        return events

    def _at(self, time: float, run: _Run | None, level: float | None = None) -> None:
        self._count += 1
        heapq.heappush(self._happens, _Moment(time, self._count, run, level))

    def _train(self, run: _Run) -> None:
        level = self._next_level(run)
        seconds = 0.0
        if level is not None:
            params = run.order.params
            until_here = self._curves.seconds(params, run.resource)
            until_level = self._curves.seconds(params, level)
            seconds = until_level - until_here
        self._at(run.trained_until + seconds, run, level)

    def _happen(self, moment: _Moment) -> None:
        self.now = moment.time
        run = moment.run
        if run is None:
            self._lose_a_slot()
            return
        if self._runs.get(run.key) is not run:
            return
        key, level = run.key, moment.level
        limit_s = run.order.time_limit_s
        if level is None:
            self._end(key, ev.Finished(*key))
        elif limit_s is not None and self.now - run.started > limit_s:
            text = f"ran past its time limit of {limit_s:g} s"
            self._end(key, ev.Failed(*key, ErrorKind.TIMEOUT, text))
        else:
            self._report(run, level)

    def _report(self, run: _Run, level: float) -> None:
        try:
            metrics = self._curves.measure(run.order.params, run.order.seed, level)
        except Diverged as error:
            self._end(run.key, ev.Failed(*run.key, ErrorKind.DIVERGED, str(error)))
            return
        run.resource = level
        run.trained_until = self.now
        checkpoint = self._save(run)
        if checkpoint is not None:
            run.named.append((level, checkpoint))
        self._warm.add(run.slot)
        if run.start_up_s:
            self._ready.append(ev.Began(*run.key, {}, run.start_up_s))
            run.start_up_s = 0.0
        self._ready.append(ev.Reported(*run.key, level, metrics, checkpoint=checkpoint))
        run.waiting = run.until <= level < self._budget.total
        if not run.waiting:
            self._train(run)

    def _end(self, key: _Key, event: ev.Event) -> None:
        del self._runs[key]
        self._ready.append(event)

    def _next_level(self, run: _Run) -> float | None:
        """The resource of a run's next report; None if it has come to its end."""
        ahead = (level for level in self._budget.report_at if level > run.resource)
        return next(ahead, None)

    def _save(self, run: _Run) -> str | None:
        if not run.resource or not self._keeps:
            return None
        name = str(run.resource)
        self.checkpoints.setdefault(run.order.trial, set()).add(name)
        return name

    def _remove(self, trial: int, checkpoint: str) -> None:
        self.checkpoints.get(trial, set()).discard(checkpoint)

    def _resource_of(self, checkpoint: str) -> float:
        return float(checkpoint)

    # ------------------------------------------------------------------------------------- slots

    def _slot_up(self) -> None:
        self._ready.append(ev.SlotUp(f"s{self._made}", "simulated", "simulated", self._gpus))
        self._made += 1

    def _lose_a_slot(self) -> None:
        if not self._runs:
            return
        oldest = min(self._runs.values(), key=lambda run: run.started)
        del self._runs[oldest.key]
        self._ready.append(ev.SlotDown(oldest.slot, "its node was lost"))
        self._slot_up()


class Straight(SimulatedExecutor):
    """A simulated executor whose polls last until the next event, or the next of some moments.

    A driver waits for a short time only, to check its limits, which would be thousands of empty
    ticks on a virtual clock. Here the limits are among the moments instead.
    """

    moments: Iterable[float] = ()

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """The next events; the clock moves to them, or to the next moment if that comes first."""
        now = self.now
        ahead = [moment - now for moment in self.moments if moment > now]
        if ahead:
            return super().poll(min(timeout_s, *ahead))
        happening = [moment.time - now for moment in self._happens]
        longest_s = max(happening, default=POLL_S)
        return super().poll(min(timeout_s, longest_s))


def simulate(
    spec: StudySpec,
    curves: Curves,
    workers: int,
    *,
    gpus: float = 1.0,
    moments: Iterable[float] = (),
    watch: OnTick | None = None,
    build: Callable[[History, StudySpec], Study] = build_study,
    earlier: Sequence[EarlierStudy] = (),
    start_up_s: float = 0.0,
    keeps: bool = True,
    kind: type[Straight] = Straight,
) -> History:
    """Run a study to its end, in a database in memory, and return all its records.

    Its `report_deadline` is lifted: a recorded run does not hang, however far apart its reports
    are.

    Args:
        workers: The number of slots.
        gpus: GPUs a slot.
        moments: Times at which the driver ticks though nothing happens, for `watch`.
        watch: Called after every tick with the study, the records written, and the time.
        build: Makes the brain; for callers that observe it.
        earlier: The evidence of earlier studies, in place of the study file's `warm_start`.
        start_up_s: Seconds of an attempt before it trains.
        keeps: False if attempts keep nothing to go on from.
        kind: Of the executor.
    """
    patient = spec.resources.model_copy(update={"report_deadline_s": math.inf})
    spec = spec.model_copy(update={"resources": patient})
    budget = trial_budget(spec)
    executor = kind(
        curves, budget, workers, gpus, cold_s=start_up_s, warm_s=start_up_s, keeps=keeps
    )
    limit_s = spec.budget.wall_clock_s
    ends = set() if limit_s is None else {limit_s}
    executor.moments = sorted(ends.union(moments))
    with closing(Store.open(IN_MEMORY)) as store:
        history = create_study(store, spec, "", earlier=earlier)
        lease = store.acquire(history.study.id, OWNER, LEASE_TTL_S)
        study = build(history, spec)
        Driver(study, executor, store, lease, watch, executor.clock, poll_s=math.inf).run()
    return history
