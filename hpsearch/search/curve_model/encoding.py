"""Configurations as points: a search space as a cube, and its points as coordinates for a model.

A *point* has one coordinate from 0 to 1 for each parameter, on the parameter's own scale
(logarithmic or not). Its *features* are what a kernel measures distances in: numbers where their
grid has them, a category as one-hot coordinates, and an inactive parameter at a constant. Choices
that are numbers are ordered, and evenly apart: `[16, 32, 64]` and `[1e-5, 1e-4, 1e-3]` alike.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from hpsearch.study_file.expressions.meaning import Expression
from hpsearch.study_file.space import from_optuna, in_optuna, value_of
from hpsearch.study_file.types import is_number, is_one_of

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Conditions = Mapping[str, Mapping[str, Sequence[Any]] | Expression]
"""By parameter, when it is active: an expression, or the values that its parents must have."""

INACTIVE = 0.5


class SpaceEncoding:
    """The points and features of one space, whose distributions have parents before children."""

    def __init__(
        self,
        space: Mapping[str, BaseDistribution],
        conditions: Conditions | None = None,
        requires: Sequence[Expression] = (),
    ) -> None:
        self.space = dict(space)
        self._names = list(space)
        self._conditions = conditions or {}
        self._requires = requires
        self.parameters = len(self._names)
        self.dimensions = sum(
            len(each.choices) if is_category(each) else 1 for each in space.values()
        )
        self.categorical = np.array([is_category(each) for each in space.values()])
        """(parameters,) True for coordinates that have no order."""
        self.drawn = {name: each for name, each in space.items() if not each.single()}
        """The parameters that have more than one value."""

    def point(self, params: Mapping[str, Any]) -> Floats:
        """(parameters,) The point of a configuration; missing parameters are at 0.5."""
        point = np.full(self.parameters, INACTIVE)
        for i, (name, distribution) in enumerate(self.space.items()):
            if name in params:
                point[i] = _coordinate(distribution, params[name])
        return point

    def params(self, point: Floats) -> dict[str, Any]:
        """The values of all parameters at a point, also of inactive ones."""
        values = zip(self.space.items(), point, strict=True)
        return {name: _values(distribution, np.array([u]))[0] for (name, distribution), u in values}

    def features(self, points: Floats) -> Floats:
        """(n, dimensions) The features of (n, parameters) points."""
        active = self.active(points)
        columns = [np.zeros((len(points), 0))]
        for i, (name, distribution) in enumerate(self.space.items()):
            columns.append(_feature(distribution, points[:, i], active[name]))
        return np.concatenate(columns, axis=1)

    def active(self, points: Floats) -> dict[str, Bools]:
        """By parameter, (n,) true where it is active, of (n, parameters) points."""
        active: dict[str, Bools] = {}
        for name in self._names:
            active[name] = np.ones(len(points), dtype=bool)
            condition = self._conditions.get(name, {})
            if isinstance(condition, Expression):
                active[name] = self._holds(condition, points, active)
                continue
            for parent, wanted in condition.items():
                column = points[:, self._names.index(parent)]
                active[name] &= active[parent] & _has_one_of(self.space[parent], column, wanted)
        return active

    def allowed(self, points: Floats) -> Bools:
        """(n,) True where all requirements are kept, of (n, parameters) points."""
        allowed = np.ones(len(points), dtype=bool)
        active = self.active(points) if self._requires else {}
        for requirement in self._requires:
            counts = np.all([active[name] for name in requirement.names], axis=0)
            allowed &= ~counts | self._holds(requirement, points, active)
        return allowed

    def _holds(self, test: Expression, points: Floats, active: Mapping[str, Bools]) -> Bools:
        columns: list[list[Any]] = []
        for name in test.names:
            values = _values(self.space[name], points[:, self._names.index(name)])
            pairs = zip(values, active[name].tolist(), strict=True)
            columns.append([value if is_active else None for value, is_active in pairs])
        rows = zip(*columns, strict=True)
        found = [test.holds(dict(zip(test.names, row, strict=True))) for row in rows]
        return np.array(found, dtype=bool)


def _feature(distribution: BaseDistribution, u: Floats, active: Bools) -> Floats:
    if not is_category(distribution):
        column = np.where(active, _on_grid(distribution, u), INACTIVE)
        return column[:, None]
    choices = np.arange(len(distribution.choices))
    chosen = choice_index(distribution, u)[:, None] == choices
    return np.where(active[:, None], chosen, 0.0)


def _has_one_of(distribution: BaseDistribution, u: Floats, wanted: Sequence[Any]) -> Bools:
    if isinstance(distribution, CategoricalDistribution):
        of_choices = np.array([is_one_of(choice, wanted) for choice in _choices(distribution)])
        index = choice_index(distribution, u)
        return np.asarray(of_choices[index])
    return np.array([is_one_of(value, wanted) for value in _values(distribution, u)])


def is_category(distribution: BaseDistribution) -> TypeGuard[CategoricalDistribution]:
    """True if the values of a parameter have no order."""
    if not isinstance(distribution, CategoricalDistribution):
        return False
    return not all(is_number(choice) for choice in distribution.choices)


def choice_index(distribution: CategoricalDistribution, u: Floats) -> Ints:
    """The index of the choice at each coordinate; all choices have equal shares of the range."""
    return _in_order(distribution)[_place(distribution, u)]


def _choices(distribution: CategoricalDistribution) -> list[Any]:
    return list(map(from_optuna, distribution.choices))


def _place(distribution: CategoricalDistribution, u: Floats) -> Ints:
    count = len(distribution.choices)
    return np.minimum((u * count).astype(np.int64), count - 1)


def _in_order(distribution: CategoricalDistribution) -> Ints:
    if is_category(distribution):
        return np.arange(len(distribution.choices))
    return np.argsort(np.array(distribution.choices, dtype=float), kind="stable")


def _bounds(distribution: FloatDistribution | IntDistribution) -> tuple[float, float]:
    """The ends of the scale: a grid's outer values have as much of it as its inner ones."""
    half = 0.5 * (distribution.step or 0.0)
    low = float(distribution.low) - half
    high = float(distribution.high) + half
    if distribution.log:
        return math.log(low), math.log(high)
    return low, high


def _coordinate(distribution: BaseDistribution, value: Any) -> float:
    if isinstance(distribution, CategoricalDistribution):
        chosen = distribution.to_internal_repr(in_optuna(value))
        place = _in_order(distribution).tolist().index(chosen)
        return float((place + 0.5) / len(distribution.choices))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    low, high = _bounds(distribution)
    if high <= low:
        return 0.5
    number = math.log(value) if distribution.log else float(value)
    return min(1.0, max(0.0, (number - low) / (high - low)))


def _values(distribution: BaseDistribution, u: Floats) -> list[Any]:
    if isinstance(distribution, CategoricalDistribution):
        choices = _choices(distribution)
        return [choices[index] for index in choice_index(distribution, u)]
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    numbers: list[float] = _numbers(distribution, u).tolist()
    if isinstance(distribution, IntDistribution):
        return [round(number) for number in numbers]
    if distribution.step is None:
        return numbers
    as_written = {number: value_of(distribution, number) for number in set(numbers)}
    return [as_written[number] for number in numbers]


def _numbers(distribution: FloatDistribution | IntDistribution, u: Floats) -> Floats:
    low, high = _bounds(distribution)
    numbers = low + u * (high - low)
    if distribution.log:
        numbers = np.exp(numbers)
    least, step = distribution.low, distribution.step
    if step is not None:
        steps = np.round((numbers - least) / step)
        numbers = least + steps * step
    return np.clip(numbers, least, distribution.high)


def _on_grid(distribution: BaseDistribution, u: Floats) -> Floats:
    if distribution.single():
        return np.full(len(u), INACTIVE)
    if isinstance(distribution, CategoricalDistribution):
        return np.asarray((_place(distribution, u) + 0.5) / len(distribution.choices))
    assert isinstance(distribution, FloatDistribution | IntDistribution)
    if distribution.step is None:
        return u
    low, high = _bounds(distribution)
    numbers = _numbers(distribution, u)
    scaled = np.log(numbers) if distribution.log else numbers
    return np.asarray((scaled - low) / (high - low))
