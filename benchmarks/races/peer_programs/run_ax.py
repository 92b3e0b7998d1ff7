"""Ax in the races: its client with its defaults, by `get_next_trials` and `complete_trial`.

    python run_ax.py [--early-stopping]

Every trial runs in full, or with `--early-stopping` until `should_stop_trial_early` says otherwise.
That is Ax's default strategy: from the tenth level on, a trial stops below the median of the trials
before it.
"""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

import torch
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig

from conversation import Job, Setting, serve

METRIC = "loss"


def parameter(name: str, text: dict[str, Any]) -> RangeParameterConfig | ChoiceParameterConfig:
    """A parameter in Ax's terms."""
    if text["type"] == "categorical":
        return ChoiceParameterConfig(name, text["choices"], "str", is_ordered=False)
    scaling = "log" if text.get("log", False) else "linear"
    bounds = (text["low"], text["high"])
    return RangeParameterConfig(name, bounds, text["type"], scaling=scaling)


class Ax:
    """The client."""

    def __init__(self, setting: Setting) -> None:
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        torch.manual_seed(setting.seed)
        torch.set_num_threads(1)
        self._client = Client(random_seed=setting.seed)
        self._client.configure_experiment(
            [parameter(name, text) for name, text in setting.space.items()]
        )
        self._client.configure_optimization(f"-{METRIC}")
        self._client.configure_generation_strategy(
            initialization_random_seed=setting.seed,
            allow_exceeding_initialization_budget=True,  # more workers than it has first trials
        )
        self._total = setting.total
        self._stops_early = "--early-stopping" in sys.argv

    def ask(self) -> Job | None:
        """The client's next trial; None if it allows no more at once."""
        for trial, params in self._client.get_next_trials(max_trials=1).items():
            return Job(trial, dict(params), 1 if self._stops_early else self._total)
        return None

    def tell(self, trial: int, level: int, value: float, ended: bool) -> int | None:
        """Tell the client; if it stops trials early, let it say whether this one does."""
        outcome = {METRIC: value}
        if not self._stops_early:
            self._client.complete_trial(trial, outcome)
            return None
        self._client.attach_data(trial, outcome, progression=level)
        if ended:
            self._client.complete_trial(trial)
            return None
        if self._client.should_stop_trial_early(trial):
            self._client.mark_trial_early_stopped(trial)
            return None
        return level + 1


if __name__ == "__main__":
    serve(Ax)
