"""The importance of parameters: the share of the differences between trials that each explains.

A forest of regression trees is fitted to all trials that have a value, each with its worth: what is
expected of it in full, or else the best value that it has shown. A parameter's importance is the
share of the variance that its splits explain (mean decrease in impurity). Optuna's evaluators look
at complete trials alone, and a study that pauses trials has few of them.
"""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from hpsearch.report.frames.configurations import is_number
from hpsearch.words.numbers import cell

FEWEST_TRIALS = 10
TREES = 64
MOST_TRIALS = 500
"""Trials that a forest is fitted to: with more, the shares hardly change, and it takes long."""


@dataclass(frozen=True, slots=True)
class Importances:
    """The share of the differences between trials that each parameter explains."""

    frame: pd.DataFrame
    """Columns `parameter` and `importance`, the largest first; empty if nothing is known."""
    trials: int
    """The number of trials that were compared."""
    unmeasured: tuple[str, ...]
    """Parameters that not every trial has, or that never differ: they are not compared."""
    why_not: str | None = None
    """The reason why nothing is known."""


def parameter_importances(standing: pd.Series, params: pd.DataFrame) -> Importances:
    """The importances of the parameters that all trials have, by the worth of trials (`standing`),
    the best first."""
    standing = standing.iloc[:: max(1, -(-len(standing) // MOST_TRIALS))]
    params = params.loc[standing.index]
    is_everywhere = params.notna().all()
    differs = params.map(str).nunique() > 1
    measured = [name for name in params.columns if is_everywhere[name] and differs[name]]
    unmeasured = tuple(name for name in params.columns if name not in measured)
    shares: dict[str, float] = {}
    why_not = None
    if len(standing) < FEWEST_TRIALS:
        why_not = f"fewer than {FEWEST_TRIALS} trials have a value"
    elif standing.nunique() < 2:
        why_not = "all trials have the same value"
    elif not measured:
        why_not = "no parameter differs between trials"
    else:
        shares = _shares(standing, params[measured])
    frame = pd.DataFrame({"parameter": list(shares), "importance": list(shares.values())})
    return Importances(frame, len(standing), unmeasured, why_not)


def _shares(standing: pd.Series, params: pd.DataFrame) -> dict[str, float]:
    from sklearn.ensemble import RandomForestRegressor

    encoded = params.apply(_codes)
    forest = RandomForestRegressor(TREES, random_state=0).fit(encoded, standing)
    shares = pd.Series(forest.feature_importances_, index=params.columns)
    shares = shares.sort_values(ascending=False, kind="stable")
    return {str(name): float(share) for name, share in shares.items()}


def _codes(values: pd.Series) -> pd.Series:
    """Numbers as they are, and the places of categories: trees only compare."""
    if all(map(is_number, values)):
        return values.astype(float)
    codes, _ = pd.factorize(values.map(cell), sort=True)
    return pd.Series(codes, index=values.index)
