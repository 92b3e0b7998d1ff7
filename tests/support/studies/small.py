"""Small studies for tests: a brain over a history, with no database, no cluster and no clock."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from benchmarks.simulation.running import SimulatedExecutor
from hpsearch.brain.study import Study
from hpsearch.domain.history import Changes, History
from hpsearch.domain.records import StudyRecord
from hpsearch.running.driver.loop import due_of
from hpsearch.search.searcher import Searcher
from hpsearch.store.optuna_storage.view import HistoryStorage
from hpsearch.study_file.levels import step_scale, trial_budget
from hpsearch.study_file.models import StudySpec
from hpsearch.study_file.reading import parse
from trials.contract import Diverged

PLAIN: dict[str, Any] = {
    "study": "plain",
    "seed": 1,
    "task": {"kind": "tests_own.module:train"},
    "space": {"x": {"type": "float", "low": 0.0, "high": 1.0}},
    "objective": {"metric": "loss", "direction": "minimize"},
    "budget": {"trials": 9, "per_trial": {"epochs": 9}},
    "search": {"sampler": "random"},
}


def budget_of(trials: int | None = None, epochs: int = 9, **limits: Any) -> dict[str, Any]:
    """The part of a study file on its budget."""
    most = {} if trials is None else {"trials": trials}
    return {**most, **limits, "per_trial": {"epochs": epochs}}


def search_by(sampler: str = "random", pruner: Any = "none", **more: Any) -> dict[str, Any]:
    """The part of a study file on its search."""
    return {"sampler": sampler, "pruner": pruner, **more}


def spec_with(*, base: Path = Path("/nowhere"), **changes: Any) -> StudySpec:
    """The plain study with some sections replaced, as of a file in a folder."""
    return parse(yaml.safe_dump({**PLAIN, **changes}), base=base)


def history_for(spec: StudySpec) -> History:
    record = StudyRecord(
        id=1,
        name=spec.study,
        spec=spec.text,
        directions=tuple(objective.direction for objective in spec.objectives),
        step_scale=step_scale(spec),
    )
    return History(record)


def brain(
    spec: StudySpec, history: History | None = None, defaults: Mapping[str, Any] | None = None
) -> Study:
    """A brain with its searcher."""
    history = history or history_for(spec)
    storage = HistoryStorage(history)
    return Study(spec, history, Searcher(spec, history, storage), defaults)


@dataclass
class Bowl:
    """Loss curves that fall towards (x - 0.3)^2, at a speed of `seconds_per_unit`; x above
    `diverges` diverges."""

    seconds_per_unit: float = 10.0
    diverges: float = math.inf

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        if params["x"] > self.diverges:
            raise Diverged(f"the loss is not finite at {resource:g}")
        return {"loss": (params["x"] - 0.3) ** 2 + 1 / (1 + resource)}

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        return resource * self.seconds_per_unit * (0.5 + params["x"])


class Simulation:
    """A brain and a simulated executor, driven like the driver does, with what would be written
    kept in a list."""

    def __init__(
        self,
        spec: StudySpec,
        history: History | None = None,
        *,
        curves: Bowl | None = None,
        workers: int = 2,
        defaults: Mapping[str, Any] | None = None,
        losses: tuple[float, ...] = (),
        start: float = 0.0,
        gpus: float = 1.0,
        cold_s: float = 0.0,
        warm_s: float = 0.0,
    ) -> None:
        self.study = brain(spec, history, defaults)
        self.history = self.study.history
        self.executor = SimulatedExecutor(
            curves or Bowl(),
            trial_budget(spec),
            workers,
            gpus,
            losses,
            cold_s=cold_s,
            warm_s=warm_s,
        )
        self.executor.now = start
        self.written: list[Changes] = []
        self.study.begin(start)

    def tick(self) -> None:
        commands = []
        due = due_of(self.study)
        for event in self.executor.poll(1e6 if due is None else max(0.0, due - self.executor.now)):
            commands += self.study.on_event(event, self.executor.now)
        commands += self.study.on_tick(self.executor.now)
        self.written.append(self.history.drain())
        for report in self.written[-1].reports:
            self.executor.recorded(report.trial, report.attempt or 0, report.resource)
        for command in commands:
            getattr(self.executor, type(command).__name__.lower())(command)

    def run(self, most_ticks: int = 100_000) -> Simulation:
        for _ in range(most_ticks):
            if self.study.finished:
                self.study.close(self.executor.now)
                self.written.append(self.history.drain())
                return self
            self.tick()
        raise AssertionError(f"not finished after {most_ticks} ticks")
