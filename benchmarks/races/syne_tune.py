"""Schedulers of Syne Tune in the races, called as its `Tuner` does, with rungs from level 1."""

import logging
from datetime import datetime
from typing import Any

import numpy as np

from hpsearch.search.rungs import Verdict
from races.curves import METRIC, Task
from races.race import Job

RESOURCE = "epoch"
NO_TIME = datetime(2000, 1, 1)
"""Syne Tune's trials have a creation time, which is not used here."""

BRACKETS = {"HyperTune": 4}
"""Hyper-Tune chooses among brackets, and has one unless it is told; others have their default."""


class SyneTunePeer:
    """A scheduler of its current release, which is the stopping variant, with default arguments."""

    def __init__(self, name: str, task: Task, seed: int) -> None:
        try:
            from syne_tune.backend.trial_status import Trial
            from syne_tune.optimizer.scheduler import SchedulerDecision
        except ModuleNotFoundError as error:
            raise SystemExit(f"{error}: pip install '.[benchmarks]'") from error

        logging.getLogger("syne_tune").setLevel(logging.ERROR)
        np.random.seed(seed)
        self._trial, self._decision = Trial, SchedulerDecision
        self._scheduler = self._create(name, task, seed)
        self._trials: list[Any] = []

    def _create(self, name: str, task: Task, seed: int) -> Any:
        from syne_tune.optimizer import baselines

        return getattr(baselines, name)(
            _domains(task.space),
            metric=METRIC,
            time_attr=RESOURCE,
            max_t=task.total,
            grace_period=1,
            random_seed=seed,
        )

    def _suggest(self) -> Any:
        return self._scheduler.suggest()

    def ask(self) -> Job:
        """The scheduler's next suggestion: a new trial, or a paused one that goes on."""
        suggestion = self._suggest()
        assert suggestion is not None, "a space of numbers is never exhausted"
        if not suggestion.spawn_new_trial_id:
            trial = self._trials[suggestion.checkpoint_trial_id]
            return Job(trial.trial_id, dict(trial.config))
        trial = self._trial(len(self._trials), dict(suggestion.config or {}), NO_TIME)
        self._trials.append(trial)
        self._scheduler.on_trial_add(trial)
        return Job(trial.trial_id, dict(trial.config))

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """The scheduler's decision."""
        heard = {METRIC: value, RESOURCE: resource}
        decision = self._scheduler.on_trial_result(self._trials[trial], heard)
        if decision == self._decision.CONTINUE:
            return Verdict.CONTINUE
        self._scheduler.on_trial_remove(self._trials[trial])
        return Verdict.PAUSE if decision == self._decision.PAUSE else Verdict.STOP

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the scheduler that the trial has ended, after its last result (as `Tuner` does)."""
        if self.report(trial, resource, value) is Verdict.CONTINUE:
            heard = {METRIC: value, RESOURCE: resource}
            self._scheduler.on_trial_complete(self._trials[trial], heard)


class EarlierSyneTunePeer(SyneTunePeer):
    """A scheduler with Gaussian processes, which release 0.14 was the last to have, with default
    arguments but for `BRACKETS`."""

    def _create(self, name: str, task: Task, seed: int) -> Any:
        try:
            from syne_tune.optimizer import legacy_baselines
        except ImportError as error:
            raise SystemExit(f"{error}: benchmarks/README.md says how to install it") from error

        return getattr(legacy_baselines, name)(
            _domains(task.space),
            metric=METRIC,
            mode="min",
            resource_attr=RESOURCE,
            max_t=task.total,
            grace_period=1,
            random_seed=seed,
            brackets=BRACKETS.get(name, 1),
            search_options={"debug_log": False},
        )

    def _suggest(self) -> Any:
        return self._scheduler.suggest(len(self._trials))


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
