"""A sampler whose configurations are laid out in advance by a quasi-random sequence.

Optuna's own leaves out the parameters that its first trial did not have. Here each parameter has a
coordinate of its own in every point, and a trial leaves out those that are not active in it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import QMCSampler
from optuna.trial import FrozenTrial


class Design(QMCSampler):
    """A quasi-random sequence over the whole space, for one proposal.

    Args:
        space: The distributions of all parameters, whether a trial has them or not.
        number: The trial that is proposed: it has the point of that number.
        seed: The same for all trials of a study.
        arguments: Of Optuna's sampler.
    """

    def __init__(
        self, space: Mapping[str, BaseDistribution], number: int, seed: int, **arguments: Any
    ) -> None:
        with warnings.catch_warnings():
            # Optuna warns that the class is experimental; the study file asked for it.
            warnings.simplefilter("ignore")
            super().__init__(seed=seed, **arguments)
        self._space = {name: each for name, each in space.items() if not each.single()}
        self._number = number

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The whole space, without parameters that have one value only."""
        return dict(self._space)

    def _find_sample_id(self, study: Study, search_space: dict[str, BaseDistribution]) -> int:
        return self._number
