"""How many slots one driver keeps busy: trials of 30 s that report every 3 s, in real time.

    python benchmarks/slots.py [--slots 1000] [--seconds 180] [--sampler random]
                               [--storage URL] [--ray] [--json FILE] [--quick]
    python benchmarks/slots.py --checkpoints 1 [--disk 50] [--slots 1000]

The driver, the brain, the search and the database are those of a real study, every report is
durable, in an SQLite file or in the empty database of PostgreSQL at URL. Without `--ray` the slots
are simulated in this process, on the real clock: they train on whatever the driver does, and wait
for it only between two trials. With `--ray` they are that many real workers that sleep.

Slots are as fast as 24 to 36 s a trial, so that their reports spread out. Measured from 10 seconds
after the last slot is there: the share of the slots' time in which they trained, trials and reports
a second, the share of a core that the driver's thread and its whole process took, commits a second,
and their latency.

With `--checkpoints` it is instead what slots that save so many GB do to one disk of `--disk` GB a
second, of which each takes 1: by the saves of a real run, on a simulated clock. Measured over five
trials, where seven reports in ten are the best so far: GB a second, the share of the slots' time in
which they waited, and the seconds of training that a death just before a report costs.
"""

import heapq
import math
import random
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import DecisionKind
from hpsearch.domain.history import Changes
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.loop import Driver, Executor
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.leases import Entry
from hpsearch.store.store import Store
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from simulation.running import SimulatedExecutor
from tables import arguments, show
from trials.contract import Setup
from trials.devices.processes import Group
from trials.loop.position import Position
from trials.loop.saves import Content, RunSaves
from trials.running.report_grid import budget_from
from trials.settings import Settings

REPORTS = 10
REPORT_S = 3.0
"""Seconds between two reports of a slot of middling speed."""
SETTLE_S = 10.0
"""Seconds that all slots work before anything is measured."""

TASK = f"""
import time

def train(params, trial):
    began = time.time()
    for step in range(1, {REPORTS} + 1):
        time.sleep({REPORT_S} * params["pace"])
        trial.report(step, {{"loss": params["x"] / step, "began": began, "at": time.time()}})
"""


class Paced:
    """Curves of configurations that differ in speed."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The loss."""
        return {"loss": params["x"] / resource}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training."""
        return REPORT_S * float(params["pace"]) * resource


class RealTime(SimulatedExecutor):
    """Simulated slots on the real clock."""

    def __init__(self, spec: StudySpec, slots: int) -> None:
        self._began = time.monotonic()
        self._ended: dict[str, float] = {}
        self._waited_s = 0.0
        super().__init__(Paced(), trial_budget(spec), slots)

    def clock(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def waited_s(self) -> float:
        """Seconds that slots have waited for their next trial, all together."""
        now = self.clock()
        return self._waited_s + sum(now - ended for ended in self._ended.values())

    def launch(self, order: ev.Launch) -> None:
        """Start an attempt on its slot, now."""
        self.now = self.clock()
        self._waited_s += self.now - self._ended.pop(order.slot, self.now)
        super().launch(order)

    def stop(self, order: ev.Stop) -> None:
        """End an attempt, now."""
        self.now = self.clock()
        super().stop(order)

    def poll(self, timeout_s: float) -> list[ev.Event]:
        """All that has happened by now; waits for the first event."""
        following = self._happens[0].time if self._happens else math.inf
        if not self._ready:
            time.sleep(max(0.0, min(following - self.clock(), timeout_s)))
        now = self.clock()
        while self._happens and self._happens[0].time <= now:
            self._happen(heapq.heappop(self._happens))
        self.now = now
        events, self._ready = self._ready, []
        return events

    def _end(self, key: tuple[int, int], event: ev.Event) -> None:
        self._ended[self._runs[key].slot] = self.now
        super()._end(key, event)


class TimedStore(Store):
    """A store that notes how long its commits take, in milliseconds."""

    commits_ms: list[float]

    def commit(self, *arguments: Any, **named: Any) -> Entry:
        """As `Store.commit`."""
        began = time.perf_counter()
        try:
            return super().commit(*arguments, **named)
        finally:
            self.commits_ms.append(1000 * (time.perf_counter() - began))


class Moment(NamedTuple):
    """A reading of all clocks."""

    at: float  # seconds since the epoch
    driver_s: float  # processor time of the driver's thread
    process_s: float  # and of its process
    waited_s: float  # by simulated slots


class Meter:
    """Watches a driver, and ends its study after so many seconds that are measured."""

    def __init__(self, store: TimedStore, slots: int, seconds: float) -> None:
        self._store, self._slots, self._seconds = store, slots, seconds
        self.driver: Driver | None = None
        self.executor: Executor | None = None
        self._from = math.inf
        self._trials = self._reports = 0
        self.first: Moment | None = None
        self.last: Moment | None = None

    def watch(self, study: Study, changes: Changes, now: float) -> None:
        """Take in a tick of the driver."""
        if self._from == math.inf and len(study.slots) == self._slots:
            self._from = now + SETTLE_S
        if self.first is None and now >= self._from:
            self.first = self._moment()
            self._store.commits_ms = []
        elif self.first is not None and self.last is None:
            self._reports += len(changes.reports)
            ended = [each for each in changes.decisions if each.kind is DecisionKind.FINISH]
            self._trials += len(ended)
            if now >= self._from + self._seconds:
                self.last = self._moment()
                self.commits_ms = sorted(self._store.commits_ms)
                assert self.driver is not None
                self.driver.request_stop()

    def _moment(self) -> Moment:
        waited_s = self.executor.waited_s() if isinstance(self.executor, RealTime) else 0.0
        return Moment(time.time(), time.thread_time(), time.process_time(), waited_s)

    def row(self, study: Study) -> dict[str, Any]:
        """The measurements, between the first and the last moment."""
        assert self.first is not None, "the study ended too early"
        assert self.last is not None, "the study ended too early"
        passed = [after - before for before, after in zip(self.first, self.last, strict=True)]
        span, driver_s, process_s, waited_s = passed
        busy = 1 - waited_s / (self._slots * span)
        if not isinstance(self.executor, RealTime):
            busy = _trained_s(study, self.first.at, self.last.at) / (self._slots * span)
        commits = self.commits_ms
        return {
            "busy": busy,
            "trials_a_second": self._trials / span,
            "reports_a_second": self._reports / span,
            "driver_core": driver_s / span,
            "process_core": process_s / span,
            "commits_a_second": len(commits) / span,
            "commit_median_ms": statistics.median(commits),
            "commit_p99_ms": commits[int(0.99 * len(commits))],
        }


def _trained_s(study: Study, begin: float, end: float) -> float:
    """The seconds between two times in which trials trained, by their workers' clocks."""
    total = 0.0
    for trial in study.history.trials:
        if trial.reports:
            last = trial.reports[max(trial.reports)].metrics
            total += max(0.0, min(last["at"], end) - max(last["began"], begin))
    return total


def spec_of(folder: Path, slots: int, sampler: str) -> StudySpec:
    """The study."""
    (folder / "paced_task.py").write_text(TASK)
    number = {"type": "float", "low": 0.0, "high": 1.0}
    text = {
        "study": folder.name,
        "task": {"kind": "paced_task:train"},
        "space": {"x": number, "pace": {**number, "low": 0.8, "high": 1.2}},
        "objective": {"metric": "loss", "direction": "minimize"},
        "budget": {"trials": 10**6, "per_trial": {"steps": REPORTS, "report_every": 1}},
        "search": {"sampler": sampler, "pruner": "none"},
        "resources": {"workers": slots, "cpu": 0.01},
    }
    return parse(yaml.safe_dump(text), base=folder)


@contextmanager
def on_ray(spec: StudySpec, folder: Path) -> Iterator[Executor]:
    """Real workers on a local Ray."""
    from hpsearch.running.executors.cluster.ray_cluster import cluster
    from hpsearch.running.executors.ray import RayExecutor
    from hpsearch.running.study_run.workers import worker_config

    with cluster(None, spec.resources):
        executor = RayExecutor(worker_config(spec, str(folder)), spec.resources)
        with closing(executor):
            yield executor


def measured(given: Namespace, folder: Path) -> dict[str, Any]:
    """The row of the table."""
    slots = given.slots
    spec = spec_of(folder, slots, given.sampler)
    store = TimedStore.open(given.storage or f"sqlite:///{folder}/study.db")
    store.commits_ms = []
    meter = Meter(store, slots, given.seconds)
    simulated = nullcontext(RealTime(spec, slots))
    with closing(store), on_ray(spec, folder) if given.ray else simulated as executor:
        history = create_study(store, spec, str(folder))
        lease = store.acquire(history.study.id, "slots", spec.resources.lease_s)
        study = build_study(history, spec)
        driver = Driver(study, executor, store, lease, meter.watch, resources=spec.resources)
        meter.driver, meter.executor = driver, executor
        driver.run()
    return {"slots": f"{slots} {'on Ray' if given.ray else 'simulated'}", **meter.row(study)}


class _Slot:
    """The clock, the disk, the writing thread and the save in flight of the runs of a slot."""

    disk_free = written = 0.0
    """Of all slots: when the disk is free, and how many GB it has been given."""

    def __init__(self, given: Namespace, seed: int, folder: str) -> None:
        self._gigabytes, self._disk = given.checkpoints, given.disk
        self._random = random.Random(seed)
        self._setup = Setup({}, seed, budget_from({"steps": REPORTS}), Path(folder))
        self.drafting = lambda: nullcontext(self._setup.folder)
        self.reported = self.shutdown = lambda *_, **__: None
        self.now = self.lands = 0.0
        self.lost_s: list[float] = []

    def reports(self) -> Iterator[None]:
        while True:
            saves = RunSaves(self._setup, Settings(), lambda *_: None, Group(), lambda: self.now)
            saves._checkpoints = saves._pool = self  # type: ignore[assignment]
            reached_s = 0.0
            for step in range(1, REPORTS + 1):
                seconds = REPORT_S * self._random.uniform(0.8, 1.2)
                self.now += seconds
                yield
                reached_s += seconds
                self.lost_s.append(reached_s - ((saves._whole() and saves.newest_level) or 0.0))
                here, is_last = Position(step, reported=reached_s), step == REPORTS
                best = self._random.random() < 0.7
                saves.save(here, lambda: Content({}, {}), best, can_wait=not is_last)
                saves.named_by_report(reached_s, is_last)
            saves.close()

    def commit(self, *_: Any) -> str:
        _Slot.written += self._gigabytes
        _Slot.disk_free = max(self.disk_free, self.now) + self._gigabytes / self._disk
        self.now = max(self.disk_free, self.now + self._gigabytes)
        return "whole"

    def submit(self, write: Callable[..., str], *save: Any) -> "_Slot":
        began = self.now
        write(*save)
        self.lands, self.now = self.now, began
        return self

    def done(self) -> bool:
        return self.now >= self.lands

    def result(self) -> str:
        self.now = max(self.now, self.lands)
        return "whole"


def saved(given: Namespace, folder: str) -> dict[str, Any]:
    """The row of checkpoints."""
    slots = [_Slot(given, seed, folder) for seed in range(given.slots)]
    queue = [(0.0, number, slot.reports()) for number, slot in enumerate(slots)]
    seconds = 5 * REPORTS * REPORT_S
    while queue[0][0] < seconds:
        _, number, run = queue[0]
        next(run)
        heapq.heapreplace(queue, (slots[number].now, number, run))
    behind = max(0.0, _Slot.disk_free - seconds) * given.disk
    lost_s = [each for slot in slots for each in slot.lost_s]
    return {
        "slots": f"{given.slots} simulated",
        "gigabytes_a_second": (_Slot.written - behind) / seconds,
        "waiting": 1 - len(lost_s) * REPORT_S / (seconds * given.slots),
        "lost_mean_s": statistics.mean(lost_s),
        "lost_longest_s": max(lost_s),
    }


def main() -> None:
    """Measure one driver, or one disk."""
    given = arguments(
        __doc__,
        {"seconds": 20.0},
        slots=1000,
        seconds=180.0,
        sampler="random",
        storage="",
        ray=False,
        checkpoints=0.0,
        disk=50.0,
    )
    with tempfile.TemporaryDirectory(prefix="slots-") as folder:
        row = saved(given, folder) if given.checkpoints else measured(given, Path(folder))
    show("A driver's slots, trials of 30 s with ten reports", [row], given.json)


if __name__ == "__main__":
    main()
