"""The evidence of trials for the model of learning curves.

It is each trial's value at a few marks along its curve, and its latest value, so that paused and
pruned trials count for what they showed. Resources are shares of the full trial budget. Below the
full budget the validation loss counts beside the objective (`blend`). Values are stretched at the
good end, where differences matter. The cost of a decision grows with the cube of the rows, so there
are at most `MOST_ROWS`.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from hpsearch.domain.history import History
from hpsearch.domain.lifecycle import State
from hpsearch.domain.records import Trial, sign_of
from hpsearch.search.curve_model.blend import LossBlend
from hpsearch.search.curve_model.encoding import Floats, SpaceEncoding
from hpsearch.search.curve_model.model import Evidence, Points

MOST_ROWS = 160
"""Rows of evidence: the cost of a decision grows with their cube."""
HORIZON = 1 / 7
"""The least amount of training after which configurations are compared, as a share of the full
budget."""
MARKS = (1 / 17, 3 / 17, 9 / 17)
"""The shares of the full budget at which the values of a curve are evidence."""
RANGE = 50.0
"""Tau is 1 at the full budget, and 0 at a share of one in so many and below."""
DIGITS = 6
"""Of a share of the full budget, so that levels which are the same in two units look the same."""
FLOOR, BELOW, WORST = 0.1, 0.08, 20.0
"""Of the warp: how strongly the good end is stretched, how far below the best it reaches, and where
the bad end is cut."""


@dataclass(frozen=True, slots=True)
class ShownCurve:
    """The curve that one trial showed; values are minimised.

    Args:
        number: The trial's.
        point: (parameters,) Its configuration.
        shares: Of the full budget, ascending.
        values: What it showed there.
        best: The best of all its values.
        outside: Whether it failed or exceeds a limit, so that configurations like it are useless.
    """

    number: int
    point: Floats
    shares: tuple[float, ...]
    values: tuple[float, ...]
    best: float
    outside: bool
    losses: tuple[float, ...] = ()
    """The validation loss there, NaN where there is none; empty where the trial reports none."""


@dataclass(frozen=True)
class Warp:
    """Stretches the good end: ln(0.1 + (y - low) / (middle - low)), less ln 0.1.

    That is 0 at `low`, and 2.4 at `middle`.
    """

    low: float
    middle: float

    def __call__(self, values: Floats) -> Floats:
        """Warped values; what is not finite is worst."""
        values = np.asarray(values, dtype=float)
        span = max(self.middle - self.low, 1e-12)
        with np.errstate(over="ignore", invalid="ignore"):  # the ends of all floats are far apart
            share = (values - self.low) / span
        share = np.where(np.isfinite(values) & ~np.isnan(share), share, WORST)
        stretched = np.log(FLOOR + np.clip(share, -BELOW, WORST))
        return np.asarray(stretched - math.log(FLOOR))

    def undone(self, warped: Floats) -> Floats:
        """The values that warp to these."""
        share = FLOOR * np.exp(warped) - FLOOR
        return np.asarray(self.low + share * (self.middle - self.low))


class CurveReader:
    """Reads the curves of a study's trials, each one again when it has changed.

    Args:
        total: The full trial budget, in its unit.
        losses: Names of a validation loss, which counts beside the objective; the first one that
            is reported.
    """

    def __init__(
        self, encoding: SpaceEncoding, history: History, total: float, losses: Sequence[str] = ()
    ) -> None:
        self._encoding = encoding
        self._history = history
        self._total = total
        self._losses = losses
        self._blend = LossBlend()
        self._sign = sign_of(history.study.directions[0])
        self._clock = 0
        self._known: dict[int, ShownCurve] = {}
        self._ordered: list[ShownCurve] = []
        """All of them, the best first."""
        self._order: list[tuple[bool, float, int]] = []
        """The keys that they are ordered by."""
        self.points: dict[int, Floats] = {}
        """By trial, its configuration."""
        self.changes = 0
        """The number of changes of all curves."""
        self.values = 0
        """The number of values of all curves."""

    def curves(self) -> list[ShownCurve]:
        """The curves of all trials with a finite value, and of those that failed.

        The best one first: those that keep the limits by their best value, then those that do not,
        and those that failed.
        """
        self._clock, changed = self._history.changed_since(self._clock)
        for number in changed:
            trial = self._history.trials[number]
            self._take(number, self.read(trial))
        return self._ordered.copy()

    def _take(self, number: int, curve: ShownCurve | None) -> None:
        before = self._known.get(number)
        if before is not None:
            self._leave(before)
        if curve is not None:
            self._enter(curve)
        if _shown(before) != _shown(curve):
            self.changes += 1

    def _enter(self, curve: ShownCurve) -> None:
        number = curve.number
        key = _goodness(curve)
        place = bisect.bisect_left(self._order, key)
        self._order.insert(place, key)
        self._ordered.insert(place, curve)
        self._known[number] = curve
        self.points[number] = curve.point
        self.values += len(curve.values)
        if curve.losses:
            self._blend.enter(curve.shares, curve.values, curve.losses)

    def _leave(self, curve: ShownCurve) -> None:
        number = curve.number
        place = bisect.bisect_left(self._order, _goodness(curve))
        del self._order[place], self._ordered[place]
        del self._known[number], self.points[number]
        self.values -= len(curve.values)
        if curve.losses:
            self._blend.leave(curve.shares, curve.values, curve.losses)

    def blended(self, curve: ShownCurve) -> ShownCurve:
        """A curve with the values that count: the validation loss has its part in them."""
        if not curve.losses:
            return curve
        rows = zip(curve.shares, curve.values, curve.losses, strict=True)
        values = tuple(self._blend.value(*row) for row in rows)
        return replace(curve, values=values)

    def read(self, trial: Trial) -> ShownCurve | None:
        """A trial's values at the marks it has passed, and its latest; None if it has none."""
        if not trial.params:
            return None
        point = self._encoding.point(trial.params)
        number = trial.number
        if trial.error_kind is not None and trial.error_kind.of_configuration:
            # Wherever curves are compared, it is as bad as anything that was seen.
            nothing = (math.inf, math.inf)
            horizons = (HORIZON, 1.0)
            return ShownCurve(number, point, horizons, nothing, math.inf, outside=True)
        values = self._values(trial)
        if not values:
            return None
        shares = self._at_marks(sorted(values))
        shown = tuple(values[share] for share in shares)
        best = min(values.values())
        outside = trial.violation > 0
        losses = self._loss_at(trial, shares)
        return ShownCurve(number, point, tuple(shares), shown, best, outside, losses)

    def _loss_at(self, trial: Trial, shares: Sequence[float]) -> tuple[float, ...]:
        """The validation loss at each share of the full budget, NaN where there is none.

        Empty where the trial reports none.
        """
        first = next(iter(trial.reports.values()), None)
        reported = () if first is None else first.metrics
        name = next((name for name in self._losses if name in reported), None)
        if name is None:
            return ()
        by_share = {}
        for resource, report in trial.reports.items():
            share = round(resource / self._total, DIGITS)
            by_share[share] = report.metrics.get(name, math.nan)
        return tuple(by_share.get(share, math.nan) for share in shares)

    def _values(self, trial: Trial) -> dict[float, float]:
        values = {}
        for resource, report in trial.reports.items():
            value = report.value
            if value is not None and math.isfinite(value):
                share = round(resource / self._total, DIGITS)
                values[share] = self._sign * value
        final = trial.value
        if values or trial.state is not State.COMPLETE or final is None:
            return values
        return {1.0: self._sign * final}

    def _at_marks(self, shares: list[float]) -> list[float]:
        """Of ascending shares, the last one up to each mark, and the last one of all."""
        chosen = {shares[-1]}
        for mark in MARKS:
            place = bisect.bisect_right(shares, round(mark, DIGITS)) - 1
            chosen.add(shares[max(0, place)])
        return sorted(chosen)


def _shown(curve: ShownCurve | None) -> tuple[object, ...]:
    if curve is None:
        return ()
    return curve.shares, curve.values, curve.losses, curve.outside


def _goodness(curve: ShownCurve) -> tuple[bool, float, int]:
    """The key that curves are ordered by: the best one has the least."""
    return curve.outside, curve.best, curve.number


def seen_of(curves: Sequence[ShownCurve]) -> int:
    """The number of curves, the best first, that have a value; the others failed."""
    return bisect.bisect_left(curves, True, key=lambda curve: math.isinf(curve.best))


def warp_of(curves: Sequence[ShownCurve]) -> Warp:
    """The warp between the best value and the middle one; the curves have the best first.

    Those that exceed a limit count as the worst value that was seen.
    """
    seen = seen_of(curves)
    inside = bisect.bisect_left(curves, True, key=lambda curve: curve.outside)
    last_ones = [curves[place - 1].best for place in {inside, seen} if place > 0]
    worst = max(last_ones)

    def at(place: int) -> float:
        return curves[place].best if place < inside else worst

    middle = (at((seen - 1) // 2) + at(seen // 2)) / 2
    return Warp(at(0), middle)


def evidence_of(
    curves: Sequence[ShownCurve],
    warp: Warp,
    encoding: SpaceEncoding,
    counting: Callable[[ShownCurve], ShownCurve] = lambda curve: curve,
    most: int = MOST_ROWS,
) -> tuple[Evidence, float]:
    """The rows that the model is shown.

    Args:
        counting: Puts the values that count into a curve; those of the objective without it.

    Returns: The evidence, and the mean that was taken off its values. The trials of its points are
        those with these numbers.
    """
    chosen = [(counting(curve), since) for curve, since in _chosen(curves, most)]
    features = encoding.features(np.array([curve.point for curve, _ in chosen]))
    of: list[int] = []
    numbers: list[int] = []
    shares: list[float] = []
    shown: list[float] = []
    outside: list[bool] = []
    for place, (curve, since) in enumerate(chosen):
        rows = len(curve.values) - since
        of += [place] * rows
        numbers += [curve.number] * rows
        shares += curve.shares[since:]
        shown += curve.values[since:]
        outside += [curve.outside] * rows
    values = np.array(shown)
    worst = values.max(where=np.isfinite(values), initial=warp.middle)
    values = np.minimum(values, worst)
    # A useless configuration is never shown as better than the middle, so that it attracts no
    # proposals.
    useless = np.maximum(values, warp.middle)
    z = warp(np.where(np.array(outside), useless, values))
    mean = z.mean()
    points = Points(features[of], tau_of(np.array(shares)), np.array(numbers))
    return Evidence(points, z - mean), float(mean)


def _chosen(curves: Sequence[ShownCurve], most: int) -> list[tuple[ShownCurve, int]]:
    """Curves, and from which of their values on they are rows.

    Of the best trials these are all values, up to half of the rows; of the others the latest one,
    evenly by rank.
    """
    # Every curve has a row at least, so that no more of them need to be counted.
    lengths = [len(curve.values) for curve in curves[: most + 1]]
    if sum(lengths) <= most:
        return [(curve, 0) for curve in curves]
    best = int(np.searchsorted(np.cumsum(lengths), most // 2, side="right"))
    room = most - sum(lengths[:best])
    count = min(room, len(curves) - best)
    ranks = np.unique(np.linspace(best, len(curves) - 1, count).round())
    chosen = [(curve, 0) for curve in curves[:best]]
    for rank in ranks:
        other = curves[int(rank)]
        latest = len(other.values) - 1
        chosen.append((other, latest))
    return chosen


def tau_of(shares: Floats) -> Floats:
    """(n,) The model's axis of time, from 0 to 1: the logarithm of shares of the full budget."""
    above_zero = np.maximum(shares, 1e-9)
    tau = 1 + np.log(above_zero) / math.log(RANGE)
    return np.asarray(np.maximum(tau, 0.0))
