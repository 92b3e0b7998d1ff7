"""Random search that knows what the user believes: half of its proposals follow the priors.

The other half is uniform, so that a wrong prior at worst doubles the time that random search takes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import RandomSampler
from optuna.trial import FrozenTrial

from hpsearch.search.curve_model.belief import Belief
from hpsearch.search.curve_model.encoding import SpaceEncoding

BELIEVING = 0.5
"""The share of proposals that follow the priors."""


class InformedRandom(RandomSampler):
    """Draws one proposal from the priors or from the whole space.

    Args:
        encoding: Of the whole space, whether a trial has all its parameters or not.
        belief: What the priors say.
        seed: Of this proposal.
    """

    def __init__(self, encoding: SpaceEncoding, belief: Belief, seed: int) -> None:
        super().__init__(seed=seed)
        self._encoding = encoding
        self._belief = belief
        self._seed = seed

    def infer_relative_search_space(
        self, study: Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The whole space, without parameters that have one value only."""
        space = self._encoding.space
        return {name: each for name, each in space.items() if not each.single()}

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """A configuration for the trial."""
        rng = np.random.default_rng(self._seed)
        believes = rng.random() < BELIEVING
        points = rng.random((1, self._encoding.parameters))
        if believes:
            points = self._belief.drawn(points)
        params = self._encoding.params(points[0])
        return {name: params[name] for name in search_space}
