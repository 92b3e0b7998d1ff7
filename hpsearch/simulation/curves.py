"""Recorded learning curves for the simulated executor: what configurations once measured, looked up
for new proposals.

There is one curve for each configuration. A proposal takes the nearest configuration that no other
proposal has taken, so that a search can be replayed on what was measured before. Distances are
Euclidean, in the unit cube: numbers on the scale of the space (logarithmic where that is), two
different choices one apart, and present and absent one apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpsearch.study_file.models import CategoricalParameter, FloatParameter, IntParameter
from hpsearch.study_file.space import Space
from hpsearch.study_file.types import same
from trials.contract import Diverged

Floats = NDArray[np.float64]

TINY = 1e-300
"""In place of 0 and less, where a logarithm is taken."""


@dataclass(frozen=True)
class Curve:
    """What one configuration measured as it trained; straight lines between the levels.

    Args:
        levels: Ascending resources, `[n]`, above 0.
        metrics: For each metric its values at the levels, `[n]`; not a number from where training
            diverged on.
        seconds: Seconds of training up to each level, `[n]`, never falling.
    """

    levels: Floats
    metrics: Mapping[str, Floats]
    seconds: Floats

    @property
    def is_finite(self) -> bool:
        """Whether training did not diverge."""
        return all(bool(np.isfinite(values).all()) for values in self.metrics.values())

    def at(self, resource: float) -> dict[str, float]:
        """The metrics at a resource; below the first level those of the first one.

        Raises:
            Diverged: One of them is not a number there.
        """
        found = {}
        for name, values in self.metrics.items():
            found[name] = float(np.interp(resource, self.levels, values))
        if not all(map(math.isfinite, found.values())):
            raise Diverged(f"the recorded run was not finite at {resource:g}")
        return found

    def seconds_at(self, resource: float) -> float:
        """Seconds of training from nothing up to a resource."""
        return float(np.interp(resource, [0.0, *self.levels], [0.0, *self.seconds]))


class UnitCube:
    """The search space as a cube of side one, for distances."""

    def __init__(self, space: Space) -> None:
        self._space = space

    def place(self, params: Mapping[str, Any]) -> Floats:
        """The coordinates of a configuration.

        Each number has one, and one more where it has a condition. Each choice of a categorical
        parameter has one.
        """
        place: list[float] = []
        for name, parameter in self._space.items():
            value = params.get(name)
            if isinstance(parameter, CategoricalParameter):
                place += [math.sqrt(0.5) * same(value, choice) for choice in parameter.choices]
                continue
            coordinate = 0.5
            if value is not None:
                coordinate = _scaled(parameter, float(value))
            place.append(coordinate)
            if parameter.when:
                place.append(float(value is None))
        return np.array(place)


def _scaled(parameter: FloatParameter | IntParameter, value: float) -> float:
    """Where a value lies in its range, from 0 to 1."""
    low, high = float(parameter.low), float(parameter.high)
    if low == high:
        return 0.5
    if not parameter.log:
        return (value - low) / (high - low)
    return math.log(max(value, TINY) / low) / math.log(high / low)


class RecordedCurves:
    """Curves that were recorded: each new proposal takes the nearest configuration not yet taken.

    Equal proposals share a curve. When every configuration is taken, the nearest one of all is
    taken again.

    Args:
        space: The search space, for distances.
        configurations: The recorded ones.
        curves: Their curves, in the same order.
    """

    def __init__(
        self, space: Space, configurations: Sequence[Mapping[str, Any]], curves: Sequence[Curve]
    ) -> None:
        self._cube = UnitCube(space)
        self._places = np.array([self._cube.place(params) for params in configurations])
        self._configurations = configurations
        self._curves = curves
        self._free = np.ones(len(curves), dtype=bool)
        self._taken: dict[tuple[Any, ...], int] = {}

    @property
    def taken(self) -> int:
        """How many configurations stand for a proposal."""
        return int((~self._free).sum())

    def stand_in(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The recorded configuration that stands for a proposal."""
        return self._configurations[self._row(params)]

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics that were recorded at a resource.

        Raises:
            Diverged: The recorded run did not get there.
        """
        return self._curves[self._row(params)].at(resource)

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training from nothing up to a resource."""
        return self._curves[self._row(params)].seconds_at(resource)

    def _row(self, params: Mapping[str, Any]) -> int:
        """The place of the configuration that stands for a proposal; it is taken from now on."""
        key = tuple(sorted(params.items()))
        if key not in self._taken:
            row = self._nearest(self._cube.place(params))
            self._free[row] = False
            self._taken[key] = row
        return self._taken[key]

    def _nearest(self, place: Floats) -> int:
        """The nearest free configuration; where none is free, the nearest of all."""
        distances = ((self._places - place) ** 2).sum(axis=1)
        if self._free.any():
            distances = np.where(self._free, distances, np.inf)
        return int(np.argmin(distances))
