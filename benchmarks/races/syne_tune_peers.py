"""Syne Tune in the races: its schedulers, called as its `Tuner` does, with default arguments.

These are the schedulers of the current release, in which ASHA is the stopping variant. Some that it
also ships are left out because they do not fit: population-based training changes configurations
during training, which recorded curves cannot follow, and the searchers of BoTorch and SMAC belong
to those packages.
"""

from __future__ import annotations

import logging
from datetime import datetime
from typing import Any

import numpy as np
from syne_tune import config_space
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer import baselines
from syne_tune.optimizer.scheduler import SchedulerDecision, TrialScheduler
from syne_tune.optimizer.schedulers.median_stopping_rule import MedianStoppingRule

from hpsearch.search.rungs import Verdict
from races.curves import METRIC, Task
from races.race import Job

RESOURCE = "epoch"
NO_TIME = datetime(2000, 1, 1)
"""Syne Tune's trials have a creation time, which is not used here."""


def domains(space: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """A space of numbers and categories, in Syne Tune's terms."""
    make = {
        ("float", False): config_space.uniform,
        ("float", True): config_space.loguniform,
        ("int", False): config_space.randint,
        ("int", True): config_space.lograndint,
    }
    return {
        name: config_space.choice(list(text["choices"]))
        if text["type"] == "categorical"
        else make[text["type"], text.get("log", False)](text["low"], text["high"])
        for name, text in space.items()
    }


class SyneTunePeer:
    """A scheduler of Syne Tune."""

    def __init__(self, scheduler: TrialScheduler) -> None:
        logging.getLogger("syne_tune").setLevel(logging.ERROR)
        self._scheduler = scheduler
        self._trials: list[Trial] = []

    def ask(self) -> Job:
        """The scheduler's next suggestion."""
        suggestion = self._scheduler.suggest()
        assert suggestion is not None, "a space of numbers is never exhausted"
        assert suggestion.spawn_new_trial_id, "none of these schedulers pauses trials"
        trial = Trial(len(self._trials), dict(suggestion.config or {}), NO_TIME)
        self._trials.append(trial)
        self._scheduler.on_trial_add(trial)
        return Job(trial.trial_id, dict(trial.config))

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """The scheduler's decision."""
        decision = self._scheduler.on_trial_result(
            self._trials[trial], {METRIC: value, RESOURCE: resource}
        )
        if decision == SchedulerDecision.CONTINUE:
            return Verdict.CONTINUE
        self._scheduler.on_trial_remove(self._trials[trial])
        return Verdict.STOP

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the scheduler that the trial has ended, after its last result (as `Tuner` does)."""
        if self.report(trial, resource, value) is Verdict.CONTINUE:
            self._scheduler.on_trial_complete(
                self._trials[trial], {METRIC: value, RESOURCE: resource}
            )


def _in_full(name: str, task: Task, seed: int) -> SyneTunePeer:
    np.random.seed(seed)
    scheduler = getattr(baselines, name)
    return SyneTunePeer(scheduler(domains(task.space), metric=METRIC, random_seed=seed))


def _halving(name: str, task: Task, seed: int, grace_period: int = 1) -> SyneTunePeer:
    np.random.seed(seed)
    scheduler = getattr(baselines, name)
    return SyneTunePeer(
        scheduler(
            domains(task.space),
            metric=METRIC,
            time_attr=RESOURCE,
            max_t=task.total,
            grace_period=grace_period,
            random_seed=seed,
        )
    )


def asha(task: Task, seed: int) -> SyneTunePeer:
    """Asynchronous successive halving over random configurations."""
    return _halving("ASHA", task, seed)


def asha_from_3(task: Task, seed: int) -> SyneTunePeer:
    """ASHA with its first rung at 3."""
    return _halving("ASHA", task, seed, grace_period=3)


def asha_bore(task: Task, seed: int) -> SyneTunePeer:
    """ASHA with BORE's density-ratio model."""
    return _halving("ASHABORE", task, seed)


def asha_cqr(task: Task, seed: int) -> SyneTunePeer:
    """ASHA with conformal quantile regression."""
    return _halving("ASHACQR", task, seed)


def bohb(task: Task, seed: int) -> SyneTunePeer:
    """BOHB: ASHA with kernel density estimates."""
    return _halving("BOHB", task, seed)


def median_stopping(task: Task, seed: int) -> SyneTunePeer:
    """Random search with the median stopping rule."""
    np.random.seed(seed)
    random = baselines.RandomSearch(domains(task.space), metrics=[METRIC], random_seed=seed)
    return SyneTunePeer(MedianStoppingRule(random, time_attr=RESOURCE, metric=METRIC))


def cqr(task: Task, seed: int) -> SyneTunePeer:
    """Conformal quantile regression, every trial in full."""
    return _in_full("CQR", task, seed)


def bore(task: Task, seed: int) -> SyneTunePeer:
    """BORE, every trial in full."""
    return _in_full("BORE", task, seed)


def evolution(task: Task, seed: int) -> SyneTunePeer:
    """Regularised evolution, every trial in full."""
    return _in_full("REA", task, seed)
