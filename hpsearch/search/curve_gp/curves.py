"""What trials have shown so far, as evidence for the model of learning curves.

Evidence is each trial's value at a few marks along its curve and its latest one, so trials that
were paused or pruned count for what they showed, at the resource where they showed it. Values are
stretched at the good end, where differences matter. The cost of a decision grows with the cube of
the rows, so there are at most `MOST_ROWS`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from hpsearch.domain.facts import FAILED
from hpsearch.domain.records import violation_of
from hpsearch.search.curve_gp.encoding import SpaceEncoding
from hpsearch.search.curve_gp.model import Evidence, Points

Floats = NDArray[np.float64]

MOST_ROWS = 160
"""Rows of evidence: the cost of a decision grows with their cube."""
HORIZON = 0.5
"""The least horizon, as tau."""
FLOOR, BELOW, WORST = 0.1, 0.08, 20.0
"""Of the warp: how strongly the good end is stretched, how far below the best it reaches, and where
the bad end is cut."""
MARKS_PER_TOTAL = 17.0
"""The first mark on a curve is a 17th of its length, the next ones three times the one before."""


@dataclass(frozen=True, slots=True)
class ShownCurve:
    """What one trial showed; values are minimised."""

    trial: FrozenTrial
    point: Floats
    resources: tuple[float, ...]
    values: tuple[float, ...]
    best: float
    outside: bool
    """Whether it failed or oversteps a limit: others like it are of no use."""


@dataclass(frozen=True)
class Warp:
    """Stretches the good end: ln(0.1 + (y - low) / (middle - low)), less ln 0.1.

    That is 0 at `low`, and 2.4 at `middle`.
    """

    low: float
    middle: float

    def __call__(self, values: Floats) -> Floats:
        """Warped values; what is not finite is worst."""
        span = max(self.middle - self.low, 1e-12)
        share = (np.asarray(values, dtype=float) - self.low) / span
        share = np.where(np.isfinite(share), share, WORST)
        stretched = np.log(FLOOR + np.clip(share, -BELOW, WORST))
        return np.asarray(stretched - math.log(FLOOR))


class CurveReader:
    """Reads the curves of a study's trials, each one once after it has changed.

    Args:
        encoding: Of the study's space.
        total: The full trial budget, in steps.
    """

    def __init__(self, encoding: SpaceEncoding, total: float) -> None:
        self._encoding = encoding
        self._total = total
        self._marks = _marks(total)
        self._known: dict[int, ShownCurve] = {}

    def curves(self, study: Study) -> list[ShownCurve]:
        """What every trial with a finite value has shown so far, and those that failed."""
        sign = -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0
        curves = []
        for trial in study.get_trials(deepcopy=False):
            curve = self._known.get(trial.number)
            if curve is None or curve.trial is not trial:
                curve = self.read(trial, sign)
            if curve is None:
                continue
            self._known[trial.number] = curve
            curves.append(curve)
        return curves

    def read(self, trial: FrozenTrial, sign: float) -> ShownCurve | None:
        """A trial's values at the marks it has passed, and its latest; None where it has none."""
        point = self._encoding.point(trial.params)
        if FAILED in trial.system_attrs:
            # Wherever curves are compared, it is as bad as anything that was seen.
            horizons = (self._total**HORIZON, self._total)
            nothing = (math.inf, math.inf)
            return ShownCurve(trial, point, horizons, nothing, math.inf, outside=True)
        values = self._values(trial, sign)
        if not values:
            return None
        steps = self._at_marks(sorted(values))
        resources = tuple(map(float, steps))
        shown = tuple(values[step] for step in steps)
        best = min(values.values())
        outside = violation_of(trial.system_attrs) > 0
        return ShownCurve(trial, point, resources, shown, best, outside)

    def _values(self, trial: FrozenTrial, sign: float) -> dict[int, float]:
        """The finite values of a trial by step, to be minimised."""
        values = {}
        for step, value in trial.intermediate_values.items():
            if math.isfinite(value):
                values[step] = sign * value
        if values or trial.state is not TrialState.COMPLETE:
            return values
        final = trial.value
        if final is None:
            return values
        return {round(self._total): sign * final}

    def _at_marks(self, steps: list[int]) -> list[int]:
        """Of ascending steps, the last one up to each mark, and the last one of all."""
        chosen = {steps[-1]}
        for mark in self._marks:
            place = bisect.bisect_right(steps, mark) - 1
            chosen.add(steps[max(0, place)])
        return sorted(chosen)


def warp_of(curves: Sequence[ShownCurve]) -> Warp:
    """The warp between the best value of these curves and the middle one.

    Some of them have a finite value.
    """
    seen = [curve for curve in curves if math.isfinite(curve.best)]
    worst = max(curve.best for curve in seen)
    bests = np.sort([worst if curve.outside else curve.best for curve in seen])
    low = float(bests[0])
    middle = float(np.median(bests))
    return Warp(low, middle)


def evidence_of(
    curves: Sequence[ShownCurve], warp: Warp, encoding: SpaceEncoding, total: float
) -> tuple[Evidence, float]:
    """The rows that the model is shown.

    Args:
        curves: What trials have shown, the best first.
        warp: Stretches their values.
        encoding: Of the study's space.
        total: The full trial budget, in steps.

    Returns: The evidence, and the mean that was taken off its values.
    """
    chosen = _chosen(curves)
    features = encoding.features(np.array([curve.point for curve, _ in chosen]))
    of: list[int] = []
    resources: list[float] = []
    shown: list[float] = []
    outside: list[bool] = []
    for place, (curve, since) in enumerate(chosen):
        rows = len(curve.values) - since
        of += [place] * rows
        resources += curve.resources[since:]
        shown += curve.values[since:]
        outside += [curve.outside] * rows
    values = np.array(shown)
    worst = values.max(where=np.isfinite(values), initial=warp.middle)
    values = np.minimum(values, worst)
    # What is of no use is never shown as better than the middle, so that it attracts no proposal.
    useless = np.maximum(values, warp.middle)
    z = warp(np.where(np.array(outside), useless, values))
    mean = z.mean()
    trial = np.array(of)
    points = Points(features[trial], _tau(np.array(resources), total), trial)
    return Evidence(points, z - mean), float(mean)


def _chosen(curves: Sequence[ShownCurve]) -> list[tuple[ShownCurve, int]]:
    """Curves, and from which of their values on they are rows.

    Of the best trials these are all values, up to half of the rows; of the others the latest one,
    evenly by rank.
    """
    lengths = [len(curve.values) for curve in curves]
    if sum(lengths) <= MOST_ROWS:
        return [(curve, 0) for curve in curves]
    best = int(np.searchsorted(np.cumsum(lengths), MOST_ROWS // 2, side="right"))
    room = MOST_ROWS - sum(lengths[:best])
    count = min(room, len(curves) - best)
    ranks = np.unique(np.linspace(best, len(curves) - 1, count).round())
    chosen = [(curve, 0) for curve in curves[:best]]
    for rank in ranks:
        other = curves[int(rank)]
        latest = len(other.values) - 1
        chosen.append((other, latest))
    return chosen


def _tau(resources: Floats, total: float) -> Floats:
    """(n,) ln resource / ln total, at least 0."""
    if total <= 1:
        return np.ones(len(resources))
    above_zero = np.maximum(resources, 1e-9)
    tau = np.log(above_zero) / math.log(total)
    return np.asarray(np.maximum(tau, 0.0))


def _marks(total: float) -> list[float]:
    """Where along a curve of this length its values are evidence."""
    first = total / MARKS_PER_TOTAL
    return [first * 3**k * (1 + 1e-9) for k in range(3)]
