"""Recorded learning curves for the simulated executor: what configurations did once, looked up for new proposals.

A table has one curve a configuration. A proposal takes the nearest configuration that no other proposal has taken,
so a search can be replayed on what was measured before. Near is by Euclidean distance in the unit cube: numbers on
the scale of the space (logarithmic where it is), two categories one apart, present and absent one apart.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpsearch.space import Space
from hpsearch.spec import CategoricalParameter, FloatParameter, IntParameter
from hpsearch.spec_types import same
from trials.contract import Diverged

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """What one configuration measures on its way; straight lines between the levels.

    Args:
        levels: Ascending resources, `[n]`, above 0.
        metrics: For each metric its values at the levels, `[n]`; not a number from where training diverged on.
        seconds: Seconds of training up to each level, `[n]`, never falling.
    """

    levels: Floats
    metrics: Mapping[str, Floats]
    seconds: Floats

    def at(self, resource: float) -> dict[str, float]:
        """The metrics at a resource; below the first level those of the first one.

        Raises:
            Diverged: One of them is not a number there.
        """
        found = {name: float(np.interp(resource, self.levels, values)) for name, values in self.metrics.items()}
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
        """The coordinates of a configuration: one for a number, one for each choice, one more for a condition."""
        place: list[float] = []
        for name, parameter in self._space.items():
            value = params.get(name)
            if isinstance(parameter, CategoricalParameter):
                place += [math.sqrt(0.5) * same(value, choice) for choice in parameter.choices]
            else:
                place.append(0.5 if value is None else _scaled(parameter, float(value)))
                place += [float(value is None)] if parameter.when else []
        return np.array(place)


def _scaled(parameter: FloatParameter | IntParameter, value: float) -> float:
    low, high = float(parameter.low), float(parameter.high)
    if low == high:
        return 0.5
    if not parameter.log:
        return (value - low) / (high - low)
    return math.log(max(value, 1e-300) / low) / math.log(high / low)


class RecordedCurves:
    """Curves that were recorded: each new proposal takes the nearest configuration not yet taken.

    Equal proposals share a curve. When every configuration is taken, the nearest one of all is taken again.

    Args:
        space: The search space, for what is near.
        configurations: The recorded ones.
        curves: Their curves, in the same order.
    """

    def __init__(self, space: Space, configurations: Sequence[Mapping[str, Any]], curves: Sequence[Curve]) -> None:
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

    def recorded(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The configuration that stands for a proposal."""
        return self._configurations[self._row(params)]

    def _row(self, params: Mapping[str, Any]) -> int:
        key = tuple(sorted(params.items()))
        if key not in self._taken:
            distances = ((self._places - self._cube.place(params)) ** 2).sum(axis=1)
            row = int(np.argmin(np.where(self._free, distances, np.inf) if self._free.any() else distances))
            self._free[row] = False
            self._taken[key] = row
        return self._taken[key]

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics that were recorded at a resource.

        Raises:
            Diverged: The recorded run did not get there.
        """
        return self._curves[self._row(params)].at(resource)

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training from nothing up to a resource."""
        return self._curves[self._row(params)].seconds_at(resource)
