"""What a large study costs its driver: each decision, memory, a resume, and how this grows.

    python benchmarks/deciding.py [--trials 1000 10000] [--repeats 30] [--quick] [--json FILE]

The studies are made, not run: every trial has 9 reports, on curves that fall towards an end which
its configuration sets. A tenth of the trials were trained in full, the latest ones wait at the
highest rung, so that always one may go on, and the others were pruned there. Before each decision
one trial reports, which is not measured, so that nothing which was kept from the decision before
answers it. Everything runs in one thread, and the times are those of the processor: other programs
on the machine do not count.

    resume           the standings and curves are read from the records, once for each driver
    fit              the hyperparameters of the forecast are fitted, each time when the number of
                     values at marks has grown by a quarter; it is part of no other row
    report           a trial at a rung: what it is worth, and whether it goes on
    promotion        the paused trial that goes on
    last promotions  the same after the last new trial: which may still turn out the best
    proposal         the configuration of a new trial, by curve_gp
    expectations     what is written down of the leading trials

The calls of functions are counted beside the times, since they are the same on every machine. Then
the driver's own growth is measured: what it takes to load a study from a database and to build its
brain, and a simulated study in which nothing is trained, by tenths of its trials. The memory of a
trial is that of a simulated one with a single report, with the sampler at random.

The limits are those that the project keeps to: 10 ms at up to 1,000 trials, and 20 ms at 10,000.
With `--check` the command fails if the median of a decision is above its limit.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before numpy is imported: decisions are timed on one core

import argparse
import bisect
import cProfile
import gc
import itertools
import math
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from hpsearch.brain.study import Study
from hpsearch.domain.facts import Role
from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.phase import Phase
from hpsearch.domain.records import ReportRecord, StudyRecord, Trial
from hpsearch.running.study_run.brain import build_study
from hpsearch.search.curve_model import forecast
from hpsearch.search.curve_model.forecast import FITTED
from hpsearch.search.searcher import Searcher
from hpsearch.simulation.running import simulate
from hpsearch.store.optuna_storage.view import HistoryStorage
from hpsearch.store.store import Store
from hpsearch.study_file import space
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from tables import show

EPOCHS = 27
PAUSED_AT = tuple(range(1, 10))
"""Epochs at which a trial that waits has reported."""
COMPLETE_AT = (1, 3, 6, 9, 12, 16, 20, 24, 27)
WAITING = 400
"""The latest trials, of which those that are not complete wait at a rung."""
FULL = 10
"""One trial in so many was trained in full, so that more may go on."""
LIMITS = {1_000: 10.0, 10_000: 20.0}
"""Milliseconds that a decision may take in a study of up to so many trials."""
ONCE = ("resume", "fit")
"""What is measured beside the decisions, and has no limit."""

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
    "budget": {"trials": 100_000, "per_trial": {"epochs": EPOCHS}},
    "search": {"sampler": "curve_gp", "pruner": {"kind": "promotion", "first_rung": 1}},
}


class MadeStudy:
    """A study with so many trials, as if it had run.

    Args:
        trials: How many it has.
    """

    def __init__(self, trials: int) -> None:
        self.spec: StudySpec = parse(yaml.safe_dump(STUDY), base=Path())
        directions = (self.spec.objective.direction,)
        record = StudyRecord(1, self.spec.study, self.spec.text, directions)
        self.history = History(record)
        self._rng = np.random.default_rng(trials)
        for number in range(trials):
            self._add(number, trials)

    def _add(self, number: int, trials: int) -> None:
        complete = number % FULL == 0
        trial = self.new_trial()
        epochs = COMPLETE_AT if complete else PAUSED_AT
        trial.params = self._params()
        trial.distributions = space.distributions(self.spec.space)
        for epoch in epochs:
            self.report(trial, epoch)
        trial.state = State.COMPLETE if complete else State.PRUNED
        trial.rung = 2
        if number >= trials - WAITING and not complete:
            trial.state = State.PAUSED
        self.history.touch(trial)

    def new_trial(self) -> Trial:
        """A further trial, without parameters."""
        trial = Trial(len(self.history.trials), State.QUEUED, {}, role=Role.SEARCH)
        return self.history.add_trial(trial)

    def report(self, trial: Trial, epoch: int) -> ReportRecord:
        """A trial's next report is recorded."""
        off = abs(math.log10(trial.params["lr"]) + 3) + trial.params["dropout"]
        noise = 0.01 * float(self._rng.standard_normal())
        loss = 0.2 + 0.3 * off + 2 / (epoch + 1) + noise
        metrics = {"accuracy": math.exp(-loss), "loss": loss}
        report = ReportRecord(trial.number, epoch, metrics["accuracy"], metrics)
        self.history.add_report(report)
        trial.value = max(trial.value or 0.0, metrics["accuracy"])
        trial.resource = max(trial.resource, epoch)
        self.history.touch(trial)
        return report

    def _params(self) -> dict[str, Any]:
        draw = self._rng.random
        return {
            "lr": 10 ** (-5 + 4 * draw()),
            "decay": 10 ** (-6 + 4 * draw()),
            "dropout": 0.5 * draw(),
            "layers": 1 + int(8 * draw()),
            "width": 32 + int(992 * draw()),
            "optimizer": ["adam", "sgd", "muon"][int(3 * draw())],
        }


class Decisions:
    """What is measured of one study.

    Args:
        study: The study, with all its trials.
    """

    def __init__(self, study: MadeStudy) -> None:
        self._study = study
        self._history = study.history
        self._storage = HistoryStorage(study.history)
        started = time.process_time()
        self.searcher = Searcher(study.spec, study.history, self._storage)
        self._searches = itertools.count()
        # What is expected, with hyperparameters as they stand: only the records are read.
        study.history.study.system_attrs[FITTED] = {"values": 10**9, "theta": None}
        list(self.searcher.expectations())
        self.resume_ms = _ms_since(started)

    def fitting(self) -> float:
        """Milliseconds that a fit of the hyperparameters takes."""
        self._history.study.system_attrs[FITTED] = {"values": 0, "theta": None}
        self._something_happens()
        fits: list[float] = []
        fit = forecast.CurveModel.fit

        def timed(model: Any, evidence: Any) -> None:
            started = time.process_time()
            fit(model, evidence)
            fits.append(_ms_since(started))

        forecast.CurveModel.fit = timed  # type: ignore[assignment, method-assign]
        self.searcher.likeliest_to_win()
        forecast.CurveModel.fit = fit  # type: ignore[method-assign]
        (took,) = fits
        return took

    def kinds(self) -> dict[str, Callable[[], float]]:
        """The decisions, by name: each one is made once and returns its milliseconds."""
        return {
            "report": self._report,
            "promotion": self._promotion,
            "last promotions": self._last_promotion,
            "proposal": self._proposal,
            "expectations": self._expectations,
        }

    def _report(self) -> float:
        trial = self._running()
        report = self._study.report(trial, 1)
        started = time.process_time()
        self.searcher.assess(trial, report, Phase.SEARCHING)
        return _ms_since(started)

    def _promotion(self) -> float:
        self._something_happens()
        started = time.process_time()
        self.searcher.promotion()
        return _ms_since(started)

    def _last_promotion(self) -> float:
        self._something_happens()
        started = time.process_time()
        self.searcher.likeliest_to_win()
        return _ms_since(started)

    def _proposal(self) -> float:
        self._something_happens()
        trial = self._study.new_trial()
        started = time.process_time()
        self.searcher.proposals.propose(trial)
        return _ms_since(started)

    def _expectations(self) -> float:
        self._something_happens()
        started = time.process_time()
        list(self.searcher.expectations())
        return _ms_since(started)

    def _running(self) -> Trial:
        """A new trial that trains, with parameters."""
        trial = self._study.new_trial()
        self.searcher.proposals.propose(trial)
        trial.state = State.RUNNING
        self._history.touch(trial)
        return trial

    def _something_happens(self) -> None:
        """A paused trial goes on and reports once more."""
        trials = self._history.trials
        paused = [trial for trial in trials if trial.state is State.PAUSED]
        trial = paused[next(self._searches) * 17 % len(paused)]
        self.searcher.continues(trial)
        trial.state = State.RUNNING
        report = self._study.report(trial, 10)
        self.searcher.assess(trial, report, Phase.SEARCHING)


def _ms_since(started: float) -> float:
    return 1000 * (time.process_time() - started)


def rows_of(trials: int, repeats: int) -> Iterator[dict[str, Any]]:
    """The rows of the table for a study of so many trials."""
    decisions = Decisions(MadeStudy(trials))
    once = {"resume": decisions.resume_ms, "fit": decisions.fitting()}
    for name, took in once.items():
        yield row(name, trials, [took], None)
    limit = max(ms for most, ms in LIMITS.items() if most <= max(trials, min(LIMITS)))
    for name, decide in decisions.kinds().items():
        decide()  # the first one reads what the others keep
        times = [decide() for _ in range(repeats)]
        yield row(name, trials, times, limit, calls_of(decide))


def calls_of(decide: Callable[[], float]) -> int:
    """The calls of functions in one decision, with the event before it."""
    profile = cProfile.Profile()
    profile.runcall(decide)
    return sum(entry.callcount for entry in profile.getstats())  # type: ignore[attr-defined]


def row(
    name: str, trials: int, times: list[float], limit: float | None, calls: int | None = None
) -> dict[str, Any]:
    """A row of the table."""
    return {
        "decision": name,
        "trials": trials,
        "median_ms": statistics.median(times),
        "slowest_ms": max(times),
        "limit_ms": limit,
        "calls": calls,
        "repeats": len(times),
    }


# ------------------------------------------------------------------------------ the driver's growth


class Untrained:
    """Curves of configurations that take no training."""

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The accuracy, by the configuration alone."""
        return {"accuracy": 1 / (1 + abs(math.log10(params["lr"]) + 3) + params["dropout"])}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """A second for an epoch."""
        return resource


def untrained(trials: int) -> StudySpec:
    """A study of so many trials that report once each, drawn at random."""
    budget = {"trials": trials, "per_trial": {"epochs": 1}}
    search = {"sampler": "random", "pruner": {"kind": "none"}}
    return parse(yaml.safe_dump({**STUDY, "budget": budget, "search": search}), base=Path())


def resumed(trials: int) -> dict[str, Any]:
    """The time that it takes to load a study and build its brain, and the memory of that."""
    made = MadeStudy(trials)
    with TemporaryDirectory() as folder, closing(Store.open(f"sqlite:///{folder}/a.db")) as store:
        whole = made.history.drain()
        store.create_study(made.history.study, whole)
        started = time.process_time()
        build_study(store.load(made.spec.study), made.spec)
        took = _ms_since(started)
        tracemalloc.start()
        study = build_study(store.load(made.spec.study), made.spec)
        memory, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        del study
    return growth_row("resume", trials, took / trials, memory / trials)


def tenths(trials: int) -> Iterator[dict[str, Any]]:
    """The first and the last tenth of a simulated study, with its database."""
    passed: list[tuple[int, float]] = []

    def watch(study: Study, changes: object, now: float) -> None:
        passed.append((len(study.history.trials), time.process_time()))

    simulate(untrained(trials), Untrained(), 4, watch=watch)
    numbers = [number for number, _ in passed]
    for name, low in (("first tenth", 0), ("last tenth", trials - trials // 10)):
        begin, end = (bisect.bisect_left(numbers, at) for at in (low, low + trials // 10))
        took = 1000 * (passed[end][1] - passed[begin][1])
        yield growth_row(name, trials, took / (trials // 10), None)


def remembered(trials: int) -> dict[str, Any]:
    """The memory that each of so many further trials takes in the driver."""
    at: list[int] = []

    def watch(study: Study, changes: object, now: float) -> None:
        if len(study.history.trials) >= trials * (1 + len(at)):
            if not tracemalloc.is_tracing():
                tracemalloc.start()
            gc.collect()
            mine = tracemalloc.take_snapshot().filter_traces(NOT_OF_THE_DRIVER)
            at.append(sum(trace.size for trace in mine.traces))

    simulate(untrained(2 * trials), Untrained(), 4, watch=watch)
    tracemalloc.stop()
    return growth_row("a finished trial", 2 * trials, None, (at[1] - at[0]) / trials)


NOT_OF_THE_DRIVER = [
    tracemalloc.Filter(False, f"*/{part}/*") for part in ("simulation", "benchmarks", "sqlalchemy")
]
"""What the simulated cluster and its database in memory keep."""


def growth_row(name: str, trials: int, ms: float | None, size: float | None) -> dict[str, Any]:
    """A row of the table on growth."""
    return {"what": name, "trials": trials, "ms_a_trial": ms, "bytes_a_trial": size}


def main() -> None:
    """Measure all decisions in studies of several sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--course", type=int, default=10_000, help="trials of the simulated study")
    parser.add_argument("--quick", action="store_true", help="ten repeats, smaller studies")
    parser.add_argument("--check", action="store_true", help="fail above a limit")
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    repeats = 10 if arguments.quick else arguments.repeats
    rows = [row for trials in arguments.trials for row in rows_of(trials, repeats)]
    show("What a decision takes, on one core", rows, arguments.json)
    course = 2_000 if arguments.quick else arguments.course
    largest = min(arguments.trials) if arguments.quick else max(arguments.trials)
    growth = [resumed(largest), *tenths(course), remembered(course // 4)]
    beside = arguments.json and arguments.json.with_suffix(".growth.json")
    show("How a study's driver grows", growth, beside)
    if arguments.check:
        slow = [row for row in rows if row["limit_ms"] and row["median_ms"] > row["limit_ms"]]
        if slow:
            names = ", ".join(f"{row['decision']} at {row['trials']}" for row in slow)
            raise SystemExit(f"above the limit: {names}")


if __name__ == "__main__":
    main()
