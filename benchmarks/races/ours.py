"""hpsearch in the races: a study as a user writes it, with the real brain, driver and store."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import yaml

from hpsearch.brain.study import Study
from hpsearch.domain import events as ev
from hpsearch.domain.facts import EarlierStudy
from hpsearch.domain.history import Changes, History
from hpsearch.running.study_run.brain import build_study
from hpsearch.search.ranking.selection import rank
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from races.curves import METRIC, Task
from races.race import Judge, Result, Terms, moments
from simulation import running as simulation


def study_file(
    task: Task, terms: Terms, seed: int, search: Mapping[str, Any], trials: int | None = None
) -> StudySpec:
    """The study file for a task: its space, a budget of so many trials or else of wall-clock time,
    and `search` if given."""
    limit = {"wall_clock": moments(task, terms)[-1]} if trials is None else {"trials": trials}
    text = {
        "study": "race",
        "seed": seed,
        "task": {"kind": "benchmark:train"},
        "space": task.space,
        "objective": {"metric": METRIC, "direction": "minimize"},
        "budget": {**limit, "per_trial": {task.unit: task.total, "report_every": 1}},
        "resources": {"workers": terms.workers},
        **({"search": dict(search)} if search else {}),
    }
    return parse(yaml.safe_dump(text), base=Path())


class Stopwatch:
    """A brain that measures the time of its decisions, and otherwise behaves as the original."""

    def __init__(self, study: Study) -> None:
        self._study = study
        self.asked_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._study, name)

    def on_event(self, event: ev.Event, now: float) -> list[ev.Command]:
        """As the brain does, with the time measured."""
        return self._timed(self._study.on_event, event, now)

    def on_tick(self, now: float) -> list[ev.Command]:
        """As the brain does, with the time measured."""
        return self._timed(self._study.on_tick, now)

    def _timed(self, decide: Callable[..., list[ev.Command]], *facts: Any) -> list[ev.Command]:
        began = time.process_time()
        commands = decide(*facts)
        self.asked_s += time.process_time() - began
        return commands


def recommended(study: Study) -> Mapping[str, Any] | None:
    """The configuration that the product recommends: the one that `hpsearch best` prints first."""
    ranked = rank(study.history.trials, "minimize")
    return ranked[0].trial.params if ranked else None


def shown(study: Study) -> Mapping[str, Any] | None:
    """The configuration of the best value reported so far, by which peers are judged."""
    known = [trial for trial in study.history.trials if trial.value is not None]
    best = min(known, key=lambda trial: trial.value, default=None)
    return best.params if best else None


def race(
    task: Task,
    seed: int,
    search: Mapping[str, Any],
    result: Result,
    told: Sequence[EarlierStudy] = (),
) -> Result:
    """Run the study on the task and record what it would recommend at each moment.

    The decision time is that of the whole brain: search, promotion, ledger and records, but not the
    database. `told` is what it knows of earlier studies.
    """
    curves = task.curves()
    judge, looks = Judge(task, curves), moments(task, result.terms)
    stopwatches: list[Stopwatch] = []

    def build(history: History, spec: StudySpec) -> Study:
        stopwatches.append(Stopwatch(build_study(history, spec)))
        return cast(Study, stopwatches[0])

    def look(study: Study, until: float) -> None:
        while len(result.regret) < len(looks) and until >= looks[len(result.regret)]:
            result.regret.append(judge.of(recommended(study)))
            result.shown.append(judge.of(shown(study)))

    def watch(study: Study, changes: Changes, now: float) -> None:
        look(study, now)

    spec = study_file(task, result.terms, seed, search)
    history = simulation.simulate(
        spec, curves, result.workers, moments=looks, watch=watch, build=build, earlier=told
    )
    (stopwatch,) = stopwatches
    result.deciding_s = stopwatch.asked_s
    result.trials = len(history.trials)
    result.decisions = sum(len(trial.attempts) for trial in history.trials)
    look(cast(Study, stopwatch), looks[-1])  # it may end early, if no trial can win any more
    return result
