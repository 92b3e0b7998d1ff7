"""The calls of Optuna's functions that are not public.

Optuna's own samplers and pruners use the same parts, and they have been stable, but a new release
may change them, and with them the methods that `Design`, `samplers.view.SamplerView` and
`hpsearch.plugins.optuna.objective_trial.ObjectiveTrial` override.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import optuna
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, QMCSampler, RandomSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace
from optuna.trial import FrozenTrial

from hpsearch.search.curve_model.encoding import SpaceEncoding


def contains(distribution: BaseDistribution, value: Any) -> bool:
    """True if a parameter with this distribution can have a value."""
    try:
        return distribution._contains(distribution.to_internal_repr(value))
    except (ValueError, TypeError):
        return False


def know_space(sampler: BaseSampler, space: Mapping[str, BaseDistribution]) -> None:
    """Tell a sampler the parameters that every trial has, which it would find in all trials."""
    if isinstance(getattr(sampler, "_search_space", None), IntersectionSearchSpace):
        vars(sampler)["_search_space"] = _Known(space)


@contextmanager
def unheard() -> Iterator[None]:
    """Let samplers and pruners say nothing: their remarks are on classes of Optuna and on lines of
    its code, and tell the user of a study file nothing that the study file's check has not."""
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        optuna.logging.set_verbosity(before)


class RandomStates:
    """The random states of a study's samplers, of which one draws at a time. To make one takes
    0.2 ms, and each of Optuna's samplers makes its own."""

    def __init__(self) -> None:
        self._states = np.random.RandomState(), np.random.RandomState()

    def seed(self, sampler: RandomSampler | TPESampler, seed: int) -> None:
        """Seed a sampler that was made without a seed, as if it had been made with it."""
        users = (sampler, getattr(sampler, "_random_sampler", sampler))
        for user, state in zip(users, self._states, strict=True):
            state.seed(seed)
            user._rng._rng = state


class _Known:
    def __init__(self, space: Mapping[str, BaseDistribution]) -> None:
        self._space = dict(sorted(space.items()))

    def calculate(self, study: Study, use_cache: bool = False) -> dict[str, BaseDistribution]:
        return self._space


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
