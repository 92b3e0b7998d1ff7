"""The peers in the races, by the names that the command knows, and those of Optuna."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import optuna
from optuna.pruners import BasePruner, HyperbandPruner, MedianPruner, NopPruner
from optuna.samplers import RandomSampler, TPESampler

from hpsearch.search.rungs import Verdict
from hpsearch.study_file.space import distribution_of
from races.curves import Task, parameters
from races.race import Contender, Job
from races.smac import SmacPeer
from races.syne_tune import EarlierSyneTunePeer, SyneTunePeer


class OptunaPeer:
    """A sampler and a pruner of Optuna, with the values of all levels reported."""

    def __init__(
        self,
        task: Task,
        seed: int,
        sampler: type[RandomSampler | TPESampler],
        pruner: BasePruner | None = None,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self._study = optuna.create_study(
            sampler=sampler(seed=seed),
            pruner=pruner or NopPruner(),
            study_name=str(seed),  # Hyperband chooses brackets by it
        )
        space = parameters(task.space)
        self._space = {name: distribution_of(parameter) for name, parameter in space.items()}
        self._running: dict[int, optuna.Trial] = {}

    def ask(self) -> Job:
        """The sampler's next proposal."""
        trial = self._study.ask(self._space)
        self._running[trial.number] = trial
        return Job(trial.number, trial.params)

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """What the pruner says."""
        running = self._running[trial]
        running.report(value, resource)
        if not running.should_prune():
            return Verdict.CONTINUE
        self._study.tell(self._running.pop(trial), state=optuna.trial.TrialState.PRUNED)
        return Verdict.STOP

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Tell the study that the trial is complete."""
        running = self._running.pop(trial)
        running.report(value, resource)
        self._study.tell(running, value)

    def recommended(self) -> Mapping[str, Any] | None:
        """The best trial that is complete."""
        try:
            return self._study.best_params
        except ValueError:
            return None


def _with_hyperband(task: Task, seed: int) -> OptunaPeer:
    pruner = HyperbandPruner(min_resource=1, max_resource=task.total)
    return OptunaPeer(task, seed, TPESampler, pruner)


PEERS: dict[str, Callable[[Task, int], Contender]] = {
    "random": partial(OptunaPeer, sampler=RandomSampler),
    "optuna-tpe": partial(OptunaPeer, sampler=TPESampler),
    "optuna-hyperband": _with_hyperband,
    "optuna-median": lambda task, seed: OptunaPeer(task, seed, TPESampler, MedianPruner()),
    "smac": SmacPeer,
    "syne-asha": partial(SyneTunePeer, "ASHA"),
    "syne-bohb": partial(SyneTunePeer, "BOHB"),
    "syne-mobster": partial(EarlierSyneTunePeer, "MOBSTER"),
    "syne-hypertune": partial(EarlierSyneTunePeer, "HyperTune"),
    "syne-dyhpo": partial(EarlierSyneTunePeer, "DyHPO"),
}
"""The peers by name, each created from a task and a seed."""
