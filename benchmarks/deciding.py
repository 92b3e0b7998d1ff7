"""What a large study costs its driver: an event with the tick after it, a resume, and memory.

    python benchmarks/deciding.py [--trials 1000,100000] [--samplers random,tpe,curve_gp]
                                  [--workers 4,256] [--events 200] [--quick] [--json FILE]

The studies are made, not run: a tenth of the trials were trained in full, every fiftieth failed,
the latest ones wait at a rung, and the others were pruned at their first. Their ends follow from
their configurations. Budgets of trials and GPU-hours go on, promotion continues trials, and the
leaders are to be repeated. The real driver takes such a study up from its database, and workers on
a virtual clock report to it.

Times are those of the processor, so that other programs on the machine do not count, in one thread:
an event and the tick after it, without the database, as a mean, a median and a 99th percentile; the
load of the records; and the build of the brain. Memory is what both of these keep.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported: decisions are timed on one core

import itertools
import math
import statistics
import time
import tracemalloc
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import yaml

from hpsearch.brain.study import Study
from hpsearch.domain.facts import ErrorKind
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import ReportRecord, StudyRecord, Trial
from hpsearch.running.driver.loop import Driver
from hpsearch.running.study_run.brain import build_study
from hpsearch.store.store import Store
from hpsearch.study_file import space
from hpsearch.study_file.levels import trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from races.ours import Stopwatch
from simulation.running import Straight
from tables import arguments, show

EPOCHS = 27
COMPLETE_AT = (1, 3, 6, 9, 12, 16, 20, 24, 27)
WAITING = 400
"""The latest trials, of which those that are not complete wait at a rung."""
FULL, FAILED = 10, 50
"""One trial in so many was trained in full, and one in so many failed."""

STUDY: dict[str, Any] = {
    "study": "deciding",
    "seed": 1,
    "task": {"kind": "made.up:train"},
    "space": {
        "lr": {"type": "float", "low": 1e-5, "high": 1e-1, "log": True},
        "decay": {"type": "float", "low": 1e-6, "high": 1e-2, "log": True},
        "dropout": {"type": "float", "low": 0.0, "high": 0.5},
        "layers": {"type": "int", "low": 1, "high": 8},
        "width": {"type": "int", "low": 32, "high": 1024, "log": True},
        "optimizer": {"type": "categorical", "choices": ["adam", "sgd", "muon"]},
    },
    "objective": {"metric": "accuracy", "direction": "maximize"},
    "budget": {"trials": 1_000_000, "gpu_hours": 1e6, "per_trial": {"epochs": EPOCHS}},
}


class Curves:
    """Accuracies that rise towards an end, which the learning rate and the dropout set."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> dict[str, float]:
        """The metrics at a resource."""
        off = abs(math.log10(params["lr"]) + 3) + params["dropout"]
        return {"accuracy": math.exp(-0.2 - 0.3 * off - 2 / (resource + 1))}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """A second for an epoch."""
        return resource


def spec_of(sampler: str, workers: int) -> StudySpec:
    """The study with a sampler, on so many workers."""
    pruner = {"kind": "promotion", "first_rung": 1}
    search = {"sampler": sampler, "pruner": pruner, "confirm": {"top": 3, "seeds": 3}}
    given = {**STUDY, "search": search, "resources": {"workers": workers}}
    return parse(yaml.safe_dump(given), base=Path())


def made(spec: StudySpec, trials: int) -> History:
    """The records of a study with so many trials, as if it had run."""
    record = StudyRecord(1, spec.study, spec.text, (spec.objective.direction,))
    history = History(record)
    draw = np.random.default_rng(trials)
    for number in range(trials):
        trial = history.add_trial(Trial(number, _state(number, trials), {}, seed=number))
        trial.distributions = space.distributions(spec.space)
        trial.params = {
            "lr": 10 ** draw.uniform(-5, -1),
            "decay": 10 ** draw.uniform(-6, -2),
            "dropout": draw.uniform(0, 0.5),
            "layers": int(draw.integers(1, 9)),
            "width": int(draw.integers(32, 1025)),
            "optimizer": ["adam", "sgd", "muon"][int(draw.integers(3))],
        }
        if trial.state is State.FAILED:
            trial.error_kind, trial.error_text = ErrorKind.DIVERGED, "loss is nan"
        _report(history, trial)
    return history


def _state(number: int, trials: int) -> State:
    if number % FULL == 0:
        return State.COMPLETE
    if number % FAILED == 1:
        return State.FAILED
    return State.PAUSED if number >= trials - WAITING else State.PRUNED


def _report(history: History, trial: Trial) -> None:
    """A trial's reports are recorded, up to where it came."""
    epochs = COMPLETE_AT if trial.state is State.COMPLETE else COMPLETE_AT[:1]
    for epoch in epochs:
        metrics = Curves().measure(trial.params, 0, epoch)
        value = metrics["accuracy"]
        history.add_report(ReportRecord(trial.number, float(epoch), value, metrics))
        trial.value, trial.resource = value, float(epoch)
    trial.rung = 2 if trial.state is State.COMPLETE else 0
    history.touch(trial)


class Timed(Stopwatch):
    """A brain that keeps the time of each event with the tick after it."""

    def __init__(self, study: Study, events: int) -> None:
        super().__init__(study)
        self._left = events
        self.times_ms: list[float] = []
        self.driver: Driver | None = None

    def on_tick(self, now: float) -> Any:
        """As the brain does; the driver is stopped after the last event."""
        commands = super().on_tick(now)
        self.times_ms.append(1000 * self.asked_s)
        self.asked_s = 0.0
        if len(self.times_ms) == self._left and self.driver is not None:
            self.driver.request_stop()
        return commands


def row_of(sampler: str, trials: int, workers: int, events: int) -> dict[str, Any]:
    """A row of the table."""
    spec = spec_of(sampler, workers)
    history = made(spec, trials)
    with TemporaryDirectory() as folder, closing(Store.open(f"sqlite:///{folder}/a.db")) as store:
        store.create_study(history.study, history.drain())
        del history
        began = time.process_time()
        loaded = store.load(spec.study)
        load_s = time.process_time() - began
        began = time.process_time()
        study = Timed(build_study(loaded, spec), events)
        build_s = time.process_time() - began
        executor = Straight(Curves(), trial_budget(spec), workers)
        lease = store.acquire(loaded.study.id, "deciding", 1e9)
        brain = cast(Study, study)
        driver = study.driver = Driver(
            brain, executor, store, lease, None, executor.clock, poll_s=math.inf
        )
        driver.run()
        tracemalloc.start()
        kept = build_study(store.load(spec.study), spec)
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del kept
    return {
        "sampler": sampler,
        "trials": trials,
        "workers": workers,
        "mean_ms": statistics.fmean(study.times_ms),
        "median_ms": statistics.median(study.times_ms),
        "p99_ms": statistics.quantiles(study.times_ms, n=100)[-1],
        "load_s": load_s,
        "build_s": build_s,
        "MB": memory / 1e6,
    }


def main() -> None:
    """Measure studies of several sizes."""
    given = arguments(
        __doc__,
        {"trials": [1_000], "workers": [4], "events": 60},
        trials=[1_000, 100_000],
        samplers=["random", "tpe", "curve_gp"],
        workers=[4, 256],
        events=200,
    )
    sizes = itertools.product(given.trials, given.workers, given.samplers)
    rows = [row_of(sampler, trials, some, given.events) for trials, some, sampler in sizes]
    show("An event with the tick after it, and a resume, on one core", rows, given.json)


if __name__ == "__main__":
    main()
