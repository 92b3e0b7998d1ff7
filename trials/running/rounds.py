"""A trial in rounds: its configuration is trained on fold after fold, or with seed after seed.

Each round is a run of its own, in a folder that goes when it ends. A report follows each, with the
mean of each metric over the rounds so far. A checkpoint holds what the rounds have measured, so
that none is trained twice; one that was cut short begins again.
"""

import json
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, cast

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import folder_at, inside
from trials.checkpoints.manifests import Label
from trials.contract import (
    Asking,
    Budget,
    Finding,
    Fold,
    Item,
    Note,
    ProgramFailed,
    Rehearsed,
    Report,
    Run,
    Setting,
    Setup,
    Task,
    Unit,
)
from trials.running.randomness import Use, derive
from trials.running.reported import Stopwatch, numbers_of

FOLDER, STATE = "round", "rounds.json"
OF_A_CHECKPOINT = ("checkpoint_bytes", "weights_bytes")
"""What is measured of a round's checkpoints, which are not those of the trial."""
ALIVE_S = 10.0
"""Seconds between the signs of life of a round, whose own reports go no further."""


@dataclass(frozen=True)
class DataOfFolds:
    parts: tuple[Any, ...]


def in_rounds(task: Task, budget: Budget) -> Task:
    """The task of trials with this budget: as it is, unless they train in rounds."""
    return task if budget.each is None else TaskInRounds(task, budget)


class TaskInRounds:
    """A task whose trials train in rounds (a `contract.Task`). Of a task `on_fold`, if it has that,
    makes one that is measured on a fold of the training data."""

    def __init__(self, task: Task, budget: Budget) -> None:
        self._task, self._budget = task, budget
        self.metrics: frozenset[str] | None = task.metrics
        self.settings: Mapping[str, Setting] | None = task.settings

    def data_key(self, params: Mapping[str, Any]) -> str:
        return self._task.data_key(params)

    def prepare(self, params: Mapping[str, Any]) -> Any:
        task: Any = self._task
        if self._budget.unit is not Unit.FOLDS or not hasattr(task, "on_fold"):
            return task.prepare(params)
        of = int(self._budget.total)
        tasks = [task.on_fold(Fold(number, of)) for number in range(of)]
        return DataOfFolds(tuple(each.prepare(params) for each in tasks))

    def start(self, setup: Setup, data: Any) -> "RunInRounds":
        return RunInRounds(self._task, setup, data)

    def remarks(self, params: Mapping[str, Any], data: Any) -> list[str]:
        assert isinstance(self._task, Rehearsed)
        return self._task.remarks(params, _data_of(data, 0))

    def rehearse(self, setup: Setup, data: Any) -> dict[str, float]:
        assert isinstance(self._task, Rehearsed)
        found = self._task.rehearse(_setup_of(setup, 0), _data_of(data, 0))
        return {name: found[name] for name in found if name not in OF_A_CHECKPOINT}


class RunInRounds:
    """One attempt of a trial in rounds (a `contract.Run`). Raises CheckpointError if the checkpoint
    that it continues from is damaged, and so are those before it."""

    def __init__(self, task: Task, setup: Setup, data: Any) -> None:
        self._task, self._setup, self._data = task, setup, data
        self._checkpoints = Checkpoints(setup.folder, unit=setup.budget.unit)
        self._done: list[Mapping[str, float]] = []
        self._steps = 0
        self._newest: Path | str | None = None
        self._run: Run | None = None
        self._findings: tuple[Finding, ...] = ()
        self._said = time.monotonic()
        elapsed = 0.0 if setup.resume_from is None else self._restored(setup.resume_from)
        self._watch = Stopwatch(elapsed)
        if self.finished is None:  # a round's start is that of the attempt
            self._run = self._begun()

    def __iter__(self) -> Iterator[Item]:
        while self.finished is None:
            self._watch.go_on()
            run = self._run = self._run or self._begun()
            metrics = yield from self._trained(run)
            if run.finished is None:
                return
            while not self.close():
                yield None
            self._watch.pause()
            if not metrics:
                unit = self._setup.budget.unit.value.removesuffix("s")
                where = f"{unit} {len(self._done) + 1}"
                raise ProgramFailed(f"{where} ended without a report")
            self._done.append(metrics)
            yield self._report()

    def _begun(self) -> Run:
        self._clear()
        number = len(self._done)
        setup, data = _setup_of(self._setup, number), _data_of(self._data, number)
        return self._task.start(setup, data)

    def _trained(self, run: Run) -> Generator[Item, None, Mapping[str, float]]:
        """Train a round. Returns its last metrics, and those that were measured after them."""
        last: Mapping[str, float] = {}
        later: Mapping[str, float] = {}
        step = 0
        for item in run:
            match item:
                case Report():
                    last, step = numbers_of(item.metrics), item.step or 0
                    run.recorded(item.resource)
                    yield self._sign_of_life()
                case Note():
                    later = {**later, **numbers_of(item.metrics)}
                    yield Note(item.attributes) if item.attributes else self._sign_of_life()
                case _:
                    yield item
        self._steps += step
        return {**later, **last}

    def _sign_of_life(self) -> Note | None:
        if time.monotonic() < self._said + ALIVE_S:
            return None
        self._said = time.monotonic()
        return Note()

    def _report(self) -> Report:
        reached = float(len(self._done))
        with self._checkpoints.drafting() as draft:
            state = {"rounds": self._done, "steps": self._steps, "elapsed": self._watch.seconds}
            (draft / STATE).write_text(json.dumps(state), encoding="utf-8")
        self._newest = self._checkpoints.commit(draft, Label(reached, is_best=True))
        best = self._checkpoints.reported(reached, self._newest)
        seconds = self._watch.seconds
        return Report(reached, self._means(), self._steps or None, seconds, self._newest, best)

    def _means(self) -> dict[str, float]:
        first, *others = self._done
        names = [name for name in first if all(name in each for each in others)]
        return {name: fmean(each[name] for each in self._done) for name in names}

    def _restored(self, source: Path | str) -> float:
        """Take up what a checkpoint holds. Returns the seconds trained until then."""
        with opened(source) as checkpoint:
            state = json.loads((checkpoint.files / STATE).read_text(encoding="utf-8"))
        self._newest = checkpoint.path
        self._done, self._steps = state["rounds"], state["steps"]
        self._checkpoints.continue_from(source, checkpoint.path)
        self._checkpoints.reported(float(len(self._done)), checkpoint.path)
        elapsed: float = state["elapsed"]
        return elapsed

    def _clear(self) -> None:
        folder_at(self._setup.folder).remove(FOLDER)

    @property
    def finished(self) -> str | None:
        return "budget used" if len(self._done) >= self._setup.budget.total else None

    @property
    def best(self) -> Path | str | None:
        return self._newest

    def give(self, value: Any) -> None:
        cast(Asking, self._run).give(value)

    def save(self) -> Path | str | None:
        """The checkpoint of the last report; None before the first."""
        return self._newest

    def recorded(self, resource: float) -> None:
        self._checkpoints.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        """Those of the last round."""
        return self._findings if self._run is None else self._run.findings()

    def close(self) -> bool:
        if self._run is None:
            return True
        if not self._run.close():
            return False
        self._findings, self._run = self._run.findings(), None
        self._clear()
        return True


def _data_of(data: Any, number: int) -> Any:
    return data.parts[number] if isinstance(data, DataOfFolds) else data


def _setup_of(setup: Setup, number: int) -> Setup:
    """The setup of a round, by its number from 0. The first has the trial's own seed."""
    budget = setup.budget
    return replace(
        setup,
        budget=budget.of_one,
        seed=derive(setup.seed, Use.ROUND, number) >> 32 if number else setup.seed,
        folder=inside(setup.folder, FOLDER),
        resume_from=None,
        fold=Fold(number, int(budget.total)) if budget.unit is Unit.FOLDS else None,
    )
