"""HEBO in the races: its defaults, every trial in full, by suggest and observe.

HEBO (Cowen-Rivers et al., JAIR 2022) has no multi-fidelity form, and knows nothing of trials that
run at the moment. A free worker gets one suggestion, drawn from the Pareto front of three
acquisition functions. Its packages need Python 3.11: it wants a numpy below 1.25.
"""

from __future__ import annotations

import random
import warnings
from typing import Any

import numpy as np
import torch
from hebo.design_space.design_space import DesignSpace
from hebo.optimizers.hebo import HEBO

from conversation import Job, Setting, serve


def parameter(name: str, text: dict[str, Any]) -> dict[str, Any]:
    """A parameter in HEBO's terms."""
    if text["type"] == "categorical":
        return {"name": name, "type": "cat", "categories": text["choices"]}
    kinds = {
        ("float", False): "num",
        ("float", True): "pow",
        ("int", False): "int",
        ("int", True): "pow_int",
    }
    kind = kinds[text["type"], text.get("log", False)]
    return {"name": name, "type": kind, "lb": text["low"], "ub": text["high"]}


class Hebo:
    """The optimizer."""

    def __init__(self, setting: Setting) -> None:
        warnings.simplefilter("ignore")
        random.seed(setting.seed)
        np.random.seed(setting.seed)
        torch.manual_seed(setting.seed)
        torch.set_num_threads(1)
        texts = [parameter(name, text) for name, text in setting.space.items()]
        self._optimizer = HEBO(DesignSpace().parse(texts), scramble_seed=setting.seed)
        self._total = setting.total
        self._suggested: list[Any] = []

    def ask(self) -> Job:
        """The optimizer's next suggestion."""
        suggestion = self._optimizer.suggest(n_suggestions=1)
        self._suggested.append(suggestion)
        params = suggestion.iloc[0].to_dict()
        return Job(len(self._suggested) - 1, params, self._total)

    def tell(self, trial: int, level: int, value: float, ended: bool) -> None:
        """Tell the optimizer a final value."""
        self._optimizer.observe(self._suggested[trial], np.array([[value]]))


if __name__ == "__main__":
    serve(Hebo)
