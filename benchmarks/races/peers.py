"""The peers in the races, by the names that the command knows, and how each is created."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import accumulate
from pathlib import Path
from typing import Any

from hpsearch.search.rungs import Verdict
from races.curves import Task, random_configurations
from races.race import Contender, Job, Terms
from races.remote_peers import Program, RemotePeer


class OneEpochThenTop:
    """Random configurations for one level each on half the budget, then the best in full."""

    def __init__(self, task: Task, seed: int, terms: Terms) -> None:
        drawn = random_configurations(task.space, terms.trials * task.total // 2, seed)
        curves, half = task.curves(), terms.trials * task.full_seconds / 2
        used = accumulate(curves.seconds(params, 1) for params in drawn)
        self._configurations = [
            params for params, seconds in zip(drawn, used, strict=True) if seconds <= half
        ]
        self._started = 0
        self._first: dict[int, float] = {}

    def ask(self) -> Job | None:
        """A new configuration, or else the best one that has not continued."""
        if self._started < len(self._configurations):
            self._started += 1
            return Job(self._started - 1, self._configurations[self._started - 1])
        if not self._first:
            return None
        best = min(self._first, key=lambda trial: self._first[trial])
        del self._first[best]
        return Job(best, self._configurations[best])

    def report(self, trial: int, resource: int, value: float) -> Verdict:
        """Pause every trial after the first level."""
        if resource > 1:
            return Verdict.CONTINUE
        self._first[trial] = value
        return Verdict.PAUSE

    def finish(self, trial: int, resource: int, value: float) -> None:
        """Learn nothing from it."""


def _of(module: str, name: str) -> Callable[[Task, int, Terms], Contender]:
    """A peer whose package is imported only when it takes part in a race."""

    def make(task: Task, seed: int, terms: Terms) -> Contender:
        try:
            peers: Any = importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise SystemExit(
                f"{name} needs the package {error.name}: pip install '.[benchmarks]'"
            ) from error
        contender: Contender = getattr(peers, name)(task, seed)
        return contender

    return make


HERE: dict[str, Callable[[Task, int, Terms], Contender]] = {
    "random": _of("races.optuna_peers", "random"),
    "one-epoch": OneEpochThenTop,
    "optuna-tpe": _of("races.optuna_peers", "tpe"),
    "optuna-tpe-median": _of("races.optuna_peers", "tpe_median"),
    "optuna-tpe-halving": _of("races.optuna_peers", "tpe_halving"),
    "optuna-tpe-hyperband": _of("races.optuna_peers", "tpe_hyperband"),
    "optuna-gp": _of("races.optuna_peers", "gp"),
    "syne-asha": _of("races.syne_tune_peers", "asha"),
    "syne-asha-3": _of("races.syne_tune_peers", "asha_from_3"),
    "syne-asha-bore": _of("races.syne_tune_peers", "asha_bore"),
    "syne-asha-cqr": _of("races.syne_tune_peers", "asha_cqr"),
    "syne-bohb": _of("races.syne_tune_peers", "bohb"),
    "syne-median": _of("races.syne_tune_peers", "median_stopping"),
    "syne-cqr": _of("races.syne_tune_peers", "cqr"),
    "syne-bore": _of("races.syne_tune_peers", "bore"),
    "syne-evolution": _of("races.syne_tune_peers", "evolution"),
}
"""Peers that run beside hpsearch, by name, each created from a task, a seed and the terms."""

APART: dict[str, Program] = {
    "neps-priorband": Program("neps", "run_neps.py"),
    "smac-mf": Program("smac", "run_smac.py"),
    "ax": Program("ax", "run_ax.py"),
    "ax-early-stopping": Program("ax", "run_ax.py", ("--early-stopping",)),
    "hebo": Program("hebo", "run_hebo.py"),
}
"""Peers that run in environments of their own, by name."""

PEERS = (*HERE, *APART)
"""The names of all peers."""

SLOW = {
    "optuna-gp",
    "syne-asha-bore",
    "syne-asha-cqr",
    "syne-cqr",
    "syne-bore",
    "smac-mf",
    "ax",
    "ax-early-stopping",
    "hebo",
}
"""Peers that take too long for every budget, number of workers and seed."""

SLOW_TERMS = Terms(trials=40, workers=8)
"""The races that slow peers take part in."""


def contender(
    name: str, task: Task, seed: int, terms: Terms, cache: Path
) -> AbstractContextManager[Contender]:
    """A peer for one race, as long as the context.

    Args:
        cache: The folder with the environments of peers that run apart.
    """
    if name in APART:
        return RemotePeer(APART[name], cache, task, seed, terms)
    return nullcontext(HERE[name](task, seed, terms))
