"""The configurations of a study as a frame, with how good each of them was and how a parameter is
drawn on an axis."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import pandas as pd
from optuna.distributions import BaseDistribution, CategoricalDistribution

from hpsearch.domain.facts import Role
from hpsearch.domain.lifecycle import State
from hpsearch.store.reading.course import CourseGoal, StudyCourse
from hpsearch.words.numbers import cell

MOST_CATEGORIES = 30
"""An axis names so many categories, the most frequent ones; the others share one."""
OTHERS = "(others)"


class Tier(StrEnum):
    """How good a configuration is among all of its study."""

    BEST = "best tenth"
    BETTER = "better half"
    REST = "rest"


@dataclass(frozen=True, slots=True)
class ParameterScale:
    """How the values of a parameter lie on an axis."""

    name: str
    log: bool = False
    categories: tuple[str, ...] | None = None
    """Its values as texts, in order; None for numbers."""

    def places(self, values: pd.Series) -> pd.Series:
        """Where values lie: numbers as they are, categories by their index; NaN where there is
        none."""
        if self.categories is None:
            return pd.to_numeric(values, errors="coerce").astype(float)
        known = {text: place for place, text in enumerate(self.categories)}
        elsewhere = known.get(OTHERS, math.nan)
        texts = values.map(lambda value: None if _absent(value) else cell(value))
        return texts.map(lambda text: math.nan if text is None else known.get(text, elsewhere))


def ranked_configurations(course: StudyCourse, goal: CourseGoal) -> pd.DataFrame:
    """By trial, best first: `standing`, `tier` and `state`, of the trials that can be ranked.

    Those are neither repeats nor failed, keep the limits, and have a value.
    """
    trials = course.trials
    can_rank = (trials["role"] != Role.CONFIRM) & (trials["state"] != State.FAILED)
    can_rank &= (trials["violation"] == 0) & trials[goal.standing].notna()
    frame = trials.loc[can_rank, [goal.standing, "state"]]
    frame = frame.rename(columns={goal.standing: "standing"})
    frame = frame.sort_values("standing", ascending=not goal.maximize, kind="stable")
    share = np.arange(len(frame)) / max(1, len(frame))
    frame["tier"] = np.select(
        [share < 0.1, share < 0.5], [Tier.BEST.value, Tier.BETTER.value], Tier.REST.value
    )
    return frame


def parameter_scales(
    params: pd.DataFrame, space: Mapping[str, BaseDistribution]
) -> dict[str, ParameterScale]:
    """How each parameter that trials have is drawn, in the order of the space."""
    names = [name for name in space if name in params.columns]
    names += [name for name in params.columns if name not in space]
    return {name: _scale(name, params[name], space.get(name)) for name in names}


def _scale(name: str, values: pd.Series, drawn_from: BaseDistribution | None) -> ParameterScale:
    present = [value for value in values if not _absent(value)]
    if isinstance(drawn_from, CategoricalDistribution):
        choices = [cell(choice) for choice in drawn_from.choices]
        return ParameterScale(name, categories=_frequent(present, choices))
    if not all(map(is_number, present)):
        return ParameterScale(name, categories=_frequent(present, []))
    is_log = bool(getattr(drawn_from, "log", False))
    return ParameterScale(name, log=is_log and all(value > 0 for value in present))


def _frequent(present: Sequence[object], choices: Sequence[str]) -> tuple[str, ...]:
    """The categories of an axis: the choices, and what else trials have."""
    counts = pd.Series([cell(value) for value in present], dtype=object).value_counts()
    named = list(dict.fromkeys([*choices, *counts.index]))
    if len(named) <= MOST_CATEGORIES:
        return tuple(named)
    frequent = set(counts.index[: MOST_CATEGORIES - 1])
    return (*(text for text in named if text in frequent), OTHERS)


def is_number(value: object) -> bool:
    """Whether a value is a finite number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _absent(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))
