"""SMAC3 in the races: its multi-fidelity facade, Hyperband with a random forest, by ask and tell.

It has its defaults, except that trials are deterministic, and that `n_trials`, from which SMAC
takes the size of its initial design, is how many values the budget pays for.
"""

from __future__ import annotations

import logging
import math
from typing import Any

from ConfigSpace import (
    CategoricalHyperparameter,
    Configuration,
    ConfigurationSpace,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)
from smac import MultiFidelityFacade, Scenario
from smac.runhistory import TrialInfo, TrialValue

from conversation import Job, Setting, serve

ETA = 3
"""The facade's default: one configuration in three continues."""


def hyperparameter(name: str, text: dict[str, Any]) -> Any:
    """A parameter in ConfigSpace's terms."""
    if text["type"] == "categorical":
        return CategoricalHyperparameter(name, text["choices"])
    kinds = {"float": UniformFloatHyperparameter, "int": UniformIntegerHyperparameter}
    kind = kinds[text["type"]]
    return kind(name, text["low"], text["high"], log=text.get("log", False))


def evaluations(trials: int, total: int) -> int:
    """How many values of Hyperband a budget pays for, if trials continue from where they paused.

    A bracket that starts `s` rungs below the full budget starts ceil(ETA**s * (top + 1) / (s + 1))
    trials (Li et al., JMLR 2018).
    """
    top = int(math.log(total, ETA))
    values, cost = 0, 0.0
    for start in range(top + 1):
        trained = 0.0
        for rung in range(start, -1, -1):
            started = math.ceil(ETA**start * (top + 1) / (start + 1))
            left = started // ETA ** (start - rung)
            share = ETA**-rung
            values += left
            cost += left * (share - trained)
            trained = share
    return round(trials * values / cost)


class Smac:
    """The facade."""

    def __init__(self, setting: Setting) -> None:
        space = ConfigurationSpace()
        for name, text in setting.space.items():
            space.add(hyperparameter(name, text))
        scenario = Scenario(
            space,
            deterministic=True,
            n_trials=evaluations(setting.trials, setting.total),
            min_budget=1,
            max_budget=setting.total,
            seed=setting.seed,
        )
        self._total = setting.total
        self._facade = MultiFidelityFacade(
            scenario, None, overwrite=True, logging_level=logging.ERROR
        )
        self._trials: dict[Configuration, int] = {}
        self._asked: dict[int, TrialInfo] = {}

    def ask(self) -> Job | None:
        """The facade's next trial; a configuration keeps its number at every budget."""
        try:
            asked = self._facade.ask()
        except StopIteration:  # it finds no new configuration any more
            return None
        trial = self._trials.setdefault(asked.config, len(self._trials))
        self._asked[trial] = asked
        return Job(trial, dict(asked.config), min(self._total, max(1, round(asked.budget))))

    def tell(self, trial: int, level: int, value: float, ended: bool) -> None:
        """Tell the facade. It decides later who continues."""
        self._facade.tell(self._asked.pop(trial), TrialValue(cost=value), save=False)


if __name__ == "__main__":
    serve(Smac)
