"""A quasi-random sequence over the whole space, conditional parameters included."""

import warnings
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import QMCSampler
from optuna.trial import FrozenTrial

from hpsearch.search.curve_model.encoding import SpaceEncoding


class Design(QMCSampler):
    """A quasi-random sequence over the whole space, for trial `number`, which has that point.

    Optuna's own leaves out the parameters that its first trial did not have. Here each parameter
    has a coordinate in every point, and a trial leaves out those that are not active in it. The
    seed is the same for all trials of a study.
    """

    def __init__(self, encoding: SpaceEncoding, number: int, seed: int, **arguments: Any) -> None:
        with warnings.catch_warnings():
            # Optuna warns that the class is experimental; the study file asked for it.
            warnings.simplefilter("ignore")
            super().__init__(seed=seed, **arguments)
        self._encoding = encoding
        self._number = number

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The whole space, without parameters that have one value only."""
        return self._encoding.drawn

    def _find_sample_id(self, study: Study, search_space: dict[str, BaseDistribution]) -> int:
        return self._number
