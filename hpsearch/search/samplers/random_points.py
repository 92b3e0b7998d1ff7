"""Samplers that draw points of a space without a model: quasi-random ones, and random ones of which
half follow the priors.

The other half is uniform, so that a wrong prior at worst doubles the time that random search takes.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, QMCSampler
from optuna.trial import FrozenTrial

from hpsearch.search.curve_model.belief import Belief
from hpsearch.search.curve_model.encoding import Floats, SpaceEncoding

BELIEVING = 0.5
"""The share of proposals that follow the priors."""


class PointSampler(BaseSampler):
    """Draws all parameters of a space together, as one point of it."""

    def __init__(self, encoding: SpaceEncoding) -> None:
        self._encoding = encoding

    def propose(self, number: int) -> Floats:
        """(parameters,) The point of the space that trial `number` should try."""
        raise NotImplementedError

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The whole space, inactive parameters with it, which are not asked for."""
        return self._encoding.drawn

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A configuration for the trial."""
        params = self._encoding.params(self.propose(trial.number))
        return {name: params[name] for name in search_space}

    def sample_independent(
        self,
        study: Study,
        trial: FrozenTrial,
        param_name: str,
        param_distribution: BaseDistribution,
    ) -> Any:
        """Never called: other samplers draw what the space does not name."""
        raise NotImplementedError(param_name)


class InformedRandom(PointSampler):
    """Draws one proposal from the priors or from the whole space."""

    def __init__(self, encoding: SpaceEncoding, belief: Belief, seed: int) -> None:
        super().__init__(encoding)
        self._belief = belief
        self._seed = seed

    def propose(self, number: int) -> Floats:
        """(parameters,) A point; its randomness is that of the seed alone."""
        rng = np.random.default_rng(self._seed)
        believes = rng.random() < BELIEVING
        points = rng.random((1, self._encoding.parameters))
        return np.asarray((self._belief.drawn(points) if believes else points)[0])


class Design(QMCSampler):
    """A quasi-random sequence over the whole space, for one proposal.

    Optuna's own leaves out the parameters that its first trial did not have. Here each parameter
    has a coordinate in every point, and a trial leaves out those that are not active in it.

    Args:
        number: The trial that is proposed: it has the point of that number.
        seed: The same for all trials of a study.
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
