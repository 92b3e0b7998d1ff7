"""The time that is told, before a study and while it runs, beside what it then took.

    python benchmarks/told.py [--split all|develop|report] [--studies 245] [--json FILE] [--quick]

Studies on recorded curves and simulated workers: the kinds of pruning on each workload in turn,
with starts of 0 to 60 s, full trainings of 30 s to 15 min, 8 to 40 trials and 1 to 8 workers, drawn
at random. Before a study it is told what `hpsearch check` says, by two configurations; while it
runs what `hpsearch status` does, at a third, half and two thirds of what it took.

By kind, the share of studies of which the whole time that was told is within a factor of 1.5
(check) or 1.25 of the real one; of which the time left is within 1.5; and whose real time lies in
the range, with its median width: the most over the least.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import random
import statistics
from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

import tables
from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.history import Changes
from hpsearch.domain.seeds import derived_seed
from hpsearch.running.executors.first_report import Tried
from hpsearch.running.rehearsal import first_trial, other_values
from hpsearch.search.time_left import TimeLeft
from hpsearch.study_file import space
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.views.plan import between_s, pace_of
from races.curves import METRIC, Task, parameters, tasks_in
from races.ours import study_file
from races.race import Terms
from races.schedule import SPLITS, split
from simulation.curves import RecordedCurves
from simulation.running import Straight, simulate

METHODS: dict[str, dict[str, Any]] = {
    "auto": {},
    "pausing": {"pruner": {"kind": "promotion", "pause": True}},
    "stopping": {"pruner": {"kind": "promotion", "pause": False}},
    "in full": {"pruner": "none"},
    "median": {"pruner": "median"},
    "ends early, in full": {"pruner": "none"},
    "ends early, auto": {},
}
STARTS_S, FULL_S = (0.0, 1.0, 10.0, 60.0), (30.0, 120.0, 900.0)
TRIALS, WORKERS = (8, 12, 20, 40), (1, 2, 8)
SLOWEST = 4.0  # a longer step, in median ones, is the start of the process that recorded it
PATIENCE = 4  # reports without a better one after which a program ends early
MOMENTS = {"1/3": 1 / 3, "1/2": 1 / 2, "2/3": 2 / 3}
Told = tuple[float, float, float]  # seconds in all, and the least and the most of those to come


class Case(NamedTuple):
    """One study."""

    task: str
    method: str
    start_s: float
    full_s: float
    trials: int
    workers: int


class EndsEarly(Straight):
    """Workers whose programs end once their metric has not improved for a while."""

    def _next_level(self, run: Any) -> float | None:
        order, levels = run.order, self._budget.report_at
        losses = [
            self._curves.measure(order.params, order.seed, level)[METRIC]
            for level in levels
            if level <= run.resource
        ]
        since = len(losses) - losses.index(min(losses)) if losses else 0
        return None if since > PATIENCE else super()._next_level(run)


def timed(task: Task, full_s: float) -> RecordedCurves:
    """The curves of a task, the mean full training of which takes so many seconds."""
    recorded = task.curves()
    assert isinstance(recorded, RecordedCurves)
    steps = [np.diff(curve.seconds, prepend=0.0) for curve, *_ in recorded.runs]
    seconds = [np.minimum(each, SLOWEST * np.median(each)).cumsum() for each in steps]
    factor = full_s / statistics.fmean(each[-1] for each in seconds)
    pairs = zip(recorded.runs, seconds, strict=True)
    runs = [[replace(curve, seconds=factor * each)] for (curve, *_), each in pairs]
    return RecordedCurves(parameters(task.space), recorded.configurations, runs)


def run(case: Case) -> dict[str, Any]:
    """Run one study, and say by what factors it took longer than it was told to."""
    (task,) = [each for each in tasks_in(None, None, "recorded") if each.name == case.task]
    seed, terms = derived_seed("told", *map(str, case)), Terms(case.trials, case.workers)
    spec = study_file(task, terms, seed, METHODS[case.method], case.trials)
    ends_early = case.method.startswith("ends early")
    spec = spec.model_copy(update={"task": {**spec.task, "ends_early": ends_early}})
    kind = EndsEarly if ends_early else Straight
    told: dict[float, Told] = {}

    def watch(study: Study, changes: Changes, now: float) -> None:
        left = TimeLeft(spec, study.history.trials, [None] * case.workers)
        seconds = None if study.finished else left.seconds(now, now)
        if seconds is not None:
            told[now] = (seconds, *left.between(seconds))

    curves = timed(task, case.full_s)
    history = simulate(spec, curves, case.workers, watch=watch, start_up_s=case.start_s, kind=kind)
    took_s = history.study.active_seconds
    found = {"check": _figures(_checked(spec, task, case), 0.0, took_s, 1.5)}
    for name, share in MOMENTS.items():
        now = min(told, key=lambda at: abs(at - share * took_s))
        found[name] = _figures(told[now], now, took_s, 1.25)
    return found


def _figures(
    said: Told, now: float, took_s: float, factor: float
) -> tuple[bool, bool, bool, float]:
    (seconds, low, high), left = said, took_s - now
    of_all, of_rest = (now + seconds) / took_s, seconds / left
    near = 1 / factor <= of_all <= factor, 1 / 1.5 <= of_rest <= 1.5
    return *near, low <= left <= high, high / low


def _checked(spec: StudySpec, task: Task, case: Case) -> Told:
    """What `hpsearch check` says: by the lowest values, and by other ones."""
    curves, levels = timed(task, case.full_s), trial_budget(spec).report_at
    first = space.completed(spec.space, {}, spec.requires)
    other = other_values.most_different(spec, first)[0]
    report = ev.Reported(0, 1, levels[0], {}, checkpoint="kept")

    def tried(params: Mapping[str, Any], further_s: float) -> Tried:
        seconds = [curves.seconds(params, level) for level in levels]
        count = sum(each - seconds[0] <= further_s for each in seconds)
        most = min(count, first_trial.TIMED_REPORTS)
        trained_s = dict(zip(levels[:most], seconds, strict=False))
        return Tried(report, seconds[0], start_up_s=case.start_s, trained_s=trained_s)

    as_long = case.start_s + curves.seconds(first, levels[0])
    own = tried(first, as_long + first_trial.FURTHER_S)
    slowness = other_values.slowness_of(tried(other, other_values.TRAIN_ON_S), own)
    measured = first_trial.measured(report, own, [slowness])
    pace = pace_of(spec, measured) or 0.0
    time_left = TimeLeft(spec, (), [None] * case.workers)
    work_s = time_left.in_all_s(pace, measured["start_up_seconds"])[0] or 0.0
    return work_s, *between_s(spec, measured, time_left, work_s)


def main() -> None:
    """Run the studies and print a table."""
    given = tables.arguments(
        __doc__, {"studies": 14}, split=SPLITS, studies=245, jobs=os.cpu_count() or 1
    )
    tasks = split(tasks_in(None, None, "recorded"), given.split)
    drawn, kinds, cases = random.Random(1), list(METHODS), []
    for number in range(given.studies):
        method = kinds[(number + number // len(tasks)) % len(kinds)]
        lasts = drawn.choice(STARTS_S), drawn.choice(FULL_S)
        size = drawn.choice(TRIALS), drawn.choice(WORKERS)
        cases.append(Case(tasks[number % len(tasks)].name, method, *lasts, *size))
    groups: dict[tuple[str, str], list[tuple[bool, bool, bool, float]]] = defaultdict(list)
    with ProcessPoolExecutor(given.jobs) as pool:
        for case, found in zip(cases, pool.map(run, cases), strict=True):
            for moment, figures in found.items():
                groups[moment, case.method].append(figures)
                groups[moment, "all"].append(figures)
    rows = []
    for moment, kind in sorted(groups, key=lambda each: [*found].index(each[0])):
        columns = zip(*groups[moment, kind], strict=True)
        near, left_near, held, widths = map(list, columns)
        shares = {"near": near, "left_near": left_near, "in_range": held}
        row = {name: statistics.fmean(values) for name, values in shares.items()}
        of = {"moment": moment, "kind": kind, "studies": len(held)}
        rows.append(of | row | {"width": statistics.median(widths)})
    tables.show("the time that was told", rows, given.json)


if __name__ == "__main__":
    main()
