"""A trial in rounds: its configuration is trained on fold after fold, or with seed after seed.

Each round is a run of its own, in a folder that goes when it ends. A report follows each, with the
mean of each metric over the rounds so far. A checkpoint holds what the rounds have measured, so
that none is trained twice; one that was cut short begins again.
"""

import json
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

from trials.checkpoints.checkpoints import Checkpoints
from trials.checkpoints.continuing import opened
from trials.checkpoints.folders import folder_at, inside
from trials.checkpoints.manifests import Label
from trials.contract import Budget, Finding, Fold, Item, Note, Report, Run, Setup, Task, Unit
from trials.running.randomness import Use, derive
from trials.running.reported import Stopwatch, numbers_of

FOLDER, STATE = "round", "rounds.json"
ALIVE_S = 10.0  # seconds between the signs of life of a round, whose own reports go no further


class TaskInRounds:
    """A task whose trials train in rounds (a `contract.Task`). Of a task `on_fold`, if it has that,
    makes one that is measured on a fold of the training data."""

    def __init__(self, task: Task, budget: Budget) -> None:
        self._task, self._budget = task, budget
        self.metrics, self.settings = task.metrics, task.settings

    def data_key(self, params: Mapping[str, Any]) -> str:
        return self._task.data_key(params)

    def prepare(self, params: Mapping[str, Any]) -> Any:
        """The data of all rounds, or a list of those of each."""
        on_fold = getattr(self._task, "on_fold", None)
        if self._budget.unit is not Unit.FOLDS or on_fold is None:
            return self._task.prepare(params)
        of = int(self._budget.total)
        return [on_fold(Fold(number, of)).prepare(params) for number in range(of)]

    def start(self, setup: Setup, data: Any) -> "RunInRounds":
        return RunInRounds(self._task, setup, data)


class RunInRounds:
    """One attempt of a trial in rounds (a `contract.Run`). Raises CheckpointError if the checkpoint
    that it continues from is damaged, and so are those before it."""

    def __init__(self, task: Task, setup: Setup, data: Any) -> None:
        self._task, self._setup, self._data = task, setup, data
        self._checkpoints = Checkpoints(setup.folder, unit=setup.budget.unit)
        self._done: list[Mapping[str, float]] = []
        self.best: Path | str | None = None
        self._findings: tuple[Finding, ...] = ()
        self._said = time.monotonic()
        self._watch = Stopwatch(0.0)
        if setup.resume_from is not None:
            self._restore(setup.resume_from)
        self._run = None if self.finished else self._begun()

    def _begun(self) -> Run:
        self._clear()
        number, data = len(self._done), self._data
        data = data[number] if isinstance(data, list) else data
        return self._task.start(setup_of(self._setup, number), data)

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
                of = self._setup.budget.unit.value
                raise RuntimeError(f"{len(self._done) + 1} of the {of} ended without a report")
            self._done.append(metrics)
            yield self._report()

    def _trained(self, run: Run) -> Generator[Item, None, Mapping[str, float]]:
        """Train a round. Returns its last metrics, and those that were measured after them."""
        last: Mapping[str, float] = {}
        later: Mapping[str, float] = {}
        for item in run:
            told: Item = None
            if isinstance(item, Report):
                last = numbers_of(item.metrics)
                run.recorded(item.resource)
                if time.monotonic() >= self._said + ALIVE_S:
                    told, self._said = Note(), time.monotonic()
            elif isinstance(item, Note):
                later, told = {**later, **numbers_of(item.metrics)}, Note(item.attributes)
            yield told
        return {**later, **last}

    def _report(self) -> Report:
        reached, seconds = float(len(self._done)), self._watch.seconds
        with self._checkpoints.drafting() as draft:
            text = json.dumps({"rounds": self._done, "elapsed": seconds})
            (draft / STATE).write_text(text, encoding="utf-8")
        self.best = path = self._checkpoints.commit(draft, Label(reached, is_best=True))
        self._checkpoints.reported(reached, path)
        names = [name for name in self._done[0] if all(name in each for each in self._done)]
        means = {name: fmean(each[name] for each in self._done) for name in names}
        return Report(reached, means, elapsed=seconds, checkpoint=path, best=path)

    def _restore(self, source: Path | str) -> None:
        with opened(source) as checkpoint:
            state = json.loads((checkpoint.files / STATE).read_text(encoding="utf-8"))
        self.best, self._done = checkpoint.path, state["rounds"]
        self._watch = Stopwatch(state["elapsed"])
        self._checkpoints.continue_from(source, checkpoint.path)
        self._checkpoints.reported(float(len(self._done)), checkpoint.path)

    def _clear(self) -> None:
        folder_at(self._setup.folder).remove(FOLDER)

    @property
    def finished(self) -> str | None:
        return "budget used" if len(self._done) >= self._setup.budget.total else None

    def save(self) -> Path | str | None:
        """The checkpoint of the last report; None before the first."""
        return self.best

    def recorded(self, resource: float) -> None:
        self._checkpoints.recorded(resource)

    def findings(self) -> tuple[Finding, ...]:
        """Those of the last round."""
        return self._findings if self._run is None else self._run.findings()

    def close(self) -> bool:
        if self._run is not None:
            if not self._run.close():
                return False
            self._findings, self._run = self._run.findings(), None
            self._clear()
        return True


def setup_of(setup: Setup, number: int) -> Setup:
    """The setup of a round, by its number from 0. The first has the trial's own seed."""
    budget, seed, folder = setup.budget, setup.seed, inside(setup.folder, FOLDER)
    fold = Fold(number, int(budget.total)) if budget.unit is Unit.FOLDS else None
    seed = derive(seed, Use.ROUND, number) >> 32 if number else seed
    return replace(
        setup, budget=budget.each or budget, seed=seed, folder=folder, resume_from=None, fold=fold
    )
