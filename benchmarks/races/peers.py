"""The peers in the races, by the names that the command knows, and how each is created."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import optuna
from optuna.samplers import BaseSampler, RandomSampler, TPESampler

from hpsearch.search.rungs import Verdict
from hpsearch.study_file.space import distribution_of
from races.curves import METRIC, Task, parameters
from races.race import Contender, Job

RESOURCE = "epoch"
NO_TIME = datetime(2000, 1, 1)
"""Syne Tune's trials have a creation time, which is not used here."""


class OptunaPeer:
    """A sampler of Optuna; every trial is trained in full."""

    def __init__(self, task: Task, sampler: BaseSampler) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(sampler=sampler)
        space = parameters(task.space)
        self._space = {name: distribution_of(parameter) for name, parameter in space.items()}
        self._running: dict[int, optuna.Trial] = {}

    def ask(self) -> Job:
        """The sampler's next proposal."""
        trial = self._study.ask(self._space)
        self._running[trial.number] = trial
        return Job(trial.number, trial.params)

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """Go on."""
        return Verdict.CONTINUE

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the study that the trial is complete."""
        self._study.tell(self._running.pop(trial), value)


class SyneTunePeer:
    """ASHA of Syne Tune from the first level, called as its `Tuner` does, with default arguments.
    In its current release this is the stopping variant."""

    def __init__(self, task: Task, seed: int) -> None:
        try:
            from syne_tune.backend.trial_status import Trial
            from syne_tune.optimizer import baselines
            from syne_tune.optimizer.scheduler import SchedulerDecision
        except ModuleNotFoundError as error:
            raise SystemExit(f"{error}: pip install '.[benchmarks]'") from error

        logging.getLogger("syne_tune").setLevel(logging.ERROR)
        np.random.seed(seed)
        self._trial, self._continue = Trial, SchedulerDecision.CONTINUE
        self._scheduler = baselines.ASHA(
            _domains(task.space),
            metric=METRIC,
            time_attr=RESOURCE,
            max_t=task.total,
            grace_period=1,
            random_seed=seed,
        )
        self._trials: list[Any] = []

    def ask(self) -> Job:
        """The scheduler's next suggestion."""
        suggestion = self._scheduler.suggest()
        assert suggestion is not None, "a space of numbers is never exhausted"
        assert suggestion.spawn_new_trial_id, "none of these schedulers pauses trials"
        trial = self._trial(len(self._trials), dict(suggestion.config or {}), NO_TIME)
        self._trials.append(trial)
        self._scheduler.on_trial_add(trial)
        return Job(trial.trial_id, dict(trial.config))

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """The scheduler's decision."""
        heard = {METRIC: value, RESOURCE: resource}
        if self._scheduler.on_trial_result(self._trials[trial], heard) == self._continue:
            return Verdict.CONTINUE
        self._scheduler.on_trial_remove(self._trials[trial])
        return Verdict.STOP

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the scheduler that the trial has ended, after its last result (as `Tuner` does)."""
        if self.report(trial, resource, value) is Verdict.CONTINUE:
            heard = {METRIC: value, RESOURCE: resource}
            self._scheduler.on_trial_complete(self._trials[trial], heard)


def _domains(space: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A space of numbers and categories, in Syne Tune's terms."""
    from syne_tune import config_space

    make = {
        ("float", False): config_space.uniform,
        ("float", True): config_space.loguniform,
        ("int", False): config_space.randint,
        ("int", True): config_space.lograndint,
    }
    found = {}
    for name, text in space.items():
        if text["type"] == "categorical":
            found[name] = config_space.choice(list(text["choices"]))
        else:
            found[name] = make[text["type"], text.get("log", False)](text["low"], text["high"])
    return found


PEERS: dict[str, Callable[[Task, int], Contender]] = {
    "random": lambda task, seed: OptunaPeer(task, RandomSampler(seed=seed)),
    "optuna-tpe": lambda task, seed: OptunaPeer(task, TPESampler(seed=seed)),
    "syne-asha": SyneTunePeer,
}
"""The peers by name, each created from a task and a seed."""
