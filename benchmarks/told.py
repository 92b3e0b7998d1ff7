"""The time that is told, before a study and while it runs, beside what it then took.

    python benchmarks/told.py [--split develop|report|all] [--studies 120] [--jobs 2]
                              [--json FILE] [--quick]

Studies on recorded curves and simulated workers, evenly drawn: workload, kind of pruning, seconds
of a start and of a mean full training, trials and workers. Before a study, what `hpsearch check`
says, by the reports of a few configurations; while it runs, what `hpsearch status` says at a
third, at half and at two thirds of its time.

By kind, the share of studies where the whole time that was told is within a factor of 1.5 (check)
or 1.25 (running) of the real one, and the time left within 1.5; the share whose real time is within
the range; and the median width of the ranges, most over least.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import math
import random
import statistics
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from typing import Any, NamedTuple

import tables
from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.history import Changes
from hpsearch.domain.seeds import derived_seed
from hpsearch.running.creation.study import create_study
from hpsearch.running.driver.journal import LEASE_TTL_S
from hpsearch.running.driver.loop import Driver
from hpsearch.running.executors.first_report import Tried
from hpsearch.running.rehearsal import first_trial, other_values
from hpsearch.running.study_run.brain import build_study
from hpsearch.search.time_left import TimeLeft
from hpsearch.simulation.running import IN_MEMORY, OWNER, Curves, Straight
from hpsearch.store.store import Store
from hpsearch.study_file import space
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.views import forecast
from races.curves import Task, tasks_in
from races.ours import study_file
from races.race import Terms
from races.schedule import split

METHODS: dict[str, dict[str, Any]] = {
    "auto": {},
    "pausing": {"pruner": {"kind": "promotion", "pause": True}},
    "stopping": {"pruner": {"kind": "promotion", "pause": False}},
    "in full": {"pruner": "none"},
    "median": {"pruner": "median"},
    "ends early": {"pruner": "none"},
    "ends early, auto": {},
}
SLOWEST = 4.0  # a longer step, in median ones, is the start of the process that recorded it
PATIENCE = 4  # reports without a better one after which a program ends early
MOMENTS = (1 / 3, 1 / 2, 2 / 3)


class Case(NamedTuple):
    """One study."""

    task: str
    method: str
    start_s: float
    full_s: float
    trials: int
    workers: int
    seed: int


class Timed:
    """Curves whose mean full training takes so many seconds."""

    def __init__(self, curves: Any, full_s: float) -> None:
        self._curves = curves
        self._paces: dict[int, float] = {}
        rows = [curve.seconds for curve, *_ in curves.runs]
        self._seconds = [_without_outliers(row) for row in rows]
        self._factor = full_s / statistics.fmean(row[-1] for row in self._seconds)

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics at a resource."""
        return self._curves.measure(params, seed, resource)

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training up to a resource."""
        row = self._curves._row(params)
        seconds = self._seconds[row]
        levels = self._curves.runs[row][0].levels
        import numpy as np
        return self._factor * float(np.interp(resource, [0.0, *levels], [0.0, *seconds]))


def _without_outliers(seconds: Any) -> list[float]:
    import numpy as np
    steps = np.diff(seconds, prepend=0.0)
    return np.cumsum(np.minimum(steps, SLOWEST * np.median(steps))).tolist()


class EndsEarly(Straight):
    """Workers whose programs end once their metric has not improved for a while."""

    def _next_level(self, run: Any) -> float | None:
        ahead = super()._next_level(run)
        levels = [level for level in self._budget.report_at if level <= run.resource]
        params, seed = run.order.params, run.order.seed
        losses = [self._curves.measure(params, seed, level)["loss"] for level in levels]
        best = losses.index(min(losses)) if losses else 0
        return None if len(losses) - best > PATIENCE else ahead


def run(case: Case) -> dict[str, Any]:
    """Run one study, and say what it was told to take and what it took."""
    (task,) = [each for each in tasks_in(None, None, "recorded") if each.name == case.task]
    seed = derived_seed("told", *map(str, case))
    terms = Terms(case.trials, case.workers)
    spec = study_file(task, terms, seed, METHODS[case.method], case.trials)
    ends_early = case.method.startswith("ends early")
    patient = spec.resources.model_copy(update={"report_deadline_s": math.inf})
    update = {"resources": patient, "task": {**spec.task, "ends_early": ends_early}}
    spec = spec.model_copy(update=update)
    kind = EndsEarly if ends_early else Straight
    budget = trial_budget(spec)
    curves = Timed(task.curves(), case.full_s)
    start_s = case.start_s
    executor = kind(curves, budget, case.workers, cold_s=start_s, warm_s=start_s)
    said: list[tuple[float, Any]] = []

    def watch(study: Study, changes: Changes, now: float) -> None:
        if not study.phase.winds_down and (not said or now > said[-1][0]):
            said.append((now, told(study, now)))

    with closing(Store.open(IN_MEMORY)) as store:
        history = create_study(store, spec, "")
        lease = store.acquire(history.study.id, OWNER, LEASE_TTL_S)
        study, clock = build_study(history, spec), executor.clock
        Driver(study, executor, store, lease, watch, clock, poll_s=math.inf).run()
    end = history.study.active_seconds
    at = [min(said, key=lambda each: abs(each[0] - moment * end)) for moment in MOMENTS]
    measured = rehearsed(spec, Timed(task.curves(), case.full_s), start_s)
    return {"took_s": end, "measured": measured, "spec": spec, "at": at, "trials": finals(history)}


def finals(history):
    return None


def told(study: Study, now: float) -> Any:
    """The seconds left, and the least and the most of them."""
    return study.seconds_left(now)


def rehearsed(spec: StudySpec, curves: Curves, start_s: float) -> dict[str, float]:
    """The times that `hpsearch check` measures, of the lowest values and of most different ones."""
    levels = trial_budget(spec).report_at
    first = space.completed(spec.space, {}, spec.requires)
    other = other_values.most_different(spec, first)[0]
    report = ev.Reported(0, 1, levels[0], {}, checkpoint="kept")

    def tried(params: Mapping[str, Any], further_s: float) -> Tried:
        seconds = [curves.seconds(params, level) for level in levels]
        count = sum(each - seconds[0] <= further_s for each in seconds)
        most = min(count, first_trial.TIMED_REPORTS)
        trained_s = dict(zip(levels[:most], seconds, strict=False))
        return Tried(report, start_s + seconds[0], start_up_s=start_s, trained_s=trained_s)

    own = tried(first, start_s + curves.seconds(first, levels[0]) + first_trial.FURTHER_S)
    slowness = other_values.slowness_of(tried(other, other_values.TRAIN_ON_S), own)
    return first_trial.measured(report, own, [slowness])


def cases_of(tasks: list[Task], studies: int) -> list[Case]:
    """Studies that are drawn evenly: each kind on each workload in turn."""
    drawn = random.Random(1)
    found = []
    methods = list(METHODS)
    for number in range(studies):
        task = tasks[number % len(tasks)]
        method = methods[(number + number // len(tasks)) % len(methods)]
        start_s, full_s = drawn.choice((0.0, 1.0, 10.0, 60.0)), drawn.choice((30.0, 120.0, 900.0))
        trials, workers = drawn.choice((8, 12, 20, 40)), drawn.choice((1, 2, 8))
        found.append(Case(task.name, method, start_s, full_s, trials, workers, number))
    return found
