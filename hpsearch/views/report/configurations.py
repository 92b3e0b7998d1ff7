"""The configurations of a study: their ranking, the values of each parameter, and its importance:
the share of the differences between trials that it explains.

A forest of regression trees is fitted to all trials that have a value, each with its worth: what is
expected of it in full, or else the best value that it has shown. A parameter's importance is the
share of the variance that its splits explain (mean decrease in impurity). Optuna's evaluators look
at complete trials alone, and a study that pauses trials has few of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from optuna.distributions import BaseDistribution, CategoricalDistribution

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.domain.numbers import cell
from hpsearch.store.reading.best import GoalColumns
from hpsearch.store.reading.history_frames import HistoryFrames


class Tier(StrEnum):
    """The rank of a configuration among all of its study."""

    BEST = "best tenth"
    BETTER = "better half"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class ParameterValues:
    """The values of a parameter."""

    name: str
    values: pd.Series
    """By trial: numbers, or texts of categories; NaN or None where a trial has none."""
    log: bool = False
    """True if numbers are drawn on a logarithmic scale."""
    categories: tuple[str, ...] | None = None
    """Its values as texts, in order; None for numbers."""


def ranked_configurations(history: HistoryFrames, goal: GoalColumns) -> pd.DataFrame:
    """The `standing` and the `tier` of trials, by number, best first: of those that keep the limits
    and have a value, without repeats and failed ones."""
    trials = history.trials
    can_rank = (trials["role"] != Role.CONFIRM) & (trials["state"] != State.FAILED)
    can_rank &= (trials["violation"] == 0) & trials[goal.standing].notna()
    frame = trials.loc[can_rank, [goal.standing]].rename(columns={goal.standing: "standing"})
    frame = frame.sort_values("standing", ascending=not goal.maximize, kind="stable")
    share = np.arange(len(frame)) / max(1, len(frame))
    frame["tier"] = np.select(
        [share < 0.1, share < 0.5], [Tier.BEST.value, Tier.BETTER.value], Tier.REST.value
    )
    return frame


def parameter_values(
    params: pd.DataFrame, space: Mapping[str, BaseDistribution]
) -> dict[str, ParameterValues]:
    """The values of each parameter that trials have, in the order of the space."""
    names = [name for name in space if name in params.columns]
    names += [name for name in params.columns if name not in space]
    return {name: _values(params[name], space.get(name)) for name in names}


def _values(values: pd.Series, drawn_from: BaseDistribution | None) -> ParameterValues:
    name = str(values.name)
    present = values[values.notna()]
    choices = []
    if isinstance(drawn_from, CategoricalDistribution):
        choices = [cell(choice) for choice in drawn_from.choices]
    elif all(map(is_number, present)):
        is_log = getattr(drawn_from, "log", False) and all(value > 0 for value in present)
        numbers = pd.to_numeric(values).astype(float)
        return ParameterValues(name, numbers, log=is_log and not present.empty)
    texts = present.map(cell)
    categories = tuple(dict.fromkeys([*choices, *texts]))
    return ParameterValues(name, texts.reindex(values.index), categories=categories)


def is_number(value: object) -> bool:
    """True for a finite number; true and false are not numbers."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


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
