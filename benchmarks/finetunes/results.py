"""What the contenders of a fine-tune study did, what each would have handed out at every moment,
and how good that is when trained in full.
"""

from __future__ import annotations

import functools
import json
import math
import multiprocessing
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from finetunes.study import BuiltInLoop, FineTune, Loop, PlainLoop
from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.search.ranking.selection import rank

DATABASE = "hpsearch.db"
EQUAL = 1e-9
"""Accuracies closer than this are equal."""


@dataclass(frozen=True)
class Evaluation:
    """What a searcher heard of a trial.

    Args:
        at: When, in seconds since its command began.
        began: When the trial had begun to train.
        trial: Which one.
        epochs: How far it had trained.
        value: Its accuracy on the test sentences.
    """

    at: float
    began: float
    trial: str
    epochs: float
    value: float


@dataclass(frozen=True)
class Run:
    """One search.

    Args:
        evaluations: In order of time.
        params: The configuration of each trial.
        seeds: The seed that each trial was trained with.
        failed: When a trial failed, of those that did.
    """

    evaluations: Sequence[Evaluation]
    params: Mapping[str, Mapping[str, Any]]
    seeds: Mapping[str, int]
    failed: Mapping[str, float] = field(default_factory=dict)

    def in_full(self, epochs: float) -> dict[str, float]:
        """The final values of the trials that this run has trained in full."""
        return {each.trial: each.value for each in self.evaluations if each.epochs >= epochs}

    @property
    def start_up_s(self) -> float | None:
        """Seconds from the command to the beginning of the first training; None if nothing was
        reported."""
        return min((each.began for each in self.evaluations), default=None)


def read_peer(study: FineTune, start: float) -> Run:
    """What a program of `peers` has written.

    Args:
        study: The study in the peer's folder.
        start: When the command began, in seconds since the epoch.
    """
    evaluations, params, seeds = [], {}, {}
    for file in sorted(study.folder.glob("reports-*.jsonl")):
        for line in file.read_text().splitlines():
            row = json.loads(line)
            trial = row["trial"]
            at, began = row["at"] - start, row["began"] - start
            evaluations.append(Evaluation(at, began, trial, row["epochs"], row["value"]))
            params[trial] = row["params"]
            seeds[trial] = study.seed_of(row["params"])
    evaluations.sort(key=lambda each: each.at)
    return Run(evaluations, params, seeds)


def read_hpsearch(study: FineTune, start: float) -> Run:
    """What is in the database of hpsearch; arguments as in `read_peer`."""
    evaluations = []
    with closing(sqlite3.connect(study.folder / DATABASE)) as database:
        trials = database.execute("SELECT number, params, seed, state, ended FROM trials")
        rows = trials.fetchall()
        reports = database.execute(
            "SELECT created, elapsed, trial, resource, value FROM reports"
            " WHERE value IS NOT NULL ORDER BY created, resource"
        )
        for created, elapsed, trial, resource, value in reports:
            at = created - start
            evaluations.append(Evaluation(at, at - elapsed, str(trial), resource, value))
    params = {str(number): json.loads(text) for number, text, *_ in rows}
    seeds = {str(number): seed for number, _, seed, *_ in rows}
    failed = {str(row[0]): row[4] - start for row in rows if row[3] == State.FAILED}
    return Run(evaluations, params, seeds, failed)


def has_ended(folder: Path) -> bool:
    """Whether hpsearch's study came to its end, if only because its time was over before anything
    was reported."""
    if not (folder / DATABASE).exists():
        return False
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        row = database.execute("SELECT ended FROM studies").fetchone()
    return row is not None and row[0] is not None


def seconds_before_driving(folder: Path, start: float) -> float:
    """How long hpsearch took from its command until its study's time began; for a study that has
    ended."""
    with closing(sqlite3.connect(folder / DATABASE)) as database:
        ended, active = database.execute("SELECT ended, active_seconds FROM studies").fetchone()
    return float(ended - active - start)


# -------------------------------------------------------------------- what would be handed out

Rule = Callable[[Sequence[Evaluation], float], str | None]
"""From the evaluations so far, of trials that have not failed, and the epochs of a full training to
the trial that is handed out."""


@dataclass(frozen=True)
class Standing:
    """A trial as far as it has come: what `rank` needs to know of it."""

    number: int
    state: State
    value: float | None
    resource: float
    role: Role = Role.SEARCH
    repeats: int | None = None
    values: Sequence[float] | None = None
    violation: float = 0.0
    expected: float | None = None
    expected_deviation: float | None = None
    expected_low: float | None = None
    expected_high: float | None = None


def as_hpsearch_best(evaluations: Sequence[Evaluation], epochs: float) -> str | None:
    """The trial that `hpsearch best` prints first."""
    values: dict[str, float] = {}
    reached: dict[str, float] = {}
    for each in evaluations:
        values[each.trial] = max(each.value, values.get(each.trial, -math.inf))
        reached[each.trial] = max(each.epochs, reached.get(each.trial, 0.0))
    standings = []
    for trial, value in values.items():
        state = State.COMPLETE if reached[trial] >= epochs else State.PAUSED
        standings.append(Standing(int(trial), state, value, reached[trial]))
    ranked = rank(standings, "maximize")
    return str(ranked[0].trial.number) if ranked else None


def best_latest(evaluations: Sequence[Evaluation], epochs: float) -> str | None:
    """The trial whose latest value is best, however far it is: Tune's `get_best_result`."""
    latest = {each.trial: each.value for each in evaluations}
    return max(latest, key=lambda trial: latest[trial], default=None)


def best_in_full(evaluations: Sequence[Evaluation], epochs: float) -> str | None:
    """The best trial that is complete: Optuna's `best_trial`, which the Trainer returns."""
    final = {each.trial: each.value for each in evaluations if each.epochs >= epochs}
    return max(final, key=lambda trial: final[trial], default=None)


def handed_out(run: Run, rule: Rule, epochs: float, until: float) -> list[tuple[float, str]]:
    """The trials that a run would have handed out, each with the moment from which on.

    Args:
        run: The search.
        rule: How it chooses.
        epochs: Those of a full training.
        until: When its time was over; what came later does not count.
    """
    moments = [each.at for each in run.evaluations] + list(run.failed.values())
    changes: list[tuple[float, str]] = []
    for moment in sorted(moment for moment in moments if moment <= until):
        known = []
        for each in run.evaluations:
            has_failed = run.failed.get(each.trial, math.inf) <= moment
            if each.at <= moment and not has_failed:
                known.append(each)
        chosen = rule(known, epochs)
        if chosen is not None and (not changes or changes[-1][1] != chosen):
            changes.append((moment, chosen))
    return changes


@dataclass(frozen=True)
class Course:
    """How good what a run would have handed out was, over its time.

    Args:
        steps: Moments with the value, in full, of what was handed out from then on.
    """

    steps: Sequence[tuple[float, float]]

    def at(self, moment: float) -> float | None:
        """The value of what was handed out at a moment; None for nothing."""
        values = [value for begun, value in self.steps if begun <= moment]
        return values[-1] if values else None

    def reached(self, value: float) -> float | None:
        """The first moment with a value at least as good; None if there is none."""
        moments = [begun for begun, found in self.steps if found >= value - EQUAL]
        return moments[0] if moments else None


# -------------------------------------------------------------------------- trained in full

LOOPS: dict[str, Callable[[FineTune], Loop]] = {"built-in": BuiltInLoop, "plain": PlainLoop}


@dataclass(frozen=True)
class Training:
    """A training in full that is left to do after the clock has stopped."""

    loop: str
    params: str
    """As JSON, so that equal ones are found."""
    seed: int

    @classmethod
    def of(cls, loop: str, params: Mapping[str, Any], seed: int) -> Training:
        """The training of a configuration."""
        return cls(loop, json.dumps(params, sort_keys=True), seed)


class Judge:
    """Trains configurations in full, several side by side, and remembers what they reached.

    Args:
        folder: A folder with the study and its data.
        workers: How many trainings run at a time.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        self._folder = folder
        self._workers = workers
        self._known: dict[Training, float] = {}

    def train(self, trainings: Iterable[Training]) -> None:
        """Do those trainings that have not been done."""
        missing = sorted({*trainings} - {*self._known}, key=lambda each: each.loop)
        if not missing:
            return
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(self._workers, context) as pool:
            found = pool.map(functools.partial(trained_in_full, self._folder), missing)
            self._known.update(zip(missing, found, strict=True))

    def value(self, training: Training) -> float:
        """What a training that was done reached."""
        return self._known[training]


def trained_in_full(folder: Path, training: Training) -> float:
    """The value of a configuration at the end of its training."""
    loop = _loop(folder, training.loop)
    *_, last = loop.train(json.loads(training.params), training.seed)
    return last.value


@functools.cache
def _loop(folder: Path, name: str) -> Loop:
    return LOOPS[name](FineTune(folder))
