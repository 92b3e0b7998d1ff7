"""Recorded learning curves for the simulated executor, looked up for new proposals.

A configuration has one curve for each seed that was recorded. A proposal takes the nearest
configuration that no other proposal has taken. Distances are Euclidean, in the unit cube: numbers
on the scale of the space (linear or logarithmic), two different choices one apart, and present and
absent one apart.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hpsearch.study_file.parameters import CategoricalParameter, FloatParameter, IntParameter
from hpsearch.study_file.space import Space
from hpsearch.study_file.types import key_of, same
from trials.contract import Diverged

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Curve:
    """The measurements of one configuration as it trained; straight lines between the levels."""

    levels: Floats  # ascending resources, `[n]`, above 0
    metrics: Mapping[str, Floats]
    """For each metric its values at the levels, `[n]`; NaN from where training diverged on."""
    seconds: Floats  # seconds of training up to each level, `[n]`, never falling
    others: Mapping[str, Floats] = field(default_factory=dict)
    """Metrics that do not show if training diverged, `[n]` each; NaN where they were not
    reported."""

    @property
    def is_finite(self) -> bool:
        """True if training did not diverge."""
        finite = (np.isfinite(values).all() for values in self.metrics.values())
        return all(finite)

    def at(self, resource: float) -> dict[str, float]:
        """The metrics at a resource, and those of `others` that were reported there; below the
        first level those of the first one. Raises Diverged if one of `metrics` is NaN there."""
        found = self._between(self.metrics, resource)
        if not all(map(math.isfinite, found.values())):
            raise Diverged(f"the recorded run was not finite at {resource:g}")
        for name, value in self._between(self.others, resource).items():
            if math.isfinite(value):
                found[name] = value
        return found

    def _between(self, metrics: Mapping[str, Floats], resource: float) -> dict[str, float]:
        found = {}
        for name, values in metrics.items():
            found[name] = float(np.interp(resource, self.levels, values))
        return found

    def seconds_at(self, resource: float) -> float:
        """Seconds of training from nothing up to a resource."""
        return float(np.interp(resource, [0.0, *self.levels], [0.0, *self.seconds]))


def _place(space: Space, params: Mapping[str, Any]) -> Floats:
    """The coordinates of a configuration in the unit cube.

    A number has one, and one more where it has a condition. Each choice of a categorical parameter
    has one.
    """
    place: list[float] = []
    for name, parameter in space.items():
        value = params.get(name)
        if isinstance(parameter, CategoricalParameter):
            place += [math.sqrt(0.5) * same(value, choice) for choice in parameter.choices]
            continue
        coordinate = 0.5 if value is None else _scaled(parameter, float(value))
        place.append(coordinate)
        if parameter.when:
            place.append(float(value is None))
    return np.array(place)


def _scaled(parameter: FloatParameter | IntParameter, value: float) -> float:
    low, high = float(parameter.low), float(parameter.high)
    if low == high:
        return 0.5
    if not parameter.log:
        return (value - low) / (high - low)
    factor = max(value, low) / low
    return math.log(factor) / math.log(high / low)


_Key = tuple[tuple[str, Any], ...]  # a proposal: its parameters by name


class RecordedCurves:
    """Curves that were recorded: each new proposal takes the nearest configuration not yet taken.

    Equal proposals share a configuration. When every configuration is taken, the nearest one of all
    is taken again. The first seed of a proposal measures the first recorded run, its second seed
    the second run, and so on, beginning again after the last one.
    """

    def __init__(
        self,
        space: Space,
        configurations: Sequence[Mapping[str, Any]],
        runs: Sequence[Sequence[Curve]],
    ) -> None:
        self._space = space
        self._places = np.array([_place(space, params) for params in configurations])
        self.configurations = configurations
        self.runs = runs
        self._free = np.ones(len(runs), dtype=bool)
        self._taken: dict[_Key, int] = {}
        self._seeds: dict[_Key, list[int]] = {}

    @property
    def taken(self) -> int:
        """The number of configurations that stand for a proposal."""
        return int((~self._free).sum())

    def stand_in(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """The recorded configuration that stands for a proposal."""
        return self.configurations[self._row(params)]

    def measure(self, params: Mapping[str, Any], seed: int, resource: float) -> Mapping[str, float]:
        """The metrics that were recorded at a resource. Raises Diverged if the recorded run did not
        get there."""
        curves = self.runs[self._row(params)]
        seeds = self._seeds.setdefault(_key_of(params), [])
        if seed not in seeds:
            seeds.append(seed)
        run = seeds.index(seed) % len(curves)
        return curves[run].at(resource)

    def seconds(self, params: Mapping[str, Any], resource: float) -> float:
        """Seconds of training from nothing up to a resource, as the first recorded seed took."""
        first, *_ = self.runs[self._row(params)]
        return first.seconds_at(resource)

    def _row(self, params: Mapping[str, Any]) -> int:
        """The place of the configuration that stands for a proposal; it is taken from now on."""
        key = _key_of(params)
        if key not in self._taken:
            row = self._nearest(_place(self._space, params))
            self._free[row] = False
            self._taken[key] = row
        return self._taken[key]

    def _nearest(self, place: Floats) -> int:
        distances = ((self._places - place) ** 2).sum(axis=1)
        if self._free.any():
            distances = np.where(self._free, distances, np.inf)
        return int(np.argmin(distances))


def _key_of(params: Mapping[str, Any]) -> _Key:
    return tuple(sorted((name, key_of(value)) for name, value in params.items()))
