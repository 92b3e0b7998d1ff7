"""The calls of Optuna's functions that are not public.

Optuna's own samplers and pruners use the same parts, and they have been stable, but a new release
may change them, and with them the methods that `samplers.view.SamplerView`,
`samplers.design.Design` and `hpsearch.adapters.optuna_trial.ObjectiveTrial` override.
"""

import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import optuna
from optuna import Study
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler, RandomSampler, TPESampler
from optuna.search_space import IntersectionSearchSpace


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
