"""Which parameters mattered, by Optuna's own evaluator.

Optuna would look at complete trials alone, of which a study that pauses trials has few. Here it is
given all trials that have a value, each with what it is worth: what is expected of it in full, or
else the best value that it has shown. A forest of regression trees is fitted to them, and a
parameter's importance is the share of the variance that its splits explain (mean decrease in
impurity). Of Optuna's evaluators, fANOVA gives the same order and takes twenty times as long, and
PED-ANOVA needs thousands of trials to be steady.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution

if TYPE_CHECKING:
    import optuna

from hpsearch.report.frames.configurations import is_number
from hpsearch.report.frames.thinning import evenly
from hpsearch.words.numbers import cell

FEWEST_TRIALS = 10
MOST_TRIALS = 500
"""More are thinned out: the shares hardly change, and the forest takes long."""


@dataclass(frozen=True, slots=True)
class Importances:
    """How much of the differences between trials each parameter explains."""

    frame: pd.DataFrame
    """Columns `parameter` and `importance`, the largest first; empty if nothing can be said."""
    trials: int
    """From how many trials."""
    unmeasured: tuple[str, ...]
    """Parameters that not every trial has, or that never differ: they are not compared."""
    why_not: str | None = None
    """Why nothing can be said."""


def parameter_importances(standing: pd.Series, params: pd.DataFrame) -> Importances:
    """The importances of the parameters that all trials have.

    Args:
        standing: What trials are worth, by their number, the best first.
        params: The parameters of trials.
    """
    numbers = evenly(list(standing.index), MOST_TRIALS)
    params = params.loc[numbers]
    differing: list[str] = []
    unmeasured: list[str] = []
    for name in params.columns:
        everywhere = params[name].notna().all()
        differs = params[name].map(str).nunique() > 1
        (differing if everywhere and differs else unmeasured).append(name)
    nothing = pd.DataFrame({"parameter": [], "importance": []})
    why_not = None
    if len(numbers) < FEWEST_TRIALS:
        why_not = f"fewer than {FEWEST_TRIALS} trials have a value"
    elif standing[numbers].nunique() < 2:
        why_not = "all trials have the same value"
    elif not differing:
        why_not = "no parameter differs between trials"
    if why_not is not None:
        return Importances(nothing, len(numbers), tuple(unmeasured), why_not)
    shares = _evaluated(standing[numbers], params[differing])
    frame = pd.DataFrame({"parameter": list(shares), "importance": list(shares.values())})
    return Importances(frame, len(numbers), tuple(unmeasured))


def _evaluated(standing: pd.Series, params: pd.DataFrame) -> dict[str, float]:
    """The shares by parameter, largest first."""
    import optuna
    from optuna.importance import MeanDecreaseImpurityImportanceEvaluator

    compared = {name: _comparable(params[name]) for name in params.columns}
    drawn_from = {name: _distribution(values) for name, values in compared.items()}
    study = _quiet_study()
    for place, value in enumerate(standing):
        row = {name: values[place] for name, values in compared.items()}
        study.add_trial(
            optuna.trial.create_trial(params=row, distributions=drawn_from, value=float(value))
        )
    evaluator = MeanDecreaseImpurityImportanceEvaluator(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(np.nan_to_num(share)) for name, share in shares.items()}


def _comparable(values: pd.Series) -> list[Any]:
    """Values of a parameter as numbers, or else as texts."""
    if all(map(is_number, values)):
        return [float(value) for value in values]
    return [cell(value) for value in values]


def _distribution(values: Sequence[Any]) -> BaseDistribution:
    """What values may have been drawn from. Trees only compare: a scale changes little, and values
    that were asked for may lie outside the space."""
    if isinstance(values[0], float):
        return FloatDistribution(min(values), max(values))
    return CategoricalDistribution(sorted(set(values)))


def _quiet_study() -> optuna.Study:
    """A study in memory, made without Optuna's announcement of it."""
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study()
    finally:
        optuna.logging.set_verbosity(before)
