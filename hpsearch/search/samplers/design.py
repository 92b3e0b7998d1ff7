"""A quasi-random sequence over the whole space."""

from typing import Any

import optuna
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler
from optuna.trial import FrozenTrial

from hpsearch.search.curve_model.encoding import SpaceEncoding
from hpsearch.study_file.space import in_optuna


class Design(BaseSampler):
    """Draws for trial `number` the point of that place in a sequence.

    Optuna's `QMCSampler`, whose arguments these are, leaves out the parameters that its first trial
    did not have. Here each parameter has a coordinate in every point, and a trial leaves out those
    that are not active in it. The seed is the same for all trials of a study.
    """

    def __init__(
        self,
        encoding: SpaceEncoding,
        number: int,
        seed: int,
        *,
        qmc_type: str = "sobol",
        scramble: bool = False,
        **warnings: bool,
    ) -> None:
        self._encoding = SpaceEncoding(encoding.drawn)
        self._number, self._seed = number, seed
        self._is_halton, self._scramble = qmc_type == "halton", scramble
        self._alone = RandomSampler(seed=seed)

    def infer_relative_search_space(
        self, study: optuna.Study, trial: FrozenTrial
    ) -> dict[str, BaseDistribution]:
        """The whole space, without parameters that have one value only."""
        return self._encoding.space

    def sample_relative(
        self, study: optuna.Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The values of all parameters of the space at the trial's point."""
        from scipy.stats import qmc  # it takes its time

        kind = qmc.Halton if self._is_halton else qmc.Sobol
        sequence = kind(len(search_space), scramble=self._scramble, rng=self._seed)
        if self._number:
            sequence.fast_forward(self._number)
        params = self._encoding.params(sequence.random(1)[0])
        return {name: in_optuna(value) for name, value in params.items()}

    def sample_independent(
        self, study: optuna.Study, trial: FrozenTrial, name: str, distribution: BaseDistribution
    ) -> Any:
        """A random value of a parameter that the space does not have."""
        return self._alone.sample_independent(study, trial, name, distribution)
