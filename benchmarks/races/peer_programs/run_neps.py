"""NePS in the races: PriorBand with its defaults, by ask and tell.

PriorBand (Mallik et al., NeurIPS 2023) is Hyperband that samples from the user's prior, around the
incumbent, and at random. No method in a race has a prior, so PriorBand's is uniform.
"""

from __future__ import annotations

import random
from typing import Any

import neps
import numpy as np
import torch

from conversation import Job, Setting, serve

LEVEL = "race_level"
"""The name of the fidelity, beside the parameters."""


def parameter(text: dict[str, Any]) -> Any:
    """A parameter in NePS's terms.

    A whole number on a log scale is a float that is rounded afterwards. NePS draws only powers of e
    for its own kind of it.
    """
    if text["type"] == "categorical":
        return neps.HPOCategorical(text["choices"])
    log = text.get("log", False)
    kind = neps.HPOInteger if text["type"] == "int" and not log else neps.HPOFloat
    return kind(text["low"], text["high"], log=log)


class PriorBand:
    """The optimizer in NePS's ask-and-tell wrapper."""

    def __init__(self, setting: Setting) -> None:
        random.seed(setting.seed)
        np.random.seed(setting.seed)
        torch.manual_seed(setting.seed)
        torch.set_num_threads(1)
        parameters = {name: parameter(text) for name, text in setting.space.items()}
        parameters[LEVEL] = neps.HPOInteger(1, setting.total, is_fidelity=True)
        space = neps.SearchSpace(parameters)
        self._optimizer = neps.AskAndTell(neps.algorithms.priorband(space))
        self._whole = [name for name, text in setting.space.items() if text["type"] == "int"]
        self._trials: dict[str, int] = {}
        self._asked: dict[int, str] = {}

    def ask(self) -> Job:
        """The optimizer's next trial, under the number of the one that it continues."""
        asked = self._optimizer.ask()
        name, before = asked.metadata.id, asked.metadata.previous_trial_id
        new = len(set(self._trials.values()))
        trial = self._trials[name] = new if before is None else self._trials[before]
        self._asked[trial] = name
        params = dict(asked.config)
        until = int(params.pop(LEVEL))
        for name in self._whole:
            params[name] = round(params[name])
        return Job(trial, params, until)

    def tell(self, trial: int, level: int, value: float, ended: bool) -> None:
        """Tell the optimizer. It decides later who continues."""
        self._optimizer.tell(self._asked.pop(trial), value)


if __name__ == "__main__":
    serve(PriorBand)
