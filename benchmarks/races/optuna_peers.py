"""Optuna in the races: its own study, samplers and pruners, through ask and tell.

Pruners have their defaults, except that Hyperband gets the full budget, as in Optuna's own example.
Otherwise it would wait for a finished trial and guess.
"""

from __future__ import annotations

import optuna
from optuna.pruners import (
    BasePruner,
    HyperbandPruner,
    MedianPruner,
    NopPruner,
    SuccessiveHalvingPruner,
)
from optuna.samplers import BaseSampler, GPSampler, RandomSampler, TPESampler
from optuna.trial import TrialState

from hpsearch.search.rungs import Verdict
from hpsearch.study_file.space import distribution_of
from races.curves import Task, parameters
from races.race import Job


class OptunaPeer:
    """A sampler and a pruner of Optuna."""

    def __init__(self, task: Task, sampler: BaseSampler, pruner: BasePruner) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(sampler=sampler, pruner=pruner)
        self._prunes = not isinstance(pruner, NopPruner)
        self._space = {
            name: distribution_of(parameter) for name, parameter in parameters(task.space).items()
        }
        self._running: dict[int, optuna.Trial] = {}

    def ask(self) -> Job:
        """The sampler's next proposal."""
        trial = self._study.ask(self._space)
        self._running[trial.number] = trial
        return Job(trial.number, trial.params)

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """The pruner's decision."""
        if not self._prunes:
            return Verdict.CONTINUE
        self._running[trial].report(value, resource)
        if not self._running[trial].should_prune():
            return Verdict.CONTINUE
        self._study.tell(self._running.pop(trial), state=TrialState.PRUNED)
        return Verdict.STOP

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the study that the trial is complete."""
        if self._prunes:
            self._running[trial].report(value, resource)
        self._study.tell(self._running.pop(trial), value)


def random(task: Task, seed: int) -> OptunaPeer:
    """Random configurations, every trial in full."""
    return OptunaPeer(task, RandomSampler(seed=seed), NopPruner())


def tpe(task: Task, seed: int) -> OptunaPeer:
    """TPE, every trial in full."""
    return OptunaPeer(task, TPESampler(seed=seed), NopPruner())


def tpe_median(task: Task, seed: int) -> OptunaPeer:
    """TPE with the median pruner: Optuna's default pair."""
    return OptunaPeer(task, TPESampler(seed=seed), MedianPruner())


def tpe_halving(task: Task, seed: int) -> OptunaPeer:
    """TPE with successive halving."""
    return OptunaPeer(task, TPESampler(seed=seed), SuccessiveHalvingPruner())


def tpe_hyperband(task: Task, seed: int) -> OptunaPeer:
    """TPE with Hyperband."""
    return OptunaPeer(
        task, TPESampler(seed=seed), HyperbandPruner(min_resource=1, max_resource=task.total)
    )


def gp(task: Task, seed: int) -> OptunaPeer:
    """Optuna's Gaussian process, every trial in full."""
    import torch

    torch.set_num_threads(1)
    return OptunaPeer(task, GPSampler(seed=seed), NopPruner())
