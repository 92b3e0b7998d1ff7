"""Configurations as points: a search space as a cube, and its points as the coordinates a model compares.

A *point* has one coordinate from 0 to 1 for each parameter, on the parameter's own scale (logarithmic or not); every
point is a configuration. Its *features* are what a kernel may measure distances in: numbers where their grid has them,
a category as one-hot coordinates, and a parameter that is not active at a constant, so that it tells two
configurations from each other only by the parent that switched it off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution

from hpsearch.spec_types import same

Floats = NDArray[np.float64]
Conditions = Mapping[str, Mapping[str, Sequence[Any]]]
"""By parameter, the values that each of its parents must have one of for it to be active."""

INACTIVE = 0.5


class Encoding:
    """The points and features of one space.

    Args:
        space: The distributions by name, parents before children.
        conditions: Of the parameters that are not always active.
    """

    def __init__(self, space: Mapping[str, BaseDistribution], conditions: Conditions | None = None) -> None:
        self.space = dict(space)
        self._names = list(self.space)
        self._conditions = {name: dict(when) for name, when in (conditions or {}).items() if when}
        self._columns = [_width(distribution) for distribution in self.space.values()]
        self.parameters = len(self._names)
        self.dimensions = sum(self._columns)
        self.categorical = np.array([isinstance(d, CategoricalDistribution) for d in self.space.values()])
        """(parameters,) Which coordinates have no order."""

    def point(self, params: Mapping[str, Any]) -> Floats:
        """(parameters,) The point of a configuration; what it lacks stands at 0.5."""
        return np.array(
            [_coordinate(d, params[name]) if name in params else INACTIVE for name, d in self.space.items()]
        )

    def params(self, point: Floats) -> dict[str, Any]:
        """The values at a point of all parameters, also of those that its other values leave inactive."""
        return {name: _value(d, float(u)) for (name, d), u in zip(self.space.items(), point, strict=True)}

    def features(self, points: Floats) -> Floats:
        """(n, dimensions) The features of (n, parameters) points."""
        columns: list[Floats] = []
        active: dict[str, NDArray[np.bool_]] = {}
        for i, (name, distribution) in enumerate(self.space.items()):
            u = points[:, i]
            active[name] = self._active(name, points, active)
            if isinstance(distribution, CategoricalDistribution):
                chosen = _index(distribution, u)[:, None] == np.arange(len(distribution.choices))
                columns.append(np.where(active[name][:, None], chosen, 0.0))
            else:
                columns.append(np.where(active[name], _on_grid(distribution, u), INACTIVE)[:, None])
        return np.concatenate(columns, axis=1) if columns else np.zeros((len(points), 0))

    def _active(self, name: str, points: Floats, active: Mapping[str, NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """(n,) At which points a parameter is active; its parents are known already."""
        mask = np.ones(len(points), dtype=bool)
        for parent, wanted in self._conditions.get(name, {}).items():
            distribution = self.space[parent]
            u = points[:, self._names.index(parent)]
            if isinstance(distribution, CategoricalDistribution):
                fits = np.array([any(same(choice, value) for value in wanted) for choice in distribution.choices])
                holds = fits[_index(distribution, u)]
            else:
                holds = np.array([any(same(_value(distribution, float(x)), value) for value in wanted) for x in u])
            mask &= active[parent] & holds
        return mask


def _width(distribution: BaseDistribution) -> int:
    return len(distribution.choices) if isinstance(distribution, CategoricalDistribution) else 1


def _index(distribution: CategoricalDistribution, u: Floats) -> NDArray[np.int64]:
    """Which choice stands at a coordinate: all have equal shares of it."""
    count = len(distribution.choices)
    return np.minimum((u * count).astype(np.int64), count - 1)


def _bounds(distribution: FloatDistribution | IntDistribution) -> tuple[float, float]:
    """The ends of the scale. A grid's outer values own as much of it as its inner ones, as Optuna draws them."""
    low, high = float(distribution.low), float(distribution.high)
    half = 0.5 * distribution.step if distribution.step is not None else 0.0
    low, high = low - half, high + half
    return (math.log(low), math.log(high)) if distribution.log else (low, high)


def _coordinate(distribution: BaseDistribution, value: Any) -> float:
    if isinstance(distribution, CategoricalDistribution):
        return (distribution.to_internal_repr(value) + 0.5) / len(distribution.choices)
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = _bounds(distribution)
    number = math.log(value) if distribution.log else float(value)
    return 0.5 if high <= low else min(1.0, max(0.0, (number - low) / (high - low)))


def _value(distribution: BaseDistribution, u: float) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[int(_index(distribution, np.array([u]))[0])]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    number = float(_numbers(distribution, np.array([u]))[0])
    return round(number) if isinstance(distribution, IntDistribution) else number


def _numbers(distribution: FloatDistribution | IntDistribution, u: Floats) -> Floats:
    """The values at coordinates, on the grid and within the bounds."""
    low, high = _bounds(distribution)
    numbers = low + u * (high - low)
    if distribution.log:
        numbers = np.exp(numbers)
    if distribution.step is not None:
        numbers = distribution.low + np.round((numbers - distribution.low) / distribution.step) * distribution.step
    return np.clip(numbers, distribution.low, distribution.high)


def _on_grid(distribution: BaseDistribution, u: Floats) -> Floats:
    """Coordinates moved to those of the values that stand there."""
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.single():
        return np.full(len(u), INACTIVE)
    if distribution.step is None:
        return u
    low, high = _bounds(distribution)
    numbers = _numbers(distribution, u)
    return np.asarray(((np.log(numbers) if distribution.log else numbers) - low) / (high - low))
