"""hpsearch in the race: a study as its user would write it, through the real brain, search, driver and store."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from curves import METRIC, Task
from hpsearch import simulation
from hpsearch.executors.simulated import Curves
from hpsearch.records import Changes
from hpsearch.selection import rank
from hpsearch.spec import StudySpec
from hpsearch.spec_file import parse
from hpsearch.study import Study
from race import Judge, Result, moments


def study_file(task: Task, workers: int, seed: int, search: Mapping[str, Any]) -> StudySpec:
    """The study file for a task: its space, the budget as wall-clock time, and `search` where it is not the default."""
    text = {
        "study": "race",
        "seed": seed,
        "task": {"kind": "benchmark:train"},
        "space": task.space,
        "objective": {"metric": METRIC, "direction": "minimize"},
        "budget": {"wall_clock": moments(task, workers)[-1], "per_trial": {task.unit: task.total, "report_every": 1}},
        "resources": {"workers": workers, "report_deadline": 10 * task.full_seconds},
        **({"search": dict(search)} if search else {}),
    }
    return parse(yaml.safe_dump(text), base=Path())


class Stopwatch:
    """Curves that note how long they were asked for."""

    def __init__(self, curves: Curves) -> None:
        self._curves = curves
        self.seconds_asked = 0.0

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics at a resource."""
        began = time.perf_counter()
        try:
            return self._curves.measure(params, seed, resource)
        finally:
            self.seconds_asked += time.perf_counter() - began

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training up to a resource."""
        began = time.perf_counter()
        try:
            return self._curves.seconds(params, resource)
        finally:
            self.seconds_asked += time.perf_counter() - began


def race(task: Task, workers: int, seed: int, search: Mapping[str, Any], result: Result) -> Result:
    """Run the study on the task and note what it would hand out at each moment.

    The time of its decisions is all of the driver's: the search, the ledger and the writing to the database.
    """
    curves = task.curves()
    judge, watched = Judge(task, curves), Stopwatch(curves)
    looks = moments(task, workers)
    looking_s = 0.0

    def watch(study: Study, changes: Changes, now: float) -> None:
        nonlocal looking_s
        began = time.perf_counter()
        while len(result.regret) < len(looks) and now >= looks[len(result.regret)]:
            trials = study.history.trials
            best = next(iter(rank(trials, "minimize")), None)
            seen = [report.value for trial in trials for report in trial.reports.values() if report.value is not None]
            result.regret.append(judge.of(None if best is None else best.trial.params))
            result.seen.append(judge.regret(min(seen)) if seen else 1.0)
        looking_s += time.perf_counter() - began

    began = time.perf_counter()
    history = simulation.simulate(study_file(task, workers, seed, search), watched, workers, moments=looks, watch=watch)
    result.deciding_s = time.perf_counter() - began - watched.seconds_asked - looking_s
    result.trials = len(history.trials)
    result.decisions = sum(len(trial.attempts) for trial in history.trials)
    assert len(result.regret) == len(looks), f"the study ended early: {history.study.reason}"
    return result
